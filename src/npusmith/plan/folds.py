"""Reductions, softmax and normalizations of core ATen as expressions with `reduce` in them.

Variances are two-pass (mean first, then squared distances), softmax subtracts the row's largest
value, and means are divided by the count, so that a constant row has exactly its value as mean.
"""

from __future__ import annotations

import math
from functools import partial

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const
from npusmith.plan import integer_folds, integers, maps, moves
from npusmith.plan.axes import Atom, AxisError, Dim, Dims, extent, leaves, regroup, sizes
from npusmith.plan.dag import EXACT, Dag, Value
from npusmith.plan.elementary import power
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.sorts import ORDERED
from npusmith.plan.views import convert
from npusmith.task.graph import Argument

Axes = tuple[Atom, ...]


# ---------------------------------------------------------------------------- functions of values


def mean(dag: Dag, x: Value, axes: Axes) -> Value:
    return dag.div(dag.reduce("sum", x, axes), dag.count(axes))


def centre(dag: Dag, x: Value, axes: Axes) -> tuple[Value, Value, Value]:
    """Mean, distances from it, and the sum of their squares.

    The float32 mean is off by about its last bit, and near the mean that is all there is: the mean
    of the distances themselves corrects both (corrected two-pass algorithm of Chan, Golub and
    LeVeque, 1983).
    """
    middle = mean(dag, x, axes)
    distance = dag.sub(x, middle)
    rest = dag.reduce("sum", distance, axes)
    slip = dag.div(rest, dag.count(axes))
    squares = dag.reduce("sum", dag.mul(distance, distance), axes)
    total = dag.max(dag.sub(squares, dag.mul(rest, slip)), dag.const(0.0))
    return middle, dag.sub(distance, slip), total


def variance(dag: Dag, x: Value, axes: Axes, less: int = 0) -> tuple[Value, Value]:
    """Mean and variance: squared distances from the mean, never a difference of squares."""
    middle, _, total = centre(dag, x, axes)
    return middle, dag.div(total, dag.count(axes, less))


