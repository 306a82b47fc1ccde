"""Projects and direct launches that run on cube cores, or on both kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.twin.direct import build_direct, run_direct

CHIP = find_chip("910B2")
SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;

template <typename T>
__global__ __mix__(1, 2) void mixed(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
  if ASCEND_IS_AIV {
    CrossCoreWaitFlag(1);
    LocalTensor<float> x(TPosition::VECCALC, 0, 128);
    GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float *)c + 128 * GetSubBlockIdx());
    DataCopy(x, out, 128);
    PipeBarrier<PIPE_ALL>();
    Muls(x, x, 2.0f, 128);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, x, 128);
  } else {
    LocalTensor<T> a1(TPosition::A1, 0, 256), b1(TPosition::B1, 512, 256);
    LocalTensor<T> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
    LocalTensor<float> l0c(TPosition::CO1, 0, 256);
    GlobalTensor<T> left, right;
    GlobalTensor<float> out;
    left.SetGlobalBuffer((__gm__ T *)a);
    right.SetGlobalBuffer((__gm__ T *)b);
    out.SetGlobalBuffer((__gm__ float *)c);
    DataCopy(a1, left, 256);
    DataCopy(b1, right, 256);
    PipeBarrier<PIPE_ALL>();
    LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
    LoadData(b2, b1, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
    PipeBarrier<PIPE_ALL>();
    Mmad(l0c, a2, b2, MmadParams(16, 16, 16, false));
    PipeBarrier<PIPE_ALL>();
    Fixpipe(out, l0c, FixpipeParamsV220(16, 16, 16, 16, false));
    CrossCoreSetFlag<2, PIPE_FIX>(1);
  }
}

__global__ __vector__ void plain(GM_ADDR c) {
  LocalTensor<float> x(TPosition::VECCALC, 0, 256);
  GlobalTensor<float> out;
  out.SetGlobalBuffer((__gm__ float *)c);
  DataCopy(x, out, 256);
  PipeBarrier<PIPE_ALL>();
  Adds(x, x, 1.0f, 256);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, x, 256);
}

void product_do(uint32_t blocks, void *stream, uint8_t *a, uint8_t *b, uint8_t *c) {
  mixed<half><<<1, nullptr, stream>>>(a, b, c);
  plain<<<1, nullptr, stream>>>(c);
}
"""


def test_a_launch_of_each_kind_of_kernel_from_one_file(tmp_path: Path) -> None:
    source = tmp_path / "product.asc"
    source.write_text(SOURCE)
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(-1, 1, (16, 16)).astype(np.float16) for _ in range(2))
    build = build_direct(source, CHIP)
    result = run_direct(build, 1, [a, b], [((16, 16), DType.FLOAT32)])
    assert result.findings == []
    assert result.completed
    want = 2 * (a.astype(np.float64) @ b.astype(np.float64)) + 1
    np.testing.assert_allclose(result.outputs[0], want, atol=1e-5)
