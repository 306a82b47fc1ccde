"""What passes between several kernels is judged, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from npusmith.errors import TaskError
from npusmith.lower import lower, write_project
from npusmith.plan import Plan, write
from npusmith.plan.expose_intermediates import Exposed, expose_intermediates
from npusmith.target.chips import find_chip
from npusmith.task.judge_intermediates import judge_intermediates, put_intermediates
from npusmith.task.load import Task
from npusmith.task.outline import outline
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.references import open_references, with_bounds
from npusmith.task.trials import Sets, prepare
from npusmith.task.verdict import Rung, Verdict

CHIP = find_chip("910B2")
# positive whatever is added: the outputs say nothing of the first kernels
FORWARD = "return torch.sort(x.abs() * self.scale + {}, dim=-1).values.cumsum(0).sign()"
SET_UP = "self.scale = torch.nn.Parameter(torch.ones(70))"
INPUTS = "[torch.rand(8, 70) + 0.5]"

Write = Callable[..., Task]


def opened(write_task: Write, added: int) -> Task:
    return write_task(forward=FORWARD.format(added), init=SET_UP, inputs=INPUTS)


def planned(task: Task) -> tuple[Plan, Exposed]:
    graph = outline(task)
    plan = write(graph, "sorted_custom", CHIP)
    found = expose_intermediates(plan, graph, CHIP)
    assert found is not None
    return plan, found


def sets_of(found: Exposed, *, bounds: bool = True) -> Sets:
    names = [value for value, _ in found.values]
    return Sets(seeds=(11, 23), edges=False, shapes=False, intermediates=names, bounds=bounds)


def prepared(task: Task, found: Exposed, folder: Path) -> Prepared:
    return prepare(task, folder, sets=sets_of(found))


def written(found: Exposed, folder: Path) -> Path:
    spec = replace(found.plan.spec, type="")
    write_project(lower(found.plan.program, CHIP), CHIP, folder, spec)
    return folder


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory, write_task: Write) -> tuple[Prepared, Path]:
    task = opened(write_task, 1)
    folder = tmp_path_factory.mktemp("between")
    _, found = planned(task)
    return prepared(task, found, folder / "data"), written(found, folder / "project")


def test_every_value_that_passes_is_named_with_its_kernel(write_task: Write) -> None:
    plan, found = planned(opened(write_task, 1))
    numbers = [number for _, number in found.values]
    assert len(plan.parts) > 1 and numbers == sorted(numbers)
    assert set(numbers) == set(range(1, len(plan.parts)))
    # the kernels that are judged are those of the operator
    assert [str(k.body) for k in found.plan.program.kernels[: len(plan.parts)]] == [
        str(k.body).replace("'y'", "'y0'") for k in plan.program.kernels
    ]


def test_values_are_pytorchs_with_drawn_parameters(right: tuple[Prepared, Path]) -> None:
    made, project = right
    values = [(name, 1) for name in made.graph.outputs[1:]]
    assert {trial.draw for trial in made.trials} != {0}
    rows = judge_intermediates(project, made, CHIP, "strict", values)
    assert rows and all(row.passed and row.elements == 560 for row in rows)
    assert {row.sets for row in rows} == {len(made.trials)}


def test_a_kernel_that_later_ones_hide_is_found(
    right: tuple[Prepared, Path], write_task: Write, tmp_path: Path
) -> None:
    made, _ = right
    _, other = planned(opened(write_task, 2))  # adds 2 where the task adds 1
    rows = judge_intermediates(written(other, tmp_path), made, CHIP, "strict", other.values)
    assert not any(row.passed for row in rows)
    assert all(row.mismatched == row.elements and row.message for row in rows)
    verdict = Verdict(
        verdict="pass", rung=Rung.VALUES, compiled=True, correct=True, task="t",
        tolerance="strict", chip="910B2",
    )  # fmt: skip
    put_intermediates(verdict, rows)
    assert verdict.intermediates == rows
    (finding,) = verdict.findings
    assert finding.code == "kernel-differs" and "kernel 1 stores" in finding.message
    assert (f"{len(rows) - 1} more values differ" in finding.message) == (len(rows) > 1)


def test_error_bounds_are_made_where_a_value_needs_them(
    monkeypatch: pytest.MonkeyPatch, write_task: Write, tmp_path: Path
) -> None:
    asked: list[list[str]] = []

    def noted(made: Prepared, names: Sequence[str]) -> dict[str, TrialData]:
        asked.append([*names])
        return with_bounds(made, names)

    monkeypatch.setattr("npusmith.task.judge_intermediates.with_bounds", noted)
    task = opened(write_task, 1)
    _, found = planned(task)
    made = open_references(task, tmp_path / "data", sets_of(found, bounds=False))
    assert all(trial.record.heavy and not trial.record.bounds for trial in made.trials)
    rows = judge_intermediates(
        written(found, tmp_path / "right"), made, CHIP, "strict", found.values
    )
    assert asked == [[]] and all(row.passed for row in rows)
    _, other = planned(opened(write_task, 2))
    rows = judge_intermediates(
        written(other, tmp_path / "wrong"), made, CHIP, "strict", other.values
    )
    assert asked[1] == [trial.name for trial in made.trials]
    assert with_bounds(made, asked[1]).keys() == {*asked[1]}  # and they excuse nothing
    assert not any(row.passed for row in rows)


def test_one_kernel_has_nothing_between(write_task: Write) -> None:
    graph = outline(write_task(forward="return x + 1", inputs="[torch.rand(8, 70)]"))
    assert expose_intermediates(write(graph, "add_custom", CHIP), graph, CHIP) is None


def test_a_value_that_the_graph_does_not_have(write_task: Write, tmp_path: Path) -> None:
    task = write_task(forward="return x + 1", inputs="[torch.rand(8, 70)]")
    with pytest.raises(TaskError) as caught:
        prepare(
            task,
            tmp_path,
            sets=Sets(seeds=(11,), edges=False, shapes=False, intermediates=["none"]),
        )
    assert caught.value.code == "task-outputs"


def test_they_are_judged_at_other_shapes_too(write_task: Write, tmp_path: Path) -> None:
    task = write_task(
        forward="return torch.softmax(self.w * x, -1).sum(0), torch.zeros(x.shape) - x",
        init="self.w = torch.nn.Parameter(torch.ones(7))",
        inputs="[torch.randn(5, 7)]",
    )
    made = prepare(
        task,
        tmp_path,
        sets=Sets(
            seeds=(11, 23),
            edges=False,
            shapes=False,
            intermediates=["_softmax"],
            given=[[(9, 7)], [(2, 3)]],
        ),
    )
    assert [item.kind for item in made.trials] == ["random", "random", "shape", "shape"]
    assert [bool(item.skipped) for item in made.trials] == [False, False, False, True]
    assert made.trials[3].skipped.startswith("the reference raises")
    softmax = made.trials[2].references[-1]
    assert softmax.shape == (9, 7) and abs(softmax.sum(-1) - 1).max() < 1e-6
    drawn = made.drawn(made.trials[2])["w"]
    logits = drawn * made.trials[2].inputs[0]
    assert abs(softmax - torch.softmax(torch.from_numpy(logits), -1).numpy()).max() < 1e-6
