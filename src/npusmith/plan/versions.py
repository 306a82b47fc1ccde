"""Two versions of a kernel: a schedule's form near the captured shapes, else the writer's.

before: the program of a schedule, and the one that the writer makes by itself
after:  `if near == 1: ... else: ...`, with the buffers of the former, shared where they fit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from npusmith.errors import LowerError, PlanError
from npusmith.ir.nodes import (
    Assign,
    Choice,
    Program,
)
from npusmith.ir.spec import OpSpec
from npusmith.lower import lower
from npusmith.plan.either import either
from npusmith.plan.near_shapes import NEAR, near, with_parameter
from npusmith.plan.scalars import ONE, ZERO
from npusmith.target.chips import Chip

_ROOM = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125)  # of UB, for the version of all other shapes


def versioned(
    first: Program, spec: OpSpec, own: Callable[[Chip], Program], chip: Chip
) -> Program | None:
    """Both in one; `own` writes the other for a chip. None where UB does not hold both."""
    wanted = _depths(first, chip)
    test = Assign(NEAR.id, Choice(near(spec), ONE, ZERO))
    host = replace(first.host, body=(test, *first.host.body))
    quick = with_parameter(replace(first, host=host), NEAR)
    for other in _sized(own, chip):
        if (other.inputs, other.outputs) != (first.inputs, first.outputs):
            return None
        program = either(NEAR.id, quick, other, own_cores=True)
        try:
            found = _depths(program, chip)
        except LowerError as error:
            if error.code not in ("lower-ub", "lower-queues"):
                raise
            continue
        if all(found[name] >= depth for name, depth in wanted.items()):
            return program
    return None


def _depths(program: Program, chip: Chip) -> dict[str, int]:
    """How many there are of each buffer: double buffering must not suffer."""
    return {item.name: item.depth for item in lower(program, chip).kernel.buffers}


def _sized(own: Callable[[Chip], Program], chip: Chip) -> Iterator[Program]:
    """The writer's program, for less and less of UB."""
    for share in _ROOM:
        room = int(chip.ub_bytes * share) // 32 * 32
        try:
            yield own(replace(chip, ub_total_bytes=chip.ub_reserved_bytes + room))
        except PlanError:
            return
