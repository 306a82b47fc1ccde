"""A captured graph as data: what a task's `Model.forward` computes, in core ATen operations.

The graph is made in the task's sandboxed child by torch.export and crosses back as JSON. Nothing in
it is executed by the parent; it is validated by these records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from npusmith.ir.dtypes import DType
from npusmith.ir.returned import check
from npusmith.ir.spec import Constant

# Views and constants: they move nothing, and cost nothing to make again.
FREE = frozenset(
    {
        "view", "reshape", "_unsafe_view", "flatten", "unflatten", "alias", "detach", "contiguous",
        "lift_fresh_copy", "lift_fresh", "positive", "expand", "broadcast_to", "expand_as",
        "transpose", "t", "full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like",
        "ones", "ones_like", "unsqueeze", "squeeze", "permute", "arange", "empty",
        "empty_permuted",
    }
)  # fmt: skip

# torch's scan: (states, rows, held) -> the last states, and what every step gives, as rows. Its
# body takes states, one row of each and what is held, and gives new states, and a row of each.
SCAN = "higher_order.scan"

# Of one graph; more would be captured and written for hours, and are no one operator. Networks of a
# hundred layers have a fourth of it.
MOST_OPERATIONS = 4096

CROSSING = "@"  # marks the target of an input that an earlier kernel stores

Literals = int | float | bool | str | None


class TensorSpec(BaseModel):
    """Shape and dtype of one tensor; an empty shape is a 0-dim tensor."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def size(self) -> int:
        count = 1
        for dim in self.shape:
            count *= dim
        return count


class Ref(BaseModel):
    """An argument that is the result of another node (or a graph input)."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    ref: str


Argument = Ref | Literals | tuple["Ref | Literals", ...]
Slot = tuple[int | str, int | None]  # an argument by position or name; its element if it is a list


class Node(BaseModel):
    """One call: `op` is like "aten.add.Tensor"; results of multi-output ops are "aten.getitem"."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    name: str
    op: str
    args: tuple[Argument, ...]
    kwargs: dict[str, Argument] = {}
    shape: tuple[int, ...]
    dtype: DType | None  # None: not a tensor type that the chip has, or a tuple result
    source: str = ""  # where in the user's model, "file.py:12 forward" when known
    body: Graph | None = None  # of a scan: a step
    added: bool = False  # no value of the captured program


def references(node: Node) -> list[str]:
    """Names of values that a node reads."""
    found: list[str] = []
    left: list[Argument] = [*reversed(node.kwargs.values()), *reversed(node.args)]
    while left:
        arg = left.pop()
        if isinstance(arg, Ref):
            found.append(arg.ref)
        elif isinstance(arg, tuple):
            left += reversed(arg)
    return found


def is_free(node: Node) -> bool:
    """Whether the node is a view, or a constant, that costs nothing to make again.

    A view of the same bits as another type is none: it is refused as an operation of its own.
    """
    words = node.op.split(".")
    return words[0] == "aten" and words[1] in FREE and words[2:] != ["dtype"]


def replaced(
    slot: int | str, argument: Argument, new: Callable[[Slot, Ref | Literals], Ref | Literals]
) -> Argument:
    """An argument with each of its parts replaced."""
    if isinstance(argument, tuple):
        return tuple(new((slot, i), item) for i, item in enumerate(argument))
    return new((slot, None), argument)


def crossing_input(name: str, shape: tuple[int, ...], dtype: DType) -> GraphInput:
    """What neither the user gives nor the model holds: an earlier kernel stores it, or it is a
    state or a row of a scan."""
    return GraphInput(name=name, shape=shape, dtype=dtype, kind="constant", target=CROSSING + name)


def names_in(argument: Argument) -> tuple[str, ...]:
    """Of the values in a list."""
    assert isinstance(argument, tuple)
    return tuple(item.ref for item in argument if isinstance(item, Ref))


