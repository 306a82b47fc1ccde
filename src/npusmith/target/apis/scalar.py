"""Scalar arithmetic, system variables, workspaces."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_BITS = "tests/twin_kernel/test_breadth.py::test_scalar_bit_operations_count"
_CAST = "tests/twin_kernel/test_breadth.py::test_scalar_casts_round_as_told"
_PAST = "tests/twin_kernel/test_breadth.py::test_global_memory_past_the_cache_is_the_same"
_SYSTEM = "tests/twin_kernel/test_breadth.py::test_system_variables_answer"


def _row(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    group: str = "scalar",
    aka: tuple[str, ...] = (),
    note: str = "",
) -> Api:
    return Api(name, group, (), known, f"page {name}", test, aka, note)


ROWS = (
    _row("ScalarGetCountOfValue", _BITS, aka=("GetBitCount", "bcnt0", "bcnt1")),
    _row("ScalarCountLeadingZero", _BITS, aka=("clz", "CountLeadingZero")),
    _row("CountBitsCntSameAsSignBit", _BITS, aka=("sflbits",)),
    _row("ScalarGetSFFValue", _BITS, aka=("sff0", "sff1", "GetSFFValue")),
    _row("ScalarCast", _CAST),
    _row("ToFloat", _CAST),
    _row("ToBfloat16", _CAST),
    _row("WriteGmByPassDCache", _PAST),
    _row("ReadGmByPassDCache", _PAST),
    _row("GetArchVersion", _SYSTEM, group="system"),
    _row(
        "GetProgramCounter",
        _SYSTEM,
        Known.INFERRED,
        "system",
        note="counts calls: there are no instruction addresses on the twin",
    ),
    _row(
        "GetSystemCycle",
        _SYSTEM,
        Known.INFERRED,
        "system",
        ("get_system_cycle", "get_sys_cnt"),
        "counts calls: there is no clock on the twin",
    ),
    _row("GetDataBlockSizeInBytes", _SYSTEM, group="system"),
    _row(
        "CheckLocalMemoryIA",
        _SYSTEM,
        Known.INFERRED,
        "system",
        note="taken and not watched: every access is checked against its tensor anyway",
    ),
)
