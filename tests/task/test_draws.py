"""Parameters and buffers are drawn, and a kernel that leaves one out fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from npusmith.target.chips import find_chip
from npusmith.task.judge import judge
from npusmith.task.load import open_task
from npusmith.task.module import judge_module
from npusmith.task.parameter_draws import Draws, Style, draw, drawn_names, put, tensors_of
from npusmith.task.prepared import Prepared
from npusmith.task.source import judge_source
from npusmith.task.tolerance import compare
from npusmith.task.verdict import Verdict
from npusmith.twin.formats import read_submission

CHIP = find_chip("910B2")
PROJECT = Path(__file__).parents[1] / "projects" / "add"
TASK = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(8, 70))
    def forward(self, a):
        return a + self.bias
def get_inputs():
    return [torch.randn(8, 70)]
def get_init_inputs():
    return []
"""
MODEL = """import torch
import torch_npu
import custom_ops_lib
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(8, 70))
    def forward(self, a):
        return custom_ops_lib.add_custom(a, self.bias)
"""
BINDING = """#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"
at::Tensor add_custom(const at::Tensor &a, const at::Tensor &b) {
  at::Tensor result = at::empty_like(a);
  EXEC_NPU_CMD(aclnnAddCustom, a, b, result);
  return result;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_custom", &add_custom); }
"""


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, prepare_quickly: Callable[..., Prepared]
) -> Prepared:
    folder = tmp_path_factory.mktemp("draws")
    (folder / "plus_bias.py").write_text(TASK)
    task = open_task(folder / "plus_bias.py")
    return prepare_quickly(task, folder / "trials", seeds=(11, 23, 37), edges=False, shapes=False)


def test_most_sets_have_drawn_parameters_and_the_first_the_models_own(prepared: Prepared) -> None:
    assert [trial.draw for trial in prepared.trials] == [0, 1, 2]
    held = [prepared.held(trial)["bias"] for trial in prepared.trials]
    assert not held[0].any() and held[1].any() and not np.array_equal(held[1], held[2])
    for trial, bias in zip(prepared.trials, held, strict=True):
        np.testing.assert_array_equal(trial.references[0], trial.inputs[0] + bias)


def test_an_operator_gets_the_drawn_values_and_one_that_ignores_them_fails(
    prepared: Prepared, tmp_path: Path
) -> None:
    project = Path(shutil.copytree(PROJECT, tmp_path / "add"))
    assert judge(project, prepared, CHIP, "strict").verdict == "pass"
    kernel = project / "op_kernel" / "add_custom.cpp"
    kernel.write_text(kernel.read_text().replace("Add(z, x, y, n);", "Muls(z, x, 1.0f, n);"))
    verdict = judge(project, prepared, CHIP, "strict")
    assert [trial.passed for trial in verdict.trials] == [True, False, False]
    assert [trial.draw for trial in verdict.trials] == [0, 1, 2]


def judged_class(prepared: Prepared, folder: Path, model: str) -> Verdict:
    texts = {
        "project_json_src": '[{"op": "AddCustom", "input_desc": []}]',
        "host_tiling_src": (PROJECT / "op_host/add_custom_tiling.h").read_text(),
        "host_operator_src": (PROJECT / "op_host/add_custom.cpp").read_text(),
        "kernel_src": (PROJECT / "op_kernel/add_custom.cpp").read_text(),
        "python_bind_src": BINDING,
        "model_src": model,
    }
    file = folder / "answer.py"
    file.write_text("".join(f"{name} = {text!r}\n" for name, text in texts.items()))
    return judge_module(read_submission(file), prepared, CHIP, "strict")


def test_a_class_gets_the_drawn_values_under_their_names(
    prepared: Prepared, tmp_path: Path
) -> None:
    assert judged_class(prepared, tmp_path, MODEL).verdict == "pass"
    idle = MODEL.replace("(a, self.bias)", "(a, torch.zeros(8, 70))")
    assert judged_class(prepared, tmp_path, idle).verdict == "fail"


