"""A checkout in NPUKernelBench's format, of our own writing: one honest task, one that cheats."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ANSWER = Path(__file__).parents[1] / "projects" / "add"

MODULE = """
import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, offset):
        super().__init__()
        self.offset = offset

    def forward(self, x, y):
        return x + y + self.offset


class ModelNew(nn.Module):
    def __init__(self, offset):
        super().__init__()
        assert isinstance(offset, int), "a number of NumPy's is a number"

    def forward(self, x, y):
        import kernel_gen_ops
        return kernel_gen_ops.add_custom(x, y)
"""

INPUTS = """
import numpy as np
import torch


def get_inputs(param, device=None):
    shape = eval(param.get('shape', '[1]'))
    dtype = getattr(torch, param.get('dtype', 'float16'))
    return torch.randn(shape, device=device, dtype=dtype), torch.randn(shape, dtype=dtype)


def get_init_inputs(param, device=None):
    return [np.int64(param.get('offset', 0))]
"""

CASES = """case_id;shape;dtype;offset
0;[4, 100];float32;0
1;[4, 100];float32;1
2;[7, 33];float16;0
3;[9000, 9000];float32;0
"""

HONEST = """
#include <torch/library.h>
#include "pytorch_npu_helper.hpp"

at::Tensor add(at::Tensor &x, at::Tensor &y) {
  at::Tensor result = torch::empty_like(x);
  EXEC_NPU_CMD(aclnnCustomOp, x, y, result);
  return result;
}

TORCH_LIBRARY_IMPL(ours, PrivateUse1, m) { m.impl("add", &add); }

PYBIND11_MODULE(kernel_gen_ops, m) { m.def("custom_pybind_api", &add, ""); }
"""

CHEAT = """
#include "pytorch_npu_helper.hpp"

at::Tensor add(at::Tensor &x, at::Tensor &y) { return at::add(x, y); }

PYBIND11_MODULE(kernel_gen_ops, m) { m.def("custom_pybind_api", &add, ""); }
"""


def write_task(folder: Path, binding: str, cases: str = CASES) -> None:
    (folder / "validation").mkdir(parents=True)
    shutil.copytree(ANSWER, folder / "answer" / "0")
    texts = {"module.py": MODULE, "prepare_inputs.py": INPUTS, "test_cases.csv": cases}
    for name, text in {**texts, "pybind.cpp": binding}.items():
        (folder / "validation" / name).write_text(text)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("suite")
    write_task(root / "tasks" / "level1" / "Math" / "AddCustom", HONEST)
    only = CASES.splitlines(keepends=True)
    write_task(root / "tasks" / "level2" / "Odd" / "AddCustom_2", CHEAT, "".join(only[:2]))
    (root / "tasks" / "level1" / "Math" / "NoAnswer" / "validation").mkdir(parents=True)
    return root
