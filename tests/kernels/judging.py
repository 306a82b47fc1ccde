"""A task and a project of it, to be judged whole or changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from npusmith.ir.spec import OpSpec
from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Verdict

CHIP = find_chip("910B2")
TASK = '''"""A little of everything: a constant, a scale and an absolute value."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.abs(x) * 2.0 + 1.0


def get_inputs():
    return [torch.randn(40, 100)]


def get_init_inputs():
    return []
'''


@dataclass(frozen=True)
class Bench:
    """A judged task and its honest project; `try_kernel` judges a changed copy."""

    prepared: Prepared
    spec: OpSpec
    project: Path
    work: Path

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.project, self.work / name))

    def judge(self, project: Path, seconds: float = 20) -> Verdict:
        return judge(
            project,
            self.prepared,
            CHIP,
            "strict",
            spec=self.spec,
            options=JudgeOptions(seconds=seconds),
        )

    def try_kernel(self, name: str, change: Callable[[str], str], seconds: float = 20) -> Verdict:
        project = self.copy(name)
        kernel = project / "op_kernel" / f"{self.spec.name}.cpp"
        before = kernel.read_text()
        after = change(before)
        assert after != before, "the change did not find its place"
        kernel.write_text(after)
        return self.judge(project, seconds)
