"""Index maps on the twin, which holds them to the chip's rules where the interpreter may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith import pipeline
from npusmith.target.chips import find_chip
from npusmith.writers.plan import PlanWriter

TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.randn(3, 41, 67)]


def get_init_inputs():
    return []
"""


class Silent:
    def step(self, name: str, detail: str = "") -> None: ...


@pytest.mark.parametrize(
    "forward",
    ["torch.exp(x).flip(2) + x.flip(1)", "torch.cumsum(x.sigmoid(), 1).flip(1), x.roll(3, 1)"],
)
def test_what_runs_backwards_keeps_to_offsets_that_the_chip_has(
    forward: str, tmp_path: Path
) -> None:
    task = tmp_path / "task.py"
    task.write_text(TASK.format(forward=forward))
    chip = find_chip("910B2")
    writer = PlanWriter(chip, search=0)
    verdict = pipeline.generate(task, tmp_path / "out", chip, "strict", Silent(), writer=writer)
    assert verdict.verdict == "pass", (verdict.error, verdict.findings)
