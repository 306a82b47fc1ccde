"""Overlap copies with computing."""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import LowerError
from npusmith.ir.nodes import Buffer, Const, For, Load, Op, Program, Role, Store
from npusmith.ir.walk import Block, bodies, statements
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import INTRINSICS

MOST_PER_POSITION = 8  # event ids of one queue position on A2 (doc: TQue)
MOST_BUFFERS = 64  # of one TPipe, TBufs included (doc: TPipe)
LIBRARY_BYTES = 16 * 1024  # guess: scratch of the math library, which takes what is left of UB


def double_buffer(program: Program, chip: Chip) -> Program:
    """Give queues two buffers where they are filled or drained in a loop and UB has room.

    before: `xt` one buffer of 16 KB, loaded in a loop
    after:  `xt` two buffers of 16 KB: one is loaded while the other is computed on

    The deepest loop goes first, then the largest buffer. Where the program says how many `copies`
    there are, so many there are. UB that does not hold what is asked for is an error; 16 KB stay
    free where a library function needs scratch.
    """
    kernel = program.kernel
    limit = room_for_buffers(kernel.body, chip)
    used = sum(buffer_bytes(item, chip) * max(item.copies, 1) for item in kernel.buffers)
    if used > limit:
        raise LowerError(
            "lower-ub",
            f"the buffers need {used} B of the unified buffer",
            seen=", ".join(f"{item.name} {buffer_bytes(item, chip)} B" for item in kernel.buffers),
            legal=f"at most {limit} B on {chip.name}",
        )
    if len(kernel.buffers) > MOST_BUFFERS:
        raise LowerError(
            "lower-queues",
            f"{len(kernel.buffers)} buffers in one kernel",
            seen=str(len(kernel.buffers)),
            legal=f"at most {MOST_BUFFERS}",
        )
    queues = {role: [item for item in kernel.buffers if item.role is role] for role in _QUEUES}
    for role, items in queues.items():
        count = sum(max(item.copies, 1) for item in items)
        if count > MOST_PER_POSITION:
            raise LowerError("lower-queues", f"{count} buffers at {role.value}", seen=role.value)
    for item in kernel.buffers:
        if item.role not in _QUEUES and item.copies > 1:
            raise LowerError(
                "lower-queues", f"{item.copies} copies of {item.name!r}, which is scratch",
                seen=item.name, legal="copies of buffers that are loaded or stored",
            )  # fmt: skip
    doubled = _chosen(kernel.buffers, kernel.body, chip, limit - used)
    buffers = tuple(
        replace(item, depth=2 if item.name in doubled else max(item.copies, 1))
        for item in kernel.buffers
    )
    return replace(program, kernels=(replace(kernel, buffers=buffers),))


_QUEUES = (Role.VECIN, Role.VECOUT, Role.THROUGH)


def _chosen(buffers: tuple[Buffer, ...], body: Block, chip: Chip, room: int) -> set[str]:
    depths = _loop_depths(body)
    queued = [item for item in buffers if item.role in _QUEUES]
    slots = dict.fromkeys(_QUEUES, MOST_PER_POSITION)
    for item in queued:
        slots[item.role or Role.VECIN] -= max(item.copies, 1)
    chosen: set[str] = set()
    spare = MOST_BUFFERS - sum(max(item.copies, 1) for item in buffers)
    free = [item for item in queued if not item.copies]
    for item in sorted(
        free, key=lambda item: (-depths.get(item.name, 0), -buffer_bytes(item, chip))
    ):
        role = item.role or Role.VECIN
        if len(chosen) == spare:
            break
        if depths.get(item.name, 0) and slots[role] and buffer_bytes(item, chip) <= room:
            chosen.add(item.name)
            room -= buffer_bytes(item, chip)
            slots[role] -= 1
    return chosen


def _loop_depths(block: Block, depth: int = 0) -> dict[str, int]:
    """How many loops stand around the copies of each buffer."""
    found: dict[str, int] = {}
    for stmt in block:
        if isinstance(stmt, Load | Store):
            name = stmt.dst.buffer if isinstance(stmt, Load) else stmt.src.buffer
            found[name] = max(found.get(name, 0), depth)
        for body in bodies(stmt):
            inner = _loop_depths(body, depth + isinstance(stmt, For))
            found.update({name: max(found.get(name, 0), deep) for name, deep in inner.items()})
    return found


def room_for_buffers(body: Block, chip: Chip) -> int:
    """Bytes of UB, less what library functions take."""
    ops = (item for item in statements(body) if isinstance(item, Op))
    return chip.ub_bytes - (LIBRARY_BYTES if any(INTRINSICS[op.name].library for op in ops) else 0)


def buffer_bytes(buffer: Buffer, chip: Chip) -> int:
    """Bytes of one copy of the buffer; InitBuffer rounds up to whole blocks."""
    assert isinstance(buffer.length, Const)  # normalize has run
    raw = int(buffer.length.value) * buffer.dtype.bytes
    return -(-raw // chip.block_bytes) * chip.block_bytes
