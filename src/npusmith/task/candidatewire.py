"""What a candidate's process is told, and what it leaves on disk."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

RESULT = "result.json"
REPORT = "report.json"  # of launches inside the process
CALLS = "calls.jsonl"  # of operators that ran outside of it
LOGS = "logs"  # of both, for the timing model
INSIDE = "direct"  # in there: of the first launch inside the process
RESULT_BYTES = 1 << 20


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Tensor(Record):
    """Raw elements in a file, contiguous in logical order."""

    file: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class Orders(Record):
    """On the child's standard input."""

    folder: str
    modules: str
    libraries: list[str]
    model: str
    entry: str
    task: str
    task_text: str
    has_inputs: bool
    seed: int
    seconds: float
    trials: list[list[Tensor]]
    draws: list[dict[str, Tensor]] = []  # values of parameters and buffers, by attribute path
    draw: list[int] = []  # of each set of inputs: 0 for the class's own, else the place in `draws`


class Error(Record):
    """An exception on its way out."""

    code: str
    message: str
    file: str = ""
    line: int = 0
    seen: str = ""


class Result(Record):
    """Outputs of each set of inputs that came to its end, in order."""

    started: int = -1  # the set that was begun last
    trials: list[list[Tensor]] = []
    fixed: list[str] = []  # drawn parameters that the class does not have
    calls: list[int] = []  # lines of CALLS after each of them
    error: Error | None = None
