"""A result names the places where it lies, not the hidden folder in which it was made."""

from __future__ import annotations

from pathlib import Path

from npusmith.pipeline import _moved
from npusmith.task.verdict import Rung, Trial, Verdict
from npusmith.twin.finding import Finding


def test_places_move_with_the_result_and_figures_stay() -> None:
    hidden = Path('/tmp/ö "x"/out/.result-a-12345678')
    file = str(hidden / "op_kernel" / "a.cpp")
    finding = Finding(code="ub-align", message="m", file=file, line=3, seen=f"in {file}")
    trial = Trial(name="t", kind="edge", seed=1, shapes=[[2]], passed=False, findings=[finding])
    verdict = Verdict(
        verdict="fail", rung=Rung.RAN, compiled=True, correct=False, task="t", tolerance="strict",
        chip="910B2", trials=[trial], findings=[finding], max_abs_error=float("inf"),
        error={"code": "compile-failed", "message": file}, project=str(hidden),
    )  # fmt: skip
    moved = _moved(verdict, hidden, Path("out/a"))
    assert moved.findings[0].file == "out/a/op_kernel/a.cpp"
    assert moved.findings[0].seen == "in out/a/op_kernel/a.cpp"
    assert moved.trials[0].findings == moved.findings
    assert moved.error == {"code": "compile-failed", "message": "out/a/op_kernel/a.cpp"}
    assert moved.max_abs_error == float("inf")
    assert ".result-" not in moved.model_dump_json()
