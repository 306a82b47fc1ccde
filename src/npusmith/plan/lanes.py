"""Expressions over index maps -> a kernel of one pass: every output, tile by tile.

A tile is a stretch of the output in memory: some indices of one axis with all of the axes inside
it. Its elements are the lanes of the vector unit. Each input is read where its index map says:
- the same stretch in memory: one copy;
- a fixed step along each axis: one copy of what lies between, or of rows, and a gather by a table
  of offsets that is made once;
- places that depend on the tile: the same with offsets worked out for each tile;
- places that depend on values, or lie too far apart: element by element.
Reductions over few elements are loops inside a tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    ChipFact,
    Const,
    CoreId,
    Expr,
    For,
    Kernel,
    Load,
    Name,
    Note,
    Program,
    Scalar,
    Span,
    Store,
    Tensor,
    TensorRole,
    View,
)
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names, names_read
from npusmith.plan.axes import Atom, extent, leaves
from npusmith.plan.axis_sizes import leaf_sizes, legal_sizes
from npusmith.plan.block import Block, Part, Path, choice, staged
from npusmith.plan.dag import Dag, Value
from npusmith.plan.decisions import Decisions
from npusmith.plan.emit import buffer_dtype
from npusmith.plan.host import TILE, Deal, Sizes
from npusmith.plan.index_maps import Resolver
from npusmith.plan.index_vectors import place, take, tile_buffer
from npusmith.plan.lane_reads import copies, dense, span_of, start_of
from npusmith.plan.lane_space import BLOCK, LANE, TURN, Axis, Lanes, LaneSpace, Tiling
from npusmith.plan.names import tensor_name
from npusmith.plan.pack import pack
from npusmith.plan.passes import ensure
from npusmith.plan.read import Meaning, check_readable
from npusmith.plan.reader import ELEMENT, WORTH
from npusmith.plan.row_reads import copy_rows, row_of
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    remainder,
    shares,
    times,
)
from npusmith.plan.space import Group, Input, Output, inputs_of
from npusmith.plan.stores import Target, ports, stored
from npusmith.plan.tile_broadcasts import Broadcaster, broadcast
from npusmith.plan.value_reads import fetch, together
from npusmith.plan.views import atoms_of
from npusmith.target.chips import Chip

_ROWS = 1 << 16  # lanes of a tile whose rows are copied one after another
_TURNS, _FEW_ROWS = Const(4), Const(8)  # of such tiles for each core, and rows of one
INNER = (1024, 256, 1)  # most elements of the axes inside the one that is cut


def write_lanes(
    meaning: Meaning, name: str, chip: Chip, decisions: Decisions
) -> tuple[Program, OpSpec, tuple[str, ...]]:
    """The program of a graph without large reductions. Raises PlanError for others."""
    ever = False
    for most in decisions.inners(INNER):
        w, targets = _prepare(meaning, chip)
        w.most, w.decisions = most, decisions
        root = Block()
        inside = [_write_output(w, root, target, number) for number, target in enumerate(targets)]
        ever = ever or any(inside)
        tensors = _tensors(w, targets)
        taken = {item.name for item in tensors} | set(w.sizes.defined) | set(w.names)
        try:
            packed = pack(
                staged(root.items), w.temps, taken, chip, decisions=decisions,
                least=most if any(inside) else 1,
            )  # fmt: skip
        except PlanError as error:
            if error.code == "plan-schedule" or most == INNER[-1] or not any(inside):
                raise
            continue  # a tile that is a part of one row takes fewer buffers
        if packed.tile >= most or not any(inside):
            break
    if any(inside) and most > packed.tile:
        message = f"`inner` cannot be {most}: a tile has room for {packed.tile} elements"
        raise PlanError("plan-schedule", message, legal=f"at most {packed.tile}")
    if ever or decisions.asked.inner is not None:
        decisions.inner(most, [item for item in INNER if item < most])
    read = names_read(packed.body)
    given = [item for item in (*w.sizes.defined, "cores") if item in read]
    outside = tuple(t.name for t in tensors if t.role is not TensorRole.SCRATCH)
    host = w.sizes.write(name, outside, given, "")
    scalars = tuple(Scalar(item) for item in given)
    kernel = Kernel(name, tensors, scalars, packed.buffers, packed.body)
    everywhere = read | names_read(host.body)
    consts = (("TILE", packed.tile),) if "TILE" in everywhere | _lengths(kernel) else ()
    program = Program(consts, host, (kernel,), _doc(name, targets))
    spec = OpSpec(
        name, *ports(w.space, targets), single_output=len(targets) == 1, legal=w.space.legal
    )
    return program, spec, (*w.space.notes, f"a tile is {packed.tile} elements at most")


def _doc(name: str, targets: Sequence[Target]) -> str:
    shapes = ", ".join(f"{t.name} {list(t.output.shape)}" for t in targets)
    return f"{name}: elements from where index maps say, as captured {shapes}"


def _lengths(kernel: Kernel) -> set[str]:
    return {name for buffer in kernel.buffers for name in names(buffer.length)}


def _tensors(w: Lanes, targets: Sequence[Target]) -> tuple[Tensor, ...]:
    inputs = (Tensor(item.name, item.item.dtype, TensorRole.INPUT) for item in w.space.inputs)
    outputs = (Tensor(t.name, t.output.dtype, TensorRole.OUTPUT) for t in targets)
    work = (Tensor(name, w.types[name], TensorRole.SCRATCH) for name in w.sizes.scratch)
    return (*inputs, *outputs, *work)


def _prepare(meaning: Meaning, chip: Chip) -> tuple[Lanes, list[Target]]:
    values = _everything(meaning)
    for value in values:
        for dim in meaning.reader.fixed.get(value, ()):
            for atom in dim:
                atom.fix()
    used = inputs_of(meaning, {value.text for value in values if value.op == "load"})
    for item, _ in used:
        check_readable(item)
    for item, dims in used:
        if len(set(atoms_of(dims))) != len(atoms_of(dims)):
            raise PlanError("plan-repeated-axis", f"input {item.name} runs along one loop twice")
    taken: set[str] = set()
    called = {item.name: tensor_name(item.name, taken) for item, _ in used}
    wanted = [leaf for _, dims in used for leaf in atoms_of(dims)]
    wanted += [leaf for out in meaning.outputs for leaf in atoms_of(out.dims)]
    wanted += [leaf for value in values for leaf in leaves(value.axes)]
    wanted += [leaf for atom in meaning.reader.atoms for leaf in leaves((atom,))]
    known = leaf_sizes(meaning, used, called, wanted)
    inputs = tuple(Input(item, called[item.name], ()) for item, _ in used)
    groups = (Group(0, "lanes", ONE), Group(1, "turns", ONE))
    space = LaneSpace(groups, inputs, (), 0, Dag(), meaning.reader.graph)
    space.legal = tuple(legal_sizes(meaning, used, called, known))
    space.notes = ()
    w = Lanes(space, Sizes(space), chip)
    w.meaning, w.shapes, w.layouts = meaning, known, {item.name: dims for item, dims in used}
    w.known = {leaf: w.sizes.named(expr) for leaf, expr in known.items()}
    w.rules = {"fetch": fetch, "place": place, "broadcast": broadcast, "taken": take}
    for given in inputs:
        w.tensors[given.item.name] = given.name
    outputs = meaning.outputs
    targets = []
    for i, out in enumerate(outputs):
        measures = tuple(product(known[leaf] for leaf in leaves(dim)) for dim in out.dims)
        shape = tuple(extent(dim) for dim in out.dims)
        called_ = tensor_name("y" if len(outputs) == 1 else f"y{i}", taken)
        made = Output(out.value, (), measures, shape, out.dtype, meaning.node(i))
        targets.append(Target(made, called_))
    w.rows = [atoms_of(out.dims) for out in outputs]
    return w, targets


def _everything(meaning: Meaning) -> list[Value]:
    """Every value that the outputs depend on, elements of index tensors among them."""
    seen: dict[Value, None] = {}
    stack = [out.value for out in meaning.outputs]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen[value] = None
        stack += value.args
        for expr in value.index:
            for name in names(expr):
                if name.startswith(ELEMENT):
                    stack.append(meaning.reader.elements[int(name[1:])].value)
    return list(seen)


# ------------------------------------------------------------------------------------------ tiles


def _axes(w: Lanes, row: Sequence[Atom]) -> list[Axis]:
    return [Axis(w.known[leaf], leaf.size, "") for leaf in row]


def _cut(w: Lanes, row: Sequence[Atom], most: int, apart: frozenset[Atom] = frozenset()) -> Tiling:
    """The innermost axes that are short together go inside; the next one is cut.

    `apart`: axes along which places depend on values: they stay outside, where what is inside of
    them is worth a copy.
    """
    axes = _axes(w, row) or [Axis(ONE, 1, "")]
    free = next((i for i, leaf in enumerate(reversed(row)) if leaf in apart), 0)
    if math.prod(leaf.size for leaf in row[len(row) - free :]) >= WORTH:
        axes, rest = axes[len(row) - free :], axes[: len(row) - free]
    else:
        rest = []
    inner = 0
    size = 1
    while inner < len(axes) - 1 and size * axes[len(axes) - 1 - inner].captured <= most:
        size *= axes[len(axes) - 1 - inner].captured
        inner += 1
    axes = [*rest, *axes]
    at = len(axes) - 1 - inner
    named = [
        replace(axis, name=f"o_{i}" if i < at else f"{LANE}{i - at}") for i, axis in enumerate(axes)
    ]
    return Tiling(tuple(named[:at]), named[at], tuple(named[at + 1 :]))


def _write_output(w: Lanes, root: Block, target: Target, number: int) -> bool:
    """All tiles of one output; returns whether there are axes inside the one that is cut."""
    row = w.rows[number]
    if len(set(row)) != len(row):
        raise PlanError("plan-repeated-axis", f"output {number} runs along one loop twice")
    mark = str(number) if number else ""
    resolver = Resolver(w)
    elements = _elements(w, target.output.value)
    apart = frozenset[Atom]().union(*(resolver.free(value) for value in elements))
    tiling, most, w.room = _cut(w, row, _ROWS), _ROWS, Const(_ROWS)
    if not apart or not _in_rows(w, target, row, tiling):
        tiling, most, w.room = _cut(w, row, w.most, apart), w.most, TILE
    if not tiling.inner:
        _write_tiles(w, root, target, row, tiling, mark)
        return False
    short, long = Block(), Block()
    short.items.append(Note("rows inside of a tile are short"))
    _write_tiles(w, short, target, row, tiling, mark)
    fits: Expr = Binary(BinOp.LE, Name(f"inner{mark}"), Const(most))
    for need in dict.fromkeys(w.needs):
        fits = Binary(BinOp.AND, fits, need)
    w.room = TILE
    long.items.append(Note("a tile is a part of one row"))
    _write_tiles(w, long, target, row, _cut(w, row, 0, apart), f"{mark}x")
    root.items.append(choice(fits, short, long))
    return True


def _in_rows(w: Lanes, target: Target, row: Sequence[Atom], tiling: Tiling) -> bool:
    """Whether an output is nothing but rows that values name, several of which are in a tile."""
    if not tiling.inner:
        return False
    value = _resolved(w, target.output.value, row, tiling)
    return value.dtype is target.output.dtype and row_of(w, value) is not None


def _resolved(w: Lanes, root: Value, row: Sequence[Atom], tiling: Tiling) -> Value:
    """A value over the axes of a tile."""
    w.tiling, w.done, w.domains = tiling, {}, {}
    w.kept, w.together = {}, {}
    w.now = w.frame
    env: dict[Atom, Expr] = {}
    for leaf, axis in zip(row, (*tiling.outer, *tiling.lanes), strict=False):
        index: Expr = Name(axis.name)
        if axis is tiling.cut:
            index = plus(Name("b_from"), index)
        env[leaf] = index
    return Resolver(w).value(root, env)


def _elements(w: Lanes, root: Value) -> list[Value]:
    """The index tensors that an output's places depend on."""
    found: list[Value] = []
    seen: set[Value] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        stack += value.args
        for expr in value.index:
            for name in names(expr):
                if name.startswith(ELEMENT):
                    element = w.meaning.reader.elements[int(name[1:])].value
                    found.append(element)
                    stack.append(element)
    return found


