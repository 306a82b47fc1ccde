"""How a kernel divides its on-chip memories: data for the picture and its legend.

Takes a lowered program, whose buffer lengths are numbers and whose depths say what is double
buffered. Offsets are in the order of declaration; the chip's own allocation may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from npusmith.ir import nodes
from npusmith.ir.branches import branches
from npusmith.ir.nodes import Buffer, Const, Program, Role
from npusmith.target.chips import Chip
from npusmith.target.cube import ROLES, capacity

_ROLES = {
    Role.VECIN: "loaded",
    Role.VECOUT: "stored",
    Role.VECCALC: "scratch",
    Role.THROUGH: "loaded and stored",
    **dict.fromkeys(ROLES, "loaded"),
    Role.CO1: "stored",
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
    **dict.fromkeys(ROLES, Kind.IN),
    Role.CO1: Kind.OUT,
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
    """A whole memory of one core; `used` may exceed what there is."""

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
    """The memories of each version of a kernel, which have them in turns."""
    kernel = program.kernel
    paths = list(branches(program).paths())
    if len(paths) == 1 and not kernel.is_cube:
        return (divide(program, chip),)
    found: list[Memory] = []
    for number, path in enumerate(paths, 1):
        version = f", version {number}" if len(paths) > 1 else ""
        for memory in dict.fromkeys(item.memory for item in path):
            own = tuple(item for item in path if item.memory is memory)
            where = f", {memory.value}" if kernel.is_cube else ""
            part = divide(replace(program, kernels=(replace(kernel, buffers=own),)), chip)
            found.append(replace(part, kernel=f"{kernel.name}{version}{where}"))
    return tuple(found)


def divide(program: Program, chip: Chip) -> Memory:
    """The pieces of the buffers' memory in order: buffers and their copies, free, reserved."""
    memory = next((item.memory for item in program.kernel.buffers), nodes.Memory.UB)
    room = capacity(memory, chip)
    reserved = chip.ub_reserved_bytes if memory is nodes.Memory.UB else 0
    rows = tuple(_row(index, item, chip) for index, item in enumerate(program.kernel.buffers))
    pieces: list[Piece] = []
    at = 0
    for row in rows:
        for copy in range(row.copies):
            mark = f"{row.mark}{copy + 1}" if row.copies > 1 else row.mark
            size = row.bytes // row.copies
            fits = at + size <= room
            pieces.append(Piece(mark, row.kind if fits else Kind.OVER, at, size))
            at += size
    free = max(0, room - at)
    if free:
        pieces.append(Piece("", Kind.FREE, at, free))
    if reserved:
        pieces.append(Piece("", Kind.RESERVED, at + free, reserved))
    return Memory(room + reserved, at, free, reserved, tuple(pieces), rows)


def _row(index: int, buffer: Buffer, chip: Chip) -> Row:
    elements = _known(buffer, buffer.length)
    elements *= 1 if buffer.cols is None else _known(buffer, buffer.cols)
    blocks = -(-elements * buffer.dtype.bytes // chip.block_bytes)  # what is given out
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


def _known(buffer: Buffer, side: nodes.Expr) -> int:
    if not isinstance(side, Const):
        raise ValueError(f"length of {buffer.name} is no number: lower the program first")
    return int(side.value)


def _letters(index: int) -> str:
    """A ... Z, AA, AB ..."""
    first, last = divmod(index, 26)
    return (_letters(first - 1) if first else "") + chr(ord("A") + last)
