"""Programs run in a copy of their folder; commands make their data and check what they left."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.target.chips import find_chip
from npusmith.task import program
from npusmith.task.judge_options import JudgeOptions
from npusmith.task.program import Around, complaint, judge_program
from npusmith.task.verdict import Rung
from npusmith.twin.finding import printed_by_core
from npusmith.twin.options import BuildOptions
from npusmith.twin.watch import Watch

CHIP = find_chip("910B2")
SOURCE = """#include <cstdio>
#include <iostream>
#include "acl/acl.h"
#include "kernel_operator.h"
__global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float *)x, 16);
  to.SetGlobalBuffer((__gm__ float *)y, 16);
  AscendC::printf("block %d begins\\n", AscendC::GetBlockIdx());
  if (AscendC::GetBlockIdx() == 1) return;
  for (int i = 0; i < 16; ++i) to.SetValue(i, from.GetValue(i) * 2);
  AscendC::DumpTensor(to, 5, 4);
}
int main() {
  float values[16];
  FILE *file = fopen("./input/x.bin", "rb");
  if (file == nullptr || fread(values, 4, 16, file) != 16) return 3;
  fclose(file);
  void *x, *y;
  aclrtMalloc(&x, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&y, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, 64, values, 64, ACL_MEMCPY_HOST_TO_DEVICE);
  twice<<<2, nullptr, nullptr>>>((GM_ADDR)x, (GM_ADDR)y);
  aclrtMemcpy(values, 64, y, 64, ACL_MEMCPY_DEVICE_TO_HOST);
  file = fopen("./output/y.bin", "wb");
  fwrite(values, 4, 16, file);
  fclose(file);
  std::cout << "written" << std::endl;
  return 0;
}
"""
DATA = """import numpy as np, pathlib
pathlib.Path("input").mkdir(), pathlib.Path("output").mkdir()
np.arange(16, dtype=np.float32).tofile("input/x.bin")
"""
CHECK = """import numpy as np, sys
found = np.fromfile("output/y.bin", np.float32)
sys.exit(int(not np.array_equal(found, 2.0 * np.arange(16))))
"""
PREPARE = ("python3 scripts/data.py",)
VERIFY = ("python3 scripts/check.py",)
MAIN = '#include <cstdio>\n#include "kernel_operator.h"\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "data.py").write_text(DATA)
    (tmp_path / "scripts" / "check.py").write_text(CHECK)
    file = tmp_path / "twice.asc"
    file.write_text(SOURCE)
    return file


def small(folder: Path, body: str) -> Path:
    file = folder / "small.asc"
    file.write_text(f"{MAIN}int main() {{ {body} }}\n")
    return file


def test_a_program_whose_results_a_check_confirms_passes(source: Path) -> None:
    verdict = judge_program(source, CHIP, Around(PREPARE, VERIFY))
    assert (verdict.error, verdict.findings) == (None, [])
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("pass", Rung.RACE_FREE, True)
    assert "written" in verdict.provenance["printed"]
    commands = [row["command"] for row in verdict.provenance["commands"]]
    assert commands == [*PREPARE, *VERIFY]
    assert sorted(item.name for item in source.parent.iterdir()) == ["scripts", "twice.asc"]


def test_what_kernels_print_is_told_by_core(source: Path) -> None:
    verdict = judge_program(source, CHIP, Around(PREPARE))
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("ran", Rung.RAN, False)
    assert [(item.core, item.api) for item in verdict.prints] == [
        (0, "printf"), (0, "DumpTensor"), (1, "printf"),
    ]  # fmt: skip
    assert printed_by_core(verdict.prints)[1] == "block 1 begins\n"
    assert "0 2 4 6" in verdict.prints[1].text
    assert verdict.prints[1].line == SOURCE[: SOURCE.index("DumpTensor")].count("\n") + 1


def test_a_program_whose_results_are_wrong_fails_its_check(source: Path) -> None:
    source.write_text(SOURCE.replace("* 2", "* 3"))
    verdict = judge_program(source, CHIP, Around(PREPARE, VERIFY))
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("fail", Rung.RAN, False)
    assert [finding.code for finding in verdict.findings] == ["verify-failed"]
    verdict = judge_program(source, CHIP, Around(PREPARE, ("echo test failed",)))
    assert [(item.code, item.seen) for item in verdict.findings] == [
        ("verify-failed", "test failed")
    ]


def test_a_check_of_files_that_the_program_did_not_write_is_none(tmp_path: Path) -> None:
    file = small(tmp_path, "return 0;")
    verdict = judge_program(file, CHIP, Around((), ("true",)))
    assert (verdict.verdict, verdict.correct) == ("fail", False)
    assert [finding.code for finding in verdict.findings] == ["verify-nothing"]
    verdict = judge_program(file, CHIP)
    assert (verdict.verdict, verdict.rung, verdict.correct) == ("ran", Rung.RAN, False)


def test_a_program_is_not_run_without_its_data(tmp_path: Path) -> None:
    file = small(tmp_path, "return 0;")
    for command in ("python3 scripts/absent.py", "exit 4"):
        verdict = judge_program(file, CHIP, Around((command,)))
        assert verdict.error is not None
        assert verdict.error["code"] == "prepare-failed"
        assert verdict.rung is Rung.COMPILED


def test_a_program_cannot_write_outside_of_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "outside"
    body = f'FILE *f = fopen("{target}", "wb"); return f == nullptr ? 5 : 0;'
    verdict = judge_program(small(tmp_path, body), CHIP)
    failed, outside = sorted(verdict.findings, key=lambda item: item.code)
    assert (failed.code, outside.code) == ("program-failed", "program-outside")
    assert "status 5" in failed.message
    assert outside.seen == str(target)
    assert not target.exists()


def test_a_file_outside_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = small(tmp_path, 'std::ifstream f("../away/x.bin"); return f.good() ? 1 : 0;')
    file.write_text("#include <fstream>\n" + file.read_text())
    verdict = judge_program(file, CHIP)
    assert [(item.code, item.seen) for item in verdict.findings] == [
        ("program-outside", "../away/x.bin")
    ]
    assert verdict.verdict == "ran"


def test_hidden_files_and_links_stay_behind(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "x.txt").write_text("x")
    body = 'return fopen(".env", "r") || fopen("link", "r") || !fopen("x.txt", "r");'
    assert judge_program(small(tmp_path, body), CHIP).verdict == "ran"


def test_a_folder_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_MOST_BYTES", 10)
    verdict = judge_program(small(tmp_path, "return 0;"), CHIP)
    assert verdict.error is not None
    assert verdict.error["code"] == "program-folder"


def test_a_program_is_judged_by_its_status(tmp_path: Path) -> None:
    verdict = judge_program(small(tmp_path, "return 2;"), CHIP)
    assert verdict.verdict == "fail"
    assert [finding.code for finding in verdict.findings] == ["program-failed"]


def test_a_program_whose_own_check_prints_failure_fails(tmp_path: Path) -> None:
    printed = 'printf("[ERROR] Open file failed. path = ./input/x.bin\\n");'
    verdict = judge_program(small(tmp_path, f"{printed} return 0;"), CHIP)
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
     "no mismatch", "error ratio: 0.0000, tolerance: 0.0001",
     "Max absolute error: 3e-6", "errors 0 of 4096"],
)  # fmt: skip
def test_a_line_of_praise_is_no_failure(line: str) -> None:
    assert complaint(line) == ""


def test_macros_come_from_the_caller_and_from_cmake(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "add_executable(demo small.asc)\ntarget_include_directories(demo PRIVATE more)\n"
        "target_compile_definitions(demo PRIVATE FROM_CMAKE=${SCENE})\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "extra.h").write_text("#pragma once\ninline int Extra() { return 7; }\n")
    body = "return SCENE + FROM_CMAKE + Extra() == 13 ? 0 : 1;"
    file = small(tmp_path, body)
    file.write_text('#include "extra.h"\n' + file.read_text())
    verdict = judge_program(
        file, CHIP, options=JudgeOptions(watch=Watch(build=BuildOptions(define=("SCENE=3",))))
    )
    assert (verdict.error, verdict.verdict) == (None, "ran")


def test_device_memory_that_nobody_wrote_is_told(source: Path) -> None:
    given = "  aclrtMemcpy(x, 64, values, 64, ACL_MEMCPY_HOST_TO_DEVICE);\n"
    copies = (
        "AscendC::TPipe pipe; AscendC::TBuf<> buffer; pipe.InitBuffer(buffer, 64);"
        "auto ub = buffer.Get<float>(); AscendC::DataCopy(ub, from, 16);"
        "AscendC::PipeBarrier<PIPE_ALL>(); AscendC::DataCopy(to, ub, 16);"
    )
    text = SOURCE.replace(
        "for (int i = 0; i < 16; ++i) to.SetValue(i, from.GetValue(i) * 2);", copies
    )
    source.write_text(text)
    assert judge_program(source, CHIP, Around(PREPARE)).findings == []
    source.write_text(text.replace(given, given.replace("values, 64", "values, 48")))
    verdict = judge_program(source, CHIP, Around(PREPARE))
    assert [finding.code for finding in verdict.findings] == ["uninit-read"]
    source.write_text(SOURCE.replace("twice<<<2", "if (false) twice<<<2"))
    verdict = judge_program(source, CHIP, Around(PREPARE))
    assert [finding.code for finding in verdict.findings] == ["acl-uninit"]


def test_a_program_is_linked_with_the_other_sources_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "add_library(rest SHARED seven.cpp)\nadd_executable(demo small.asc)\n"
        "add_executable(other main2.cpp)\ntarget_link_libraries(demo PRIVATE rest m)\n"
    )
    (tmp_path / "seven.cpp").write_text(
        "static int Own() { return 7; }\nint Seven() { return Own(); }\n"
    )
    (tmp_path / "main2.cpp").write_text("int main() { return 3; }\n")
    file = small(tmp_path, "return Seven() == 7 ? Own() : 1;")
    file.write_text("int Seven();\nstatic int Own() { return 0; }\n" + file.read_text())
    verdict = judge_program(file, CHIP)
    assert (verdict.error, verdict.verdict) == (None, "ran")


def test_the_rest_of_a_block_with_a_result_in_front_is_a_warning(source: Path) -> None:
    stores = (
        "AscendC::TPipe pipe; AscendC::TBuf<> buffer; pipe.InitBuffer(buffer, 64);"
        "auto ub = buffer.Get<float>(); ub.SetValue(0, 1.0f);"
        "AscendC::PipeBarrier<PIPE_ALL>(); AscendC::DataCopy(to, ub, 8);"
    )
    line = "for (int i = 0; i < 16; ++i) to.SetValue(i, from.GetValue(i) * 2);"
    source.write_text(SOURCE.replace(line, stores))
    verdict = judge_program(source, CHIP, Around(PREPARE))
    assert verdict.verdict == "ran"
    assert [(item.code, item.level.value) for item in verdict.findings] == [
        ("uninit-read", "warning"), ("acl-uninit", "warning"),
    ]  # fmt: skip


def test_a_program_gets_its_arguments(tmp_path: Path) -> None:
    file = tmp_path / "small.asc"
    body = "return argc == 3 && argv[2][0] == 'b' && argv[3] == nullptr ? 0 : 1;"
    file.write_text(f"int main(int argc, char *argv[]) {{ {body} }}\n")
    assert judge_program(file, CHIP, Around(arguments=("a", "b"))).verdict == "ran"
    assert judge_program(file, CHIP).verdict == "fail"
