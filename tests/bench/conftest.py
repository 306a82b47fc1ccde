"""Small suites for the runner, made of words: see fakesuite.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.bench.model import Limits
from npusmith.bench.plan import Plan

MakePlan = Callable[..., Plan]


@pytest.fixture
def make_plan(tmp_path: Path) -> MakePlan:
    """`make_plan(add="pass", mul="wrong\\npass", samples=2)`: a suite of two tasks."""

    def make(samples: int = 1, trials: int = 1, writer: str = "v1", **tasks: str) -> Plan:
        root = tmp_path / "suite"
        root.mkdir(exist_ok=True)
        for name, words in tasks.items():
            (root / f"{name}.task").write_text(words)
        return Plan(
            suite="fake", root=root, writer=writer, samples=samples, trials=trials,
            limits=Limits(seconds=20), suites="fakesuite:open_suite",
            writers="fakesuite:open_writer",
        )  # fmt: skip

    return make
