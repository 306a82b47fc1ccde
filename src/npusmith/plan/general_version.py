"""One version of a program of several: the one for all sizes, without the tests that choose it.

before: `if brief == 1: (many rows in a tile) else: (rows of any length)`
after:  `(rows of any length)`, and a host function that computes no more than that needs

It serves every shape that the program serves, some of them slower. People and models read it as an
example: versions for special sizes hide what a kernel is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Const,
    Expr,
    Host,
    If,
    Kernel,
    Launch,
    Name,
    Note,
    Program,
    TensorRole,
)
from npusmith.ir.rebuild import map_children, map_host
from npusmith.ir.walk import Block, mentioned, names, names_read, statements, tensors
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind


def general_version(program: Program) -> Program:
    """The program with its last version alone: versions.py writes the one for all sizes last."""
    left: set[Expr] = set()
    kernels = []
    for kernel in program.kernels:
        body = kernel.body
        while (test := _choice(body)) is not None:
            left.add(test.cond)
            body = test.orelse
        if body is not kernel.body:  # what a version is does not matter where there is one
            body = tuple(stmt for stmt in body if not isinstance(stmt, Note))
        kernels.append(replace(kernel, body=body))
    if not left:
        return program
    kept = tuple(map(_used, kernels))
    host = _without(program.host, left)
    launches = tuple(_fitting(launch, kept) for launch in host.launches)
    host = _needed(replace(host, launches=launches))
    read = set(_read(host)) | {name for kernel in kept for name in _constants(kernel)}
    consts = tuple(row for row in program.consts if row[0] in read)
    return replace(program, consts=consts, host=host, kernels=kept)


def _choice(body: Block) -> If | None:
    """The test of sizes that is all of a body."""
    match [stmt for stmt in body if not isinstance(stmt, Note)]:
        case [If(cond, _, orelse) as test] if orelse and all(map(_is_told, _terms(cond))):
            return test
    return None


def _terms(cond: Expr) -> Iterator[Expr]:
    if isinstance(cond, Binary) and cond.op is BinOp.AND:
        yield from _terms(cond.left)
        yield from _terms(cond.right)
    else:
        yield cond


def _is_told(term: Expr) -> bool:
    """`brief == 1`: the host function has found out which version it is."""
    match term:
        case Binary(BinOp.EQ, Name(), Const(1)):
            return True
    return False


def _without(host: Host, left: set[Expr]) -> Host:
    """The host function where no test holds that chose another version."""

    def known(expr: Expr) -> Expr:
        return Const(False) if expr in left else map_children(expr, known)

    def settled(expr: Expr) -> Expr:
        return fold(known(expr), lambda _: Kind.FLOAT)

    return map_host(host, settled)


def _used(kernel: Kernel) -> Kernel:
    """Without parameters and buffers that the body does not mention."""
    held, read = set(mentioned(kernel.body)), names_read(kernel.body)
    moved = {name for stmt in statements(kernel.body) for name in tensors(stmt)}
    return replace(
        kernel,
        tensors=tuple(
            item for item in kernel.tensors
            if item.name in moved or item.role is not TensorRole.SCRATCH
        ),
        scalars=tuple(item for item in kernel.scalars if item.name in read),
        buffers=tuple(item for item in kernel.buffers if item.name in held),
    )  # fmt: skip


def _fitting(launch: Launch, kernels: tuple[Kernel, ...]) -> Launch:
    """A launch with what its kernel still takes."""
    kernel = next(item for item in kernels if item.name == launch.kernel)
    bound = dict(launch.tensors)
    taken = {item.name for item in kernel.scalars} | {item.name for item in kernel.tensors}
    taken |= {bound.get(name, name) for name in taken}
    return replace(
        launch,
        args=tuple(row for row in launch.args if row[0] in taken),
        tensors=tuple(row for row in launch.tensors if row[0] in taken),
        parts=tuple(row for row in launch.parts if row[0] in taken),
    )


def _needed(host: Host) -> Host:
    """Without host variables that nothing reads."""
    read = {name for expr in _launched(host) for name in names(expr)}
    kept: list[Assign] = []
    for stmt in reversed(host.body):
        if isinstance(stmt, Assign) and stmt.target in read:
            kept.append(stmt)
            read |= set(names(stmt.value))
    return replace(host, body=tuple(reversed(kept)))


def _launched(host: Host) -> Iterator[Expr]:
    for launch in host.launches:
        yield from launch.numbers
        yield from (part.start for _, part in launch.parts)


def _read(host: Host) -> Iterator[str]:
    exprs = [stmt.value for stmt in host.body if isinstance(stmt, Assign)]
    for expr in (*exprs, *_launched(host)):
        yield from names(expr)


def _constants(kernel: Kernel) -> Iterator[str]:
    yield from names_read(kernel.body)
    for buffer in kernel.buffers:
        for expr in (buffer.length, *([buffer.cols] if buffer.cols is not None else [])):
            yield from names(expr)
