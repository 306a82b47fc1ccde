"""The hardware-aligned axis: vectors of what limits a kernel, and of what was said about it.

Text becomes hashed counts of three-letter pieces (no model, no download, the same on every
machine). What limits the kernel is its bottleneck vector, or what its text shows where it was not
timed. Each part has length 1, so that a dot product adds two cosines.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from npusmith.knowledge.traits import SIGNS
from npusmith.lang.words import OPERATIONS
from npusmith.timing.bottleneck import NAMES

Array = np.ndarray[Any, Any]

_TEXT = 64
_LOGS = 10.0  # log_... entries reach about this
_CENTRE = 0.15  # shares are rarely larger: what stands out is above
SIZE = _TEXT + len(NAMES) + len(SIGNS)
_SHARES = (1.0, 1.0, 0.5)  # weights of text, bottleneck and static traits
_QUOTED = re.compile(r"'[^']*'")
_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_PIECE = re.compile(r"[a-z]+|\d+")
# Operations are named without quotes too ("muls takes 4 operands, not 3").
_PLAIN = frozenset(name for name in OPERATIONS if len(name) > 2) - {"round", "not"}
_LITTLE = " the a an of is in to and or it no not at with for on this that "


def embed(texts: Iterable[str], bottleneck: Sequence[float], traits: Sequence[float]) -> Array:
    """One vector of SIZE numbers; parts that are not known are zeros."""
    parts = (_text_part(texts), _limit_part(bottleneck), _trait_part(traits))
    scaled = [weight * _unit(part) for weight, part in zip(_SHARES, parts, strict=True)]
    return np.concatenate(scaled).astype(np.float32)


def plain_words(text: str) -> list[str]:
    """Words of a message: lower case, camel case split, without the little ones."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    return [word for word in _PIECE.findall(spaced) if f" {word} " not in _LITTLE]


def message_words(messages: Iterable[str]) -> list[str]:
    """What messages are searched by: each with its names and numbers left out as one word, and
    the names by themselves."""
    found: list[str] = []
    for text in messages:
        names = [name for part in _QUOTED.findall(text) for name in _NAME.findall(part)]
        plain = _NAME.sub(lambda word: " " if word.group() in _PLAIN else word.group(), text)
        names += [word for word in _NAME.findall(text) if word in _PLAIN and word not in names]
        frame = " ".join(_PIECE.findall(_QUOTED.sub(" ", plain).lower())[:8])
        found += [f"said {re.sub(r'[0-9]+', '#', frame)}", *dict.fromkeys(names)]
    return found


def _text_part(texts: Iterable[str]) -> Array:
    part = np.zeros(_TEXT)
    for text in texts:
        for word in plain_words(text):
            padded = f"<{word}>"
            for at in range(len(padded) - 2):
                code = zlib.crc32(padded[at : at + 3].encode())
                part[code % _TEXT] += 1.0 if code & 0x10000 else -1.0
    return np.sign(part) * np.sqrt(np.abs(part))


def _limit_part(values: Sequence[float]) -> Array:
    if not values or len(values) != len(NAMES):
        return np.zeros(len(NAMES))
    return np.array(
        [
            value / _LOGS if name.startswith("log_") else min(max(value, 0.0), 2.0) - _CENTRE
            for name, value in zip(NAMES, values, strict=True)
        ]
    )


def _trait_part(values: Sequence[float]) -> Array:
    return np.array(values) if len(values) == len(SIGNS) else np.zeros(len(SIGNS))


def _unit(part: Array) -> Array:
    length = math.sqrt(float(part @ part))
    return part / length if length else part