def _by_position(w: Lanes, root: Value) -> bool:
    """Whether places follow from positions by more than integers, as where a tensor is resized.

    Then tiles that take the same indices of the cut axis come one after another: what follows from
    these is worked out once for them.
    """
    return any(not _loads(value) for value in _elements(w, root))


def _loads(value: Value) -> bool:
    return value.op == "load" or any(_loads(arg) for arg in value.args)


def _write_tiles(
    w: Lanes, root: Block, target: Target, row: Sequence[Atom], tiling: Tiling, mark: str
) -> None:
    """The loop over this core's tiles."""
    w.limits, w.needs, w.tables = [], [], {}
    w.height = Name(f"height{mark}")
    w.block = BLOCK if _by_position(w, target.output.value) else TURN
    value = _resolved(w, target.output.value, row, tiling)
    broadcaster = Broadcaster(w)
    value = broadcaster.along(broadcaster.value(value), w.frame)
    together(w, value)
    inner = w.sizes.define(f"inner{mark}", product(axis.size for axis in tiling.inner))
    body = Block(frozenset({0, 1, w.block}), {0: ZERO})
    before = Block(frozenset({0}), {0: ZERO})
    block = Block(frozenset({0, w.block}), {0: ZERO})
    around = (root, before) if w.block == TURN else (root, before, block)
    blocks = Name(f"blocks{mark}")
    if w.block == TURN:
        body.items.append(Assign("line", quotient(Name("piece"), blocks)))
        _cut_out(w, body, tiling, mark, remainder(Name("piece"), blocks), inner)
    else:
        _cut_out(w, block, tiling, mark, Name("block"), inner)
    _stand(body, tiling)
    done = replace(target, output=replace(target.output, value=value, groups=(0,)))
    _store(w, (*around, body), done, _offset(tiling))
    _share(w, mark, tiling, inner)
    share = Name(f"pieces{mark}_per_core")
    before.items.append(Assign("first", Binary(BinOp.MUL, CoreId(), share)))
    stop = least(plus(Name("first"), share), Name(f"pieces{mark}"))
    if w.block == TURN:
        before.items.append(For("piece", Name("first"), stop, ONE, staged(body.items)))
    else:
        before.items.append(Assign("stop", stop))
        lines = w.sizes.define(f"lines{mark}", product(axis.size for axis in tiling.outer))
        done_before = times(Name("block"), lines)
        start = largest(minus(Name("first"), done_before), ZERO)
        end = least(minus(Name("stop"), done_before), lines)
        block.items.append(For("line", start, end, ONE, staged(body.items)))
        each = largest(lines, ONE)
        before.items.append(
            For(
                "block", quotient(Name("first"), each), shares(Name("stop"), each), ONE,
                staged(block.items),
            )
        )  # fmt: skip
    root.items += before.items


