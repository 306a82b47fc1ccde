"""`generate --backward`: the task of gradients, and a package whose ModelNew autograd trains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from judging import CHIP
from torch import nn

from npusmith.backward import write_package
from npusmith.bench.model import Brief, Item
from npusmith.errors import NpusmithError
from npusmith.task.backward_task import Gradients, gradients_of
from npusmith.task.load import open_task
from npusmith.task.outline import outline
from npusmith.twin.bind import build_binding
from npusmith.twin.project import read_projects
from npusmith.writers.plan import PlanWriter, Written

TASK = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.unused = nn.Parameter(torch.zeros(3))

    def forward(self, x, y):
        hidden = torch.nn.functional.silu(self.norm(x))
        return hidden * y, x.argmax(-1), hidden.sum(-1)


def get_inputs():
    return [torch.randn(6, 40), torch.randn(6, 40)]


def get_init_inputs():
    return [40]
"""

TRAINED = """import sys
sys.path[:0] = [{bound!r}, {package!r}]
import torch
import model_new

torch.manual_seed(3)
model, ours = model_new.Model(40), model_new.ModelNew(40)
ours.load_state_dict(model.state_dict())
given = [torch.randn(6, 40, requires_grad=True) for _ in range(2)]
same = [item.detach().clone().requires_grad_() for item in given]
for module, tensors in ((model, given), (ours, same)):
    first, places, last = module(*tensors)
    (first.square().sum() + (3 * last).sum()).backward()
pairs = list(zip([*model.parameters(), *given], [*ours.parameters(), *same]))
assert sum(item.grad is not None for item, _ in pairs) == 4
for wanted, found in pairs:
    if wanted.grad is None:
        assert found.grad is None
    else:
        torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-4, atol=1e-4)
ours(*given)[0].sum().backward()  # no gradient for the last output
ours.dropped = torch.nn.Dropout(0.5)  # which the operators know nothing of
try:
    ours(*given)
except RuntimeError as error:
    assert "eval" in str(error)
else:
    raise AssertionError("a dropout was left out in training mode")
ours.eval()(*given)
"""


def _gradients(text: str, work: Path) -> Gradients:
    (work / "gated.py").write_text(text)
    task = open_task(work / "gated.py")
    return gradients_of(task, outline(task))


_PLAIN = "return hidden * y, x.argmax(-1), hidden.sum(-1)"
_NESTED = "return {'y': hidden * y, 'rest': [x.argmax(-1), None, (hidden.sum(-1),)]}"


@pytest.mark.parametrize("returned", [_PLAIN, _NESTED])
def test_the_task_of_gradients_is_a_task(tmp_path: Path, returned: str) -> None:
    assert _PLAIN in TASK
    made = _gradients(TASK.replace(_PLAIN, returned), tmp_path)
    assert made.parameters == ("norm.weight", "norm.bias") and made.outputs == (0, 2)
    (tmp_path / "gated_backward.py").write_text(made.text)
    space: dict[str, object] = {}
    exec(compile(made.text, "gated_backward.py", "exec"), space)  # our own text
    model, inputs = space["Model"](40), space["get_inputs"]()  # type: ignore[operator]
    assert isinstance(model, nn.Module)
    assert [tuple(item.shape) for item in inputs] == [(6, 40), (6, 40), (6, 40), (6,)]
    with torch.no_grad():
        found = model(*inputs)
    assert [tuple(item.shape) for item in found] == [(6, 40), (6, 40), (40,), (40,)]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("def forward(self, x, y):", "def forward(self, x, y, k=2):", "more than the tensors"),
        ("return hidden * y, x.argmax(-1), hidden.sum(-1)", "return x.argmax(-1)", "floating"),
    ],
)
def test_what_has_no_gradients_says_why(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(NpusmithError, match=why) as caught:
        _gradients(TASK.replace(old, new), tmp_path)
    assert caught.value.code == "task-gradients"


def test_autograd_trains_the_package(tmp_path: Path) -> None:
    made = _gradients(TASK, tmp_path)
    (tmp_path / "gated_backward.py").write_text(made.text)
    forward, backward = (_written(tmp_path / f"{name}.py") for name in ("gated", "gated_backward"))
    package, bound = tmp_path / "package", tmp_path / "bound"
    write_package(forward, backward, made, package, CHIP)
    readme = (package / "README.md").read_text(encoding="utf-8")
    assert "PyTorch computes" not in readme and "composition.json" not in readme
    build_binding([package / "pybind.cpp"], read_projects(package), bound, "custom_ops_lib")
    script = TRAINED.format(bound=str(bound), package=str(package))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def _written(path: Path) -> Written:
    task = open_task(path)
    item = Item(suite="s", name=task.name, category="c", source=path.name, digest=task.digest)
    writer = PlanWriter(CHIP)
    writer.write(Brief(item=item, reference=task.text, path=path), sample=0, seed=0)
    assert writer.written is not None
    return writer.written
