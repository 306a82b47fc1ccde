"""Activation functions without reductions."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_activation.py::"
_PAGE = _TEST + "test_the_outputs_on_the_vendors_page_come_out_bit_for_bit"
_ONE = _TEST + "test_an_activation_is_its_formula"
_TWO = _TEST + "test_a_gated_unit_multiplies_the_first_source_by_the_activated_second"
_BOTH = ("half", "float")
_HALF = "floats inside for half data are inferred"


def _row(
    name: str,
    test: str,
    known: Known = Known.DOCUMENTED,
    dtypes: tuple[str, ...] = _BOTH,
    note: str = "",
) -> Api:
    return Api(name, "activation", dtypes, known, f"page {name}", test, note=note)


def _host(name: str) -> Api:
    note = "scratch sizes are ours: no formula is published"
    return Api(name, "tiling", (), Known.INFERRED, f"page of {name}", HOST_TEST, note=note)


ROWS = (
    _row(
        "Gelu",
        _PAGE,
        Known.REPRODUCED,
        note="tanh form, half rounded after each step: the page's outputs come out bit for bit",
    ),
    _row("FasterGelu", _PAGE, Known.REPRODUCED, note="half rounded after each step"),
    _row("FasterGeluV2", _ONE, note="order of steps on half data is inferred"),
    _row("SwiGLU", _TWO, note=_HALF),
    _row("GeGLU", _TWO, note=_HALF),
    _row("ReGlu", _TWO, dtypes=("half", "bfloat16_t", "float"), note=_HALF),
    _row(
        "Sigmoid",
        "tests/twin_kernel/test_conformance.py",
        note="half rounded after each step, float once; in place passes though the page forbids it;"
        " sources that overlap dst in part are read first (inferred)",
    ),
    _row("Silu", _ONE, note=_HALF),
    _row("Swish", _ONE, note=_HALF),
    _host("GetGeluMaxMinTmpSize"),
    _host("GetGeluMaxTmpSize"),
    _host("GetGeluMinTmpSize"),
    _host("GetSwiGLUMaxMinTmpSize"),
    _host("GetSwiGLUTmpBufferFactorSize"),
    _host("GetGeGLUMaxMinTmpSize"),
    _host("GetGeGLUTmpBufferFactorSize"),
    _host("GetReGluMaxMinTmpSize"),
    _host("GetSigmoidMaxMinTmpSize"),
    _host("GetSiluTmpSize"),
    _host("GetSwishTmpSize"),
    _host("GetRoundMaxMinTmpSize"),
    _host("GetRoundTmpBufferFactorSize"),
    _host("GetPowerTmpBufferFactorSize"),
    _host("GetMeanTmpBufferFactorSize"),
)
