"""Sizes that a kernel meets besides the captured ones: fewer or more axes that fit in a tile.

What is best for short rows is not for long ones: the captured sizes say how many of the innermost
axes go whole into a tile. For each other number of them a regime has sizes for which the graph can
be written as if it had been captured there, and a test of sizes that tells where that is worth it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from npusmith.errors import LangError
from npusmith.ir.nodes import Binary, BinOp, ChipFact, Choice, Const, Dim, Expr
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import subexpressions
from npusmith.lang.extents import extent as measured
from npusmith.lang.extents import unmet
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.axis_sizes import leaf_sizes
from npusmith.plan.dag import Value, reachable
from npusmith.plan.estimate import origin
from npusmith.plan.read import Meaning, read
from npusmith.plan.scalars import ONE, ZERO, all_of, product, times
from npusmith.plan.shrink import output_shapes
from npusmith.plan.views import atoms_of
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput

Shape = tuple[int, ...]
_FACTOR = 256  # times as long, or as short, as it was captured an axis is at most ...
_LONGEST = 4096  # ... but for short ones: no row is held on chip that is so long
INSIDE = 1024  # elements of axes that go whole into a tile
_SHORT = 256  # elements of a short row
_LONG = 16_384  # ... and of a long one
_FAR_LONG = 8192  # ... that is far from a row that goes into a tile
_VECTOR = 64  # elements of float32 that a core computes in a cycle
_LEAST = 8  # elements of 32 bytes: a row that is shortened is a whole number of them
_WORK = 1 << 22  # elements of a tensor: all cores have several tiles
_NEAR = 4  # times as long, or as short: axes of other tensors are taken to go with it
_MANY = 8  # rows of each core
_ENOUGH = times(Const(_MANY), ChipFact("vector_cores"))
_FEW = 2  # rows
_TRIED = 2  # of the sizes at which a model was captured
_MEDIUM = 1 << 15  # elements of a line that no tile holds
FAR_APART = 1 << 21  # elements of a line that all cores may work on: it is worth their waits


@dataclass(frozen=True, slots=True)
class Regime:
    """Shapes of the operator's tensors, by name, and the test that sizes are like that.

    `border`: others that pass it, as near to the captured ones as such sizes are, and `narrow`: a
    test that these do not pass.
    """

    shapes: Mapping[str, Shape]
    inputs: Mapping[str, Shape]  # of the graph
    outputs: tuple[Shape, ...]
    test: Expr
    note: str
    border: Mapping[str, Shape] | None = None
    narrow: Expr = ONE

    def graph(self, graph: Graph) -> Graph:
        """The graph with tensors of these shapes around it."""
        shapes = dict(zip(graph.outputs, self.outputs, strict=True)) | dict(self.inputs)
        inputs = tuple(_shaped(item, shapes) for item in graph.inputs)
        nodes = tuple(
            item.model_copy(update={"shape": shapes.get(item.name, item.shape)})
            for item in graph.nodes
        )
        return graph.model_copy(update={"inputs": inputs, "nodes": nodes})


def _shaped(item: GraphInput, shapes: Mapping[str, Shape]) -> GraphInput:
    return item.model_copy(update={"shape": shapes.get(item.name, item.shape)})


def regimes(
    graph: Graph,
    spec: OpSpec,
    captured: Mapping[str, Shape],
    chip: Chip,
    longer: bool = False,
    few: bool = False,
) -> Iterator[Regime]:
    """Those that a program may meet besides the captured sizes, the most special first.

    `longer`: none of shorter rows than captured; `few`: of few of them.
    """
    meaning = read(graph)
    values = reachable(meaning.roots)
    if any(value.op == "running" for value in values):
        return  # loops alone take a scan
    names = {origin(graph, port).name: port.name for port in spec.inputs}
    of = _Operator(spec, meaning, names, _sizes(meaning, names))
    loaded = {value.text for value in values if value.op == "load"}
    dims = [row for item, row in meaning.inputs if item.name in names and item.name in loaded]
    ends = [atoms_of(out.dims) for out in meaning.outputs]
    rows = [*map(atoms_of, dims), *ends]
    largest = max(rows, key=lambda row: math.prod(leaf.size for leaf in row), default=())
    if not all(leaf.size for leaf in largest):
        return  # nothing to do as captured
    if len({*rows}) < 2 and not any(value.axes for value in values):
        return  # one vector after another, whatever the rows
    seen: list[Mapping[str, Shape]] = []
    # Tiles of sums are of outputs, whose axes may be others: long ones may not be hopeless.
    asked = longer and not few and any(value.op == "reduce" for value in values)
    filled = (row for row in ends if asked and all(leaf.size for leaf in row))
    for row in dict.fromkeys((largest, *filled)):
        for found in _along(row, rows, of, captured, chip, longer, few):
            if found.shapes not in seen:
                seen.append(found.shapes)
                yield found
    if not longer and (line := _line(values)):
        yield from _shorter_lines(line, of)


@dataclass(frozen=True, slots=True)
class _Operator:
    """What a graph says, the names of its inputs' ports, and its axes as expressions over these."""

    spec: OpSpec
    meaning: Meaning
    names: Mapping[str, str]
    known: Mapping[Atom, Expr]


