"""What the watched processes of a unit are asked, and what they reply; all of it is data.

The one that judges (judged.py) replies with a Verdict.
"""

from __future__ import annotations

from pydantic import BaseModel

from npusmith.bench.model import Span
from npusmith.errors import NpusmithError
from npusmith.task.rules import Named
from npusmith.task.wire import Record
from npusmith.twin.finding import Finding


class Orders(Record):
    """Which candidate, on which references."""

    folder: str = ""  # for all that is written; the watcher fills it in
    place: str  # of the candidate's files
    given: str  # folder of the references
    path: str = ""  # of the task ...
    text: str = ""  # ... and what is in it
    rule: Named | None = None  # of the suite; none: a captured task, at other shapes as well
    ours: str = "strict"  # the profile of values that the suite does not have
    stop: bool = False  # at the first of the suite's sets that is wrong
    chip: str
    seconds: float  # of one call of an operator
    submission: str = ""  # file of a candidate with a class
    whole_seconds: float = 0.0  # of all calls of a class
    memory_mb: float = 0.0
    disk_bytes: int = 0
    given_class: bool = False  # the suite's own class calls the operator
    sample: int = 0  # steps of a core that are recorded for the timing model
    bytes: int = 0  # of all tensors at their true shapes ...
    most_bytes: int = 0  # ... and how many of them the cores may touch


class Timed(BaseModel):
    """The estimated time of a candidate."""

    time_us: float | None = None
    cores: int = 0  # that did any work, in the launch where most did
    read_bytes: int = 0  # from GM, by all launches; 0: not known
    written_bytes: int = 0  # to GM
    note: str = ""
    spans: list[Span] = []
    error: str = ""  # code and words


class Holed(BaseModel):
    """What became of a candidate at its true shapes; its pieces lie beside the reply."""

    completed: bool = False
    cores: str = ""
    findings: list[Finding] = []
    left: str = ""  # why it was not run
    error: str = ""  # code and words


def tell(error: NpusmithError) -> str:
    """An error as data."""
    return f"{error.code}: {error.message}"