def normalize(dag: Dag, x: Value, axes: Axes, epsilon: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon), with the mean and the factor."""
    middle, distance, total = centre(dag, x, axes)
    spread = dag.div(total, dag.count(axes))
    factor = dag.inverse(dag.unary("sqrt", dag.shifted(spread, epsilon)))
    return dag.mul(distance, factor), middle, factor


def softmax(dag: Dag, x: Value, axes: Axes) -> Value:
    top = dag.reduce("max", x, axes)
    raised = dag.unary("exp", dag.sub(x, top))
    return dag.mul(raised, dag.inverse(dag.reduce("sum", raised, axes)))


def log_softmax(dag: Dag, x: Value, axes: Axes) -> Value:
    below = dag.sub(x, dag.reduce("max", x, axes))
    return dag.sub(below, dag.unary("ln", dag.reduce("sum", dag.unary("exp", below), axes)))


def norm(dag: Dag, x: Value, axes: Axes, order: float) -> Value:
    size = dag.unary("abs", x)
    if order == 0:
        return dag.reduce("sum", dag.test("ne", x, dag.const(0.0)), axes)
    if order == 1:
        return dag.reduce("sum", size, axes)
    if math.isinf(order):
        return dag.reduce("max" if order > 0 else "min", size, axes)
    if order == 2:
        return dag.unary("sqrt", dag.reduce("sum", dag.mul(x, x), axes))
    raised = power(dag, size, order)
    return dag.make("power", dag.reduce("sum", raised, axes), dag.const(1.0 / order))


# ------------------------------------------------------------------------------------------ shapes


def _chosen(r: Reader, x: Tensor, dims: Argument) -> list[int]:
    """Which dimensions are reduced: none given means all."""
    rank = len(x.dims)
    if dims is None or dims == ():
        return list(range(rank))
    return sorted({i + rank if i < 0 else i for i in r.integers(dims)})


def _atoms(x: Tensor, chosen: list[int]) -> Axes:
    return tuple(leaf for i in chosen if i < len(x.dims) for leaf in leaves(x.dims[i]))


def _left(x: Tensor, chosen: list[int], keep: bool) -> Dims:
    empty: Dim = ()
    kept = [empty if i in chosen else dim for i, dim in enumerate(x.dims)]
    return tuple(dim for i, dim in enumerate(kept) if keep or i not in chosen)


def _flag(r: Reader, index: int) -> bool:
    return bool(r.argument(index, "keepdim", False))


def _float(r: Reader, x: Tensor) -> Value:
    if not (x.dtype.is_float or x.dtype is DType.BOOL):
        r.refuse(
            "plan-dtype", f"a reduction of {x.dtype.value} is not supported",
            hint="convert to float32 first",
        )  # fmt: skip
    return r.floating(x)


# ------------------------------------------------------------------------------------------ rules


def product_(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    chosen = _chosen(r, x, r.argument(1, "dim"))
    atoms = _atoms(x, chosen)
    if r.dtype.is_float:
        value = r.dag.reduce("prod", r.floating(x), atoms)
    else:
        value = _whole(r, integer_folds.multiplied, x, atoms)
    return Tensor(value, _left(x, chosen, _flag(r, 2)), r.dtype)


def _extreme_of(r: Reader, text: str, x: Tensor, atoms: Axes) -> Value:
    """The largest or smallest element, of floats or integers."""
    fold = partial(r.dag.reduce, text, axes=atoms)
    return fold(x.value) if x.dtype.is_float else integer_folds.extreme(r.dag, text, x.value, fold)


def _amount(text: str) -> Rule:
    """amax and amin."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        chosen = _chosen(r, x, r.argument(1, "dim"))
        value = _extreme_of(r, text, x, _atoms(x, chosen))
        return Tensor(value, _left(x, chosen, _flag(r, 2)), r.dtype)

    return rule


