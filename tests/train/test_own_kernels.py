"""Kernels of the user's own: what is right becomes a sample, what is not is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.target.chips import find_chip
from npusmith.train.corpus.own_kernels import find_kernels, own_kernel

CHIP = find_chip("910B2")
TASK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x)


def get_inputs():
    return [torch.randn(3, 40)]


def get_init_inputs():
    return []
"""
PROGRAM = """@host
def host(x, y):
    launch(own, 1, n=x.size)

@kernel
def own(x: input(float32), y: output(float32), n: int):
    xt = ub(4096, float32)
    yt = ub(4096, float32)
    for t in range(ceil_div(n, 4096)):
        count = min(4096, n - t * 4096)
        with copy_in:
            load(xt, x[t * 4096], count)
        with compute:
            exp(yt, xt, count)
        with copy_out:
            store(y[t * 4096], yt, count)
"""


def test_a_right_kernel_is_a_sample_and_another_one_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "a.tile.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "b.py").write_text(TASK.replace("Model", "Other"), encoding="utf-8")
    (tmp_path / "b.asc").write_text("this is no C++\n", encoding="utf-8")
    (tmp_path / "c.py").write_text("nothing = 1\n", encoding="utf-8")
    first, second = find_kernels(tmp_path)
    ((sample,), outcomes) = own_kernel(first, CHIP)
    assert outcomes == {"own kernel right": 1}
    assert sample.verified_by == "npusmith run a.tile.py --task a.py"
    assert "exp(yt, xt, count)" in sample.completion
    none, outcomes = own_kernel(second, CHIP)
    assert not none
    assert outcomes == {"own kernel task-parts": 1}


def test_a_folder_without_kernels_is_named(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError, match="run-empty"):
        find_kernels(tmp_path)
    with pytest.raises(NpusmithError, match="file-missing"):
        find_kernels(tmp_path / "absent")
