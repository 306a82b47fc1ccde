"""model_new.py and pybind.cpp of a generated project: compiled for the CPU, run on the twin, called
with what the kernel serves and with what it does not."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from judging import CHIP
from torch._subclasses.fake_tensor import FakeTensorMode

from npusmith.lower import lower, read_bindings, write_project
from npusmith.plan import write
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare
from npusmith.twin import read_project
from npusmith.twin.bind import build_binding
from npusmith.twin.cheating import find_cheats

TASK = """from typing import NamedTuple

import torch
from torch import nn


class Gated(NamedTuple):
    whole: torch.Tensor
    halves: torch.Tensor
    nothing: None = None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(64))

    def forward(self, x, other):
        halves = torch.relu(x + other).view(x.shape[0], 4, 16).sum(-1)
        return Gated(torch.relu(x + other) * self.weight, halves)


def get_inputs():
    return [torch.randn(6, 64), torch.randn(6, 64)]


def get_init_inputs():
    return []
"""


CONSTANTS = """import torch
from torch import nn

TABLE = torch.arange(40.0).reshape(5, 8)


class Powers(nn.Module):
    def forward(self, x):
        return torch.pow(torch.tensor(0.9), x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(8), Powers())

    def forward(self, x):
        return self.layers(x) * TABLE + torch.tensor([[True], [False], [True], [True], [True]])


def get_inputs():
    return [torch.randn(5, 8)]


def get_init_inputs():
    return []
