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
kernels/test_examples plan/test_matrix_products plan/test_plan_symbolic_sizes plan/test_longer_axes
plan/test_plan_pooling plan/test_plan_interpolation api/test_python plan/test_time_loops
plan/test_plan_resident_rows cli/test_process bench/test_suites_judge cann/test_device cli/test_jobs
plan/test_other_shapes plan/test_schedule plan/test_plan_mhc plan/test_search kernels/test_backward
plan/test_plan_values api/test_composition plan/test_plan_partition lower/test_lower_twin
kernels/test_index_maps conformance/test_suite timing/test_profile_whole task/test_module
task/test_branches bench/test_damaged bench/test_plan_writer plan/test_random_modules
house/test_tutorials
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
