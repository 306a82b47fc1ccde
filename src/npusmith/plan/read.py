"""Graph -> expressions: what every output of a module is, in terms of its inputs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from itertools import islice

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr
from npusmith.plan import (
    bound_axes,
    folds,
    grid_samples,
    interpolation,
    maps,
    moves,
    pools,
    products,
    scans,
    scatter_maps,
    sorts,
    views,
)
from npusmith.plan.axes import Dims
from npusmith.plan.dag import Value
from npusmith.plan.reader import Reader, Rule, Tensor
from npusmith.task.graph import Argument, Graph, GraphInput, Node, Ref

# A later family's rule replaces an earlier one's.
FAMILIES: dict[str, dict[str, Rule]] = {
    "Shapes, constants and casts": views.RULES,
    "Elements from elsewhere": moves.RULES,
    "Pooling windows": pools.RULES,
    "Resizes and samples": {**interpolation.RULES, **grid_samples.RULES},
    "Element by element": maps.RULES,
    "Reductions, softmax and norms": folds.RULES,
    "Scans": scans.RULES,
    "Scatters": scatter_maps.RULES,
    "Order of elements": sorts.RULES,
    "Matrix products": products.RULES,
}
RULES: dict[str, Rule] = {name: rule for rules in FAMILIES.values() for name, rule in rules.items()}

# Operations that are no question for the compiler, by what they have in common.
APART: dict[str, tuple[str, ...]] = {
    "the backward of convolutions": ("convolution_backward",),
    "Fourier transforms": ("_fft_c2r", "_fft_r2c"),
    "random numbers": ("native_dropout", "rand", "randn", "randperm"),
    "sizes, which a capture has as numbers": (
        "resize_", "sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset",
        "sym_stride",
    ),
    "results whose values or sizes PyTorch leaves open": ("empty_strided", "nonzero"),
    "numbers out of tensors": ("_local_scalar_dense",),
}  # fmt: skip

_READABLE = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.INT32, DType.INT64, DType.INT16,
    DType.INT8, DType.UINT8, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scatter:
    """How rows of a piece find their places: the index tensor, and what one more means."""

    index: Tensor
    step: Expr  # elements from one row of the output to the next
    rows: Expr  # of the output, where a negative index counts from the end; 0: none is
    adds: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """What is stored to a part of an output. `access`: a start, and a step along each axis."""

    output: int
    tensor: Tensor
    access: tuple[Expr, ...] = ()
    scatter: Scatter | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """A graph that has been read: inputs with their axes, and one Tensor for each output."""

    inputs: tuple[tuple[GraphInput, Dims], ...]
    outputs: tuple[Tensor, ...]
    reader: Reader
    pieces: tuple[Piece, ...] = ()  # of the outputs, where they are not whole (accesses.py)

    @property
    def stored(self) -> tuple[Piece, ...]:
        return self.pieces or tuple(Piece(i, out) for i, out in enumerate(self.outputs))

    @property
    def roots(self) -> list[Value]:
        """What is stored, and where."""
        indices = [piece.scatter.index.value for piece in self.stored if piece.scatter]
        return [piece.tensor.value for piece in self.stored] + indices

    def node(self, output: int) -> Node | None:
        """The node that an output is; None when it is an input."""
        name = self.reader.graph.outputs[output]
        return next((node for node in self.reader.graph.nodes if node.name == name), None)


def read(graph: Graph) -> Meaning:
    """Every node that an output depends on. Raises PlanError at the first without a rule."""
    reader = Reader(graph)
    inputs = []
    for item in graph.inputs:
        inputs.append((item, reader.read_input(item)))
    bound: list[bound_axes.Bound] = []
    needed, shaping = _needed(graph), _needed(graph, shapes=True)
    for node in graph.nodes:
        if node.name in shaping - needed:  # its shape is of use, not more
            with contextlib.suppress(PlanError):
                reader.read_node(node, _rule)
        if node.name in needed:
            before = len(reader.dag.seen)
            reader.read_node(node, _rule)
            made = list(islice(reader.dag.seen.values(), before, None))
            reader.origin.update((value, node) for value in made)
            bound += bound_axes.bound(reader, node, made)
    bound_axes.check(reader, bound)
    reader.node = None
    reader.hold_unvaried()
    outputs = (reader.tensor(Ref(ref=name)) for name in graph.outputs)
    stored = (replace(out, value=reader.unrounded(out.value, out.dtype)) for out in outputs)
    return Meaning(tuple(inputs), tuple(stored), reader)


def _rule(reader: Reader, node: Node) -> Rule:
    if node.op in products.OWN:
        return products.OWN[node.op]
    parts = node.op.split(".")
    name = parts[1] if len(parts) > 1 and parts[0] == "aten" else parts[-1]
    if name not in RULES:
        kind = next((kind for kind, names in APART.items() if name in names), "this operation")
        why = f"the deterministic writer has no rule for {kind}"
        if name == "native_dropout":
            why += ": dropout draws them in training mode, and not behind model.eval()"
        if node.dtype is None and node.shape:
            why += ", and its result is of a type that the chip does not have, such as complex"
        reader.refuse("plan-unsupported-op", why)
    return RULES[name]


def _needed(graph: Graph, shapes: bool = False) -> set[str]:
    """Names of nodes that the outputs depend on; `shapes`: also those that only shape others."""
    nodes = {node.name: node for node in graph.nodes}
    found: set[str] = set()
    queue = list(graph.outputs)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found.add(name)
        if name in nodes:
            node = nodes[name]
            if shapes or not _shapes_only(node):
                queue += _references((*node.args, *node.kwargs.values()))
    return found


def _shapes_only(node: Node) -> bool:
    """`zeros_like` and its kind take no element of their argument."""
    return node.op.split(".")[1:2] in (["full_like"], ["zeros_like"], ["ones_like"], ["new_full"])


def _references(arguments: tuple[Argument, ...]) -> list[str]:
    names: list[str] = []
    for argument in arguments:
        if isinstance(argument, Ref):
            names.append(argument.ref)
        elif isinstance(argument, tuple):
            names += [item.ref for item in argument if isinstance(item, Ref)]
    return names


def check_readable(item: GraphInput) -> None:
    """Refuse an input whose element type no rule reads."""
    if item.dtype not in _READABLE:
        raise PlanError(
            "plan-dtype", f"input {item.name} has element type {item.dtype.value}",
            legal=", ".join(dtype.value for dtype in _READABLE),
        )  # fmt: skip
