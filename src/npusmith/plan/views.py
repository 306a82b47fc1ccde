"""Operations that only rename elements: reshapes, broadcasts, permutations, casts, constants.

None of them moves data here; they change the axes of a dimension. Slices, joins, paddings and
gathers are index maps (moves.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.plan import integers
from npusmith.plan.axes import (
    Atom,
    AxisError,
    Dim,
    Dims,
    extent,
    fresh,
    leaves,
    pin,
    regroup,
    sizes,
)
from npusmith.plan.dag import Kind, Value, remembered
from npusmith.plan.integers import constant
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.scalars import ZERO, plus, times
from npusmith.plan.symbolic_numbers import SYMBOLIC, SymbolicInt
from npusmith.task.graph import Argument, Ref

EMPTY: Dim = ()
_REST = Const(-1)  # of a view: what is left
CASTS = (["to"], ["_to_copy"], ["type_as"])


def same(r: Reader) -> Result:
    return r.tensor(r.argument(0))


def view(r: Reader) -> Result:
    """view, reshape, flatten: the result's shape says all."""
    assert r.node is not None
    if r.node.op.endswith(".dtype"):
        r.refuse("plan-dtype", "a reinterpretation of bits is not supported")
    x = r.tensor(r.argument(0))
    varied = {leaf for leaf in leaves(atom for dim in x.dims for atom in dim) if leaf.varied}
    try:
        dims = regroup(x.dims, r.node.shape, _following(r))
    except AxisError as problem:
        if 0 in r.node.shape:
            r.refuse(problem.code, problem.message)
        found = _resplit(r, x, r.node.shape)
        if found is None:
            return _reread(r, x, r.node.shape)
        x, dims = found
    _tie(r, dims, varied)
    return Tensor(x.value, dims, x.dtype)


def _following(r: Reader) -> set[int]:
    """The view's dimensions whose sizes follow from those of inputs."""
    assert r.node is not None
    asked = r.argument(1)
    if not isinstance(asked, tuple) or len(asked) != len(r.node.shape):
        return set()
    return {at for at, size in enumerate(asked) if isinstance(size, SymbolicInt)}


def _tie(r: Reader, dims: Dims, varied: set[Atom]) -> None:
    """Sizes that the view has for sure: those that follow from inputs, numbers where they vary."""
    assert r.node is not None
    split = {leaf for old in varied for leaf in leaves((old,))}
    asked = r.argument(1)
    sizes = r.measures(asked) if isinstance(asked, tuple) and len(asked) == len(dims) else ()
    for dim, (_, size) in zip(dims, sizes, strict=False):
        row = leaves(dim)
        rest, number = size == _REST, isinstance(size, Const)
        if number and split.isdisjoint(row):
            continue
        if len(row) == 1 and row[0] not in varied:  # a piece of an axis that was split here
            row[0].model = number and not rest
        if not rest:
            r.sized.append((dim, size))


def _resplit(r: Reader, x: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Dims] | None:
    """The same elements where a few axes of fixed sizes are split in another way, and its axes.

    before: batch x (8 x 3) x places as (3 batch) x 8 x places: channels that were shuffled
    after:  batch x 3 x 8 x places, of which the channels alone are read by their place
    None where that is not all.
    """
    row = [leaf for dim in x.dims for leaf in leaves(dim) if leaf.size != 1 or leaf.varied]
    found = _uneven([leaf.size for leaf in row], [size for size in shape if size != 1])
    if found is None or any(leaf.varied for leaf in row[found.start : found.stop]):
        return None
    for leaf in row[found.start : found.stop]:
        r.fix((leaf,))
    before = [(leaf,) for leaf in row[: found.start]]
    behind = [(leaf,) for leaf in row[found.stop :]]
    new = [r.axis(size) for size in found.sizes]
    place: Expr = ZERO
    for dim in new:
        place = plus(times(place, r.size(dim)), r.index(dim))
    line = Tensor(x.value, (*before, tuple(row[found.start : found.stop]), *behind), x.dtype)
    moved = r.placed(line, (*before, *new, *behind), {len(before): place})
    try:
        return moved, regroup(moved.dims, shape)
    except AxisError:
        return None


