"""Index expressions as vectors: an int32 for every lane of a tile."""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Call,
    Const,
    Expr,
    Name,
    ScalarFn,
    View,
)
from npusmith.ir.nodes import Value as Read
from npusmith.ir.walk import names
from npusmith.plan.block import Block, Part, Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.host import TILE
from npusmith.plan.index import constant, poly, simple
from npusmith.plan.lane_space import LANE, Lanes
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalar_unit import each
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    floating,
    largest,
    minus,
    plus,
    product,
    quotient,
    times,
)
from npusmith.plan.writer import op


def varies(w: Lanes, expr: Expr) -> bool:
    """Whether an index expression differs from lane to lane."""
    return any(
        name.startswith(LANE)
        or (name.startswith(ELEMENT) and w.space.wide(w.elements[int(name[1:])]))
        for name in names(expr)
    )


def int_buffer(w: Lanes) -> str:
    return tile_buffer(w, DType.INT32)


def tile_buffer(
    w: Lanes, dtype: DType, part: Part = Part.SCRATCH, tiles: int = 0, hint: str = ""
) -> str:
    """A buffer for what is being computed, or for so many whole tiles."""
    name = w.temp(dtype, True, part, hint)
    if tiles:
        w.temps[name] = replace(w.temps[name], times=tiles, share=1)
    return name


def digit(w: Lanes, path: Path, lane: int) -> str:
    """For every element that is computed the index along one axis of the tile, from 0; made once.

    In a buffer of a whole tile. What fills a row up has the index of its last element.
    """
    rows, depth = w.tail(w.now), w.depth(lane)
    outer = [other for other in (rows if lane in rows else w.now) if other < lane]
    above = w.depth(outer[-1]) if outer else ZERO
    cols = product(w.size(other) for other in rows) if lane in rows else ZERO
    key = ("digit", depth, above, cols)
    if key not in w.tables:
        with w.whole_tile():
            root = path[0]
            start = (
                positions_in_rows(w, root, cols, w.pitch(rows))[1]
                if lane in rows
                else _positions(w, root)
            )
            whole = divided_index(w, root, start, depth)
            if above != ZERO:
                over = divided_index(w, root, start, above)
                whole = rest_of_index(w, root, whole, over, w.size(lane))
            w.tables[key] = whole
    return w.tables[key]


def _positions(w: Lanes, root: Block) -> str:
    if "positions" not in w.tables:
        result = int_buffer(w)
        root.items.append(op("create_index", (result,), (ZERO,), TILE))
        w.tables["positions"] = result
    return w.tables["positions"]


def positions_in_rows(w: Lanes, root: Block, cols: Expr, pitch: Expr) -> tuple[str, str]:
    """For every element of padded rows its row, and where in the row it stands."""
    return rows_and_columns(w, root, _positions(w, root), cols, pitch)


def rows_and_columns(w: Lanes, root: Block, index: str, cols: Expr, pitch: Expr) -> tuple[str, str]:
    """An index over padded rows as a row and a place in it; what fills a row up is its last."""
    row = divided_index(w, root, index, pitch)
    key = ("columns", index, cols)
    if key not in w.tables:
        column, result = rest_of_index(w, root, index, row, pitch), int_buffer(w)
        last = largest(minus(cols, ONE), ZERO)
        root.items.append(op("mins", (result, column), (last,), TILE))
        w.tables[key] = result
    return row, w.tables[key]


def divided_index(w: Lanes, root: Block, index: str, by: Expr) -> str:
    """An index of every element divided: half a step more is never rounded to a multiple."""
    key = ("quotient", index, by)
    if by == ONE:
        return index
    if key not in w.tables:
        wide, part = w.temp(DType.FLOAT32, True), w.temp(DType.FLOAT32, True)
        inverse = Binary(BinOp.DIV, Const(1.0), floating(largest(by, ONE)))
        w.tables[key] = result = int_buffer(w)
        root.items += [
            op("cast", (wide, index), (), TILE, "rint"),
            op("adds", (wide, wide), (Const(0.5),), TILE),
            op("muls", (part, wide), (inverse,), TILE),
            op("cast", (result, part), (), TILE, "floor"),
        ]
    return w.tables[key]


def rest_of_index(w: Lanes, root: Block, index: str, number: str, by: Expr) -> str:
    """What an index is above a multiple of `by`."""
    back, result = int_buffer(w), int_buffer(w)
    root.items.append(op("muls", (back, number), (by,), TILE))
    root.items.append(op("sub", (result, index, back), (), TILE))
    return result


