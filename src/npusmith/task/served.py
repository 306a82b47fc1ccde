"""What an operator says of the sizes that it serves, and sets of inputs that keep to it.

A model may take sizes that its operator does not serve. The operator has to refuse them, by the
conditions of its bindings.json; then it is judged at sizes that the conditions allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npusmith.errors import LangError
from npusmith.ir.nodes import Dim, Expr, Size
from npusmith.ir.spec import OpSpec, Source
from npusmith.ir.text import show_expr
from npusmith.ir.walk import subexpressions
from npusmith.lang.extents import unmet
from npusmith.task.prepared import Prepared, TrialData

Shape = tuple[int, ...]
MOST = 3  # sets that get a reference


def limit(prepared: Prepared, spec: OpSpec | None, trial: TrialData) -> str:
    """The condition of the operator that inputs break; empty where none is."""
    if spec is None:
        return ""
    held = {name: item.shape for name, item in prepared.files_of(trial).items()}
    broken = _unmet(spec, trial.shapes, held)
    return "" if broken is None else show_expr(broken)


def served_sets(
    prepared: Prepared, spec: OpSpec | None, refused: Sequence[TrialData]
) -> list[list[Shape]]:
    """The shapes of refused sets, with as few sizes as possible put back to the task's own."""
    own = next((item.shapes for item in prepared.trials if not item.skipped), None)
    if spec is None or own is None:
        return []
    held = {name: item.shape for name, item in prepared.manifest.parameters.items()}
    found = [_put_back(prepared, spec, item.shapes, own, held) for item in refused]
    fresh = {tuple(item): None for item in found if item is not None and item != own}
    return [list(item) for item in fresh][:MOST]


def _put_back(
    prepared: Prepared,
    spec: OpSpec,
    shapes: Sequence[Shape],
    own: Sequence[Shape],
    held: Mapping[str, Shape],
) -> list[Shape] | None:
    changed = [list(shape) for shape in shapes]
    classes = [item.axes for item in prepared.manifest.free]
    while (broken := _unmet(spec, [tuple(shape) for shape in changed], held)) is not None:
        named = _axes(spec, broken, own)
        back = {axis for axes in classes if named & {*axes} for axis in axes} or named
        if all(changed[at][axis] == own[at][axis] for at, axis in back):
            return None
        for at, axis in back:
            changed[at][axis] = own[at][axis]
    return [tuple(shape) for shape in changed]


def _unmet(spec: OpSpec, shapes: Sequence[Shape], held: Mapping[str, Shape]) -> Expr | None:
    given = {
        port.name: shapes[port.position] if port.source is Source.USER else held[port.target]
        for port in spec.inputs
    }
    try:
        return unmet(spec, given)
    except LangError:  # somebody else's bindings.json: it excuses nothing
        return None


def _axes(spec: OpSpec, expr: Expr, own: Sequence[Shape]) -> set[tuple[int, int]]:
    """Axes of forward's arguments that a condition names; all of a tensor that it counts."""
    ports = {port.name: port for port in spec.inputs if port.source is Source.USER}
    found: set[tuple[int, int]] = set()
    for item in subexpressions(expr):
        match item:
            case Dim(tensor, axis) if tensor in ports:
                found.add((ports[tensor].position, axis))
            case Size(tensor) if tensor in ports:
                at = ports[tensor].position
                found |= {(at, axis) for axis in range(len(own[at]))}
    return found
