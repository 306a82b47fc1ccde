"""An operator's names: its type in OpDef, and the file and entry function of its kernel.

CANN's build knows the type alone: it makes the name of the file and of the entry out of it, and
fails where the kernel calls them otherwise. docs/project.md, "Names", has the rule and its sources.
"""

from __future__ import annotations

import re

_SUFFIX = "_custom"  # apart from the operators that CANN brings along
_MOST = 100  # characters of a task's name: file names have 255, kernels' names 200
_STARTS = re.compile(r"(?<=[^A-Z_])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def entry_name(op_type: str) -> str:
    """`MaxPooling2dCustom` -> `max_pooling2d_custom`: a capital starts a word, a digit does not.

    Of capitals in a row the last starts a word, where a small letter follows: `NLLLoss` is
    `nll_loss`, `MVNV2` is `mvnv2`.
    """
    return _STARTS.sub("_", op_type).lower()


def operator_type(name: str) -> str:
    """`max_pooling_2d_custom` -> `MaxPooling2dCustom`: the type of an operator of that name.

    Letters and digits of ASCII, the first one a capital, whatever the name. Words are joined where
    CANN's tools do not agree on the way back: `conv2_d` is `Conv2d`, `a_b` is `Ab`.
    """
    words: list[str] = []
    for word in re.findall(r"[0-9a-z]+", name.lower()):
        if not words and word[0].isdigit():
            words.append("op")
        if words and (word[0].isdigit() or _blurs(words[-1], word)):
            words[-1] += word
        else:
            words.append(word)
    return "".join(word.capitalize() for word in words) or "Op"


def _blurs(before: str, word: str) -> bool:
    """One capital behind another, or behind a digit, and no small letter after it."""
    alone = len(word) == 1 or word[1].isdigit()
    return alone and (len(before) == 1 or before[-1].isdigit())


def operator_name(task: str) -> str:
    """The name of the operator for a task: `max_pooling_2d` -> `max_pooling2d_custom`."""
    return entry_name(operator_type(task[:_MOST] + _SUFFIX))
