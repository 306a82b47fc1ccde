"""The child of values.py: interprets a tile program on sets of inputs, and compares the outputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from npusmith.agent.assessment import Note, notes_of
from npusmith.agent.values import Case, Orders, Said
from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import Program, Store
from npusmith.ir.walk import statements
from npusmith.lang import parse
from npusmith.lang.interp import interpret_traced
from npusmith.target.chips import Chip
from npusmith.task.prepared import map_tensor
from npusmith.task.tolerance import Array, Comparison, compare
from npusmith.task.wrong_elements import Wrong, describe


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
        ran = interpret_traced(program, chip, inputs, shapes)
    except LangError as error:
        return list(notes_of(error.record()))
    sizes = ", ".join("x".join(map(str, item.shape)) or "scalar" for item in case.inputs)
    notes = []
    for index, row in enumerate(zip(ran.outputs, natives, goldens, bounds, strict=True)):
        found = compare(*row[:3], tolerance, row[3])
        if not found.passed:
            name = program.outputs[index].name
            message = f"in NumPy, set of inputs {case.name!r}, output {name}: {found.message}"
            seen = f"{found.mismatched:,} of {found.elements:,} elements are wrong, inputs {sizes}"
            wrong = _wrong(found, row[0], row[1], ran.writers[index])
            lines = [seen, *wrong.lines, *_stores(program, name)]
            note = Note(
                code="agent-values", message=message[:400], seen="; ".join(lines),
                hint=wrong.likely, line=_line(program, name),
            )  # fmt: skip
            notes.append(note)
    return notes


def _wrong(found: Comparison, mine: Array, theirs: Array, writer: Array) -> Wrong:
    if found.places is None or not found.places.size:
        return Wrong(())
    return describe(mine, theirs, found.places, found.worst, writer)


def _store_lines(program: Program, name: str) -> list[int]:
    """The lines on which an output is stored."""
    return [
        stmt.line
        for part in each_launch(program)
        for stmt in statements(part.kernel.body)
        if isinstance(stmt, Store) and _outer(part, stmt.dst.tensor) == name
    ]


def _outer(part: Program, tensor: str) -> str:
    """What the host calls a tensor of a kernel."""
    return {own: item.tensor for own, item in part.host.launch.parts}.get(tensor, tensor)


def _line(program: Program, name: str) -> int:
    """The one line that stores an output; 0 where there are several."""
    lines = set(_store_lines(program, name))
    return lines.pop() if len(lines) == 1 else 0


def _stores(program: Program, name: str) -> list[str]:
    lines = sorted(set(_store_lines(program, name)))
    return [f"{name} is stored on lines {', '.join(map(str, lines))}"] if len(lines) > 1 else []
