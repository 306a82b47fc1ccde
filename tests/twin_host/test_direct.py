"""Direct-launch sources run: pointers, values, templates and several launches."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin.direct import build_direct, run_direct

F32 = DType.FLOAT32

SOURCE = """
#include "acl/acl.h"
#include "kernel_operator.h"

struct Plan { uint32_t count; float scale; };

template <typename T>
class Scale {
 public:
  __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, Plan plan) {
    AscendC::GlobalTensor<T> from, to;
    from.SetGlobalBuffer((__gm__ T *)x, plan.count);
    to.SetGlobalBuffer((__gm__ T *)y, plan.count);
    for (uint32_t i = 0; i < plan.count; ++i) {  // a core has whole lines of 64 bytes
      if (i / 16 % AscendC::GetBlockNum() != AscendC::GetBlockIdx()) continue;
      to.SetValue(i, from.GetValue(i) * plan.scale);
    }
  }
};

template <typename T>
__global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, Plan plan) {
  Scale<T> op;
  op.Run(x, y, plan);
}

extern "C" void scale_do(uint32_t blockDim, void *stream, uint8_t *x, uint8_t *y,
                         uint8_t *workspace, Plan plan) {
  scale<float><<<blockDim, nullptr, stream>>>(x, workspace, plan);
  scale<float><<<blockDim, nullptr, stream>>>(workspace, y, plan);
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "direct").mkdir()
    file = tmp_path / "direct" / "scale.asc"
    file.write_text(SOURCE)
    return file


def test_a_launcher_with_two_launches_and_a_struct_by_value_runs(source: Path, chip: Chip) -> None:
    x = np.arange(10, dtype=np.float32)
    rest = [40, struct.pack("If", 10, 3.0)]
    result = run_direct(build_direct(source, chip), 3, [x], [((10,), F32)], rest)
    assert result.findings == []
    assert result.completed
    assert result.blocks == 3
    np.testing.assert_array_equal(result.outputs[0], x * 9)


def test_a_direct_launch_is_checked_like_any_other(source: Path, chip: Chip) -> None:
    x = np.arange(10, dtype=np.float32)
    rest = [40, struct.pack("If", 20, 3.0)]
    result = run_direct(build_direct(source, chip), 1, [x], [((10,), F32)], rest)
    assert "error" in [finding.level.value for finding in result.findings]


X, REST = np.arange(10, dtype=np.float32), [40, struct.pack("If", 10, 3.0)]
TOUCHES = {  # what host code of the launcher does besides, and what is found
    "reads by a pointer": ("volatile float v = ((float *)x)[3];", "host-memory", "input 0"),
    "writes by a pointer": ("((float *)y)[3] = 1;", "host-memory", "output 0"),
    "writes scratch": ("workspace[0] = 1;", "host-memory", "workspace"),
    "copies an answer": (
        "float v = 3; aclrtMemcpy(y, 4, &v, 4, ACL_MEMCPY_HOST_TO_DEVICE);", "host-memory",
        "writes output 0",
    ),
    "copies to the host": (
        "float v; aclrtMemcpy(&v, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST);", "host-reads", "input 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOUCHES)
def test_host_code_of_a_launcher_has_no_device_memory(source: Path, chip: Chip, name: str) -> None:
    code, expected, said = TOUCHES[name]
    source.write_text(
        SOURCE.replace("  scale<float><<<blockDim", f"  {code}\n  scale<float><<<blockDim", 1)
    )
    result = run_direct(build_direct(source, chip), 3, [X], [((10,), F32)], REST)
    (finding,) = result.findings
    assert (finding.code, said in finding.message) == (expected, True)
    assert result.completed == (expected == "host-reads" or "copies" in name)


def test_host_code_of_a_launcher_may_move_and_clear_device_memory(source: Path, chip: Chip) -> None:
    moved = """  void *held;
  aclrtMalloc(&held, 40, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(held, 40, x, 40, ACL_MEMCPY_DEVICE_TO_DEVICE);
  aclrtMemset(workspace, 40, 0, 40);
  scale<float><<<blockDim, nullptr, stream>>>((uint8_t *)held, workspace, plan);
  aclrtFree(held);
"""
    first = "  scale<float><<<blockDim, nullptr, stream>>>(x, workspace, plan);\n"
    assert first in SOURCE
    source.write_text(SOURCE.replace(first, moved))
    result = run_direct(build_direct(source, chip), 3, [X], [((10,), F32)], REST)
    assert result.completed and not result.findings
    np.testing.assert_array_equal(result.outputs[0], X * 9)


def test_the_wrong_number_of_arguments_is_a_finding(source: Path, chip: Chip) -> None:
    x = np.arange(10, dtype=np.float32)
    result = run_direct(build_direct(source, chip), 1, [x], [((10,), F32)])
    assert [finding.code for finding in result.findings] == ["entry-arguments"]


def test_a_source_without_a_launcher_is_refused(source: Path, chip: Chip) -> None:
    source.write_text(SOURCE.replace("scale_do", "launch"))
    with pytest.raises(TwinError) as caught:
        build_direct(source, chip)
    assert caught.value.code == "launcher-missing"
    assert build_direct(source, chip, "launch").launcher == "launch"
