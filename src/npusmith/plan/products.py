"""Products with vectors, and of matrices with short axes: a multiplication and a sum.

A product of which two of the three axes are short (4 x 4 times 4 x 5120) gives the cube unit next
to nothing to do: its tiles are 16 x 16 and would be mostly padding. A product with a vector reads
every element of the matrix once, which takes as long as the sum. Larger ones are an operation of
their own, which the cube unit does (matrix_products.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.dtypes import DType
from npusmith.plan.axes import Dim, Dims, fresh, leaves, pin, sizes
from npusmith.plan.dag import Kind, Value
from npusmith.plan.node_kinds import ATTENTION, CUBE_PRODUCT, OF_ANY_SIZE, is_on_cube
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.plan.split_k_parts import PARTIAL

EMPTY: Dim = ()
PRODUCT = "matmul"  # the operation of an expression, along the axes that are added up
PARTS = "parts"  # the mode of one that is cut into parts of these axes


def _product(r: Reader, left: Tensor, right: Tensor) -> tuple[Value, Dims]:
    """out[..., m, n] = sum over k of left[..., m, k] * right[..., k, n]."""
    rows, inner = sizes(left.dims)[-2:]
    columns = sizes(right.dims)[-1]
    if not r.dtype.is_float:
        hint = "torch._int_mm multiplies matrices of int8 into int32"
        r.refuse("plan-cube", f"products of {r.dtype.value} are not supported", hint=hint)
    if columns == 1 < rows:  # a vector: the sum goes along the matrix's rows, as in mv
        pin(right.dims[-1])
    spread = _spread(left, right, r.floating(left), r.floating(right))
    (one, two), dims = r.aligned(*spread)
    asked = r.node is not None and r.node.op in OF_ANY_SIZE
    if asked or is_on_cube(rows, inner, columns):
        axes = leaves(dims[-2])
        return r.dag.make(PRODUCT, one.value, two.value, axes=axes), (*dims[:-2], dims[-1])
    value = r.dag.reduce("sum", r.dag.mul(one.value, two.value), leaves(dims[-2]))
    return value, (*dims[:-2], dims[-1])


def matrices(r: Reader) -> Result:
    """mm and bmm."""
    value, dims = _product(r, r.tensor(r.argument(0)), r.tensor(r.argument(1)))
    return Tensor(value, dims, r.dtype)


def int8_product(r: Reader) -> Result:
    """_int_mm: of int8, added up in int32, which the cube unit does whatever the sizes are."""
    left, right = (r.tensor(r.argument(at)) for at in (0, 1))
    if {left.dtype, right.dtype} != {DType.INT8}:
        other = left.dtype if left.dtype is not DType.INT8 else right.dtype
        r.refuse("plan-cube", f"whole numbers of {other.value} are multiplied", legal="int8")
    if sizes(left.dims)[-1] == 0:
        r.refuse("plan-cube", "a product of whole numbers over nothing")
    (one, two), dims = r.aligned(*_spread(left, right, left.value, right.value))
    axes = leaves(dims[-2])
    value = r.dag.make(PRODUCT, one.value, two.value, axes=axes, kind=Kind.INT)
    return Tensor(value, (*dims[:-2], dims[-1]), r.dtype)


def _spread(left: Tensor, right: Tensor, one: Value, two: Value) -> tuple[Tensor, Tensor]:
    """Both with axes for rows, depth and columns."""
    return (
        Tensor(one, (*left.dims, EMPTY), left.dtype),
        Tensor(two, (*right.dims[:-2], EMPTY, *right.dims[-2:]), right.dtype),
    )


def partial(r: Reader) -> Result:
    """Products of parts of the depth, one behind the other (split_k_parts.py)."""
    assert r.node is not None
    value, dims = _product(r, r.tensor(r.argument(0)), r.tensor(r.argument(1)))
    assert value.op == PRODUCT
    (part,) = fresh(r.node.shape[:1])
    parts = r.dag.make(PRODUCT, *value.args, axes=value.axes, mode=PARTS)
    return Tensor(parts, (part, *dims), r.dtype)


def attention(r: Reader) -> Result:
    """Softmax of queries times keys, times values, and a mask (attention_graph.py)."""
    query, key, value = (r.tensor(r.argument(at)) for at in range(3))
    rows, depth, columns = query.dims[-2:-1], key.dims[-2:-1], value.dims[-1:]
    batch = [item.dims[:-2] for item in (query, key, value)]
    spread = [
        Tensor(query.value, (*batch[0], *rows, query.dims[-1], EMPTY, EMPTY), query.dtype),
        Tensor(key.value, (*batch[1], EMPTY, *depth, key.dims[-1], EMPTY), key.dtype),
        Tensor(value.value, (*batch[2], EMPTY, EMPTY, value.dims[-2], *columns), value.dtype),
    ]
    mask = r.optional(r.argument(3))
    if mask is not None:
        dims = (*mask.dims[:-1], EMPTY, mask.dims[-1], EMPTY)
        spread.append(Tensor(mask.value, dims, mask.dtype))
    found, dims = r.aligned(*spread)
    axes = (*leaves(dims[-3]), *leaves(dims[-2]))
    made = r.dag.make(ATTENTION, *(item.value for item in found), axes=axes)
    return Tensor(made, (*dims[:-3], dims[-1]), r.dtype)


def added(r: Reader) -> Result:
    """addmm and baddbmm: beta * what is given + alpha * the product."""
    return _added(r, *_product(r, r.tensor(r.argument(1)), r.tensor(r.argument(2))))


def _added(r: Reader, value: Value, dims: Dims) -> Result:
    more = r.tensor(r.argument(0))
    alpha, beta = (r.number(r.argument(at, name, 1)) for at, name in ((4, "alpha"), (3, "beta")))
    (one, two), dims = r.aligned(
        Tensor(value, dims, r.dtype), Tensor(r.floating(more), more.dims, more.dtype)
    )
    total = r.dag.add(r.dag.scaled(one.value, alpha), r.dag.scaled(two.value, beta))
    return Tensor(total, dims, r.dtype)


def _column(tensor: Tensor) -> Tensor:
    return Tensor(tensor.value, (*tensor.dims, EMPTY), tensor.dtype)


def vector(r: Reader) -> Result:
    """mv: a matrix times a vector."""
    value, dims = _product(r, r.tensor(r.argument(0)), _column(r.tensor(r.argument(1))))
    return Tensor(value, dims[:-1], r.dtype)


def added_vector(r: Reader) -> Result:
    """addmv: beta * what is given + alpha * a matrix times a vector."""
    value, dims = _product(r, r.tensor(r.argument(1)), _column(r.tensor(r.argument(2))))
    return _added(r, value, dims[:-1])


def dot(r: Reader) -> Result:
    """dot: the sum of what two vectors have in common."""
    left, right = (r.tensor(r.argument(at)) for at in (0, 1))
    row = Tensor(left.value, (EMPTY, *left.dims), left.dtype)
    value, _ = _product(r, row, _column(right))
    return Tensor(value, (), r.dtype)


_ROWS: Sequence[tuple[Rule, tuple[str, ...]]] = (
    (matrices, ("mm", "bmm")),
    (int8_product, ("_int_mm",)),
    (added, ("addmm", "baddbmm")),
    (vector, ("mv",)),
    (added_vector, ("addmv",)),
    (dot, ("dot", "vdot")),
)
RULES: dict[str, Rule] = {name: rule for rule, names in _ROWS for name in names}
OWN: dict[str, Rule] = {
    CUBE_PRODUCT: matrices,
    PARTIAL: partial,
    ATTENTION: attention,
}  # operations that only the compiler makes
