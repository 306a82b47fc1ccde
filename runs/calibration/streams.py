"""Short kernels: a row of short.csv as a launch of kernels/stream.asc."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SIZES = {"half": 2, "float": 4}
_MOST_INPUTS = 4


@dataclass(frozen=True, slots=True)
class Stream:
    """One launch of kernels/stream.asc."""

    dtype: str
    what: int
    inputs: int
    elements: int
    per_core: int
    tile: int
    blocks: int
    kernel: str = "stream.asc"

    @property
    def launcher(self) -> str:
        return f"stream_{self.dtype}_do"

    @property
    def areas(self) -> tuple[int, ...]:
        """Bytes of the arguments; an input that is not there is a block."""
        size = self.elements * _SIZES[self.dtype]
        return (*(size if i < self.inputs else 32 for i in range(_MOST_INPUTS)), size)

    def packed(self) -> bytes:
        return struct.pack("<5i", self.what, self.inputs, self.elements, self.per_core, self.tile)


def stream_of(row: dict[str, str]) -> Stream:
    """What a row of short.csv launches."""
    names = ("what", "inputs", "elements", "per_core", "tile", "blocks")
    return Stream(row["dtype"], *(int(row[name]) for name in names))
