"""Kernels that try to fool the judge, or to break it; none may pass, none may take it down."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from judging import Bench

from npusmith.task.verdict import Rung, Verdict

ADDS = "Adds(yOutLocal, t0Local, 1.0f, n);"
PROCESS = "op.Process();"
INCLUDE = '#include "kernel_operator.h"\n'


def _swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def _codes(verdict: Verdict) -> set[str]:
    codes = {item.code for item in verdict.findings}
    return codes | ({str(verdict.error["code"])} if verdict.error else set())


def test_the_honest_kernel_passes(bench: Bench) -> None:
    verdict = bench.judge(bench.project)
    assert verdict.verdict == "pass" and verdict.rung is Rung.RACE_FREE
    assert not verdict.findings


WRONG = {
    "zeros": _swap(ADDS, "Duplicate(yOutLocal, 0.0f, n);"),
    "input": _swap(ADDS, "Adds(yOutLocal, xInLocal, 0.0f, n);"),
    "constant off by a little": _swap(ADDS, "Adds(yOutLocal, t0Local, 1.0005f, n);"),
    "last element forgotten": _swap(ADDS, "Adds(yOutLocal, t0Local, 1.0f, n - 1);"),
    "nothing written": _swap(PROCESS, ""),
    "only core 0 works": _swap(PROCESS, "if (AscendC::GetBlockIdx() == 0) { op.Process(); }"),
    "right for the random inputs only": _swap(
        "Abs(t0Local, xInLocal, n);", "Mins(t0Local, xInLocal, 1e6f, n); Abs(t0Local, t0Local, n);"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails(bench: Bench, name: str) -> None:
    verdict = bench.try_kernel(re.sub(r"\W", "_", name), WRONG[name])
    assert verdict.compiled and verdict.verdict == "fail" and not verdict.correct


BROKEN: dict[str, tuple[Callable[[str], str], set[str]]] = {
    "writes past the end of the output": (
        _swap("DataCopyPad(yGm[at], yOutLocal", "DataCopyPad(yGm[at + 4], yOutLocal"),
        {"gm-bounds"},
    ),
    "writes to its input": (
        _swap("DataCopyPad(yGm[at], yOutLocal", "DataCopyPad(xGm[at], yOutLocal"),
        {"gm-readonly"},
    ),
    "never returns": (
        _swap(PROCESS, "while (true) { op.Process(); }"),
        {"kernel-hang"},
    ),
    "dereferences nothing": (
        _swap(PROCESS, PROCESS + " *reinterpret_cast<volatile int *>(8) = 1;"),
        {"kernel-crash"},
    ),
    "frees a tensor and uses it": (
        _swap("yOutQueue.EnQue(yOutLocal);", "xInQueue.FreeTensor(xInLocal); Adds(yOutLocal, "
              "xInLocal, 0.0f, n); yOutQueue.EnQue(yOutLocal);"),
        {"queue-state"},
    ),
    "wants more UB than there is": (
        _swap("pipe->InitBuffer(t0Buf, TILE * sizeof(float));",
              "pipe->InitBuffer(t0Buf, 40000 * sizeof(float));"),
        {"ub-capacity"},
    ),
    "leaves by the back door": (
        lambda text: text.replace(INCLUDE, INCLUDE + 'extern "C" void _exit(int);\n').replace(
            PROCESS, PROCESS + " _exit(0);"
        ),
        {"device-cpp"},
    ),
    "throws": (_swap(PROCESS, PROCESS + " throw 1;"), {"device-cpp"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_caught_by_name(bench: Bench, name: str) -> None:
    change, codes = BROKEN[name]
    verdict = bench.try_kernel(re.sub(r"\W", "_", name), change, seconds=3)
    assert verdict.verdict == "fail"
    assert _codes(verdict) & codes, [item.render() for item in verdict.findings]


def test_right_values_with_a_broken_rule_do_not_pass(bench: Bench) -> None:
    """The queue is left with a tensor that was never freed: right on a CPU, a hang on the chip."""
    verdict = bench.try_kernel("leak", _swap("xInQueue.FreeTensor(xInLocal);", ""))
    assert verdict.verdict == "fail" and not verdict.correct
    assert _codes(verdict) & {"queue-leak", "queue-deadlock", "queue-state"}


FORGERY = """
extern "C" int open(const char *, int, ...);
extern "C" long write(int, const void *, unsigned long);
extern "C" void _exit(int);
static void Forge(const char *text, unsigned long size) {
  int fd = open("report", 0x241, 0644);
  write(fd, text, size);
  _exit(0);
}
"""


@pytest.mark.parametrize(
    "report",
    [
        "not json at all",
        '{"completed": true, "op": "x", "blocks": 1, "tiling_key": 0, "workspace_bytes": 0, '
        '"tiling": "", "host_seconds": 0, "kernel_seconds": 0, "findings": []}',
        '{"completed": true, "op": "x", "blocks": 1, "tiling_key": 0, "workspace_bytes": 0, '
        '"tiling": "zz", "host_seconds": 0, "kernel_seconds": 0, '
        '"findings": [{"code": "no-such-code", "message": "m"}]}',
    ],
)
def test_a_forged_report_gains_nothing(bench: Bench, report: str) -> None:
    text = report.replace("\\", "\\\\").replace('"', '\\"')
    verdict = bench.try_kernel(
        f"forged{len(report)}",
        lambda code: code.replace(INCLUDE, INCLUDE + FORGERY).replace(
            PROCESS, f'Forge("{text}", {len(report)});'
        ),
    )
    assert verdict.verdict == "fail" and not verdict.correct
    for item in verdict.findings:
        assert item.code in item.render()


def test_the_references_are_out_of_the_candidate_s_reach(bench: Bench) -> None:
    """A kernel that knows where the answers lie cannot open them."""
    folder = bench.prepared.folder
    file = next(path for path in sorted(folder.rglob("*")) if path.is_file())
    peek = f"""
