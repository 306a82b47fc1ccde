"""One small task, prepared once, with the project that the writer makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judging import CHIP, TASK, Bench

from npusmith.lower import lower, write_project
from npusmith.plan import write
from npusmith.task.load import open_task
from npusmith.task.trials import Sets, prepare


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    work = tmp_path_factory.mktemp("judge")
    task = work / "affine.py"
    task.write_text(TASK)
    prepared = prepare(open_task(task), work, sets=Sets(shapes=False))
    plan = write(prepared.graph, "affine_custom", CHIP)
    spec = replace(plan.spec, task_source=TASK)
    project = work / "honest"
    project.mkdir()
    write_project(lower(plan.program, CHIP), CHIP, project, spec)
    return Bench(prepared, spec, project, work)
