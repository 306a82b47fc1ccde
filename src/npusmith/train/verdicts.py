"""npusmith's own reward, in the form that policy training takes: `verdict`, `verdict.feedback`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npusmith.train.levels import Level
from npusmith.train.reward import Details, reward


class Verdict:
    """Called as TRL calls a reward function, with a column `task`: paths or texts of task files."""

    __name__ = "verdict"  # of the figures in a log

    def __call__(
        self, prompts: Sequence[str], completions: Sequence[str], task: Sequence[str], **_: Any
    ) -> list[float]:
        return [value for value, _ in reward.batch(task, completions)]

    def feedback(
        self, prompts: Sequence[str], completions: Sequence[str], task: Sequence[str], **_: Any
    ) -> list[tuple[float, str]]:
        """The same, with what is wrong; "" for what is right."""
        return [(value, said(details)) for value, details in reward.batch(task, completions)]


def said(details: Details) -> str:
    """What a model is told of an answer: codes, the first finding, and what share is right."""
    if details.level == Level.RIGHT.name.lower():
        return ""
    codes = ", ".join(details.codes[:3])
    share = f"{details.share:.0%} of the sets are right" if details.sets else ""
    words = (f"error[{codes}]" if codes else "error", details.reason, share)
    return ": ".join(word for word in words if word) + "\nWrite the whole program again.\n"


verdict = Verdict()
