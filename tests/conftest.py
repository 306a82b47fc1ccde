"""For all tests: how they are shared out among workers (pytest -n 2)."""

from __future__ import annotations

import os
from typing import Any

import pytest

# Workers of a test run share the cores: a second thread of PyTorch would take another worker's.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker: what its fixtures make is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
