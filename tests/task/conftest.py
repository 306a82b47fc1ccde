"""Tasks written into a folder, and prepared in this process or in the sandbox."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.task import wire
from npusmith.task.load import Task, open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import DATA, make_orders, reopen

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""
TAIL = """
def get_init_inputs():
    return []
"""
Write = Callable[..., Task]


@pytest.fixture(scope="session")
def write_task(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """`write_task(forward=..., inputs=...)`, or `write_task(text=...)`: a task file, opened."""

    def write(
        *,
        forward: str = "return x * 2",
        inputs: str = "[torch.randn(4, 8)]",
        init: str = "pass",
        text: str = "",
        tail: str = TAIL,
    ) -> Task:
        body = text or (
            f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{textwrap.indent(init, ' ' * 8)}\n"
            f"    def forward(self, x=None, y=None, z=None):\n{textwrap.indent(forward, ' ' * 8)}\n"
            f"def get_inputs():\n    return {inputs}\n"
        )
        path = tmp_path_factory.mktemp("task") / "task.py"
        path.write_text(HEAD + body + tail)
        return open_task(path)

    return write


@pytest.fixture
def prepare_here(tmp_path: Path) -> Callable[..., wire.Manifest]:
    """The child's work in this very process: for harmless texts, and fast."""

    def run(task: Task, *, seeds=(), edges=False, shapes=False, given=()) -> wire.Manifest:
        from npusmith.task.captured import Captured  # imports torch

        orders = make_orders(
            task, tmp_path, seeds=seeds, edges=edges, shapes=shapes, shape_elements=1 << 20,
            given=given,
        )  # fmt: skip
        return Captured(orders, tmp_path).run()

    return run


@pytest.fixture(scope="session")
def prepare_quickly() -> Callable[..., Prepared]:
    """What `prepare` gives, by `prepare_here`'s way: for tests of what is judged by it."""

    def run(task: Task, folder: Path, *, seeds=(), edges=True, shapes=True) -> Prepared:
        from npusmith.task.captured import Captured  # imports torch

        data = folder.resolve() / DATA
        data.mkdir(parents=True)
        orders = make_orders(task, data, seeds=seeds, edges=edges, shapes=shapes)
        (data / wire.MANIFEST).write_text(Captured(orders, data).run().model_dump_json())
        prepared = reopen(task, data)
        assert prepared is not None
        return prepared

    return run
