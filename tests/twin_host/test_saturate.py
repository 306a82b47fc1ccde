"""The launch says how half arithmetic saturates until the kernel says so itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions

F16 = DType.FLOAT16
PROJECTS = Path(__file__).parents[1] / "projects"


@pytest.mark.parametrize(("saturate", "want"), [(False, np.inf), (True, 65504)])
def test_a_sum_past_the_largest_half(chip: Chip, saturate: bool, want: float) -> None:
    built = build(read_project(PROJECTS / "add"), chip, (F16, F16, F16))
    big = np.full(256, 60000, np.float16)
    done = run(built, [big, big], [((256,), F16)], options=LaunchOptions(saturate=saturate))
    assert done.completed
    assert (done.outputs[0] == np.float16(want)).all()
