"""Sets of inputs that run side by side, and what becomes of them when nobody waits any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from npusmith.task.prepared import Prepared
from npusmith.task.running import Plan, run_all
from npusmith.task.weighing import Criterion
from npusmith.twin.launch import Run


def outcome(outputs: list[Any], completed: bool = True) -> Run:
    return Run(
        outputs=outputs, findings=[], blocks=1, tiling_key=0, workspace_bytes=0, seconds=0.0,
        completed=completed, host_seconds=0.0, kernel_seconds=0.0, tiling=b"", log="", missing=(),
    )  # fmt: skip


class Candidate:
    """Right on the first set, interrupted or wrong on the second, endless on the third."""

    def __init__(self, right: Prepared, second: Callable[[], Any]) -> None:
        self.right, self.second = right, second
        self.calls = 0
        self.endless, self.ended = threading.Event(), threading.Event()

    def call(self, trial: Any, tick: Callable[[], None] | None = None, **options: Any) -> Run:
        self.calls += 1
        if trial.name == "random 1":
            self.endless.wait(20)
            return self.second()
        if trial.name == "random 2":
            self.endless.set()
            try:
                for _ in range(2000):
                    assert tick is not None
                    tick()
                    time.sleep(0.01)
            except Exception:
                self.ended.set()
                raise
        return outcome(trial.references)


@pytest.fixture(scope="module")
def prepared(write_task, prepare_quickly, tmp_path_factory) -> Prepared:
    folder = tmp_path_factory.mktemp("running")
    return prepare_quickly(write_task(), folder, seeds=(1, 2, 3), edges=False, shapes=False)


def test_an_interrupted_judge_does_not_wait_for_kernels_that_run(prepared: Prepared) -> None:
    def second() -> Run:
        raise KeyboardInterrupt

    candidate = Candidate(prepared, second)
    with pytest.raises(KeyboardInterrupt):
        run_all(prepared.trials, Plan(candidate, Criterion(), stop=True))
    assert candidate.ended.is_set()


def test_what_a_wrong_set_decides_ends_the_kernel_behind_it(prepared: Prepared) -> None:
    candidate = Candidate(prepared, lambda: outcome([], completed=False))
    found = run_all(prepared.trials, Plan(candidate, Criterion(), stop=True))
    assert [item.trial.result for item in found] == ["pass", "FAIL", "not run"]
    assert candidate.ended.is_set()
