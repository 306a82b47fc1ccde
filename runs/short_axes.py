"""Pointwise compositions whose innermost axes are short: estimated time against eager's estimate.

    python runs/short_axes.py [--json FILE] [CASE...]

One line for each module: estimated microseconds of the task, of PyTorch in eager mode, their ratio,
and the share of the memory roof. No values are computed. All times are estimates for the 910B2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from short_rows import Call, graph_of
from torch import Tensor

from npusmith.errors import NpusmithError
from npusmith.plan import write
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import goes_in_step, shrink
from npusmith.target.chips import Chip, find_chip
from npusmith.timing.eager import estimate
from npusmith.timing.roof import roof

Shape = tuple[int, ...]


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def _attended(x: Tensor, mask: Tensor) -> Tensor:
    return (x + mask.to(x.dtype)).softmax(-1)


def _shuffled(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, 4, c // 4, h, w).transpose(1, 2).reshape(n, c, h, w)


# name: what is computed, and the shapes of its operands
CASES: dict[str, tuple[Callable[..., Tensor], tuple[Shape, ...]]] = {
    "scale of 3 colours": (lambda x, w: x * w, ((1024, 512, 3), (3,))),
    "scale and shift of 3 colours": (lambda x, w, b: (x - b) / w, ((256, 4096, 3), (3,), (3,))),
    "one number for each pixel": (lambda x, w: x * w, ((1024, 512, 3), (1024, 512, 1))),
    "pixel and colour": (lambda x, w, b: x * w + b, ((1024, 512, 3), (1024, 512, 1), (3,))),
    "outer product, 3": (lambda a, b: a * b, ((500_000, 1), (1, 3))),
    "outer product, 17": (lambda a, b: a * b, ((100_000, 1), (1, 17))),
    "outer sum of three": (lambda a, b, c: a + b + c, ((64, 1, 1), (1, 512, 1), (64, 1, 31))),
    "six dimensions": (lambda x, w: F.gelu(x) * w, ((4, 8, 16, 16, 16, 16), (16, 1, 16))),
    "six dimensions, two factors": (
        lambda x, w, b: x * w + b,
        ((4, 8, 16, 16, 16, 16), (8, 1, 16, 1, 16), (16, 1, 1)),
    ),
    "rows that repeat every 7": (lambda x, w: x * w, ((4096, 7, 64), (7, 64))),
    "rows that repeat every 7, and a shift": (
        lambda x, w, b: torch.relu(x * w + b),
        ((4096, 7, 64), (7, 64), (7, 1)),
    ),
    "channels of 49 elements": (
        lambda x, w, b: x * w + b, ((64, 512, 7, 7), (512, 1, 1), (512, 1, 1)),
    ),
    "channels of 49, relu": (lambda x, w: torch.relu(x * w), ((64, 512, 7, 7), (512, 1, 1))),
    "channels of 196": (
        lambda x, w, b: F.silu(x * w + b), ((32, 256, 14, 14), (256, 1, 1), (256, 1, 1)),
    ),
    "channels last, 32": (
        lambda x, w, b: torch.relu(x * w + b), ((32, 56, 56, 32), (32,), (32,)),
    ),
    "squeeze and excite": (lambda x, s: x * torch.sigmoid(s), ((64, 512, 7, 7), (64, 512, 1, 1))),
    "mask by row": (lambda x, m: x * (m > 0), ((100_000, 32), (100_000, 1))),
    "mask by row of 100": (lambda x, m: torch.where(m > 0, x, 0.0), ((40_000, 100), (40_000, 1))),
    "mask by element of a row": (
        lambda x, m: x.masked_fill(m > 0, -1.0), ((16, 8, 1024, 64), (16, 1, 1024, 1)),
    ),
    "bias of heads": (lambda x, b: x + b, ((64, 16, 49, 49), (16, 49, 49))),
    "bias of windows": (lambda x, b, m: x + b + m, ((64, 8, 49, 49), (8, 49, 49), (64, 1, 49, 49))),
    "softmax with a mask of windows": (_attended, ((64, 8, 49, 49), (64, 1, 1, 49))),
    "rotary, halves of 32": (_rotated, ((8, 1024, 8, 64), (1024, 1, 32), (1024, 1, 32))),
    "layer scale of tokens": (lambda x, r, g: r + x * g, ((64, 197, 96), (64, 197, 96), (96,))),
    "gate of tokens": (lambda x, g: x * torch.sigmoid(g), ((64, 197, 96), (64, 197, 1))),
    "position and token": (lambda x, p, t: x + p + t, ((64, 197, 96), (197, 96), (64, 1, 96))),
    "transposed short axes": (lambda x: x.transpose(-1, -2) * 2.0, ((4096, 16, 16),)),
    "channel shuffle of 49": (_shuffled, ((64, 128, 7, 7),)),
    "channels first to last": (lambda x: x.permute(0, 2, 3, 1) + 1.0, ((32, 3, 224, 224),)),
    "distance of pairs, 3": (
        lambda a, b: (a - b).square(), ((512, 1, 3), (1, 512, 3)),
    ),
    "boxes: corners": (
        lambda x: torch.cat([x[..., :2] - x[..., 2:] / 2, x[..., :2] + x[..., 2:] / 2], -1),
        ((100_000, 4),),
    ),
    "boxes: areas": (
        lambda x: (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1]), ((200_000, 4),),
    ),
    "complex product": (
        lambda a, b: torch.stack(
            [a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1],
             a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]], -1,
        ),
        ((300_000, 2), (300_000, 2)),
    ),
    "group norm of 49": (lambda x: F.group_norm(x, 32), ((64, 512, 7, 7),)),
    "mean over 49": (lambda x: x.mean((-1, -2)), ((64, 512, 7, 7),)),
    "batch norm of 49": (
        lambda x, m, v: (x - m) * torch.rsqrt(v + 1e-5),
        ((64, 512, 7, 7), (512, 1, 1), (512, 1, 1)),
    ),
}  # fmt: skip


Cases = Mapping[str, tuple[Callable[..., Any], tuple[Shape, ...]]]


def measure(name: str, cases: Cases, chip: Chip) -> dict[str, Any]:
    fn, shapes = cases[name]
    try:
        graph = graph_of(Call(fn), tuple(torch.empty(s, device="meta") for s in shapes))
    except NpusmithError:  # a constant of the module has values
        graph = graph_of(Call(fn), tuple(torch.rand(s) for s in shapes))
    try:
        plan = write(graph, "short_custom", chip)
        sizes = shrink(graph, plan.spec, chip, in_step=goes_in_step(plan.program))
        us = Evaluator(plan.spec, chip, sizes).time(plan.program).task_us
    except NpusmithError as error:
        return {"case": name, "refused": f"{error.code}: {error.message}"}
    eager, least = estimate(graph, chip).us, roof(graph, chip).bound_us
    return {
        "case": name, "us": round(us, 1), "eager_us": round(eager, 1),
        "ratio": round(eager / us, 2), "of_roof": round(least / us, 3),
        "note": " ".join(plan.notes[-1:]),
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    if "refused" in row:
        return f"| {row['case']} | {row['refused']} | | | |"
    return (
        f"| {row['case']} | {row['us']:.1f} | {row['eager_us']:.1f} | {row['ratio']:.2f} | "
        f"{row['of_roof']:.2f} |"
    )


def main(cases: Cases, description: str | None) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    print("| module | us | eager us | eager / us | of the roof |")
    print("|---|---|---|---|---|")
    chip, found = find_chip("910B2"), []
    for name in options.cases or list(cases):
        found.append(measure(name, cases, chip))
        print(line(found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(CASES, __doc__)
