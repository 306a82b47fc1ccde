"""Sorting: instructions on pairs of score and index, and the library on top of them."""

from __future__ import annotations

from npusmith.target.apis.row import HOST_TEST, Api, Known

_TEST = "tests/twin_kernel/test_sort.py::"
_FLOATS = ("half", "float")
_HERE = Known.DOCUMENTED
_SORTED = _TEST + "test_sort_and_extract_give_values_and_places"
_EXAMPLE = _TEST + "test_the_documented_sort_of_128_halves_comes_out"
_TOP = _TEST + "test_topk_gives_ordered_rows_that_begin_at_blocks"
_OTHER = _TEST + "test_region_proposals_sort_as_atlas_310p_does_and_say_so"
_MISSING = "not on this chip: compiles for projects that also name a chip with it, and is a finding"


def _row(
    name: str, test: str, known: Known = _HERE, dtypes: tuple[str, ...] = _FLOATS, note: str = ""
) -> Api:
    return Api(name, "sort", dtypes, known, f"page {name}", test, note=note)


ROWS = (
    _row("Sort32", "tests/twin_kernel/test_semantics.py"),
    _row(
        "MrgSort",
        _TEST + "test_a_merge_is_a_stable_sort_of_its_lists",
        note="NaN stands before all other scores, as the page of TopK says",
    ),
    _row(
        "GetMrgSortResult",
        _TEST + "test_a_list_that_is_used_up_can_stop_the_merge",
        dtypes=(),
        note="without ifExhaustedSuspension the counts are the lengths; the page does not say",
    ),
    _row("Concat", _EXAMPLE, note="moves nothing on this chip, as the page's example needs it"),
    _row("Sort", _SORTED),
    _row("Extract", _SORTED, note="32 items a repeat for both types, as in the page's example"),
    _row(
        "GetSortOffset",
        _EXAMPLE,
        Known.INFERRED,
        note="in elements, as the page's example uses it, though its text says bytes",
    ),
    _row("GetSortLen", _EXAMPLE, Known.INFERRED, note="in elements, as GetSortOffset"),
    _row("TopK", _TOP, note="minimum of scratch is ours; members of the tiling mean little here"),
    _row("TopKTilingFunc", HOST_TEST, Known.INFERRED, dtypes=(), note="the members are ours"),
    _row(
        "GetTopKMaxMinTmpSize", HOST_TEST, Known.INFERRED, dtypes=(), note="no formula is published"
    ),
    _row("GetSortTmpSize", HOST_TEST, Known.INFERRED, dtypes=(), note="8 bytes an element"),
    _row("GetConcatTmpSize", HOST_TEST, Known.INFERRED, dtypes=(), note="0 on this chip"),
    _row("RpSort16", _OTHER, note=_MISSING),
    _row("MrgSort4", _OTHER, note=_MISSING + "; validBit 1, which copies a list, is inferred"),
    _row("ProposalConcat", _OTHER, note=_MISSING),
    _row("ProposalExtract", _OTHER, note=_MISSING),
)
