"""A schedule is a value: read while a program is written, printed, kept in files, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import CHIP, agrees, capture

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Const, Name
from npusmith.ir.text import show
from npusmith.lang import check, parse
from npusmith.lang.interp import run_host
from npusmith.lower import lower
from npusmith.plan import Plan, write
from npusmith.plan.decisions import Decisions
from npusmith.plan.schedule import Lines, Schedule, Structure, check_task, load, save
from npusmith.plan.search import ORDER
from npusmith.target.chips import find_chip
from npusmith.task.graph import Graph

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def draw(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(7)) * 3 - 1


def gate(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


def deviation(x: Tensor) -> Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()


CASES: dict[str, Case] = {
    "pointwise": (lambda x: torch.tanh(x) * 2, ((37, 300),)),
    "broadcast": (lambda x, w: x * w + 1, ((33, 70), (70,))),
    "softmax": (lambda x: x.softmax(1), ((9, 3000),)),
    "few long rows": (deviation, ((2, 40_000),)),
    "short rows": (lambda x: x.softmax(1), ((300, 24),)),
    "columns": (lambda x: x.sum(0), ((600, 40),)),
    "a number": (lambda x: (x * x).mean(), ((41, 333),)),
    "scan": (lambda x: x.cumsum(1), ((3, 9000),)),
    "product": (lambda x: (1 + x / 1000).prod(1), ((5, 3000),)),
    "slices": (gate, ((21, 64),)),
    "transpose": (lambda x: x.permute(2, 0, 1) + 1, ((6, 11, 40),)),
    "padding": (lambda x: F.pad(x, (3, 2)) * 2, ((7, 500),)),
    "pooling": (lambda x: F.max_pool2d(x, 3, 2, 1), ((2, 3, 20, 18),)),
    "sort": (lambda x: x.sort(-1).values, ((4, 60),)),
    "two kernels": (lambda x: x.softmax(1).sum(0), ((20, 90),)),
    "picks": (lambda x: (x - x.mean(1, keepdim=True)).argmin(-1), ((2, 3, 5, 7),)),
}


def routed(x: Tensor) -> tuple[Tensor, Tensor]:
    values, at = x.softmax(-1).topk(7)
    return values / values.sum(-1, keepdim=True), at


# Of these the alternatives are not run
WRITTEN: dict[str, Case] = {**CASES, "sort between kernels": (routed, ((5, 37, 101),))}


def graph_of(case: str) -> Graph:
    model, shapes = WRITTEN[case]
    return capture(model, *(draw(*shape) for shape in shapes))


def written(case: str, schedule: Schedule = Schedule()) -> Plan:  # noqa: B008
    made = write(graph_of(case), "op_custom", CHIP, schedule)
    check(made.program, CHIP)
    assert parse(show(made.program)) == made.program
    return made


def others(plan: Plan) -> list[Schedule]:
    """Each decision with each of its other values, those that follow from it left to the writer."""
    if plan.parts:
        whole = plan.schedule.kernels
        return [
            Schedule(kernels=(*whole[:at], other, *whole[at + 1 :]))
            for at, (_, part) in enumerate(plan.parts)
            for other in others(part)
        ]
    fields = Schedule.model_fields
    return [
        plan.schedule.model_copy(
            update={**{n: fields[n].default for n in ORDER[item.name]}, item.name: value}
        )
        for item in plan.decisions
        for value in item.others
    ]


@pytest.mark.parametrize("case", WRITTEN)
def test_the_whole_schedule_of_a_program_writes_the_same_program(case: str) -> None:
    made = written(case)
    again = written(case, Schedule.model_validate_json(made.schedule.model_dump_json()))
    assert again.program == made.program
    assert again.schedule == made.schedule


@pytest.mark.parametrize("case", CASES)
def test_every_alternative_computes_the_same(case: str) -> None:
    model, shapes = CASES[case]
    graph, made = graph_of(case), written(case)
    done = {made.program}
    for schedule in others(made):
        other = write(graph, "op_custom", CHIP, schedule, own=made)
        if other.program in done:
            continue
        done.add(other.program)
        check(other.program, CHIP)
        assert parse(show(other.program)) == other.program
        agrees(other, model, *(draw(*shape) for shape in shapes))
        near = write(graph, "op_custom", CHIP, schedule, everywhere=True, own=made)
        agrees(near, model, *(draw(*shape) for shape in shapes))
        again = write(graph, "op_custom", CHIP, other.schedule, own=made)
        assert again.program == other.program
    assert write(graph, "op_custom", CHIP, other.schedule).program == other.program
    assert len(done) > 1


def test_tiles_that_a_schedule_asks_for_hold_whole_repeats_in_every_buffer() -> None:
    def ranks(x: Tensor) -> tuple[Tensor, ...]:
        var, mean = torch.var_mean(x, dim=(1, 3), keepdim=True)
        z = (x - mean) / torch.sqrt(var + 1e-5)
        return z.permute(5, 0, 2, 1, 4, 3), x.argmin(-1), x.amax((0, 2, 4)), z.prod(3)

    graph, chip = capture(ranks, draw(2, 1, 3, 5, 1, 7)), find_chip("910B2")
    made = write(graph, "op_custom", chip, Schedule(inner=1))
    shares = set()
    for schedule in others(made):
        program = write(graph, "op_custom", chip, schedule).program
        for buffer in (item for kernel in program.kernels for item in kernel.buffers):
            match buffer.length:
                case Binary(BinOp.FLOORDIV, Name(name), Const(share)) if buffer.dtype.bytes > 1:
                    shares.add(share)
                    assert dict(program.consts)[name] // share % 64 == 0, (schedule, buffer.name)
    assert 16 in shares


def test_a_schedule_is_a_value_that_prints_and_goes_through_json() -> None:
    schedule = Schedule(lines=(Lines.CHUNKED,), tile=2048, copies=(("x_in", 1),), cores=12)
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule
    assert str(schedule) == "lines chunked; tile 2048; 1 of x_in; at most 12 cores"
    assert str(Schedule()) == "as written"
    assert len({schedule, Schedule(), Schedule()}) == 2


@pytest.mark.parametrize(
    ("case", "schedule", "what"),
    [
        ("pointwise", Schedule(inner=256), "`inner` decides nothing"),
        ("pointwise", Schedule(tile=1000), "`tile` cannot be 1000"),
        ("pointwise", Schedule(tile=1 << 20), "`tile` cannot be"),
        ("product", Schedule(tile=768), "`tile` cannot be 768"),
        ("pointwise", Schedule(cores=5), "`cores` cannot be 5"),
        ("pointwise", Schedule(copies=(("nobody", 2),)), "`copies` cannot be nobody"),
        ("pointwise", Schedule(lines=(Lines.CHUNKED,)), "`lines` decides nothing"),
        ("softmax", Schedule(lines=(Lines.DEALT,) * 3), "`lines` cannot be 3"),
        ("columns", Schedule(lines=(Lines.TOGETHER,)), "`lines` cannot be together"),
        ("softmax", Schedule(structure=Structure.SORT), "structure cannot be sort"),
        ("sort", Schedule(structure=Structure.SORT, tile=256), "`tile` decides nothing"),
        ("slices", Schedule(inner=512), "`inner` cannot be 512"),
        ("two kernels", Schedule(tile=256), "`tile` is decided for each of 2 kernels"),
        ("two kernels", Schedule(kernels=(Schedule(),)), "`kernels` are 1"),
        ("softmax", Schedule(kernels=(Schedule(),)), "`kernels` are 1"),
    ],
)
def test_a_decision_that_does_not_apply_is_refused(
    case: str, schedule: Schedule, what: str
) -> None:
    with pytest.raises(PlanError) as found:
        written(case, schedule)
    assert found.value.code == "plan-schedule"
    assert what in found.value.message


def test_what_a_schedule_says_stands_in_the_program() -> None:
    schedule = Schedule(tile=512, copies=(("args_0_in", 3),))
    made = write(graph_of("pointwise"), "op_custom", CHIP, schedule, everywhere=True)
    text = show(made.program)
    assert "args_0_in = ub(TILE, float32, copies=3)" in text
    dealt = Schedule(lines=(Lines.DEALT,))
    made = write(graph_of("few long rows"), "op_custom", CHIP, dealt, everywhere=True)
    text = show(made.program)
    assert "chunk" not in text and "sync_cores" not in text


def test_what_is_tuned_at_the_captured_shapes_is_not_kept_far_from_them() -> None:
    made = written("pointwise", Schedule(tile=256, cores=2))
    lines = [line.strip() for line in show(made.program).splitlines()]
    assert "most_cores = min(chip.vector_cores, 2) if near == 1 else chip.vector_cores" in lines
    assert "span = TUNED if near == 1 else TILE" in lines
    own = dict(written("pointwise").program.consts)["TILE"]
    assert dict(made.program.consts) == {"TILE": own, "TUNED": 256}
    for rows, cores in ((37, 2), (19, 2), (74, 2), (18, 4), (75, 4), (37 * 128, 4)):
        assert cores_of(made, (rows, 300)) == cores


def cores_of(made: Plan, shape: tuple[int, ...]) -> int:
    return run_host(made.program, CHIP, {"args_0": shape, "y": shape}).cores


@pytest.mark.parametrize("shape", [(37, 300), (1, 1), (37 * 64, 300), (3, 9000)])
def test_a_tuned_program_is_right_near_and_far(shape: tuple[int, int]) -> None:
    model = CASES["pointwise"][0]
    agrees(written("pointwise", Schedule(tile=256, cores=2)), model, draw(*shape))


@pytest.mark.parametrize(
    ("case", "schedule", "far"),
    [
        ("few long rows", Schedule(lines=(Lines.DEALT,)), (700, 90)),
        ("few long rows", Schedule(lines=(Lines.TOGETHER,)), (50, 9000)),
        ("short rows", Schedule(structure=Structure.LOOPS), (5, 3000)),
        ("softmax", Schedule(copies=(("args_0_in", 1), ("y_out", 1))), (90, 30)),
        ("columns", Schedule(lines=(Lines.DEALT,)), (40, 600)),
    ],
)
def test_another_form_is_a_version_of_its_own_near_the_captured_shapes(
    case: str, schedule: Schedule, far: tuple[int, ...]
) -> None:
    model, shapes = CASES[case]
    made = written(case, schedule)
    assert "this schedule holds everywhere" not in made.notes
    lower(made.program, CHIP)
    for shape in (shapes[0], far):
        agrees(made, model, draw(*shape))
    alone = write(graph_of(case), "op_custom", CHIP, schedule, everywhere=True)
    own = written(case)
    for shape, program in ((shapes[0], alone.program), (far, own.program)):
        ends = {"args_0": shape, "y": shape}
        assert run_host(made.program, CHIP, ends).cores == run_host(program, CHIP, ends).cores


def test_a_file_of_a_schedule_is_for_its_own_task() -> None:
    graph, made = graph_of("softmax"), written("softmax")
    text = json.dumps(save(made.schedule, graph, CHIP))
    assert check_task(load(text), graph, CHIP) == made.schedule
    result = json.dumps({"verdict": "pass", "provenance": {"schedule": json.loads(text)}})
    assert load(result) == load(text)
    with pytest.raises(PlanError) as found:
        check_task(load(text), graph_of("scan"), CHIP)
    assert found.value.code == "plan-schedule-task"
    for broken in ("", "{}", "[1]", '{"provenance": {}}', text.replace("tile", "tiel")):
        with pytest.raises(PlanError) as found:
            load(broken)
        assert found.value.code == "plan-schedule-file"


def test_a_tile_that_leaves_no_choice_is_named_as_the_only_one() -> None:
    with pytest.raises(PlanError) as caught:
        Decisions(Schedule(tile=500)).tile(2048, 4096, 2048, powers=False)
    assert caught.value.legal == "2048"
