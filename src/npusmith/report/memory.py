"""How a kernel divides the unified buffer: data for the picture and its legend.

Takes a lowered program, whose buffer lengths are numbers and whose depths say what is double
buffered. Offsets are in the order of declaration; the chip's own allocation may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from npusmith.ir.branches import branches
from npusmith.ir.nodes import Buffer, Const, Program, Role
from npusmith.target.chips import Chip

_ROLES = {
    Role.VECIN: "loaded",
    Role.VECOUT: "stored",
    Role.VECCALC: "scratch",
    Role.THROUGH: "loaded and stored",
}


class Kind(str, Enum):
    """What a piece is, and its class in style.css."""

    IN = "in"
    OUT = "out"
    CALC = "calc"
    THROUGH = "through"
    FREE = "free"
    RESERVED = "reserved"
    OVER = "over"


_KINDS = {
    Role.VECIN: Kind.IN,
    Role.VECOUT: Kind.OUT,
    Role.VECCALC: Kind.CALC,
    Role.THROUGH: Kind.THROUGH,
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of bytes in the picture. `mark` is its short name, "B2" for the second copy of B."""

    mark: str
    kind: Kind
    start: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Row:
    """One buffer in the legend; `bytes` are those of all its copies."""

    mark: str
    kind: Kind
    name: str
    dtype: str
    elements: int
    copies: int
    bytes: int
    role: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The whole unified buffer of one core; `used` may exceed what there is."""

    total: int
    used: int
    free: int
    reserved: int
    pieces: tuple[Piece, ...]
    rows: tuple[Row, ...]
    kernel: str = ""  # whose buffers they are, where there are several kernels or versions

    @property
    def span(self) -> int:
        """Bytes from the left to the right end of the picture."""
        return max(self.total, self.used + self.reserved)


def versions(program: Program, chip: Chip) -> tuple[Memory, ...]:
    """The unified buffer of each version of a kernel, which have it in turns."""
    kernel = program.kernel
    paths = list(branches(program).paths())
    if len(paths) == 1:
        return (divide(program, chip),)
    return tuple(
        replace(
            divide(replace(program, kernels=(replace(kernel, buffers=path),)), chip),
            kernel=f"{kernel.name}, version {number}",
        )
        for number, path in enumerate(paths, 1)
    )


def divide(program: Program, chip: Chip) -> Memory:
    """The pieces of the unified buffer in order: buffers and their copies, free, reserved."""
    rows = tuple(_row(index, item, chip) for index, item in enumerate(program.kernel.buffers))
    pieces: list[Piece] = []
    at = 0
    for row in rows:
        for copy in range(row.copies):
            mark = f"{row.mark}{copy + 1}" if row.copies > 1 else row.mark
            size = row.bytes // row.copies
            fits = at + size <= chip.ub_bytes
            pieces.append(Piece(mark, row.kind if fits else Kind.OVER, at, size))
            at += size
    free = max(0, chip.ub_bytes - at)
    if free:
        pieces.append(Piece("", Kind.FREE, at, free))
    pieces.append(Piece("", Kind.RESERVED, at + free, chip.ub_reserved_bytes))
    return Memory(chip.ub_total_bytes, at, free, chip.ub_reserved_bytes, tuple(pieces), rows)


def _row(index: int, buffer: Buffer, chip: Chip) -> Row:
    if not isinstance(buffer.length, Const):
        raise ValueError(f"length of {buffer.name} is no number: lower the program first")
    elements = int(buffer.length.value)
    blocks = -(-elements * buffer.dtype.bytes // chip.block_bytes)  # UB is given out in blocks
    return Row(
        mark=_letters(index),
        kind=_KINDS[buffer.role] if buffer.role else Kind.CALC,
        name=buffer.name,
        dtype=buffer.dtype.value,
        elements=elements,
        copies=buffer.depth,
        bytes=blocks * chip.block_bytes * buffer.depth,
        role=_ROLES[buffer.role] if buffer.role else "",
    )


def _letters(index: int) -> str:
    """A ... Z, AA, AB ..."""
    first, last = divmod(index, 26)
    return (_letters(first - 1) if first else "") + chr(ord("A") + last)