def _along(
    row: Sequence[Atom],
    rows: Sequence[Sequence[Atom]],
    of: _Operator,
    captured: Mapping[str, Shape],
    chip: Chip,
    longer: bool,
    few: bool,
) -> Iterator[Regime]:
    """Regimes of the axes of one of the tensors `rows`."""
    now, known = _inside(row), of.known
    others = () if longer else (*reversed(range(now + 1, len(row))),)
    for inside in (*others, *range(now), *(() if longer and few else (now,))):
        sizes = _sized(row, inside, now, known)
        if few and (axis := row[len(row) - inside - 1]) in sizes:
            sizes[axis] = max(sizes[axis], _LONG)
        sizes |= _alike(row, rows, sizes)
        if few:
            sizes |= {leaf: _FEW for leaf in row[: len(row) - inside - 1] if leaf.size > _FEW}
        found = _regime(of, sizes) if sizes else None
        if found is None:
            continue
        test, narrow = _tests(row, inside, now, known)
        if few:
            test = all_of([test, _few(row, inside, known)])

        def passes(test: Expr, shapes: Mapping[str, Shape]) -> bool:
            return bool(measured(Choice(test, ONE, ZERO), shapes, chip.vector_cores))

        if not passes(test, found.shapes) or passes(test, captured):
            continue
        border = _sized(row, inside, now, known, INSIDE, 2 * INSIDE)
        border |= _alike(row, rows, border)
        near = _regime(of, border) if border and not few else None
        shapes = near.shapes if near and passes(test, near.shapes) else None
        note = f"{inside} axes go whole into a tile"
        yield replace(found, test=test, note=note, border=shapes, narrow=narrow)


def tried_sizes(graph: Graph, spec: OpSpec) -> Iterator[tuple[dict[str, Shape], list[Shape]]]:
    """Shapes of inputs, by port, and of outputs, at the other sizes of the whole model's captures.

    Whether the operator serves them or not.
    """
    names = {port.name: origin(graph, port).name for port in spec.inputs}
    for sizes in islice(graph.captures(), 1, None):

        def shape(name: str, sizes: Mapping[tuple[str, int], int] = sizes) -> Shape:
            own = enumerate(graph.spec(name).shape)
            return tuple(sizes.get((name, axis), size) for axis, size in own)

        yield {port: shape(name) for port, name in names.items()}, [*map(shape, graph.outputs)]


def takes(spec: OpSpec, shapes: Mapping[str, Shape]) -> bool:
    """Whether no condition refuses inputs of these shapes, as far as that can be told."""
    try:
        return unmet(spec, shapes) is None
    except LangError:
        return False


