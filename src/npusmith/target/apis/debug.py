"""Assertions, printing, dumps, marks for the profiler."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_ASSERT = (
    "tests/twin_kernel/test_breadth.py::test_assertions_stand_wherever_the_toolchain_lets_them"
)
_PRINT = "tests/twin_kernel/test_breadth.py::test_printing_and_dumps_come_out"
_MARKS = "tests/twin_kernel/test_breadth.py::test_marks_change_nothing"


def _row(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, "debug", (), known, f"page {name}", test, aka, note)


ROWS = (
    _row("assert", _ASSERT, aka=("ascendc_assert",)),
    _row(
        "ASSERT",
        _ASSERT,
        Known.INFERRED,
        ("ASCENDC_ASSERT",),
        "where it may stand is taken from published kernels; checked here, nothing in a release",
    ),
    _row("printf", _PRINT, aka=("PRINTF",)),
    _row("DumpTensor", _PRINT, note="as text on the error stream, not in the vendor's format"),
    _row("DumpAccChkPoint", _PRINT, note="as text on the error stream"),
    _row(
        "asc_dump",
        _PRINT,
        aka=("asc_dump_gm", "asc_dump_ubuf", "asc_dump_l1buf", "asc_dump_cbuf"),
        note="by the pointer's own memory, as text on the error stream",
    ),
    _row("Trap", "tests/twin_kernel/test_breadth.py::test_trap_ends_the_core", aka=("trap",)),
    _row("TRACE_START", _MARKS),
    _row("TRACE_STOP", _MARKS),
    _row("PrintTimeStamp", _MARKS, Known.INFERRED, note="nothing is printed"),
    _row("MetricsProfStart", _MARKS),
    _row("MetricsProfStop", _MARKS),
)
