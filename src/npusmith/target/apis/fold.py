"""Reductions of the library: along an axis, of whole rows, running sums."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_fold.py::"
_AXIS = _TEST + "test_a_reduction_folds_one_axis"
_MEAN = _TEST + "test_a_mean_of_halves_may_be_added_in_float"
_FLOATS = ("half", "float")
_ORDER = "the order in which terms are joined is not documented"


def _axis(name: str, dtypes: tuple[str, ...], note: str = "") -> Api:
    known = Known.INFERRED if note else Known.DOCUMENTED
    return Api(f"{name} (pattern)", "reduce", dtypes, known, f"page {name}", _AXIS, note=note)


def _host(name: str, known: Known = Known.INFERRED, note: str = "no formula is published") -> Api:
    return Api(name, "tiling", (), known, f"page of {name}", HOST_TEST, note=note)


ROWS = (
    Api(
        "Sum",
        "reduce",
        _FLOATS,
        Known.DOCUMENTED,
        "page Sum",
        "tests/twin_kernel/test_semantics.py",
    ),
    Api("Mean", "reduce", _FLOATS, Known.INFERRED, "page Mean", _MEAN, note="sum times 1 / n"),
    Api(
        "ReduceXorSum",
        "reduce",
        ("int16_t",),
        Known.DOCUMENTED,
        "page ReduceXorSum",
        _TEST + "test_a_xor_sum_stays_inside_16_bits",
    ),
    _axis("ReduceSum", ("float",), _ORDER),
    _axis("ReduceMean", ("float",), _ORDER),
    _axis("ReduceProd", ("float",), _ORDER),
    _axis("ReduceMax", _FLOATS),
    _axis("ReduceMin", _FLOATS),
    _axis("ReduceAny", ("uint8_t", "float")),
    _axis("ReduceAll", ("uint8_t", "float")),
    Api(
        "CumSum",
        "math",
        _FLOATS,
        Known.INFERRED,
        "page CumSum",
        _TEST + "test_running_sums_go_along_the_axis_of_the_config",
        note="half is summed in float and rounded where it is written",
    ),
    _host("GetSumMaxMinTmpSize", note="as the scratch of ReduceSum: one value a repeat"),
    _host("GetMeanMaxMinTmpSize", note="as GetSumMaxMinTmpSize, and a row in the wider type"),
    _host("GetReduceSumMaxMinTmpSize"),
    _host("GetReduceMeanMaxMinTmpSize"),
    _host("GetReduceMaxMaxMinTmpSize"),
    _host("GetReduceMinMaxMinTmpSize"),
    _host("GetReduceProdMaxMinTmpSize"),
    _host("GetReduceAnyMaxMinTmpSize"),
    _host("GetReduceAllMaxMinTmpSize"),
    _host("GetReduceXorSumMaxMinTmpSize"),
    _host("GetCumSumMaxMinTmpSize"),
)
