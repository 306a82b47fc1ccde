"""What of a program's schedule can be turned: each parameter stands in the text of the program.

`Schedule` names values; `turned(program, schedule)` is the program with them. Every one of them
leaves the meaning of the program as it is: which elements are computed together, and where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Buffer,
    Call,
    ChipFact,
    Choice,
    Const,
    CoreCount,
    CoreId,
    Expr,
    For,
    Host,
    If,
    Launch,
    Load,
    Name,
    Negate,
    Program,
    ScalarFn,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.walk import names_read, statements

TILES = ("STACK", "TILE")  # constants for the elements of a tile: the first that a program has
_UNIT = 64  # elements that the writer's host function rounds a tile up to


@dataclass(frozen=True, slots=True)
class Schedule:
    """The parameters of one candidate; None: as the writer left it."""

    tile: int | None
    cores: int | None = None
    copies: int | None = None  # of every buffer that is loaded or stored
    lines: int | None = None  # rows of a tile, where rows are short
    unit: int | None = None  # elements that tiles of dealt work are multiples of
    in_turn: bool = False  # pieces of work are dealt out like cards, not by the block

    @property
    def words(self) -> str:
        parts = (
            (self.tile is not None, f"tile {self.tile}"),
            (self.lines is not None, f"{self.lines} rows"),
            (self.copies is not None, f"{self.copies} copies of a buffer"),
            (self.unit is not None, f"tiles of whole {self.unit} elements"),
            (self.in_turn, "pieces dealt in turn"),
            (self.cores is not None, f"at most {self.cores} cores"),
        )
        return ", ".join(text for given, text in parts if given) or "as written"


def tile_of(program: Program) -> int | None:
    """The elements of a tile, if the program has a constant for them."""
    found = dict(program.consts)
    values = (found[name] for name in TILES if name in found)
    value = next(values, None)
    return value if isinstance(value, int) else None


def lines_of(program: Program) -> int | None:
    """The most rows of a tile, where rows are short."""
    value = dict(program.consts).get("LINES")
    return value if isinstance(value, int) else None


def turned(program: Program, schedule: Schedule) -> Program | None:
    """The program with these parameters; None where it lacks one, or they do not go together."""
    changes: tuple[tuple[bool, Callable[[Program], Program | None]], ...] = (
        (
            schedule.tile not in (None, tile_of(program)),
            lambda found: _with_tile(found, schedule.tile or 0),
        ),
        (schedule.lines is not None, lambda found: _with_lines(found, schedule.lines or 0)),
        (schedule.copies is not None, lambda found: _with_copies(found, schedule.copies or 0)),
        (schedule.unit is not None, lambda found: _with_unit(found, schedule.unit or 0)),
        (schedule.in_turn, _in_turn),
        (schedule.cores is not None, lambda found: _with_cores(found, schedule.cores or 0)),
    )
    found: Program | None = program
    for wanted, change in changes:
        if wanted and found is not None:
            found = change(found)
    return found


# ------------------------------------------------------------------------------------- tiles, rows


def _with_tile(program: Program, tile: int) -> Program | None:
    consts = dict(program.consts)
    name = next(name for name in TILES if name in consts)
    if name == "STACK":
        lines, before = int(consts["LINES"]), int(consts["STACK"])
        consts["LINES"] = max(-(-lines * tile // before // 64) * 64, 64)
    elif "FOLDS" in consts:
        if tile & (tile - 1):
            return None  # products are folded by halves
        consts["FOLDS"] = (tile // 8).bit_length() - 1
    consts[name] = tile
    return replace(program, consts=tuple(consts.items()))


def _with_lines(program: Program, lines: int) -> Program | None:
    consts = dict(program.consts)
    if "LINES" not in consts:
        return None
    return replace(program, consts=tuple((consts | {"LINES": lines}).items()))


def _with_unit(program: Program, unit: int) -> Program | None:
    """Tiles of dealt work in other steps than the writer's (plan/host.py)."""
    tile = dict(program.consts).get("TILE")
    if not isinstance(tile, int) or tile % unit:
        return None  # rounding up could pass the end of the buffers
    host = program.host
    body = tuple(_stepped(stmt, unit) for stmt in host.body)
    return None if body == host.body else replace(program, host=replace(host, body=body))


