"""Sorting: merges, Sort and TopK against NumPy; what a wrong list, length or chip is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels, compile_errors

F32, F16 = np.float32, np.float16
HERE = Path(__file__).parent
# what the unit of a project that is also configured for Atlas 310P begins with
PROPOSALS = (
    "namespace twin { template <int> struct RegionProposals;"
    " template <> struct RegionProposals<0> {}; }\n"
)
TEXT = (HERE / "library.h").read_text() + (HERE / "sorts.cpp").read_text()


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, PROPOSALS + TEXT, "sorts")


def _numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _launch(kernels: Kernels, entry: str, *arrays: np.ndarray) -> Outcome:
    return kernels.launch(entry, [Tensor(item, f"arg{i}") for i, item in enumerate(arrays)])


def _items(scores: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Scores and indices as the chip pairs them: 8 bytes each."""
    items = np.zeros(len(scores), np.dtype([("score", scores.dtype), ("pad", "V", 6)]))
    if scores.dtype == F16:
        items = np.zeros(len(scores), [("score", F16), ("pad", np.uint16), ("index", np.uint32)])
    else:
        items = np.zeros(len(scores), [("score", F32), ("index", np.uint32)])
    items["score"], items["index"] = scores, index
    return items


def _sorted_lists(dtype: type, lengths: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    lists = [np.sort(rng.integers(-9, 9, length))[::-1].astype(dtype) for length in lengths]
    scores = np.concatenate(lists)
    return _items(scores, np.arange(len(scores)))


def _by_score(items: np.ndarray) -> np.ndarray:
    return items[np.argsort(-items["score"].astype(np.float64), kind="stable")]


def _merge(
    kernels: Kernels, items: np.ndarray, lengths: tuple[int, ...], *, repeats: int = 1,
    suspend: bool = False,
) -> tuple[np.ndarray, np.ndarray, list[str]]:  # fmt: skip
    out, taken = np.zeros_like(items), np.zeros(4, np.int64)
    padded = [*lengths, 0, 0][:4]
    entry = "merge_half" if items["score"].dtype == F16 else "merge_float"
    numbers = _numbers(*padded, len(lengths), repeats, int(suspend))
    outcome = _launch(kernels, entry, items, out, taken, numbers)
    return out, taken, outcome.codes


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("lengths", [(32, 32), (7, 1, 40), (32, 32, 32, 32), (0, 5, 0, 3)])
def test_a_merge_is_a_stable_sort_of_its_lists(
    kernels: Kernels, dtype: type, lengths: tuple[int, ...]
) -> None:
    items = _sorted_lists(dtype, lengths)
    out, taken, codes = _merge(kernels, items, lengths)
    assert codes == []
    np.testing.assert_array_equal(out, _by_score(items))
    assert taken.tolist() == [*lengths, 0, 0][:4]


def test_repeats_of_a_merge_take_four_lists_each(kernels: Kernels) -> None:
    items = np.concatenate([_sorted_lists(F32, (8,) * 4, seed) for seed in (1, 2, 3)])
    out, _, codes = _merge(kernels, items, (8, 8, 8, 8), repeats=3)
    assert codes == []
    for r in range(3):
        part = slice(32 * r, 32 * r + 32)
        np.testing.assert_array_equal(out[part], _by_score(items[part]))


def test_a_list_that_is_used_up_can_stop_the_merge(kernels: Kernels) -> None:
    scores = np.array([9, 8, 7, 6, 5, 4, 8.5, 6.5], F32)
    items = _items(scores, np.arange(8))
    out, taken, codes = _merge(kernels, items, (6, 2), suspend=True)
    assert codes == []
    assert taken.tolist() == [3, 2, 0, 0]
    assert out["score"].tolist() == [9, 8.5, 8, 7, 6.5, 0, 0, 0]


def test_nan_stands_before_all_other_scores(kernels: Kernels) -> None:
    scores = np.array([np.nan, np.inf, 1, np.nan, 2, -np.inf], F32)
    out, _, codes = _merge(kernels, _items(scores, np.arange(6)), (3, 3))
    assert codes == []
    assert out["index"].tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("entry", ["sort_float", "sort_half", "sort_groups"])
@pytest.mark.parametrize("count", [32, 64, 512])
def test_sort_and_extract_give_values_and_places(kernels: Kernels, entry: str, count: int) -> None:
    dtype = F16 if entry == "sort_half" else F32
    scores = np.random.default_rng(count).integers(-40, 40, count).astype(dtype)
    index = np.arange(count, dtype=np.uint32) * 3
    values, names = np.zeros(count, dtype), np.zeros(count, np.uint32)
    outcome = _launch(kernels, entry, scores, index, values, names, _numbers(count, 1))
    assert outcome.codes == []
    group = 32 if entry == "sort_groups" else count
    rows = scores.astype(np.float64).reshape(-1, group)
    order = np.argsort(-rows, axis=1, kind="stable") + group * np.arange(count // group)[:, None]
    np.testing.assert_array_equal(values, scores[order.ravel()])
    np.testing.assert_array_equal(names, index[order.ravel()])


def test_the_documented_sort_of_128_halves_comes_out(kernels: Kernels) -> None:
    scores = np.concatenate([np.arange(31, -1, -1) + 32 * i for i in range(4)]).astype(F16)
    values, names = np.zeros(128, F16), np.zeros(128, np.uint32)
    index = scores.astype(np.uint32)
    outcome = _launch(kernels, "sort_then_merge", scores, index, values, names)
    assert outcome.codes == []
    np.testing.assert_array_equal(values, np.arange(127, -1, -1))
    np.testing.assert_array_equal(names, np.arange(127, -1, -1))


def _top(
    kernels: Kernels, entry: str, rows: np.ndarray, k: int, *, n: int, largest: bool,
    index: np.ndarray | None = None, finished: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, list[str]]:  # fmt: skip
    outter, inner = rows.shape
    small = entry.startswith("top_small")
    per_block = 32 // rows.itemsize
    width = k if small else -(-k // per_block) * per_block
    names_width = k if small else -(-k // 8) * 8
    values = np.full((outter, width), 7, rows.dtype)
    names = np.full((outter, names_width), -7, np.int32)
    if index is None:
        index = np.tile(np.arange(inner, dtype=np.int32), (outter, 1))
    if finished is None:
        finished = np.zeros(outter, np.uint8)
    numbers = _numbers(k, outter, inner, n, int(largest))
    outcome = _launch(kernels, entry, rows.ravel(), index.ravel(), finished, values, names, numbers)
    return values, names, outcome.codes


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 5, 64])
def test_topk_gives_ordered_rows_that_begin_at_blocks(
    kernels: Kernels, largest: bool, k: int
) -> None:
    rows = np.random.default_rng(k).integers(-50, 50, (3, 128)).astype(F32)
    values, names, codes = _top(kernels, "top_float", rows, k, n=128, largest=largest)
    assert codes == []
    order = np.argsort(-rows if largest else rows, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(values[:, :k], np.take_along_axis(rows, order, 1))
    np.testing.assert_array_equal(names[:, :k], order)
    assert (values[:, k:] == 7).all() and (names[:, k:] == -7).all()


def test_topk_marks_finished_rows_with_n(kernels: Kernels) -> None:
    rows = np.random.default_rng(5).standard_normal((2, 32)).astype(F16)
    index = np.arange(100, 132, dtype=np.int32)
    finished = np.array([0, 1], np.uint8)
    values, names, codes = _top(
        kernels, "top_half_finish", rows, 5, n=31, largest=False, index=index, finished=finished
    )
    assert codes == []
    order = np.argsort(rows, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(values[:, :5], np.take_along_axis(rows, order, 1))
    np.testing.assert_array_equal(names[0, :5], index[order[0]])
    assert names[1, :5].tolist() == [31] * 5


def test_small_topk_packs_its_rows_and_takes_nan_first(kernels: Kernels) -> None:
    rows = np.random.default_rng(6).standard_normal((4, 32)).astype(F32)
    rows[1, 4], rows[2, 9], rows[:, 17:] = np.nan, np.inf, -np.inf
    index = np.arange(128, dtype=np.int32).reshape(4, 32)
    values, names, codes = _top(kernels, "top_small", rows, 3, n=17, largest=True, index=index)
    assert codes == []
    key = np.where(np.isnan(rows), np.inf, rows)
    order = np.argsort(-key, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(values, np.take_along_axis(rows, order, 1))
    np.testing.assert_array_equal(names, np.take_along_axis(index, order, 1))


def test_top_k_of_small_rows_has_no_finished_ones(kernels: Kernels) -> None:
    rows = np.ones((4, 32), F32)
    _, _, codes = _top(kernels, "top_small_finish", rows, 3, n=17, largest=True)
    assert codes == ["param-range"]


# ---- region proposals


def test_region_proposals_do_not_compile_for_this_chip(runtime: Runtime) -> None:
    for call in ("RpSort16(h, h, 1)", "ProposalConcat(h, h, 1, 4)", "ProposalExtract(h, h, 1, 4)"):
        errors = compile_errors(runtime, f"void f(LocalTensor<half> h) {{ {call}; }}")
        assert "is not on dav-2201 (Atlas A2): Atlas 310P has it" in errors
    merge = (
        "void f(LocalTensor<half> h, MrgSortSrcList<half> l, MrgSort4Info i) { MrgSort4(h, l, i); }"
    )
    assert "use MrgSort" in compile_errors(runtime, merge)


def test_region_proposals_sort_as_atlas_310p_does_and_say_so(kernels: Kernels) -> None:
    scores = np.random.default_rng(7).permutation(32).astype(F16)
    labels = np.arange(32).astype(F16)
    best, names = np.zeros(32, F16), np.zeros(32, F16)
    outcome = _launch(kernels, "proposals", scores, labels, best, names)
    assert set(outcome.codes) == {"chip-lacks"}
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(best, scores[order])
    np.testing.assert_array_equal(names, labels[order])


WRONG_TYPES = {
    "MrgSort": "void f(LocalTensor<int32_t> x, MrgSortSrcList<int32_t> l, MrgSort4Info i)"
    " { MrgSort(x, l, i); }",
    "Sort": "void f(LocalTensor<int32_t> x, LocalTensor<uint32_t> i)"
    " { Sort<int32_t, true>(x, x, i, x, 1); }",
    "TopK": "void f(LocalTensor<bfloat16_t> x, LocalTensor<int32_t> i, LocalTensor<bool> b,"
    " TopkTiling t) { TopK(x, i, x, i, b, 1, t, TopKInfo()); }",
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_sorting_of_other_types_does_not_compile(runtime: Runtime, name: str) -> None:
    errors = compile_errors(runtime, WRONG_TYPES[name])
    assert f"{name} on dav-2201 takes half or float" in errors