class SymbolicSize(BaseModel):
    """A number of a node that follows from sizes of inputs (symbolic_sizes.py).

    An integer is `plus` and the product of the classes times `times`, with `inner`, over `over`,
    rounded down (or up), taken `parts` times, negative or not; a float is `factor` times the
    product with `plus`, to the power of `power`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    argument: int | str  # its position or its name
    item: int | None = None  # of a list
    classes: tuple[int, ...]  # of the graph
    times: int = 1
    inner: int = 0
    over: int = 1
    up: bool = False
    parts: int = 1
    negative: bool = False
    plus: int = 0
    factor: float | None = None
    power: float = 1.0

    @property
    def slot(self) -> Slot:
        return self.argument, self.item

    def value(self, product: int) -> int | float:
        """What the number is where its classes have sizes of this product."""
        if self.factor is not None:
            base = product + self.plus
            return float(self.factor * base**self.power) if base > 0 else math.nan
        scaled = product * self.times + self.inner
        part = (-(-scaled // self.over) if self.up else scaled // self.over) * self.parts
        return (-part if self.negative else part) + self.plus


def with_references(node: Node, new: Mapping[str, str]) -> Node:
    """The node over other names of what it reads."""

    def ref(slot: Slot, item: Ref | Literals) -> Ref | Literals:
        return Ref(ref=new.get(item.ref, item.ref)) if isinstance(item, Ref) else item

    args = tuple(replaced(i, old, ref) for i, old in enumerate(node.args))
    kwargs = {key: replaced(key, old, ref) for key, old in node.kwargs.items()}
    return node.model_copy(update={"args": args, "kwargs": kwargs})


def needed(nodes: Sequence[Node], outputs: Iterable[str]) -> tuple[Node, ...]:
    """Those that outputs follow from."""
    wanted = set(outputs)
    found: list[Node] = []
    for node in reversed(nodes):
        if node.name in wanted:
            wanted |= set(references(node))
            found.append(node)
    return tuple(reversed(found))


class SizeClass(BaseModel):
    """Axes that have one size in all captures of a model: (input or node, axis), inputs first.

    form: of a class that no input has, how its size follows from classes before it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sizes: tuple[int, ...]  # as captured
    axes: tuple[tuple[str, int], ...]
    form: SymbolicSize | None = None


class GraphInput(TensorSpec):
    """A graph input: a user input of forward, or a parameter, buffer or constant of the model."""

    kind: Literal["user", "parameter", "buffer", "constant"]
    target: str = ""  # the attribute path of a parameter or buffer, e.g. "norm.weight"
    position: int = 0  # of a user input: its index among forward's tensor arguments


class Graph(BaseModel):
    """Nodes in execution order; `outputs` name nodes (or inputs)."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    # What forward calls before decomposition, one softmax a node: what eager PyTorch would launch.
    # Their references name inputs and each other. Empty when it could not be read.
    eager: tuple[Node, ...] = ()
    # Axes of user inputs (position, axis) whose sizes are numbers in the nodes: fixed_sizes.py
    fixed: tuple[tuple[int, int], ...] = ()
    # Position of an input, axis, and a number: sizes that have to be multiples of it, because the
    # graph is another one at others
    steps: tuple[tuple[int, int, int], ...] = ()
    # Numbers in the nodes that follow from sizes of inputs; None: captured at no other shapes
    symbolic: tuple[SymbolicSize, ...] | None = None
    classes: tuple[SizeClass, ...] = ()  # that they name, and what else varies
    # What forward was called with besides tensors, defaults included; None where that is no data
    literals: tuple[Literals, ...] | None = None
    returns: str = ""  # how forward hands over the outputs (ir/returned.py); "": as `plain` says
    # Values of the constant inputs that the model has no attribute for
    constants: tuple[Constant, ...] = ()
    # The same model where axes of size 1 are longer, because it takes them so: unit_axes.py
    longer: Graph | None = None

    @model_validator(mode="after")
    def _returns_its_outputs(self) -> Graph:
        if self.returns:
            check(self.returns, len(self.outputs))
        return self

    @property
    def operator_inputs(self) -> tuple[GraphInput, ...]:
        """The inputs in the order in which an operator takes them that says nothing of its own.

        Forward's arguments come first, then what the module holds.
        """
        return tuple(sorted(self.inputs, key=lambda item: item.kind != "user"))

    @property
    def varied(self) -> set[tuple[str, int]]:
        """Axes (input or node, axis) that had other sizes in other captures."""
        return {axis for item in self.classes for axis in item.axes}

    def captures(self) -> Iterator[dict[tuple[str, int], int]]:
        """Sizes of these axes at each capture, this graph's own first."""
        for at in range(min((len(item.sizes) for item in self.classes), default=0)):
            yield {axis: item.sizes[at] for item in self.classes for axis in item.axes}

    def classes_of(self, items: Iterable[SymbolicSize]) -> set[int]:
        """Classes that numbers follow from, and those that these follow from."""
        found: set[int] = set()
        queue = [at for item in items for at in item.classes]
        while queue:
            if (at := queue.pop()) not in found:
                found.add(at)
                form = self.classes[at].form
                queue += form.classes if form is not None else ()
        return found

    def symbolic_slots(self) -> dict[str, dict[Slot, SymbolicSize]]:
        """Symbolic sizes by node and slot."""
        found: dict[str, dict[Slot, SymbolicSize]] = {}
        for item in self.symbolic or ():
            found.setdefault(item.node, {})[item.slot] = item
        return found

    def spec(self, name: str) -> TensorSpec:
        """Shape and dtype of an input or node."""
        for item in self.inputs:
            if item.name == name:
                return item
        node = next(node for node in self.nodes if node.name == name)
        if node.dtype is None:
            raise KeyError(name)
        return TensorSpec(name=name, shape=node.shape, dtype=node.dtype)
