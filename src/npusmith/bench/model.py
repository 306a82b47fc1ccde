"""What suites, writers, the runner and the reports exchange.

A unit of work is one candidate for one item. Its key is a digest of everything that its outcome
depends on, so that a unit is evaluated once, whoever asks for it and how often.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from npusmith.task.graph import Graph
from npusmith.task.verdict import Trial

TRUE_SHAPE = ("right", "wrong", "not run")  # how Record.true_shape begins
FORMATS = ("project", "json", "six", "kernel_only", "full", "program")


class Item(BaseModel):
    """A task of a suite. `name` is unique in its suite, e.g. "activation/relu"."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    name: str
    category: str
    level: str = ""
    dtype: str = ""
    source: str  # of the task, relative to the suite's root
    digest: str  # of the task's files and of the suite's options that its verdict depends on
    skipped: str = ""  # why it cannot be evaluated on this machine


@dataclass(frozen=True, slots=True)
class Entry:
    """A task before anybody has looked inside: its text may come from a file or be made."""

    name: str
    category: str
    level: str
    path: Path  # below the root


class Exposed(BaseModel):
    """An operator of several kernels that also gives what passes between them, for the judge."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: dict[str, str]  # of the project, by relative path
    values: tuple[tuple[str, int], ...]  # nodes of the graph, and the kernel that stores each
    longer: bool = False  # of the graph with longer axes of 1


class Candidate(BaseModel):
    """What a writer proposes: text files in one of the formats that a suite's items accept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["project", "json", "six", "kernel_only", "full", "program"]
    files: dict[str, str]  # by relative path; "json", "six" and "kernel_only" have one
    writer: str
    sample: int = 0
    seed: int = 0
    refusal: str = ""  # code and words; then there are no files
    seconds: float = 0.0  # that the writer took
    tokens: int = 0  # of a model, prompt and answer together
    source: str = ""  # of a candidate that was read from disk: its file, and when that was written
    dynamic: bool = True  # it means to serve other shapes than the task's own
    origin: dict[str, Any] = {}  # what the writer says of how it came to be: notes, model, search
    # microseconds at the item's own shapes where those that are judged are reduced ones, as the
    # writer's compiler estimates them
    own_us: float | None = None
    exposed: Exposed | None = Field(default=None, exclude=True)  # lives as long as the run

    @property
    def digest(self) -> str:
        """Of what is evaluated: the format and the files."""
        return _digest([self.format, sorted(self.files.items()), self.refusal])


class Span(BaseModel):
    """Work of one pipe of one core, for the timeline: begin and end in us."""

    model_config = ConfigDict(extra="forbid")

    core: int
    unit: str  # "V", "MTE2", ...
    begin: float
    end: float
    what: str = ""


