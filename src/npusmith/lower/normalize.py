"""Fold what is known at compile time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npusmith.errors import LowerError, Place
from npusmith.ir.nodes import Buffer, Const, Expr, Program, Stmt
from npusmith.ir.rebuild import Rewrite, map_host, map_operands, map_statements
from npusmith.ir.walk import names, operands, statements
from npusmith.lower.flow import assigned
from npusmith.lower.fold import evaluate, fold
from npusmith.lower.kinds import Kinds, float_buffers, host_kinds, infer, kernel_kinds
from npusmith.target.chips import Chip


def normalize(program: Program, chip: Chip) -> Program:
    """Fold int arithmetic on constants and give every buffer a literal length.

    before: `xt = ub(2 * TILE, float32)` ... `load(xt, x[row * 1 + 0], 4 * 8)`
    after:  `xt = ub(8192, float32)`     ... `load(xt, x[row], 32)`

    Floats are left alone: what they round to is decided when they run.
    """
    _check_names(program)
    host, kernel = program.host, program.kernel
    in_host = _folder(host_kinds(program), frozenset())
    in_kernel = _folder(kernel_kinds(program), float_buffers(program))
    consts = dict(program.consts)
    return replace(
        program,
        host=map_host(host, in_host),
        kernels=(
            replace(
                kernel,
                body=_map(kernel.body, in_kernel),
                buffers=tuple(_with_sides(item, consts) for item in kernel.buffers),
            ),
        ),
    )


def _check_names(program: Program) -> None:
    """Programs that were built from nodes have not been through lang.check."""
    kernel = program.kernel
    known = assigned(kernel.body) | {name for name, _ in program.consts}
    known |= {scalar.name for scalar in kernel.scalars}
    for stmt in statements(kernel.body):
        for name in (name for expr in operands(stmt) for name in names(expr)):
            if name not in known:
                place = Place(line=getattr(stmt, "line", 0))
                raise LowerError("lower-name", f"{name!r} has no value", place, seen=name)


def _folder(kinds: Kinds, floats: frozenset[str]) -> Rewrite:
    return lambda expr: fold(expr, lambda item: infer(item, kinds, floats))


def _map(body: tuple[Stmt, ...], rewrite: Rewrite) -> tuple[Stmt, ...]:
    return map_statements(body, lambda stmt: map_operands(stmt, rewrite))


def _with_sides(buffer: Buffer, consts: Mapping[str, int | float]) -> Buffer:
    length, named = _known(buffer, buffer.length, consts), buffer.named or buffer.length
    if buffer.cols is None:
        return replace(buffer, length=length, named=named)
    cols, named_cols = _known(buffer, buffer.cols, consts), buffer.named_cols or buffer.cols
    return replace(buffer, length=length, named=named, cols=cols, named_cols=named_cols)


def _known(buffer: Buffer, side: Expr, consts: Mapping[str, int | float]) -> Const:
    length = evaluate(side, consts)
    if length is None or length < 1:
        raise LowerError(
            "lower-length",
            f"the length of buffer {buffer.name!r} is not a positive int constant",
            Place(line=buffer.line),
            seen=str(side),
        )
    return Const(length)
