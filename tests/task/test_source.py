"""Direct-launch sources: judged by a task through their launcher, or by their own main."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.target.chips import find_chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.source import complaint, judge_source, run_source
from npusmith.task.verdict import Rung

CHIP = find_chip("910B2")
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b
def get_inputs():
    return [torch.randn(8, 70), torch.randn(8, 70)]
def get_init_inputs():
    return []
"""
SOURCE = """#include "kernel_operator.h"
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
void add_do(uint32_t blocks, void *stream, GM_ADDR x, GM_ADDR y, GM_ADDR z, uint8_t *scratch,
            int64_t n) {
  add<<<blocks, nullptr, stream>>>(x, y, z, n);
}
"""


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, prepare_quickly: Callable[..., Prepared]
) -> Prepared:
    folder = tmp_path_factory.mktemp("source")
    (folder / "add.py").write_text(TASK)
    task = open_task(folder / "add.py")
    return prepare_quickly(task, folder / "trials", seeds=(11,), edges=False, shapes=False)


def test_a_launcher_gets_tensors_scratch_and_the_element_count(
    tmp_path: Path, prepared: Prepared
) -> None:
    file = tmp_path / "add.asc"
    file.write_text(SOURCE)
    verdict = judge_source(file, prepared, CHIP, "strict")
    assert verdict.error is None
    assert verdict.verdict == "pass"
    file.write_text(SOURCE.replace("a.GetValue(i) +", "a.GetValue(i) -"))
    assert judge_source(file, prepared, CHIP, "strict").verdict == "fail"


def test_a_launcher_with_values_of_its_own_is_refused(tmp_path: Path, prepared: Prepared) -> None:
    file = tmp_path / "add.asc"
    file.write_text(SOURCE.replace("int64_t n) {\n  add<", "int64_t n, float s) {\n  add<"))
    verdict = judge_source(file, prepared, CHIP, "strict")
    assert verdict.error is not None
    assert verdict.error["code"] == "launcher-arguments"


def test_a_program_is_judged_by_its_status(tmp_path: Path) -> None:
    file = tmp_path / "add.asc"
    file.write_text(SOURCE + "int main() { return 0; }\n")
    verdict = run_source(file, CHIP)
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("ran", Rung.RAN, False)
    file.write_text(SOURCE + "int main() { return 2; }\n")
    verdict = run_source(file, CHIP)
    assert verdict.verdict == "fail"
    assert [finding.code for finding in verdict.findings] == ["program-failed"]


def test_a_program_whose_own_check_prints_failure_fails(tmp_path: Path) -> None:
    file = tmp_path / "add.asc"
    printed = 'printf("[ERROR] Open file failed. path = ./input/x.bin\\n");'
    file.write_text("#include <cstdio>\n" + SOURCE + f"int main() {{ {printed} return 0; }}\n")
    verdict = run_source(file, CHIP)
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("fail", Rung.RAN, False)
    assert [finding.code for finding in verdict.findings] == ["program-complains"]
    assert "Open file failed" in verdict.findings[0].seen
    assert "Open file failed" in verdict.provenance["printed"]


@pytest.mark.parametrize(
    "line",
    ["verify result fail", "test Failed!", "error ratio is too large", "could not open x.bin",
     "12 mismatches", "output is incorrect", "[ERROR]: no data", "Failed: 3 of 7"],
)  # fmt: skip
def test_a_line_that_tells_of_a_failure_is_found(line: str) -> None:
    assert complaint(f"start\n{line}\nend\n") == line


@pytest.mark.parametrize(
    "line",
    ["test pass!", "0 errors", "mismatches: 0", "max error 1.2e-7", "failed = 0", "error: 0.0001",
     "no mismatch", "Max absolute error: 3e-6", "errors 0 of 4096"],
)  # fmt: skip
def test_a_line_of_praise_is_no_failure(line: str) -> None:
    assert complaint(line) == ""
