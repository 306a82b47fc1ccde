"""`Schedule`: how a program is laid out, as a value: printed, searched, kept in files, replayed.

A field is a decision. What is not given is left to the writer, which says what it decided, and what
else it could have (decisions.py). No decision changes what a program computes.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.errors import Place, PlanError
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph


class Structure(str, Enum):
    """What a program is made of."""

    SORT = "sort"
    MATRIX_PRODUCT = "matrix product"  # blocks of the result on cube cores
    PRODUCT_BESIDE = "product and what is behind it"  # cube and vector cores side by side
    ATTENTION = "attention"  # the same
    INDEX_MAPS = "index maps"  # tiles of the output; inputs are read where their maps say
    SHORT_AXES = "short axes"  # many short rows, or small matrices, stay on chip
    LOOPS = "loops"  # over axes, with reductions in passes


class Lines(str, Enum):
    """How cores share the lines of a pass: the indices that no reduction or scan runs along."""

    DEALT = "dealt"  # whole lines to each core
    CHUNKED = "chunked"  # split reductions: a line is cut, and joined after a barrier
    BY_SIZES = "by sizes"  # dealt or chunked: a test on the host
    TOGETHER = "together"  # all cores work on one line after the other


Count = Annotated[int, Field(gt=0)]


class Schedule(BaseModel):
    """The decisions that are made for the writer; the others are its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    structure: Structure | None = None
    lines: tuple[Lines, ...] = ()  # of each pass that could share its lines in several ways
    inner: Count | None = None  # most elements of the axes inside the one that is cut
    tile: Count | None = None  # elements
    block: tuple[Count, Count] | None = None  # rows and columns of a product that a core computes
    copies: tuple[tuple[str, int], ...] = ()  # of buffers by name; two: double buffering
    cores: Count | None = None  # at most
    kernels: tuple[Schedule, ...] = ()  # of each kernel, where there are several

    def __str__(self) -> str:
        words = [self.structure.value] if self.structure else []
        words += ["lines " + ", ".join(item.value for item in self.lines)] if self.lines else []
        words += [f"at most {self.inner} elements of inner axes"] if self.inner else []
        words += [f"tile {self.tile}"] if self.tile else []
        words += ["blocks of {} x {}".format(*self.block)] if self.block else []
        words += [", ".join(f"{n} of {name}" for name, n in self.copies)] if self.copies else []
        words += [f"at most {self.cores} cores"] if self.cores else []
        words += [f"kernel {i}: {item}" for i, item in enumerate(self.kernels, 1)]
        return "; ".join(words) or "as written"

    def given(self) -> tuple[str, ...]:
        """Names of the decisions that are made."""
        return tuple(name for name in type(self).model_fields if getattr(self, name))

    def changed(self, name: str, value: object) -> Schedule:
        """With another value of one decision."""
        return self.model_copy(update={name: value})


class SavedSchedule(BaseModel):
    """A schedule in a file, with what it was made for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    graph: str  # digest
    chip: str
    schedule: Schedule


def save(schedule: Schedule, graph: Graph, chip: Chip) -> dict[str, object]:
    """As JSON."""
    saved = SavedSchedule(graph=digest(graph), chip=chip.name, schedule=schedule)
    return saved.model_dump(mode="json", exclude_defaults=True)


def load(text: str, name: str = "") -> SavedSchedule:
    """From JSON: what `save` made, or a result.json that has it. Raises plan-schedule-file.

    `name`: of the file that holds the text.
    """
    try:
        found = _Result.model_validate_json(text)
        if found.provenance is not None:
            return found.provenance.schedule
        return SavedSchedule.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(item) for item in first["loc"]) or "the file"
        message = f"{where}: {first['msg']}"
        raise PlanError("plan-schedule-file", message, Place(name)) from error


def check_task(saved: SavedSchedule, graph: Graph, chip: Chip) -> Schedule:
    """The schedule, if it is one for this graph and chip. Raises plan-schedule-task."""
    if saved.chip != chip.name:
        raise PlanError("plan-schedule-task", f"it is for {saved.chip}, not for {chip.name}")
    if saved.graph != digest(graph):
        raise PlanError(
            "plan-schedule-task", "it was made for a module with other operations or shapes",
            seen=f"graph {digest(graph)}, the schedule's is {saved.graph[:64]}",
        )  # fmt: skip
    return saved.schedule


def digest(graph: Graph) -> str:
    """Of the operations and shapes, without their lines in a source file and without values."""
    inner = {"__all__": {"source"}}
    text = graph.model_dump_json(exclude={"nodes": inner, "eager": inner, "constants": True})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Provenance(BaseModel):
    schedule: SavedSchedule


class _Result(BaseModel):
    provenance: _Provenance | None = None
