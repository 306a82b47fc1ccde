"""Two versions of a kernel: a schedule's form near the captured shapes, else the writer's.

before: the program of a schedule, and the one that the writer makes by itself
after:  `if near == 1: ... else: ...`, each with buffers of its own (ir/branches.py)
"""

from __future__ import annotations

from dataclasses import replace

from npusmith.ir.nodes import (
    Assign,
    Choice,
    Program,
)
from npusmith.ir.spec import OpSpec
from npusmith.plan.either import either
from npusmith.plan.near_shapes import NEAR, near, with_parameter
from npusmith.plan.scalars import ONE, ZERO


def versioned(first: Program, spec: OpSpec, other: Program) -> Program | None:
    """Both in one; None where they do not have the same tensors."""
    if (other.inputs, other.outputs) != (first.inputs, first.outputs):
        return None
    test = Assign(NEAR.id, Choice(near(spec), ONE, ZERO))
    host = replace(first.host, body=(test, *first.host.body))
    quick = with_parameter(replace(first, host=host), NEAR)
    return either(NEAR.id, quick, other, own_cores=True)
