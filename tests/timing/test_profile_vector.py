"""The bottleneck vector and the advice that is read from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npusmith.errors import Level
from npusmith.target.chips import CHIPS
from npusmith.timing.advice import RULES, advise
from npusmith.timing.bottleneck import NAMES, VERSION, named, vector
from npusmith.timing.model import CoreTime, PathTime, Timing, UnitTime
from npusmith.twin.checklist import CHECKLIST
from npusmith.twin.finding import Finding

Make = Callable[..., Timing]


def test_the_names_of_version_1_stay_as_they_are() -> None:
    assert VERSION == 1
    assert len(NAMES) == len(set(NAMES)) == 41
    assert NAMES[:8] == (
        "busy_S", "busy_V", "busy_M", "busy_MTE1", "busy_MTE2", "busy_MTE3", "busy_FIX", "wait_S",
    )  # fmt: skip
    assert NAMES[-2:] == ("finished", "sampled")


def test_every_number_of_the_vector_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in NAMES)


def test_the_vector_holds_what_the_launch_did(timing: Timing, limits: Any) -> None:
    values = named(timing, limits)
    assert values["busy_MTE2"] == pytest.approx(0.6)
    assert values["busy_M"] == 0
    assert values["size_64k"] == 1
    assert values["reuse"] == pytest.approx(limits.gm_bytes / (2304 * 16384))
    assert values["l2_hit"] == 0
    assert values["imbalance"] == 0
    assert values["lanes"] == pytest.approx(0.5)
    assert values["launch"] == pytest.approx(3 / 13, abs=1e-6)
    assert values["memory_roof"] == pytest.approx(0.5)


def test_waits_and_busy_of_the_units_that_worked_make_the_whole(timing: Timing) -> None:
    values = named(timing)
    units = [unit for core in timing.cores for unit in core.units.values()]
    busy = sum(unit.busy for unit in units) / (4 * 48 * timing.cycles)
    waits = sum(value for name, value in values.items() if name.startswith("wait_"))
    assert busy + waits == pytest.approx(1, abs=1e-5)


def test_a_kernel_without_traffic_or_time_has_finite_numbers(made: Make) -> None:
    empty = made(cores=[], paths={}, cycles=0, kernel_us=0, task_us=0, vector_repeats=0)
    assert all(math.isfinite(value) for value in vector(empty))
    assert advise(empty) == []


def test_a_slow_core_shows_as_imbalance_and_as_advice(made: Make) -> None:
    timing = made()
    late = timing.cores[0].model_copy(update={"end": timing.cycles})
    early = [core.model_copy(update={"end": timing.cycles / 2}) for core in timing.cores[1:]]
    skewed = made(cores=[late, *early])
    assert named(skewed)["imbalance"] == pytest.approx(0.5 * 47 / 48, abs=1e-5)
    assert "imbalance" in [item.rule for item in advise(skewed)]


def small(transfers: int, size: int) -> dict[str, PathTime]:
    return {
        "gm_ub": PathTime(
            transfers=transfers, bytes=transfers * size, miss_bytes=transfers * size, busy=1e5,
            sizes=[transfers, 0, 0, 0, 0, 0], unaligned=0,
        )
    }  # fmt: skip


def test_small_copies_are_named_with_their_number_and_the_place_of_the_note(made: Make) -> None:
    note = Finding(code="slow-copy", message="a small copy", level=Level.NOTE, file="k.cpp", line=7)
    found = advise(made(paths=small(48 * 100, 256)), findings=[note])
    copies = next(item for item in found if item.rule == "small-copies")
    assert "4,800 copies of 256 B" in copies.number
    assert copies.places and copies.places[0].startswith("k.cpp:7")
    assert copies.item == "P01"


def test_copies_of_16_kib_bring_no_advice_and_one_byte_less_does(made: Make) -> None:
    rules = [item.rule for item in advise(made(paths=small(4800, 16384)), most=99)]
    assert "small-copies" not in rules
    less = [item.rule for item in advise(made(paths=small(4800, 8192)), most=99)]
    assert "small-copies" in less


def test_bank_conflicts_and_heads_are_weighed_by_the_time_of_the_vector_unit(made: Make) -> None:
    busy = 48 * 0.3 * 18_000
    found = {item.rule: item for item in advise(made(conflict_cycles=busy / 2), most=99)}
    assert found["bank-conflict"].gain == pytest.approx(0.15 * 10 / 13, abs=1e-3)
    found = {item.rule: item for item in advise(made(head_cycles=busy / 2), most=99)}
    assert found["vector-heads"].gain == pytest.approx(0.15 * 10 / 13, abs=1e-3)


def barrier(steps: int, ahead: float = 0) -> CoreTime:
    """A core whose scalar unit waits for MTE2 for half of the time, in so many copies."""
    wait = UnitTime(steps=9, busy=1000, waits={"MTE2": 9000})
    copies = UnitTime(steps=steps, busy=9000, waits={"issue": 9000 - ahead, "end": ahead})
    return CoreTime(number=0, cube=False, begin=0, end=18_000, units={"S": wait, "MTE2": copies})


def test_the_drain_at_the_end_of_a_kernel_is_no_barrier_to_be_removed(made: Make) -> None:
    once = [item.rule for item in advise(made(cores=[barrier(1)], paths={}), most=99)]
    often = [item.rule for item in advise(made(cores=[barrier(9)], paths={}), most=99)]
    assert "barriers" not in once
    assert "barriers" in often
    early = [item.rule for item in advise(made(cores=[barrier(9, 9000)], paths={}), most=99)]
    assert "barriers" not in early  # the pipe never starved while the scalar unit waited


def test_few_cores_are_advised_to_be_more_unless_the_roof_is_near(made: Make, limits: Any) -> None:
    few = made(cores=made().cores[:12])
    found = {item.rule: item for item in advise(few, limits, chip=CHIPS["910B2"], most=99)}
    assert "12 of 48 vector cores" in found["idle-cores"].number
    limits.bound_us = 9.99
    rules = [item.rule for item in advise(few, limits, chip=CHIPS["910B2"], most=99)]
    assert "idle-cores" not in rules


def test_reading_twice_what_is_needed_is_advised_against(timing: Timing, limits: Any) -> None:
    limits.gm_bytes = 2304 * 16384 / 2
    found = {item.rule: item for item in advise(timing, limits, most=99)}
    assert found["l2-misses"].gain == pytest.approx(0.5 * 0.6 * 10 / 13, abs=1e-3)


def test_a_scalar_loop_comes_first(made: Make) -> None:
    unit = UnitTime(steps=1000, busy=17_000, waits={"MTE2": 1000})
    core = CoreTime(number=0, cube=False, begin=0, end=18_000, units={"S": unit})
    assert advise(made(cores=[core], paths={}))[0].rule == "scalar-work"


def test_at_most_three_are_given_the_largest_first(made: Make, limits: Any) -> None:
    limits.gm_bytes = 1e6
    found = advise(made(conflict_cycles=1e5, head_cycles=5e4, cores=made().cores[:3]), limits)
    assert len(found) == 3
    assert [item.gain for item in found] == sorted((item.gain for item in found), reverse=True)


def test_each_rule_has_a_source_with_its_number_and_a_known_item() -> None:
    items = {item.name for item in CHECKLIST}
    for rule in RULES:
        assert rule.source and rule.hint
        assert rule.item in items | {""}
    assert len({rule.name for rule in RULES}) == len(RULES)
