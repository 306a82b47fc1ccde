"""Quantisation of the library."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_quant.py::"
_QUANT = _TEST + "test_quantisation_computes_in_half_and_rounds_to_even"
_DEQUANT = _TEST + "test_dequantisation_takes_the_float_in_the_low_half_of_a_scale"
_ANTI = _TEST + "test_antiquantisation_shares_scales_along_k"


def _row(name: str, dtypes: tuple[str, ...], test: str, note: str = "") -> Api:
    return Api(name, "quant", dtypes, Known.DOCUMENTED, f"page {name}", test, note=note)


def _host(name: str) -> Api:
    note = "no formula is published"
    return Api(name, "tiling", (), Known.INFERRED, f"page of {name}", HOST_TEST, note=note)


ROWS = (
    _row("AscendQuant", ("half->int8_t", "float->int8_t"), _QUANT),
    _row(
        "AscendDequant",
        ("int32_t->half", "int32_t->float", "int32_t->bfloat16_t"),
        _DEQUANT,
        "forms without DequantParams, which the page advises against, take the scale once a row",
    ),
    _row(
        "AscendAntiQuant",
        ("int8_t->half", "int8_t->bfloat16_t", "int4b_t->half", "int4b_t->bfloat16_t"),
        _ANTI,
        "to bfloat16_t everything is float until the end; the page draws that for one case",
    ),
    _host("GetAscendQuantMaxMinTmpSize"),
    _host("GetAscendDequantMaxMinTmpSize"),
    _host("GetAscendAntiQuantMaxMinTmpSize"),
    _host("GetAscendAntiQuantMaxTmpSize"),
    _host("GetAscendAntiQuantMinTmpSize"),
)