def _cut_out(w: Lanes, block: Block, tiling: Tiling, mark: str, number: Expr, inner: Expr) -> None:
    """The range of the cut axis that a tile takes, and how many lanes it has."""
    height = Name(f"height{mark}")
    block.items.append(Assign("b_from", times(number, height)))
    size = w.sizes.define(f"cut{mark}", tiling.cut.size)
    block.items.append(Assign("m", least(height, minus(size, Name("b_from")))))
    block.items.append(Assign("n", times(Name("m"), inner)))


def _stand(body: Block, tiling: Tiling) -> None:
    """The indices outside of a tile."""
    rest: Expr = Name("line")
    for i, axis in reversed(list(enumerate(tiling.outer))):
        index = rest if i == 0 else remainder(rest, largest(axis.size, ONE))
        body.items.append(Assign(axis.name, index))
        rest = quotient(rest, largest(axis.size, ONE))


def _offset(tiling: Tiling) -> Expr:
    inner = product(axis.size for axis in tiling.inner)
    return plus(times(Name("line"), times(tiling.cut.size, inner)), times(Name("b_from"), inner))


def _share(w: Lanes, mark: str, tiling: Tiling, inner: Expr) -> None:
    """Host variables: indices of the cut axis in a tile, tiles, and those of a core."""
    sizes = w.sizes
    lines = sizes.define(f"lines{mark}", product(axis.size for axis in tiling.outer))
    size = sizes.define(f"cut{mark}", tiling.cut.size)
    fair = sizes.define(f"fair{mark}", shares(times(lines, size), ChipFact("vector_cores")))
    if w.room != TILE:  # several turns for each core, so that what is left over is less
        some = largest(shares(fair, _TURNS), least(fair, _FEW_ROWS))
        fair = sizes.define(f"turn{mark}", some)
    most: Expr = quotient(w.room, largest(inner, ONE))
    for limit in dict.fromkeys(w.limits):
        most = least(most, limit)
    height = largest(least(least(most, fair), size), ONE)
    sizes.define(f"height{mark}", height)
    sizes.define(f"blocks{mark}", largest(shares(size, Name(f"height{mark}")), ONE))
    pieces = Binary(BinOp.MUL, lines, shares(size, Name(f"height{mark}")))
    sizes.define(f"pieces{mark}", pieces)
    sizes.define(f"pieces{mark}_per_core", shares(Name(f"pieces{mark}"), Name("cores")))
    sizes.deals[(len(sizes.deals),)] = Deal((), False, f"pieces{mark}", f"pieces{mark}_per_core")