class Record(BaseModel):
    """The outcome of one unit. None: not evaluated, and `skipped` or `error` says why.

    Defaults that are made are twice as fast as those that are copied: there are many records.
    """

    model_config = ConfigDict(extra="forbid")

    key: str
    suite: str
    item: str
    category: str
    level: str = ""
    dtype: str = ""
    writer: str
    sample: int
    candidate: str  # digest of the candidate
    trial: int = 0
    compiled: bool | None = None
    official: bool | None = None  # the suite's own rule
    strict: bool | None = None  # that rule, and form of the results, every trial, no cheating
    precise: bool | None = None  # and values by our strict profile (task/tolerance.py)
    clean: bool | None = None  # no finding of level error
    rung: str = ""
    cheating: list[str] = Field(default_factory=list)  # codes of what computes outside the kernel
    weak_task: list[str] = Field(
        default_factory=list
    )  # do-nothing kernels that would pass the item's check
    findings: dict[str, int] = Field(default_factory=dict)  # codes, how often
    error: str = ""
    skipped: str = ""
    time_us: float | None = None  # of the kernel, as estimated on the twin
    eager_us: float | None = None
    eager_low_us: float | None = None  # of its interval
    eager_high_us: float | None = None
    eager_basis: str = ""  # "measured", "model", or both
    eager_rows: int | None = None  # published rows that the estimate rests on
    eager_weak: bool = False  # too few for a headline figure
    roof_us: float | None = None  # the chip's own bound for this work (CANN-bench's hardware time)
    # At the shapes that a reduced item has of its own: the kernel by the compiler's walk of its
    # tile program (plan/estimate.py), eager as above.
    own_us: float | None = None
    own_eager_us: float | None = None
    own_eager_low_us: float | None = None
    own_eager_high_us: float | None = None
    own_eager_weak: bool = False
    time_note: str = ""  # why a right kernel has no time, or that it was extrapolated
    true_shape: str = ""  # of a reduced item, its check there: "right: ...", "wrong", "not run"
    accuracy: float | None = None  # share of the item's cases that pass, where it has several
    seconds: dict[str, float] = Field(default_factory=dict)  # wall time by stage
    # the worst first, at most a dozen; of a task with several cases all of them
    trials: list[Trial] = Field(default_factory=list)
    messages: list[str] = Field(
        default_factory=list
    )  # of the first findings and of the compiler, at most a dozen
    timeline: list[Span] = Field(
        default_factory=list
    )  # at most a few hundred spans of one core; empty: not kept
    provenance: dict[str, str] = Field(default_factory=dict)  # versions, chip, seeds, options


class Brief(BaseModel):
    """What a writer may know of an item: never the hidden inputs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    item: Item
    reference: str  # Python text of the reference module
    description: str = ""  # the suite's own words, e.g. api_desc.md
    prompt: str = ""  # the suite's own prompt, where it has one
    path: Path | None = None  # the task file, for writers that capture it
    graph: Graph | None = None  # of that file, where it has been captured already
    original: Path | None = None  # the task file before its shapes were reduced
    training: bool = False  # the suite calls the model in training mode
    intermediates: bool = False  # the judge wants Candidate.exposed
    operator: str = ""  # the type of the operator, where the suite's binding calls one
    formats: tuple[str, ...] = ("project",)


class Limits(BaseModel):
    """Of one unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = 180
    memory_mb: float = 8192
    input_mb: float = 256  # items with larger inputs are skipped, and said to be
    trials: int = 5
    seed: int = 1024
    chip: str = "910B2"
    timing: bool = False  # right candidates are run once more, and timed
    sample: int = 100_000  # steps of a core that are recorded for that; the rest is extrapolated
    # at the first of the suite's sets that an operator gets wrong; no part of a unit's key
    stop: bool = Field(default=True, exclude=True)


class Suite(Protocol):
    """A benchmark, read from the user's checkout."""

    name: str
    root: Path

    def chosen(self) -> Iterator[Entry]:
        """The tasks that its options select, from the names of files alone.

        Raises run-empty for a name that no task has.
        """

    def items(self) -> Iterator[Item]:
        """Its tasks, one at a time and in a fixed order; broken ones with `skipped` set."""

    def brief(self, item: Item) -> Brief:
        """What a writer gets."""

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        """Compile, run and judge in the sandbox; never raises for what a candidate does."""


@runtime_checkable
class Sourced(Protocol):
    """A writer that reads what others wrote: what it gives may change behind a run's back."""

    def source(self, item: Item, sample: int) -> str:
        """Candidate.source as it would be now; equal ones mean that nothing changed."""


class Writer(Protocol):
    """Proposes kernels. `version` changes whenever the same brief might get another answer."""

    name: str
    version: str

    def write(self, brief: Brief, sample: int, seed: int) -> Candidate:
        """The candidate number `sample`; raises NpusmithError for a brief that it refuses."""


def unit_key(item: Item, candidate: Candidate, trial: int, limits: Limits, judge: str) -> str:
    """`judge`: a digest of npusmith's version and tables."""
    return _digest(
        [item.suite, item.name, item.digest, candidate.digest, candidate.writer,
         candidate.sample, trial, limits.model_dump(mode="json"), judge]
    )  # fmt: skip


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