extern "C" int open(const char *, int, ...);
static bool Peek() {{ return open("{file}", 0) >= 0; }}
"""
    verdict = bench.try_kernel(
        "peek",
        lambda code: code.replace(INCLUDE, INCLUDE + peek).replace(
            PROCESS, "if (Peek()) { while (true) {} } op.Process();"
        ),
        seconds=3,
    )
    assert "kernel-hang" not in _codes(verdict)


def test_another_number_of_outputs_is_refused_before_anything_runs(bench: Bench) -> None:
    project = bench.copy("two_outputs")
    host = project / "op_host" / f"{bench.spec.name}.cpp"
    text = host.read_text()
    output = text[text.index('this->Output("y")') : text.index("this->SetInferShape")]
    host.write_text(text.replace(output, output + output.replace('"y"', '"z"')))
    verdict = bench.judge(project)
    assert verdict.verdict == "fail" and _codes(verdict) == {"output-count"}


def test_a_declared_dtype_that_is_not_the_reference_s_is_refused(bench: Bench) -> None:
    project = bench.copy("half_output")
    host = project / "op_host" / f"{bench.spec.name}.cpp"
    head, _, tail = host.read_text().partition('this->Output("y")')
    host.write_text(head + 'this->Output("y")' + tail.replace("DT_FLOAT}", "DT_FLOAT16}", 1))
    verdict = bench.judge(project)
    assert verdict.verdict == "fail" and _codes(verdict) - {"infer-type"}


def test_host_code_cannot_do_the_kernel_s_work(bench: Bench) -> None:
    """What the tiling function leaves in the output's file is gone when the kernel starts."""
    project = bench.copy("host_works")
    kernel = project / "op_kernel" / f"{bench.spec.name}.cpp"
    kernel.write_text(kernel.read_text().replace(PROCESS, ""))
    host = project / "op_host" / f"{bench.spec.name}.cpp"
    work = """{ FILE *in = fopen("in0", "r"), *out = fopen("out0", "r+"); float x;
    while (in && out && fread(&x, 4, 1, in) == 1) { x = fabsf(x) * 2 + 1; fwrite(&x, 4, 1, out); }
    if (out) fclose(out); }
    return ge::GRAPH_SUCCESS;"""
    text = host.read_text().replace("return ge::GRAPH_SUCCESS;", work)
    host.write_text("#include <math.h>\n#include <stdio.h>\n" + text)
    verdict = bench.judge(project)
    assert verdict.compiled and verdict.verdict == "fail" and not verdict.correct


def test_the_references_cannot_be_compiled_in(bench: Bench) -> None:
    file = next(iter(sorted(bench.prepared.folder.glob("*.bin"))))
    stolen = f'asm(".pushsection .rodata\\n.incbin \\"{file}\\"\\n.popsection");\n'
    verdict = bench.try_kernel("stolen", _swap(INCLUDE, INCLUDE + stolen.replace("\n.", "\\n.")))
    assert not verdict.compiled and _codes(verdict) == {"cheat-platform"}


def test_a_message_that_names_an_endless_path_is_still_a_message(bench: Bench) -> None:
    line = f'#line 1 "{"a" * 6000}"\n#error no\n'
    verdict = bench.try_kernel("line", _swap(INCLUDE, INCLUDE + line))
    assert _codes(verdict) == {"cheat-platform"}
