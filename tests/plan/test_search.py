"""The search over schedules: legal candidates, a budget in evaluations, the best one kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npusmith.errors import PlanError
from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.lang import check_all, parse
from npusmith.plan.knobs import Schedule, tile_of, turned
from npusmith.plan.search import search
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")
TEXT = '''"""twice over size"""
TILE = 4096

@host
def host(x, y):
    tiles = ceil_div(x.size, TILE)
    cores = max(min(tiles, chip.vector_cores), 1)
    share = ceil_div(tiles, cores)
    launch(twice, cores, size=x.size, tiles=tiles, share=share)

@kernel
def twice(x: input(float32), y: output(float32), size: int, tiles: int, share: int):
    x_in = ub(TILE, float32)
    y_out = ub(TILE, float32)
    first = core_id() * share
    for piece in range(first, min(first + share, tiles)):
        at = piece * TILE
        n = min(TILE, size - at)
        with copy_in:
            load(x_in, x[at], n)
        with compute:
            muls(y_out, x_in, 2.0, n)
        with copy_out:
            store(y[at], y_out, n)
'''


def program() -> Program:
    found = parse(TEXT, "twice.tile.py")
    assert not check_all(found, CHIP)
    return found


def model(best_tile: int, best_cores: int = 48) -> tuple[Callable[..., tuple[float, float]], list]:
    """A time that is least at one schedule, and the programs that it was asked for."""
    asked: list[Program] = []

    def time(candidate: Program) -> tuple[float, float]:
        asked.append(candidate)
        text = show(candidate)
        cores = 48 if "min(chip" not in text else int(text.split("vector_cores, ")[1].split(")")[0])
        tile = tile_of(candidate)
        assert tile is not None
        us = 20.0 + abs(tile - best_tile) / 1000 + abs(cores - best_cores) / 10
        return us, us * CHIP.clock_mhz

    return time, asked


@pytest.mark.parametrize("best", [2048, 4096, 8192])
def test_the_best_tile_of_the_model_is_found(best: int) -> None:
    time, _ = model(best)
    found = search(program(), CHIP, time)
    assert found.schedule == Schedule(best)
    assert tile_of(found.program) == best
    assert not check_all(found.program, CHIP)


def test_fewer_cores_are_found_where_they_are_better() -> None:
    time, _ = model(4096, best_cores=24)
    found = search(program(), CHIP, time)
    assert found.schedule.cores == 24
    assert "min(chip.vector_cores, 24)" in show(found.program)


def test_the_budget_counts_evaluations_and_the_first_is_the_program_itself() -> None:
    for budget in (1, 2, 5):
        time, asked = model(1024, best_cores=6)
        found = search(program(), CHIP, time, budget)
        assert len(asked) == len(found.trials) <= budget
        assert asked[0] == program()
        assert found.us == min(trial.us for trial in found.trials if trial.us is not None)


def test_the_search_ends_near_what_no_kernel_can_beat() -> None:
    time, asked = model(2048)
    search(program(), CHIP, time, 16, least_us=22.0)
    assert len(asked) == 1


def test_no_candidate_is_asked_for_twice() -> None:
    time, asked = model(2048, best_cores=12)
    search(program(), CHIP, time, 100)
    assert len({show(item) for item in asked}) == len(asked)


def test_a_tile_that_does_not_fit_is_not_timed() -> None:
    time, asked = model(1 << 20)
    search(program(), CHIP, time)
    assert max(tile_of(item) or 0 for item in asked) * 4 * 2 <= CHIP.ub_bytes


def test_a_candidate_that_cannot_be_timed_is_a_trial_without_a_time() -> None:
    inner, _ = model(8192)

    def time(candidate: Program) -> tuple[float, float]:
        if tile_of(candidate) == 8192:
            raise PlanError("plan-time", "the program cannot be timed")
        return inner(candidate)

    found = search(program(), CHIP, time)
    assert any(trial.us is None and "plan-time" in trial.why for trial in found.trials)
    assert found.schedule.tile != 8192


def test_folds_go_with_the_tile_or_the_tile_is_left_alone() -> None:
    folded = parse(TEXT.replace("TILE = 4096", "TILE = 4096\nFOLDS = 9"), "twice.tile.py")
    changed = turned(folded, Schedule(1024))
    assert changed is not None and dict(changed.consts) == {"TILE": 1024, "FOLDS": 7}
    assert turned(folded, Schedule(1536)) is None


def test_every_parameter_stands_in_the_text_and_leaves_the_program_legal() -> None:
    for schedule, word in (
        (Schedule(4096, copies=3), "ub(TILE, float32, copies=3)"),
        (Schedule(4096, copies=1), "ub(TILE, float32, copies=1)"),
        (Schedule(4096, in_turn=True), "in range(core_id(), tiles, core_count())"),
        (Schedule(2048, cores=24, in_turn=True), "min(chip.vector_cores, 24)"),
    ):
        changed = turned(program(), schedule)
        assert changed is not None
        assert not check_all(changed, CHIP)
        assert word in show(changed)
        assert parse(show(changed)) == changed
    assert turned(program(), Schedule(4096, lines=64)) is None  # rows are not short
    assert turned(program(), Schedule(4096, unit=128)) is None  # the host rounds no tile


def test_pieces_dealt_in_turn_are_not_tried_where_cores_wait_for_each_other() -> None:
    waits = TEXT.replace(
        "            store(y[at], y_out, n)\n",
        "            store(y[at], y_out, n)\n    sync_cores()\n",
    )
    assert turned(parse(waits), Schedule(4096, in_turn=True)) is None


def test_rows_that_tiles_divide_evenly_are_tried() -> None:
    time, asked = model(3584)
    found = search(program(), CHIP, time, 40, rows=(7100,))
    assert found.schedule.tile == 3584
    assert len(asked) <= 40
