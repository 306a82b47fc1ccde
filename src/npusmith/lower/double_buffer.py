"""Overlap copies with computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npusmith.errors import LowerError
from npusmith.ir.branches import branches
from npusmith.ir.nodes import Buffer, Const, For, Load, Memory, Op, Program, Role, Split, Store
from npusmith.ir.walk import Block, bodies, statements
from npusmith.target.chips import Chip
from npusmith.target.cube import ROLES, capacity
from npusmith.target.intrinsics import INTRINSICS

MOST_PER_POSITION = 8  # event ids of one queue position on A2 (doc: TQue)
MOST_BUFFERS = 64  # of one TPipe, TBufs included (doc: TPipe)
LIBRARY_BYTES = 16 * 1024  # guess: scratch of the math library, which takes what is left of UB


def double_buffer(program: Program, chip: Chip) -> Program:
    """Give queues two buffers where they are filled or drained in a loop and UB has room.

    before: `xt` one buffer of 16 KB, loaded in a loop
    after:  `xt` two buffers of 16 KB: one is loaded while the other is computed on

    The deepest loop goes first, then the largest buffer. Where the program says how many `copies`
    there are, so many there are. Matrices share their own memories in the same way. A memory that
    does not hold what is asked for is an error; 16 KB of UB stay free where a library function
    needs scratch. Versions of a kernel have UB in turns (branches).
    """
    kernel = program.kernel
    versions = branches(program).versions()
    paths = tuple((path, room_for_buffers(body, chip)) for body, path in versions)
    for path, limit in paths:
        _check(path, chip, limit)
    for item in kernel.buffers:
        if item.role not in _QUEUES and item.copies > 1:
            raise LowerError(
                "lower-queues", f"{item.copies} copies of {item.name!r}, which is scratch",
                seen=item.name, legal="copies of buffers that are loaded or stored",
            )  # fmt: skip
    doubled = _chosen(kernel.buffers, paths, kernel.body, chip)
    buffers = tuple(
        replace(item, depth=2 if item.name in doubled else max(item.copies, 1))
        for item in kernel.buffers
    )
    return replace(program, kernels=(replace(kernel, buffers=buffers),))


Buffers = tuple[Buffer, ...]
_QUEUES = (Role.VECIN, Role.VECOUT, Role.THROUGH, *ROLES)


def _check(path: Buffers, chip: Chip, limit: int) -> None:
    """Buffers that are there together."""
    for memory in dict.fromkeys(ROLES.values()):
        _check_memory(memory, [item for item in path if item.memory is memory], chip)
    used = sum(
        buffer_bytes(item, chip) * max(item.copies, 1) for item in path if item.memory is Memory.UB
    )
    if used > limit:
        raise LowerError(
            "lower-ub",
            f"the buffers need {used} B of the unified buffer",
            seen=", ".join(f"{item.name} {buffer_bytes(item, chip)} B" for item in path),
            legal=f"at most {limit} B on {chip.name}",
        )
    if len(path) > MOST_BUFFERS:
        raise LowerError(
            "lower-queues",
            f"{len(path)} buffers in one kernel",
            seen=str(len(path)),
            legal=f"at most {MOST_BUFFERS}",
        )
    for role in _QUEUES:
        count = sum(max(item.copies, 1) for item in path if item.role is role)
        if count > MOST_PER_POSITION:
            raise LowerError("lower-queues", f"{count} buffers at {role.value}", seen=role.value)


def _check_memory(memory: Memory, matrices: Sequence[Buffer], chip: Chip) -> None:
    used = sum(buffer_bytes(item, chip) * max(item.copies, 1) for item in matrices)
    if used > capacity(memory, chip):
        raise LowerError(
            "lower-capacity",
            f"the matrices need {used} B of {memory.value}",
            seen=", ".join(f"{item.name} {buffer_bytes(item, chip)} B" for item in matrices),
            legal=f"at most {capacity(memory, chip)} B on {chip.name}",
        )


def _chosen(
    buffers: Buffers, paths: Sequence[tuple[Buffers, int]], body: Block, chip: Chip
) -> set[str]:
    depths = loop_depths(body)
    chosen: set[str] = set()
    free = [item for item in buffers if item.role in _QUEUES and not item.copies]
    for item in sorted(
        free, key=lambda item: (-depths.get(item.name, 0), -buffer_bytes(item, chip))
    ):
        fits = (_fits(item, path, chosen, chip, limit) for path, limit in paths if item in path)
        if depths.get(item.name, 0) and all(fits):
            chosen.add(item.name)
    return chosen


def _fits(item: Buffer, path: Buffers, chosen: set[str], chip: Chip, limit: int) -> bool:
    """Whether there is room for one more of a buffer, besides two of those that are chosen."""
    counts = [(other, 2 if other.name in chosen else max(other.copies, 1)) for other in path]
    used = sum(
        buffer_bytes(other, chip) * count for other, count in counts if other.memory is item.memory
    )
    limit = limit if item.memory is Memory.UB else capacity(item.memory, chip)
    alike = sum(count for other, count in counts if other.role is item.role)
    everything = sum(count for _, count in counts)
    return (
        used + buffer_bytes(item, chip) <= limit
        and alike < MOST_PER_POSITION
        and everything < MOST_BUFFERS
    )


def loop_depths(block: Block, depth: int = 0) -> dict[str, int]:
    """How many loops stand around the copies of each buffer."""
    found: dict[str, int] = {}
    for stmt in block:
        if isinstance(stmt, Load | Split | Store):
            name = stmt.src.buffer if isinstance(stmt, Store) else stmt.dst.buffer
            found[name] = max(found.get(name, 0), depth)
        for body in bodies(stmt):
            inner = loop_depths(body, depth + isinstance(stmt, For))
            found.update({name: max(found.get(name, 0), deep) for name, deep in inner.items()})
    return found


def columns(buffer: Buffer) -> int:
    """Of a matrix; 1 of a buffer in UB."""
    if buffer.cols is None:
        return 1
    assert isinstance(buffer.cols, Const)  # normalize has run
    return int(buffer.cols.value)


def room_for_buffers(body: Block, chip: Chip) -> int:
    """Bytes of UB, less what library functions take."""
    ops = (item for item in statements(body) if isinstance(item, Op))
    return chip.ub_bytes - (LIBRARY_BYTES if any(INTRINSICS[op.name].library for op in ops) else 0)


def buffer_bytes(buffer: Buffer, chip: Chip) -> int:
    """Bytes of one copy of the buffer; InitBuffer rounds up to whole blocks."""
    assert isinstance(buffer.length, Const)  # normalize has run
    raw = int(buffer.length.value) * columns(buffer) * buffer.dtype.bytes
    return -(-raw // chip.block_bytes) * chip.block_bytes
