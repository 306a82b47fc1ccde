"""One build of the runtime for all kernel-side tests of the twin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from native import Runtime, build_runtime


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return build_runtime()
