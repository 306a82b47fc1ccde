"""Programs in the box are small Python texts; `boxed` runs one and gives its record."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npusmith.sandbox.box import Boxed, Policy, run_boxed

Runner = Callable[..., Boxed]


@pytest.fixture
def boxed(tmp_path: Path) -> Runner:
    """`boxed(text, stdin=..., env=..., processes=..., ...)`: Policy's fields are keywords."""

    def run(
        text: str,
        *,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        tick: Callable[[], None] | None = None,
        **how: Any,
    ) -> Boxed:
        settings = {"write": (tmp_path,), "seconds": 20.0, "memory_bytes": 1 << 30, **how}
        argv = [sys.executable, "-I", "-c", text]
        return run_boxed(argv, Policy(**settings), stdin=stdin, env=env, cwd=tmp_path, tick=tick)

    return run
