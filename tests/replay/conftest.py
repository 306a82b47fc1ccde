"""The script of the replay as a module, and the frozen cases with their records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RUNS = Path(__file__).parents[2] / "runs"


@pytest.fixture(scope="session")
def replay() -> Iterator[Any]:
    """runs/replay.py, which finds the modules beside it as `python runs/replay.py` does."""
    sys.path.insert(0, str(RUNS))
    import replay as found

    yield found
    sys.path.remove(str(RUNS))


@pytest.fixture(scope="session")
def frozen(replay: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cases and records by name."""
    return replay.read_cases(), replay.read_records()
