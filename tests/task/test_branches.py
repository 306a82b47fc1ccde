"""Branches that no set of inputs took: shapes are found that take them, and are judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from npusmith.report.ladder import reached
from npusmith.target.chips import find_chip
from npusmith.task.branches import DryRun, Shape, Sizes, find_ranges, find_shapes, find_sizes
from npusmith.task.judge import judge
from npusmith.task.prepared import Prepared
from npusmith.task.verdict import Verdict
from npusmith.task.wire import FreeAxes

CHIP = find_chip("910B2")
PROJECTS = Path(__file__).parents[1] / "projects"
FREE = (FreeAxes(size=8, axes=((0, 0),)), FreeAxes(size=70, axes=((0, 1),)))


def looked_at(instructions: int) -> int:
    """DryRun runs of a search without success, each of so many instructions."""
    sizes = Sizes(((8, 70),), FREE, ((((8, 70),), ((8,),)), (((9, 71),), ((9,),))))
    runs: list[Sequence[Shape]] = []

    def taken(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> DryRun:
        runs.append(inputs)
        return DryRun(frozenset(), instructions)

    assert find_shapes(sizes, range(1, 100), frozenset(), taken, 1 << 20) == []
    return len(runs)


def test_a_search_ends_by_what_it_ran_not_by_a_clock() -> None:
    assert looked_at(1000) == 98  # 96, and the known shapes
    assert looked_at(1_000_000_000) == 10  # the first eight


@pytest.fixture(scope="module")
def rooted(
    tmp_path_factory: pytest.TempPathFactory,
    write_task: Callable[..., object],
    prepare_quickly: Callable[..., Prepared],
) -> Prepared:
    """Row sums; of the sets of other shapes those whose rows the project's buffer can hold."""
    task = write_task(forward="return torch.sqrt(x.sum(-1))", inputs="[torch.rand(8, 70)]")
    made = prepare_quickly(task, tmp_path_factory.mktemp("branches"), seeds=(11, 23), edges=False)
    short = tuple(item for item in made.trials if item.skipped or item.shapes[0][1] < 9000)
    return replace(made, trials=short)


def judge_with(prepared: Prepared, project: Path, file: str, old: str, new: str) -> Verdict:
    shutil.copytree(PROJECTS / "rowsum", project)
    source = project / file
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new, 1))
    return judge(project, prepared, CHIP, "strict")


def failed(verdict: Verdict) -> list[str]:
    return [trial.name.split()[0] for trial in verdict.trials if not trial.passed]


def test_a_condition_on_rows_in_the_host_function(rooted: Prepared, tmp_path: Path) -> None:
    old = "tiling.set_rows(rows);"
    new = f"{old}\n  if (rows == 777) {{\n    tiling.set_rows(rows - 1);\n  }}"
    verdict = judge_with(rooted, tmp_path / "p", "op_host/sqrt.cpp", old, new)
    assert verdict.verdict == "fail"
    assert {*failed(verdict)} == {"branch"}


def test_work_that_is_left_out_at_one_size_has_no_branch(rooted: Prepared, tmp_path: Path) -> None:
    old = "row < first + data.rowsPerCore &&"
    new = f"{old} (data.cols != 777 || row % 2 == 0) &&"
    verdict = judge_with(rooted, tmp_path / "p", "op_kernel/sqrt.cpp", old, new)
    assert verdict.verdict == "fail"
    assert {*failed(verdict)} == {"branch"}


def test_a_value_that_is_chosen_by_a_size_has_no_branch(rooted: Prepared, tmp_path: Path) -> None:
    old = "row < first + data.rowsPerCore &&"
    new = f"{old} row % (data.cols > 3000 && data.cols < 3100 ? 2 : 1) == 0 &&"
    verdict = judge_with(rooted, tmp_path / "p", "op_kernel/sqrt.cpp", old, new)
    assert verdict.verdict == "fail"
    assert {*failed(verdict)} == {"branch"}


def test_a_remainder_that_the_kernel_looks_at(rooted: Prepared, tmp_path: Path) -> None:
    old = "  for (int64_t row = first;"
    new = f"  int64_t tail = data.cols % 4096;\n  if (tail == 17) return;\n{old}"
    verdict = judge_with(rooted, tmp_path / "p", "op_kernel/sqrt.cpp", old, new)
    assert verdict.verdict == "fail"
    assert set(failed(verdict)) == {"branch"}


