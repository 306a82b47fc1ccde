"""`shrink(graph, spec, chip)`: smaller shapes whose time tells that of the graph's own.

Timing a kernel over gigabytes by running it, even dry, takes as long as its steps are many. Rows
that need nothing of each other can be fewer; a dimension that is reduced can be shorter when L2
shrinks with it, so that what was read once is still there, or not, as before. The last dimension
keeps its length: tiles, tails and alignment are those of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Combine, For, Program, SyncCores
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import statements
from npusmith.lang.extents import extent as extent_of
from npusmith.lang.extents import unmet
from npusmith.plan.axes import Atom, Dim, extent, leaves, sizes
from npusmith.plan.dag import Value
from npusmith.plan.node_kinds import product_sizes
from npusmith.plan.read import Meaning, read
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

Shape = tuple[int, ...]
_STREAMED = 16 << 20  # bytes of L2 that are enough where nothing is read twice
_ROUNDS = 3  # times that the traffic fills L2, and least number of rows a core
_WORK = 256 << 20  # bytes of rows in flight beyond which rows are shortened
_TILE = 8192  # elements of the longest tile


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Shapes by input and output, and how the time at these tells the time at the true ones."""

    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    share: float = 1.0  # true work over this work
    l2_bytes: float = 0.0  # of the model while this is timed; 0: the chip's

    @property
    def whole(self) -> bool:
        return self.share == 1.0


@dataclass(slots=True)
class Axis:
    """Dimensions of inputs (input, dimension) that have one size and may change together."""

    size: int
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Loose:
    """What may shrink: rows that need nothing of each other, and what is reduced."""

    rows: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    again: int = 0  # rows that a core reads again before it takes others


def shrink(graph: Graph, spec: OpSpec, chip: Chip, *, in_step: bool = False) -> Shrunk:
    """Small enough to be timed in about a second, or the true shapes where they are small.

    `in_step`: all cores work on the same row, so that three rows are enough and have to be whole.
    """
    shapes = [port.shape for port in spec.inputs]
    whole = Shrunk(tuple(shapes), tuple(port.shape for port in spec.outputs))
    total = _bytes(spec, whole)
    if total <= chip.l2_bytes or any(product_sizes(graph, node) for node in graph.nodes):
        return whole  # blocks of a product share what they read in two directions
    loose = _served(_loose(graph, spec), spec, shapes)
    if in_step:
        made = _made(spec, shapes, loose, chip.l2_bytes, _fewer(loose.rows, _ROUNDS, 1))
        return made if _serves(spec, made.inputs) else whole
    shorter = _shorten(loose, total, chip)
    l2 = chip.l2_bytes * shorter
    rows = math.prod(axis.size for axis in loose.rows)
    unit = total * shorter / rows
    if shorter == 1:
        l2 = min(l2, max(2 * chip.vector_cores * unit * loose.again, _STREAMED))
    fewer = _fewer(loose.rows, math.ceil(_ROUNDS * l2 / unit), chip.vector_cores)
    made = _made(spec, shapes, loose, l2, fewer / shorter)
    return made if _serves(spec, made.inputs) else whole