def test_a_class_with_other_parameters_is_told_so(prepared: Prepared, tmp_path: Path) -> None:
    verdict = judged_class(prepared, tmp_path, MODEL.replace("self.bias", "self.shift"))
    assert [item.code for item in verdict.findings] == ["parameters-fixed"], verdict
    assert "bias" in verdict.findings[0].seen
    assert [bool(trial.skipped) for trial in verdict.trials] == [False, True, True]


def test_a_launcher_gets_the_parameters_behind_the_inputs(
    prepared: Prepared, tmp_path: Path
) -> None:
    file = tmp_path / "add.asc"
    file.write_text(
        """#include "kernel_operator.h"
__global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t n) {
  AscendC::GlobalTensor<float> a, b, c;
  a.SetGlobalBuffer((__gm__ float *)x, n);
  b.SetGlobalBuffer((__gm__ float *)y, n);
  c.SetGlobalBuffer((__gm__ float *)z, n);
  for (int64_t i = 0; i < n; ++i) {
    if (i / 16 % AscendC::GetBlockNum() != AscendC::GetBlockIdx()) continue;
    c.SetValue(i, a.GetValue(i) + b.GetValue(i));
  }
}
void add_do(uint32_t blocks, void *stream, GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t n) {
  add<<<blocks, nullptr, stream>>>(x, y, z, n);
}
"""
    )
    assert judge_source(file, prepared, CHIP, "strict").verdict == "pass"
    without = "void add_do(uint32_t blocks, void *stream, GM_ADDR x, GM_ADDR z, int64_t n) {\n"
    text = file.read_text()
    at = text.index("void add_do")
    file.write_text(text[:at] + without + "  add<<<blocks, nullptr, stream>>>(x, x, z, n);\n}\n")
    error = judge_source(file, prepared, CHIP, "strict").error
    assert error is not None and error["code"] == "launcher-arguments"
    assert error["message"] == "add_do takes 2 pointers, the task has 3 tensors"
    assert error["seen"] == "1 inputs, bias, 1 outputs"


def test_a_drawn_file_of_another_parameter_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    from npusmith.errors import TaskError
    from npusmith.task.trials import check_files, read_manifest

    folder = tmp_path / "data"
    shutil.copytree(prepared.folder, folder)
    record = json.loads((folder / "manifest.json").read_text())
    record["draws"][0]["other"] = record["draws"][0].pop("bias")
    (folder / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(TaskError):
        check_files(prepared.task, folder, read_manifest(prepared.task, folder))


# --- a norm whose weight is left out passed every set ----------------------------------------


def test_a_norm_without_its_weight_is_wrong_in_most_sets(write_task, prepare_here, tmp_path):
    task = write_task(
        init="self.weight = nn.Parameter(torch.ones(64))",
        forward="return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight",
        inputs="[torch.randn(8, 64)]",
    )
    manifest = prepare_here(task, seeds=(1, 2, 3, 4, 5), edges=True, shapes=True)
    wrong = []
    for trial in (item for item in manifest.trials if item.kind == "random"):
        x, native = (
            np.fromfile(tmp_path / item.file, np.float32).reshape(item.shape)
            for item in (trial.inputs[0], trial.references[0])
        )
        bare = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))
        wrong.append(not compare(bare, native, None, "strict").passed)
    assert wrong == [False, True, True, True, False]
    assert {item.draw for item in manifest.trials if item.kind == "shape"} > {0}
    assert {item.draw for item in manifest.trials if item.kind == "edge"} > {0}


# --- what is drawn ----------------------------------------


class Held(torch.nn.Module):
    def __init__(self, **buffers: torch.Tensor) -> None:
        super().__init__()
        for name, value in buffers.items():
            self.register_buffer(name, value)


def test_positive_values_stay_positive_and_zeros_get_both_signs() -> None:
    variance = draw(torch.ones(500), 1)
    assert (variance > 0.4).all() and (variance < 2.1).all() and variance.std() > 0.1
    shift = draw(torch.zeros(500), 1)
    assert (shift > 0).any() and (shift < 0).any()
    weight = torch.randn(500) * 0.02
    assert 0.015 < draw(weight, 1).std() < 0.025
    assert (draw(-torch.ones(9), 3) < 0).all()


