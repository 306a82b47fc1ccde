"""The watched process that runs an operator at shapes larger than memory, by some of its cores.

Tensors are files with holes, zero but for the slices that ends.py has drawn. The cores at both ends
work; more of them where those do not come to the last slices, and all where they wait for each
other. What the outputs hold at the slices goes back as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from npusmith.bench.suites import wire
from npusmith.bench.suites.operator import dtype_of, prepare
from npusmith.bench.suites.watch import leave_reply, read_orders, told_error
from npusmith.errors import NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.task.ports import deal, share
from npusmith.twin import Project, build, read_project, run
from npusmith.twin.launch import Run
from npusmith.twin.orders import Sparse

Array = np.ndarray[Any, Any]
_UNTOUCHED = 0xA5  # bytes of an output's slices before the run


def main() -> None:
    orders = read_orders()
    folder = Path(orders["folder"])
    try:
        reply = _run(read_project(Path(orders["place"]) / "project"), orders, folder)
    except NpusmithError as error:
        reply = {"error": told_error(error)}
    leave_reply(folder, reply)


def _run(project: Project, orders: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run by more and more cores, until the last slices have been written."""
    outputs = orders["ends"]["outputs"]
    trial = {"inputs": {"list": orders["ends"]["inputs"]}, "outputs": {"list": outputs}}
    call = prepare(project, orders, trial, _holed)
    chip = find_chip(orders["chip"])
    built = build(project, chip, call.kinds)
    takes = share(project.op.outputs, len(outputs)) or ()
    blank = deal(project.op.outputs, takes, [_blank(leaf) for leaf in outputs])
    initial = {at: item if isinstance(item, list) else [item] for at, item in enumerate(blank)}
    cores = chip.vector_cores
    ends = min(cores // 2, math.ceil(cores * orders["ends"]["filled"] / orders["ends"]["size"]) + 1)
    while True:
        share_of_work = min(1.0, 2 * ends / cores) if ends else 1.0
        if orders["bytes"] * share_of_work > orders["most_bytes"]:
            return {"left": f"{ends * 2 or 'all'} cores would touch more than was allowed"}
        result = run(
            built, call.inputs, call.outputs, seconds=orders["seconds"], initial=initial, ends=ends
        )  # fmt: skip
        pieces = [piece for leaf, out in zip(outputs, result.outputs, strict=False)
                  for piece in _pieces(leaf, out)]  # fmt: skip
        if not ends or 2 * ends >= result.blocks:
            break
        if any(item.code == "deadlock" for item in result.findings):
            ends = 0  # cores wait for those that do not run
        elif result.completed and any(map(_untouched, pieces)):
            ends = 2 * ends if 4 * ends < result.blocks else 0
        else:
            break
    return _reply(result, ends, pieces, folder)


def _reply(result: Run, ends: int, pieces: list[Array], folder: Path) -> dict[str, Any]:
    for at, piece in enumerate(pieces):
        (folder / f"piece{at}.bin").write_bytes(np.ascontiguousarray(piece).tobytes())
    ran = min(2 * ends or result.blocks, result.blocks)
    return {
        "completed": result.completed,
        "cores": f"{ran} of {result.blocks} cores",
        "findings": [item.model_dump(mode="json") for item in result.findings],
        "pieces": len(pieces),
    }


def _holed(leaf: wire.Tree, folder: Path) -> Any:
    """A tensor that is zero but for its runs; a whole one where the leaf has its file."""
    dtype = dtype_of(leaf)
    if leaf["tensor"]:
        return _read(leaf, folder).reshape(leaf["shape"])
    runs = [run for starts, piece in leaf["runs"] for run in _split(starts, _read(piece, folder))]
    return Sparse(tuple(leaf["shape"]), dtype, tuple(runs))


def _split(starts: list[int], values: Array) -> Iterator[tuple[int, Array]]:
    """Where each piece begins, and its values."""
    yield from zip(starts, values.reshape(len(starts), -1), strict=True)


def _read(leaf: wire.Tree, folder: Path) -> Array:
    return np.fromfile(folder / leaf["tensor"], np.uint8).view(dtype_of(leaf).numpy)


def _blank(leaf: wire.Tree) -> Sparse:
    """An output that shows where it was written."""
    dtype = dtype_of(leaf)
    runs = [run for starts, piece in leaf["runs"] for run in _split(starts, _mark(piece, dtype))]
    return Sparse(tuple(leaf["shape"]), dtype, tuple(runs))


def _mark(piece: wire.Tree, dtype: DType) -> Array:
    count = math.prod(piece["shape"]) * dtype.bytes
    return np.full(count, _UNTOUCHED, np.uint8).view(dtype.numpy)


def _pieces(leaf: wire.Tree, output: Array) -> list[Array]:
    """What an output holds at its runs; one array for each file."""
    flat = output.reshape(-1)
    return [
        np.concatenate([flat[at : at + math.prod(piece["shape"]) // len(starts)] for at in starts])
        for starts, piece in leaf["runs"]
    ]


def _untouched(piece: Array) -> bool:
    raw = np.ascontiguousarray(piece).view(np.uint8)
    return bool((raw == _UNTOUCHED).reshape(-1, piece.itemsize).all(1).any())


if __name__ == "__main__":
    main()
