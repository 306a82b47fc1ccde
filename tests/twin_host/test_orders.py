"""The files in which tensors cross to the runner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusmith.ir.dtypes import DType
from npusmith.twin.orders import Orders


@pytest.mark.parametrize("count", [1, 992, 1000, 1024, 5000])
def test_a_tensor_s_file_ends_with_a_page_so_that_the_red_zone_is_kept(
    tmp_path: Path, count: int
) -> None:
    x = np.ones(count, np.float32)
    orders = Orders(tmp_path)
    orders.input(0, x)
    orders.output(0, ((count,), DType.FLOAT32))
    orders.output(1, ((count,), DType.FLOAT32), initial=x)
    for file in tmp_path.iterdir():
        assert file.stat().st_size % 4096 == 0
        assert file.stat().st_size >= 4 * count + 128
    orders.close()
