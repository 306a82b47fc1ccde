"""Random modules (runs/random_modules.py): a sample of them, and whether their judge can tell."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import random_modules
import torch
from random_modules import How, judge, modules, run

from npusmith.errors import PlanError
from npusmith.lower import lower
from npusmith.plan import Plan, write
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph
from npusmith.task.user import build_model, load_file
from npusmith.train.modules import case as cases
from npusmith.train.modules import on_twin
from npusmith.train.modules.case import Case, unequal
from npusmith.train.modules.draw import Input, Line, Module, Op, Refused, State, draw
from npusmith.train.modules.ops import FAMILIES, TABLE

SAMPLE = 12
SHARE = 0.28  # of it on the twin as well: two modules, some five seconds each


def module(*lines: str, make: str = "torch.randn({shape})", exact: bool = False) -> Module:
    """A module of one input of 6 x 40, whose lines make v0, v1 ... and whose last is returned."""
    made = tuple(Line((f"v{i}",), text, "") for i, text in enumerate(lines))
    names = frozenset(f"v{i}" for i in range(len(lines))) if exact else frozenset()
    last = made[-1].targets
    return Module(0, 0, (), (Input("a", (6, 40), make),), (), made, last, names)


def written_as(monkeypatch: pytest.MonkeyPatch, other: Module) -> None:
    """From here on, every module gets the program of this one."""
    graph = Case(other).captured.graph
    plan = write(graph, "random_custom", cases.CHIP)
    monkeypatch.setattr(random_modules, "write", lambda *_: plan)


def others(given: Module) -> list[list[tuple[int, ...]]]:
    """Shapes besides its own at which a program for this module would be judged."""
    case = Case(given)
    return list(case.others(write(case.captured.graph, "x", cases.CHIP).spec))


def test_no_module_of_a_sample_is_wrong_and_none_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (random_modules, cases):
        monkeypatch.setattr(place, "PATIENCE", 8.0)  # one of them takes longer
    found = list(run(1, SAMPLE, FAMILIES, how=How(SHARE, search=3)))
    bad = [f"{item.id} {item.cause}" for item in found if item.outcome in random_modules.BAD]
    assert bad == []
    assert Counter(item.outcome for item in found)["right"] >= 4
    assert any(item.sets > 1 for item in found)
    assert sum(item.on_twin and item.outcome == "right" for item in found) == 2


def test_other_work_on_the_machine_makes_no_module_slow() -> None:
    with cases.limited(0.05):
        time.sleep(0.1)
    with pytest.raises(cases.Late), cases.limited(0.05):
        while True:
            pass


def test_a_module_follows_from_its_seed_and_number_alone() -> None:
    torch.manual_seed(1)
    first = [draw(3, number, TABLE) for number in (5, 6, 7)]
    torch.manual_seed(2)
    assert [draw(3, number, TABLE) for number in (5, 6, 7)] == first
    assert len({item.source() for item in first}) == 3
    for item in first:
        own, again = item.draw_inputs(), item.draw_inputs()
        pairs = zip(own.tensors, again.tensors, strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_modules_of_some_families_keep_their_numbers() -> None:
    moves = modules(1, ("moves",))
    first = next(moves)
    assert first == draw(1, first.number, TABLE)
    assert {line.family for line in first.lines} == {"moves"}


def test_its_source_is_a_task_file() -> None:
    for number in range(5):
        made = draw(4, number, TABLE)
        file = load_file("random_module.py", made.source())
        given = file.get_inputs()
        assert [tuple(item.shape) for item in given] == [item.shape for item in made.inputs]
        result = build_model(file, "random_module.py", 0)(*given)
        outputs = result if isinstance(result, tuple) else (result,)
        assert len(outputs) == len(made.outputs)


@pytest.mark.parametrize("family", sorted({op.family for op in TABLE}))
def test_every_row_of_the_table_can_be_drawn(family: str) -> None:
    never = [i for i, op in enumerate(TABLE) if op.family == family and not _comes(op)]
    assert never == []


def _comes(op: Op) -> bool:
    """Does some state take this row?"""
    for number in range(300):
        state = State(0, number)
        draws = (state.floats(), state.integers(), "torch.rand({shape}) < 0.5")
        shape = state.shape()
        try:
            for turn in range(2):
                state.input(shape, draws[(number + turn) % 3])
            state.add(op)
        except Refused:
            continue
        return True
    return False


def test_values_that_jump_come_from_exact_ones_only() -> None:
    jumps = (">", "<", "==", "!=", "argmax", "argmin", "floor", "argsort", "torch.sign")
    for number in range(60):
        made = draw(5, number, TABLE)
        for line in made.lines:
            rounded = {name for name in line.reads if name.startswith("v")} - made.exact
            text = line.text.replace("->", "")  # of einsum
            assert not (rounded and any(word in text for word in jumps)), made.source()


def test_a_program_of_another_module_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    written_as(monkeypatch, module("a.sum(1)"))
    assert judge(module("a.sum(1)")).outcome == "right"
    assert judge(module("a.sum(1) + 0.01")).outcome == "wrong"
    seen = judge(module("a.sum(0)"))
    assert (seen.outcome, seen.cause.split()[0]) == ("wrong", "shapes")


def test_a_program_that_is_wrong_on_the_twin_alone_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Case(module("a * 2")).captured.graph
    other = write(graph, "random_custom", cases.CHIP).program
    monkeypatch.setattr(on_twin, "lower", lambda _, chip: lower(other, chip))
    assert judge(module("a + 1")).outcome == "right"
    seen = judge(module("a + 1", "v0 + v0"), How(share=1.0))
    assert (seen.outcome, seen.cause[:14]) == ("wrong", "twin: output 0")
    assert "return v0\n" in seen.least


def test_what_nothing_rounds_has_to_be_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    written_as(monkeypatch, module("a * 1.0000001"))
    assert judge(module("a.clone()")).outcome == "right"
    assert judge(module("a.clone()", exact=True)).outcome == "wrong"
    row = np.array([1.0, np.nan, 0.0], np.float32)
    assert not unequal(row, row * -0.0 + row)
    assert "first at [1]" in unequal(np.array([1.0, 2.0, 0.0], np.float32), row)


def test_a_failing_module_is_cut_down_to_the_line_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(graph: Graph, name: str, chip: Chip) -> Plan:
        if any(node.op == "aten.exp.default" for node in graph.nodes):
            raise KeyError("exp")
        return write(graph, name, chip)

    monkeypatch.setattr(random_modules, "write", broken)
    long = module("-a", "v0.abs()", "torch.exp(v1)", "v2.sum(1)", "v3 + v3")
    seen = judge(long)
    assert (seen.outcome, seen.cause) == ("crash", "KeyError: 'exp'")
    assert "return v2\n" in seen.least and "v3" not in seen.least
    assert seen.source == long.source()


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (PlanError("plan-dtype", "aten.add.Tensor (add): why"), "refused"),
        (ZeroDivisionError("no"), "crash"),
    ],
    ids=["refused", "crash"],
)
def test_only_messages_of_the_writer_are_refusals(
    raised: Exception, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Plan:
        raise raised

    monkeypatch.setattr(random_modules, "write", fails)
    seen = judge(module("a + 1"))
    assert seen.outcome == outcome
    assert (seen.cause == "plan-dtype aten.add.Tensor") == (outcome == "refused")


def test_a_module_that_pytorch_does_not_run_is_unfit() -> None:
    assert judge(replace(module("a.reshape(7, 7)"), number=1)).outcome == "unfit"


def test_shapes_are_tried_at_which_the_same_graph_is_captured() -> None:
    free = others(module("a.sum(1)"))
    assert free and all(shapes != [(6, 40)] for shapes in free)
    assert others(module("a.reshape(12, 20)")) == []
