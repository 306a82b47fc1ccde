"""Published definitions on numbers worked by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusmith.bench.metrics import (
    Summary,
    at_least_one,
    attainment,
    cann_score,
    expected_best,
    fast_p,
    geometric_mean,
    sample_of,
    summarize,
)
from npusmith.bench.model import Item, Record
from npusmith.task.verdict import Rung


def make_item(name: str, **more: str) -> Item:
    fields = {"suite": "s", "category": "math", "level": "1", "dtype": "fp32", "source": name,
              "digest": name}  # fmt: skip
    return Item.model_validate({"name": name, **fields, **more})


def make_record(item: str, sample: int = 0, right: bool | None = True, **more: object) -> Record:
    fields: dict[str, object] = {
        "key": f"{item}{sample}", "suite": "s", "item": item, "category": "math", "writer": "w",
        "sample": sample, "candidate": "c", "compiled": True, "official": right, "strict": right,
        "precise": right, "clean": True, "provenance": {"trials": "1"},
    }  # fmt: skip
    return Record.model_validate(fields | more)


# ---- definitions


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (5, 0, 1, 0.0),
        (5, 2, 1, 0.4),
        (5, 2, 2, 0.7),  # 1 - C(3,2)/C(5,2) = 1 - 3/10
        (10, 3, 5, 11 / 12),  # 1 - C(7,5)/C(10,5) = 1 - 21/252
        (10, 3, 8, 1.0),  # fewer than 8 are wrong
        (100, 1, 10, 0.1),
        (200, 200, 100, 1.0),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, value: float) -> None:
    assert at_least_one(n, c, k) == pytest.approx(value, abs=1e-15)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_mean_over_all_choices(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert at_least_one(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)])
def test_pass_at_k_has_no_value_for_too_few_samples(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="no estimate"):
        at_least_one(n, c, k)


def test_expected_best_by_hand() -> None:
    # pairs of (0, 1, 4): (0,1) -> 1, (0,4) -> 4, (1,4) -> 4
    assert expected_best([4.0, 0.0, 1.0], 2) == pytest.approx(3.0)
    assert expected_best([4.0, 0.0, 1.0], 1) == pytest.approx(5 / 3)
    assert expected_best([4.0, 0.0, 1.0], 3) == 4.0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=7), st.data())
def test_expected_best_is_the_mean_over_all_choices(
    values: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    tops = [max(choice) for choice in itertools.combinations(values, k)]
    assert expected_best(values, k) == pytest.approx(sum(tops) / len(tops))


def test_fast_p_in_both_conventions() -> None:
    speedups = [1.0, 0.8, 2.0, None]  # three correct kernels of four tasks
    assert fast_p(speedups, 1.0, "strict") == 0.25
    assert fast_p(speedups, 1.0, "at_least") == 0.5
    assert fast_p(speedups, 0.0, "strict") == 0.75  # fast_0 is the share of correct ones
    assert fast_p(speedups, 0.8, "at_least") == 0.75
    assert fast_p(speedups, 2.0, "strict") == 0.0


def test_geometric_mean_of_a_half_and_eight() -> None:
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("eager", "time", "roof", "value"),
    [
        (100.0, 100.0, 10.0, 0.5),  # as fast as the baseline
        (100.0, 10.0, 10.0, 1.0),  # at the bound
        (100.0, 190.0, 10.0, 1 / 3),  # 90 / (180 + 90)
        (100.0, 5.0, 10.0, 90 / 85),  # below the bound: more than 1, as published
        (None, 100.0, 10.0, 0.5),  # the stand-in is 10 x 10 us
        (None, 10.0, 0.5, 0.5),  # ... and at least 10 us
        (10.0, 5.0, 10.0, None),  # no span left
        (100.0, 0.0, 10.0, None),
        (100.0, 10.0, 0.0, None),
    ],
)
def test_attainment_by_hand(
    eager: float | None, time: float, roof: float, value: float | None
) -> None:
    found = attainment(eager, time, roof)
    assert found == (None if value is None else pytest.approx(value))


def test_cann_score_by_hand() -> None:
    assert cann_score(False, [1.0]) == 0.0
    assert cann_score(True, [None, None]) == 20.0
    assert cann_score(True, [0.5, 0.5]) == 20 + 30 + 25
    # one of four cases is wrong: 20 + 30 * 3/4 + 50 * (0.5 + 1 + 0.3) / 4
    assert cann_score(True, [0.5, 1.0, None, 0.3]) == pytest.approx(20 + 22.5 + 22.5)


# ---- a run of five tasks, by hand


@pytest.fixture
def summary() -> Summary:
    items = [
        make_item("a"),
        make_item("b", level="2"),
        make_item("c", category="loss"),
        make_item("d", category="loss", dtype="fp16"),
        make_item("e", skipped="needs an NPU"),
    ]
    timed = {"time_us": 10.0, "roof_us": 5.0}
    records = [
        make_record("a", 0, eager_us=10.0, **timed),  # right, 1x
        make_record("a", 1, eager_us=20.0, **timed),  # right, 2x
        make_record("b", 0, compiled=False, official=None, strict=None, precise=None, clean=None),
        make_record("b", 1, right=False),
        make_record("c", 0, cheating=["aten-compute"], eager_us=90.0, **timed),
        make_record("c", 1, clean=False, findings={"ub-align": 1}, eager_us=5.0, **timed),  # 0.5x
        make_record("d", 0),  # right, without a time
        make_record("d", 1, compiled=None, official=None, strict=None, precise=None, clean=None,
                    error="worker-lost"),
    ]  # fmt: skip
    return summarize(items, records)


def test_counts_are_of_tasks_with_any_sample(summary: Summary) -> None:
    group = summary.overall
    assert (group.tasks, group.n, group.not_measured, group.samples) == (5, 4, 1, 7)
    assert (group.compiled, group.official, group.strict) == (4, 3, 3)
    assert (group.correct, group.trusted, group.cheating, group.untimed) == (3, 2, 1, 1)
    assert group.fast["strict"] == {"0.2": 2, "0.5": 1, "0.8": 1, "1": 1, "1.5": 1, "2": 0}
    assert group.fast["at_least"] == {"0.2": 2, "0.5": 2, "0.8": 1, "1": 1, "1.5": 1, "2": 1}


def test_rates_are_means_over_the_tasks_that_were_measured(summary: Summary) -> None:
    rates = summary.overall.rates
    # compile@1: a 1, b 1/2, c 1, d 1 (its one sample with a verdict)
    assert (rates["compile@1"].value, rates["compile@1"].n) == (pytest.approx(3.5 / 4), 4)
    assert rates["compile@1"].not_measured == 1
    # pass@1: a 1, b 0, c 1/2, d 1
    assert rates["pass@1"].value == pytest.approx(2.5 / 4)
    # pass@2 needs two samples: a 1, b 0, c 1
    assert (rates["pass@2"].value, rates["pass@2"].n) == (pytest.approx(2 / 3), 3)
    # fast_1: a has 1x and 2x, b none, c cheats and 0.5x; d has no time
    assert (rates["fast_1_strict"].value, rates["fast_1_strict"].n) == (pytest.approx(0.5 / 3), 3)
    assert rates["fast_1_at_least"].value == pytest.approx(1 / 3)
    assert rates["fast_1_strict"].not_measured == 2
    assert rates["speedup_0.5@2"].value == pytest.approx(2 / 3)
    # best@2: a 2, b 0, c 0.5
    assert rates["best@2"].value == pytest.approx(2.5 / 3)
    # geomean: a sqrt(2), c 0.5
    assert rates["geomean"].value == pytest.approx(math.sqrt(math.sqrt(2) * 0.5))
    assert rates["geomean"].n == 2


def test_the_score_of_records_is_that_of_the_published_formula(summary: Summary) -> None:
    # a: 20+30+50*5/10 and 20+30+50*15/20; b: 0 and 20; c: 0 (cheats), and 5 us is at the bound of
    # 5 us, whose span is 5: 20+30+0; d: no time
    wanted = [(75 + 87.5) / 2, 10.0, 25.0]
    assert summary.overall.rates["score"].value == pytest.approx(sum(wanted) / 3)
    assert summary.overall.rates["score"].n == 3


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 20 + 30 + 50 * 8 / (18 + 8)),  # (10 - 2) / ((20 - 2) + (10 - 2))
        ({"official": False}, 20.0),
        ({"official": False, "rung": Rung.RAN.value}, 20.0),
        ({"official": False, "rung": Rung.COMPILED.value}, 0.0),  # compiles, and does not run
        ({"compiled": False, "official": None}, 0.0),
        ({"time_us": 1.0, "eager_us": 2.0}, 50.0),  # nothing between baseline and bound
        ({"eager_us": None}, 20 + 30 + 50 * 18 / (18 + 18)),  # the stand-in is 20 us
        ({"accuracy": 0.5}, 20 + 0.5 * (30 + 50 * 8 / 26)),
        ({"time_us": None}, None),
        ({"compiled": None, "official": None}, None),
    ],
)
def test_the_score_of_one_record_by_hand(changes: dict[str, object], score: float | None) -> None:
    record = Record(
        key="", suite="cann-bench", item="a", category="", writer="w", sample=0, candidate="",
        compiled=True, official=True, time_us=20.0, eager_us=10.0, roof_us=2.0,
    ).model_copy(update=changes)  # fmt: skip
    found = sample_of([record]).score
    assert found == (None if score is None else pytest.approx(score))


def test_groups_hold_their_own_tasks(summary: Summary) -> None:
    assert {name: group.tasks for name, group in summary.categories.items()} == {
        "math": 3,
        "loss": 2,
    }
    assert {name: group.n for name, group in summary.levels.items()} == {"1": 3, "2": 1}
    assert {name: group.correct for name, group in summary.dtypes.items()} == {
        "fp16": 1,
        "fp32": 2,
    }


def test_the_document_has_the_whole_run_on_top(summary: Summary) -> None:
    data = summary.document()
    assert (data["n"], data["compiled"], data["correct"]) == (4, 4, 3)
    assert data["fast"]["strict"]["1"] == 1  # type: ignore[index]
    assert data["categories"]["loss"]["n"] == 2  # type: ignore[index]


def test_speeds_are_not_measured_where_no_right_kernel_has_a_time() -> None:
    items = [make_item("a"), make_item("b")]
    found = summarize(items, [make_record("a"), make_record("b", right=False)]).overall
    assert found.rates["fast_1_strict"].value is None
    assert found.rates["fast_1_strict"].not_measured == 2
    assert found.fast["at_least"]["1"] is None
    assert found.rates["score"].value is None
    assert found.rates["pass@1"].value == 0.5


def test_trials_of_a_sample_must_all_be_right() -> None:
    trials = [make_record("a", trial=n, right=n != 1, provenance={"trials": "3"}) for n in range(3)]
    assert sample_of(trials).events["correct"] is False
    assert sample_of(trials[::2]).events["correct"] is True
    unknown = make_record("a", trial=1, right=None)
    assert sample_of([trials[0], unknown]).events["correct"] is None
    found = summarize([make_item("a")], trials).overall
    assert (found.samples, found.correct) == (1, 0)


def test_an_interval_is_the_same_on_every_day_and_holds_the_value() -> None:
    items = [make_item(f"t{n}") for n in range(40)]
    records = [make_record(f"t{n}", right=n % 4 == 0) for n in range(40)]
    first, second = (summarize(items, records).overall.rates["pass@1"] for _ in range(2))
    assert first == second
    assert first.value == 0.25
    assert first.low is not None
    assert first.high is not None
    # the binomial's own 95 % for 10 of 40 is 0.14 to 0.40
    assert 0.08 < first.low < 0.17
    assert 0.35 < first.high < 0.42


def test_many_tasks_have_nearly_the_interval_of_the_bootstrap() -> None:
    from npusmith.bench import metrics

    items = [make_item(f"t{n}") for n in range(3000)]
    records = [make_record(f"t{n}", right=n % 4 == 0) for n in range(3000)]
    drawn = summarize(items, records).overall.rates["pass@1"]
    columns = {"x": metrics.np.array([float(n % 4 == 0) for n in range(3000)])}
    table = metrics.np.stack(list(columns.values()), axis=1)
    low, high = metrics._normal(table, ~metrics.np.isnan(table))
    assert drawn.low == pytest.approx(float(low[0]), abs=0.004)
    assert drawn.high == pytest.approx(float(high[0]), abs=0.004)


def test_no_task_at_all_gives_no_figure() -> None:
    found = summarize([], []).overall
    assert (found.tasks, found.n) == (0, 0)
    assert found.rates["pass@1"].value is None


def test_what_was_checked_at_the_true_shape_is_counted_by_task() -> None:
    words = {"a": ["wrong: off", "right: both ends"], "b": ["not run: log"], "c": [""]}
    records = [
        make_record(item, sample, true_shape=text)
        for item, texts in words.items()
        for sample, text in enumerate(texts)
    ]
    found = summarize([make_item(item) for item in words], records).overall.true_shape
    assert found == {"right": 1, "not run": 1}


def test_an_eager_time_from_too_few_rows_stays_out_of_the_geometric_mean() -> None:
    ends = {"time_us": 10.0, "roof_us": 5.0}
    items = [make_item("a"), make_item("b"), make_item("c")]
    records = [
        make_record("a", 0, eager_us=20.0, eager_low_us=10.0, eager_high_us=80.0, **ends),
        make_record("b", 0, eager_us=80.0, eager_low_us=40.0, eager_high_us=90.0, **ends),
        make_record(
            "c", 0, eager_us=1e6, eager_low_us=1.0, eager_high_us=1e8, eager_weak=True, **ends
        ),
    ]
    group = summarize(items, records).overall
    assert (group.rates["geomean"].value, group.rates["geomean"].n) == (pytest.approx(4.0), 2)
    assert group.rates["geomean_least"].value == pytest.approx(2.0)
    assert group.rates["geomean_most"].value == pytest.approx(math.sqrt(72))
    assert group.few_rows == 1
    assert group.fast["strict"]["1"] == 3  # the shares are of all tasks


def test_reduced_tasks_have_figures_at_their_own_shapes() -> None:
    """They were judged at 1 MB, where a kernel for 1 GB may be slow; others count as they are."""
    at_one = {"time_us": 10.0, "roof_us": 5.0, "eager_us": 5.0}
    own = {"own_eager_low_us": 150.0, "own_eager_high_us": 500.0, "own_us": 100.0}
    items = [make_item(name) for name in ("a@1MB", "b@1MB", "c", "d@1MB")]
    records = [
        make_record("a@1MB", 0, own_eager_us=400.0, **own, **at_one),
        make_record("b@1MB", 0, own_eager_us=50.0, own_eager_weak=True, **own, **at_one),
        make_record("c", 0, **at_one | {"eager_us": 10.0}),
        make_record("d@1MB", 0, official=False, own_eager_us=400.0, **own, **at_one),
    ]
    rates = summarize(items, records).overall.rates
    # a 4, c 1; b rests on too little, d is wrong
    assert (rates["own_geomean"].value, rates["own_geomean"].n) == (pytest.approx(2.0), 2)
    assert rates["own_geomean_least"].value == pytest.approx(1.5)  # c has no interval
    assert rates["own_fast_1"].value == pytest.approx(2 / 4)
    assert "own_geomean" not in summarize(items[2:3], records[2:3]).overall.rates
