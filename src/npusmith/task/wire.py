"""What sandboxed children leave on disk: a manifest, and raw little-endian tensors beside it.

The child writes these records, the parent validates them; a task that forges them lies only about
itself. A nested value is a tree of task/isolated/values.py, whose tensors are such files. Nothing
here is ever unpickled.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from npusmith.task.graph import Graph
from npusmith.task.isolated.arrays import Tree, numpy_type

MANIFEST = "manifest.json"
GRAPH = "graph.json"  # left as soon as it is known, while references are still computed
ERROR = "error.json"
EVAL_MODE = "eval mode"  # how a note begins that the model gives other values in training
STAGE = "stage.txt"  # what the child was doing last, for the message of a timeout
MANIFEST_BYTES = 32 << 20
FILE_NAME = r"^[a-z0-9_]{1,64}\.bin$"

Stored = Literal[
    "float64", "float32", "float16", "bfloat16", "bool",
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip
# more: edge values of suites; drawn: the first inputs again with other parameters; case: of a table
Kind = Literal["random", "group", "case", "edge", "more", "drawn", "shape", "rank"]
OURS = ("more", "drawn")  # kinds that no suite has: its rule says nothing of them

RAISES = "the reference raises"  # how Trial.skipped begins where PyTorch does not take the inputs
BRANCH = "branch"  # how Trial.name begins at shapes that take another branch of a kernel


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class TensorFile(Record):
    """One tensor on disk, contiguous in logical order; bfloat16 as its 16 bits, bool as a byte."""

    file: str = Field(pattern=FILE_NAME)
    shape: tuple[int, ...]
    dtype: Stored

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return numpy_type(self.dtype)

    @property
    def bytes(self) -> int:
        count = self.numpy.itemsize
        for dim in self.shape:
            count *= dim
        return count


class ValueFiles(Record):
    """A nested value on disk: its tree, and in its order the files of the tensors."""

    tree: Tree = {"list": []}
    tensors: tuple[TensorFile, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.tensors)


class TrialRecord(Record):
    """One set of inputs with what the model makes of it.

    inputs: one per tensor argument of forward; where a graph is captured, an unused one of a type
    that the chip does not have as its bytes. goldens: the outputs in float64 (integer and bool
    outputs: the reference again). A trial whose reference raises is skipped and has no tensors; one
    that the captured graph does not describe is skipped, not required, and has them.

    call, result: how inputs and references are nested; none: as the manifest says, and a plain
    list. init: what the model of this trial alone is built with.
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
    heavy: bool = False  # none, since they would have taken long
    case: int = -1  # of a task with a table of cases: the row
    init: ValueFiles | None = None
    call: Tree | None = None
    result: Tree | None = None
    alias: tuple[int, ...] = ()  # numbers of the outputs that are inputs, as they came
    writes: bool = False  # the model changes its inputs


class FreeAxes(Record):
    """Axes (tensor, axis from the left) that change together, to multiples of `step`."""

    size: int
    axes: tuple[tuple[int, int], ...]
    step: int = 1


class Manifest(Record):
    """Everything about a prepared task except the numbers themselves.

    graph: none where the model was called as a suite calls it. init: what get_init_inputs() gives;
    random_state: torch's behind it, where it drew anything. call: the tree of forward's arguments,
    whose tensors are the inputs of each trial.
    """

    @property
    def files(self) -> tuple[TensorFile, ...]:
        """Every tensor on disk."""
        drawn = [item for draw in self.draws for item in draw.values()]
        state = () if self.random_state is None else (self.random_state,)
        sets = (*self.trials, *self.ranks)
        rows = [
            (*row.inputs, *row.references, *row.goldens, *row.bounds)
            + (() if row.init is None else row.init.tensors)
            for row in sets
        ]
        held = (*self.parameters.values(), *drawn, *self.init.tensors, *state)
        return (*held, *(item for row in rows for item in row))

    version: Literal[1] = 1
    graph: Graph | None = None
    mode: Literal["eval", "training"] = "eval"
    model_seed: int
    trials: tuple[TrialRecord, ...]
    ranks: tuple[TrialRecord, ...] = ()  # inputs of another rank: a kernel may refuse them
    free: tuple[FreeAxes, ...] = ()  # what other sizes may be asked for, where that was tried
    arguments: int = 0  # tensor arguments of forward
    parameters: dict[str, TensorFile]  # by GraphInput.target, or attribute path
    draws: tuple[dict[str, TensorFile], ...] = ()  # draw 1, 2, ...: what differs from these
    idle: tuple[str, ...] = ()  # inputs and parameters whose change never changes an output
    init: ValueFiles = ValueFiles()
    random_state: TensorFile | None = None
    call: Tree = {"list": []}
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class Calling(Record):
    """How a suite calls its models, and that no graph is captured of them."""

    training: bool  # in this mode, unless its outputs then differ from call to call
    most_bytes: int = 0  # of the inputs of a case; larger ones are skipped
    more: bool = False  # values that kernels get wrong, however large the inputs are
    bounded: tuple[str, ...] = ()  # sets that get bounds however long that takes


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
    value_elements: int  # ... and of one value that a model has on the way
    given: tuple[tuple[tuple[int, ...], ...], ...] = ()  # shapes to try, and nothing else
    intermediates: tuple[str, ...] = ()  # nodes of the graph that count as outputs, too
    bounds: bool = True  # all sets get error bounds but those for which they take long
    bounded: tuple[str, ...] = ()  # sets that get bounds however long that takes
    longer: bool = False  # inputs with longer axes of 1, where the model takes them
    training: bool = False  # capture the model in training mode; only outline.py does
    calling: Calling | None = None


class Failure(Record):
    """A TaskError on its way from the child to the parent."""

    code: str
    message: str
    line: int = 0
    function: str = ""
    seen: str = ""
    hint: str = ""
