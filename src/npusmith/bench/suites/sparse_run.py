"""The watched process that runs an operator at shapes larger than memory, by some of its cores.

Tensors are sparse files, zero but for the slices that sliced_reference.py has drawn. The cores at
both ends work; more of them where those do not come to the last slices, and all where they wait
for each other. What the outputs hold at the slices goes back as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.bench.suites.orders import Holed, Orders, tell
from npusmith.bench.suites.sliced import ENDS, Ends, Piece, Sliced
from npusmith.bench.suites.watch import leave_reply, read_orders
from npusmith.errors import NpusmithError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.lower import read_bindings
from npusmith.target.chips import find_chip
from npusmith.task.ports import deal, share_outputs, take_inputs, types
from npusmith.task.prepared import map_tensor
from npusmith.task.wire import TensorFile
from npusmith.twin import Project, build, read_project, run
from npusmith.twin.launch import LaunchOptions, Run
from npusmith.twin.orders import Sparse

Array = np.ndarray[Any, Any]
_UNTOUCHED = 0xA5  # bytes of an output's slices before the run


def main() -> None:
    orders = read_orders()
    folder = Path(orders.folder)
    try:
        found = Ends.model_validate_json((Path(orders.given) / ENDS).read_bytes())
        reply = _run(read_project(Path(orders.place) / "project"), found, orders, folder)
    except NpusmithError as error:
        reply = Holed(error=tell(error))
    leave_reply(folder, reply)


def _run(project: Project, known: Ends, orders: Orders, folder: Path) -> Holed:
    """Run by more and more cores, until the last slices have been written."""
    outputs, given = known.outputs, Path(orders.given)
    call = _prepare(
        project, known.inputs, known.parameters, outputs, lambda item: _holed(item, given)
    )
    chip = find_chip(orders.chip)
    built = build(project, chip, call.kinds)
    takes = share_outputs(project.op, len(outputs))
    blank = deal(project.op.outputs, takes, [_blank(item) for item in outputs])
    initial = {at: item if isinstance(item, list) else [item] for at, item in enumerate(blank)}
    cores = chip.vector_cores
    ends = min(cores // 2, math.ceil(cores * known.filled / known.size) + 1)
    while True:
        share_of_work = min(1.0, 2 * ends / cores) if ends else 1.0
        if orders.bytes * share_of_work > orders.most_bytes:
            return Holed(left=f"{ends * 2 or 'all'} cores would touch more than was allowed")
        options = LaunchOptions(seconds=orders.seconds, ends=ends)
        result = run(built, call.inputs, call.outputs, initial=initial, options=options)
        pieces = [piece for item, out in zip(outputs, result.outputs, strict=False)
                  for piece in _pieces(item, out)]  # fmt: skip
        if not ends or 2 * ends >= result.blocks:
            break
        if any(item.code == "deadlock" for item in result.findings):
            ends = 0  # cores wait for those that do not run
        elif result.completed and any(map(_untouched, pieces)):
            ends = 2 * ends if 4 * ends < result.blocks else 0
        else:
            break
    return _reply(result, ends, pieces, folder)


@dataclass(frozen=True, slots=True)
class _Call:
    """What the operator is called with."""

    kinds: tuple[DType, ...]
    inputs: list[Any]
    outputs: list[Any]


def _prepare(
    project: Project,
    given: Sequence[Any],
    held: Mapping[str, Any],
    results: Sequence[Any],
    load: Callable[[Any], Any],
) -> _Call:
    """What is called, for anything with shape and type; `load` makes a tensor of it."""

    def loaded(item: Any) -> Any:
        if isinstance(item, list):
            return [loaded(part) for part in item]
        if item is None or isinstance(item, np.ndarray):  # a constant of the project's own
            return item
        dtype_of(item)
        return load(item)

    takes = take_inputs(project.op, read_bindings(project.root), given, held)
    inputs = [loaded(item) for item in takes]
    wanted = [(item.shape, dtype_of(item)) for item in results]
    shared = share_outputs(project.op, len(wanted))
    samples = [np.empty(0, dtype.numpy) for _, dtype in wanted]
    kinds = types(project.op, [*inputs, *deal(project.op.outputs, shared, samples)])
    return _Call(kinds, inputs, deal(project.op.outputs, shared, wanted))


def dtype_of(item: Any) -> DType:
    try:
        return DType(item.dtype)
    except ValueError as error:
        raise TwinError(
            "inputs-mismatch", f"tensors of {item.dtype} have no element type on the chip"
        ) from error


def _reply(result: Run, ends: int, pieces: list[Array], folder: Path) -> Holed:
    for at, piece in enumerate(pieces):
        (folder / f"piece{at}.bin").write_bytes(np.ascontiguousarray(piece).tobytes())
    ran = min(2 * ends or result.blocks, result.blocks)
    return Holed(
        completed=result.completed, cores=f"{ran} of {result.blocks} cores",
        findings=list(result.findings),
    )  # fmt: skip


def _holed(item: Any, folder: Path) -> Any:
    """A tensor that is zero but for its pieces; a whole one where a file has it."""
    whole = item if isinstance(item, TensorFile) else item.whole
    if whole is not None:
        return map_tensor(folder, whole)
    return _sparse(item, [map_tensor(folder, piece.file) for piece in item.pieces])


def _sparse(item: Sliced, values: Sequence[Array]) -> Sparse:
    """Where each piece begins, and its values."""
    rows = zip(item.pieces, values, strict=True)
    runs = [
        run
        for piece, held in rows
        for run in zip(piece.starts, held.reshape(len(piece.starts), -1), strict=True)
    ]
    return Sparse(item.shape, dtype_of(item), tuple(runs))


def _blank(item: Sliced) -> Sparse:
    """An output that shows where it was written."""
    kind = dtype_of(item).numpy
    marks = [np.full(piece.file.bytes, _UNTOUCHED, np.uint8).view(kind) for piece in item.pieces]
    return _sparse(item, marks)


def _pieces(item: Sliced, output: Array) -> list[Array]:
    """What an output holds at its pieces; one array for each file."""
    flat = output.reshape(-1)
    return [
        np.concatenate([flat[at : at + _each(piece)] for at in piece.starts])
        for piece in item.pieces
    ]


def _each(piece: Piece) -> int:
    return math.prod(piece.file.shape) // len(piece.starts)


def _untouched(piece: Array) -> bool:
    raw = np.ascontiguousarray(piece).view(np.uint8)
    return bool((raw == _UNTOUCHED).reshape(-1, piece.itemsize).all(1).any())


if __name__ == "__main__":
    main()
