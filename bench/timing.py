"""What timing costs: a run with its log and its simulation against the run alone.

    python bench/timing.py [--runs 5] [--json]

Two kernels, direct launches: `tiles` adds vectors in 16 KB tiles on eight cores; `small` runs a
million instructions (adds of 256 B between queues) on one core. Targets: at most twice the time of
the functional run for `tiles`, at most 10 s in all for `small`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.timing.simulate import simulate
from npusmith.twin.direct import DirectBuild, build_direct, run_direct

TEXT = """
#include "kernel_operator.h"
using namespace AscendC;

__global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t total, int64_t tile,
                               int64_t times) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> qx, qy;
  TQue<TPosition::VECOUT, 2> qz;
  pipe.InitBuffer(qx, 2, tile * 4);
  pipe.InitBuffer(qy, 2, tile * 4);
  pipe.InitBuffer(qz, 2, tile * 4);
  const int64_t share = total / GetBlockNum(), from = share * GetBlockIdx();
  GlobalTensor<float> gx, gy, gz;
  gx.SetGlobalBuffer((__gm__ float *)x, total);
  gy.SetGlobalBuffer((__gm__ float *)y, total);
  gz.SetGlobalBuffer((__gm__ float *)z, total);
  for (int64_t n = 0; n < times; ++n) {
    for (int64_t at = from; at < from + share; at += tile) {
      LocalTensor<float> a = qx.AllocTensor<float>(), b = qy.AllocTensor<float>();
      DataCopy(a, gx[at], tile);
      DataCopy(b, gy[at], tile);
      qx.EnQue(a);
      qy.EnQue(b);
      a = qx.DeQue<float>();
      b = qy.DeQue<float>();
      LocalTensor<float> c = qz.AllocTensor<float>();
      Add(c, a, b, tile);
      qz.EnQue(c);
      qx.FreeTensor(a);
      qy.FreeTensor(b);
      c = qz.DeQue<float>();
      DataCopy(gz[at], c, tile);
      qz.FreeTensor(c);
    }
  }
}
extern "C" void add_do(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, uint8_t *z,
                       int64_t total, int64_t tile, int64_t times) {
  add<<<blocks, nullptr, stream>>>(x, y, z, total, tile, times);
}
"""
# total elements, tile, repetitions, blocks; 16 API calls for each tile
KERNELS = {"tiles": (1 << 20, 4096, 32, 8), "small": (1 << 16, 64, 62, 1)}


def measure(build: DirectBuild, work: Path, name: str, timed: bool) -> tuple[float, int]:
    """Seconds of the kernel (and of its simulation), and steps in the log."""
    total, tile, times, blocks = KERNELS[name]
    x = np.ones(total, np.float32)
    log = work / f"{name}.log"
    rest = [value.to_bytes(8, "little") for value in (total, tile, times)]
    run = run_direct(
        build, blocks, [x, x], [((total,), DType.FLOAT32)], rest, record=log if timed else None
    )
    assert run.completed and (run.outputs[0] == 2).all(), run.findings
    if not timed:
        return run.kernel_seconds, 0
    start = time.monotonic()
    timing = simulate(log, build.toolchain, find_chip("910B2"))
    return run.kernel_seconds + time.monotonic() - start, timing.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        source = work / "add.cpp"
        source.write_text(TEXT)
        build = build_direct(source, find_chip("910B2"))
        found: dict[str, dict[str, float]] = {}
        for kernel in KERNELS:
            plain, timed, steps = [], [], 0
            for _ in range(args.runs):  # in turn: what disturbs one disturbs the other
                plain.append(measure(build, work, kernel, False)[0])
                seconds, steps = measure(build, work, kernel, True)
                timed.append(seconds)
            one, other = statistics.median(plain), statistics.median(timed)
            found[kernel] = {"steps": steps, "plain": one, "timed": other, "ratio": other / one}
    if args.json:
        print(json.dumps(found))
        return
    for kernel, row in found.items():
        print(
            f"{kernel}: {row['steps']:,.0f} steps, {row['plain']:.3f} s alone, "
            f"{row['timed']:.3f} s with timing, ratio {row['ratio']:.2f}"
        )


if __name__ == "__main__":
    main()
