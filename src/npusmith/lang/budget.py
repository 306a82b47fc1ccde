"""Buffer lengths, and that all buffers fit in their memories."""

from __future__ import annotations

import math
from collections.abc import Mapping

from npusmith.ir.branches import branches
from npusmith.ir.nodes import Buffer, Expr, Memory, Program
from npusmith.ir.text import show_expr
from npusmith.lang.bounds import const_int
from npusmith.lang.log import Log
from npusmith.target.chips import Chip
from npusmith.target.cube import PLACES, capacity

Consts = Mapping[str, int | float]


def length_of(item: Buffer, consts: Consts) -> int | None:
    """The buffer's length in elements; None when it is not known before the run."""
    sides = [const_int(side, consts) for side in sides_of(item)]
    known = [side for side in sides if side is not None and side >= 1]
    return math.prod(known) if len(known) == len(sides) else None


def sides_of(item: Buffer) -> tuple[Expr, ...]:
    """The length, or rows and columns of a matrix."""
    return (item.length,) if item.cols is None else (item.length, item.cols)


def bytes_of(item: Buffer, consts: Consts, chip: Chip) -> int:
    """Bytes that the buffer takes: whole blocks, as often as the program says."""
    raw = (length_of(item, consts) or 1) * item.dtype.bytes
    return -(-raw // chip.block_bytes) * chip.block_bytes * max(item.copies, 1)


def check_lengths(program: Program, file: str) -> Log:
    """Every length is a positive int of literals and constants."""
    log = Log(file, program.kernel.name)
    consts = dict(program.consts)
    for item in program.kernel.buffers:
        for side in sides_of(item):
            value = const_int(side, consts)
            if value is None or value < 1:
                what = "is not a constant" if value is None else f"is {value}"
                message = f"the length of {item.name!r}, {show_expr(side)}, {what}"
                log.add("lang-buffer-length", message, item)
    return log


def _total(program: Program, consts: Consts, chip: Chip, memory: Memory = Memory.UB) -> int:
    """What the largest of the kernel's versions needs of a memory."""
    paths = branches(program).paths()
    return max(
        sum(bytes_of(item, consts, chip) for item in path if item.memory is memory)
        for path in paths
    )


def check_budget(program: Program, chip: Chip, file: str) -> Log:
    """The sum of all buffers that are there together against what the chip has."""
    log = Log(file, program.kernel.name)
    consts = dict(program.consts)
    total = _total(program, consts, chip)
    if total > chip.ub_bytes:
        sizes = (f"{item.name} {bytes_of(item, consts, chip)}" for item in program.kernel.buffers)
        message = f"the buffers need {total} bytes: {', '.join(sizes)}"
        log.add(
            "lang-ub", message, program.kernel.line,
            legal=f"at most {chip.ub_bytes} bytes on {chip.name}",
            hint=_propose(program, consts, chip),
        )  # fmt: skip
    for memory in PLACES:
        if any(item.memory is memory for item in program.kernel.buffers):
            _check_memory(program, memory, consts, chip, log)
    return log


def _check_memory(program: Program, memory: Memory, consts: Consts, chip: Chip, log: Log) -> None:
    total, most = _total(program, consts, chip, memory), capacity(memory, chip)
    if total > most:
        buffers = [item for item in program.kernel.buffers if item.memory is memory]
        sizes = ", ".join(f"{item.name} {bytes_of(item, consts, chip)}" for item in buffers)
        log.add(
            "lang-capacity", f"the matrices in {memory.value} need {total} bytes: {sizes}",
            buffers[0], legal=f"at most {most} bytes on {chip.name}",
            hint="smaller tiles, or fewer copies",
        )  # fmt: skip


def _propose(program: Program, consts: Consts, chip: Chip) -> str:
    """The largest values of one constant with which the buffers fit."""
    best = ""
    most = 0
    for name, value in consts.items():
        if not isinstance(value, int) or value < 2:
            continue
        power = _largest(
            program, consts, chip, name, [1 << bit for bit in range(value.bit_length())]
        )
        block = _largest(program, consts, chip, name, range(64, value, 64))
        if max(power, block) > most:
            most = max(power, block)
            best = f"{name} = {power}" if power >= block else f"{name} = {power} or {block}"
    return best


def _largest(
    program: Program, consts: Consts, chip: Chip, name: str, values: range | list[int]
) -> int:
    """The largest of ascending `values` that fits; 0 when none does."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        trial = {**consts, name: values[middle]}
        known = all(length_of(item, trial) is not None for item in program.kernel.buffers)
        if not known or _total(program, trial, chip) <= chip.ub_bytes:
            low = middle + 1
        else:
            high = middle
    return values[low - 1] if low else 0
