"""Compile-only checks of projects, kernels and direct-launch sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from npusmith.target.chips import Chip
from npusmith.twin import check_source, read_project
from npusmith.twin.check import type_columns

PROJECTS = Path(__file__).parents[1] / "projects"
Edit = Callable[..., Path]

DIRECT = """
#include "acl/acl.h"
#include "kernel_operator.h"

template <typename T>
__global__ __aicore__ void copy(GM_ADDR x, GM_ADDR y, uint32_t n) {
  AscendC::GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T *)x, n);
  to.SetGlobalBuffer((__gm__ T *)y, n);
  for (uint32_t i = 0; i < n; i++) to.SetValue(i, from.GetValue(i));
}

extern "C" void copy_do(uint32_t blockDim, void *stream, uint8_t *x, uint8_t *y) {
  copy<float><<<blockDim, nullptr, stream>>>(x, y, 8);
}
"""


def test_a_good_project_has_no_findings(chip: Chip) -> None:
    assert check_source(PROJECTS / "add", chip) == []


def test_every_column_of_types_is_compiled(chip: Chip) -> None:
    columns = type_columns(read_project(PROJECTS / "add"))
    assert [tuple(dtype.value for dtype in column) for column in columns] == [
        ("float32",) * 3,
        ("float16",) * 3,
    ]


def test_errors_are_findings_at_the_users_lines(edited: Edit, chip: Chip) -> None:
    root = edited("add", {"op_kernel/add_custom.cpp": [("Add(z, x, y, n);", "Add(z, x, w, n);")]})
    finding = check_source(root, chip)[0]
    assert (finding.code, finding.line) == ("compile-failed", 44)


def test_a_kernel_file_of_a_project_is_checked_with_its_tiling(chip: Chip) -> None:
    assert check_source(PROJECTS / "add/op_kernel/add_custom.cpp", chip) == []


def test_a_kernel_file_alone_needs_its_tiling_struct(tmp_path: Path, chip: Chip) -> None:
    file = tmp_path / "add_custom.cpp"
    file.write_text((PROJECTS / "add/op_kernel/add_custom.cpp").read_text())
    assert [finding.code for finding in check_source(file, chip)] == ["tiling-unknown"]


def test_a_direct_launch_source_compiles(tmp_path: Path, chip: Chip) -> None:
    file = tmp_path / "copy.asc"
    file.write_text(DIRECT)
    assert check_source(file, chip) == []


def test_a_direct_launch_with_wrong_arguments_is_a_finding_at_its_line(
    tmp_path: Path, chip: Chip
) -> None:
    file = tmp_path / "copy.asc"
    file.write_text(DIRECT.replace("(x, y, 8)", "(x, y)"))
    findings = check_source(file, chip)
    assert findings[0].code == "compile-failed"
    assert findings[0].line == 14


def test_a_source_without_a_kernel_is_refused(tmp_path: Path, chip: Chip) -> None:
    file = tmp_path / "main.cpp"
    file.write_text("int main() {}\n")
    assert [finding.code for finding in check_source(file, chip)] == ["project-no-entry"]


def test_a_missing_file_is_a_finding(tmp_path: Path, chip: Chip) -> None:
    assert check_source(tmp_path / "none.cpp", chip)[0].code == "project-unreadable"
