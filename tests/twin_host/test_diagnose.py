"""What compilers say, at the user's line."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.target.chips import Chip
from npusmith.twin import check_source
from npusmith.twin.finding import Finding

KERNEL = """#include "kernel_operator.h"
#define TWICE(tensor) AscendC::Muls(tensor, tensor, tensor.nosuch, 64)
template <typename T> __aicore__ inline void Grow(AscendC::LocalTensor<T> t) {
  AscendC::Exp(t, t, 64);
}
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  AscendC::LocalTensor<float> f;
  AscendC::LocalTensor<int32_t> i;
  %s
}
"""


def check(folder: Path, chip: Chip, line: str) -> list[Finding]:
    file = folder / "k.asc"
    file.write_text(KERNEL % line)
    return check_source(file, chip)


@pytest.mark.parametrize(
    ("line", "message", "place"),
    [
        ("AscendC::Add(f, f, f, 64, 256, {1, 1, 1, 8, 8, 8});", "does not fit the hardware", 9),
        ("AscendC::Adds(f, f, 1, 64);", "'float' and 'int'", 9),
        ("TWICE(f);", "nosuch", 2),
        ("Grow(i);", "Exp on dav-2201 takes half or float", 4),
    ],
)
def test_an_error_names_the_user_s_line_and_the_reason(
    tmp_path: Path, chip: Chip, line: str, message: str, place: int
) -> None:
    found = check(tmp_path, chip, line)
    assert message in found[0].message
    assert "twin::" not in found[0].message
    assert {finding.file for finding in found} == {str(tmp_path / "k.asc")}
    assert found[0].line == place


def test_a_missing_header_comes_before_what_follows_from_it(tmp_path: Path, chip: Chip) -> None:
    file = tmp_path / "k.asc"
    file.write_text(KERNEL.replace("#define", '#include "nosuch.h"\n#define') % "Grow(j);")
    found = check_source(file, chip)
    assert "nosuch.h: No such file" in found[0].message
    assert found[0].line == 2


def test_an_old_source_gets_one_message_with_the_way_to_convert_it(
    tmp_path: Path, chip: Chip
) -> None:
    lines = "using namespace tik2; tik2::LocalTensor<float> g; tik2::Add(g, g, g, 64);"
    found = check(tmp_path, chip, lines)
    assert [finding.line for finding in found] == [9]
    assert "tik2 is an earlier name of AscendC" in found[0].message
