"""The SoftMax family."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_softmax.py::"
_DATA = ("half", "float", "half with float statistics")
_SUMS = "order of the sum, and floats inside for half data, are inferred"
_SIZES = "scratch sizes are ours: no formula is published"


def _row(
    name: str,
    test: str,
    dtypes: tuple[str, ...] = _DATA,
    known: Known = Known.DOCUMENTED,
    note: str = _SUMS,
) -> Api:
    return Api(name, "activation", dtypes, known, f"page {name}", _TEST + test, note=note)


def _host(name: str) -> Api:
    return Api(name, "tiling", (), Known.INFERRED, f"page of {name}", HOST_TEST, note=_SIZES)


ROWS = (
    _row("SoftMax", "test_softmax_gives_result_sum_and_maximum"),
    _row("SimpleSoftMax", "test_simple_softmax_uses_the_given_sum_and_maximum"),
    _row("SoftmaxFlash", "test_softmax_flash_continues_and_rescales"),
    _row("SoftmaxFlashV2", "test_softmax_flash_v2_leaves_the_division_out"),
    _row(
        "SoftmaxFlashV3",
        "test_softmax_flash_v3_follows_its_pseudo_code",
        ("half with float statistics",),
        Known.INFERRED,
        "by the page's pseudo code; its formula is a picture",
    ),
    _row("SoftmaxGrad", "test_softmax_grad_and_its_front_half", ("half", "float")),
    _row("SoftmaxGradFront", "test_softmax_grad_and_its_front_half", ("half", "float")),
    _row(
        "AdjustSoftMaxRes",
        "test_adjust_softmax_res_replaces_rows_by_the_bits_of_their_maximum",
        note="a half maximum is compared with the low 16 bits of `from`",
    ),
    _row("LogSoftMax", "test_log_softmax_is_a_logarithm_to_base_ten", ("half", "float")),
    Api(
        "SoftMaxFlashV2TilingFuncImpl",
        "activation",
        (),
        Known.INFERRED,
        "published kernels of NPUKernelBench (FlashAttentionScoreWithLargeHeadDim)",
        _TEST + "test_softmax_flash_v2_in_place_with_tiling_made_by_the_kernel",
        note="scratch is counted in floats, as its only known user does",
    ),
    _host("SoftMaxTilingFunc"),
    _host("SoftMaxFlashTilingFunc"),
    _host("SoftMaxFlashV2TilingFunc"),
    _host("SoftMaxFlashV3TilingFunc"),
    _host("SoftMaxGradTilingFunc"),
    _host("LogSoftMaxTilingFunc"),
    _host("GetSoftMaxMaxTmpSize"),
    _host("GetSoftMaxMinTmpSize"),
    _host("GetSoftMaxFlashMaxTmpSize"),
    _host("GetSoftMaxFlashMinTmpSize"),
    _host("GetSoftMaxFlashV2MaxTmpSize"),
    _host("GetSoftMaxFlashV2MinTmpSize"),
    _host("GetSoftMaxFlashV3MaxMinTmpSize"),
    _host("GetSoftMaxGradMaxTmpSize"),
    _host("GetSoftMaxGradMinTmpSize"),
    _host("GetLogSoftMaxMaxTmpSize"),
    _host("GetLogSoftMaxMinTmpSize"),
    _host("IsBasicBlockInSoftMax"),
)
