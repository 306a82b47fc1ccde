"""Every example, end to end: the files that are left, and a verdict that the twin gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npusmith import pipeline
from npusmith.target.chips import find_chip
from npusmith.writers.plan import PlanWriter

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CATEGORIES = ("activation", "loss", "math", "normalization", "optimizer", "reduce", "pooling")


class Silent:
    def step(self, name: str, detail: str = "") -> None: ...


@pytest.mark.parametrize("task", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_is_written_compiled_run_and_right(task: Path, tmp_path: Path) -> None:
    out = tmp_path / task.stem
    chip = find_chip("910B2")
    writer = PlanWriter(chip, search=0)
    verdict = pipeline.generate(task, out, chip, "default", Silent(), writer=writer)
    assert verdict.verdict == "pass", _why(verdict)
    judged = [trial for trial in verdict.trials if not trial.skipped]
    assert len([trial for trial in judged if trial.kind == "random"]) >= 5
    assert any(trial.kind == "edge" for trial in judged)
    name = f"{task.stem}_custom"
    for path in (
        f"op_host/{name}.cpp",
        f"op_kernel/{name}.cpp",
        f"op_kernel/{name}_tiling.h",
        f"{name}.json",
        "CMakeLists.txt",
        f"direct/{name}.asc",
        "direct/pybind.cpp",
        "model_new.py",
        f"{name}.tile.py",
        "result.json",
        "report.html",
    ):
        assert (out / path).is_file(), path
    result = json.loads((out / "result.json").read_text())
    assert result["verdict"] == "pass" and result["rung"] == "race-free on the twin"
    assert "kernels_not_judged" not in result["provenance"]


def _why(verdict: pipeline.Verdict) -> str:
    bad = [
        f"{trial.name}: {trial.message} {[item.render() for item in trial.findings]}"
        for trial in verdict.trials
        if not trial.passed and not trial.skipped
    ]
    return "\n".join([str(verdict.error), *bad])
