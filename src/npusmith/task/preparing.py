"""What preparing a task takes, however its model is called: the class of which there are two kinds.

`captured.Captured` captures the model's graph, and `called.Called` calls it as a suite does.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from npusmith.errors import Place, TaskError
from npusmith.task import files, wire
from npusmith.task.parameter_draws import Draws
from npusmith.task.unused_inputs import ReferenceCall
from npusmith.task.user import Inputs, Tensor, set_seed, user_code


class Preparation(ABC):
    """One task on its way to disk: holds the model and writes trial after trial."""

    model: Any

    def __init__(self, orders: wire.Orders, folder: Path) -> None:
        self.orders = orders
        self.folder = folder
        self.path = orders.path
        self.notes: list[str] = []
        self.trials: list[wire.TrialRecord] = []
        self.tried: list[ReferenceCall] = []
        self.draw_files: list[dict[str, wire.TensorFile]] = []
        self.written = 0  # sets of inputs on disk

    @abstractmethod
    def run(self) -> wire.Manifest:
        """The record of all that was written."""

    # --- the task's parts

    def stage(self, text: str) -> None:
        (self.folder / wire.STAGE).write_text(text, encoding="utf-8", errors="replace")

    def groups(self, module: types.ModuleType) -> list[Any]:
        self.stage("running get_input_groups()")
        set_seed(self.orders.seeds[0] if self.orders.seeds else self.orders.model_seed)
        with user_code(self.path, "get_input_groups()"):
            made = module.get_input_groups()
            groups = list(made) if isinstance(made, Iterable) else []
        if not groups:
            message = "get_input_groups() did not return a list of input lists"
            raise TaskError("task-inputs", message, Place(self.path))
        return groups

    def write_draws(self, draws: Draws) -> None:
        """What differs from the model's own parameters in each draw."""
        self.notes += draws.notes
        for values in draws.values[1:]:
            stem = f"draw_{len(self.draw_files)}"
            rows = enumerate(values.items())
            self.draw_files.append(
                {name: self.write(f"{stem}_{at}", value) for at, (name, value) in rows}
            )

    # --- trials

    def record(
        self,
        name: str,
        kind: wire.Kind,
        seed: int,
        inputs: Inputs,
        references: Sequence[Tensor],
        goldens: Sequence[Tensor],
        bounds: Sequence[Tensor] = (),
        **more: Any,
    ) -> wire.TrialRecord:
        """A set of inputs with its tensors on disk."""
        stem = f"trial_{self.written}"
        self.written += 1
        return wire.TrialRecord(
            name=name, kind=kind, seed=seed,
            inputs=self.write_all(f"{stem}_input", inputs.tensors),
            references=self.write_all(f"{stem}_reference", references),
            goldens=self.write_all(f"{stem}_golden", goldens),
            bounds=self.write_all(f"{stem}_bound", bounds),
            **more,
        )  # fmt: skip

    def skip(self, name: str, kind: wire.Kind, seed: int, why: str, **more: Any) -> None:
        record = wire.TrialRecord(name=name, kind=kind, seed=seed, skipped=why, **more)
        self.trials.append(record)

    def write_all(self, stem: str, tensors: Sequence[Tensor]) -> tuple[wire.TensorFile, ...]:
        return tuple(self.write(f"{stem}_{at}", tensor) for at, tensor in enumerate(tensors))

    def write(self, stem: str, tensor: Tensor) -> wire.TensorFile:
        return files.write(tensor, self.folder, stem)


def stay_finite(found: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    """Whether what was finite still is."""
    pairs = zip(found, before, strict=True)
    return all(new.isfinite().all() or not old.isfinite().all() for new, old in pairs)