def offsets(w: Lanes, path: Path, steps: list[tuple[int, Expr]]) -> str:
    """Byte offsets of the elements that are computed, in something with these steps along axes.

    In elements of four bytes: what is narrower is widened before it is gathered. Made once.
    """
    steps = [(lane, step) for lane, step in steps if step != ZERO and w.size(lane) != ONE]
    key = ("offsets", w.now, w.flat, tuple(steps))
    if key not in w.tables:
        w.tables[key] = _made(w, path, steps)
    return w.tables[key]


def raised(w: Lanes, path: Path, table: str, by: Expr) -> str:
    """Offsets so many elements further on: the chip has none below 0, whatever is added to them."""
    result = int_buffer(w)
    path[-1].items.append(op("adds", (result, table), (times(by, Const(4)),), w.count(path, True)))
    return result


def _made(w: Lanes, path: Path, steps: list[tuple[int, Expr]]) -> str:
    root = path[0]
    digits = [digit(w, path, lane) for lane, _ in steps]
    total = ""
    with w.whole_tile():
        for index, (_, step) in zip(digits, steps, strict=True):
            part = int_buffer(w)
            root.items.append(op("muls", (part, index), (times(step, Const(4)),), TILE))
            if total:
                both = int_buffer(w)
                root.items.append(op("add", (both, total, part), (), TILE))
                part = both
            total = part
        if not total:
            total = int_buffer(w)
            root.items.append(op("duplicate", (total,), (ZERO,), TILE))
    return total


def pick(
    w: Lanes, path: Path, kind: Kind, views: tuple[str, str, str], shift: Expr,
    count: Expr | None = None,
) -> None:  # fmt: skip
    """Into a buffer the elements of another that stand at the offsets of a table, from `shift` on.

    `shift` in elements; the table holds bytes of elements of four bytes. `count`: how many, if not
    those that are computed.
    """
    result, source, table = views
    count = w.count(path, True) if count is None else count
    if kind is not Kind.LONG:
        path[-1].items.append(op("gather", views, (simple(times(shift, Const(4))),), count))
        return
    at = Name(w.fresh("element_"))
    offset = quotient(Read(View(table, at)), Const(4))
    each(path, at, count, [], result, Read(View(source, plus(shift, offset))))


Vector = str | Expr  # a buffer with an int32 for each lane, or what is the same for all


def vector(w: Lanes, path: Path, expr: Expr) -> Vector:
    """An index expression for every lane."""
    if not varies(w, expr):
        return w.scalar(path, expr)
    by_values = reads_elements(expr)
    if by_values:
        path = path[: w.level(path, w.groups(expr)) + 1]
    key, here = (w.now, expr), path[-1].indices
    if key not in here:
        here[key] = (_summed if by_values else _vector)(w, path, expr)
    return here[key]


def reads_elements(expr: Expr) -> bool:
    return any(name.startswith(ELEMENT) for name in names(expr))


def _summed(w: Lanes, path: Path, expr: Expr) -> str:
    """The terms of a sum, each where it is known and along its own axes, and their total."""
    own = tuple(sorted(w.spread(expr)))
    if own != w.now:
        with w.among(own):
            alone = vector(w, path, expr)
        assert isinstance(alone, str)
        result = int_buffer(w)
        table = offsets(w, path, [(lane, w.depth(lane, own)) for lane in own])
        pick(w, path, Kind.INT, (result, alone, table), ZERO)
        return result
    parts: dict[tuple[int, bool, tuple[int, ...]], Expr] = {}
    for factors, number in poly(expr).terms:
        term = times(product(factors), Const(number))
        level = w.level(path, w.groups(term)) if varies(w, term) else len(path) - 1
        key = (level, not varies(w, term), tuple(sorted(w.spread(term))))
        parts[key] = plus(parts.get(key, ZERO), term)
    if len(parts) < 2:
        return _vector(w, path, expr)
    total: Vector | None = None
    for key in sorted(parts):
        here = path[: key[0] + 1]
        part = vector(w, here, parts[key])
        total = part if total is None else _join(w, here, "add", total, part)
    assert isinstance(total, str)
    return total


def take(w: Lanes, path: Path, value: Value) -> None:
    """Elements of a value that is held on chip, or one of them."""
    (operand,) = value.args
    w.ready(path, value.index[0])
    if not w.space.wide(value):
        one, source = w.like(value), View(w.held(path, operand), w.scalar(path, value.index[0]))
        each(path, ZERO, ONE, [], one, Read(source))
        path[-1].buffers[value] = one
        return
    table = vector(w, path, (poly(value.index[0]) * constant(4)).expr())
    assert isinstance(table, str)
    result = w.stored.pop(value, None) or w.like(value)
    pick(w, path, value.kind, (result, w.held(path, operand), table), ZERO)
    path[-1].buffers[value] = result


