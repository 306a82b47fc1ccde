"""Direct-launch sources: judged by a task through their launcher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.target.chips import find_chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.source import judge_source

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
