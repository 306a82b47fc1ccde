"""Gated units (SwiGLU, GeGLU with both outputs): estimated time against eager's estimate.

    python runs/gated_units.py [CASE...]

One line for each module, type and shape: estimated microseconds of the task and of PyTorch in eager
mode, their ratio, and the share of the memory roof. No values are computed. All times are estimates
for the 910B2.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from short_rows import Call, graph_of, time_of
from torch import Tensor

from npusmith.target.chips import find_chip
from npusmith.timing.eager import estimate
from npusmith.timing.roof import roof

SHAPES = ((64, 1024), (1024, 2048), (4096, 8192))


def _swiglu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


def _geglu(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    g = F.gelu(b)
    return a * g, g


CASES = {"swiglu": _swiglu, "geglu": _geglu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    chip = find_chip("910B2")
    print("| module | rows | type | task, us | eager, us | times | of the roof |")
    print("|---|---|---|---|---|---|---|")
    for name in parser.parse_args().cases or CASES:
        for shape in SHAPES:
            for dtype in (torch.float32, torch.float16):
                x = torch.empty(*shape, device="meta", dtype=dtype)
                graph = graph_of(Call(CASES[name]), (x,))
                task, eager = time_of(graph, chip), estimate(graph, chip).us
                print(
                    f"| {name} | {shape[0]} x {shape[1]} | {str(dtype)[6:]} | {task:.1f} | "
                    f"{eager:.1f} | {eager / task:.1f} | {roof(graph, chip).bound_us / task:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