def largest_tried(graph: Graph, spec: OpSpec) -> list[Regime]:
    """Regimes, of unknown tests, at the largest of `tried_sizes`.

    There all tensors of a part have sizes that belong together, which may follow from the model's
    inputs in a way that a part does not tell.
    """
    found: list[tuple[int, Regime]] = []
    for shapes, outputs in tried_sizes(graph, spec):
        if not takes(spec, shapes):
            continue
        inputs = {origin(graph, port).name: shapes[port.name] for port in spec.inputs}
        every = shapes | {port.name: item for port, item in zip(spec.outputs, outputs, strict=True)}
        regime = Regime(every, inputs, tuple(outputs), ONE, "sizes at which the model was tried")
        found.append((sum(map(math.prod, every.values())), regime))
    found.sort(key=lambda item: -item[0])
    return [regime for _, regime in found[:_TRIED]]


def _line(values: Iterable[Value]) -> tuple[Atom, ...]:
    """The axes of the longest reduction, where it is so long that all cores may work on it."""
    lines = [leaves(value.axes) for value in values if value.op == "reduce"]
    line = max(lines, key=lambda line: math.prod(leaf.size for leaf in line), default=())
    return line if math.prod(leaf.size for leaf in line) >= FAR_APART else ()


def _shorter_lines(line: Sequence[Atom], of: _Operator) -> Iterator[Regime]:
    """Lines of the same rank that one core may go through by itself."""
    known = of.known
    free = [leaf for leaf in line if leaf.size > 1 and _dims(known[leaf])]

    def sized(most: int) -> Regime | None:
        sizes = {leaf: leaf.size for leaf in line}
        _shrink(sizes, line, free, most)
        sizes = {leaf: size for leaf, size in sizes.items() if size != leaf.size}
        return _regime(of, sizes) if sizes else None

    def below(size: int) -> Expr:
        return Binary(BinOp.LT, product(known[leaf] for leaf in line), Const(size))

    found, near = sized(_MEDIUM), sized(FAR_APART // 2)
    if found is not None and measured(Choice(below(FAR_APART), ONE, ZERO), found.shapes):
        yield replace(
            found, test=below(FAR_APART), note="lines for one core each",
            border=None if near is None else near.shapes, narrow=below(2 * _MEDIUM),
        )  # fmt: skip


def _inside(row: Sequence[Atom]) -> int:
    """How many of the innermost axes go whole into a tile at the captured sizes."""
    found, size = 0, 1
    while found < len(row) - 1 and size * row[-1 - found].size <= INSIDE:
        size *= row[-1 - found].size
        found += 1
    return found


def _tests(
    row: Sequence[Atom], inside: int, now: int, known: Mapping[Atom, Expr]
) -> tuple[Expr, Expr]:
    """Of sizes like that, and of those that are far from the captured ones."""

    def elements(axes: int) -> Expr:
        return product(known[leaf] for leaf in row[len(row) - axes :])

    def longer(size: int) -> Expr:
        return Binary(BinOp.GT, elements(inside + 1), Const(size))

    def shorter(size: int) -> Expr:
        outer = product(known[leaf] for leaf in row[: len(row) - inside])
        many = Binary(BinOp.GE, outer, _ENOUGH)
        return all_of([Binary(BinOp.LE, elements(inside), Const(size)), many])

    return (
        (longer(INSIDE), longer(_FAR_LONG)) if inside < now else (shorter(INSIDE), shorter(_SHORT))
    )


def _few(row: Sequence[Atom], inside: int, known: Mapping[Atom, Expr]) -> Expr:
    outer = product(known[leaf] for leaf in row[: len(row) - inside - 1])
    return Binary(BinOp.LT, outer, _ENOUGH)


def _sized(
    row: Sequence[Atom],
    inside: int,
    now: int,
    known: Mapping[Atom, Expr],
    short: int = _SHORT,
    long: int = _LONG,
) -> dict[Atom, int]:
    """Other sizes with so many axes inside of a tile, if there are some."""
    sizes = {leaf: leaf.size for leaf in row}
    free = [leaf for leaf in row if leaf.size > 1 and _dims(known[leaf])]
    inner, outer = row[len(row) - inside :], row[: len(row) - inside]
    if inside > now:
        _shrink(sizes, inner, [leaf for leaf in free if leaf in inner], short)
    if inside < now:
        _grow(sizes, row[-1 - inside :], [leaf for leaf in free if leaf is outer[-1]], long)
    else:
        _grow(sizes, row, [leaf for leaf in free if leaf in outer], _WORK)
    return {leaf: size for leaf, size in sizes.items() if size != leaf.size}


def _alike(
    row: Sequence[Atom], rows: Iterable[Sequence[Atom]], sizes: Mapping[Atom, int]
) -> dict[Atom, int]:
    """Sizes of the innermost axes of other tensors, where they are about as long as captured.

    Of `x` and of a slice of it, say, which another kernel has made: both are long, or neither.
    """
    if not row or row[-1] not in sizes:
        return {}
    own, size = row[-1].size, sizes[row[-1]]
    others = (item[-1] for item in rows if item and item[-1] not in row)
    return {
        leaf: size
        for leaf in others
        if leaf.size > 1 and own <= _NEAR * leaf.size <= _NEAR**2 * own
    }


def _dims(size: Expr) -> list[Dim]:
    """The dimensions of inputs that a size follows from."""
    return [item for item in subexpressions(size) if isinstance(item, Dim)]


def _shrink(sizes: dict[Atom, int], row: Sequence[Atom], free: Sequence[Atom], most: int) -> None:
    while math.prod(sizes[leaf] for leaf in row) > most:
        longer = [leaf for leaf in free if sizes[leaf] >= max(2 * _LEAST, 2 * leaf.size / _FACTOR)]
        if not longer:
            return
        largest = max(longer, key=lambda leaf: sizes[leaf])
        sizes[largest] = sizes[largest] // 2 // _LEAST * _LEAST


def _grow(sizes: dict[Atom, int], row: Sequence[Atom], free: Sequence[Atom], elements: int) -> None:
    for leaf in free[:1]:
        rest = math.prod(sizes[other] for other in row if other is not leaf)
        sizes[leaf] = min(max(leaf.size, -(-elements // rest)), max(leaf.size * _FACTOR, _LONGEST))


def _regime(of: _Operator, sizes: Mapping[Atom, int]) -> Regime | None:
    """None where the operator does not serve them."""
    spec, meaning, names, known = of.spec, of.meaning, of.names, of.known
    given = {names[item.name]: [*item.shape] for item, _ in meaning.inputs if item.name in names}
    settled: set[tuple[str, int]] = set()
    for leaf, size in sizes.items():
        for dim in _dims(known[leaf]):
            if (dim.tensor, dim.index) not in settled:
                row = given[dim.tensor]
                row[dim.index] = max(row[dim.index] * size // leaf.size, 1)
                settled.add((dim.tensor, dim.index))
    _as_in_captures(given, meaning, names, settled)
    try:
        _settle(given, spec.legal or (), settled)
        at = {name: tuple(shape) for name, shape in given.items()}
        at = {
            names[item.name]: tuple(
                measured(product(known[leaf] for leaf in leaves(dim)), at) for dim in dims
            )
            for item, dims in meaning.inputs
            if item.name in names
        }
        if unmet(spec, at) is not None:
            return None
        inputs = [at[port.name] for port in spec.inputs]
        outputs = output_shapes(spec, inputs)
    except LangError:
        return None
    named = {port.name: shape for port, shape in zip(spec.outputs, outputs, strict=True)}
    own = {name: at[called] for name, called in names.items()}
    return Regime({**at, **named}, own, outputs, Const(1), "")


def _as_in_captures(
    given: dict[str, list[int]],
    meaning: Meaning,
    names: Mapping[str, str],
    settled: set[tuple[str, int]],
) -> None:
    """Axes that had one size in all captures have one, and those that none changed stay."""
    graph = meaning.reader.graph
    if not graph.classes:
        return
    for item in graph.classes:
        axes = [(names[name], axis) for name, axis in item.axes if name in names]
        asked = [given[tensor][axis] for tensor, axis in axes if (tensor, axis) in settled]
        if asked:
            settled.update(axes)
            for tensor, axis in axes:
                given[tensor][axis] = max(asked)
    varied = graph.varied
    for own, _ in meaning.inputs:
        for axis, size in enumerate(own.shape if own.name in names else ()):
            if (own.name, axis) not in varied:
                given[names[own.name]][axis] = size


def _settle(
    given: dict[str, list[int]], legal: Sequence[Expr], settled: set[tuple[str, int]]
) -> None:
    """Change sizes that are not settled so that those hold which have to be equal.

    Of a tensor that is there for its sizes alone, say, when those of another one were changed.
    """

    def gap(pair: Binary) -> int:
        at = {name: tuple(shape) for name, shape in given.items()}
        return measured(pair.left, at) - measured(pair.right, at)

    equal = [item for item in legal if isinstance(item, Binary) and item.op is BinOp.EQ]
    for pair in equal * 2:  # one may follow from another that stands behind it
        if not (off := gap(pair)):
            continue
        for dim in _dims(pair):
            row, here = given[dim.tensor], (dim.tensor, dim.index)
            if here in settled:
                continue
            before = row[dim.index]
            row[dim.index] = 2 * before  # of `x // 4` one more would change nothing
            less = off - gap(pair)
            row[dim.index] = max(before + off * before // less, 1) if less else before
            if not gap(pair):
                settled.add(here)
                break
            row[dim.index] = before


# ------------------------------------------------------------------------------ the graph at sizes


def read_at(graph: Graph, spec: OpSpec, regime: Regime) -> Meaning:
    """The graph as it would have been read, had it been captured at these sizes."""
    meaning = read(graph)
    names = {origin(graph, port).name: port.name for port in spec.inputs}
    known = _sizes(meaning, names)
    now = {leaf: measured(size, regime.shapes) for leaf, size in known.items()}
    for atom in _atoms(meaning):
        atom.size = math.prod(now.get(leaf, leaf.size) for leaf in leaves((atom,)))
    inputs = tuple((_shaped(item, regime.inputs), dims) for item, dims in meaning.inputs)
    meaning.reader.graph = regime.graph(graph)
    return replace(meaning, inputs=inputs)


def arithmetic_us(meaning: Meaning, chip: Chip) -> float:
    """Microseconds that an instruction for each value takes at least, on all cores: what a product
    of small matrices multiplies grows faster than what it reads.
    """
    along: dict[Value, frozenset[Atom]] = {}
    loaded = {item.name: frozenset(leaves(atoms_of(dims))) for item, dims in meaning.inputs}
    for value in reachable(meaning.roots):
        own = frozenset(leaves(value.axes))
        if value.op == "load" and not value.index:
            along[value] = loaded.get(value.text, own)
            continue
        under = frozenset[Atom]().union(*(along[arg] for arg in value.args))
        if value.op in ("load", "index"):  # of a slice; others name the axes that they work on
            along[value] = own
        else:  # what elements at other places vary along instead is not looked at
            along[value] = under - own if value.op in ("reduce", "at") else under
    elements = sum(math.prod(atom.size for atom in axes) for axes in along.values())
    return elements / (_VECTOR * chip.vector_cores * chip.clock_mhz)


def _sizes(meaning: Meaning, names: Mapping[str, str]) -> dict[Atom, Expr]:
    """All axes as expressions over shapes of the operator's inputs."""
    used = [(item, dims) for item, dims in meaning.inputs if item.name in names]
    return leaf_sizes(meaning, used, dict(names), leaves(_atoms(meaning)))


def _atoms(meaning: Meaning) -> list[Atom]:
    """Every axis, and those that it is merged with or cut into; parts before what they are of."""
    reader = meaning.reader
    roots = [atom for _, dims in meaning.inputs for dim in dims for atom in dim]
    roots += [atom for out in meaning.outputs for dim in out.dims for atom in dim]
    roots += reader.atoms
    roots += [atom for dim, _ in reader.sized for atom in dim]
    roots += [atom for value in reader.dag.seen.values() for atom in value.axes]
    return [*dict.fromkeys(_below(roots))]


def _below(atoms: Iterable[Atom]) -> Iterator[Atom]:
    for atom in atoms:
        if atom.same is not None:
            yield from _below((atom.same,))
        if atom.pieces is not None:
            yield from _below(atom.pieces)
        yield atom