def _served(loose: Loose, spec: OpSpec, shapes: Sequence[Shape]) -> Loose:
    """Without axes whose sizes the operator holds: it would refuse fewer rows."""

    def is_free(axis: Axis) -> bool:
        return _serves(spec, _sized(shapes, [replace(axis, size=max(axis.size // 2, 1))]))

    rows, reduced = (tuple(filter(is_free, axes)) for axes in (loose.rows, loose.reduced))
    return replace(loose, rows=rows, reduced=reduced)


def _serves(spec: OpSpec, shapes: Sequence[Shape]) -> bool:
    known = {port.name: shape for port, shape in zip(spec.inputs, shapes, strict=True)}
    return unmet(spec, known) is None


def goes_in_step(program: Program) -> bool:
    """Whether there is a barrier of all cores in every turn of a loop."""
    everything = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    loops = (stmt for stmt in everything if isinstance(stmt, For))
    return any(
        isinstance(item, Combine | SyncCores) for loop in loops for item in statements(loop.body)
    )


def _bytes(spec: OpSpec, at: Shrunk) -> int:
    ports = zip((*spec.inputs, *spec.outputs), (*at.inputs, *at.outputs), strict=True)
    return sum(math.prod(shape) * port.dtype.bytes for port, shape in ports)


# ------------------------------------------------------------------------------------ what is loose


def _loose(graph: Graph, spec: OpSpec) -> Loose:
    try:
        meaning = read(graph)
    except PlanError:
        return Loose((), ())
    return _of_meaning(meaning, spec)


def _of_meaning(meaning: Meaning, spec: OpSpec) -> Loose:
    dims = _dims(meaning, spec)
    everything = _values(meaning)
    windows = meaning.reader.windows
    moved = {leaf for given in windows.values() for leaf in given.moved}
    values = [value for value in everything if value.op in ("reduce", "running", "put")]
    values = [value for value in values if value not in windows]
    named = {leaf for value in everything for leaf in _named(meaning, value)}
    folded = {leaf for value in values for leaf in leaves(value.axes)}
    longest = _largest(dims)
    work = {
        leaf
        for row in (longest, _largest([out.dims for out in meaning.outputs]))
        for dim in row
        for leaf in leaves(dim)
    }  # other axes are of less work beside it
    last = leaves(longest[-1]) if longest else ()
    only = len({leaf for row in dims for dim in row for leaf in leaves(dim)}) == 1
    kept = [leaf for leaf in _whole(dims) if (only or leaf not in last) and leaf not in moved]
    axes = {leaf: Axis(leaf.size, _places(dims, leaf)) for leaf in kept}
    return Loose(
        tuple(axis for leaf, axis in axes.items() if leaf in work - folded - named),
        tuple(axis for leaf, axis in axes.items() if leaf in folded),
        _again(values, folded, last),
    )


def _largest(dims: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    return max((row for row in dims if row), key=lambda row: math.prod(sizes(row)), default=())


def _again(values: Sequence[Value], folded: set[Atom], last: Dim) -> int:
    """A core reads a row again, or as many as a tile is long where rows are kept apart."""
    if not any(value.op == "reduce" for value in values):
        return 0
    return 1 if folded & set(last) else 1 + -(-_TILE // extent(last))


def _places(dims: Sequence[tuple[Dim, ...]], leaf: Atom) -> tuple[tuple[int, int], ...]:
    return tuple(
        (i, at) for i, row in enumerate(dims) for at, dim in enumerate(row) if leaf in leaves(dim)
    )


def _dims(meaning: Meaning, spec: OpSpec) -> list[tuple[Dim, ...]]:
    """Axes of the inputs that the operator takes, in its order."""
    found = {(item.kind, item.position, item.target): dims for item, dims in meaning.inputs}
    return [found[port.source.value, port.position, port.target] for port in spec.inputs]


def _whole(dims: Sequence[tuple[Dim, ...]]) -> Iterator[Atom]:
    """Axes that are a dimension of their own wherever they stand, and no number of the model's."""
    rows = [leaves(dim) for row in dims for dim in row]
    parts = {leaf for row in rows if len(row) > 1 for leaf in row}
    for leaf in dict.fromkeys(leaf for row in rows for leaf in row):
        if leaf not in parts and not leaf.model and leaf.size > 1:
            yield leaf


def _values(meaning: Meaning) -> list[Value]:
    """All that the outputs depend on."""
    seen: dict[Value, None] = {}
    stack = [output.value for output in meaning.outputs]
    while stack:
        value = stack.pop()
        if value not in seen:
            seen[value] = None
            stack += value.args
    return list(seen)


def _named(meaning: Meaning, value: Value) -> Iterator[Atom]:
    """Axes along which elements of an index tensor say what is read: they are no work."""
    start = 0
    for count, expr in zip(value.parts, value.index, strict=True):
        if meaning.reader.reads_element(expr):
            yield from leaves(value.axes[start : start + count])
        start += count


# ----------------------------------------------------------------------------------- by how much


def _shorten(loose: Loose, total: int, chip: Chip) -> float:
    """Halve what is reduced while the rows in flight are more than L2; the share that is left."""
    rows = math.prod(axis.size for axis in loose.rows)
    flight = total / rows * min(rows, chip.vector_cores)
    share = 1.0
    for axis in loose.reduced:
        while flight * share >= 2 * _WORK and axis.size % 2 == 0:
            axis.size //= 2
            share /= 2
    return share


def _fewer(rows: Sequence[Axis], wanted: int, cores: int) -> float:
    """Take rows away until `wanted` are left or a few for each core; true rows over those left."""
    before = math.prod(axis.size for axis in rows)
    wanted = math.ceil(max(wanted / cores, _ROUNDS)) * cores
    for i, axis in enumerate(rows):
        rest = math.prod(other.size for other in rows[i + 1 :])
        axis.size = min(axis.size, max(1, round(wanted / rest)))
        wanted = math.ceil(wanted / axis.size)
    after = math.prod(axis.size for axis in rows)
    if before == after:
        return 1.0
    return _rounds(before, cores) / _rounds(after, cores)


def _rounds(rows: int, cores: int) -> float:
    """Rows of the busiest core."""
    return rows / cores if rows > 32 * cores else math.ceil(rows / cores)


def _made(spec: OpSpec, shapes: Sequence[Shape], loose: Loose, l2: float, share: float) -> Shrunk:
    inputs = _sized(shapes, (*loose.rows, *loose.reduced))
    return Shrunk(inputs, output_shapes(spec, inputs), share, l2)


def _sized(shapes: Sequence[Shape], axes: Iterable[Axis]) -> tuple[Shape, ...]:
    sized = [list(shape) for shape in shapes]
    for axis in axes:
        for i, at in axis.places:
            sized[i][at] = axis.size
    return tuple(tuple(shape) for shape in sized)


def output_shapes(spec: OpSpec, inputs: Sequence[Shape]) -> tuple[Shape, ...]:
    """Shapes of the outputs for inputs of these shapes."""
    known = {port.name: shape for port, shape in zip(spec.inputs, inputs, strict=True)}
    return tuple(tuple(extent_of(dim, known) for dim in port.dims) for port in spec.outputs)
