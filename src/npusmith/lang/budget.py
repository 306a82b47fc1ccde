"""Buffer lengths, and that all buffers fit in the unified buffer."""

from __future__ import annotations

from collections.abc import Mapping

from npusmith.ir.branches import branches
from npusmith.ir.nodes import Buffer, Program
from npusmith.ir.text import show_expr
from npusmith.lang.bounds import const_int
from npusmith.lang.log import Log
from npusmith.target.chips import Chip

Consts = Mapping[str, int | float]


def length_of(item: Buffer, consts: Consts) -> int | None:
    """The buffer's length in elements; None when it is not known before the run."""
    length = const_int(item.length, consts)
    return length if length is not None and length >= 1 else None


def bytes_of(item: Buffer, consts: Consts, chip: Chip) -> int:
    """Bytes that the buffer takes: whole blocks, as often as the program says."""
    raw = (length_of(item, consts) or 1) * item.dtype.bytes
    return -(-raw // chip.block_bytes) * chip.block_bytes * max(item.copies, 1)


def check_lengths(program: Program, file: str) -> Log:
    """Every length is a positive int of literals and constants."""
    log = Log(file, program.kernel.name)
    consts = dict(program.consts)
    for item in program.kernel.buffers:
        if length_of(item, consts) is None:
            value = const_int(item.length, consts)
            what = "is not a constant" if value is None else f"is {value}"
            message = f"the length of {item.name!r}, {show_expr(item.length)}, {what}"
            log.add("lang-buffer-length", message, item)
    return log


def _total(program: Program, consts: Consts, chip: Chip) -> int:
    """What the largest of the kernel's versions needs."""
    paths = branches(program).paths()
    return max(sum(bytes_of(item, consts, chip) for item in path) for path in paths)


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
    return log


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
