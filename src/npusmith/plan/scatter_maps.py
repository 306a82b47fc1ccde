"""Operations that put elements where an index says, as folds over the indices.

An element of the result takes in every value whose index names it: `scatter_add` is x plus the sum
of where(index == position, values, 0) along the indices. That is one comparison for each pair of an
element and an index: for few indices between other operations. Rows of an output (row_stores.py)
and its elements (element_stores.py) are stored, or combined, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr
from npusmith.plan import integer_folds, integers
from npusmith.plan.axes import Atom, Dim, Dims, extent, leaves, sizes
from npusmith.plan.dag import Value
from npusmith.plan.index import clamp
from npusmith.plan.moves import inside
from npusmith.plan.reader import WORTH, Combined, Reader, Result, Rule, Scattered, Tensor
from npusmith.plan.scalars import ONE, ZERO, largest, minus, plus, times
from npusmith.plan.scatter_decision import combined_value, is_combined
from npusmith.plan.slices import with_dim
from npusmith.plan.views import convert
from npusmith.task.graph import Argument, Ref

_FEW = 128  # indices that an element is compared with
_PAIRS = 1 << 28  # of an element and an index: more are not served
_INF = float("inf")
_NONE = float(1 << 20)  # beyond every piece of an integer


@dataclass(frozen=True, slots=True)
class Hits:
    """Which values each element of a tensor takes in."""

    r: Reader
    dtype: DType  # of the tensor
    masks: tuple[Value, ...]  # all of them have to hold
    values: Value
    along: tuple[Atom, ...]  # of the indices
    axes: tuple[Atom, ...]  # of the tensor
    place: Value  # of an index among all

    def where(self, value: Value, other: float) -> Value:
        dag = self.r.dag
        for mask in self.masks:
            value = dag.select(mask, value, dag.const(other))
        return value

    def fold(self, text: str, value: Value, other: float) -> Value:
        if not self.along:
            return self.where(value, other)
        count = extent(self.along)
        if count > _FEW:
            self.r.refuse(
                "plan-data-movement", f"every element is compared with {count} indices",
                legal=f"{_FEW} indices",
            )  # fmt: skip
        self.r.limit((*self.along, *self.axes), _PAIRS)
        mode = "loop" if len(self.r.graph.eager) == 1 else ""
        return self.r.dag.make(
            "reduce", self.where(value, other), text=text, axes=self.along, mode=mode
        )

    def count(self) -> Value:
        return self.fold("sum", self.r.dag.const(1.0), 0.0)

    def hit(self) -> Value:
        """Whether there is any."""
        return self.r.dag.test("gt", self.count(), self.r.dag.const(0.0))

    def total(self, value: Value) -> Value:
        if self.dtype.is_float:
            return self.fold("sum", value, 0.0)
        fold = partial(self.fold, "sum", other=0.0)
        found, most = integer_folds.summed(self.r.dag, value, fold, extent(self.along))
        self.r.limit(self.along, most)
        return integers.converted(self.r.dag, found, self.dtype)

    def extreme(self, text: str, other: float) -> Value:
        """Of what is not there, `other`; of integers undefined."""
        if self.dtype.is_float:
            return self.fold(text, self.values, other)
        below = -_NONE if text == "max" else _NONE
        fold = partial(self.fold, text, other=below)
        return integer_folds.extreme(self.r.dag, text, self.values, fold)

    def joined(self, op: str, a: Value, b: Value) -> Value:
        """add, max or min of two elements."""
        if self.dtype.is_float:
            return self.r.dag.make(op, a, b)
        return integers.arithmetic(self.r.dag, op, a, b, self.dtype)

    def chosen(self, truth: Value, a: Value, b: Value) -> Value:
        if self.dtype.is_float:
            return self.r.dag.where(truth, a, b)
        return integers.chosen(self.r.dag, truth, a, b)


# ------------------------------------------------------------------------------------ combinations


def _stored(hits: Hits, x: Value) -> Value:
    """The last value for a place, in the order of the indices."""
    dag = hits.r.dag
    last = hits.fold("max", hits.place, -1.0)
    value = hits.values
    if hits.along:
        fold = partial(dag.make, "reduce", text="sum", axes=hits.along, mode="loop")
        here = dag.test("eq", hits.place, last)
        if hits.dtype.is_float:
            value = fold(dag.where(here, value, dag.const(0.0)))
        else:  # there is one
            one = integers.chosen(dag, here, value, dag.const(0.0))
            value = integers.converted(dag, integer_folds.summed(dag, one, fold, 0)[0], hits.dtype)
    return hits.chosen(dag.test("ge", last, dag.const(0.0)), value, x)


def _summed(hits: Hits, x: Value) -> Value:
    return hits.joined("add", x, hits.total(hits.values))


def _multiplied(hits: Hits, x: Value) -> Value:
    return hits.r.dag.mul(x, hits.fold("prod", hits.values, 1.0))


def _largest(hits: Hits, x: Value) -> Value:
    return _beside(hits, "max", hits.extreme("max", -_INF), x)


def _smallest(hits: Hits, x: Value) -> Value:
    return _beside(hits, "min", hits.extreme("min", _INF), x)


def _beside(hits: Hits, text: str, found: Value, x: Value) -> Value:
    best = hits.joined(text, x, found)
    return best if hits.dtype.is_float else hits.chosen(hits.hit(), best, x)


def _averaged(hits: Hits, x: Value) -> Value:
    dag = hits.r.dag
    return dag.div(_summed(hits, x), dag.shifted(hits.count(), 1.0))


Combine = Callable[[Hits, Value], Value]

_OF_FLOATS = ("prod", "multiply", "mean")
_REDUCES: dict[str, tuple[Combine, float]] = {  # and what stands for an element that is left out
    "sum": (_summed, 0.0),
    "add": (_summed, 0.0),
    "prod": (_multiplied, 1.0),
    "multiply": (_multiplied, 1.0),
    "amax": (_largest, -_INF),
    "amin": (_smallest, _INF),
}


def _without(combine: Combine, neutral: float) -> Combine:
    """The same without the element itself, where any value is there."""

    def rule(hits: Hits, x: Value) -> Value:
        dag = hits.r.dag
        if hits.dtype.is_float:
            found = combine(hits, dag.const(neutral))
        else:
            found = (
                hits.total(hits.values)
                if neutral == 0.0
                else hits.extreme("max" if neutral < 0 else "min", neutral)
            )
        return hits.chosen(hits.hit(), found, x)

    return rule


def _averaged_without(hits: Hits, x: Value) -> Value:
    dag = hits.r.dag
    count = hits.count()
    mean = dag.div(hits.fold("sum", hits.values, 0.0), count)
    return dag.select(dag.compare("gt", count, dag.const(0.0)), mean, x)


def _reduction(r: Reader, word: Argument, own: bool) -> Combine:
    if word == "mean":
        return _averaged if own else _averaged_without
    if word not in _REDUCES:
        r.refuse("plan-unsupported-op", f"a scatter that reduces by {word!r} is not supported")
    combine, neutral = _REDUCES[str(word)]
    return combine if own else _without(combine, neutral)


# ---------------------------------------------------------------------------------------- scatters


def _scatter(word: str) -> Rule:
    """scatter, scatter_add and scatter_reduce: an index for each value, along one dimension."""

    def rule(r: Reader) -> Result:
        x, index, values = (r.tensor(r.argument(i)) for i in (0, 2, 3))
        values = Tensor(convert(r, values, x.dtype), values.dims, x.dtype)  # 7 is True
        if not x.dims:
            x, index, values = (Tensor(t.value, ((),), t.dtype) for t in (x, index, values))
        asked, own = r.argument(4, "reduce", "sum" if word == "add" else None), True
        if word == "reduce":
            own = bool(r.argument(5, "include_self", True))
        combine = _stored if asked is None else _reduction(r, asked, own)
        at = r.dim(r.argument(1), len(x.dims))
        if values.dims:
            x, index, values = r.apart([x, index, values])
        else:
            x, index = r.apart([x, index])
        plain = own and WORDS.get(asked) in ("store", "add")
        if plain and (rows := _whole_rows(r, x, at, index, values, asked is not None)):
            return rows
        places, taken, row = _along(r, x, at, index, values)
        dims = x.dims if r.node is None or r.node.shape else ()
        found = Combined(x, at, 1, (row,), places, taken, WORDS[asked], own, False)
        if is_combined(r, found, _FEW):
            return Tensor(combined_value(r, found), dims, x.dtype)
        _check(r, x, asked)
        mask = r.dag.compare("eq", r.floating(places), r.position(r.index(x.dims[at])))
        here = r.position(r.index(row))
        hits = Hits(r, x.dtype, (mask,), taken.value, leaves(row), _leaves(x.dims), here)
        return Tensor(combine(hits, _held(r, x, x.dtype)), dims, x.dtype)

    return rule


def _check(r: Reader, x: Tensor, word: Argument = None) -> None:
    """Products and means of integers are not folded."""
    if not x.dtype.is_float and x.dtype is not DType.BOOL and word in _OF_FLOATS:
        r.refuse(
            "plan-dtype", f"a scatter of {x.dtype.value} that reduces by {word!r} is not supported",
            legal="float32, float16, bfloat16",
        )  # fmt: skip


def _whole_rows(
    r: Reader, x: Tensor, at: int, index: Tensor, values: Tensor, adds: bool
) -> Tensor | None:
    """A scatter whose index is expanded along all other dimensions: rows of an output."""
    dims = {item.name: r.known[item.name] for item in r.graph.inputs}
    read = dims.get(index.value.text) if index.value.op == "load" else None
    own = index.dims[at]
    if not isinstance(read, Tensor) or _leaves(read.dims) != leaves(own):
        return None
    if not sizes(with_dim(x.dims, at, own)) == sizes(index.dims) == sizes(values.dims):
        return None
    r.broadcast(Tensor(index.value, with_dim(index.dims, at, ()), index.dtype), x)
    line = Tensor(index.value, (own,), index.dtype)
    if not (_adds_in_memory(x.dtype, adds) and _are_rows(r, x, [at], [line], values)):
        return None
    return _rows(r, x, [at], [line], values, adds)


def _along(
    r: Reader, x: Tensor, at: int, index: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Dim]:
    """Places and values read at the axes of `x`, and along the indices, whose axes are the last.

    Where `x` has more than the index the place is -1.
    """
    own = index.dims[at]
    row = own if _apart(own, x.dims) else r.axis(extent(own), r.size(own))
    wanted = with_dim(x.dims, at, row)
    guards = [
        (r.index(want), r.size(dim))
        for dim, want in zip(index.dims, wanted, strict=True)
        if extent(dim) < extent(want)
    ]
    places = _read_at(r, index, wanted, x.dims)
    for place, size in guards:
        picked = inside(r, place, size, r.floating(places), r.dag.const(-1.0))
        places = Tensor(picked, wanted, index.dtype)
    taken = _held(r, _read_at(r, values, wanted, x.dims) if values.dims else values, x.dtype)
    return places, Tensor(taken, wanted, x.dtype), row


WORDS: dict[Argument, str] = {
    None: "store", "sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max",
    "amin": "min", "mean": "mean",
}  # fmt: skip


def _held(r: Reader, x: Tensor, dtype: DType) -> Value:
    """Elements as they are combined in a tensor of this type."""
    whole = not dtype.is_float and dtype is not DType.BOOL
    return convert(r, x, dtype) if whole else r.floating(x)


def _read_at(r: Reader, item: Tensor, wanted: Dims, apart: Dims) -> Tensor:
    """A tensor read along other axes; beyond its end (the result is not used) at the last.

    `apart`: axes that do not become those (x.scatter(0, i, x) reads x along two).
    """
    maps: dict[int, Expr] = {}
    for i, (dim, want) in enumerate(zip(item.dims, wanted, strict=True)):
        if leaves(dim) == leaves(want):
            continue
        here = r.index(want)
        if extent(dim) < extent(want):
            here = clamp(here, ZERO, largest(minus(r.size(dim), ONE), ZERO))
        if extent(dim) != extent(want):
            r.fix(dim)
            r.fix(want, now=True)
        elif _apart(dim, (*wanted, *apart)):
            r.broadcast(
                Tensor(item.value, (want,), item.dtype), Tensor(item.value, (dim,), item.dtype)
            )
            continue
        maps[i] = here
    return r.placed(item, wanted, maps)


def _leaves(dims: Dims) -> tuple[Atom, ...]:
    return tuple(leaf for dim in dims for leaf in leaves(dim))


def _apart(dim: Dim, dims: Dims) -> bool:
    taken = {leaf for other in dims for leaf in leaves(other)}
    return not taken & set(leaves(dim))


# --------------------------------------------------------------------------------------- index_put


def index_put(r: Reader) -> Result:
    """`x[i, :, j] = values`, or `+=`: index tensors for some dimensions."""
    x, values = r.tensor(r.argument(0)), r.tensor(r.argument(2))
    asked = r.argument(1)
    items = asked if isinstance(asked, tuple) else (asked,)
    chosen = [i for i, item in enumerate(items) if isinstance(item, Ref)]
    given = [r.tensor(items[i]) for i in chosen]
    adds = bool(r.argument(3, "accumulate", False))
    if any(item.dtype in (DType.BOOL, DType.UINT8) for item in given):
        return _masked(r, x, given, values, adds)
    values = _own_axes(r, x, chosen, values)
    whole = _are_rows(r, x, chosen, given, values)
    if whole and _adds_in_memory(x.dtype, adds):
        return _rows(r, x, chosen, given, values, adds)
    given, along = r.aligned(*given)
    taken = [leaf for dim in x.dims for leaf in leaves(dim)]
    if set(taken) & {leaf for dim in along for leaf in leaves(dim)}:
        new = tuple(r.axis(extent(dim), r.size(dim)) if dim else dim for dim in along)
        given = [_moved(r, item, along, new) for item in given]
        along = new
    values = _spread(r, x, chosen, along, values)
    found = _spots(r, x, chosen, given, along, values, adds)
    if is_combined(r, found, 0 if whole else _FEW):
        return Tensor(combined_value(r, found), x.dims, x.dtype)
    masks = []
    for i, item in zip(chosen, given, strict=True):
        at, size = r.floating(item), r.position(r.size(x.dims[i]))
        wrapped = r.dag.select(r.dag.compare("lt", at, r.dag.const(0.0)), r.dag.add(at, size), at)
        masks.append(r.dag.compare("eq", wrapped, r.position(r.index(x.dims[i]))))
    place: Expr = ZERO
    for dim in along:
        place = plus(times(place, r.size(dim)), r.index(dim))
    row = tuple(leaf for dim in along for leaf in leaves(dim))
    stored = _held(r, values, x.dtype)
    hits = Hits(r, x.dtype, tuple(masks), stored, row, _leaves(x.dims), r.position(place))
    combine = _summed if adds else _stored
    return Tensor(combine(hits, _held(r, x, x.dtype)), x.dims, x.dtype)


def _spots(
    r: Reader, x: Tensor, chosen: Sequence[int], given: Sequence[Tensor], along: Dims,
    values: Tensor, adds: bool,
) -> Combined:  # fmt: skip
    """Elements at the dimensions from the first that is indexed to the last, as if they were one.

    One tensor of indices stays as it is; several become places.
    """
    first, last = chosen[0], chosen[-1]
    between = tuple(x.dims[i] for i in range(first, last + 1) if i not in chosen)
    dims = (*x.dims[:first], *along, *between, *x.dims[last + 1 :])
    word, stored = "add" if adds else "store", Tensor(_held(r, values, x.dtype), dims, x.dtype)
    row = (*along, *between)
    if len(chosen) == 1:
        return Combined(x, first, 1, row, given[0], stored, word, own=True, wraps=True)
    place = r.dag.const(0.0)
    for i in range(first, last + 1):
        size = r.position(r.size(x.dims[i]))
        at = r.position(r.index(x.dims[i]))
        if i in chosen:
            at = r.floating(given[list(chosen).index(i)])
            wrapped = r.dag.add(at, size)
            at = r.dag.select(r.dag.compare("lt", at, r.dag.const(0.0)), wrapped, at)
        place = r.dag.add(r.dag.mul(place, size), at)
    places = Tensor(place, dims, DType.INT64)
    count = last + 1 - first
    return Combined(x, first, count, row, places, stored, word, own=True, wraps=False)


def _own_axes(r: Reader, x: Tensor, chosen: Sequence[int], values: Tensor) -> Tensor:
    """Values that run along an axis of `x` that is indexed are read along one of their own."""
    taken = {leaf for i in chosen for leaf in leaves(x.dims[i])}
    dims, maps = list(values.dims), {}
    for i, dim in enumerate(values.dims):
        if taken & set(leaves(dim)):
            dims[i] = r.axis(extent(dim), r.size(dim))
            maps[i] = r.index(dims[i])
    return r.placed(values, tuple(dims), maps) if maps else values


def _are_rows(
    r: Reader, x: Tensor, chosen: Sequence[int], given: Sequence[Tensor], values: Tensor
) -> bool:
    """Whether rows of an output are stored where an input says."""
    assert r.node is not None
    at, index, own = chosen[0], given[0], _leaves(x.dims)
    return not (
        len(chosen) > 1
        or r.node.name not in r.graph.outputs
        or index.value.op != "load"
        or index.dtype not in (DType.INT64, DType.INT32)
        or extent(_leaves(x.dims[at + 1 :])) < WORTH
        or set(_leaves(index.dims)) & {*own, *_leaves(values.dims)}
        or set(_leaves(values.dims)) & set(leaves(x.dims[at]))
    )


def _adds_in_memory(dtype: DType, adds: bool) -> bool:
    """Whether rows can go to memory one by one: there, sums of halves are rounded each time."""
    return not adds or dtype is DType.FLOAT32


def _rows(
    r: Reader, x: Tensor, chosen: Sequence[int], given: Sequence[Tensor], values: Tensor, adds: bool
) -> Tensor:
    """Rows that are stored, or added, one after another."""
    at, index = chosen[0], given[0]
    dims = (*x.dims[:at], *index.dims, *x.dims[at + 1 :])
    r.broadcast(Tensor(x.value, dims, x.dtype), values)
    stored = Tensor(_held(r, values, x.dtype), dims, x.dtype)
    text, axes = "add" if adds else "store", _leaves(index.dims)
    value = r.dag.make(
        "put", x.value, stored.value, index.value, axes=axes, text=text, kind=x.value.kind
    )
    r.scattered[value] = Scattered(x, at, index, stored, adds, wraps=True)
    return Tensor(value, x.dims, x.dtype)


def _moved(r: Reader, x: Tensor, old: Dims, new: Dims) -> Tensor:
    """`x`, whose axes are some of `old` from the right, along `new`."""
    count = len(x.dims)
    dims = tuple(b if a else a for a, b in zip(x.dims, new[len(new) - count :], strict=True))
    return r.placed(x, dims, {i: r.index(dim) for i, dim in enumerate(dims) if dim})


def _spread(r: Reader, x: Tensor, chosen: Sequence[int], along: Dims, values: Tensor) -> Tensor:
    """Values at the axes of `x` that are not indexed, and along the indices."""
    rest = tuple(dim for i, dim in enumerate(x.dims) if i not in chosen)
    if list(chosen) == list(range(chosen[0], chosen[-1] + 1)):
        wanted = (*rest[: chosen[0]], *along, *rest[chosen[0] :])
    else:
        wanted = (*along, *rest)
    wanted = wanted[len(wanted) - len(values.dims) :]
    if any(
        extent(dim) not in (1, extent(want)) for dim, want in zip(values.dims, wanted, strict=True)
    ):
        r.refuse("plan-reshape", "its values do not broadcast to what is indexed")
    empty: Dim = ()
    wide = tuple(
        empty if extent(dim) == 1 else want for dim, want in zip(values.dims, wanted, strict=True)
    )
    return _read_at(r, values, wide, ())


def _masked(r: Reader, x: Tensor, given: Sequence[Tensor], values: Tensor, adds: bool) -> Result:
    """A mask for the first dimensions, and one value for all that it names."""
    if len(given) != 1 or any(extent(dim) != 1 for dim in values.dims):
        r.refuse("plan-data-movement", "where a value goes depends on the values of a mask")
    mask = given[0]
    one: Dim = ()
    wide = Tensor(mask.value, (*mask.dims, *(one,) * (len(x.dims) - len(mask.dims))), mask.dtype)
    (x, wide), dims = r.aligned(x, wide)
    old, new = _held(r, x, x.dtype), _held(r, values, x.dtype)
    hits = Hits(r, x.dtype, (), new, (), (), r.dag.const(0.0))
    new = hits.joined("add", old, new) if adds else new
    return Tensor(hits.chosen(r.floating(wide), new, old), dims, x.dtype)


RULES: dict[str, Rule] = {
    "scatter": _scatter(""),
    "scatter_add": _scatter("add"),
    "scatter_reduce": _scatter("reduce"),
    "index_put": index_put,
}
