"""The search over schedules: the writer's alternatives, a budget in evaluations, the best kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import capture

from npusmith.errors import PlanError
from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.lang import check_all
from npusmith.plan import Plan, write
from npusmith.plan.schedule import Lines, Schedule, Structure
from npusmith.plan.search import Found, search, search_plan
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph

CHIP = find_chip("910B2")
Time = Callable[[Program], tuple[float, float]]


def graph_of(model: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    return capture(model, *(torch.empty(shape, device="meta") for shape in shapes))


ROWS = graph_of(lambda x: torch.tanh(x) * 2, (4096, 7000))
FOLDED = graph_of(lambda x: x.softmax(1), (8, 500_000))
SLICED = graph_of(lambda x: torch.cat([x[:, 9:], x[:, :9]], 1) * 2, (4096, 60))


def searched(graph: Graph, time: Time, budget: int = 40, least_us: float = 0.0) -> Found:
    def written(schedule: Schedule) -> Plan:
        return write(graph, "op", CHIP, schedule, everywhere=True)

    return search(write(graph, "op", CHIP), written, CHIP, time, budget, least_us)


def tile_of(program: Program) -> int:
    consts = dict(program.consts)
    return int(consts.get("TUNED", consts["TILE"]))


def cores_of(program: Program) -> int:
    text = show(program)
    return int(text.split("vector_cores, ")[1].split(")")[0]) if "most_cores" in text else 48


def model(best_tile: int, best_cores: int = 48) -> tuple[Time, list[Program]]:
    """A time that is least at one schedule, and the programs that it was asked for."""
    asked: list[Program] = []

    def time(candidate: Program) -> tuple[float, float]:
        asked.append(candidate)
        us = 20.0 + abs(tile_of(candidate) - best_tile) / 1000
        us += abs(cores_of(candidate) - best_cores) / 10
        return us, us * CHIP.clock_mhz

    return time, asked


OWN = tile_of(write(ROWS, "op", CHIP).program)


@pytest.mark.parametrize("best", [OWN // 4, OWN, 4096])
def test_the_best_tile_of_the_model_is_found(best: int) -> None:
    found = searched(ROWS, model(best)[0])
    assert found.schedule.tile == best


def test_fewer_cores_are_found_where_they_are_better() -> None:
    found = searched(ROWS, model(OWN, best_cores=24)[0])
    assert found.schedule.cores == 24


def test_the_budget_counts_evaluations_and_the_first_is_the_program_itself() -> None:
    for budget in (1, 2, 5):
        time, asked = model(1024, best_cores=6)
        found = searched(ROWS, time, budget)
        assert len(asked) == len(found.trials) <= budget
        assert asked[0] == write(ROWS, "op", CHIP).program
        assert round(found.us, 3) == min(trial.us for trial in found.trials if trial.us is not None)


def test_the_search_ends_near_what_no_kernel_can_beat() -> None:
    time, asked = model(OWN - 2048)
    searched(ROWS, time, least_us=22.0)
    assert len(asked) == 1


def test_the_same_search_finds_the_same() -> None:
    one, two = (searched(ROWS, model(2048, best_cores=12)[0]) for _ in range(2))
    assert one == two


def test_no_candidate_is_asked_for_twice_and_each_is_legal() -> None:
    time, asked = model(2048, best_cores=12)
    searched(ROWS, time, 100)
    assert len({show(item) for item in asked}) == len(asked)
    assert not any(check_all(item, CHIP) for item in asked)


def test_a_candidate_that_cannot_be_timed_is_a_trial_without_a_time() -> None:
    inner, _ = model(OWN // 2)

    def time(candidate: Program) -> tuple[float, float]:
        if tile_of(candidate) == OWN // 2:
            raise PlanError("plan-time", "the program cannot be timed")
        return inner(candidate)

    found = searched(ROWS, time)
    assert any(trial.us is None and "plan-time" in trial.why for trial in found.trials)
    assert found.schedule.tile != OWN // 2


def test_how_lines_are_shared_is_searched() -> None:
    def time(candidate: Program) -> tuple[float, float]:
        us = 40.0 if "chunk_size" in show(candidate) else 30.0
        return us, us

    assert write(FOLDED, "op", CHIP).schedule.lines == (Lines.BY_SIZES,)
    assert searched(FOLDED, time).schedule.lines == (Lines.DEALT,)


def test_kernels_over_index_maps_are_searched_for_what_goes_into_a_tile() -> None:
    def time(candidate: Program) -> tuple[float, float]:
        us = 40.0 if "rows inside of a tile are short" in show(candidate) else 30.0
        return us, us

    found = searched(SLICED, time)
    assert found.schedule.structure is Structure.INDEX_MAPS
    assert found.schedule.inner == 1


def test_the_structure_is_searched() -> None:
    graph = graph_of(lambda x, w: x * w, (100, 64), (64,))

    def time(candidate: Program) -> tuple[float, float]:
        us = 40.0 if "index maps" in candidate.doc else 30.0
        return us, us

    assert write(graph, "op", CHIP).schedule.structure is Structure.INDEX_MAPS
    assert searched(graph, time).schedule.structure is Structure.LOOPS


def test_a_search_on_the_timing_model_keeps_what_is_not_slower() -> None:
    graph = graph_of(lambda x: x.softmax(1).sum(0), (64, 500))
    plan = write(graph, "op", CHIP)
    assert len(plan.parts) == 2
    better, found = search_plan(plan, graph, "op", CHIP, budget=6)
    assert len(found.trials) <= 6
    assert {trial.kernel for trial in found.trials} == {1, 2}
    assert found.us <= found.first_us
    assert better.schedule == found.schedule
    assert write(graph, "op", CHIP, better.schedule).program == better.program


def _framed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    sharp = x - 0.97 * F.pad(x, (1, 0))[:, :-1]
    power = (sharp.unfold(-1, 18, 7) @ weight) ** 2
    logarithm = torch.log(power + 1e-6)
    return logarithm - logarithm.mean(1, keepdim=True)


def _two_layers(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (x @ w).relu() @ v


def test_kernels_that_know_an_input_by_its_sizes_alone_are_searched() -> None:
    graph = capture(_framed, torch.empty(3, 97), torch.empty(18, 20))
    plan, found = search_plan(write(graph, "op_custom", CHIP), graph, "op_custom", CHIP, 6)
    assert len(plan.program.kernels) > 1 and len(found.trials) > len(plan.program.kernels)


def test_a_search_asks_for_one_kernel_and_gets_no_others() -> None:
    graph = capture(_two_layers, torch.empty(33, 40), torch.empty(40, 50), torch.empty(50, 33))
    with pytest.raises(PlanError, match="kernel of its own"):
        write(graph, "op_custom", CHIP, everywhere=True)


def test_schedules_whose_kernels_do_not_fit_one_program_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = capture(_two_layers, torch.empty(33, 40), torch.empty(40, 50), torch.empty(50, 33))
    plan = write(graph, "op_custom", CHIP)
    monkeypatch.setattr("npusmith.plan.search.MAX_CHARS", len(show(plan.program)) - 1)
    kept, found = search_plan(plan, graph, "op_custom", CHIP, 6)
    assert kept.program == plan.program and found.schedule == plan.schedule
    assert "longer than a program may be" in kept.notes[-1]


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(96, 96) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def test_equal_kernels_are_searched_once_and_stay_one() -> None:
    graph = capture(Layers(), torch.empty(70, 96))
    plan, found = search_plan(write(graph, "op_custom", CHIP), graph, "op_custom", CHIP, 8)
    assert len(plan.parts) == 4 and len(plan.program.kernels) == 1
    assert len({str(item) for item in found.schedule.kernels[1:]}) == 1
    assert {trial.kernel for trial in found.trials} < {1, 2, 3, 4}
