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
    Buffer,
    Choice,
    Expr,
    Host,
    Launch,
    Name,
    Program,
    Scalar,
    Stmt,
)
from npusmith.ir.spec import OpSpec
from npusmith.lower import lower
from npusmith.lower.rebuild import map_children, map_operands, map_statements
from npusmith.plan.either import either
from npusmith.plan.near_shapes import NEAR, near
from npusmith.plan.scalars import ONE, ZERO
from npusmith.target.chips import Chip

_ROOM = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125)  # of UB, for the version of all other shapes
_KEPT = ("cores",)  # means the same in both


def versioned(
    first: Program, spec: OpSpec, own: Callable[[Chip], Program], chip: Chip
) -> Program | None:
    """Both in one; `own` writes the other for a chip. None where UB does not hold both."""
    wanted = _depths(first, chip)
    quick = _apart(first)
    test = Assign(NEAR.id, Choice(near(spec), ONE, ZERO))
    quick = _with_parameter(replace(quick, host=replace(quick.host, body=(test, *quick.host.body))))
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


def _with_parameter(program: Program) -> Program:
    """The kernel is told whether shapes are near."""
    kernel, launch = program.kernel, program.host.launch
    at = len(kernel.scalars)
    args = (*launch.args[:at], (NEAR.id, NEAR), *launch.args[at:])
    return replace(
        program,
        host=replace(program.host, launches=(replace(launch, args=args),)),
        kernels=(replace(kernel, scalars=(*kernel.scalars, Scalar(NEAR.id))),),
    )


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


def _apart(program: Program) -> Program:
    """With names of its own for constants and host variables."""
    host, kernel = program.host, program.kernel
    new = {name: f"{name}_NEAR" for name, _ in program.consts}
    new |= {
        stmt.target: f"{stmt.target}_near"
        for stmt in host.body
        if isinstance(stmt, Assign) and stmt.target not in _KEPT
    }
    scalars = [item.name for item in kernel.scalars]
    new |= {name: new.get(name, f"{name}_near") for name in scalars if name not in _KEPT}

    def expr(found: Expr) -> Expr:
        if isinstance(found, Name):
            return Name(new.get(found.id, found.id))
        return map_children(found, expr)

    def stmt(found: Stmt) -> Stmt:
        return map_operands(found, expr)

    def buffer(found: Buffer) -> Buffer:
        return replace(found, length=expr(found.length))

    launch = host.launch
    return replace(
        program,
        consts=tuple((new[name], value) for name, value in program.consts),
        host=Host(
            host.name, host.tensors, tuple(_renamed(item, new, expr) for item in host.body),
            (_launched(launch, new, expr),), host.doc, host.line,
        ),
        kernels=(
            replace(
                kernel,
                scalars=tuple(Scalar(new.get(name, name)) for name in scalars),
                buffers=tuple(buffer(item) for item in kernel.buffers),
                body=map_statements(kernel.body, stmt),
            ),
        ),
    )  # fmt: skip


def _renamed(stmt: Stmt, new: dict[str, str], expr: Callable[[Expr], Expr]) -> Stmt:
    assert isinstance(stmt, Assign)
    return replace(stmt, target=new.get(stmt.target, stmt.target), value=expr(stmt.value))


def _launched(launch: Launch, new: dict[str, str], expr: Callable[[Expr], Expr]) -> Launch:
    args = tuple((new.get(name, name), expr(value)) for name, value in launch.args)
    return replace(launch, cores=expr(launch.cores), args=args)