def total(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    chosen = _chosen(r, x, r.argument(1, "dim"))
    atoms = _atoms(x, chosen)
    if r.dtype.is_float:
        value = r.dag.reduce("sum", r.floating(x), atoms)
    else:
        value = _whole(r, integer_folds.summed, x, atoms)
    return Tensor(value, _left(x, chosen, _flag(r, 2)), r.dtype)


def _whole(r: Reader, joined: integer_folds.Joined, x: Tensor, atoms: Axes) -> Value:
    """A sum or product of integers, in the integer type of the result."""
    whole = convert(r, x, DType.INT64)
    fold = partial(r.dag.reduce, "sum", axes=atoms)
    value, most = joined(r.dag, whole, fold, extent(atoms))
    r.limit(atoms, most)
    return integers.converted(r.dag, value, r.dtype)


def average(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    if not r.dtype.is_float:
        r.refuse("plan-dtype", "the mean is written for float results")
    chosen = _chosen(r, x, r.argument(1, "dim"))
    value = mean(r.dag, _float(r, x), _atoms(x, chosen))
    return Tensor(value, _left(x, chosen, _flag(r, 2)), r.dtype)


def _some(text: str) -> Rule:
    """any is the largest truth value, all the smallest."""

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        chosen = _chosen(r, x, r.argument(1, "dim"))
        zero = r.dag.const(0.0)
        truth = x.value if x.dtype is DType.BOOL else r.dag.test("ne", r.floating(x), zero)
        value = r.dag.reduce(text, truth, _atoms(x, chosen))
        return Tensor(value, _left(x, chosen, _flag(r, 2)), r.dtype)  # uint8 stays what it is

    return rule


def _extreme(text: str) -> Rule:
    """max and min: of everything, along a dimension (values only), or of two tensors."""

    def rule(r: Reader) -> Result:
        assert r.node is not None
        overload = r.node.op.rpartition(".")[2]
        x = r.tensor(r.argument(0))
        if overload == "default":
            atoms = _atoms(x, list(range(len(x.dims))))
            return Tensor(_extreme_of(r, text, x, atoms), (), r.dtype)
        if overload == "other":
            return maps.RULES["maximum" if text == "max" else "minimum"](r)
        if overload != "dim":
            r.refuse("plan-unsupported-op", "this form of the operation is not supported")
        chosen = _chosen(r, x, r.argument(1, "dim"))
        left = _left(x, chosen, _flag(r, 2))
        best = _extreme_of(r, text, x, _atoms(x, chosen))
        where = Tensor(_found(r, text, x, chosen), left, DType.INT64)
        return (Tensor(best, left, x.dtype), where)

    return rule


def _less(r: Reader, argument: Argument) -> int:
    number = 1.0 if argument is None else r.number(argument)
    if number != int(number):
        r.refuse("plan-unsupported-op", f"a correction of {number} is not an integer")
    return int(number)


def _variance(r: Reader) -> tuple[Tensor, Tensor]:
    assert r.node is not None
    x = r.tensor(r.argument(0))
    chosen = _chosen(r, x, r.argument(1, "dim"))
    less = _less(r, r.node.kwargs.get("correction"))
    middle, spread = variance(r.dag, _float(r, x), _atoms(x, chosen), less)
    dims = _left(x, chosen, bool(r.node.kwargs.get("keepdim", False)))
    return Tensor(spread, dims, x.dtype), Tensor(middle, dims, x.dtype)


def spread_only(r: Reader) -> Result:
    return _variance(r)[0]


def spread_and_mean(r: Reader) -> Result:
    return _variance(r)


def vector_norm(r: Reader) -> Result:
    x = r.tensor(r.argument(0))
    chosen = _chosen(r, x, r.argument(2, "dim"))
    order = r.number(r.argument(1, "ord", 2))
    value = norm(r.dag, _float(r, x), _atoms(x, chosen), order)
    return Tensor(value, _left(x, chosen, _flag(r, 3)), r.dtype)


def _softened(log: bool) -> Rule:
    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        fn = log_softmax if log else softmax
        if not x.dims:
            return Tensor(fn(r.dag, _float(r, x), ()), (), r.dtype)
        axis = r.dim(r.argument(1), len(x.dims))
        return Tensor(fn(r.dag, _float(r, x), leaves(x.dims[axis])), x.dims, r.dtype)

    return rule


def layer_norm(r: Reader) -> Result:
    """native_layer_norm: output, mean and factor."""
    x = r.tensor(r.argument(0))
    rank = len(r.integers(r.argument(1)))
    chosen = list(range(len(x.dims) - rank, len(x.dims)))
    value, middle, factor = normalize(
        r.dag, _float(r, x), _atoms(x, chosen), r.number(r.argument(4))
    )
    result = _affine(
        r, Tensor(value, x.dims, x.dtype), r.optional(r.argument(2)), r.optional(r.argument(3))
    )
    left = _left(x, chosen, True)
    return (result, Tensor(middle, left, DType.FLOAT32), Tensor(factor, left, DType.FLOAT32))


def _affine(r: Reader, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    value, dims = x.value, x.dims
    if weight is not None:
        (_, weight), dims = r.aligned(Tensor(value, dims, x.dtype), weight)
        value = r.dag.mul(value, r.floating(weight))
    if bias is not None:
        (_, bias), dims = r.aligned(Tensor(value, dims, x.dtype), bias)
        value = r.dag.add(value, r.floating(bias))
    return Tensor(value, dims, x.dtype)


def group_norm(r: Reader) -> Result:
    """native_group_norm: the channel axis is split into groups and what is in them."""
    x = r.tensor(r.argument(0))
    groups, count = r.measures(r.argument(6))[0]
    shape = sizes(x.dims)
    try:
        dims = regroup(x.dims, (shape[0], groups, shape[1] // groups, *shape[2:]))
    except (AxisError, IndexError, ZeroDivisionError):
        r.refuse("plan-reshape", f"{shape} has no channel axis of {groups} equal groups")
    for leaf in leaves(dims[1]):
        leaf.model = isinstance(count, Const)  # the model's, and what is in one is not
    for leaf in leaves(dims[2]):
        leaf.model = False
    r.sized.append((dims[1], count))  # channels, where each is a group: no axis was split
    wide = Tensor(x.value, dims, x.dtype)
    chosen = list(range(2, len(dims)))
    value, middle, factor = normalize(
        r.dag, _float(r, x), _atoms(wide, chosen), r.number(r.argument(7))
    )
    result = Tensor(value, x.dims, x.dtype)
    weight, bias = (_per_channel(r, r.optional(r.argument(i)), len(shape)) for i in (1, 2))
    result = _affine(r, result, weight, bias)
    left = (dims[0], dims[1])
    return (result, Tensor(middle, left, DType.FLOAT32), Tensor(factor, left, DType.FLOAT32))


def _per_channel(r: Reader, tensor: Tensor | None, rank: int) -> Tensor | None:
    """A vector of one number per channel, laid along dimension 1."""
    if tensor is None:
        return None
    if len(tensor.dims) != 1:
        r.refuse("plan-unsupported-op", "a vector of one number per channel was expected")
    return Tensor(tensor.value, (tensor.dims[0], *(((),) * (rank - 2))), tensor.dtype)


def batch_norm_stored(r: Reader) -> Result:
    """_native_batch_norm_legit_no_training: statistics are inputs."""
    x = r.tensor(r.argument(0))
    weight, bias, middle, spread = (
        _per_channel(r, r.optional(r.argument(i)), len(x.dims)) for i in range(1, 5)
    )
    if middle is None or spread is None:
        r.refuse("plan-unsupported-op", "stored statistics were expected")
    epsilon = r.number(r.argument(6))
    dims = r.broadcast(x, middle, spread)
    factor = r.dag.inverse(r.dag.unary("sqrt", r.dag.shifted(r.floating(spread), epsilon)))
    value = r.dag.mul(r.dag.sub(_float(r, x), r.floating(middle)), factor)
    result = _affine(r, Tensor(value, dims, x.dtype), weight, bias)
    return (result, None, None)


def batch_norm_measured(r: Reader) -> Result:
    """Statistics of the batch itself: _native_batch_norm_legit.no_stats and _functional."""
    assert r.node is not None
    x = r.tensor(r.argument(0))
    functional = "functional" in r.node.op
    at = 5 if functional else 3
    if not r.argument(at):
        r.refuse("plan-unsupported-op", "batch_norm in eval mode comes as another operation")
    chosen = [i for i in range(len(x.dims)) if i != 1]
    atoms = _atoms(x, chosen)
    value, middle, factor = normalize(r.dag, _float(r, x), atoms, r.number(r.argument(at + 2)))
    weight, bias = (_per_channel(r, r.optional(r.argument(i)), len(x.dims)) for i in (1, 2))
    result = _affine(r, Tensor(value, x.dims, x.dtype), weight, bias)
    left = (x.dims[1],)
    saved = (Tensor(middle, left, DType.FLOAT32), Tensor(factor, left, DType.FLOAT32))
    if not functional:
        return (result, *saved)
    momentum = r.number(r.argument(6))
    _, unbiased = variance(r.dag, _float(r, x), atoms, 1)
    running = (
        _moved(r, r.tensor(r.argument(3)), Tensor(middle, left, DType.FLOAT32), momentum),
        _moved(r, r.tensor(r.argument(4)), Tensor(unbiased, left, DType.FLOAT32), momentum),
    )
    return (result, *saved, *running)


def _moved(r: Reader, old: Tensor, new: Tensor, momentum: float) -> Tensor:
    """Running statistics after this batch."""
    dims = r.broadcast(old, new)
    kept = r.dag.scaled(r.floating(old), 1.0 - momentum)
    return Tensor(r.dag.add(kept, r.dag.scaled(new.value, momentum)), dims, old.dtype)


def _found(r: Reader, text: str, x: Tensor, chosen: list[int]) -> Value:
    """The first place that holds the largest (smallest) element, or NaN, in row-major order."""
    atoms = _atoms(x, chosen)
    if not atoms:
        return r.dag.const(0.0)
    beyond = r.dag.const(float(EXACT - 1))
    place = r.dag.make("index", axes=atoms)
    if len(chosen) > 1:
        place = r.position(r.index(atoms))
    best = _extreme_of(r, text, x, atoms)
    if not x.dtype.is_float:
        hit = r.dag.where(integers.compared(r.dag, "eq", x.value, best), place, beyond)
        return r.dag.reduce("min", hit, atoms)
    hit = r.dag.select(r.dag.compare("eq", x.value, best), place, beyond)
    number = r.dag.compare("eq", x.value, x.value)
    return r.dag.reduce("min", r.dag.select(number, hit, place), atoms)


def _place(text: str) -> Rule:
    """argmax and argmin, along a dimension or of all elements.

    Positions are float32: exact as long as there are fewer than 2**24.
    """

    def rule(r: Reader) -> Result:
        x = r.tensor(r.argument(0))
        chosen = _chosen(r, x, r.argument(1, "dim"))
        if math.prod(sizes(tuple(x.dims[i] for i in chosen))) >= EXACT:
            r.refuse("plan-index-output", "float32 does not hold all positions")
        return Tensor(_found(r, text, x, chosen), _left(x, chosen, _flag(r, 2)), r.dtype)

    return rule


def gather(r: Reader) -> Result:
    """One element per row picked by an index: the sum of where(position == index, x, 0)."""
    x, index = r.tensor(r.argument(0)), r.tensor(r.argument(2))
    rank = len(x.dims)
    axis = r.dim(r.argument(1), rank) if rank else 0
    shape, picked = sizes(x.dims), sizes(index.dims)
    if (
        rank == 0
        or x.value.mode == ORDERED  # what is on chip is read where it stands
        or picked[axis] != 1
        or any(i != axis and shape[i] != picked[i] for i in range(rank))
    ):
        return moves.gather(r)
    atoms = leaves(x.dims[axis])
    empty: Dim = ()
    other = Tensor(
        x.value, tuple(empty if i == axis else dim for i, dim in enumerate(x.dims)), x.dtype
    )
    (other, index), dims = r.aligned(other, index)
    place = r.dag.make("index", axes=atoms)
    hit, zero = r.dag.test("eq", place, r.floating(index)), r.dag.const(0.0)
    fold = partial(r.dag.reduce, "sum", axes=atoms)
    if x.dtype.is_float:
        return Tensor(fold(r.dag.where(hit, x.value, zero)), dims, x.dtype)
    one, _ = integer_folds.summed(r.dag, integers.chosen(r.dag, hit, x.value, zero), fold, 0)
    return Tensor(integers.converted(r.dag, one, x.dtype), dims, x.dtype)


RULES: dict[str, Rule] = {
    "sum": total,
    "mean": average,
    "amax": _amount("max"),
    "amin": _amount("min"),
    "prod": product_,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "any": _some("max"),
    "all": _some("min"),
    "var": spread_only,
    "var_mean": spread_and_mean,
    "linalg_vector_norm": vector_norm,
    "_softmax": _softened(log=False),
    "_log_softmax": _softened(log=True),
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "_native_batch_norm_legit_no_training": batch_norm_stored,
    "_native_batch_norm_legit": batch_norm_measured,
    "_native_batch_norm_legit_functional": batch_norm_measured,
    "gather": gather,
    "argmax": _place("max"),
    "argmin": _place("min"),
}
