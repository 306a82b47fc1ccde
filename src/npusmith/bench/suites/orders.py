"""What the watched processes of a unit are asked, and what they reply; all of it is data."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from npusmith.bench.model import Span
from npusmith.errors import NpusmithError
from npusmith.task.wire import Record, ValueFiles
from npusmith.twin.finding import Finding

_MOST_LINES = 12


class Told(Record):
    """An error on its way out; `lines`: of a compile, what the compiler complained about."""

    code: str
    message: str
    lines: tuple[str, ...] = ()


class Orders(Record):
    """Which candidate, on which references."""

    folder: str = ""  # for all that is written; the watcher fills it in
    place: str  # of the candidate's files
    given: str  # of the references
    chip: str
    seconds: float  # of one call of an operator
    submission: str = ""  # file of a candidate with a class
    whole_seconds: float = 0.0  # of all calls of a class
    memory_mb: float = 0.0
    disk_bytes: int = 0
    given_class: bool = False  # the suite's own class calls the operator
    sample: int = 0  # steps of a core that are recorded for the timing model
    kind: str = ""  # of the candidate's process, when it is timed
    bytes: int = 0  # of all tensors at their true shapes ...
    most_bytes: int = 0  # ... and how many of them the cores may touch


class Answered(Record):
    """What a candidate did on one set of inputs."""

    findings: tuple[Finding, ...] = ()
    apis: tuple[str, ...] = ()
    launches: int = 0
    alias: tuple[int, ...] = ()  # numbers of the outputs that lie in an input's memory
    writes: bool = False
    unsteady: bool = False  # two runs gave different bits
    outputs: ValueFiles | None = None
    flat: bool = False  # outputs of an operator, which are not nested
    error: Told | None = None


class Reply(BaseModel):
    """What became of a candidate on all sets of inputs; it grows as the work goes on."""

    compiled: bool = False
    compiler: str = ""
    cheats: list[Finding] = []
    answers: list[Answered] = []
    seconds: dict[str, float] = {}
    error: Told | None = None


class Timed(BaseModel):
    """The estimated time of a candidate."""

    time_us: float | None = None
    note: str = ""
    spans: list[Span] = []
    error: Told | None = None


class Holed(BaseModel):
    """What became of a candidate at its true shapes; its pieces lie beside the reply."""

    completed: bool = False
    cores: str = ""
    findings: list[Finding] = []
    left: str = ""  # why it was not run
    error: Told | None = None


def tell(error: NpusmithError) -> Told:
    """An error as data."""
    record = error.record()
    rows = record.get("errors")
    lines = [
        f"{Path(str(row['file'])).name}:{row['line']}: {row['message']}"[:300]
        for row in (rows if isinstance(rows, list) else [])[:_MOST_LINES]
    ]
    lines = lines or [line for line in error.seen.splitlines() if line][:_MOST_LINES]
    return Told(code=error.code, message=error.message, lines=tuple(lines))
