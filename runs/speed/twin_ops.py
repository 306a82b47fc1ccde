"""Speed of the twin's count-form vector operations: medians of several runs, one core.

    python runs/speed/twin_ops.py [--runs 7] [--json]

Each run launches one kernel that repeats an operation on 4,096-element tiles, with every check on.
Targets: Add at least 300 M elements/s, Exp at least 100 M/s, both fp32.
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

from native import Kernels, Tensor, build_kernels, build_runtime

TILE = 4096
LOOPS = 2000
OPERATIONS = {
    "Add float": ("float", "Add(d, a, b, n)"),
    "Muls float": ("float", "Muls(d, a, static_cast<T>(1.5f), n)"),
    "Max float": ("float", "Max(d, a, b, n)"),
    "Div float": ("float", "Div(d, a, b, n)"),
    "Exp float": ("float", "Exp(d, a, n)"),
    "Ln float": ("float", "Ln(d, a, n)"),
    "Sqrt float": ("float", "Sqrt(d, a, n)"),
    "Tanh float": ("float", "Tanh(d, a, n)"),
    "Sigmoid float": ("float", "Sigmoid(d, a, n)"),
    "Add half": ("half", "Add(d, a, b, n)"),
    "Exp half": ("half", "Exp(d, a, n)"),
    "Cast half to float": ("float", "Cast(d, h, RoundMode::CAST_NONE, n)"),
    "Cast float to half": ("float", "Cast(h, d, RoundMode::CAST_RINT, n)"),
    "Cast float to int32": ("float", "Cast(i, a, RoundMode::CAST_TRUNC, n)"),
    "ReduceSum float": ("float", "ReduceSum(d, a, b, n)"),
    "ReduceMax float": ("float", "ReduceMax(d, a, b, n)"),
    "Compare float": ("float", "Compare(m, a, b, CMPMODE::LT, n)"),
    "Select float": (
        "float",
        "Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, n)",
    ),
    "DataCopy in": ("float", "DataCopy(d, gm, n); PipeBarrier<PIPE_MTE2>()"),
    "Add float, repeats": ("float", "Add(d, a, b, uint64_t(64), 64, {1, 1, 1, 8, 8, 8})"),
    "Add float, row broadcast": ("float", "Add(d, a, b, uint64_t(64), 64, {1, 1, 1, 8, 8, 0})"),
}
KERNEL = """
extern "C" void entry_%d(void **args) {
  using T = %s;
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[4];
  for (auto &buf : bufs) pipe.InitBuffer(buf, 4096 * 4);
  auto d = bufs[0].Get<T>(), a = bufs[1].Get<T>(), b = bufs[2].Get<T>();
  auto h = bufs[3].Get<half>();
  auto i = bufs[3].Get<int32_t>();
  auto m = bufs[3].Get<uint8_t>();
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(static_cast<T *>(args[0]));
  const int n = 4096;
  Duplicate(a, T(0.75f), n);
  Duplicate(b, T(0.5f), n);
  Duplicate(d, T(0.25f), n);
  Duplicate(h, half(0.5f), n);
  PipeBarrier<PIPE_ALL>();
  const int loops = *static_cast<int *>(args[1]);
  for (int loop = 0; loop < loops; ++loop) { %s; }
}
"""


def _build() -> Kernels:
    parts = ['#include "kernel_operator.h"\nusing namespace AscendC;\n']
    parts += [KERNEL % (i, *row) for i, row in enumerate(OPERATIONS.values())]
    return build_kernels(build_runtime(), "".join(parts), "bench")


def _seconds(kernels: Kernels, entry: str, loops: int) -> float:
    tensors = [Tensor(np.zeros(TILE, np.float32)), Tensor(np.array([loops], np.int32))]
    start = time.perf_counter()
    outcome = kernels.launch(entry, tensors)
    seconds = time.perf_counter() - start
    assert outcome.finished and not outcome.findings, outcome
    return seconds


def _rate(kernels: Kernels, entry: str, runs: int) -> tuple[float, float]:
    """Median of M elements/s, and the spread (largest less smallest) over the runs."""
    rates = [TILE * LOOPS / _seconds(kernels, entry, LOOPS) / 1e6 for _ in range(runs)]
    return statistics.median(rates), max(rates) - min(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    kernels = _build()
    rows = {name: _rate(kernels, f"entry_{i}", args.runs) for i, name in enumerate(OPERATIONS)}
    if args.json:
        print(json.dumps({name: {"median": m, "spread": s} for name, (m, s) in rows.items()}))
        return
    print(f"M elements/s on one core, median of {args.runs} runs (spread)")
    for name, (median, spread) in rows.items():
        print(f"{name:28} {median:10.0f}  ({spread:.0f})")


if __name__ == "__main__":
    main()