def _stepped(stmt: Stmt, unit: int) -> Stmt:
    match stmt:
        case Assign(name, Call(ScalarFn.ALIGN_UP, (length, Const(step)))) if (
            step == _UNIT and name.rstrip("0123456789") == "tile"
        ):
            return replace(stmt, value=Call(ScalarFn.ALIGN_UP, (length, Const(unit))))
        case _:
            return stmt


# ---------------------------------------------------------------------------------------- buffers


def _with_copies(program: Program, copies: int) -> Program:
    kernel = program.kernel
    wanted = queued(program)

    def changed(item: Buffer) -> Buffer:
        return replace(item, copies=copies) if item.name in wanted else item

    return replace(program, kernels=(replace(kernel, buffers=tuple(map(changed, kernel.buffers))),))


def queued(program: Program) -> frozenset[str]:
    """Buffers that are loaded or stored."""
    found = list(statements(program.kernel.body))
    loaded = {stmt.dst.buffer for stmt in found if isinstance(stmt, Load)}
    return frozenset(loaded | {stmt.src.buffer for stmt in found if isinstance(stmt, Store)})


# ---------------------------------------------------------------------------------------- dealing


def _in_turn(program: Program) -> Program | None:
    """Piece i goes to core i % cores, where every core had a block of pieces.

    before: `first = core_id() * share`, `for piece in range(first, min(first + share, pieces))`
    after:  `for piece in range(core_id(), pieces, core_count())`

    Not where cores wait for each other: what they hand on may depend on the order of pieces.
    """
    kernel = program.kernel
    if any(isinstance(stmt, SyncCores) for stmt in statements(kernel.body)):
        return None
    body = _dealt(kernel.body)
    if body == kernel.body:
        return None
    read = names_read(body)
    scalars = tuple(item for item in kernel.scalars if item.name in read)
    kept = {item.name for item in scalars} | {item.name for item in kernel.tensors}
    launch = program.host.launch
    launch = replace(launch, args=tuple(pair for pair in launch.args if pair[0] in kept))
    return replace(
        program,
        host=replace(program.host, launches=(launch,)),
        kernels=(replace(kernel, scalars=scalars, body=body),),
    )


def _dealt(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case If():
                stmt = replace(stmt, then=_dealt(stmt.then), orelse=_dealt(stmt.orelse))
            case For(start=Name("first")) if _by_blocks(stmt) and _starts(result):
                del result[_starts(result)[-1]]
                pieces = stmt.stop.args[1]  # type: ignore[union-attr]
                stmt = replace(stmt, start=CoreId(), stop=pieces, step=CoreCount())
            case _:
                pass
        result.append(stmt)
    return tuple(result)


def _starts(before: list[Stmt]) -> list[int]:
    """Where `first` is set to the first piece of a core."""
    return [
        i
        for i, stmt in enumerate(before)
        if isinstance(stmt, Assign) and stmt.target == "first" and _is_share(stmt.value)
    ]


def _is_share(value: Expr) -> bool:
    return isinstance(value, Binary) and value.op is BinOp.MUL and value.left == CoreId()


def _by_blocks(loop: For) -> bool:
    """Whether a loop goes over a core's block of pieces and its body does not ask which."""
    match loop.stop:
        case Call(ScalarFn.MIN, (Binary(BinOp.ADD, Name("first"), _), _)):
            return loop.step == Const(1) and "first" not in names_read(loop.body)
        case _:
            return False


# ------------------------------------------------------------------------------------------ cores


def _with_cores(program: Program, most: int) -> Program:
    """As if the chip had at most so many vector cores."""
    host: Host = program.host
    body = tuple(
        replace(stmt, value=_capped(stmt.value, most)) if isinstance(stmt, Assign) else stmt
        for stmt in host.body
    )
    launches = tuple(
        Launch(
            launch.kernel,
            _capped(launch.cores, most),
            tuple((name, _capped(value, most)) for name, value in launch.args),
            launch.line,
        )
        for launch in host.launches
    )
    return replace(program, host=replace(host, body=body, launches=launches))


def _capped(expr: Expr, most: int) -> Expr:
    inner = partial(_capped, most=most)
    match expr:
        case ChipFact("vector_cores"):
            return Call(ScalarFn.MIN, (expr, Const(most)))
        case Binary():
            return replace(expr, left=inner(expr.left), right=inner(expr.right))
        case Negate(value):
            return Negate(inner(value))
        case Call():
            return replace(expr, args=tuple(inner(item) for item in expr.args))
        case Choice():
            return Choice(inner(expr.cond), inner(expr.then), inner(expr.other))
        case _:
            return expr
