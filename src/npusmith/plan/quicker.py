"""A quicker program for graphs of a known form, in front of the general one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Assign, For, Program
from npusmith.ir.walk import statements
from npusmith.plan.either import either, length
from npusmith.plan.matrices import write_matrices
from npusmith.plan.mixes import find_mix
from npusmith.plan.mixing import write_mix
from npusmith.plan.space import Space
from npusmith.target.chips import Chip

# Bytes of UB that the general program is written for when another stands before it: small tiles,
# because it runs at sizes that are not what the operator is for.
_SMALL = (8 * 1024, 12 * 1024, 16 * 1024, 24 * 1024, 32 * 1024)


def with_quicker(
    space: Space, outputs: Sequence[str], name: str, chip: Chip, general: Callable[[Chip], Program]
) -> Program | None:
    """The quicker program, or both in one, or None where the graph has no form that is known.

    `general` writes the general program for a chip; it may raise PlanError.
    """
    mix = find_mix(space, outputs)
    if mix is None and write_matrices(space, outputs, name, chip.ub_bytes, (), True) is None:
        return None
    other = _smallest(general, chip)
    if other is None:
        alone = write_matrices(space, outputs, name, chip.ub_bytes, (), True)
        return None if alone is None else alone[0]
    room, taken = chip.ub_bytes, set(_taken(other))
    while room > 0:
        if mix is None:
            found = write_matrices(space, outputs, name, room, taken, False)
        else:
            found = write_mix(space, mix, name, room, taken)
        if found is None:
            return None
        quick, test = found
        program = either(test, quick, other) if test else quick
        over = _bytes(program) - chip.ub_bytes
        if over <= 0:
            return program
        room -= over
    return None


def _bytes(program: Program) -> int:
    """What the buffers of a program take."""
    return sum(
        -(-length(buffer, program) * buffer.dtype.bytes // 32) * 32
        for buffer in program.kernel.buffers
    )


def _smallest(general: Callable[[Chip], Program], chip: Chip) -> Program | None:
    for room in _SMALL:
        if room > chip.ub_bytes:
            return None
        try:
            return general(replace(chip, ub_total_bytes=chip.ub_reserved_bytes + room))
        except PlanError as problem:
            if problem.code != "plan-ub":
                return None
    return None


def _taken(program: Program) -> Iterator[str]:
    """Names that have a meaning in a program."""
    kernel = program.kernel
    yield from (tensor.name for tensor in kernel.tensors)
    yield from (scalar.name for scalar in kernel.scalars)
    yield from (buffer.name for buffer in kernel.buffers)
    yield from (name for name, _ in program.consts)
    for stmt in (*program.host.body, *statements(kernel.body)):
        if isinstance(stmt, Assign):
            yield stmt.target
        if isinstance(stmt, For):
            yield stmt.var
