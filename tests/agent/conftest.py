"""A small task, prepared; the program that solves it; a model server as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agentcases import TASK

from npusmith.ir.dtypes import DType
from npusmith.task import wire
from npusmith.task.graph import Graph, GraphInput, Node, Ref
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared, TrialData

SHAPE = (64, 100)


@pytest.fixture(scope="session")
def task_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.py"
    path.write_text(TASK)
    return path


@pytest.fixture(scope="session")
def tiny(task_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The task with two sets of inputs, as its sandboxed run would leave it; NumPy is quicker."""
    folder = tmp_path_factory.mktemp("prepared")
    draw = np.random.default_rng(11)
    trials = tuple(
        _trial(folder, number, draw.normal(size=shape).astype(np.float32))
        for number, shape in enumerate(((64, 100), (7, 131)))
    )
    graph = Graph(
        inputs=(GraphInput(name="x", shape=SHAPE, dtype=DType.FLOAT32, kind="user"),),
        nodes=(
            _node("abs_1", "abs.default", Ref(ref="x")),
            _node("add", "add.Tensor", Ref(ref="abs_1"), 1),
            _node("div", "div.Tensor", Ref(ref="x"), Ref(ref="add")),
        ),
        outputs=("div",),
    )
    manifest = wire.Manifest(
        graph=graph, model_seed=7, arguments=1, parameters={},
        trials=tuple(trial.record for trial in trials),
    )  # fmt: skip
    (folder / wire.MANIFEST).write_text(manifest.model_dump_json())
    return Prepared(task=open_task(task_file), folder=folder, manifest=manifest, trials=trials)


def _node(name: str, op: str, *args: Ref | int) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, shape=SHAPE, dtype=DType.FLOAT32)


def _trial(folder: Path, number: int, x: np.ndarray) -> TrialData:
    wide = x.astype(np.float64)
    files = []
    for name, array in (("x", x), ("y", x / (1 + np.abs(x))), ("g", wide / (1 + np.abs(wide)))):
        file = f"{name}_{number}.bin"
        array.tofile(folder / file)
        files.append(wire.TensorFile(file=file, shape=x.shape, dtype=str(array.dtype)))
    record = wire.TrialRecord(
        name=f"set {number}", kind="shape" if number else "random", seed=11,
        inputs=(files[0],), references=(files[1],), goldens=(files[2],),
    )  # fmt: skip
    return TrialData(record, folder)


Serve = Callable[..., str]


class Servers:
    """`npusmith serve-model` as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *options: object) -> str:
        """The URL, once it listens."""
        address = self._folder / f"address{len(self._running)}"
        argv = ["serve-model", *options, "--address-file", address]
        self._running.append(
            subprocess.Popen(
                [sys.executable, "-m", "npusmith", *map(str, argv)], env=os.environ,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
        limit = time.monotonic() + 60
        while not (address.is_file() and address.read_text().endswith("\n")):
            assert self._running[-1].poll() is None and time.monotonic() < limit
            time.sleep(0.02)
        return address.read_text().strip()

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(tmp_path)
    yield found
    found.end()


@pytest.fixture
def serve(servers: Servers, tmp_path: Path) -> Serve:
    """`serve(rules)`: starts `npusmith serve-model` with a script, and gives its URL."""

    def start(rules: list[dict[str, Any]], port: int = 0) -> str:
        script = tmp_path / f"script{time.monotonic_ns()}.json"
        script.write_text(json.dumps({"rules": rules}))
        return servers.start("--script", script, "--port", port)

    return start


@pytest.fixture
def serve_checkpoint(servers: Servers) -> Callable[[Path], str]:
    """The same with a checkpoint's folder."""
    return lambda folder: servers.start("--checkpoint", folder, "--port", 0)
