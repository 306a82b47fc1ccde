"""One row of the intrinsic table on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target.intrinsics import Intrinsic

Array = np.ndarray[Any, Any]


def apply(
    row: Intrinsic,
    dtype: DType,
    count: int,
    sources: Sequence[Array],
    scalars: Sequence[object] = (),
    mode: str = "",
    old: Array | None = None,
) -> Array:
    """The destination's new elements, of type `dtype`.

    `sources` are the mask (packed bits) and sources in operand order, `count` elements each; `old`
    is the destination's contents where the row reads it. A reduction returns one element, a compare
    packed bits.
    """
    if not sources:
        return row.meaning(dtype, count, *scalars)
    if row.name == "cast":
        return row.meaning(*sources, mode, dtype)
    first = (old,) if row.reads_dst else ()
    return row.meaning(*first, *sources, *scalars, *((mode,) if row.modes else ()))