@dataclass(frozen=True, slots=True)
class _Uneven:
    """Axes that are split in another way, and the sizes that are wanted instead."""

    start: int
    stop: int
    sizes: tuple[int, ...]


def _uneven(have: Sequence[int], wanted: Sequence[int]) -> _Uneven | None:
    """The first axes that neither divide what is wanted nor are divided by it."""
    at = to = 0
    size = want = 1  # what is left of both
    fresh = True  # ... of an axis, all
    while True:
        if size == 1:
            if at == len(have):
                return None
            size, at, fresh = have[at], at + 1, True
        if want == 1:
            if to == len(wanted):
                return None
            want, to = wanted[to], to + 1
        if want % size and size % want:
            break
        shared = min(size, want)
        size, want, fresh = size // shared, want // shared, False
    if not fresh:
        return None
    start, sizes = at - 1, [want]
    while size != want:
        if size < want and at < len(have):
            size, at = size * have[at], at + 1
        elif size > want and to < len(wanted):
            sizes.append(wanted[to])
            want, to = want * wanted[to], to + 1
        else:
            return None
    return _Uneven(start, at, tuple(sizes))


def _reread(r: Reader, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same elements in a shape that splits no axis evenly, each by its place in memory."""
    for dim in x.dims:
        r.fix(dim)
    dims = tuple(EMPTY if size == 1 else r.axis(size) for size in shape)
    place: Expr = ZERO
    for dim in dims:
        place = plus(times(place, r.size(dim)), r.index(dim))
    line = Tensor(x.value, (tuple(atom for dim in x.dims for atom in dim),), x.dtype)
    return r.placed(line, dims, {0: place})


def unsqueeze(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    at = r.dim(r.argument(1), len(x.dims) + 1)
    return Tensor(x.value, (*x.dims[:at], EMPTY, *x.dims[at:]), x.dtype)


def squeeze(r: Reader) -> Result:
    """squeeze of all, one or several dimensions of size 1; they stay 1 in every shape served."""
    x = r.tensor(r.argument(0))
    rank = len(x.dims)
    asked = r.argument(1, "dim")
    chosen = range(rank) if asked is None else [i % rank for i in r.integers(asked)] if rank else []
    gone = {i for i in chosen if extent(x.dims[i]) == 1}
    for i in gone:
        pin(x.dims[i])
    return Tensor(x.value, tuple(d for i, d in enumerate(x.dims) if i not in gone), x.dtype)


def expand(r: Reader) -> Result:
    assert r.node is not None
    x = r.tensor(r.argument(0))
    return Tensor(x.value, _expanded(r, x.dims), x.dtype)


def _expanded(r: Reader, dims: Dims) -> Dims:
    assert r.node is not None
    shape = r.node.shape
    padded = (EMPTY,) * (len(shape) - len(dims)) + dims
    result: list[Dim] = []
    for dim, new in zip(padded, _made(r, r.argument(1, "size")), strict=True):
        if extent(dim) == extent(new):
            result.append(dim)
            continue
        pin(dim)
        result.append(new)
    return tuple(result)


def new_axes(r: Reader, asked: Argument) -> Dims:
    """Axes of the result's shape, none for sizes of 1: as the argument says, or of any input's."""
    return tuple(EMPTY if extent(dim) == 1 else dim for dim in _made(r, asked))


def _made(r: Reader, asked: Argument) -> Dims:
    assert r.node is not None
    shape = r.node.shape
    if r.graph.symbolic is not None and isinstance(asked, tuple) and len(asked) == len(shape):
        made = [item[1] for item in r.measures(asked)]
        return tuple(
            fresh((size,), free=True)[0]
            if isinstance(expr, Const) and not _is_number(r, size)
            else r.axis(size, expr if expr != _REST else Const(size))
            for size, expr in zip(shape, made, strict=True)
        )
    return fresh(shape, free=True)


def _is_number(r: Reader, size: int) -> bool:
    """Whether no axis of an input that was not varied has this size: then it is a number."""
    dims = [dim for row in r.inputs.values() for dim in row if extent(dim) == size]
    return all(leaf.varied for dim in dims for leaf in leaves(dim))


def repeat(r: Reader) -> Result:
    """Whole copies along a dimension: an outer axis that the element does not depend on."""
    x = r.tensor(r.argument(0))
    asked = r.measures(r.argument(1))
    padded = (EMPTY,) * (len(asked) - len(x.dims)) + x.dims
    pairs = zip(padded, asked, strict=True)
    return Tensor(x.value, tuple((*_copies(r, *count), *dim) for dim, count in pairs), x.dtype)


def _copies(r: Reader, count: int, formula: Expr) -> Dim:
    """The axis of a number of copies, which may follow from sizes."""
    if isinstance(formula, Const):
        return EMPTY if count == 1 else fresh((count,), model=True)[0]
    return r.axis(count, formula)


def permute(r: Reader) -> Result:
    """Another order of the dimensions. Whether data would have to move is seen at the outputs."""
    x = r.tensor(r.argument(0))
    rank = len(x.dims)
    order = [i % rank for i in r.integers(r.argument(1))] if rank else []
    return Tensor(x.value, tuple(x.dims[i] for i in order), x.dtype)


def transpose(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    dims = list(x.dims)
    rank = len(dims)
    assert r.node is not None
    short = r.node.op.startswith("aten.t.")
    if rank < 2:
        return x
    first, second = (0, 1) if short else (r.dim(r.argument(i), rank) for i in (1, 2))
    dims[first], dims[second] = dims[second], dims[first]
    return Tensor(x.value, tuple(dims), x.dtype)


def cast(r: Reader) -> Result:
    """_to_copy and clone: PyTorch's conversion to the result's dtype."""
    x = r.tensor(r.argument(0))
    return Tensor(convert(r, x, r.dtype), x.dims, r.dtype)


def convert(r: Reader, x: Tensor, dtype: DType) -> Value:
    if dtype is x.dtype:
        return x.value
    if not dtype.is_float and dtype is not DType.BOOL:
        if x.dtype.is_float:
            return integers.whole(r.dag, x.value, dtype)
        return integers.converted(r.dag, x.value, dtype)
    if dtype.is_float:
        wide = r.floating(x)  # float32 holds every value of both 16-bit types
        narrow = x.dtype if dtype is DType.FLOAT32 else dtype
        return r.dag.keep(Value("narrow", (wide,), dtype=narrow)) if _rounds(r, x, dtype) else wide
    return r.dag.test("ne", r.floating(x), r.dag.const(0.0))


def _rounds(r: Reader, x: Tensor, dtype: DType) -> bool:
    """Whether digits are lost: to a 16-bit type, or from one, where they still are in the value."""
    if dtype is not DType.FLOAT32:
        return _asked(r, dtype)
    narrow = x.dtype.is_float and x.dtype is not dtype
    return narrow and bool(r.graph.eager) and _asked(r, dtype) and not _has_digits(x.value)


@remembered
def _has_digits(value: Value) -> bool:
    """Whether a value has the digits of its 16-bit type alone: as it was loaded, or chosen."""
    if value.op in ("abs", "neg", "max", "min", "select", "at"):
        return all(_has_digits(arg) for arg in value.args if arg.kind is Kind.FLOAT)
    return value.op in ("load", "const", "narrow")


def _asked(r: Reader, dtype: DType) -> bool:
    """Whether the model itself converts to this type: core ATen adds conversions of its own.

    It computes what it takes apart in float32 and rounds after every operation, as PyTorch does
    between its kernels; here nothing is rounded between operations.
    """
    casts = [node for node in r.graph.eager if node.op.split(".")[1:2] in CASTS]
    return not r.graph.eager or any(node.dtype is dtype for node in casts)


def element(r: Reader, given: Argument, dtype: DType) -> Value:
    """A number as an element of a type; one that follows from sizes has its formula."""
    kept = dtype.is_float or (dtype is not DType.BOOL and isinstance(given, int))
    if kept and isinstance(given, SYMBOLIC):
        return r.tensor(given).value
    number = given if isinstance(given, int) else r.number(given)
    if dtype.is_float:
        return r.dag.const(number)
    return constant(r.dag, int(bool(number) if dtype is DType.BOOL else number), dtype)


def full(r: Reader) -> Result:
    """A tensor of one number."""
    assert r.node is not None
    name = r.node.op.split(".")[1]
    at = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0}.get(name)
    number = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}.get(name)
    if number is None and at is not None:
        value = element(r, r.argument(at, "fill_value"), r.dtype)
    elif number is not None:
        value = element(r, number, r.dtype)
    else:
        r.refuse("plan-unsupported-op", "its contents are not defined")
    shaped = r.argument(0)
    like = r.known.get(shaped.ref) if name.endswith("_like") and isinstance(shaped, Ref) else None
    if isinstance(like, Tensor) and sizes(like.dims) == r.node.shape:
        return Tensor(value, like.dims, r.dtype)
    shape = r.argument(1 if name.startswith("new_") else 0, "size")
    return Tensor(value, new_axes(r, shape), r.dtype)


def item(r: Reader) -> Result:
    """One result of an operation that has several."""
    assert r.node is not None
    source = r.argument(0)
    found = r.known.get(getattr(source, "ref", ""))
    index = r.integers(r.argument(1))[0]
    if not isinstance(found, tuple) or index >= len(found):
        r.refuse("plan-unsupported-op", "it takes a part of something that has none")
    part = found[index]
    if part is None:
        r.refuse(
            "plan-index-output", f"result {index} of this operation is not supported",
            legal="the values alone", hint="do not return the indices (or saved statistics)",
        )  # fmt: skip
    # saved statistics of half types are half on some devices: the node says
    return part if part.dtype is r.dtype else Tensor(convert(r, part, r.dtype), part.dims, r.dtype)


def read_out(r: Reader) -> Result:
    r.refuse(
        "plan-unsupported-op", "it takes a number out of a tensor (.item(), float(), int())",
        hint="use the tensor itself: it broadcasts as a number does",
    )  # fmt: skip


def refused(code: str, why: str) -> Rule:
    def rule(r: Reader) -> Result:
        r.refuse(code, why)

    return rule


_REFUSED: dict[tuple[str, str], tuple[str, ...]] = {
    ("plan-data-movement", "it reorders elements"): ("mode",),
    ("plan-cube", "convolutions need the cube unit"): ("convolution",),
}
REFUSED = frozenset(name for names in _REFUSED.values() for name in names) | {"_local_scalar_dense"}

RULES: dict[str, Rule] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "unflatten"), view),
    **dict.fromkeys(
        ("alias", "detach", "contiguous", "lift_fresh_copy", "lift_fresh", "positive"), same
    ),
    **dict.fromkeys(("_to_copy", "clone", "to"), cast),
    **dict.fromkeys(("expand", "broadcast_to", "expand_as"), expand),
    **dict.fromkeys(("transpose", "t"), transpose),
    **dict.fromkeys(
        (
            "full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like", "ones",
            "ones_like",
        ),
        full,
    ),
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "permute": permute,
    "repeat": repeat,
    "getitem": item,
    "_local_scalar_dense": read_out,
    **{name: refused(*why) for why, names in _REFUSED.items() for name in names},
}  # fmt: skip


def atoms_of(dims: Dims) -> Dim:
    """All loops of a layout in memory order."""
    return tuple(leaf for dim in dims for leaf in leaves(dim))
