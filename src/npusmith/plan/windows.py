"""Graph -> windows: a module that is one pooling, and what its windows are.

Takes a captured graph; gives a Pooling, or None where the graph is something else. Around the
pooling stand only operations that add or drop dimensions of size 1, as PyTorch puts them around the
pooling of lines. A pooling that cannot be written is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr
from npusmith.plan.names import tensor_name
from npusmith.plan.reader import Reader
from npusmith.plan.scalars import ONE, minus, plus, quotient
from npusmith.task.graph import Graph, GraphInput, Node, Ref

# Dimensions of a window by operation; of those with two results the second are the indices.
_AVERAGES = {"avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3}
_MAXIMA = {"max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3}
_TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


@dataclass(frozen=True, slots=True)
class Window:
    """The windows along one dimension."""

    size: int  # elements that a window takes in
    stride: int
    padding: int
    dilation: int

    @property
    def span(self) -> int:
        """From the first to the last element of a window."""
        return (self.size - 1) * self.dilation + 1

    @property
    def plain(self) -> bool:
        """Whether every element is a window."""
        return (self.size, self.stride, self.padding) == (1, 1, 0)

    def count(self, extent: Expr) -> Expr:
        """How many windows there are along so many elements."""
        if self.plain:
            return extent
        last = minus(plus(extent, Const(2 * self.padding)), Const(self.span))
        return Binary(BinOp.ADD, quotient(last, Const(self.stride)), ONE)


@dataclass(frozen=True, slots=True)
class Pooling:
    """One pooling of one input, over the last dimensions of it."""

    op: str  # PyTorch's word
    item: GraphInput
    name: str  # of the input in the program
    output: Node
    windows: tuple[Window, ...]  # of the last dimensions
    largest: bool  # else the mean
    divisor: int  # of the mean
    inside: bool  # the mean is over what lies in the tensor: padding does not count
    lead: tuple[Expr, ...]  # the dimensions before those of the windows
    extents: tuple[Expr, ...]  # those of the windows
    dims: tuple[Expr, ...]  # of the output


def find_pooling(graph: Graph, taken: frozenset[str]) -> Pooling | None:
    """What the graph pools; None when it is not one pooling. `taken`: names the input may not have.

    Raises PlanError where the pooling has an option that is not written.
    """
    reader = Reader(graph)
    nodes = {node.name: node for node in graph.nodes}
    reader.node = next((node for node in graph.nodes if _word(node) in _AVERAGES | _MAXIMA), None)
    if reader.node is None:
        return None
    _refuse_indices(reader, nodes)
    inputs = {item.name: item for item in graph.inputs if item.kind == "user"}
    chain = _chain(graph, nodes)
    if len(graph.outputs) != 1 or chain is None or chain[0] not in inputs:
        return None
    item = inputs[chain[0]]
    if item.dtype not in _TYPES:
        legal = ", ".join(dtype.value for dtype in _TYPES)
        reader.refuse("plan-dtype", f"it pools {item.dtype.value}", legal=legal)
    return _follow(reader, item, tensor_name(item.name, set(taken)), chain[1])


def _word(node: Node) -> str:
    parts = node.op.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else ""


def _refuse_indices(reader: Reader, nodes: dict[str, Node]) -> None:
    for node in nodes.values():
        source = nodes.get(getattr(node.args[0], "ref", "")) if node.args else None
        indices = source is not None and _word(source) in _MAXIMA
        if indices and _word(node) == "getitem" and node.args[1] != 0:
            reader.refuse(
                "plan-index-output", "the places of the largest elements are not written",
                legal="the values alone", hint="do not return the indices",
            )  # fmt: skip


def _chain(graph: Graph, nodes: dict[str, Node]) -> tuple[str, list[Node]] | None:
    """The input that the first output comes from and the nodes on the way; None off the way."""
    known = ("unsqueeze", "squeeze", "getitem", *_AVERAGES, *_MAXIMA)
    name, found = graph.outputs[0], list[Node]()
    while name in nodes:
        node = nodes[name]
        if _word(node) not in known or not node.args or not isinstance(node.args[0], Ref):
            return None
        found.insert(0, node)
        name = node.args[0].ref
    poolings = [node for node in found if _word(node) in _AVERAGES | _MAXIMA]
    return (name, found) if len(poolings) == 1 else None


def _follow(reader: Reader, item: GraphInput, name: str, chain: list[Node]) -> Pooling | None:
    """Dimensions from the input to the output."""
    dims: tuple[Expr, ...] = tuple(Dim(name, i) for i in range(len(item.shape)))
    sizes, found = item.shape, None
    for node in chain:
        reader.node = node
        match _word(node):
            case "getitem":
                continue
            case "unsqueeze":
                at = reader.dim(node.args[1], len(dims) + 1)
                dims, sizes = (*dims[:at], ONE, *dims[at:]), (*sizes[:at], 1, *sizes[at:])
            case "squeeze":
                gone = _dropped(reader, sizes)
                if any(dims[i] != ONE for i in gone):
                    return None  # of size 1 in the captured shapes only
                dims = tuple(dim for i, dim in enumerate(dims) if i not in gone)
                sizes = tuple(size for i, size in enumerate(sizes) if i not in gone)
            case _:
                found = _pooling(reader, item, name, node, dims)
                dims = found.dims
                sizes = _pooled(found, sizes)
    assert found is not None
    return Pooling(
        found.op, item, name, chain[-1], found.windows, found.largest, found.divisor,
        found.inside, found.lead, found.extents, dims,
    )  # fmt: skip


def _pooled(pooling: Pooling, sizes: tuple[int, ...]) -> tuple[int, ...]:
    at = len(pooling.lead)
    pairs = zip(pooling.windows, sizes[at:], strict=True)
    return (*sizes[:at], *((n + 2 * w.padding - w.span) // w.stride + 1 for w, n in pairs))


def _dropped(reader: Reader, sizes: tuple[int, ...]) -> set[int]:
    """Dimensions that a squeeze takes away."""
    asked = reader.argument(1, "dim")
    chosen = range(len(sizes)) if asked is None else reader.integers(asked)
    return {i % len(sizes) for i in chosen if sizes[i] == 1}


def _pooling(
    reader: Reader, item: GraphInput, name: str, node: Node, dims: tuple[Expr, ...]
) -> Pooling:
    word = _word(node)
    largest = word in _MAXIMA
    rank = (_AVERAGES | _MAXIMA)[word]
    size = _each(reader, 1, "kernel_size", rank, ())
    stride = _each(reader, 2, "stride", rank, size)
    padding = _each(reader, 3, "padding", rank, (0,))
    dilation = _each(reader, 4, "dilation", rank, (1,)) if largest else (1,) * rank
    if reader.argument(5 if largest else 4, "ceil_mode", False):
        reader.refuse(
            "plan-unsupported-op", "windows that reach over the edge (ceil_mode) are not written",
            legal="ceil_mode=False", hint="pad the input, or set ceil_mode=False",
        )  # fmt: skip
    windows = tuple(Window(*each) for each in zip(size, stride, padding, dilation, strict=True))
    count = 1
    for window in windows:
        count *= window.size
    override = None if largest else reader.argument(6, "divisor_override")
    divisor = count if override is None else reader.integers(override)[0]
    padded = any(window.padding for window in windows)
    inside = not largest and override is None and padded
    inside = inside and not reader.argument(5, "count_include_pad", True)
    at = len(dims) - rank
    shape = tuple(window.count(n) for window, n in zip(windows, dims[at:], strict=True))
    return Pooling(
        word.removesuffix("_with_indices"), item, name, node, windows, largest, divisor, inside,
        dims[:at], dims[at:], (*dims[:at], *shape),
    )  # fmt: skip


def _each(
    reader: Reader, index: int, name: str, rank: int, default: tuple[int, ...]
) -> tuple[int, ...]:
    """An option for each dimension of the windows."""
    given = reader.argument(index, name)
    found = default if given is None or given == () else reader.integers(given)
    return found * rank if len(found) == 1 else found
