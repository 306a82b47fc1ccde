"""The child of values.py: interprets a tile program on sets of inputs, and compares the outputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from npusmith.agent.assessment import Note, notes_of
from npusmith.agent.values import Case, Orders, Said
from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.lang import interpret, parse
from npusmith.target.chips import Chip
from npusmith.task.prepared import map_tensor
from npusmith.task.tolerance import compare


def main() -> None:
    """Orders on stdin, what was found on stdout."""
    orders = Orders.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(Said(notes=tuple(find(orders))).model_dump_json())


def find(orders: Orders) -> list[Note]:
    """The first set that goes wrong decides: later ones would say the same."""
    fields: dict[str, Any] = dict(orders.chip)
    program, chip = parse(orders.program), Chip(**fields)
    for case in orders.cases:
        if wrong := try_case(program, chip, case, Path(orders.folder), orders.tolerance):
            return wrong
    return []


def try_case(program: Program, chip: Chip, case: Case, folder: Path, tolerance: str) -> list[Note]:
    """What is wrong with the program on one set: agent-values of outputs, or the broken rule."""
    inputs = [map_tensor(folder, item) for item in case.inputs]
    natives = [map_tensor(folder, item) for item in case.references]
    goldens = [map_tensor(folder, item) for item in case.goldens]
    bounds: list[Any] = [map_tensor(folder, item) for item in case.bounds]
    bounds = bounds or [None] * len(natives)
    shapes = [(array.shape, DType.of(array.dtype)) for array in natives]
    try:
        outputs = interpret(program, chip, inputs, shapes)
    except LangError as error:
        return list(notes_of(error.record()))
    sizes = ", ".join("x".join(map(str, item.shape)) or "scalar" for item in case.inputs)
    notes = []
    for index, row in enumerate(zip(outputs, natives, goldens, bounds, strict=True)):
        found = compare(*row[:3], tolerance, row[3])
        if not found.passed:
            name = program.outputs[index].name
            message = f"in NumPy, set of inputs {case.name!r}, output {name}: {found.message}"
            seen = f"{found.mismatched:,} of {found.elements:,} elements are wrong, inputs {sizes}"
            notes.append(Note(code="agent-values", message=message[:400], seen=seen))
    return notes
