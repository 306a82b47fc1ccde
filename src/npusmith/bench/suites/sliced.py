"""Tensors larger than memory, of which some slices are known.

sliced_reference.py writes them, sparse_run.py reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from npusmith.task.files import write
from npusmith.task.isolated.arrays import width
from npusmith.task.wire import Record, Stored, TensorFile

ENDS = "ends.json"


class Piece(Record):
    """Values that begin at these elements, in equal parts."""

    starts: tuple[int, ...]
    file: TensorFile


class Sliced(Record):
    """A tensor, zero or unknown but for its pieces."""

    shape: tuple[int, ...]
    dtype: Stored
    pieces: tuple[Piece, ...]

    @property
    def whole(self) -> TensorFile | None:
        """The file that holds all of it, where one does."""
        file = self.pieces[0].file
        return file if len(self.pieces) == 1 and file.shape == self.shape else None

    @property
    def bytes(self) -> int:
        total = width(self.dtype)
        for size in self.shape:
            total *= size
        return total


class Ends(Record):
    """A model at its true shapes: what its first and last slices give; or why that says nothing."""

    error: str = ""
    dim: int = 0
    size: int = 0
    filled: int = 0  # slices at either end
    way: str = ""  # of ends.WAYS
    limit: float | None = None  # of a mean: how far off it may be
    inputs: tuple[Sliced, ...] = ()
    outputs: tuple[Sliced, ...] = ()
    goldens: tuple[TensorFile, ...] = ()  # of the pieces of the outputs
    bounds: tuple[TensorFile, ...] = ()  # ... where PyTorch's own order of sums is not enough
    parameters: dict[str, TensorFile] = Field(default_factory=dict)


def write_whole(tensor: Any, folder: Path, stem: str) -> Sliced:
    """A tensor that is known from end to end."""
    file = write(tensor, folder, stem)
    return Sliced(shape=file.shape, dtype=file.dtype, pieces=(Piece(starts=(0,), file=file),))
