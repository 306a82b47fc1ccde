"""Two programs of one operator as one: the quick one where a host variable is 1, else the other.

Both have the same tensors, and only one of them runs: each has the unified buffer to itself
(ir/branches.py). A name of a host variable, or of a buffer, means one thing in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

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
    TensorRole,
)
from npusmith.ir.text import show_expr
from npusmith.ir.walk import statements
from npusmith.lower.rebuild import map_operands, map_statements
from npusmith.plan.block import Part
from npusmith.plan.host import in_order
from npusmith.plan.names import renamed, retargeted
from npusmith.plan.pack import rename

_CORES = "cores"


def either(test: str, quick: Program, other: Program, own_cores: bool = False) -> Program:
    """The program that runs `quick` where the host variable `test` is 1, and `other` elsewhere.

    On the cores of whichever has more work to share out, or each on its `own_cores`.
    """
    quick, test = _apart(quick, other, test)
    mine = {use.buffer.name: use for use in _uses(quick)}
    uses = _uses(other)
    taken = {*mine, *(use.buffer.name for use in uses)}
    new = {
        use.buffer.name: _free(f"{use.buffer.name}_x", taken)
        for use in uses
        if use.buffer.name in mine and mine[use.buffer.name] != use
    }
    extra = [
        replace(use.buffer, name=new.get(use.buffer.name, use.buffer.name))
        for use in uses
        if mine.get(use.buffer.name) != use
    ]
    slow = rename(other.kernel.body, lambda name: new.get(name, name))
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


def _apart(quick: Program, other: Program, test: str) -> tuple[Program, str]:
    """`quick`, and its test, with names of their own where these mean something else in `other`.

    Names are of constants, host variables and workspace tensors.
    """
    own = {**{name: Const(value) for name, value in quick.consts}, **_values(quick.host.body)}
    known = {**{name: Const(value) for name, value in other.consts}, **_values(other.host.body)}
    own.pop(_CORES)
    taken = {*own, *known, *(item.name for item in (*quick.tensors, *other.tensors))}
    work = {item.name for item in other.tensors if item.role is TensorRole.SCRATCH}
    new = {
        item.name: _free(f"{item.name}_short", taken)
        for item in quick.tensors
        if item.role is TensorRole.SCRATCH and item.name in work
    }
    more = True
    while more:
        more = False
        for name, value in own.items():
            if name in known and name not in new and renamed(value, new) != known[name]:
                new[name], more = _free(f"{name}_short", taken), True
    return _called(quick, new), new.get(test, test)


def _free(name: str, taken: set[str]) -> str:
    """The name, with more behind it where that is taken; it is taken from now on."""
    found = next(item for i in count(1) if (item := name if i == 1 else f"{name}{i}") not in taken)
    taken.add(found)
    return found


def _called(program: Program, new: Mapping[str, str]) -> Program:
    """The same with other names of constants, host variables and workspace tensors."""
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
                tensors=tuple(replace(i, name=new.get(i.name, i.name)) for i in kernel.tensors),
                scalars=tuple(replace(i, name=new.get(i.name, i.name)) for i in kernel.scalars),
                buffers=tuple(replace(i, length=renamed(i.length, new)) for i in kernel.buffers),
                body=map_statements(
                    kernel.body,
                    lambda stmt: retargeted(map_operands(stmt, lambda e: renamed(e, new)), new),
                ),
            ),
        ),
    )


# ----------------------------------------------------------------------------------------- buffers


@dataclass(frozen=True, slots=True)
class _Use:
    """A buffer with the part that it plays."""

    buffer: Buffer
    part: Part


def _uses(program: Program) -> list[_Use]:
    body = program.kernel.body
    loaded = {stmt.dst.buffer for stmt in statements(body) if isinstance(stmt, Load)}
    stored = {stmt.src.buffer for stmt in statements(body) if isinstance(stmt, Store)}
    parts = {(True, False): Part.LOADED, (False, True): Part.STORED, (True, True): Part.THROUGH}
    return [
        _Use(buffer, parts.get((buffer.name in loaded, buffer.name in stored), Part.SCRATCH))
        for buffer in program.kernel.buffers
    ]


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
