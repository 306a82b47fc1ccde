"""Normalisations."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_norm.py::"
_SUMS = "order of the sums, and floats inside for half data, are inferred"
_FORMULA = "its page shows the formula as a picture; the usual one gives the numbers printed there"


def _row(name: str, test: str, known: Known = Known.DOCUMENTED, note: str = _SUMS) -> Api:
    source = f"page {name}"
    return Api(name, "normalisation", ("half", "float"), known, source, _TEST + test, note=note)


def _host(name: str, *aka: str) -> Api:
    note = "scratch sizes and splits are ours: no formula is published"
    return Api(name, "tiling", (), Known.INFERRED, f"page of {name}", HOST_TEST, aka, note)


ROWS = (
    _row("LayerNorm", "test_layer_norm_gives_output_mean_and_variance"),
    _row("LayerNormGrad", "test_layer_norm_grad_follows_its_formula"),
    _row("LayerNormGradBeta", "test_layer_norm_grad_beta_sums_over_the_rows"),
    _row("RmsNorm", "test_rms_norm_gives_what_its_page_prints", note=_FORMULA),
    _row("BatchNorm", "test_batch_norm_gives_what_its_page_prints", note=_FORMULA),
    _row(
        "DeepNorm",
        "test_deep_norm_is_layer_norm_of_a_scaled_residual",
        note="rstdLocal is the variance, as in the page's example; its text says otherwise",
    ),
    _row("GroupNorm", "test_group_norm_gives_what_its_page_prints", note=_FORMULA),
    _row("Normalize", "test_normalize_takes_mean_and_variance_from_before"),
    _row(
        "WelfordUpdate",
        "test_welford_gives_mean_and_variance_of_all_pieces",
        note="outputs in place of inputs pass: the page forbids it, published operators do it",
    ),
    _row(
        "WelfordFinalize",
        "test_welford_finalize_with_counts_gives_what_its_page_prints",
        note=_FORMULA,
    ),
    _host("GetLayerNormMaxMinTmpSize"),
    _host("GetLayerNormNDTilingInfo", "GetLayerNormNDTillingInfo"),
    _host("GetLayerNormGradMaxMinTmpSize"),
    _host("GetLayerNormGradNDTilingInfo"),
    _host("GetLayerNormGradBetaMaxMinTmpSize"),
    _host("GetLayerNormGradBetaNDTilingInfo"),
    _host("GetRmsNormMaxMinTmpSize"),
    _host("GetRmsNormTilingInfo"),
    _host("GetBatchNormMaxMinTmpSize"),
    _host("GetBatchNormNDTilingInfo"),
    _host("GetDeepNormMaxMinTmpSize"),
    _host("GetDeepNormTilingInfo"),
    _host("GetGroupNormMaxMinTmpSize"),
    _host("GetGroupNormNDTilingInfo"),
    _host("GetNormalizeMaxMinTmpSize"),
    _host("GetWelfordUpdateMaxMinTmpSize"),
    _host("GetWelfordFinalizeMaxMinTmpSize"),
)
