"""Projects with one thing wrong: each gives a clear finding and costs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import Run, build, read_project, run
from npusmith.twin.launch import LaunchOptions

F32 = DType.FLOAT32
Edit = Callable[..., Path]
KERNEL = "op_kernel/add_custom.cpp"
HOST = "op_host/add_custom.cpp"
PROCESS = "  __aicore__ inline void Process() {\n"


def run_changed(edited: Edit, chip: Chip, file: str, old: str, new: str, **how: int) -> Run:
    root = edited("add", {file: [(old, new)]})
    built = build(read_project(root), chip, (F32, F32, F32))
    x = np.ones(how.get("size", 4096), np.float32)
    return run(
        built, [x, x], [(x.shape, F32)], options=LaunchOptions(seconds=how.get("seconds", 30))
    )


def codes(result: Run) -> list[str]:
    return [finding.code for finding in result.findings]


def test_a_read_behind_the_input_names_line_and_core(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, "DataCopyPad(x, xGm[at], params, pad);",
        "DataCopyPad(x, xGm[at + (1 << 20)], params, pad);",
    )  # fmt: skip
    assert not result.completed or result.findings
    finding = result.findings[0]
    assert finding.level.value == "error"
    assert finding.file.endswith(KERNEL)
    assert finding.line == 35
    assert finding.core == 0


def test_a_null_pointer_is_a_crash_at_the_last_call(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, PROCESS, PROCESS + "    *(volatile int *)nullptr = 1;\n"
    )
    assert codes(result) == ["kernel-crash"]
    finding = result.findings[0]
    assert "a null pointer" in finding.message
    assert finding.core == 0
    assert finding.file.endswith(KERNEL)
    assert "InitBuffer" in finding.seen
    assert not result.completed


def test_a_raw_pointer_far_behind_a_tensor_is_named(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, "  op.Process();", "  ((volatile float *)z)[60000] = 1;"
    )
    assert codes(result)[0] == "kernel-crash"
    assert "byte 240000 of output z, which has 16384 bytes" in result.findings[0].message


def test_a_raw_pointer_just_behind_a_tensor_is_an_overrun(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, "  op.Process();", "  ((float *)z)[1001] = 1;", size=1000
    )
    assert "gm-overrun" in codes(result)


def test_a_copy_just_behind_a_tensor_is_one_finding(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, "DataCopyPad(zGm[at], z, params);",
        "DataCopy(zGm[at], z, (n + 7) / 8 * 8);", size=1001,
    )  # fmt: skip
    assert "gm-bounds" in codes(result)
    assert "gm-overrun" not in codes(result)


def test_a_write_to_an_input_is_a_crash_that_says_so(edited: Edit, chip: Chip) -> None:
    result = run_changed(edited, chip, KERNEL, "  op.Process();", "  ((float *)x)[3] = 1;")
    assert codes(result)[0] == "kernel-crash"
    assert "a write to input x, which is read-only" in result.findings[0].message


def test_deep_recursion_is_a_stack_overflow(edited: Edit, chip: Chip) -> None:
    deep = "static int Deep(int n) { volatile char room[512]; room[0] = n; "
    deep += "return room[0] + Deep(n + 1) + room[1]; }\n\nclass KernelAdd {"
    root = edited(
        "add", {KERNEL: [("class KernelAdd {", deep), ("  op.Process();", "  length_ = Deep(0);")]}
    )
    text = (root / KERNEL).read_text().replace("length_ =", "volatile int depth =")
    (root / KERNEL).write_text(text)
    built = build(read_project(root), chip, (F32, F32, F32))
    x = np.ones(64, np.float32)
    result = run(built, [x, x], [(x.shape, F32)])
    assert codes(result) == ["kernel-crash"]
    assert "stack overflowed" in result.findings[0].message


def test_a_large_local_array_is_a_stack_overflow(edited: Edit, chip: Chip) -> None:
    room = "    volatile char room[3000000]; for (int i = 2999999; i >= 0; --i) room[i] = 1;\n"
    result = run_changed(edited, chip, KERNEL, PROCESS, PROCESS + room)
    assert codes(result) == ["kernel-crash"]
    assert "stack overflowed" in result.findings[0].message


def test_an_integer_division_by_zero_is_a_finding_and_no_crash(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited, chip, KERNEL, PROCESS,
        PROCESS + "    volatile int zero = 0; length = 7 / zero;\n",
    )  # fmt: skip
    assert codes(result) == ["divide-zero"]
    assert result.completed


def test_an_endless_loop_is_a_hang_with_its_last_call(edited: Edit, chip: Chip) -> None:
    result = run_changed(
        edited,
        chip,
        KERNEL,
        "at < length; at += tile",
        "at < length || at >= 0; at += 0",
        seconds=1,
    )
    assert codes(result)[-1] == "kernel-hang"
    finding = result.findings[-1]
    assert finding.message.endswith("1 s of processor time")  # a busy machine changes no verdict
    assert finding.line > 0
    assert not result.completed


def test_more_ub_than_exists_is_a_finding(edited: Edit, chip: Chip) -> None:
    result = run_changed(edited, chip, HOST, "set_tileLength(1024)", "set_tileLength(20480)")
    assert "error" in [finding.level.value for finding in result.findings]
    assert any("UB" in finding.message or "ub" in finding.code for finding in result.findings)


def test_a_function_that_allocates_is_refused_though_nothing_marks_it_for_the_device(
    edited: Edit, chip: Chip
) -> None:
    greedy = (
        "static void Greedy() { for (;;) { volatile char *p = new char[64 << 20]; p[0] = 1; } }"
    )
    root = edited(
        "add",
        {
            KERNEL: [
                ("class KernelAdd {", greedy + "\n\nclass KernelAdd {"),
                ("op.Process();", "Greedy();"),
            ]
        },
    )
    with pytest.raises(TwinError, match="allocates memory") as caught:
        build(read_project(root), chip, (F32, F32, F32))
    assert caught.value.code == "device-cpp"


def test_a_function_that_throws_is_refused(edited: Edit, chip: Chip) -> None:
    throws = "using namespace AscendC;\n#include <stdexcept>\n"
    throws += 'static void Fail() { throw std::runtime_error("too wide"); }\n'
    root = edited(
        "add", {KERNEL: [("using namespace AscendC;\n", throws), ("op.Process();", "Fail();")]}
    )
    with pytest.raises(TwinError) as caught:
        build(read_project(root), chip, (F32, F32, F32))
    assert caught.value.code == "device-cpp"


def test_a_kernel_that_ends_the_process_does_not_compile(edited: Edit, chip: Chip) -> None:
    with pytest.raises(TwinError) as caught:
        run_changed(edited, chip, KERNEL, PROCESS, PROCESS + "    _Exit(0);\n")
    assert caught.value.code == "device-cpp"
    assert caught.value.place.line > 0


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("context->GetInputShape(0)", "context->GetInputShape(5)", "host-crash"),
        ("return ge::GRAPH_SUCCESS;\n}\n}", "return ge::GRAPH_FAILED;\n}\n}", "tiling-failed"),
        ("used == 0 ? 1 : used", "0", "block-dim"),
        ("platform.GetLibApiWorkSpaceSize()", "(size_t)1 << 50", "workspace-size"),
        ("platform.GetLibApiWorkSpaceSize()", "(size_t)10 << 30", "workspace-size"),
    ],
)
def test_host_code_that_misbehaves_is_a_finding(
    edited: Edit, chip: Chip, old: str, new: str, code: str
) -> None:
    result = run_changed(edited, chip, HOST, old, new)
    assert codes(result) == [code]
    assert not result.completed


@pytest.mark.parametrize(("size", "said"), [(4096, ["host-values"]), (64, [])])
def test_host_code_does_not_read_what_the_kernel_computes_with(
    edited: Edit, chip: Chip, size: int, said: list[str]
) -> None:
    """The twin would hand the values down, and a tiling function could hold the whole answer."""
    old = 'this->Input("x")'
    result = run_changed(edited, chip, HOST, old, old + ".ValueDepend(REQUIRED)", size=size)
    assert codes(result) == said


def test_host_code_that_does_not_end_is_a_hang(edited: Edit, chip: Chip) -> None:
    loop = "uint32_t used = 0; while (cores > used) {}"
    result = run_changed(edited, chip, HOST, "uint32_t used = 0;", loop, seconds=1)
    assert codes(result) == ["host-hang"]


def test_no_tiling_function_runs_on_every_core_and_says_so(edited: Edit, chip: Chip) -> None:
    root = edited("bump", {"op_host/bump.cpp": [(".SetTiling(Tiling)", "")]})
    result = run(
        build(read_project(root), chip, (F32, F32)), [np.ones(1, np.float32)], [((1,), F32)]
    )
    assert result.blocks == chip.vector_cores
    assert "tiling-missing" in codes(result)


def test_an_operator_for_another_chip_is_a_warning(edited: Edit, chip: Chip) -> None:
    root = edited("bump", {"op_host/bump.cpp": [('"ascend910b"', '"ascend310p"')]})
    result = run(
        build(read_project(root), chip, (F32, F32)), [np.ones(1, np.float32)], [((1,), F32)]
    )
    assert [(f.code, f.level.value) for f in result.findings] == [("opdef-soc", "warning")]
    assert result.completed


def test_too_few_kernel_parameters_are_a_finding(edited: Edit, chip: Chip) -> None:
    root = edited("bump", {"op_kernel/bump.cpp": [("GM_ADDR x, GM_ADDR xRef,", "GM_ADDR x,")]})
    text = (root / "op_kernel/bump.cpp").read_text().replace("xRef", "x")
    (root / "op_kernel/bump.cpp").write_text(text)
    result = run(
        build(read_project(root), chip, (F32, F32)), [np.ones(1, np.float32)], [((1,), F32)]
    )
    assert codes(result) == ["entry-arguments"]


HOSTILE = [
    'FILE *f = fopen("report", "w"); fputs("{}", f); fclose(f); _Exit(0);',
    'remove("report"); mkfifo("report", 0600); _Exit(0);',
    'symlink("/etc/passwd", "report"); _Exit(0);',
    'truncate("out0", 0); _Exit(0);',
    'for (int file = 3; file < 99; ++file) write(file, "{}", 2); _Exit(0);',
    "kill(getppid(), 9); _Exit(0);",
    "std::exit(0);",
]


@pytest.mark.parametrize("code", HOSTILE)
def test_host_code_that_tampers_with_the_run_gains_nothing(
    edited: Edit, chip: Chip, code: str
) -> None:
    includes = (
        "#include <signal.h>\n#include <stdio.h>\n#include <sys/stat.h>\n#include <unistd.h>\n"
    )
    used = "uint32_t used = 0;"
    root = edited("add", {HOST: [(used, f"{used} {code}")]})
    text = (root / HOST).read_text()
    (root / HOST).write_text(includes + text)
    built = build(read_project(root), chip, (F32, F32, F32))
    x = np.ones(64, np.float32)
    result = run(built, [x, x], [(x.shape, F32)])
    assert codes(result) == ["host-crash"]
    assert not result.completed


def test_host_code_finds_neither_inputs_nor_outputs(edited: Edit, chip: Chip) -> None:
    used = "uint32_t used = 0;"
    look = 'for (auto name : {"in0", "in1", "out0", "report", "orders"}) '
    look += "if (access(name, F_OK) == 0) return ge::GRAPH_FAILED; "
    look += "for (int file = 5; file < 4096; ++file) "
    look += "if (fcntl(file, F_GETFD) != -1) return ge::GRAPH_FAILED;"
    root = edited("add", {HOST: [(used, f"{used} {look}")]})
    text = (root / HOST).read_text()
    (root / HOST).write_text("#include <fcntl.h>\n#include <unistd.h>\n" + text)
    x = np.ones(64, np.float32)
    result = run(build(read_project(root), chip, (F32, F32, F32)), [x, x], [(x.shape, F32)])
    assert codes(result) == []


def test_a_process_that_host_code_leaves_behind_is_not_there(edited: Edit, chip: Chip) -> None:
    used = "uint32_t used = 0;"
    code = 'if (fork() >= 0 || system("true") == 0) return ge::GRAPH_FAILED;'
    root = edited("add", {HOST: [(used, f"{used} {code}")]})
    text = (root / HOST).read_text()
    (root / HOST).write_text("#include <cstdlib>\n#include <unistd.h>\n" + text)
    x = np.ones(64, np.float32)
    result = run(build(read_project(root), chip, (F32, F32, F32)), [x, x], [(x.shape, F32)])
    assert codes(result) == []


def test_a_core_that_waits_for_a_flag_that_nobody_sets_is_a_deadlock(
    edited: Edit, chip: Chip
) -> None:
    wait = PROCESS + "    if (GetBlockIdx() == 0) SyncAll();\n"
    result = run_changed(edited, chip, KERNEL, PROCESS, wait, size=1 << 16)
    assert "deadlock" in codes(result)
    assert not result.completed


def test_an_assembler_directive_reads_nothing_from_outside(
    edited: Edit, chip: Chip, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the word")
    line = f'asm(".incbin \\"{secret}\\"");'
    root = edited(
        "add", {KERNEL: [("using namespace AscendC;\n", f"using namespace AscendC;\n{line}\n")]}
    )
    with pytest.raises(TwinError) as caught:
        build(read_project(root), chip, (F32, F32, F32))
    assert caught.value.code == "cheat-platform"
    assert "the word" not in str(caught.value)


def test_a_link_out_of_the_project_is_refused(edited: Edit, tmp_path: Path) -> None:
    root = edited("add")
    outside = tmp_path / "outside.h"
    outside.write_text("int x;\n")
    (root / "op_kernel/extra.h").symlink_to(outside)
    with pytest.raises(TwinError) as caught:
        read_project(root)
    assert caught.value.code == "project-link"
    (root / "op_kernel/extra.h").unlink()
    (root / "op_kernel/extra.h").symlink_to(root / "op_host/add_custom.cpp")
    assert read_project(root).name == "add_custom"


def test_an_element_type_that_nobody_knows_does_not_compile(edited: Edit, chip: Chip) -> None:
    root = edited("add", {HOST: [("ge::DT_FLOAT", "ge::DT_FLOAT7")]})
    with pytest.raises(TwinError) as caught:
        build(read_project(root), chip, (F32, F32, F32))
    assert caught.value.code == "compile-failed"
    assert caught.value.place.file.endswith(HOST)
    assert caught.value.place.line > 0


@pytest.mark.parametrize(
    ("tile", "wanted"), [(8176, []), (8192, ["ub-top"]), (8200, ["ub-capacity"])]
)
def test_buffers_up_to_the_very_top_of_ub_are_a_warning(
    edited: Edit, chip: Chip, tile: int, wanted: list[str]
) -> None:
    result = run_changed(
        edited, chip, HOST, "set_tileLength(1024)", f"set_tileLength({tile})", size=1 << 14
    )
    assert [code for code in codes(result) if code.startswith("ub-")] == wanted
