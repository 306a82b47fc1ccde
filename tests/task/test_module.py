"""Candidates that are Python modules: both formats of MultiKernelBench, right and wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from npusmith.target.chips import find_chip
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.load import open_task
from npusmith.task.module import judge_module
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Verdict
from npusmith.twin.formats import read_submission

CHIP = find_chip("910B2")
PROJECT = Path(__file__).parents[1] / "projects" / "add"
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b
def get_inputs():
    return [torch.randn(8, 70), torch.randn(8, 70)]
def get_init_inputs():
    return []
"""
MODEL = """import torch
import torch_npu
import custom_ops_lib
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return custom_ops_lib.add_custom(a, b)
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
DIRECT_MODEL = """import torch
import benchmark_ops
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return benchmark_ops.add(a, b)
"""
DIRECT_KERNEL = """#include "kernel_operator.h"
template <typename T>
__global__ __aicore__ void add_kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z, int64_t n) {
  AscendC::GlobalTensor<T> a, b, c;
  a.SetGlobalBuffer((__gm__ T *)x, n);
  b.SetGlobalBuffer((__gm__ T *)y, n);
  c.SetGlobalBuffer((__gm__ T *)z, n);
  for (int64_t i = 0; i < n; ++i) {
    if (i / 16 % AscendC::GetBlockNum() != AscendC::GetBlockIdx()) continue;
    c.SetValue(i, a.GetValue(i) + b.GetValue(i));
  }
}
extern "C" void launch_add(void *x, void *y, void *z, int64_t n, void *stream) {
  add_kernel<float><<<4, nullptr, stream>>>((GM_ADDR)x, (GM_ADDR)y, (GM_ADDR)z, n);
}
"""
DIRECT_BINDING = """#include <torch/extension.h>
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "launch.h"
torch::Tensor add(const torch::Tensor &x, const torch::Tensor &y) {
  auto z = torch::empty_like(x);
  auto stream = c10_npu::getCurrentNPUStream().stream(false);
  launch_add(x.data_ptr(), y.data_ptr(), z.data_ptr(), x.numel(), stream);
  return z;
}
PYBIND11_MODULE(benchmark_ops, m) { m.def("add", &add); }
"""
HEADER = 'extern "C" void launch_add(void *x, void *y, void *z, int64_t n, void *stream);\n'

Judge = Callable[..., Verdict]


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, prepare_quickly: Callable[..., Prepared]
) -> Prepared:
    folder = tmp_path_factory.mktemp("module")
    (folder / "add.py").write_text(TASK)
    task = open_task(folder / "add.py")
    return prepare_quickly(task, folder / "trials", seeds=(11, 23), edges=False, shapes=False)


@pytest.fixture
def six(tmp_path: Path, prepared: Prepared) -> Judge:
    def judged(
        model: str = MODEL,
        kernel: str = "",
        binding: str = BINDING,
        *,
        stop: bool = False,
        sets: Prepared = prepared,
    ) -> Verdict:
        texts = {
            "project_json_src": '[{"op": "AddCustom", "input_desc": []}]',
            "host_tiling_src": (PROJECT / "op_host/add_custom_tiling.h").read_text(),
            "host_operator_src": (PROJECT / "op_host/add_custom.cpp").read_text(),
            "kernel_src": kernel or (PROJECT / "op_kernel/add_custom.cpp").read_text(),
            "python_bind_src": binding,
            "model_src": model,
        }
        file = tmp_path / "answer.py"
        file.write_text("".join(f"{name} = {text!r}\n" for name, text in texts.items()))
        return judge_module(
            read_submission(file),
            sets,
            CHIP,
            "strict",
            options=JudgeOptions(dynamic=False, stop=stop),
        )

    return judged


@pytest.fixture
def direct(tmp_path: Path, prepared: Prepared) -> Judge:
    def judged(kernel: str = DIRECT_KERNEL, model: str = DIRECT_MODEL) -> Verdict:
        texts = {
            "ModelNew.py": model,
            "kernel/launch.h": HEADER,
            "kernel/add.cpp": kernel,
            "kernel/pybind11.cpp": DIRECT_BINDING,
        }
        sources = [{"path": path, "content": text} for path, text in texts.items()]
        file = tmp_path / "answer.json"
        file.write_text(json.dumps({"format_version": "0.1", "sources": sources}))
        return judge_module(read_submission(file), prepared, CHIP, "strict")

    return judged


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings if finding.level.value == "error"]


def test_an_answer_of_six_strings_passes(six: Judge) -> None:
    verdict = six()
    assert verdict.error is None
    assert [trial.message for trial in verdict.trials if not trial.passed] == []
    assert verdict.verdict == "pass"
    assert verdict.provenance["official"] is True


def test_a_model_that_computes_by_itself_fails_though_its_values_are_right(six: Judge) -> None:
    verdict = six(MODEL.replace("custom_ops_lib.add_custom(a, b)", "torch.add(a, b)"))
    assert verdict.verdict == "fail"
    assert codes(verdict) == ["cheat-compute", "cheat-origin"]
    assert verdict.provenance["official"] is True


def test_a_binding_that_computes_fails_though_its_values_are_right(six: Judge) -> None:
    call = "EXEC_NPU_CMD(aclnnAddCustom, a, b, result);"
    verdict = six(binding=BINDING.replace(call, "result = at::add(a, b);"))
    assert verdict.verdict == "fail"
    assert codes(verdict) == ["cheat-binding", "cheat-origin"]
    assert (verdict.findings[0].file, verdict.findings[0].line) == ("csrc/op.cpp", 5)


def test_a_class_may_not_write_into_its_inputs_nor_give_other_bits_again(six: Judge) -> None:
    into = BINDING.replace("return result;", "const_cast<at::Tensor &>(a).copy_(result); return a;")
    verdict = six(binding=into)
    assert verdict.verdict == "fail" and verdict.provenance["official"] is True
    assert {trial.message for trial in verdict.trials} == {"an input was overwritten"}
    count = "static int calls = 0;\nat::Tensor add_custom"
    often = BINDING.replace("at::Tensor add_custom", count, 1)
    often = often.replace(
        "return result;", "if (calls++ % 2) result.mul_(1.0000003); return result;"
    )
    verdict = six(binding=often)
    assert verdict.verdict == "fail"
    said = [trial.message for trial in verdict.trials]
    assert "two runs on the same inputs gave different outputs" in said


def test_a_class_that_is_wrong_on_the_first_set_is_called_on_no_other(six: Judge) -> None:
    call = "custom_ops_lib.add_custom(a, b)"
    for wrong in (f"{call} * 1.1", "1 / 0"):
        verdict = six(MODEL.replace(call, wrong), stop=True)
        assert [trial.result for trial in verdict.trials] == ["FAIL", "not run"]
        assert verdict.provenance["official"] is False
    assert [trial.result for trial in six(stop=True).trials] == ["pass", "pass"]


def test_exceptions_for_some_sets_leave_the_others_their_turn(
    six: Judge, prepared: Prepared
) -> None:
    """Six sets that the class refuses: more than the processes may crash."""
    first, other = prepared.trials[:2]
    assert not np.array_equal(first.inputs[0], other.inputs[0])
    many = replace(prepared, trials=(first, *[other] * 6, *[first] * 2))
    key = float(other.inputs[0].reshape(-1)[0])
    call = "return custom_ops_lib.add_custom(a, b)"
    refuses = f"if float(a.reshape(-1)[0]) == {key!r}: raise ValueError('not these'); {call}"
    refuses = refuses.replace("; return", "\n        return")
    verdict = six(MODEL.replace(call, refuses), sets=many)
    assert Counter(trial.result for trial in verdict.trials) == {"pass": 3, "FAIL": 6}
    assert codes(verdict) == ["module-failed"]


def test_outputs_of_another_shape_or_type_fail(six: Judge) -> None:
    call = "custom_ops_lib.add_custom(a, b)"
    for change in (f"{call}.view(-1)", f"{call}.double()", f"({call}, a)"):
        verdict = six(MODEL.replace(call, change))
        assert verdict.verdict == "fail"
        assert verdict.provenance["official"] is False
        assert "the reference" in verdict.trials[0].message


def test_a_model_that_raises_or_leaves_is_named_with_its_line(six: Judge) -> None:
    verdict = six(MODEL.replace("custom_ops_lib.add_custom(a, b)", "{}['missing']"))
    assert codes(verdict) == ["module-failed"]
    assert verdict.findings[0].line == 6
    verdict = six(MODEL.replace("import custom_ops_lib", "import os; os._exit(0)"))
    assert verdict.verdict == "fail"
    assert codes(verdict) == ["kernel-crash"]


def test_a_model_cannot_read_the_references(six: Judge, prepared: Prepared) -> None:
    peek = f"print(open({str(prepared.folder / 'manifest.json')!r}).read())"
    verdict = six(MODEL.replace("import custom_ops_lib", f"import custom_ops_lib\n{peek}"))
    assert codes(verdict) == ["module-failed"]
    message = verdict.findings[0].message  # there is no such file for it, or it may not open it
    assert "FileNotFoundError" in message or "PermissionError" in message


def test_a_kernel_that_does_not_compile_is_told_at_its_line(six: Judge) -> None:
    kernel = (PROJECT / "op_kernel/add_custom.cpp").read_text()
    verdict = six(kernel=kernel.replace("Add(z, x, y, n);", "Ad(z, x, y, n);"))
    assert verdict.error is not None
    assert verdict.error["code"] == "compile-failed"
    assert str(verdict.error["file"]).endswith("op_kernel/add_custom.cpp")
    assert not verdict.compiled


def test_a_direct_launch_passes(direct: Judge) -> None:
    verdict = direct()
    assert verdict.error is None
    assert [trial.message for trial in verdict.trials if not trial.passed] == []
    assert verdict.verdict == "pass"


def test_a_direct_launch_that_leaves_its_tensor_is_a_finding_at_its_line(direct: Judge) -> None:
    verdict = direct(DIRECT_KERNEL.replace("i < n;", "i < n + 4;").replace(", n);", ", n + 4);"))
    assert verdict.verdict == "fail"
    finding = verdict.findings[0]
    assert finding.file.endswith("kernel/add.cpp")
    assert finding.line == 10


def test_a_direct_launch_that_crashes_says_where(direct: Judge) -> None:
    verdict = direct(
        DIRECT_KERNEL.replace("c.SetValue(i,", "*(volatile int *)nullptr = 1; c.SetValue(i,")
    )
    assert verdict.verdict == "fail"
    assert "kernel-crash" in codes(verdict)
