"""Direct-launch sources with a main function run it, and are judged by it and by the twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.errors import TwinError
from npusmith.target.chips import Chip
from npusmith.twin import Run
from npusmith.twin.diagnose import CompileError
from npusmith.twin.direct import build_program, has_main, run_program
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.options import BuildOptions

SOURCE = """#include <cstdio>
#include <cstdlib>
#include <vector>
#include "acl/acl.h"
#include "kernel_operator.h"
struct Plan { uint32_t count; float scale; };
template <typename T>
__global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, Plan plan, int64_t more) {
  AscendC::GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T *)x, plan.count);
  to.SetGlobalBuffer((__gm__ T *)y, plan.count);
  for (uint32_t i = 0; i < plan.count; ++i) {  // a core has whole lines of 64 bytes
    if (i / 16 % AscendC::GetBlockNum() != AscendC::GetBlockIdx()) continue;
    to.SetValue(i, from.GetValue(i) * plan.scale + more);
  }
}
__global__ __vector__ void copy(__gm__ float *x, __gm__ float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) y[i] = x[i];
}
MAIN {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  constexpr uint32_t n = 100;
  std::vector<float> given(n, 2.0f), found(n);
  void *x, *y, *z;
  for (void **p : {&x, &y, &z}) aclrtMalloc(p, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, n * 4, given.data(), n * 4, ACL_MEMCPY_HOST_TO_DEVICE);
  scale<float><<<8, nullptr, stream>>>((GM_ADDR)x, (GM_ADDR)y, Plan{n, 3.0f}, 1);
  copy<<<1, 0, stream>>>((float *)y, (float *)z, n);
  aclrtSynchronizeStream(stream);
  aclrtMemcpy(found.data(), n * 4, z, n * 4, ACL_MEMCPY_DEVICE_TO_HOST);
  for (const float value : found) {
    if (value != 7.0f) return 1;
  }
  std::printf("as expected\\n");
  END
}
"""


def run_changed(tmp_path: Path, chip: Chip, old: str = "", new: str = "") -> Run:
    text = SOURCE
    if old:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "program.asc"
    file.write_text(text.replace("MAIN", "int main()").replace("END", ""))
    return run_program(build_program(file, chip), options=LaunchOptions(seconds=20))


def codes(result: Run) -> list[str]:
    return [finding.code for finding in result.findings]


def test_a_kernels_cores_are_those_of_the_branch_that_is_compiled(
    tmp_path: Path, chip: Chip
) -> None:
    head = "__global__ __vector__ void copy("
    both = f"#if WAY == 2\n__global__ __cube__ void copy(\n#else\n{head}\n#endif\n"
    file = tmp_path / "program.cpp"
    file.write_text(SOURCE.replace(head, both).replace("MAIN", "int main()").replace("END", ""))
    result = run_program(
        build_program(file, chip, BuildOptions(define=("WAY=1",))),
        options=LaunchOptions(seconds=20),
    )
    assert result.completed
    assert result.findings == []


@pytest.mark.parametrize("main", ["int main()", "int32_t main(int32_t argc, char *argv[])"])
def test_a_program_with_two_kernels_runs_and_checks_itself(
    tmp_path: Path, chip: Chip, main: str
) -> None:
    file = tmp_path / "program.cpp"
    file.write_text(SOURCE.replace("MAIN", main).replace("END", "return 0;"))
    result = run_program(build_program(file, chip), options=LaunchOptions(seconds=20))
    assert result.completed
    assert result.findings == []
    assert "as expected" in result.log


def test_a_program_that_finds_itself_wrong_fails(tmp_path: Path, chip: Chip) -> None:
    result = run_changed(tmp_path, chip, "value != 7.0f", "value != 8.0f")
    assert codes(result) == ["program-failed"]
    assert "status 1" in result.findings[0].message
    assert not result.completed


def test_a_program_may_end_by_exit(tmp_path: Path, chip: Chip) -> None:
    assert run_changed(tmp_path, chip, "END", "std::exit(0);").completed
    result = run_changed(tmp_path, chip, "END", "std::exit(3);")
    assert codes(result) == ["program-failed"]
    assert "status 3" in result.findings[0].message


def test_what_its_kernels_do_wrong_is_a_finding(tmp_path: Path, chip: Chip) -> None:
    result = run_changed(tmp_path, chip, "Plan{n, 3.0f}", "Plan{n + 5, 3.0f}")
    assert "error" in [finding.level.value for finding in result.findings]
    assert result.findings[0].file.endswith("program.asc")


def test_a_launch_on_no_blocks_is_a_finding(tmp_path: Path, chip: Chip) -> None:
    assert "block-dim" in codes(run_changed(tmp_path, chip, "<<<8,", "<<<0,"))


def test_a_program_that_crashes_says_where(tmp_path: Path, chip: Chip) -> None:
    result = run_changed(tmp_path, chip, "END", "*(volatile int *)nullptr = 1;")
    assert "kernel-crash" in codes(result)


def test_a_source_without_a_main_function_is_refused(tmp_path: Path, chip: Chip) -> None:
    file = tmp_path / "k.asc"
    file.write_text("// int main() {}\nint mainly() { return 0; }\n")
    assert not has_main(file.read_text())
    with pytest.raises(TwinError) as caught:
        build_program(file, chip)
    assert caught.value.code == "program-missing"


def test_elements_of_global_memory_are_assigned_through_brackets(
    tmp_path: Path, chip: Chip
) -> None:
    old = "to.SetValue(i, from.GetValue(i) * plan.scale + more);"
    new = "to(i) = from(i) * plan.scale; to(i) += min(more, AscendC::CeilDiv(to(i), 100));"
    result = run_changed(tmp_path, chip, old, new)
    assert result.findings == []
    assert result.completed


# ---- kernels in sources of their own, launched by functions that the vendor's build makes

LAUNCHED = """#include "kernel_operator.h"
struct Plan { uint32_t count; };
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR plan) {
  const uint32_t count = *(__gm__ uint32_t *)plan;
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float *)x, count);
  to.SetGlobalBuffer((__gm__ float *)y, count);
  const bool moved = workspace == AscendC::GetUserWorkspace(AscendC::GetSysWorkSpacePtr());
  if (AscendC::GetBlockIdx() != 0) return;
  for (uint32_t i = 0; i < count; ++i) to.SetValue(i, from.GetValue(i) * (moved ? 3 : 5) + 1);
}
"""
HOST = """#include "acl/acl.h"
#ifndef ASCENDC_CPU_DEBUG
#include "aclrtlaunch_scale.h"
#endif
#include <vector>
int main() {
  constexpr uint32_t n = 16;
  std::vector<float> given(n, 2.0f), found(n);
  uint8_t *x, *y, *space, *plan;
  aclrtMalloc((void **)&x, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void **)&y, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void **)&space, 64 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void **)&plan, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, n * 4, given.data(), n * 4, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(plan, 4, &n, 4, ACL_MEMCPY_HOST_TO_DEVICE);
  const uint32_t status = ACLRT_LAUNCH_KERNEL(scale)
  (2, nullptr, (const void *)x, y, space, plan);
  aclrtSynchronizeStream(nullptr);
  aclrtMemcpy(found.data(), n * 4, y, n * 4, ACL_MEMCPY_DEVICE_TO_HOST);
  for (const float value : found) if (value != 7.0f || status != 0) return 1;
  return 0;
}
"""


def test_a_kernel_of_a_library_is_launched_with_the_users_part_of_the_workspace(
    tmp_path: Path, chip: Chip
) -> None:
    (tmp_path / "main.cpp").write_text(HOST)
    (tmp_path / "scale.cpp").write_text(LAUNCHED)
    (tmp_path / "CMakeLists.txt").write_text(
        "ascendc_library(kernels_${RUN_MODE} STATIC scale.cpp)\n"
        "ascendc_compile_definitions(kernels_${RUN_MODE} PRIVATE HAVE_WORKSPACE -DHAVE_TILING)\n"
        "add_executable(main main.cpp)\ntarget_link_libraries(main PRIVATE kernels_npu)\n"
    )
    result = run_program(
        build_program(tmp_path / "main.cpp", chip), options=LaunchOptions(seconds=20)
    )
    assert result.findings == []
    assert result.completed


def test_a_launched_kernel_is_found_in_the_programs_folder_or_said_to_be_missing(
    tmp_path: Path, chip: Chip
) -> None:
    (tmp_path / "main.cpp").write_text(HOST.replace("7.0f", "11.0f"))
    with pytest.raises(CompileError, match="no source of the program defines scale"):
        build_program(tmp_path / "main.cpp", chip)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "scale.cpp").write_text(LAUNCHED)
    result = run_program(
        build_program(tmp_path / "main.cpp", chip), options=LaunchOptions(seconds=20)
    )
    assert result.findings == []
