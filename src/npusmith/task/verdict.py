"""The judge's answer as data: what `result.json` and `--json` hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith.errors import Level
from npusmith.target.apis import Known
from npusmith.task.wire import BRANCH, RAISES
from npusmith.twin.finding import Finding, Printed


class Rung(str, Enum):
    """How far a candidate got. Whoever prints "correct" prints the rung."""

    NONE = "none"
    PARSED = "parsed"
    LEGAL = "legal"
    COMPILED = "compiled"
    RAN = "ran on the twin"
    VALUES = "values right on the twin"
    RACE_FREE = "race-free on the twin"  # and no hazard, race or cache fault was found
    TIMED = "timed on the twin"
    DEVICE = "right on a device"


# Findings that say that some order of execution gives other values.
UNORDERED = frozenset(("hazard", "hazard-barrier", "gm-race", "gm-line", "gm-cache"))


def right_rung(codes: Iterable[str]) -> Rung:
    """The rung of a kernel whose values were right, by the codes of its findings."""
    return Rung.VALUES if UNORDERED & set(codes) else Rung.RACE_FREE


# How Trial.skipped begins where another set had decided the verdict, and where the operator refuses
# sizes that it says it does not serve.
NOT_RUN, REFUSED = "not run", "refused"

_OF_THE_JUDGE = ("edge", "shape", "rank", "more", "drawn")  # kinds that no task and no suite names


class Trial(BaseModel):
    """One set of inputs: its figures are those of the worst output.

    `max_abs_error` and `max_rel_error` are against the reference that the tolerance names.
    """

    model_config = ConfigDict(extra="forbid")

    name: str  # "random 0", "zeros", "shape 1 ..."
    kind: str = ""  # as in wire.Kind
    seed: int = 0
    case: str = ""  # of a task with several
    shapes: list[list[int]] = []
    draw: int = 0  # of the parameters' values; 0: the model's own
    skipped: str = ""  # why this set was not judged, e.g. the reference raises
    compiled: bool = True  # as far as this set asked for
    ended: bool = False  # the candidate left outputs
    passed: bool = False  # by the rule in force: a suite's, or the tolerance
    strict: bool = False  # and in form
    precise: bool = False  # and by the tolerance, where a suite's rule is in force
    max_abs_error: float | None = None
    mean_abs_error: float | None = None
    max_rel_error: float | None = None
    mean_rel_error: float | None = None
    mismatched: int = 0  # elements outside the tolerance
    elements: int = 0
    message: str = ""  # the first mismatch in words
    # of the first wrong output: an element, its neighbours, the pattern of wrong elements
    wrong: list[str] = []
    likely: str = ""  # what such a pattern usually comes of
    findings: list[Finding] = []
    seconds: float = 0.0

    @property
    def own(self) -> bool:
        """Whether the values are the task's own, or its suite's."""
        return self.kind not in _OF_THE_JUDGE

    @property
    def clean(self) -> bool:
        """Whether it was built, and nothing of level error was found."""
        return self.compiled and not any(item.level is Level.ERROR for item in self.findings)

    @property
    def result(self) -> str:
        """In a word, for tables."""
        if self.skipped:
            known = (word for word in (NOT_RUN, REFUSED) if self.skipped.startswith(word))
            return next(known, "skipped")
        return "pass" if self.passed else "FAIL"


def unjudged(trials: Sequence[Trial]) -> str:
    """That every planned set of other shapes was skipped; empty where one was judged."""
    shaped = [item for item in trials if item.kind == "shape"]
    planned = [item for item in shaped if not item.name.startswith(BRANCH)]
    if not planned or any(item.result != "skipped" for item in planned):
        return ""
    raised = all(item.skipped.startswith(RAISES) for item in planned)
    why = f"the reference refuses all {len(planned)}" if raised else f"all {len(planned)} skipped"
    what = "no planned set of other shapes" if len(shaped) > len(planned) else "no other shape"
    return f"{what} was judged: {why}"


class Doubt(BaseModel):
    """An API that the kernel called and whose behaviour on the chip is not documented."""

    model_config = ConfigDict(extra="forbid")

    api: str
    known: Known
    note: str = ""


class Intermediate(BaseModel):
    """What one kernel of several stores for later ones, against PyTorch's value there."""

    model_config = ConfigDict(extra="forbid")

    value: str  # the node of the graph
    kernel: int  # its number, from 1
    sets: int = 0  # of inputs, of which the row is the worst
    shape: list[int] = []
    dtype: str = ""
    passed: bool = False
    max_abs_error: float | None = None
    mismatched: int = 0  # elements outside the tolerance
    elements: int = 0
    message: str = ""  # the first mismatch in words, or why nothing was compared


class OnDevice(BaseModel):
    """What the built operator did on an NPU: same sets of inputs, same comparison."""

    model_config = ConfigDict(extra="forbid")

    device: str  # as its driver calls it
    toolkit: str
    route: str  # how the package was built: asc or msopgen
    trials: list[Trial]
    right: bool
    task_us: list[float] = []  # of the profiler, each call of the first set that counts
    median_us: float | None = None
    cores: int = 0
    pipes: dict[str, float] = {}  # medians of the profiler's means over the cores, us
    notes: list[str] = []


class Verdict(BaseModel):
    """What one candidate project did on one task."""

    model_config = ConfigDict(extra="forbid")

    verdict: str  # "pass", "fail", "error", or "ran": nothing was compared
    rung: Rung
    compiled: bool
    correct: bool
    task: str
    tolerance: str
    chip: str
    trials: list[Trial] = []
    max_abs_error: float | None = None
    task_us: float | None = None  # with launch and tail; an estimate of the timing model
    kernel_us: float | None = None  # the same without them
    device: OnDevice | None = None  # `npusmith device` alone
    findings: list[Finding] = []
    prints: list[Printed] = []  # what the kernel printed, on the first set of inputs
    doubts: list[Doubt] = []  # what the twin had to infer to judge this kernel
    # functions of the kernel that no set of inputs made run: nothing is known of them
    unreached: list[str] = []
    weak_task: list[str] = []  # do-nothing kernels that would pass this task's check
    intermediates: list[Intermediate] = []  # what passes between several kernels
    error: dict[str, object] | None = None
    project: str = ""
    program: str = ""  # path of the tile program, when there is one
    provenance: dict[str, Any] = {}  # versions, seeds, chip description, compiler, sandbox
    seconds: dict[str, float] = {}  # wall time by step
