"""Speed of Mmad on the twin: a 512 x 512 x 512 half product on one cube core, every check on.

    python runs/speed/matmul.py [--size 512] [--runs 5] [--json]

Tiles of 128 x 256 x 64, as published kernels use them: moves, loads and Fixpipe are included.
Target: at most 2 s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "twin_kernel"))

from cores import build_cores
from native import Tensor, build_runtime

from npusmith.twin.kind import Kind

TEXT = """
#include "kernel_operator.h"
using namespace AscendC;
constexpr int kM = 128, kN = 256, kK = 64;

// a: size x size, b: size x size given by its columns
extern "C" __attribute__((visibility("default"))) void entry(void **args) {
  if (g_coreType != AIC) return;
  const int size = *static_cast<int64_t *>(args[3]);
  LocalTensor<half> a1(TPosition::A1, 0, kM * kK), b1(TPosition::B1, 65536, kN * kK);
  LocalTensor<half> a2(TPosition::A2, 0, kM * kK), b2(TPosition::B2, 0, kN * kK);
  LocalTensor<float> c(TPosition::CO1, 0, kM * kN);
  GlobalTensor<half> a, b;
  GlobalTensor<float> out;
  a.SetGlobalBuffer(static_cast<half *>(args[0]));
  b.SetGlobalBuffer(static_cast<half *>(args[1]));
  out.SetGlobalBuffer(static_cast<float *>(args[2]));
  for (int m = 0; m < size; m += kM) {
    for (int n = 0; n < size; n += kN) {
      for (int k = 0; k < size; k += kK) {
        DataCopy(a1, a[m * size + k], Nd2NzParams(1, kM, kK, 0, size, kM, 1, 0));
        DataCopy(b1, b[n * size + k], Nd2NzParams(1, kN, kK, 0, size, kN, 1, 0));
        PipeBarrier<PIPE_ALL>();
        for (int i = 0; i < kM / 16; ++i) {
          LoadData(a2[i * kK * 16], a1[i * 256],
                   LoadData2DParams(0, kK / 16, kM / 16, 0, 0, false, 0));
        }
        LoadData(b2, b1, LoadData2DParams(0, kN / 16 * kK / 16, 1, 0, 0, false, 0));
        PipeBarrier<PIPE_ALL>();
        MmadParams how(kM, kN, kK, false);
        how.cmatrixInitVal = k == 0;
        Mmad(c, a2, b2, how);
        PipeBarrier<PIPE_ALL>();
      }
      Fixpipe(out[m * size + n], c, FixpipeParamsV220(kN, kM, kM, size, false));
      PipeBarrier<PIPE_ALL>();
    }
  }
}
"""


def measure(size: int, runs: int) -> list[float]:
    """Seconds of each run; the result is compared with NumPy's once."""
    cores = build_cores(build_runtime(), TEXT, "matmul_speed")
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (size, size)).astype(np.float16) for _ in range(2))
    out = np.zeros((size, size), np.float32)
    sizes = np.array([size], np.int64)
    tensors = [Tensor(a, "a", False), Tensor(b, "b", False), Tensor(out), Tensor(sizes, "s", False)]
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        outcome = cores.launch("entry", tensors, Kind.AIC_ONLY)
        seconds.append(time.perf_counter() - start)
        assert outcome.finished
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-3)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=512, help="a multiple of 256")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = measure(options.size, options.runs)
    median = statistics.median(seconds)
    if options.json:
        print(json.dumps({"size": options.size, "seconds": seconds, "median": median}))
        return
    rate = 2 * options.size**3 / median / 1e9
    spread = f"{min(seconds):.3f} .. {max(seconds):.3f} s in {options.runs} runs"
    print(f"{options.size}^3 half: median {median:.3f} s ({spread}), {rate:.1f} GFLOP/s")


if __name__ == "__main__":
    main()
