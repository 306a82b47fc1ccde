"""How a candidate is judged, whatever its form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npusmith.task.recording import Recording
from npusmith.task.weighing import Criterion
from npusmith.twin.watch import Watch

_WATCH = Watch()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What the judges of projects, sources, programs and modules are told besides the candidate.

    dynamic: the sets of other shapes count, too. stop: once a set is wrong, those behind it are not
        run.
    step: told at the beginning of each step. seconds: of processor time, for each run.
    watch: what the sanitizer assumes and reports.
    recording: where the first run leaves its log for the timing model.
    criterion: instead of the tolerance alone. jobs: small sets are run so many at a time.
    """

    dynamic: bool = True
    stop: bool = False
    step: Callable[[str, str], None] = lambda name, detail: None
    seconds: float = 60.0
    watch: Watch = _WATCH
    recording: Recording | None = None
    criterion: Criterion | None = None
    jobs: int = 2


PLAIN = JudgeOptions()