"""


MANY = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.LayerNorm(8) for _ in range(34))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def get_inputs():
    return [torch.randn(5, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def binding(model: ModuleType) -> Any:
    """The operator as the dispatcher has it."""
    return torch.ops.custom_ops_lib.gated_custom


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    work = tmp_path_factory.mktemp("bound")
    folder = _project(TASK, "gated", work)
    project = read_project(folder)
    build_binding([folder / "pybind.cpp"], {project.op.type: project}, work, "custom_ops_lib")
    sys.modules["custom_ops_lib"] = _load("custom_ops_lib", work / "custom_ops_lib.so")
    yield _load("gated_model", folder / "model_new.py")
    del sys.modules["custom_ops_lib"]


def _project(text: str, name: str, work: Path) -> Path:
    task = work / f"{name}.py"
    task.write_text(text)
    prepared = prepare(open_task(task), work, sets=Sets(seeds=(), edges=False, shapes=False))
    plan = write(prepared.graph, f"{name}_custom", CHIP)
    folder = work / "project"
    spec = replace(plan.spec, task_source=text, returns=prepared.graph.returns)
    write_project(lower(plan.program, CHIP), CHIP, folder, spec)
    return folder


def _load(name: str, path: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def made(model: ModuleType) -> Any:
    torch.manual_seed(5)
    return model.ModelNew()


def test_model_new_gives_what_the_model_gives(model: ModuleType) -> None:
    new, inputs = made(model), model.get_inputs()
    old = model.Model()
    old.load_state_dict(new.state_dict())
    with torch.no_grad():
        results, wanted = new(*inputs), old(*inputs)
    assert isinstance(results, model.Gated) and results.nothing is None
    torch.testing.assert_close(results[:2], wanted[:2])


def test_tensors_that_forward_makes_are_buffers_outside_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _project(CONSTANTS, "powers", tmp_path)
    seen: dict[str, torch.Tensor] = {}

    def powers_custom(*given: torch.Tensor) -> torch.Tensor:
        spec = read_bindings(folder)
        assert spec is not None
        seen.update({port.name: item for port, item in zip(spec.inputs, given, strict=True)})
        return given[-1]

    calls = ModuleType("custom_ops_lib")
    vars(calls)["powers_custom"] = powers_custom
    monkeypatch.setitem(sys.modules, "custom_ops_lib", calls)
    module = _load("powers_model", folder / "model_new.py")
    new, (x,) = module.ModelNew(), module.get_inputs()
    new.load_state_dict(module.Model().state_dict())
    new(x)
    made = [item for name, item in seen.items() if name.startswith("c_")]
    assert {id(item) for item in made} == {id(item) for item in new.buffers()}
    wanted = (torch.tensor(0.9), torch.arange(40.0).reshape(5, 8))
    for value in (*wanted, torch.tensor([[True], [False], [True], [True], [True]])):
        same = [item for item in made if item.shape == value.shape and item.dtype == value.dtype]
        assert len(same) == 1 and torch.equal(same[0], value)
    assert (folder / "constants.json").is_file() and seen["p_layers_0_weight"].shape == (8,)


def test_strided_and_broadcast_inputs_are_read_in_their_order(model: ModuleType) -> None:
    new, (x, other) = made(model), model.get_inputs()
    strided = torch.stack([x, x + 1], -1)[..., 0]
    turned = other.t().contiguous().t()
    assert not strided.is_contiguous() and not turned.is_contiguous()
    with torch.no_grad():
        torch.testing.assert_close(new(strided, turned)[:2], new(x, other)[:2], rtol=0, atol=0)
        spread = other[:1].expand(6, 64)
        again = new(x, spread.contiguous())
        torch.testing.assert_close(new(x, spread)[:2], again[:2], rtol=0, atol=0)


def test_other_sizes_that_are_served_and_empty_ones(model: ModuleType) -> None:
    new = made(model)
    with torch.no_grad():
        first, halves, _ = new(torch.ones(3, 64), torch.ones(3, 64))
        assert first.shape == (3, 64) and halves.shape == (3, 4)
        first, halves, _ = new(torch.ones(0, 64), torch.ones(0, 64))
        assert first.shape == (0, 64) and halves.shape == (0, 4)


@pytest.mark.parametrize(
    ("x", "other", "kind", "said"),
    [
        ((4, 6, 64), (4, 6, 64), ValueError, r"x has shape \[4, 6, 64\]; legal: rank 2"),
        ((64,), (64,), ValueError, r"x has shape \[64\]; legal: rank 2"),
        ((6, 64), (1, 64), ValueError, r"other has shape \[1, 64\]; legal: .*x\.shape\[0\]"),
        ((6, 32), (6, 32), ValueError, r"has shape \[(6, 32|64)\]; legal: .*shape"),
    ],
)
def test_other_shapes_raise_with_what_is_legal(
    model: ModuleType, x: tuple[int, ...], other: tuple[int, ...], kind: Any, said: str
) -> None:
    with torch.no_grad(), pytest.raises(kind, match=said):
        made(model)(torch.ones(x), torch.ones(other))


def test_other_types_and_devices_raise(model: ModuleType) -> None:
    new, (x, other) = made(model), model.get_inputs()
    with torch.no_grad():
        with pytest.raises(TypeError, match="other has elements of Half; legal: Float"):
            new(x, other.half())
        with pytest.raises(ValueError, match=r"is on .*; legal: .*, where the first tensor is"):
            new(x.to("meta"), other)


def test_a_gradient_is_refused_and_never_dropped(model: ModuleType) -> None:
    new, inputs = made(model), model.get_inputs()
    with pytest.raises(RuntimeError, match="no backward, and p_weight requires a gradient"):
        new(*inputs)
    new.requires_grad_(False)
    assert not any(item.requires_grad for item in new(*inputs)[:2])
    with pytest.raises(RuntimeError, match="no backward, and x requires a gradient"):
        new(inputs[0].requires_grad_(), inputs[1])


def test_tensors_without_data_have_the_shapes_of_the_results(model: ModuleType) -> None:
    new = made(model).to("meta")
    with torch.no_grad():
        first, halves, _ = new(*(item.to("meta") for item in model.get_inputs()))
    assert (first.device.type, first.shape, halves.shape) == ("meta", (6, 64), (6, 4))


def test_the_dispatcher_has_the_operator_for_tensors_with_and_without_data(
    model: ModuleType, binding: Any
) -> None:
    new, (x, other) = made(model), model.get_inputs()
    with torch.no_grad():
        found = tuple(binding(new.weight, x, other))
        torch.testing.assert_close(found, tuple(new(x, other)[:2]), rtol=0, atol=0)
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(item) for item in (new.weight, x, other)]
            assert [tuple(item.shape) for item in binding(*fake)] == [(6, 64), (6, 4)]
    with pytest.raises(RuntimeError, match="no backward, and x requires a gradient"):
        binding(new.weight.detach(), x.requires_grad_(), other)


def test_the_binding_itself_computes_nothing(model: ModuleType) -> None:
    path = Path(str(model.__file__)).with_name("pybind.cpp")
    assert find_cheats(path.read_text(), path) == []


def test_more_tensors_than_a_schema_has_arguments_are_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's dispatcher takes 64 arguments; a network's operator has hundreds of parameters."""
    folder = _project(MANY, "many", tmp_path)
    project = read_project(folder)
    build_binding([folder / "pybind.cpp"], {project.op.type: project}, tmp_path, "many_ops_lib")
    library = _load("many_ops_lib", tmp_path / "many_ops_lib.so")
    monkeypatch.setitem(sys.modules, "custom_ops_lib", library)
    module = _load("many_model", folder / "model_new.py")
    new, (x,), old = module.ModelNew(), module.get_inputs(), module.Model()
    for item in new.parameters():
        torch.nn.init.uniform_(item, 0.5, 1.5)
    old.load_state_dict(new.state_dict())
    assert len([*new.parameters()]) > 64
    with torch.no_grad():
        torch.testing.assert_close(new(x), old(x), rtol=1e-4, atol=1e-4)
        assert new.to("meta")(x.to("meta")).shape == (5, 8)
        spec = read_bindings(folder)
        assert spec is not None
        given = [x if port.target == "" else old.get_parameter(port.target) for port in spec.inputs]
        many = torch.ops.many_ops_lib.many_custom
        torch.testing.assert_close(many(given), old(x), rtol=1e-4, atol=1e-4)
        with FakeTensorMode() as mode:
            assert many([mode.from_tensor(item) for item in given]).shape == (5, 8)
        for wrong in ([], given[:-1], [*given, x]):
            with pytest.raises(ValueError, match=r"many_custom: \d+ tensors; legal: 69"):
                library.many_custom(wrong)
    with pytest.raises(RuntimeError, match=r"no backward, and .* requires a gradient"):
        many(given)
