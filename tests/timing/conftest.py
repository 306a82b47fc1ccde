"""Logs of small kernels, each recorded once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from npusmith.target.chips import Chip, find_chip

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def chip() -> Chip:
    return find_chip("910B2")


from profilecases import limits, made, steps, timing  # noqa: E402, F401 - fixtures