def test_values_in_order_stay_in_order() -> None:
    edges = draw(torch.linspace(-1, 1, 20), 5)
    assert (edges.diff() >= 0).all() and not torch.equal(edges, torch.linspace(-1, 1, 20))


def test_masks_infinities_integers_and_shared_memory_stay() -> None:
    whole = torch.rand(4, 4)
    model = Held(
        mask=torch.tril(torch.ones(4, 4)),
        fill=torch.tensor([0.0, -torch.inf]),
        count=torch.arange(3),
        part=whole[0],
        whole=whole,
        wide=torch.ones(1).expand(5),
        gamma=torch.ones(3),
    )
    assert drawn_names(model) == ["gamma"]
    assert drawn_names(model, ["mask"]) == []


def test_a_model_that_takes_a_root_of_zeros_gets_positive_values() -> None:
    model = Held(total=torch.zeros(6))

    def agrees(copy: torch.nn.Module, names: object) -> bool:
        return bool(torch.isfinite(torch.sqrt(copy.total)).all())

    draws = Draws(model, ["total"], 1, agrees)
    assert len(draws.models) == 4 and not draws.notes
    assert all((item.total > 0).all() for item in draws.models[1:])
    assert not model.total.any()


def test_what_does_not_agree_keeps_its_own_values() -> None:
    model = Held(scale=torch.ones(3), baked=torch.ones(2))
    draws = Draws(model, ["scale", "baked"], 1, lambda copy, names: "baked" not in names)
    assert [sorted(values) for values in draws.values[1:]] == [["scale"]] * 3
    assert "baked" in draws.notes[0]


def test_a_value_read_while_capturing_is_not_drawn(write_task, prepare_here):
    task = write_task(
        init="self.scale = nn.Parameter(torch.ones(8)); self.kept = None",
        forward="if self.kept is None:\n    self.kept = self.scale * 2\nreturn x * self.kept",
    )
    manifest = prepare_here(task, seeds=(1, 2))
    assert all(trial.draw == 0 for trial in manifest.trials)


def test_draws_of_every_style_are_the_same_in_every_process() -> None:
    for style in Style:
        one, two = (draw(torch.randn(40, generator=torch.Generator().manual_seed(3)), 9, style)
                    for _ in range(2))  # fmt: skip
        assert torch.equal(one, two)


def test_put_writes_into_the_tensors_themselves() -> None:
    model = Held(gamma=torch.ones(3))
    put(model, {"gamma": torch.full((3,), 2.0)})
    assert tensors_of(model)["gamma"].tolist() == [2.0] * 3


# --- what no output follows ----------------------------------------


def test_an_input_that_never_counts_is_named(write_task, prepare_here):
    task = write_task(
        init="self.used = nn.Parameter(torch.ones(8)); self.spare = nn.Parameter(torch.ones(8))",
        forward="return (x * self.used + 0 * y).clamp(-2, 2) + 0 * self.spare",
        inputs="[torch.randn(4, 8), torch.randn(4, 8)]",
    )
    manifest = prepare_here(task, seeds=(1, 2), edges=True, shapes=True)
    assert set(manifest.idle) == {"input 1", "parameter spare"}


def test_an_input_that_counts_in_one_set_is_not_named(write_task, prepare_here):
    task = write_task(
        forward="return torch.minimum(x, y.abs() + 100)",
        inputs="[torch.randn(4, 8), torch.rand(4, 8)]",
    )
    assert prepare_here(task, seeds=(1,)).idle == ("input 1",)
    assert prepare_here(task, seeds=(1,), edges=True).idle == ()  # inf and large tell


def test_integers_and_masks_count_too(write_task, prepare_here):
    task = write_task(
        forward="return torch.where(y, x, x * 2).index_select(0, z)",
        inputs="[torch.randn(4, 8), torch.rand(4, 8) > 0.5, torch.tensor([0, 3, 2])]",
    )
    assert prepare_here(task, seeds=(1,)).idle == ()
