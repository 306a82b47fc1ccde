"""Which code of a kernel ran: by function and by line, over several runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import Build, Run, build, read_project, run
from npusmith.twin.coverage import Coverage, measure, merge, plain
from npusmith.twin.debug_lines import Spot

F32 = DType.FLOAT32
Edit = Callable[..., Path]
KERNEL = "op_kernel/add_custom.cpp"
COMPUTE = "  __aicore__ inline void Compute(uint32_t n) {\n"
TAIL = """  __aicore__ inline void Tail(uint32_t n) {
    LocalTensor<DTYPE_X> x = inX.DeQue<DTYPE_X>();
    LocalTensor<DTYPE_Y> y = inY.DeQue<DTYPE_Y>();
    LocalTensor<DTYPE_Z> z = outZ.AllocTensor<DTYPE_Z>();
    Add(z, x, y, n);
    outZ.EnQue<DTYPE_Z>(z);
    inX.FreeTensor(x);
    inY.FreeTensor(y);
  }
"""


def with_tail(edited: Edit, chip: Chip) -> Build:
    """The Add project with a stage of its own for tiles that are not whole."""
    changes = {
        KERNEL: [
            (COMPUTE, TAIL + COMPUTE),
            (
                "      Compute(n);",
                "      if (n < tile) {\n        Tail(n);\n      } else Compute(n);",
            ),
        ]
    }
    return build(read_project(edited("add", changes)), chip, (F32, F32, F32))


def add(built: Build, size: int) -> Run:
    x = np.ones(size, np.float32)
    result = run(built, [x, x], [(x.shape, F32)])
    assert result.completed
    return result


def test_a_stage_that_no_run_reaches_is_named_until_one_does(edited: Edit, chip: Chip) -> None:
    built = with_tail(edited, chip)
    whole = add(built, 1024 * 48)
    first = measure(built, [whole.ran])
    assert first.unreached_functions == ("KernelAdd::Tail",)
    assert any(file.endswith(KERNEL) for file, _ in first.unreached)
    odd = add(built, 1000 * 48)
    both = measure(built, [whole.ran, odd.ran])
    assert both.unreached_functions == ()
    assert merge([first, measure(built, [odd.ran])]) == both
    assert 0 < first.share < both.share <= 1


def test_lines_of_the_tiling_function_count_where_they_are_asked_for(
    edited: Edit, chip: Chip
) -> None:
    built = with_tail(edited, chip)
    result = add(built, 64)
    alone, both = measure(built, [result.ran]), measure(built, [result.ran], host=True)
    assert not any("op_host/add_custom.cpp" in spot.file for spot in alone.known)
    assert any("op_host/add_custom.cpp" in spot.file for spot in both.reached)


def test_a_function_is_called_by_its_plain_name() -> None:
    assert plain("Kernel<float, Pair<int> >::Run<3>(int)") == "Kernel::Run"
    assert plain("KernelAdd::Compute") == "KernelAdd::Compute"


def test_a_library_s_destructor_at_a_line_of_the_user_s_is_no_function_of_the_user_s() -> None:
    known = frozenset({Spot("a.cpp", 12, "AscendC::TPipe::~TPipe"), Spot("a.cpp", 30, "Own::Tail")})
    assert Coverage(frozenset(), known).unreached_functions == ("Own::Tail",)
