"""What a kernel does: each statement becomes a function of a core once, however often it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from npusmith.ir.nodes import (
    ONE_ELEMENT,
    Alloc,
    Assign,
    Await,
    Combine,
    Deque,
    Enque,
    Expr,
    For,
    Free,
    If,
    Kernel,
    Load,
    Mmad,
    Op,
    Post,
    Split,
    Stage,
    StageKind,
    Stmt,
    Store,
    SyncCores,
)
from npusmith.ir.walk import Block, bodies, statements
from npusmith.lang.access import Accesses
from npusmith.lang.copies import Exchange, load, store
from npusmith.lang.core import Core, Step, Telling
from npusmith.lang.cube import CubeUnit, Sides
from npusmith.lang.lifetimes import FILLING, drains, fills
from npusmith.lang.memory import LocalBuffer
from npusmith.lang.scalars import Fail
from npusmith.lang.vector import VectorOp, set_element

Wait = Exchange | SyncCores | Await
Run = Callable[[Core], Iterator[Wait]]  # stops where the core waits for the others


class Steps:
    """Functions of the statements of one kernel, which all cores share."""

    def __init__(self, kernel: Kernel, accesses: Accesses, sides: Mapping[str, Sides]) -> None:
        self.kernel, self.accesses = kernel, accesses
        self.cube = CubeUnit(accesses, sides) if sides else None

    def new_buffers(self) -> dict[str, LocalBuffer]:
        """Those of one core."""
        return {
            item.name: LocalBuffer(
                item.name, item.dtype, self.accesses.lengths[item.name], item.depth,
                item.name in self.accesses.queued,
            )
            for item in self.kernel.buffers
        }  # fmt: skip

    def whole(self) -> Run:
        """The kernel from its first statement to its last."""
        body = self.waiting(self.kernel.body)

        def run(core: Core) -> Iterator[Wait]:
            yield from body(core)
            for buffer in core.buffers.values():
                buffer.finish(core.fail)

        return run

    # ---- statement lists

    def block(self, block: Block) -> Step:
        """A list in which cores do not wait."""
        steps = [(stmt, self._step(stmt)) for stmt in block]
        ends = self._ended(self._loaded(block))

        def run(core: Core) -> None:
            for stmt, step in steps:
                core.stmt = stmt
                step(core)
            for name in ends:
                core.buffers[name].only.poison()

        return run

    def waiting(self, block: Block) -> Run:
        """A list that may have barriers of all cores."""
        parts = [(stmt, self._wait(stmt) if _waits(stmt) else self._plain(stmt)) for stmt in block]
        ends = self._ended(self._loaded(block))

        def run(core: Core) -> Iterator[Wait]:
            for stmt, part in parts:
                core.stmt = stmt
                yield from part(core)
            for name in ends:
                core.buffers[name].only.poison()

        return run

    def _plain(self, stmt: Stmt) -> Run:
        step = self._step(stmt)

        def run(core: Core) -> Iterator[Wait]:
            step(core)
            return iter(())

        return run

    def _loaded(self, block: Block) -> set[str]:
        """What was loaded in a statement list ends with it."""
        return {
            name
            for stmt in block
            if isinstance(stmt, Stage) and stmt.kind in FILLING
            for name in fills(stmt)
        }

    def _ended(self, names: set[str]) -> list[str]:
        """Buffers whose lifetime follows from the text; those of queues have calls for it."""
        return sorted(names - self.accesses.queued)

    # ---- statements

    def _step(self, stmt: Stmt) -> Step:
        match stmt:
            case Assign(target, value):
                return self._assign(target, value)
            case For():
                return self._for(stmt)
            case If(cond, then, orelse):
                return self._if(cond, then, orelse)
            case Stage():
                return self._stage(stmt)
            case Op(name) if name == ONE_ELEMENT:
                return set_element(stmt, self.accesses)
            case Op():
                return VectorOp(stmt, self.accesses).run
            case Load() | Store() | Split() | Mmad() if self.cube is not None:
                return self.cube.step(stmt)
            case Load():
                return load(stmt, self.accesses)
            case Store():
                return store(stmt, self.accesses)
            case Alloc(name):
                return _queue(name, LocalBuffer.alloc)
            case Enque(name):
                return _queue(name, LocalBuffer.enque)
            case Deque(name):
                return _queue(name, LocalBuffer.deque)
            case Free(name):
                return _queue(name, LocalBuffer.free)
            case Post(flag):
                return _post(flag)
            case _:  # notes, barriers and events: statements run one after another anyway
                return lambda core: None

    def _assign(self, target: str, value: Expr) -> Step:
        read = self.accesses.scalars.value(value)

        def run(core: Core) -> None:
            core.names[target] = read(core)

        return run

    def _turns(self, stmt: For) -> Callable[[Core], range]:
        integer = self.accesses.scalars.integer
        first, end, step = integer(stmt.start), integer(stmt.stop), integer(stmt.step)

        def turns(core: Core) -> range:
            bounds = first(core), end(core), step(core)
            if bounds[2] < 1:
                raise core.fail("lang-divide", f"the loop's step is {bounds[2]}")
            return range(*bounds)

        return turns

    def _for(self, stmt: For) -> Step:
        turns, body, var = self._turns(stmt), self.block(stmt.body), stmt.var

        def run(core: Core) -> None:
            for turn in turns(core):
                core.names[var] = turn
                body(core)

        return run

    def _if(self, cond: Expr, then: Block, orelse: Block) -> Step:
        holds = self.accesses.scalars.value(cond)
        known = self.accesses.scalars.known
        if holds in known:  # a branch for other sizes than these
            return self.block(then if known[holds] else orelse)
        first, second = self.block(then), self.block(orelse)

        def run(core: Core) -> None:
            (first if holds(core) else second)(core)

        return run

    def _stage(self, stmt: Stage) -> Step:
        body = self.block(stmt.body)
        if stmt.kind is StageKind.COMPUTE:
            return body
        loads = stmt.kind in FILLING
        names = self._ended(set(fills(stmt) if loads else drains(stmt)))

        def poison(core: Core) -> None:
            for name in names:
                core.buffers[name].only.poison()

        first, second = (poison, body) if loads else (body, poison)

        def run(core: Core) -> None:
            first(core)
            second(core)

        return run

    # ---- barriers of all cores

    def _wait(self, stmt: Stmt) -> Run:
        match stmt:
            case Combine():
                return _stop(Exchange(stmt, self.accesses))
            case SyncCores():
                return _stop(stmt)
            case Await():
                return _await(stmt)
            case For():
                return self._waiting_for(stmt)
            case If(cond, then, orelse):
                return self._waiting_if(cond, then, orelse)
            case _:
                (body,) = bodies(stmt)
                return self.waiting(body)

    def _waiting_for(self, stmt: For) -> Run:
        turns, body, var = self._turns(stmt), self.waiting(stmt.body), stmt.var

        def run(core: Core) -> Iterator[Wait]:
            for turn in turns(core):
                core.names[var] = turn
                yield from body(core)

        return run

    def _waiting_if(self, cond: Expr, then: Block, orelse: Block) -> Run:
        holds = self.accesses.scalars.value(cond)
        known = self.accesses.scalars.known
        if holds in known:
            return self.waiting(then if known[holds] else orelse)
        first, second = self.waiting(then), self.waiting(orelse)
        return lambda core: (first if holds(core) else second)(core)


def _waits(stmt: Stmt) -> bool:
    return any(isinstance(item, Combine | SyncCores | Await) for item in statements((stmt,)))


def _stop(wait: Wait) -> Run:
    def run(core: Core) -> Iterator[Wait]:
        yield wait

    return run


def _post(flag: str) -> Step:
    return lambda core: _flags(core).post(flag)


def _await(stmt: Await) -> Run:
    def run(core: Core) -> Iterator[Wait]:
        flags = _flags(core)
        while not flags.is_posted(stmt.flag):
            yield stmt
            core.stmt = stmt
        flags.wait(stmt.flag)

    return run


def _flags(core: Core) -> Telling:
    if core.flags is None:
        raise core.fail("lang-flag", "no kernel runs beside this one")
    return core.flags


def _queue(name: str, act: Callable[[LocalBuffer, Fail], None]) -> Step:
    return lambda core: act(core.buffers[name], core.fail)
