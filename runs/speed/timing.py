"""What timing costs: a run with its log and its simulation against the run alone.

    python runs/speed/timing.py [--runs 5] [--json]

Two kernels, direct launches: `tiles` adds vectors in 16 KB tiles on eight cores; `small` runs a
million instructions (adds of 256 B between queues) on one core. Targets: at most twice the time of
the functional run for `tiles`, at most 10 s in all for `small`. `cpu` counts what the processes
computed, less what a launch without work takes: it holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.timing.simulate import simulate
from npusmith.twin.direct import DirectBuild, build_direct, run_direct
from npusmith.twin.launch import LaunchOptions

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


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run, with its simulation where it was timed."""

    wall: float  # seconds of the kernel
    cpu: float  # seconds of all processes
    steps: int = 0


def measure(build: DirectBuild, work: Path, name: str, timed: bool, times: int = -1) -> Cost:
    """One run of a kernel; `times`: repetitions, if not those of the table."""
    total, tile, usual, blocks = KERNELS[name]
    times = usual if times < 0 else times
    x = np.ones(total, np.float32)
    before = _cpu()
    log = work / f"{name}.log"
    rest = [value.to_bytes(8, "little") for value in (total, tile, times)]
    run = run_direct(
        build,
        blocks,
        [x, x],
        [((total,), DType.FLOAT32)],
        rest,
        options=LaunchOptions(record=log if timed else None),
    )
    assert run.completed and (times == 0 or (run.outputs[0] == 2).all()), run.findings
    if not timed:
        return Cost(run.kernel_seconds, _cpu() - before)
    start = time.monotonic()
    timing = simulate(log, build.toolchain, find_chip("910B2"))
    wall = run.kernel_seconds + time.monotonic() - start
    return Cost(wall, _cpu() - before, timing.steps)


def _cpu() -> float:
    """Seconds that child processes computed so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _rows(empty: list[Cost], plain: list[Cost], timed: list[Cost]) -> dict[str, float]:
    floor = statistics.median(cost.cpu for cost in empty)
    alone, wall = (statistics.median(cost.wall for cost in costs) for costs in (plain, timed))
    cpu, cpu_timed = (statistics.median(c.cpu for c in costs) - floor for costs in (plain, timed))
    return {
        "steps": timed[0].steps, "plain": alone, "timed": wall, "ratio": wall / alone,
        "cpu_plain": cpu, "cpu_timed": cpu_timed, "cpu_ratio": cpu_timed / cpu,
    }  # fmt: skip


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
            empty, plain, timed = [], [], []
            for _ in range(args.runs):  # in turn: what disturbs one disturbs the other
                empty.append(measure(build, work, kernel, False, times=0))
                plain.append(measure(build, work, kernel, False))
                timed.append(measure(build, work, kernel, True))
            found[kernel] = _rows(empty, plain, timed)
    if args.json:
        print(json.dumps(found))
        return
    for kernel, row in found.items():
        print(
            f"{kernel}: {row['steps']:,.0f} steps, {row['plain']:.3f} s alone, "
            f"{row['timed']:.3f} s with timing, ratio {row['ratio']:.2f}; "
            f"cpu {row['cpu_plain']:.3f} s, {row['cpu_timed']:.3f} s, ratio {row['cpu_ratio']:.2f}"
        )


if __name__ == "__main__":
    main()
