"""A prepared task: its graph and its sets of inputs, with tensors mapped from disk on demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.task import wire
from npusmith.task.graph import Graph
from npusmith.task.isolated.arrays import Value
from npusmith.task.load import Task

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class TrialData:
    """One set of inputs. The arrays are mapped read-only from disk at each access.

    inputs: one per tensor argument of forward. references: outputs in native types. goldens: the
    outputs computed in float64. A trial whose reference raises has none of them.
    """

    record: wire.TrialRecord
    folder: Path

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def seed(self) -> int:
        return self.record.seed

    @property
    def required(self) -> bool:
        """False: the captured graph does not describe these inputs; `skipped` says why."""
        return self.record.required

    @property
    def skipped(self) -> str:
        """Why a kernel is not judged on this set; empty when it is."""
        return self.record.skipped

    @property
    def notes(self) -> tuple[str, ...]:
        return self.record.notes

    @property
    def draw(self) -> int:
        """Which values the parameters have: 0 for the model's own, else a draw of the manifest."""
        return self.record.draw

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [item.shape for item in self.record.inputs]

    @property
    def bytes(self) -> int:
        """Bytes of inputs and native outputs."""
        return sum(item.bytes for item in (*self.record.inputs, *self.record.references))

    @property
    def given(self) -> wire.ValueFiles:
        """The arguments of forward; those of a captured graph lie in the manifest's tree."""
        return wire.ValueFiles(tree=self.record.call or {}, tensors=self.record.inputs)

    @property
    def wanted(self) -> wire.ValueFiles:
        """What forward gave."""
        return wire.ValueFiles(tree=self.record.result or {}, tensors=self.record.references)

    @property
    def wide(self) -> wire.ValueFiles:
        """The same in float64."""
        return wire.ValueFiles(tree=self.record.result or {}, tensors=self.record.goldens)

    @property
    def inputs(self) -> list[Array]:
        return [map_tensor(self.folder, item) for item in self.record.inputs]

    @property
    def references(self) -> list[Array]:
        return [map_tensor(self.folder, item) for item in self.record.references]

    @property
    def goldens(self) -> list[Array]:
        return [map_tensor(self.folder, item) for item in self.record.goldens]

    @property
    def bounds(self) -> list[Array | None]:
        """Per output how far right answers lie apart; None where no bound was needed."""
        found = [map_tensor(self.folder, item) for item in self.record.bounds]
        return [*found] if found else [None] * len(self.record.references)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task ready to be judged; nothing here is a candidate's."""

    task: Task
    folder: Path  # holds the tensors
    manifest: wire.Manifest
    trials: tuple[TrialData, ...]
    missing: tuple[str, ...] = ()  # layers of the sandbox that this machine lacks
    seconds: float = 0.0
    peak_bytes: int = 0  # of the child
    sets: Any = None  # the Sets that it was prepared for (trials.py), where this process knows them

    @property
    def parameters(self) -> dict[str, Array]:
        """The model's own parameters, buffers and constants by attribute path."""
        files = self.manifest.parameters
        return {name: map_tensor(self.folder, item) for name, item in files.items()}

    @property
    def handed(self) -> list[int]:
        """Numbers of the outputs that the reference hands back as they came, on every set."""
        rows = [set(item.record.alias) for item in self.trials if not item.skipped]
        return sorted(set.intersection(*rows)) if rows else []

    def files_of(self, trial: TrialData) -> dict[str, wire.TensorFile]:
        """The files of the parameters that one set of inputs has: its draw over the own ones."""
        draws = self.manifest.draws
        return self.manifest.parameters | (draws[trial.draw - 1] if trial.draw else {})

    def held(self, trial: TrialData) -> dict[str, Array]:
        """The parameters, buffers and constants of one set of inputs by attribute path."""
        return {name: map_tensor(self.folder, item) for name, item in self.files_of(trial).items()}

    def drawn(self, trial: TrialData) -> dict[str, Array]:
        """Parameters and buffers that are drawn for this set; none: the model has its own."""
        files = self.manifest.draws[trial.draw - 1] if trial.draw else {}
        return {name: map_tensor(self.folder, item) for name, item in files.items()}

    def init(self, trial: TrialData) -> wire.ValueFiles:
        """What the model of this set is built with."""
        return trial.record.init or self.manifest.init

    def value(self, files: wire.ValueFiles) -> Value:
        """A nested value as it goes to a candidate's class."""
        return Value(files.tree, [map_tensor(self.folder, item) for item in files.tensors])

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def graph(self) -> Graph:
        """The captured graph; there is none of a model that was called as a suite calls it."""
        assert self.manifest.graph is not None
        return self.manifest.graph

    @property
    def notes(self) -> tuple[str, ...]:
        return self.manifest.notes

    @property
    def ranks(self) -> tuple[TrialData, ...]:
        """Inputs of another rank that the model takes; a kernel may refuse them (ranks.py)."""
        return tuple(TrialData(record, self.folder) for record in self.manifest.ranks)

    @property
    def provenance(self) -> dict[str, Any]:
        """What a report says about where these numbers come from."""
        return {
            **self.manifest.versions,
            "task_sha256": self.task.digest,
            "model_seed": self.manifest.model_seed,
            "seeds": [trial.seed for trial in self.trials if trial.kind == "random"],
            "sandbox_missing": list(self.missing),
            "task_notes": list(self.notes),
        }

    def arguments(self, trial: TrialData) -> dict[str, Array]:
        """Every graph input of one trial by name, in graph order."""
        given, held = trial.inputs, self.held(trial)
        return {
            item.name: given[item.position] if item.kind == "user" else held[item.target]
            for item in self.graph.inputs
        }


def map_tensor(folder: Path, item: wire.TensorFile) -> Array:
    """A tensor on disk as a read-only array."""
    if not item.bytes:
        return np.empty(item.shape, item.numpy)
    mapped: Array = np.memmap(folder / item.file, dtype=np.uint8, mode="r")
    return mapped.view(item.numpy).reshape(item.shape)
