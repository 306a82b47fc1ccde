"""How scalar variables flow through a kernel: what a stage takes, what it gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from npusmith.errors import LowerError, Place
from npusmith.ir.nodes import Alloc, Assign, Deque, For, If, Kernel, Role, Stage, Stmt
from npusmith.ir.walk import Block, bodies, mentioned, names, operands, statements


@dataclass(frozen=True, slots=True)
class StageCall:
    """One stage as a member function: its name (once it has one) and what crosses its border."""

    name: str
    stage: Stage
    takes: tuple[str, ...]  # variables that it only reads
    gives: tuple[str, ...]  # variables that it assigns and that are read elsewhere
    tensors: tuple[str, ...]  # buffers dequeued or allocated outside, passed in


def exposed(block: Block, known: frozenset[str] = frozenset()) -> set[str]:
    """Names that `block` may read before it assigns them itself."""
    return _exposed(block, set(known))


def _exposed(block: Block, known: set[str]) -> set[str]:
    found: set[str] = set()
    for stmt in block:
        found |= set().union(*map(names, operands(stmt))) - known
        match stmt:
            case Assign(target):
                known.add(target)
            case For(var):
                found |= _exposed(stmt.body, known | {var})
                known.discard(var)  # C++ scopes it to the loop
            case If(_, then, orelse):
                first, second = set(known), set(known)
                found |= _exposed(then, first) | _exposed(orelse, second)
                known |= first & second
            case Stage():
                found |= _exposed(stmt.body, known)
    return found


def assigned(block: Block) -> set[str]:
    """Names that `block` binds, loop variables included."""
    loops = {stmt.var for stmt in statements(block) if isinstance(stmt, For)}
    return loops | variables(block)


def variables(block: Block) -> set[str]:
    """Names that Assign statements of `block` bind."""
    return {stmt.target for stmt in statements(block) if isinstance(stmt, Assign)}


def check_loops(kernel: Kernel) -> None:
    """Raise lower-loop-variable where C++ scoping would differ from Python's."""
    loops = [stmt for stmt in statements(kernel.body) if isinstance(stmt, For)]
    for loop in loops:
        if loop.var in assigned(loop.body):
            raise _loop_error(loop, "is assigned in its loop")
    outside = exposed(kernel.body)
    for loop in loops:
        if loop.var in outside:
            raise _loop_error(loop, "is read outside of its loop")


def _loop_error(loop: For, what: str) -> LowerError:
    return LowerError(
        "lower-loop-variable", f"loop variable {loop.var!r} {what}", Place(line=loop.line)
    )


def stage_calls(kernel: Kernel) -> dict[int, StageCall]:
    """Every stage of the kernel by id(), with its member function."""
    stages = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Stage)]
    scalars = variables(kernel.body) | {
        stmt.var for stmt in statements(kernel.body) if isinstance(stmt, For)
    }
    outer = set(_read_outside(kernel.body))
    needs = [exposed(stage.body) for stage in stages]
    calls: dict[int, StageCall] = {}
    for index, stage in enumerate(stages):
        elsewhere = outer.union(*(need for at, need in enumerate(needs) if at != index))
        gives = variables(stage.body) & (elsewhere | needs[index])
        takes = (needs[index] & scalars) - gives
        calls[id(stage)] = StageCall(
            "",
            stage,
            _in_order(stage.body, takes),
            _in_order(stage.body, gives),
            _passed(stage, kernel),
        )
    return calls


def _read_outside(block: Block) -> Iterator[str]:
    """Names read by statements outside of stages."""
    for stmt in block:
        yield from (name for expr in operands(stmt) for name in names(expr))
        if not isinstance(stmt, Stage):
            for body in bodies(stmt):
                yield from _read_outside(body)


def _in_order(block: Block, wanted: set[str]) -> tuple[str, ...]:
    """`wanted` in the order in which `block` mentions them first."""
    seen: dict[str, None] = {}
    for stmt in statements(block):
        for expr in operands(stmt):
            seen.update(dict.fromkeys(name for name in names(expr) if name in wanted))
        if isinstance(stmt, Assign) and stmt.target in wanted:
            seen.setdefault(stmt.target)
    return tuple(seen)


def _passed(stage: Stage, kernel: Kernel) -> tuple[str, ...]:
    own = {stmt.buffer for stmt in statements(stage.body) if isinstance(stmt, Alloc | Deque)}
    used = dict.fromkeys(mentioned(stage.body))
    return tuple(
        name for name in used if name not in own and kernel.buffer(name).role is not Role.VECCALC
    )


# --------------------------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class Places:
    """Where the variables of one statement list are declared."""

    here: dict[int, list[str]]  # before (or by) the statement at this position
    below: dict[tuple[int, int], frozenset[str]]  # in that body of the statement there


def place_variables(block: Block, wanted: frozenset[str], calls: dict[int, StageCall]) -> Places:
    """Declare each of `wanted` in the innermost lists that hold all its uses."""
    here: dict[int, list[str]] = {}
    below: dict[tuple[int, int], frozenset[str]] = {}
    users: dict[str, list[int]] = {}
    for at, stmt in enumerate(block):
        for name in _touched(stmt, calls) & wanted:
            users.setdefault(name, []).append(at)
    inside = {at: _kept_inside(block[at]) for at in {*chain(*users.values())}}
    for name in sorted(users):
        if all(name in inside[at] for at in users[name]):
            for at in users[name]:
                for index, body in enumerate(bodies(block[at])):
                    if any(name in _touched(stmt, calls) for stmt in body):
                        below[at, index] = below.get((at, index), frozenset()) | {name}
        else:
            here.setdefault(users[name][0], []).append(name)
    return Places(here, below)


def _kept_inside(stmt: Stmt) -> set[str]:
    """The variables that live and die in the bodies of `stmt`, and in each turn of a loop."""
    if isinstance(stmt, Stage):
        return set()
    read = set().union(_own(stmt), *(exposed(body) for body in bodies(stmt)))
    return {name for body in bodies(stmt) for name in assigned(body)} - read


def _own(stmt: Stmt) -> set[str]:
    mine: set[str] = set().union(*map(names, operands(stmt)))
    return mine | ({stmt.target} if isinstance(stmt, Assign) else set())


def _touched(stmt: Stmt, calls: dict[int, StageCall]) -> set[str]:
    if isinstance(stmt, Stage) and id(stmt) in calls:
        call = calls[id(stmt)]
        return {*call.takes, *call.gives}
    found = _own(stmt)
    for body in bodies(stmt):
        for item in body:
            found |= _touched(item, calls)
    return found
