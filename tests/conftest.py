"""For all tests: how they are shared out among workers (pytest -n 2)."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

# Workers of a test run share the cores: a second thread of PyTorch would take another worker's.
os.environ.setdefault("OMP_NUM_THREADS", "1")

HERE = Path(__file__).parent
# Files that take longest, in this order: they are begun first, so that no worker waits for one at
# the end (`--durations=0`, summed by file).
LONGEST = """
kernels/test_examples plan/test_time_loops bench/test_suites_judge plan/test_matrix_products
api/test_python plan/test_longer_axes plan/test_plan_pooling conformance/test_suite
task/test_module api/test_composition cli/test_jobs cann/test_device cli/test_process
plan/test_plan_interpolation plan/test_plan_symbolic_sizes plan/test_plan_resident_rows
kernels/test_index_maps plan/test_search task/test_isolated kernels/test_backward
timing/test_profile_whole plan/test_plan_tile_folds plan/test_random_modules bench/test_runner
house/test_tutorials api/test_torch_backend
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {HERE / f"{name}.py": at for at, name in enumerate(LONGEST.split())}
    if gone := [str(path) for path in places if not path.exists()]:
        raise pytest.UsageError(f"LONGEST of tests/conftest.py names {', '.join(gone)}")
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker: what its fixtures make is made once."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # the order is the one above
    return LoadFileScheduling(config, log)


def pytest_collection_finish() -> None:
    """What is there by now stays: looking through it for cycles takes an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
