"""Kernel-side tiling: reading the host's data, choosing a branch, template tiling."""

from __future__ import annotations

from npusmith.target.apis.row import Api, Known

_DATA = "tests/twin_host/test_tilingdata.py::test_every_way_to_read_tiling_gives_the_hosts_values"
_KEYS = "tests/twin_host/test_tilingdata.py::test_a_key_list_takes_either_key"
_TEMPLATE = "tests/twin_host/test_template.py::test_the_key_of_the_host_picks_the_instance"
_NOTE = "the key is in an encoding of our own: its number may differ from the vendor's"


def _row(
    name: str, test: str, known: Known = Known.DOCUMENTED, note: str = "", aka: tuple[str, ...] = ()
) -> Api:
    return Api(name, "tiling", (), known, f"page {name}", test, aka=aka, note=note)


ROWS = (
    _row("GET_TILING_DATA", _DATA),
    _row("GET_TILING_DATA_WITH_STRUCT", _DATA),
    _row("GET_TILING_DATA_MEMBER", _DATA),
    _row("GET_TILING_DATA_PTR_WITH_STRUCT", _DATA),
    _row("COPY_TILING_WITH_STRUCT", _DATA),
    _row("COPY_TILING_WITH_ARRAY", _DATA),
    _row("REGISTER_TILING_DEFAULT", _DATA),
    _row(
        "REGISTER_TILING_FOR_TILINGKEY",
        _DATA,
        Known.INFERRED,
        "the expression is not evaluated: name the struct in GET_TILING_DATA_WITH_STRUCT",
    ),
    _row("REGISTER_NONE_TILING", _DATA),
    _row("TILING_KEY_IS", _KEYS, note="a comparison at run time: every branch is compiled"),
    _row("TILING_KEY_LIST", _KEYS),
    _row("TILING_KEY_VAR", _KEYS),
    _row("ASCENDC_TPL_ARGS_DECL", _TEMPLATE, Known.INFERRED, _NOTE),
    _row("ASCENDC_TPL_SEL", _TEMPLATE, Known.INFERRED, _NOTE, ("ASCENDC_TPL_ARGS_SEL",)),
    _row("GET_TPL_TILING_KEY", _TEMPLATE, Known.INFERRED, _NOTE, ("ASCENDC_TPL_SEL_PARAM",)),
)
