"""An operator that is given inputs of another rank refuses them, or is right.

Both ends well. What must not be is an answer that looks like one: a host function that reads the
first two dimensions takes 4 x 8 x 1024 for 4 x 8, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from npusmith.errors import Level
from npusmith.task.verdict import Trial
from npusmith.twin.finding import Finding

TILING_FAILED = "tiling-failed"
_SHAPE = "infer-shape"  # a warning: the shapes of the outputs are not those of the run


def find_answered(trials: Sequence[Trial], known: Collection[str]) -> list[Finding]:
    """What went wrong in the runs on other ranks; `known`: codes of findings on ordinary sets."""
    return [
        Finding(
            code="rank-answered",
            message=f"{trial.name}: {why}",
            seen="inputs of " + ", ".join("x".join(map(str, shape)) for shape in trial.shapes),
        )
        for trial in trials
        if (why := _complaint(trial, known))
    ]


def _complaint(trial: Trial, known: Collection[str]) -> str:
    """What is wrong with how it ended; empty for a refusal and for right values."""
    codes = {item.code for item in trial.findings}
    if TILING_FAILED in codes:
        return ""
    broken = [item for item in trial.findings if item.level is Level.ERROR]
    if broken:
        return f"not refused, and then {broken[0].code}: {broken[0].message}"
    if not trial.passed:
        return f"not refused, and the answer is wrong: {trial.message}"
    odd = next((item for item in trial.findings if item.code == _SHAPE), None)
    if odd is not None and _SHAPE not in known and "failed" not in odd.message:
        return f"not refused, and the shape is wrong: {odd.message}, {odd.seen}"
    return ""
