"""What the sandboxed child leaves on disk: a manifest, and raw little-endian tensors beside it.

The child writes these records, the parent validates them; a task that forges them lies only about
itself. Nothing here is ever unpickled.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from npusmith.ir.dtypes import DType
from npusmith.task.graph import Graph

MANIFEST = "manifest.json"
ERROR = "error.json"
STAGE = "stage.txt"  # what the child was doing last, for the message of a timeout
MANIFEST_BYTES = 32 << 20
FILE_NAME = r"^[a-z0-9_]{1,64}\.bin$"

Stored = Literal[
    "float64", "float32", "float16", "bfloat16", "bool",
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
]  # fmt: skip
Kind = Literal["random", "group", "edge", "shape", "rank"]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class TensorFile(Record):
    """One tensor on disk, contiguous in logical order; bfloat16 as its 16 bits, bool as a byte."""

    file: str = Field(pattern=FILE_NAME)
    shape: tuple[int, ...]
    dtype: Stored

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype(np.float64) if self.dtype == "float64" else DType(self.dtype).numpy

    @property
    def bytes(self) -> int:
        count = self.numpy.itemsize
        for dim in self.shape:
            count *= dim
        return count


class TrialRecord(Record):
    """One set of inputs with what the model makes of it.

    inputs: one per tensor argument of forward; an unused one of a type that the chip does not have
    as its bytes. goldens: the outputs in float64 (integer and bool outputs: the reference again). A
    trial whose reference raises is skipped and has no tensors; one that the captured graph does not
    describe is skipped, not required, and has them.
    """

    name: str
    kind: Kind
    seed: int
    required: bool = True
    skipped: str = ""
    notes: tuple[str, ...] = ()
    draw: int = 0  # which values the parameters have; 0: the model's own
    inputs: tuple[TensorFile, ...] = ()
    references: tuple[TensorFile, ...] = ()
    goldens: tuple[TensorFile, ...] = ()
    bounds: tuple[TensorFile, ...] = ()  # per output how far right answers lie apart, or none


class Arguments(Record):
    """Nested arguments as data: a tree of task.isolated.values, whose tensors these files are."""

    tree: dict[str, Any] = {"list": []}
    tensors: tuple[TensorFile, ...] = ()


class FreeAxes(Record):
    """Axes (tensor, axis from the left) that change together, to multiples of `step`."""

    size: int
    axes: tuple[tuple[int, int], ...]
    step: int = 1


class Manifest(Record):
    """Everything about a prepared task except the numbers themselves.

    init: what get_init_inputs() gives; random_state: torch's behind it, where it drew anything.
    call: the tree of forward's arguments, whose tensors are the inputs of each trial.
    """

    @property
    def files(self) -> tuple[TensorFile, ...]:
        """Every tensor on disk."""
        drawn = [item for draw in self.draws for item in draw.values()]
        state = () if self.random_state is None else (self.random_state,)
        sets = (*self.trials, *self.ranks)
        rows = [(*row.inputs, *row.references, *row.goldens, *row.bounds) for row in sets]
        held = (*self.parameters.values(), *drawn, *self.init.tensors, *state)
        return (*held, *(item for row in rows for item in row))

    version: Literal[1] = 1
    graph: Graph
    model_seed: int
    trials: tuple[TrialRecord, ...]
    ranks: tuple[TrialRecord, ...] = ()  # inputs of another rank: a kernel may refuse them
    free: tuple[FreeAxes, ...] = ()  # what other sizes may be asked for, where that was tried
    arguments: int  # tensor arguments of forward
    parameters: dict[str, TensorFile]  # by GraphInput.target
    draws: tuple[dict[str, TensorFile], ...] = ()  # draw 1, 2, ...: what differs from these
    idle: tuple[str, ...] = ()  # inputs and parameters whose change never changes an output
    init: Arguments = Arguments()
    random_state: TensorFile | None = None
    call: dict[str, Any] = {"list": []}
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class Orders(Record):
    """What the parent asks of the child, on its standard input."""

    path: str
    text: str
    folder: str
    has_inputs: bool
    has_groups: bool
    model_seed: int
    seeds: tuple[int, ...]
    edges: bool
    shapes: bool
    shape_elements: int  # most input elements of one shape set
    given: tuple[tuple[tuple[int, ...], ...], ...] = ()  # shapes to try, and nothing else
    training: bool = False  # capture the model in training mode; only outline.py does


class Failure(Record):
    """A TaskError on its way from the child to the parent."""

    code: str
    message: str
    line: int = 0
    function: str = ""
    seen: str = ""
    hint: str = ""
