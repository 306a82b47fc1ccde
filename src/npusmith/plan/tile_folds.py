"""Reductions along axes of a tile: its elements become rows, and every row one number.

The row instructions want each row from a multiple of 32 bytes on. Rows that stand so in the tile
are folded where they are; others (a middle axis, rows of 49 elements) are brought there by one
gather, by a table of offsets that is made once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Choice,
    Const,
    Expr,
    For,
    Name,
    Op,
    Stage,
    StageKind,
    Stmt,
    View,
)
from npusmith.plan.axes import Atom, leaves
from npusmith.plan.block import Block, Path
from npusmith.plan.dag import Kind, Value, reachable
from npusmith.plan.host import TILE
from npusmith.plan.index_vectors import (
    divided_index,
    int_buffer,
    pick,
    positions_in_rows,
    rest_of_index,
    rows_and_columns,
    tile_buffer,
)
from npusmith.plan.lane_space import Domain, Lanes
from npusmith.plan.scalars import (
    ONE,
    ZERO,
    largest,
    least,
    minus,
    plus,
    product,
    quotient,
    times,
)
from npusmith.plan.writer import op
from npusmith.target.intrinsics import LONGEST_ROW, REPEAT, is_short_row

FOLDS = ("sum", "max", "min")
LONGEST = 4096  # elements of a row, as captured
_LONG, _SHARE = 64, 4  # rows of so many elements need no more than this part of a tile beside
_ROOMY = 1024  # elements of a tile of which that part has room for 8 rows
_ORDERED = 1 << 10  # rows in order weigh more than any number of reductions
_DOUBLINGS = 13  # that lay out as many rows as any tile has
_ROW = 8  # elements of 32 bytes: rows begin at multiples of it


def foldable(value: Value, row: Sequence[Atom]) -> bool:
    """Whether a reduction along these axes can be one along a tile."""
    size = math.prod(leaf.size for leaf in row)
    return value.text in FOLDS and value.kind is Kind.FLOAT and is_foldable(size)


def is_foldable(elements: int) -> bool:
    """Whether rows of so many elements are worth a tile, and can be folded in one."""
    return is_short_row(elements) and elements <= LONGEST


def reserve(w: Lanes, domain: Domain, rows: Domain) -> None:
    """What the host has to test, and how high a tile may be, for rows of this part of a domain."""
    cols = product(w.size(lane) for lane in rows)
    stands = stand(w, domain, rows)
    w.widest = max(w.widest, w.captured(lane for lane in domain if lane))
    head = tuple(lane for lane in domain if lane not in rows)
    room = w.area(domain) if stands else times(w.area(head), w.pitch(rows))
    w.needs.append(Binary(BinOp.GT, cols, ZERO))
    w.needs.append(Binary(BinOp.LE, room, TILE))
    whole = Binary(BinOp.EQ, Binary(BinOp.MOD, cols, Const(REPEAT)), ZERO)
    w.needs.append(Binary(BinOp.LE, cols, Const(LONGEST)))
    w.needs.append(Binary(BinOp.OR, Binary(BinOp.LE, cols, Const(LONGEST_ROW)), whole))
    if stands and head and w.tail(domain) != rows:
        w.needs.append(Binary(BinOp.EQ, Binary(BinOp.MOD, cols, Const(_ROW)), ZERO))
    if 0 in domain:
        w.limits.append(quotient(TILE, largest(room, ONE)))


def stand(w: Lanes, domain: Domain, rows: Domain) -> bool:
    """Whether rows stand in the tile as the instructions want them."""
    head = domain[: len(domain) - len(rows)]
    if head + rows != domain or w.tail(head):
        return False
    if domain == rows:
        return not w.tail(domain)  # shorter rows of theirs may be padded
    return w.tail(domain) == rows or (even(w, rows) and not w.tail(domain))


def even(w: Lanes, rows: Domain) -> bool:
    """Whether rows are whole blocks: as captured, where others have a program of their own."""
    numbers = all(isinstance(w.size(lane), Const) for lane in rows)
    return w.captured(rows) % _ROW == 0 and (numbers or w.alone or w.form.even)


def longest(roots: Sequence[Value], row: Sequence[Atom] = ()) -> int:
    """Elements of the longest rows that are folded along axes that an output does not have."""
    found = 1
    for value in reachable(roots):
        own = [leaf for leaf in leaves(value.axes) if value.op == "reduce" and leaf not in row]
        if own and foldable(value, own):
            found = max(found, math.prod(leaf.size for leaf in own))
    return found


def padded(w: Lanes, roots: Sequence[Value], row: Sequence[Atom]) -> Domain:
    """The innermost axes of a tile that rows of 32 bytes have to be made of, for most reductions.

    Rows that are put in order first: these stand nowhere else.

    `row`: the axes inside of the one that is cut.
    """
    found: Counter[Domain] = Counter()
    for value in reachable(roots):
        own = leaves(value.axes) if value.op in ("reduce", "order") else ()
        if value.op == "reduce" and not foldable(value, own):
            continue
        if own and set(own) == set(row[len(row) - len(own) :]):
            lanes = tuple(range(1 + len(row) - len(own), 1 + len(row)))
            found[lanes] += 1 if value.op == "reduce" else _ORDERED
    return max(found, key=lambda rows: (found[rows], len(rows)), default=())


def fold(w: Lanes, path: Path, value: Value) -> None:
    """Every row of the operand to one number: the sum, the largest or the smallest."""
    (operand,) = value.args
    own, rows = w.domain(operand), value.parts
    cols = product(w.size(lane) for lane in rows)
    count = w.count(path, w.space.wide(value))
    source = w.held(path, operand)
    result = w.stored.pop(value, None) or w.like(value, hint=f"row_{value.text}")
    if not stand(w, own, rows):
        with w.among(own):
            table = _table(w, path[0], own, rows)
            with w.whole_tile():
                apart = tile_buffer(w, DType.FLOAT32)
            whole = times(count, w.pitch(rows))
            pick(w, path, Kind.FLOAT, (apart, source, table), ZERO, whole)
            source = apart
    spare = _spare(w, rows, tuple(lane for lane in own if lane not in rows))
    path[-1].items.append(op(f"{value.text}_rows", (result, source, spare), (cols,), count))
    path[-1].buffers[value] = result


def spreads(w: Lanes, own: Domain, domain: Domain) -> bool:
    """Whether numbers of rows are laid along these by the instruction for it."""
    rows = domain[len(own) :]
    return bool(own) and own == domain[: len(own)] and stand(w, domain, rows)


def spread(w: Lanes, path: Path, value: Value, result: str) -> None:
    """Along every row its number, where `spreads` says so."""
    (operand,) = value.args
    own, domain = w.domain(operand), w.domain(value)
    rows = domain[len(own) :]
    with w.among(own):
        count = w.count(path, True)
    cols = product(w.size(lane) for lane in rows)
    views = (result, w.held(path, operand), _spare(w, rows, own))
    path[-1].items.append(op("spread_rows", views, (cols,), count))


def _spare(w: Lanes, rows: Domain, head: Domain) -> str:
    """What row instructions need beside: 16 elements for a row, and a sixth of it."""
    with w.whole_tile():
        spare = tile_buffer(w, DType.FLOAT32)
    if w.alone and w.captured(rows) >= _LONG:
        w.needs.append(Binary(BinOp.GE, TILE, Const(_ROOMY)))
        w.temps[spare] = replace(w.temps[spare], share=_SHARE)
        w.needs.append(Binary(BinOp.GE, product(w.size(lane) for lane in rows), Const(_LONG)))
        cols = product(w.size(lane) for lane in rows)
        more = quotient(largest(minus(cols, Const(_LONG)), ZERO), Const(5))
        most = minus(quotient(TILE, Const(_SHARE)), Const(16 * _ROW))
        each = times(w.area(head), plus(more, Const(16)))
        w.needs.append(Binary(BinOp.LE, each, most))
        if 0 in head:
            w.limits.append(quotient(most, largest(each, ONE)))
    return spare


def repeats(w: Lanes, own: Domain, domain: Domain) -> bool:
    """Whether a value is one row of a domain, and the same in all of them."""
    return bool(own) and stand(w, domain, own) and len(own) < len(domain)


def repeat(w: Lanes, path: Path, value: Value, result: str) -> None:
    """One row under itself as often as there are rows: every copy doubles what is there."""
    (operand,) = value.args
    own, domain = w.domain(operand), w.domain(value)
    head = domain[: len(domain) - len(own)]
    cols, pitch = product(w.size(lane) for lane in own), w.pitch(own)
    number = f"doublings{len(w.sizes.defined)}"
    most = product(w.height if lane == 0 else w.size(lane) for lane in head)
    rows = [Choice(Binary(BinOp.LT, Const(1 << i), most), ONE, ZERO) for i in range(_DOUBLINGS)]
    turns: Expr = ZERO
    for row in rows:
        turns = plus(turns, row)
    w.sizes.define(number, turns)
    whole, have = w.count(path, True), Name("have")
    one = Const(1) if value.kind is Kind.INT else Const(1.0)
    rest = least(have, largest(minus(whole, have), ZERO))
    double = Op("muls", (View(result, have), View(result)), (one,), "", rest)
    body: list[Stmt] = [] if w.tail(domain) != own else [op("duplicate", (result,), (one,), pitch)]
    body += [
        op("muls", (result, w.held(path, operand)), (one,), cols),
        Assign("have", pitch if w.tail(domain) == own else cols),
        For("turn", ZERO, Name(number), ONE, (double, Assign("have", times(have, Const(2))))),
    ]
    path[-1].items.append(Stage(StageKind.COMPUTE, tuple(body)))


# ------------------------------------------------------------------------------------------- table


def _table(w: Lanes, root: Block, domain: Domain, rows: Domain) -> str:
    """Byte offsets of the elements of a tile, by rows at multiples of 32 bytes; made once.

    What fills a row up is its last element once more.
    """
    key = ("rows", domain, rows)
    if key not in w.tables:
        with w.whole_tile():
            w.tables[key] = _made(w, root, domain, rows)
    return w.tables[key]


def _made(w: Lanes, root: Block, domain: Domain, rows: Domain) -> str:
    cols = product(w.size(lane) for lane in rows)
    row, column = positions_in_rows(w, root, cols, w.pitch(rows))
    head = tuple(lane for lane in domain if lane not in rows)
    total = _stepped(w, root, column, rows, domain)
    inner = w.tail(head)  # rows are themselves in rows
    if inner:
        size = product(w.size(lane) for lane in inner)
        line, place = rows_and_columns(w, root, row, size, w.pitch(inner))
        total = _sum(w, root, total, _stepped(w, root, place, inner, domain))
        row, head = line, head[: len(head) - len(inner)]
    if head:
        total = _sum(w, root, total, _stepped(w, root, row, head, domain))
    result = int_buffer(w)
    root.items.append(op("muls", (result, total), (Const(4),), TILE))
    return result


def _stepped(w: Lanes, root: Block, index: str, lanes: Domain, domain: Domain) -> str:
    """A row-major index along some axes, as a place in what runs along all of a domain."""
    runs: list[tuple[Expr, Expr]] = []  # size and step of what stands together
    for lane in lanes:
        size, step = w.size(lane), w.depth(lane, domain)
        if runs and _together(w, lanes, lane, domain):
            runs[-1] = times(runs[-1][0], size), step
        else:
            runs.append((size, step))
    total, rest = "", index
    for at, (_, step) in enumerate(runs):
        below = product(size for size, _ in runs[at + 1 :])
        own = rest
        if at < len(runs) - 1:
            own = divided_index(w, root, rest, below)
            rest = rest_of_index(w, root, rest, own, below)
        part = int_buffer(w)
        root.items.append(op("muls", (part, own), (step,), TILE))
        total = _sum(w, root, total, part) if total else part
    return total


def _sum(w: Lanes, root: Block, one: str, two: str) -> str:
    both = int_buffer(w)
    root.items.append(op("add", (both, one, two), (), TILE))
    return both


def _together(w: Lanes, lanes: Domain, lane: int, domain: Domain) -> bool:
    """Whether an axis stands right inside the one before it in both orders, unpadded."""
    before, rows = lanes[lanes.index(lane) - 1], w.tail(domain)
    padded = lane in rows and before not in rows
    return not padded and domain.index(lane) == domain.index(before) + 1
