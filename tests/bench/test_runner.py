"""The runner on the local pool: what is run, what is left, and what dies."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from npusmith.bench.archive import open_run
from npusmith.bench.audit import verify
from npusmith.bench.model import Record
from npusmith.bench.pool import Event, LocalPool
from npusmith.bench.runner import Progress, run
from npusmith.errors import NpusmithError
from npusmith.open_writer import OPEN_WRITER
from npusmith.store.database import open_store

PROGRAM = """
import sys
from pathlib import Path
from npusmith.bench.plan import Plan
from npusmith.bench.pool import LocalPool
from npusmith.bench.runner import run
if __name__ == "__main__":
    plan = Plan.model_validate_json(Path(sys.argv[1]).read_text())
    run(plan, Path(sys.argv[2]), LocalPool(2), resume=True)
"""


def records(folder: Path) -> list[Record]:
    with open_run(folder) as found:
        assert verify(found).wrong == []
        return list(found.records())


def go(plan, folder, **more) -> list[Record]:  # type: ignore[no-untyped-def]
    run(plan, folder, LocalPool(2), **more)
    return records(folder)


def test_every_sample_of_every_task_has_one_record(make_plan, tmp_path: Path) -> None:
    plan = make_plan(add="pass\nwrong", mul="broken\npass", npu="skip", samples=2)
    seen: list[Progress] = []
    found = go(plan, tmp_path / "run", watch=seen.append)
    assert [(r.item, r.sample, r.compiled, r.official) for r in found] == [
        ("add", 0, True, True),
        ("add", 1, True, False),
        ("mul", 0, False, False),
        ("mul", 1, True, True),
    ]
    assert (seen[-1].done, seen[-1].total, seen[-1].whole, seen[-1].passed) == (4, 4, True, 2)
    with open_run(tmp_path / "run") as again:
        assert {i.name: i.skipped for i in again.items()}["npu"] == "needs an NPU"


def test_a_refusal_and_a_writer_that_fails_count_as_not_compiled(make_plan, tmp_path: Path) -> None:
    found = go(make_plan(add="refuse", mul="trip"), tmp_path / "run")
    assert [r.compiled for r in found] == [False, False]
    assert found[0].error == "plan-reshape: no"
    assert found[1].error == "writer-failed: RuntimeError: the writer has a defect"


def test_a_writer_that_has_nobody_to_ask_stops_the_run_and_leaves_its_units_open(
    make_plan, tmp_path: Path
) -> None:
    back = tmp_path / "back"
    plan = make_plan(writer=f"away:{back}", add="wrong", mul="pass", sub="pass")
    with pytest.raises(NpusmithError) as caught:
        go(plan, tmp_path / "run")
    assert (caught.value.code, caught.value.seen) == ("model-down", "http://h/v1")
    assert "--resume" in caught.value.hint
    assert {record.item for record in records(tmp_path / "run")} <= {"add"}
    back.touch()
    found = go(plan, tmp_path / "run", resume=True)
    assert [(r.item, r.official) for r in found] == [("add", False), ("mul", True), ("sub", True)]


def test_a_judge_that_fails_leaves_a_record_without_a_verdict(make_plan, tmp_path: Path) -> None:
    (found,) = go(make_plan(add="raise"), tmp_path / "run")
    assert found.compiled is None
    assert "the suite has a defect" in found.error


def test_a_worker_that_dies_costs_its_unit_one_attempt(make_plan, tmp_path: Path) -> None:
    plan = make_plan(a="die", b="die once", c="pass", d="pass")
    found = {r.item: r for r in go(plan, tmp_path / "run")}
    assert found["a"].compiled is None
    assert "2 workers died" in found["a"].error
    assert [found[name].official for name in "bcd"] == [True, True, True]


def test_a_worker_that_never_answers_is_ended(make_plan, tmp_path: Path) -> None:
    plan = make_plan(a="sleep 60", b="pass")
    run(plan, tmp_path / "run", LocalPool(1, patience=3))
    found = {r.item: r for r in records(tmp_path / "run")}
    assert found["a"].compiled is None
    assert found["b"].official


def test_a_worker_that_took_much_memory_is_replaced(make_plan, tmp_path: Path) -> None:
    workers: set[int] = set()

    class Watched(LocalPool):
        def poll(self, seconds: float) -> list[Event]:
            workers.update(child.pid or 0 for child in multiprocessing.active_children())
            return super().poll(seconds)

    plan = make_plan(a="pass", b="pass", c="wrong")
    run(plan, tmp_path / "run", Watched(1, memory=1))
    assert [r.official for r in records(tmp_path / "run")] == [True, True, False]
    assert len(workers) == 4  # one for each task, and one that waited for another


def test_trials_judge_one_candidate_with_other_seeds(make_plan, tmp_path: Path) -> None:
    found = go(make_plan(add="pass\nwrong", samples=1, trials=3), tmp_path / "run")
    assert [r.trial for r in found] == [0, 1, 2]
    assert len({r.candidate for r in found}) == 1
    assert len({r.key for r in found}) == 3
    assert [r.provenance["seed"] for r in found] == ["1024", "1025", "1026"]


def test_a_run_that_is_there_needs_resume_and_then_adds_what_is_new(
    make_plan, tmp_path: Path
) -> None:
    first = go(make_plan(add="pass"), tmp_path / "run")
    wider = make_plan(mul="pass", samples=2)
    with pytest.raises(NpusmithError, match="holds a run") as caught:
        go(wider, tmp_path / "run")
    assert caught.value.code == "run-exists"
    found = go(wider, tmp_path / "run", resume=True)
    assert len(found) == 4
    assert first[0] in found  # not judged again: its times are the old ones


@pytest.mark.parametrize("change", ["writer", "limits", "task"])
def test_a_run_is_not_resumed_under_other_conditions(
    make_plan, tmp_path: Path, change: str
) -> None:
    plan = make_plan(add="pass")
    go(plan, tmp_path / "run")
    if change == "writer":
        plan = plan.model_copy(update={"writer": "v2"})
    if change == "limits":
        plan = plan.model_copy(update={"limits": plan.limits.model_copy(update={"seed": 7})})
    if change == "task":
        make_plan(add="wrong")
    with pytest.raises(NpusmithError) as caught:
        go(plan, tmp_path / "run", resume=True)
    assert caught.value.code == "run-changed"


def test_responses_that_changed_behind_a_run_are_seen_when_it_goes_on(
    make_plan, tmp_path: Path
) -> None:
    kernel = tmp_path / "responses" / "add" / "0" / "op_kernel" / "k.cpp"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("pass")
    plan = make_plan(writer=f"folder:{tmp_path / 'responses'}", add="x", mul="x")
    plan = plan.model_copy(update={"writers": OPEN_WRITER})
    first = go(plan, tmp_path / "run")
    assert [(r.item, r.official) for r in first] == [("add", True), ("mul", False)]
    os.utime(kernel, (1, 1))  # the same text, written again
    more = plan.model_copy(update={"samples": 2})
    assert len(go(more, tmp_path / "run", resume=True)) == 4
    for place, text in ((kernel, "wrong"), (tmp_path / "responses" / "mul.txt", "pass")):
        before = place.read_text() if place.exists() else None
        place.write_text(text)
        with pytest.raises(NpusmithError, match="changed since it was judged") as caught:
            go(more, tmp_path / "run", resume=True)
        assert caught.value.code == "run-changed" and "sample" not in caught.value.seen
        place.unlink() if before is None else place.write_text(before)
    assert len(go(more, tmp_path / "run", resume=True)) == 4


def test_an_option_that_has_its_own_place_is_refused(make_plan) -> None:  # type: ignore[no-untyped-def]
    plan = make_plan(add="pass").model_copy(update={"options": {"input_mb": "9999"}})
    with pytest.raises(NpusmithError, match="input_mb") as caught:
        plan.open_suite()
    assert caught.value.code == "usage" and "--max-input-mb" in caught.value.legal


def test_limits_reach_suite_and_writer(make_plan) -> None:  # type: ignore[no-untyped-def]
    plan = make_plan(add="pass")
    limits = plan.limits.model_copy(update={"input_mb": 7.5, "chip": "910B3"})
    plan = plan.model_copy(update={"limits": limits, "writer": "plan"})
    assert plan.open_suite().options["input_mb"] == "7.5"
    plan = plan.model_copy(update={"writers": OPEN_WRITER})
    assert plan.open_writer().chip.name == "910B3"


def test_a_selection_of_nothing_is_an_error(make_plan, tmp_path: Path) -> None:
    plan = make_plan(add="pass").model_copy(update={"categories": ("none",)})
    with pytest.raises(NpusmithError, match="selected") as caught:
        go(plan, tmp_path / "run")
    assert caught.value.code == "run-empty"
    plan = plan.model_copy(update={"categories": ()})
    assert len(go(plan, tmp_path / "run")) == 1  # it does not stand in the way of the next one


def test_a_suite_that_cannot_be_opened_leaves_nothing_behind(make_plan, tmp_path: Path) -> None:
    plan = make_plan(add="pass").model_copy(update={"suites": "npusmith.bench.suites:open_suite"})
    with pytest.raises(NpusmithError):
        run(plan, tmp_path / "run", LocalPool(2))
    assert not (tmp_path / "run").exists()


def test_selections_by_category_level_and_name(make_plan) -> None:  # type: ignore[no-untyped-def]
    plan = make_plan(a="pass", b="pass", c="pass", d="pass")

    def chosen(**update: object) -> list[str]:
        return [item.name for item in plan.model_copy(update=update).open_suite().items()]

    assert chosen() == ["a", "b", "c", "d"]
    assert chosen(categories=("even",)) == ["a", "c"]
    assert chosen(levels=("0",)) == ["a", "d"]
    assert chosen(names=("b",), categories=("odd",)) == ["b"]


def begin(plan, folder: Path, tmp_path: Path) -> subprocess.Popen[bytes]:  # type: ignore[no-untyped-def]
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    argv = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "plan.json"), str(folder)]
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": paths})


def test_a_run_that_was_killed_goes_on_and_loses_and_doubles_nothing(
    make_plan, tmp_path: Path
) -> None:
    plan = make_plan(samples=20, **{f"t{n}": "sleep 0.02 pass" for n in range(6)})
    chance, folder = random.Random(5), tmp_path / "run"
    for target in (5, 30, 70):
        process = begin(plan, folder, tmp_path)
        while process.poll() is None and _done(folder) < target:
            time.sleep(0.02)
        time.sleep(chance.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert target <= _done(folder) < 120
    assert begin(plan, folder, tmp_path).wait() == 0
    found = records(folder)
    assert sorted((r.item, r.sample) for r in found) == sorted(
        (f"t{n}", sample) for n in range(6) for sample in range(20)
    )


def _done(folder: Path) -> int:
    try:
        with open_store(folder) as store:
            total, left = store.counts()
            return total - left
    except NpusmithError:  # not begun yet
        return 0


def test_two_runners_on_one_store_share_the_units(make_plan, tmp_path: Path) -> None:
    plan = make_plan(samples=10, **{f"t{n}": "sleep 0.05 pass" for n in range(4)})
    folder = tmp_path / "run"
    both = [begin(plan, folder, tmp_path) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert len(records(folder)) == 40


def test_workers_end_with_a_runner_that_was_killed(make_plan, tmp_path: Path) -> None:
    plan = make_plan(a="sleep 30", b="sleep 30")
    process = begin(plan, tmp_path / "run", tmp_path)
    deadline = time.monotonic() + 30
    while len(workers := _children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert len(workers) >= 2
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline + 10
        time.sleep(0.05)


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(parent) and fields[0] not in "ZX":
            found.append(int(path.parent.name))
    return found


def test_ray_gives_the_records_of_the_local_pool(make_plan, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra npusmith[ray] is not installed")
    from npusmith.bench.raypool import RayPool

    plan = make_plan(
        samples=2, a="pass\nwrong", b="refuse\nbroken", c="cheat\npass", d="die\ndie once"
    )
    local = go(plan, tmp_path / "local")
    for mark in plan.root.glob("*.died"):
        mark.unlink()
    run(plan, tmp_path / "ray", RayPool("local", workers=2))
    cluster = records(tmp_path / "ray")
    assert len(cluster) == 8
    assert [_same(r) for r in cluster] == [_same(r) for r in local]
    away = make_plan(writer=f"away:{tmp_path / 'back'}", a="pass")
    with pytest.raises(NpusmithError) as caught:
        run(away, tmp_path / "away", RayPool("local", workers=1))
    assert caught.value.code == "model-down"


def _same(record: Record) -> Record:
    """Without wall times."""
    return record.model_copy(update={"seconds": {}})