def _vector(w: Lanes, path: Path, expr: Expr) -> str:
    if isinstance(expr, Name) and expr.id.startswith(LANE):
        return digit(w, path, int(expr.id[1:]))
    if isinstance(expr, Name):
        return _element(w, path, w.elements[int(expr.id[1:])])
    if isinstance(expr, Call):
        one, two = (vector(w, path, arg) for arg in expr.args)
        return _join(w, path, "min" if expr.fn is ScalarFn.MIN else "max", one, two)
    assert isinstance(expr, Binary), expr
    if expr.op is BinOp.MUL and (factors := _scaled(w, expr)) is not None:
        one, two = vector(w, path, factors[0]), w.scalar(path, factors[1])
        return _join(w, path, "mul", one, two)
    one, two = vector(w, path, expr.left), vector(w, path, expr.right)
    match expr.op:
        case BinOp.ADD:
            return _join(w, path, "add", one, two)
        case BinOp.SUB:
            back = (
                _join(w, path, "mul", two, Const(-1)) if isinstance(two, str) else minus(ZERO, two)
            )
            return _join(w, path, "add", one, back)
        case BinOp.MUL:
            return _join(w, path, "mul", one, two)
        case BinOp.FLOORDIV | BinOp.MOD if isinstance(one, str) and not isinstance(two, str):
            return _divided(w, path, one, two, expr.op)
        case _:
            raise PlanError("plan-data-movement", "an index divides by another")


def _scaled(w: Lanes, expr: Expr) -> tuple[Expr, Expr] | None:
    """A product of one factor that differs along the tile, and of the others."""
    terms = poly(expr).terms
    if len(terms) != 1:
        return None
    factors, number = terms[0]
    along = [factor for factor in factors if varies(w, factor)]
    if len(along) != 1:
        return None
    rest = [factor for factor in factors if factor is not along[0]]
    return along[0], product((*rest, Const(number)))


def _element(w: Lanes, path: Path, value: Value) -> str:
    held = w.held(path, value)
    if value.kind is Kind.INT:
        return held
    result = int_buffer(w)
    path[-1].items.append(op("cast", (result, held), (), w.count(path, True), "rint"))
    return result


def _join(w: Lanes, path: Path, name: str, one: Vector, two: Vector) -> str:
    if not isinstance(one, str):
        one, two = two, one
    assert isinstance(one, str)
    result, count = int_buffer(w), w.count(path, True)
    if isinstance(two, str):
        path[-1].items.append(op(name, (result, one, two), (), count))
    else:
        path[-1].items.append(op(f"{name}s", (result, one), (two,), count))
    return result


def _divided(w: Lanes, path: Path, a: str, b: Expr, kind: BinOp) -> str:
    """Floor division of int32: in float32, then put right by at most one either way."""
    count = w.count(path, True)

    def add(name: str, views: tuple[str, ...], *scalars: Expr, mode: str = "") -> None:
        path[-1].items.append(op(name, views, scalars, count, mode))

    wide, part = w.temp(DType.FLOAT32, True), w.temp(DType.FLOAT32, True)
    whole, rest, back, off = (int_buffer(w) for _ in range(4))
    add("cast", (wide, a), mode="rint")
    add("muls", (part, wide), Binary(BinOp.DIV, Const(1.0), floating(b)))
    add("cast", (whole, part), mode="floor")
    add("muls", (back, whole), minus(ZERO, b))
    add("add", (rest, a, back))  # from -b to 2b - 1
    add("shift_right", (off, rest), Const(31))  # -1 where it is negative
    add("add", (whole, whole, off))
    add("muls", (back, off), minus(ZERO, b))
    add("add", (rest, rest, back))  # from 0 to 2b - 1
    add("adds", (back, rest), minus(ZERO, b))
    add("shift_right", (off, back), Const(31))  # -1 where it is less than b
    add("adds", (off, off), ONE)
    if kind is BinOp.FLOORDIV:
        add("add", (whole, whole, off))
        return whole
    add("muls", (back, off), minus(ZERO, b))
    add("add", (rest, rest, back))
    return rest


def place(w: Lanes, path: Path, value: Value) -> None:
    """An index as a float for every lane."""
    w.ready(path, value.index[0])
    found = vector(w, path, value.index[0])
    assert isinstance(found, str)
    result = w.stored.pop(value, None) or w.temp(DType.FLOAT32, True)
    path[-1].items.append(op("cast", (result, found), (), w.count(path, True), "rint"))
    path[-1].buffers[value] = result