# ------------------------------------------------------------------------------------------ storing


def _store(w: Lanes, path: Path, target: Target, start: Expr) -> None:
    value, output = target.output.value, target.output
    body, count = path[-1], w.count(path, True)
    plain = value.op == "fetch" and value.dtype is output.dtype
    if plain and w.space.wide(value) and dense(w, value.index[0]):
        buffer = tile_buffer(w, buffer_dtype(output.dtype), Part.THROUGH, hint=target.name)
        w.ready(path, value.index[0])
        span = span_of(w, path, value, start_of(w, value.index[0]))
        body.items.append(Load(View(buffer), span, count))
        body.items.append(Store(Span(target.name, start), View(buffer), count))
        return
    row = row_of(w, value) if plain and w.space.wide(value) else None
    if row is not None:
        w.ready(path, value.index[0])
        w.needs.append(Binary(BinOp.LE, row, TILE))
        body.items.append(copy_rows(w, path, value, target.name, start, row))
        return
    if plain and output.dtype is DType.INT64:
        w.ready(path, value.index[0])
        one = w.temp(DType.INT64, False, Part.THROUGH, hint=target.name)
        body.items.append(copies(w, path, value, target.name, start, one))
        return
    ensure(w, path, [value])
    buffer = stored(w, path, target, True)
    body.items.append(Store(Span(target.name, start), View(buffer), count))
