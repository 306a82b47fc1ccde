"""Batched products of matrices with short axes: a multiplication and a sum, on the vector unit.

A product of which two of the three axes are short (4 x 4 times 4 x 5120) gives the cube unit next
to nothing to do: its tiles are 16 x 16 and would be mostly padding. Larger ones are refused.
"""

from __future__ import annotations

from npusmith.plan.axes import Dim, leaves, sizes
from npusmith.plan.reader import Reader, Result, Rule, Tensor

SHORT = 16  # elements of a short axis: one side of a tile of the cube unit
EMPTY: Dim = ()


def batched(r: Reader) -> Result:
    """bmm: out[b, m, n] = sum over k of left[b, m, k] * right[b, k, n]."""
    left, right = r.tensor(r.argument(0)), r.tensor(r.argument(1))
    _, rows, inner = sizes(left.dims)
    columns = sizes(right.dims)[2]
    if sorted((rows, inner, columns))[1] > SHORT:
        r.refuse(
            "plan-data-movement", "matrix products need the cube unit",
            legal=f"batched products of which two axes have at most {SHORT} elements",
        )  # fmt: skip
    spread = (
        Tensor(r.floating(left), (*left.dims, EMPTY), left.dtype),
        Tensor(r.floating(right), (right.dims[0], EMPTY, *right.dims[1:]), right.dtype),
    )
    (one, two), dims = r.aligned(*spread)
    value = r.dag.reduce("sum", r.dag.mul(one.value, two.value), leaves(dims[2]))
    return Tensor(value, (dims[0], dims[1], dims[3]), r.dtype)


RULES: dict[str, Rule] = {"bmm": batched}
