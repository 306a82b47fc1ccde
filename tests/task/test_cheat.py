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
    ],
)
def test_computing_with_pytorch_is_an_error(forward: str) -> None:
    assert codes(forward) == ["cheat-compute"]


def test_what_forward_reaches_counts_and_what_it_does_not_does_not() -> None:
    assert codes("helper(x)", helper="torch.exp(x)") == ["cheat-compute"]
    assert codes("self.more(x)", more="x.softmax(-1)") == ["cheat-compute"]
    assert codes("x", helper="torch.exp(x)") == []


def test_arithmetic_may_be_of_sizes_and_is_a_warning() -> None:
    found = find_cheats(HEAD.replace("FORWARD", "custom_ops_lib.f(x, x.size(0) * x.size(1))"))
    assert [(item.code, item.level.value) for item in found] == [("cheat-arithmetic", "warning")]


def test_text_that_is_no_python_has_no_findings() -> None:
    assert find_cheats("class ModelNew(") == []
