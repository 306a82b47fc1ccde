"""What the search over schedules tried, beside what the profile advises.

`npusmith generate` leaves the trials of its search in result.json; a rule of advice that asks for
what a decision of the schedule settles says how the other values of that decision did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

_NAMED = 4  # trials in one line
_MOST_BYTES = 16 << 20


class Trial(BaseModel):
    """One schedule that was timed, as result.json keeps it; `us` is None where it was refused."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    us: float | None
    kernel: int = 0
    decisions: dict[str, Any]


def read_trials(project: Path) -> tuple[Trial, ...] | None:
    """Of a folder that generate left; None where no search is told of."""
    path = project / "result.json"
    try:
        if not project.is_dir() or path.stat().st_size > _MOST_BYTES:
            return None
        rows = json.loads(path.read_text(encoding="utf-8"))["provenance"]["search"]
        return tuple(Trial.model_validate(row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None


def tried(decisions: Sequence[str], trials: Sequence[Trial]) -> str:
    """How the search did with other values of these decisions, in words.

    decisions: fields of plan.schedule.Schedule that a rule of advice is about.
    """
    if not decisions:
        return f"the search ({len(trials)} schedules) decides nothing of this"
    found = list(_others(decisions, trials))
    if not found:
        return f"the search ({len(trials)} schedules) tried no other {' or '.join(decisions)}"
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"the search tried {', '.join(found[:_NAMED])}{more}, and kept the quickest"


def _others(decisions: Sequence[str], trials: Sequence[Trial]) -> Iterator[str]:
    """Trials that differ from the best one of their kernel in one of these decisions."""
    for kernel in sorted({trial.kernel for trial in trials}):
        rows = [trial for trial in trials if trial.kernel == kernel]
        timed = [trial for trial in rows if trial.us is not None]
        if not timed:
            continue
        best = min(timed, key=lambda trial: trial.us or 0.0)
        for row in rows:
            differs = [
                name for name in decisions if row.decisions.get(name) != best.decisions.get(name)
            ]
            if differs:
                values = ", ".join(_value(name, row.decisions.get(name)) for name in differs)
                yield f"{values} ({'refused' if row.us is None else f'{row.us:.2f} us'})"


def _value(name: str, value: object) -> str:
    if value is None:
        return f"{name} as the writer takes it"
    if isinstance(value, list):
        value = " x ".join(str(item) for item in value)
    return f"{name} {value}"