def test_a_branch_that_is_right_is_judged_and_passes(rooted: Prepared, tmp_path: Path) -> None:
    old = "tiling.set_rows(rows);"
    new = f"{old}\n  constexpr int64_t SPECIAL = 777;\n  if (rows == SPECIAL) cores = 7;"
    verdict = judge_with(rooted, tmp_path / "p", "op_host/sqrt.cpp", old, new)
    assert (verdict.verdict, failed(verdict)) == ("pass", [])
    assert any(trial.name.startswith("branch 777x") for trial in verdict.trials)


def test_without_such_a_condition_nothing_more_is_run(rooted: Prepared, tmp_path: Path) -> None:
    verdict = judge(PROJECTS / "rowsum", rooted, CHIP, "strict")
    assert verdict.verdict == "pass"
    assert len(verdict.trials) == len(rooted.trials)


def test_a_shape_that_is_refused_is_none_to_be_served(rooted: Prepared, tmp_path: Path) -> None:
    old = "tiling.set_rows(rows);"
    new = f"{old}\n  if (rows == 777) return ge::GRAPH_FAILED;"
    verdict = judge_with(rooted, tmp_path / "p", "op_host/sqrt.cpp", old, new)
    assert verdict.verdict == "pass"


def test_what_no_shape_reaches_is_named_with_its_line(rooted: Prepared, tmp_path: Path) -> None:
    old = 'extern "C"'
    gone = "__aicore__ inline void Gone(uint32_t &bytes) { bytes += 32; }"
    new = f"namespace own {{ {gone} }}\n{old}"
    shutil.copytree(PROJECTS / "rowsum", tmp_path / "p")
    kernel = tmp_path / "p" / "op_kernel" / "sqrt.cpp"
    text = kernel.read_text().replace(old, new, 1)
    start = "if (data.rows == 0"
    kernel.write_text(text.replace(start, f"if (data.rows < -9) own::Gone(bytes);\n  {start}", 1))
    verdict = judge(tmp_path / "p", rooted, CHIP, "strict")
    line = kernel.read_text()[: kernel.read_text().index("void Gone")].count("\n") + 1
    assert verdict.verdict == "pass"
    assert verdict.unreached == [f"own::Gone (line {line})"]
    assert f"except Gone (line {line}), which no set of inputs reached" in reached(verdict)


@pytest.mark.parametrize(
    ("text", "line", "size"),
    [
        ("if (rows == 777) {\n  x();\n}", 2, 777),
        ("if (cols % 4096 == 17) {\n  x();\n}", 2, 4113),
        ("constexpr int TILE = 16 * 256;\nif (cols > TILE) x();", 2, 4097),
        ("#define TILE 512\nif (cols < TILE) x();", 2, 511),
        ("tiling->tail = cols % 64;\nint tail = tiling.tail;\nif (tail == 5) x();", 3, 69),
        ("data.set_part(rows / 40);\nif (part == 3) x();", 2, 120),
        ("if (cols > 0x1000) {\n  y();\n} else {\n  x();\n}", 4, 0xFFF),
    ],
)
def test_sizes_come_from_the_condition(text: str, line: int, size: int) -> None:
    assert size in find_sizes({Path("a.cpp"): text}, [("a.cpp", line)])


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("if (cols > 3000 && cols < 4000) {", [3001]),
        ("y = tiling->cols <= 900 && tiling->cols >= 777 ? 2.0f : 1.0f;", [778]),
        ("if (rows > 8 && cols < 4000) {  // cols > 5", []),
        ("x = n > 7 && n < 8 ? a > 2.5f : n;", []),
    ],
)
def test_a_size_inside_of_each_range_is_tried(text: str, sizes: list[int]) -> None:
    assert find_ranges({Path("op_kernel/a.cpp"): text}) == sizes


def test_ranks_comments_and_plain_conditions_give_no_sizes() -> None:
    text = "// if (rows == 777)\nif (shape.GetDimNum() != 4 || gone) {\n  x();\n}"
    assert find_sizes({Path("a.cpp"): text}, [("a.cpp", 3)]) == []


def test_outputs_follow_the_sizes_as_they_did_before() -> None:
    known = (
        (((8, 70),), ((8,), (560,), (68, 3))),
        (((5, 12),), ((5,), (60,), (10, 3))),
        (((1, 9),), ((1,), (9,), (7, 3))),
    )
    sizes = Sizes(((8, 70),), FREE, known)
    assert sizes.outputs((4, 20)) == [(4,), (80,), (18, 3)]
    odd = Sizes(((8, 70),), FREE, (*known, (((2, 2),), ((3,), (4,), (9, 3)))))
    assert odd.outputs((4, 20)) is None
