"""Two programs of one operator as one: the quick one where a host variable is 1, else the other.

Both have the same tensors, and only one of them runs: the other's buffers are the quick one's
wherever it has one of the same use and type that is long enough. A name of a host variable means
one thing in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Buffer,
    Call,
    Choice,
    Const,
    Expr,
    Host,
    If,
    Load,
    Name,
    Note,
    Program,
    ScalarFn,
    Stmt,
    Store,
)
from npusmith.ir.text import show_expr
from npusmith.ir.walk import statements
from npusmith.lower.rebuild import map_operands, map_statements
from npusmith.plan.block import Part
from npusmith.plan.host import in_order
from npusmith.plan.names import renamed
from npusmith.plan.pack import rename

_CORES = "cores"


def either(test: str, quick: Program, other: Program, own_cores: bool = False) -> Program:
    """The program that runs `quick` where the host variable `test` is 1, and `other` elsewhere.

    On the cores of whichever has more work to share out, or each on its `own_cores`.
    """
    quick = _apart(quick, other)
    shared = _shared(quick, other)
    taken = {buffer.name for buffer in quick.kernel.buffers}
    shared |= {
        buffer.name: f"{buffer.name}_x"
        for buffer in other.kernel.buffers
        if buffer.name not in shared and buffer.name in taken
    }
    extra = [
        replace(buffer, name=shared.get(buffer.name, buffer.name))
        for buffer in other.kernel.buffers
        if shared.get(buffer.name) not in taken
    ]
    slow = rename(other.kernel.body, lambda name: shared.get(name, name))
    known = {tensor.name for tensor in other.kernel.tensors}
    work = [tensor for tensor in quick.kernel.tensors if tensor.name not in known]
    merged = replace(
        other.kernel,
        tensors=(*other.kernel.tensors, *work),
        scalars=tuple(dict.fromkeys((*quick.kernel.scalars, *other.kernel.scalars))),
        buffers=(*quick.kernel.buffers, *extra),
        body=(
            If(
                Binary(BinOp.EQ, Name(test), Const(1)),
                (Note(_served(test, quick.host)), *quick.kernel.body),
                (Note("all other shapes"), *slow),
            ),
        ),
    )
    consts = tuple(dict([*quick.consts, *other.consts]).items())
    return Program(consts, _host(test, quick.host, other.host, own_cores), (merged,), other.doc)


def _served(test: str, host: Host) -> str:
    """Which shapes the quick program is for: the test as the host function makes it."""
    value = _values(host.body)[test]
    if isinstance(value, Choice):
        value = value.cond
    return f"shapes with {show_expr(value)}"


# ------------------------------------------------------------------------------------------- names


def _apart(quick: Program, other: Program) -> Program:
    """`quick` with names of its own where constants or host variables mean something else."""
    own = {**{name: Const(value) for name, value in quick.consts}, **_values(quick.host.body)}
    known = {**{name: Const(value) for name, value in other.consts}, **_values(other.host.body)}
    own.pop(_CORES)
    new: dict[str, str] = {}
    more = True
    while more:
        more = False
        for name, value in own.items():
            if name in known and name not in new and renamed(value, new) != known[name]:
                new[name], more = f"{name}_short", True
    return _called(quick, new)


def _called(program: Program, new: Mapping[str, str]) -> Program:
    """The same with other names of constants and host variables."""
    host, kernel = program.host, program.kernel
    body = tuple(
        replace(stmt, target=new.get(stmt.target, stmt.target), value=renamed(stmt.value, new))
        for stmt in host.body
        if isinstance(stmt, Assign)
    )
    launch = program.host.launches[0]
    args = tuple((new.get(name, name), renamed(value, new)) for name, value in launch.args)
    return replace(
        program,
        consts=tuple((new.get(name, name), value) for name, value in program.consts),
        host=replace(host, body=body, launches=(replace(launch, args=args),)),
        kernels=(
            replace(
                kernel,
                scalars=tuple(replace(i, name=new.get(i.name, i.name)) for i in kernel.scalars),
                buffers=tuple(replace(i, length=renamed(i.length, new)) for i in kernel.buffers),
                body=map_statements(
                    kernel.body, lambda stmt: map_operands(stmt, lambda e: renamed(e, new))
                ),
            ),
        ),
    )


# ----------------------------------------------------------------------------------------- buffers


@dataclass(frozen=True, slots=True)
class _Use:
    """A buffer with the part that it plays and its length in elements."""

    buffer: Buffer
    part: Part
    length: int


def _shared(quick: Program, other: Program) -> dict[str, str]:
    """Buffers of `other` by the buffer of `quick` that they become; the longest choose first."""
    free = _uses(quick)
    found: dict[str, str] = {}
    for use in sorted(_uses(other), key=lambda item: -item.length):
        fitting = [
            item
            for item in free
            if (item.part, item.buffer.dtype) == (use.part, use.buffer.dtype)
            and item.length >= use.length
        ]
        if fitting:
            found[use.buffer.name] = fitting[0].buffer.name
            free.remove(fitting[0])
    return found


def _uses(program: Program) -> list[_Use]:
    body = program.kernel.body
    loaded = {stmt.dst.buffer for stmt in statements(body) if isinstance(stmt, Load)}
    stored = {stmt.src.buffer for stmt in statements(body) if isinstance(stmt, Store)}
    parts = {(True, False): Part.LOADED, (False, True): Part.STORED, (True, True): Part.THROUGH}
    return [
        _Use(
            buffer,
            parts.get((buffer.name in loaded, buffer.name in stored), Part.SCRATCH),
            length(buffer, program),
        )
        for buffer in program.kernel.buffers
    ]


def length(buffer: Buffer, program: Program) -> int:
    """Elements of a buffer of a program that the writer made."""
    return _length(buffer.length, dict(program.consts))


def _length(expr: Expr, consts: Mapping[str, int | float]) -> int:
    match expr:
        case Const(value):
            return int(value)
        case Name(name):
            return int(consts[name])
        case Binary(BinOp.FLOORDIV, left, right):
            return _length(left, consts) // _length(right, consts)
        case Binary(BinOp.MUL, left, right):
            return _length(left, consts) * _length(right, consts)
        case _:
            raise AssertionError(f"not a length that the writer makes: {expr}")


# -------------------------------------------------------------------------------------------- host


def _host(test: str, quick: Host, other: Host, own_cores: bool) -> Host:
    """Variables of both."""
    first, second = _values(quick.body), _values(other.body)
    mine, its = first.pop(_CORES), second.pop(_CORES, Const(1))
    cores: Expr = Call(ScalarFn.MAX, (mine, its))
    if own_cores:
        cores = Choice(Binary(BinOp.EQ, Name(test), Const(1)), mine, its)
    values = {**first, **second, _CORES: cores}
    args = dict([*quick.launch.args, *other.launch.args])
    launch = replace(other.launch, cores=Name(_CORES), args=tuple(args.items()))
    return replace(other, body=in_order(values), launches=(launch,))


def _values(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    return {stmt.target: stmt.value for stmt in body if isinstance(stmt, Assign)}
