"""Is a tile program right, before it is lowered? It is interpreted in NumPy, against PyTorch.

The interpreter is slow and a strange program may not end, so it runs in the sandbox, on the task's
smallest sets of inputs. A set that is too large for it is left to the twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import BaseModel, ConfigDict, ValidationError

from npusmith.agent.assessment import Note
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.sandbox.box import Boxed, Policy
from npusmith.target.chips import Chip
from npusmith.task.prepared import Prepared, TrialData
from npusmith.task.trials import run_python
from npusmith.task.wire import TensorFile

SECONDS = 40.0
_MEMORY = 4 << 30
_MOST_BYTES = 8 << 20  # of a set's inputs and outputs: some seconds of interpreting
_SETS = 2


class Case(BaseModel):
    """One set of inputs on disk, in the order of the kernel's tensors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    inputs: tuple[TensorFile, ...]
    references: tuple[TensorFile, ...]
    goldens: tuple[TensorFile, ...]
    bounds: tuple[TensorFile, ...] = ()


class Orders(BaseModel):
    """What the child is given on its standard input."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: str
    chip: dict[str, str | int]
    folder: str
    tolerance: str
    cases: tuple[Case, ...]


class Said(BaseModel):
    """The child's answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    notes: tuple[Note, ...]


def check_values(
    text: str, spec: OpSpec, prepared: Prepared, chip: Chip, tolerance: str
) -> tuple[Note, ...]:
    """What is wrong with the program's values; empty when nothing is, or no set is small enough."""
    cases = tuple(case_of(trial, spec.inputs, prepared) for trial in _smallest(prepared))
    if not cases:
        return ()
    orders = Orders(
        program=text, chip=asdict(chip), folder=str(prepared.folder), tolerance=tolerance,
        cases=cases,
    )  # fmt: skip
    policy = Policy(read=(prepared.folder,), seconds=SECONDS, memory_bytes=_MEMORY)
    module = "npusmith.agent.meaning"
    boxed = run_python(module, orders.model_dump_json(), policy, prepared.folder, preload=module)
    return _notes(boxed)


def _notes(boxed: Boxed) -> tuple[Note, ...]:
    if boxed.timed_out or boxed.out_of_memory:
        why = f"still running after {SECONDS:g} s" if boxed.timed_out else "out of memory"
        return (Note(code="agent-endless", message=f"the program was stopped in NumPy: {why}"),)
    try:
        return Said.model_validate_json(boxed.stdout).notes
    except ValidationError:
        said = boxed.stderr[-300:].decode(errors="replace").strip().rpartition("\n")[2]
        message = "the program could not be interpreted"
        return (Note(code="agent-endless", message=message, seen=said),)


def _smallest(prepared: Prepared) -> list[TrialData]:
    """The smallest set of the task's own shapes, and the smallest of other shapes."""
    usable = [
        trial
        for trial in prepared.trials
        if not trial.skipped and trial.record.references and trial.bytes <= _MOST_BYTES
    ]
    own = [trial for trial in usable if trial.kind != "shape"]
    other = [trial for trial in usable if trial.kind == "shape" and _count(trial) > 64]
    groups = (sorted(group, key=lambda trial: trial.bytes) for group in (own, other))
    return [group[0] for group in groups if group][:_SETS]


def _count(trial: TrialData) -> int:
    """Elements of the outputs: a handful says little about a formula."""
    return sum(item.bytes for item in trial.record.references) // 4


def case_of(trial: TrialData, ports: Sequence[Port], prepared: Prepared) -> Case:
    """The set as a kernel with these inputs takes it, with the parameters that are drawn for it."""
    held = prepared.files_of(trial)
    return Case(
        name=trial.name,
        inputs=tuple(
            trial.record.inputs[port.position] if port.source is Source.USER else held[port.target]
            for port in ports
        ),
        references=trial.record.references,
        goldens=trial.record.goldens,
        bounds=trial.record.bounds,
    )
