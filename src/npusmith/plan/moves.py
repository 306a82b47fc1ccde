"""Operations of core ATen that move elements, as index maps: rows of the table of operations.

What an element of the result is, is said by where it stands in the operand: `at` substitutes index
expressions (index.py) for axes. Nothing is moved here; the kernel reads its inputs at these places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npusmith.ir.nodes import Const, Expr
from npusmith.plan import slices
from npusmith.plan.axes import Dim, extent
from npusmith.plan.bound_axes import beside
from npusmith.plan.dag import EXACT, Kind, Value
from npusmith.plan.index import clamp, floor_div, modulo, simple
from npusmith.plan.reader import Joined, Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ONE, ZERO, largest, least, minus, plus, times
from npusmith.plan.slices import edges, place_on, with_dim
from npusmith.plan.symbolic_numbers import SYMBOLIC
from npusmith.plan.views import convert, element, new_axes
from npusmith.task.graph import Argument, Ref

# ------------------------------------------------------------------------------------- movement


def inside(r: Reader, expr: Expr, size: Expr, value: Value, other: Value) -> Value:
    """`value` where 0 <= expr < size, `other` elsewhere."""
    at = r.position(expr)
    within = r.dag.select(r.dag.compare("lt", at, r.position(size)), value, other)
    return r.dag.select(r.dag.compare("ge", at, r.position(ZERO)), within, other)


def flipped(r: Reader, x: Tensor, chosen: Sequence[int]) -> Tensor:
    maps = {
        at: minus(minus(r.size(x.dims[at]), ONE), r.index(x.dims[at]))
        for at in chosen
        if x.dims[at]
    }
    return r.placed(x, x.dims, maps)


def _tensors(r: Reader) -> list[Tensor]:
    items = r.argument(0)
    if not isinstance(items, tuple):
        r.refuse("plan-unsupported-op", "a list of tensors was expected")
    return [r.tensor(item) for item in items if isinstance(item, Ref)]


def cat(r: Reader) -> Result:
    """Pieces one behind the other: of each the place is clamped, and the piece selected."""
    assert r.node is not None
    every = _tensors(r)
    found = [x for x in every if not (len(x.dims) == 1 and extent(x.dims[0]) == 0)] or every
    tensors = r.apart([x for x in found if all(extent(dim) for dim in x.dims)] or found)
    if len(tensors) == 1:
        return tensors[0]
    at = r.dim(r.argument(1, "dim", 0), len(tensors[0].dims))
    total: Expr = ZERO
    for x in tensors:
        total = plus(total, r.size(x.dims[at]))
    new = r.axis(r.node.shape[at], simple(total))
    return joined(r, tensors, at, new)


def joined(r: Reader, tensors: Sequence[Tensor], at: int, new: Dim) -> Tensor:
    """Tensors side by side along a dimension, which is `new` then."""
    here = r.index(new)
    start: Expr = ZERO
    value: Value | None = None
    rest = [(*x.dims[:at], (), *x.dims[at + 1 :]) for x in tensors]
    dims = r.broadcast(
        *(Tensor(x.value, row, x.dtype) for x, row in zip(tensors, rest, strict=True))
    )
    dims = with_dim(dims, at, new)
    pieces: list[tuple[Tensor, Expr]] = []
    for x in tensors:
        size = r.size(x.dims[at])
        pieces.append((Tensor(_as(r, x), with_dim(dims, at, x.dims[at]), r.dtype), start))
        place = clamp(minus(here, start), ZERO, largest(minus(size, ONE), ZERO))
        own = _as(r, r.placed(x, dims, {at: place}))
        if value is None:
            value = own
        else:
            value = r.dag.select(
                r.dag.compare("lt", r.position(here), r.position(start)), value, own
            )
        start = plus(start, size)
    assert value is not None
    r.joined[value] = Joined(dims, at, tuple(pieces))
    return Tensor(value, dims, r.dtype)


def roll(r: Reader) -> Result:
    """What is moved over the end stands in front: a join of two slices."""
    x = r.tensor(r.argument(0))
    dims = r.argument(2, "dims", ())
    chosen = r.integers(dims) if dims else (0,)
    for (number, shift), dim in zip(r.measures(r.argument(1)), chosen, strict=True):
        at = r.dim(dim, len(x.dims)) if x.dims else 0
        if not x.dims or not x.dims[at]:
            continue
        own, have, size = x.dims[at], extent(x.dims[at]), r.size(x.dims[at])
        if not 0 < abs(number) < have:
            r.fix(own, now=True)
            number %= max(have, 1)
            shift = Const(number)
        if not number:
            continue
        r.hold(own, shift)
        first = (number % have, shift if number > 0 else plus(size, shift))
        edge = (have - first[0], simple(minus(size, first[1])))
        for piece in (edge[1], first[1]):  # of none, the first place may lie behind the tensor
            r.require(piece, ONE)
        pieces = slices.cut(r, x, at, edge, (have, size)), slices.cut(r, x, at, (0, ZERO), edge)
        x = joined(r, pieces, at, own)
    return x


def _as(r: Reader, x: Tensor) -> Value:
    """In what the result is computed in."""
    if r.dtype is x.dtype and x.value.kind is Kind.FLOAT:
        return x.value
    if r.dtype.is_float:
        return r.floating(x)
    return convert(r, x, r.dtype)


def stack(r: Reader) -> Result:
    assert r.node is not None
    tensors = _tensors(r)
    at = r.dim(r.argument(1, "dim", 0), len(tensors[0].dims) + 1)
    one: Dim = ()
    wider = r.apart([Tensor(x.value, (*x.dims[:at], one, *x.dims[at:]), x.dtype) for x in tensors])
    return joined(r, wider, at, r.axis(len(tensors)))


def constant_pad(r: Reader) -> Result:
    assert r.node is not None
    x = r.tensor(r.argument(0))
    sizes = r.measures(r.argument(1))
    fill = element(r, r.argument(2, "value", 0.0), x.dtype)
    dims, maps, guards = x.dims, {}, []
    for i in range(len(sizes) // 2):
        at = len(x.dims) - 1 - i
        (_, left), (_, right) = sizes[2 * i : 2 * i + 2]
        if (left, right) == (ZERO, ZERO):
            continue
        size = r.size(x.dims[at])
        if extent(x.dims[at]) == 0 or r.node.shape[at] == 0:
            r.fix(x.dims[at])
        new = r.axis(r.node.shape[at], simple(plus(size, plus(left, right))))
        dims = with_dim(dims, at, new)
        place = minus(r.index(new), left)
        maps[at] = clamp(place, ZERO, largest(minus(size, ONE), ZERO))
        guards.append((place, size))
    moved = r.placed(x, dims, maps)
    value = moved.value
    for place, size in guards:
        value = inside(r, place, size, value, fill)
    return Tensor(value, dims, x.dtype)


def unfold(r: Reader) -> Result:
    assert r.node is not None
    x = r.tensor(r.argument(0))
    at = r.dim(r.argument(1), len(x.dims)) if x.dims else 0
    size, step = (r.integers(r.argument(i))[0] for i in (2, 3))
    if not x.dims:
        return Tensor(x.value, ((),), x.dtype)
    count = plus(floor_div(minus(r.size(x.dims[at]), Const(size)), Const(step)), ONE)
    window, inner = r.axis(r.node.shape[at], simple(count)), r.axis(size)
    dims = (*with_dim(x.dims, at, window), inner)
    place = plus(times(r.index(window), Const(step)), r.index(inner))
    return r.placed(x, dims, {at: place})


def diagonal(r: Reader) -> Result:
    assert r.node is not None
    x = r.tensor(r.argument(0))
    offset = r.integers(r.argument(1, "offset", 0))[0]
    one, two = (r.dim(r.argument(i, f"dim{i - 1}", i - 2), len(x.dims)) for i in (2, 3))
    rows, columns = (
        plus(r.size(x.dims[i]), Const(min(lost, 0))) for i, lost in ((one, offset), (two, -offset))
    )
    if r.node.shape[-1]:
        r.require(rows, ZERO)
        r.require(columns, ZERO)
        new = r.axis(r.node.shape[-1], least(rows, columns))
    else:
        for i in (one, two):
            r.fix(x.dims[i])
        new = r.axis(0)
    dims = (*(dim for i, dim in enumerate(x.dims) if i not in (one, two)), new)
    here = r.index(new)
    maps = {one: plus(here, Const(max(-offset, 0))), two: plus(here, Const(max(offset, 0)))}
    return r.placed(x, dims, maps)


def arange(r: Reader) -> Result:
    """start, start + step, ...: integers, or floats that float32 holds."""
    assert r.node is not None
    size, (start, stop) = r.node.shape[0], (r.argument(0), r.argument(1))
    step = r.number(r.argument(2, "step", 1))
    first, last = _integer(r, start), _integer(r, stop)
    if first is None or last is None or step != int(step):
        new = r.axis(size)
        value = r.dag.shifted(r.dag.scaled(r.position(r.index(new)), step), r.number(start))
        return Tensor(value, (new,), r.dtype)
    by = int(step)
    span = minus(last, first) if by > 0 else minus(first, last)
    count = simple(floor_div(plus(span, Const(abs(by) - 1)), Const(abs(by))))
    if isinstance(count, Const):
        new = r.axis(size)
    else:
        r.require(span, ZERO)
        new = r.axis(size, count)
    return Tensor(r.position(plus(times(r.index(new), Const(by)), first)), (new,), r.dtype)


def _integer(r: Reader, number: Argument) -> Expr | None:
    """A whole number as an expression over sizes."""
    if isinstance(number, SYMBOLIC):
        return r.formula(number) if number.size.factor is None else None
    plain = r.number(number)
    return Const(int(plain)) if plain == int(plain) else None


def slice_scatter(r: Reader) -> Result:
    """`x` with a slice of it replaced."""
    x, y = r.apart([r.tensor(r.argument(0)), r.tensor(r.argument(1))])
    at = r.dim(r.argument(2, "dim", 0), len(x.dims))
    start, stop = r.argument(3, "start"), r.argument(4, "end")
    by = r.integers(r.argument(5, "step", 1))[0]
    (_, first), (_, last) = edges(r, x.dims[at], start, stop)
    here = r.index(x.dims[at])
    back = floor_div(minus(here, first), Const(by))
    top = largest(minus(r.size(y.dims[at]), ONE), ZERO)
    dims = with_dim(y.dims, at, x.dims[at])
    new = _as(r, r.placed(y, dims, {at: clamp(back, ZERO, top)}))
    dims = r.broadcast(x, Tensor(new, dims, x.dtype))
    old = _as(r, x)
    if by != 1:
        off = r.position(modulo(minus(here, first), Const(by)))
        new = r.dag.select(r.dag.compare("eq", off, r.dag.const(0.0)), new, old)
    at_most = r.dag.compare("lt", r.position(here), r.position(last))
    new = r.dag.select(at_most, new, old)
    at_least = r.dag.compare("ge", r.position(here), r.position(first))
    return Tensor(r.dag.select(at_least, new, old), dims, r.dtype)


def select_scatter(r: Reader) -> Result:
    """`x` with one index of a dimension replaced."""
    x, y = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    at = r.dim(r.argument(2), len(x.dims))
    if extent(x.dims[at]) == 0:
        r.fix(x.dims[at], now=True)
    here = place_on(r, x.dims[at], r.argument(3))
    one: Dim = ()
    wide = Tensor(y.value, (*y.dims[:at], one, *y.dims[at:]), y.dtype)
    (x, wide), dims = r.aligned(x, wide)
    hit = r.dag.compare("eq", r.position(r.index(x.dims[at])), r.position(here))
    return Tensor(r.dag.select(hit, _as(r, wide), _as(r, x)), dims, r.dtype)


def copy(r: Reader) -> Result:
    """The second tensor, in the shape and type of the first."""
    x, y = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    if x.dtype is not y.dtype:
        r.refuse("plan-dtype", "a copy into another element type is not supported")
    shape = Tensor(r.dag.const(0.0), x.dims, x.dtype)
    (y, _), dims = r.aligned(y, shape)
    return Tensor(y.value, dims, y.dtype)


def empty(r: Reader) -> Result:
    """Contents that nobody reads."""
    return Tensor(r.dag.const(0.0), new_axes(r, r.argument(0, "size")), r.dtype)


# ------------------------------------------------------------------------------- index tensors


def index_expr(r: Reader, x: Tensor) -> Expr:
    """An element of an index tensor as an index expression."""
    found = as_expr(r, x.value)
    return found if found is not None else r.element(x)


def as_expr(r: Reader, value: Value) -> Expr | None:
    """Values that are integer arithmetic on positions, as such."""
    match value.op:
        case "index":
            return r.index(value.axes)
        case "count" if not value.number:
            return r.size(value.axes)
        case "const" if value.number == int(value.number):
            return Const(int(value.number))
        case "to_int" | "to_float" | "to_long":
            return as_expr(r, value.args[0])
        case "abs":
            found = as_expr(r, value.args[0])
            return None if found is None else largest(found, minus(ZERO, found))
        case "add" | "sub" | "mul" | "max" | "min" | "floordiv" | "mod":
            left, right = (as_expr(r, arg) for arg in value.args)
            if left is None or right is None:
                return None
            join = {
                "add": plus, "sub": minus, "mul": times, "max": largest, "min": least,
                "floordiv": floor_div, "mod": modulo,
            }[value.op]  # fmt: skip
            return join(left, right)
        case _:
            return None


def _wrapped(r: Reader, x: Tensor, size: Expr) -> Expr:
    """An index that may be negative."""
    expr = index_expr(r, x)
    if r.reads_element(expr):
        return plus(expr, times(size, clamp(minus(ZERO, expr), ZERO, ONE)))
    return expr


def _whole(r: Reader, x: Tensor, at: int, index: Tensor) -> None:
    """Indices from values are float32. Those made of the model's numbers have to be inside of every
    row that is served: where that does not show, or nothing tells how the numbers follow from
    sizes, the captured ones alone are."""
    place = index_expr(r, index)
    if r.reads_element(place):
        r.limit(x.dims[at], EXACT)
        return
    reach = r.value_range(place)
    if reach is not None:
        r.require(minus(r.size(x.dims[at]), ONE), reach[1])
    low = simple(reach[0]) if reach is not None else None
    if r.graph.symbolic is None or low is None or (isinstance(low, Const) and low.value < 0):
        r.fix(x.dims[at])
        return
    r.require(low, ZERO)
    r.hold(x.dims[at], ONE)


def index_select(r: Reader) -> Result:
    x, index = r.tensor(r.argument(0)), r.tensor(r.argument(2))
    if not x.dims:
        return Tensor(x.value, (), x.dtype)
    at = r.dim(r.argument(1), len(x.dims))
    _whole(r, x, at, index)
    new = index.dims[0] if index.dims else ()
    x = beside(r, x, (i for i in range(len(x.dims)) if i != at), index.dims)
    return r.placed(x, with_dim(x.dims, at, new), {at: index_expr(r, index)})


def embedding(r: Reader) -> Result:
    table, index = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    _whole(r, table, 0, index)
    table = beside(r, table, range(1, len(table.dims)), index.dims)
    return r.placed(table, (*index.dims, *table.dims[1:]), {0: index_expr(r, index)})


def index(r: Reader) -> Result:
    """`x[i, :, j]`: index tensors for some dimensions, broadcast against each other."""
    x = r.tensor(r.argument(0))
    asked = r.argument(1)
    items = asked if isinstance(asked, tuple) else (asked,)
    chosen = [i for i, item in enumerate(items) if isinstance(item, Ref)]
    given, dims = r.aligned(*(r.tensor(items[i]) for i in chosen))
    found = dict(zip(chosen, given, strict=True))
    if any(item.dtype.value in ("bool", "uint8") for item in found.values()):
        r.refuse(
            "plan-data-movement", "an index of bools has a result whose size depends on values"
        )
    maps = {}
    for i, item in found.items():
        _whole(r, x, i, item)
        maps[i] = _wrapped(r, item, r.size(x.dims[i]))
    x = beside(r, x, (i for i in range(len(x.dims)) if i not in found), dims)
    if chosen == list(range(chosen[0], chosen[-1] + 1)):
        result = (*x.dims[: chosen[0]], *dims, *x.dims[chosen[-1] + 1 :])
    else:
        result = (*dims, *(dim for i, dim in enumerate(x.dims) if i not in found))
    return r.placed(x, result, maps)


def gather(r: Reader) -> Result:
    x, index = r.tensor(r.argument(0)), r.tensor(r.argument(2))
    if not x.dims:
        return Tensor(x.value, (), x.dtype)
    at = r.dim(r.argument(1), len(x.dims))
    maps = {}
    for i, dim in enumerate(x.dims):
        if i == at:
            maps[i] = index_expr(r, index)
        elif dim is not index.dims[i]:
            if extent(dim) != extent(index.dims[i]):
                r.fix(dim)
            maps[i] = r.index(index.dims[i])
    _whole(r, x, at, index)
    return r.placed(x, index.dims, maps)


def take_along_dim(r: Reader) -> Result:
    """Elements of rows that indices name; beyond a row they begin again at its other end."""
    x, index = r.apart([r.tensor(r.argument(0)), r.tensor(r.argument(1))])
    if r.argument(2, "dim") is None:
        x, index = (replace(t, dims=(tuple(a for dim in t.dims for a in dim),)) for t in (x, index))
    at = r.dim(r.argument(2, "dim") or 0, len(x.dims))
    _whole(r, x, at, index)
    rest = (replace(t, dims=with_dim(t.dims, at, ())) for t in (x, index))
    dims = with_dim(r.broadcast(*rest), at, index.dims[at])
    place = index_expr(r, index)
    if r.reads_element(place):
        place = modulo(place, r.size(x.dims[at]))
    return r.placed(x, dims, {at: place})


RULES: dict[str, Rule] = {
    **slices.RULES,
    "take_along_dim": take_along_dim,
    "cat": cat,
    "roll": roll,
    "stack": stack,
    "constant_pad_nd": constant_pad,
    "unfold": unfold,
    "diagonal": diagonal,
    "arange": arange,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
    "copy": copy,
    "empty": empty,
    "empty_permuted": empty,
    "index_select": index_select,
    "embedding": embedding,
    "index": index,
    "_unsafe_index": index,
    "gather": gather,
}
