"""The Python part of a candidate may allocate, view and call its module; it may not compute."""

from __future__ import annotations

import pytest

from npusmith.task.cheat import find_cheats

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
import custom_ops_lib
def helper(x):
    return HELPER
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.layer = nn.Linear(3, 3)
        self.parts = nn.ModuleList()
    def more(self, x):
        return MORE
    def unused(self, x):
        return torch.exp(x)
    def forward(self, x):
        return FORWARD
"""


def codes(forward: str, helper: str = "x", more: str = "x") -> list[str]:
    text = HEAD.replace("FORWARD", forward).replace("HELPER", helper).replace("MORE", more)
    return [finding.code for finding in find_cheats(text)]


@pytest.mark.parametrize(
    "forward",
    [
        "custom_ops_lib.add(x, self.weight)",
        "custom_ops_lib.sum(x.view(-1).contiguous().to(torch.float16))",
        "custom_ops_lib.add(torch.empty_like(x), torch.zeros(3)).reshape(3, 4)",
        "custom_ops_lib.add(x, 1 << 20)",
        "helper(self.more(custom_ops_lib.relu(x)))",
        "custom_ops_lib.f(x, getattr(self, 'weight'), [p for p in self.parameters()])",
        "custom_ops_lib.f(x, self.weight.data, x.dtype is torch.float32, x.shape[-1])",
    ],
)
def test_calling_the_module_is_fair(forward: str) -> None:
    assert codes(forward) == []


@pytest.mark.parametrize(
    "forward",
    [
        "torch.relu(x)",
        "F.relu(x)",
        "x.sum()",
        "self.layer(x)",
        "x @ x",
        "nn.ReLU()(x)",
        "x.add_(x)",
        "getattr(torch, 'relu')(x)",
        "getattr(x, 'relu')()",
        "x.__add__(x)",
        "torch.Tensor.add(x, x)",
        "list(map(torch.exp, [x]))[0]",
        "(lambda y: torch.exp(y))(x)",
        "[torch.exp(y) for y in (x,)][0]",
        "[y.exp for y in (x,)][0]()",
        "torch.special.expit(x)",
        "torch.linalg.norm(x)",
    ],
)
def test_computing_with_pytorch_is_an_error(forward: str) -> None:
    assert "cheat-compute" in codes(forward)


def test_what_forward_reaches_counts_and_what_it_does_not_does_not() -> None:
    assert codes("helper(x)", helper="torch.exp(x)") == ["cheat-compute"]
    assert codes("self.more(x)", more="x.softmax(-1)") == ["cheat-compute"]
    assert codes("x", helper="torch.exp(x)") == []


# What stands at the outer level of the file, in __init__ and in forward.
ROUNDABOUT = {
    "an alias": ("f = torch.softmax", "", "f(x, -1)"),
    "an alias of a name that getattr gives": ("f = getattr(torch, 'exp')", "", "f(x)"),
    "two aliases at once": ("f, g = torch.exp, torch.log", "", "g(f(x))"),
    "a table of functions": ("TABLE = {'e': torch.exp}", "", "TABLE['e'](x)"),
    "a lambda of the file": ("f = lambda x: torch.exp(x)", "", "f(x)"),
    "a lambda of the module": ("", "self.f = lambda x: torch.exp(x)", "self.f(x)"),
    "a function kept by the module": ("", "self.f = torch.exp", "self.f(x)"),
    "a partial": ("from functools import partial\nf = partial(torch.add, alpha=2)", "", "f(x, x)"),
    "a renamed import": ("from torch import exp as view", "", "view(x)"),
    "a submodule of the file": (
        "class Sub(nn.Module):\n    def forward(self, x):\n        return torch.exp(x)",
        "self.sub = Sub()",
        "self.sub(x)",
    ),
    "a base class": (
        "class ModelBase(nn.Module):\n    def go(self, x):\n        return torch.exp(x)\n"
        "    def forward(self, x):\n        return self.go(x)",
        "self.base = ModelBase()",
        "self.base(x)",
    ),
    "numpy": ("import numpy as np", "", "torch.tensor(np.exp(x.numpy()))"),
}


@pytest.mark.parametrize("name", ROUNDABOUT)
def test_another_way_to_the_same_function_is_an_error(name: str) -> None:
    outer, init, forward = ROUNDABOUT[name]
    assert "cheat-compute" in [item.code for item in find_cheats(written(outer, init, forward))]


def written(outer: str, init: str, forward: str) -> str:
    return (
        f"import torch\nfrom torch import nn\nimport custom_ops_lib\n{outer}\n"
        "class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init or 'pass'}\n    def forward(self, x):\n        return {forward}\n"
    )


FAIR = "custom_ops_lib.f(x)"
HIDING = {
    "exec": ("", "", "exec('y = x')"),
    "eval": ("", "", "eval('x')"),
    "an import by name": ("", "", "__import__('torch').exp(x)"),
    "importlib": ("import importlib", "", FAIR),
    "the operator module": ("from operator import add", "", "add(x, x)"),
    "sys.modules": ("import sys", "", "sys.modules['torch'].exp(x)"),
    "sys.modules by from": ("from sys import modules", "", FAIR),
    "a module put in another's place": ("import sys\nsys.modules['a'] = 1", "", FAIR),
    "frames": ("import sys", "", "sys._getframe(1).f_locals"),
    "gc": ("import gc", "", FAIR),
    "inspect": ("import inspect", "", FAIR),
    "ctypes": ("import ctypes", "", FAIR),
    "struct": ("import struct", "", FAIR),
    "pickle": ("import pickle", "", FAIR),
    "threading": ("import threading", "", FAIR),
    "the judge itself": ("import npusmith.twin", "", FAIR),
    "a star import": ("from torch import *", "", "exp(x)"),
    "a getattr of a name put together": ("", "", "getattr(torch, 'ex' + 'p')(x)"),
    "a hook": ("", "self.register_forward_hook(print)", FAIR),
    "another forward": ("", "self.forward = self.parameters", FAIR),
    "another forward by setattr": ("", "setattr(self, 'forward', print)", FAIR),
    "another forward of the class": ("nn.Module.__call__ = print", "", FAIR),
    "a function put into the compiled module": ("custom_ops_lib.f = print", "", FAIR),
    "a metaclass": ("class A(nn.Module, metaclass=type):\n    pass", "", FAIR),
    "a subclass of Tensor": ("class T(torch.Tensor):\n    pass", "", FAIR),
    "__torch_function__": ("class T:\n    def __torch_function__(self):\n        pass", "", FAIR),
    "torch.compile": ("", "self.f = torch.compile(print)", FAIR),
    "torch.jit": ("@torch.jit.script\ndef f(x):\n    return x", "", "f(x)"),
    "torch.ops.aten": ("", "", "torch.ops.aten.exp(x)"),
    "a class that type() makes": ("T = type('T', (), {})", "", FAIR),
    "globals": ("", "", "globals()['torch'].exp(x)"),
}


@pytest.mark.parametrize("name", HIDING)
def test_what_hides_a_computation_is_an_error_wherever_it_stands(name: str) -> None:
    found = find_cheats(written(*HIDING[name]))
    assert "cheat-hidden" in [item.code for item in found]


@pytest.mark.parametrize(
    ("outer", "init"),
    [
        ("import math, os, sys\nsys.path.append(os.path.dirname('.'))", ""),
        ("from typing import Optional", "self.weight.requires_grad = False"),
        ("SIZE = 3 * 4", "self.scale = torch.exp(torch.ones(3)) * 2"),
        ("", "setattr(self, f'w{0}', nn.Parameter(torch.ones(1)))"),
        ("class Model(nn.Module):\n    def forward(self, x):\n        return torch.exp(x)", ""),
    ],
)
def test_plain_python_is_fair(outer: str, init: str) -> None:
    assert find_cheats(written(outer, init, FAIR)) == []


def test_arithmetic_may_be_of_sizes_and_is_a_warning() -> None:
    found = find_cheats(HEAD.replace("FORWARD", "custom_ops_lib.f(x, x.size(0) * x.size(1))"))
    assert [(item.code, item.level.value) for item in found] == [("cheat-arithmetic", "warning")]


def test_text_that_is_no_python_has_no_findings() -> None:
    assert find_cheats("class ModelNew(") == []
