"""For all tests: how they are shared out among workers (pytest -n 2)."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker: what its fixtures make is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
