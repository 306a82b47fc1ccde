"""What was tuned at the captured shapes applies near them: a test on the host decides.

`near` is 1 where no size of an input is more than twice, or less than half, what it was. Elsewhere
the program has the tile and the cores that the writer takes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Call,
    ChipFact,
    Choice,
    Const,
    Dim,
    Expr,
    Host,
    Name,
    Program,
    Scalar,
    ScalarFn,
    Stmt,
)
from npusmith.ir.rebuild import map_children, map_host, map_operands, map_statements
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names_read
from npusmith.plan.decisions import Decision
from npusmith.plan.host import TILE
from npusmith.plan.scalars import ONE, ZERO

NEAR, _TUNED, _SPAN, _MOST = Name("near"), Name("TUNED"), Name("span"), Name("most_cores")
_CORES = ChipFact("vector_cores")
_FACTOR = 2


def tuned(
    program: Program, spec: OpSpec, made: dict[str, Decision], everywhere: bool = False
) -> Program:
    """The program with the tile and the cores of a schedule near the captured shapes.

    before: `height = min(TILE // inner, fair)`, `cores = min(pieces, chip.vector_cores)`
    after:  `height = min(span // inner, fair)`, `cores = min(pieces, most_cores)`

    `everywhere`: without the test, as a search times them at shapes that are smaller.
    """
    found: dict[str, Expr] = {}
    if (cores := made.get("cores")) is not None and cores.value != cores.own:
        few = Call(ScalarFn.MIN, (_CORES, Const(_number(cores.value))))
        found[_MOST.id] = few if everywhere else _where_near(few, _CORES)
    tile, room = made.get("tile"), dict(program.consts).get(TILE.id)
    shorter = tile is not None and room is not None and _number(tile.value) < room
    if shorter:
        found[_SPAN.id] = _TUNED if everywhere else _where_near(_TUNED, TILE)
    if not found:
        return program
    if shorter and tile is not None:
        program = _with_span(program, _number(tile.value))
    host = program.host
    if _MOST.id in found:
        host = replaced_in_host(host, _CORES, _MOST)
    test = () if everywhere else (Assign(NEAR.id, Choice(near(spec), ONE, ZERO)),)
    chosen = tuple(Assign(name, value) for name, value in found.items())
    return replace(program, host=replace(host, body=(*test, *chosen, *host.body)))


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _where_near(value: Expr, other: Expr) -> Expr:
    return Choice(Binary(BinOp.EQ, NEAR, ONE), value, other)


def near(spec: OpSpec) -> Expr:
    """Whether every size is within the factor of the captured one; each shape is asked once."""
    ports = {port.shape: port for port in reversed(spec.inputs)}
    tests = [test for port in ports.values() for test in _tests(port.name, port.shape)]
    return reduce(
        lambda one, two: Binary(BinOp.AND, one, two), tests or [Binary(BinOp.EQ, ONE, ONE)]
    )


def _tests(name: str, shape: tuple[int, ...]) -> Iterator[Expr]:
    for axis, size in enumerate(shape):
        at = Dim(name, axis)
        yield Binary(BinOp.GE, at, Const(-(-size // _FACTOR)))
        yield Binary(BinOp.LE, at, Const(size * _FACTOR))


def _with_span(program: Program, tile: int) -> Program:
    """Tiles of `span` elements in buffers of TILE."""

    def changed(expr: Expr) -> Expr:
        return _SPAN if expr == TILE else map_children(expr, changed)

    def in_kernel(stmt: Stmt) -> Stmt:
        return map_operands(stmt, changed)

    kernel = program.kernel
    body = map_statements(kernel.body, in_kernel)
    shorter = replace(
        program, consts=(*program.consts, (_TUNED.id, tile)),
        host=replaced_in_host(program.host, TILE, _SPAN), kernels=(replace(kernel, body=body),),
    )  # fmt: skip
    return with_parameter(shorter, _SPAN) if _SPAN.id in names_read(body) else shorter


def with_parameter(program: Program, name: Name) -> Program:
    """The kernel gets a host variable as a parameter."""
    kernel, launch = program.kernel, program.host.launch
    at = len(kernel.scalars)
    args = (*launch.args[:at], (name.id, name), *launch.args[at:])
    return replace(
        program,
        host=replace(program.host, launches=(replace(launch, args=args),)),
        kernels=(replace(kernel, scalars=(*kernel.scalars, Scalar(name.id))),),
    )


def replaced_in_host(host: Host, old: Expr, new: Expr) -> Host:
    """With another expression wherever this one stands."""

    def changed(expr: Expr) -> Expr:
        return new if expr == old else map_children(expr, changed)

    return map_host(host, changed)
