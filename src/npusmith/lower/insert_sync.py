"""Order what queues do not order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from npusmith.ir.nodes import (
    Alloc,
    Assign,
    Barrier,
    Deque,
    Enque,
    Event,
    For,
    Free,
    If,
    Load,
    Op,
    Post,
    Program,
    Role,
    Stmt,
    Store,
    SyncCores,
    TensorRole,
)
from npusmith.ir.rebuild import with_bodies, with_body
from npusmith.ir.walk import Block, bodies, names, statements, values
from npusmith.lower.flow import assigned
from npusmith.lower.rows import Place, places, rowwise
from npusmith.lower.usage import hidden, read, written
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import INTRINSICS, Form, Operand

_NONE: frozenset[str] = frozenset()
_NOWHERE: frozenset[Place] = frozenset()
_BARRIER = Barrier("V")
_SEEN, _ARRIVED = Event("V", "S"), Event("MTE2", "S")
_NO_WAITS: Counter[Stmt] = Counter()


def insert_sync(program: Program, chip: Chip) -> Program:
    """Insert events and barriers so that the kernel is right with the compiler's auto-sync off.

    before: `reduce_max(part, xt, tmp, n)`  `top = value(part)`  `duplicate(part, top, 8)`
    after:  `reduce_max(...)`  V->S  `top = value(part)`  S->V  `duplicate(...)`

    - vector instructions that depend on each other, or share scratch that no operand names:
      PipeBarrier<PIPE_V>
    - a scalar read after the vector unit wrote, a scalar write after it read or wrote: V->S; a
      vector write after a scalar read, a vector read or write after a scalar write: S->V
    - a scalar read of what a copy has just brought: MTE2->S, without the vector unit
    - workspace stored and loaded again by one core: MTE3->MTE2, and MTE2->MTE3 the other way
    - stores that may overlap on the store pipe: PipeBarrier<PIPE_MTE3>
    - on cube cores, whose stores are Fixpipe's, FIX in place of MTE3
    - everything has to be done before a core waits for the others: PipeBarrier<PIPE_ALL>
    - a flag is set by the pipe that stores: MTE2->MTE3 where workspace has been loaded before it
    """
    body, out = program.kernel.body, "FIX" if program.kernel.is_cube else "MTE3"
    loaded = {item.src.tensor for item in statements(body) if isinstance(item, Load)}
    stored = {item.dst.tensor for item in statements(body) if isinstance(item, Store)}
    posts = any(isinstance(item, Post) for item in statements(body))
    scratch = {item.name for item in program.kernel.tensors if item.role is TensorRole.SCRATCH}
    shared = loaded & (stored | scratch) if posts else loaded & stored
    filled = frozenset(item.name for item in program.kernel.buffers if item.role is Role.VECIN)
    sync = _Sync(frozenset(shared), filled, out)
    return with_body(program, sync.run(body, _State())[0])


class _State(NamedTuple):
    """What has been issued since the last event or barrier that orders it."""

    vector_writes: frozenset[Place] = _NOWHERE  # since the last V barrier
    vector_reads: frozenset[Place] = _NOWHERE
    unseen: frozenset[str] = _NONE  # buffers that the scalar unit may not read yet
    copied: frozenset[str] = _NONE  # ... of these, those that only a copy fills
    in_use: frozenset[str] = _NONE  # buffers that the vector unit reads, since the last V->S event
    scalar_reads: frozenset[str] = _NONE  # buffers, since the last S->V event
    scalar_writes: frozenset[str] = _NONE
    stored: frozenset[str] = _NONE  # tensors, since the last MTE3->MTE2 event
    loaded: frozenset[str] = _NONE  # tensors, since the last MTE2->MTE3 event
    stores: frozenset[int] = frozenset()  # statements, since the last MTE3 barrier

    def join(self, other: _State) -> _State:
        return _State(
            self.vector_writes | other.vector_writes,
            self.vector_reads | other.vector_reads,
            self.unseen | other.unseen,
            (self.copied & other.copied)
            | (self.copied - other.unseen)
            | (other.copied - self.unseen),
            self.in_use | other.in_use,
            self.scalar_reads | other.scalar_reads,
            self.scalar_writes | other.scalar_writes,
            self.stored | other.stored,
            self.loaded | other.loaded,
            self.stores | other.stores,
        )


@dataclass(frozen=True, slots=True)
class _Touches:
    """What one statement itself reads and writes, and on behalf of which unit."""

    scalar_reads: frozenset[str]
    scalar_writes: frozenset[str]  # the buffer of which it writes one element
    # queues stand for the pipes behind them: what is given back or handed on is used by these, and
    # the queue's own events make them wait for the vector unit
    vector_written: frozenset[str]
    vector_used: frozenset[str]
    is_vector: bool = False
    writes: frozenset[Place] = _NOWHERE
    reads: frozenset[Place] = _NOWHERE
    read_buffers: frozenset[str] = _NONE
    clobbered: frozenset[str] = _NONE  # written buffers, and what no operand names

    @property
    def scalar(self) -> frozenset[str]:
        return self.scalar_reads | self.scalar_writes


def _touches(stmt: Stmt) -> _Touches:
    by_value = frozenset(view.buffer for view in values(stmt))
    match stmt:
        case Op():
            into = frozenset(view.buffer for view in written(stmt))
            if not _is_vector(stmt):
                return _Touches(by_value, into, _NONE, _NONE)
            sources, behind = frozenset(view.buffer for view in read(stmt)), hidden(stmt)
            return _Touches(
                by_value, _NONE, into, into | sources, True,
                writes=places(stmt, (Operand.DST, Operand.TMP)) | {Place(name) for name in behind},
                reads=places(stmt, (Operand.SRC, Operand.MASK, Operand.INDEX)),
                read_buffers=sources, clobbered=into | behind,
            )  # fmt: skip
        case Free(buffer):
            return _Touches(by_value, _NONE, frozenset((buffer,)), frozenset((buffer,)))
        case Enque(buffer):
            return _Touches(by_value, _NONE, _NONE, frozenset((buffer,)))
        case _:
            return _Touches(by_value, _NONE, _NONE, _NONE)


class _Sync:
    """Walks the kernel in program order.

    `shared` names tensors both loaded and stored, and workspace that is loaded before a post;
    `loaded` the buffers of queues that loads fill,
    `out` the pipe that stores.
    """

    def __init__(self, shared: frozenset[str], loaded: frozenset[str], out: str) -> None:
        self.shared, self.loaded = shared, loaded
        self.out, self.stored = out, Barrier(out)
        self.loops: list[set[str]] = []  # names that change in each loop around here
        self.store: dict[int, Store] = {}
        # a loop is walked several times from one state while the loops around it settle
        self.walked: dict[tuple[int, _State], tuple[Stmt, _State]] = {}
        self.known: dict[int, _Touches] = {}
        self.scalars: dict[int, frozenset[str]] = {}  # the same for all inside of a loop
        self.ordering: dict[int, tuple[Stmt, Counter[Stmt]]] = {}  # by id(), which stays taken

    def run(self, block: Block, state: _State) -> tuple[Block, _State]:
        result: list[Stmt] = []
        for stmt in block:
            before, state = self._before(stmt, state)
            if not (scalar := self._touches(stmt).scalar_reads) <= state.scalar_reads:
                state = state._replace(scalar_reads=state.scalar_reads | scalar)
            if isinstance(stmt, For) and self._seen_before(stmt, state):
                event, state = _scalar_waits(self._by_scalar(stmt), _NONE, state)
                before.append(event)
            if isinstance(stmt, For):
                for barrier in (_BARRIER, self.stored):
                    through = _through(barrier, state)
                    if through != state and self._better_before(stmt, barrier, state, through):
                        before.append(barrier)
                        state = through
            inside, state = self._inside(stmt, state)
            result += [*before, inside]
        return tuple(result), state

    def _touches(self, stmt: Stmt) -> _Touches:
        found = self.known.get(id(stmt))
        if found is None:
            found = self.known[id(stmt)] = _touches(stmt)
        return found

    def _by_scalar(self, loop: For) -> frozenset[str]:
        """Buffers whose elements the scalar unit reads or writes anywhere in a loop."""
        found = self.scalars.get(id(loop))
        if found is None:
            inside = statements((loop,))
            found = _NONE.union(*(self._touches(item).scalar for item in inside))
            self.scalars[id(loop)] = found
        return found

    def _inside(self, stmt: Stmt, state: _State) -> tuple[Stmt, _State]:
        match stmt:
            case For():
                return self._loop(stmt, state)
            case If():
                then, after_then = self.run(stmt.then, state)
                orelse, after_else = self.run(stmt.orelse, state)
                return with_bodies(stmt, (then, orelse)), after_then.join(after_else)
            case _ if bodies(stmt):
                body, state = self.run(bodies(stmt)[0], state)
                return with_bodies(stmt, (body,)), state
            case _:
                return stmt, self._after(stmt, state)

    def _loop(self, stmt: For, state: _State) -> tuple[Stmt, _State]:
        """What is outstanding at the loop's head is what was before it, or what a turn leaves."""
        key = (id(stmt), state)
        if key not in self.walked:
            self.walked[key] = self._turns(stmt, state)
        return self.walked[key]

    def _turns(self, stmt: For, state: _State) -> tuple[Stmt, _State]:
        self.loops.append(assigned(stmt.body) | {stmt.var})
        apart = rowwise(stmt)  # a turn does not touch what another turn touches there
        changed = self.loops[-1]
        head = _moved(state, changed)
        while (joined := head.join(_drop(self._turn(stmt, head)[1], apart))) != head:
            head = joined
        body, end = self._turn(stmt, head)
        self.loops.pop()
        return with_bodies(stmt, (body,)), head.join(end)

    def _turn(self, stmt: For, head: _State) -> tuple[Block, _State]:
        body, end = self.run(stmt.body, head)
        return body, _moved(end, self.loops[-1])

    def _better_before(self, stmt: For, barrier: Barrier, state: _State, through: _State) -> bool:
        """Does one barrier before the loop save one in every turn?"""
        now = self._count(self._loop(stmt, state)[0])[barrier]
        return now > 0 and self._count(self._loop(stmt, through)[0])[barrier] < now

    def _seen_before(self, stmt: For, state: _State) -> bool:
        """Does one wait of the scalar unit before the loop save one in every turn?"""
        touched = self._by_scalar(stmt)
        if not touched & (state.unseen | state.in_use):
            return False
        after = _scalar_waits(touched, _NONE, state)[1]
        now = self._waits(stmt, state)
        return now > 0 and self._waits(stmt, after) < now

    def _waits(self, stmt: For, state: _State) -> int:
        """How often the scalar unit waits in a loop that is entered so."""
        found = self._count(self._loop(stmt, state)[0])
        return found[_SEEN] + found[_ARRIVED]

    def _count(self, stmt: Stmt) -> Counter[Stmt]:
        """Events and barriers in a statement, without regard to how often loops turn."""
        if isinstance(stmt, Event | Barrier):
            return Counter((stmt,))
        inner = bodies(stmt)
        if not inner:
            return _NO_WAITS
        known = self.ordering.get(id(stmt))
        if known is None:
            total: Counter[Stmt] = Counter()
            for body in inner:
                for item in body:
                    total.update(self._count(item))
            known = self.ordering[id(stmt)] = (stmt, total)
        return known[1]

    def _before(self, stmt: Stmt, state: _State) -> tuple[list[Stmt], _State]:
        """The events and barriers that `stmt` needs, and the state once they are through."""
        needed: list[Stmt] = []
        its = self._touches(stmt)
        changed, touched = its.scalar_writes, its.scalar
        if touched & state.unseen or changed & state.in_use:
            event, state = _scalar_waits(touched, changed, state)
            needed.append(event)
        if its.vector_written & state.scalar_reads or its.vector_used & state.scalar_writes:
            needed.append(Event("S", "V"))
            state = state._replace(scalar_reads=_NONE, scalar_writes=_NONE)
        if its.is_vector and _depends(its, state):
            needed.append(_BARRIER)
            state = _through(_BARRIER, state)
        if isinstance(stmt, Load) and stmt.src.tensor in state.stored:
            needed.append(Event(self.out, "MTE2"))
            state = state._replace(stored=_NONE)
        if isinstance(stmt, Store):
            if stmt.dst.tensor in state.loaded:
                needed.append(Event("MTE2", self.out))
                state = state._replace(loaded=_NONE)
            if any(self._overlaps(stmt, key) for key in state.stores):
                needed.append(self.stored)
                state = _through(self.stored, state)
        if isinstance(stmt, Post) and state.loaded:
            needed.append(Event("MTE2", self.out))
            state = state._replace(loaded=_NONE)
        if isinstance(stmt, SyncCores):
            needed.append(Barrier("ALL"))
            state = _State()
        return needed, state

    def _after(self, stmt: Stmt, state: _State) -> _State:
        """What `stmt` itself leaves outstanding."""
        its = self._touches(stmt)
        match stmt:
            case Op() if not its.is_vector:
                return state._replace(scalar_writes=state.scalar_writes | its.scalar_writes)
            case Op():
                return state._replace(
                    vector_writes=state.vector_writes | its.writes,
                    vector_reads=state.vector_reads | its.reads,
                    unseen=state.unseen | its.clobbered,
                    copied=state.copied - its.clobbered,
                    in_use=state.in_use | its.read_buffers,
                )
            case Alloc(buffer) | Deque(buffer):
                # the queue's own events order what the vector unit did to it in its last life
                fresh = frozenset((buffer,))
                return _drop(state, fresh)._replace(
                    unseen=state.unseen | fresh,
                    copied=state.copied | (fresh & self.loaded),
                )
            case Assign(target):
                return _moved(state, {target})
            case Load():
                return state._replace(loaded=state.loaded | (self.shared & {stmt.src.tensor}))
            case Store():
                self.store[id(stmt)] = stmt
                return state._replace(
                    stored=state.stored | (self.shared & {stmt.dst.tensor}),
                    stores=state.stores | {id(stmt)},
                )
            case _:
                return state

    def _overlaps(self, stmt: Store, key: int) -> bool:
        """May `stmt` write what the outstanding store `key` writes, where order matters?"""
        other = self.store[key]
        if other.dst.tensor != stmt.dst.tensor:
            return False
        if stmt.atomic is not None and stmt.atomic is other.atomic:
            return False
        if other is not stmt:
            return True
        moving = set(names(stmt.dst.offset))
        return any(not moving & changed for changed in self.loops)


def _through(barrier: Barrier, state: _State) -> _State:
    """What is outstanding behind a barrier."""
    if barrier == _BARRIER:
        return state._replace(vector_writes=_NOWHERE, vector_reads=_NOWHERE)
    return state._replace(stores=frozenset())


def _drop(state: _State, buffers: frozenset[str]) -> _State:
    return state._replace(
        vector_writes=frozenset(item for item in state.vector_writes if item.buffer not in buffers),
        vector_reads=frozenset(item for item in state.vector_reads if item.buffer not in buffers),
    )


def _moved(state: _State, changed: set[str]) -> _State:
    """Rows are anywhere once the names have other values that say where they are."""

    def known(all_of: frozenset[Place]) -> frozenset[Place]:
        if not any(place.moves(changed) for place in all_of):
            return all_of
        return frozenset(Place(item.buffer) if item.moves(changed) else item for item in all_of)

    return state._replace(
        vector_writes=known(state.vector_writes), vector_reads=known(state.vector_reads)
    )


def _scalar_waits(
    touched: frozenset[str], changed: frozenset[str], state: _State
) -> tuple[Event, _State]:
    """What the scalar unit waits for before it touches buffers, and changes some of them.

    The copy alone where nothing else has filled them: the vector unit may still be busy.
    """
    if not touched & state.unseen - state.copied and not changed & state.in_use:
        return _ARRIVED, state._replace(unseen=state.unseen - state.copied, copied=_NONE)
    return _SEEN, _seen(state)


def _seen(state: _State) -> _State:
    """After V->S the vector unit is idle: what it wrote is written."""
    return state._replace(
        unseen=_NONE,
        copied=_NONE,
        in_use=_NONE,
        vector_writes=_NOWHERE,
        vector_reads=_NOWHERE,
    )


def _depends(its: _Touches, state: _State) -> bool:
    both = its.writes | its.reads
    return _meet(both, state.vector_writes) or _meet(its.writes, state.vector_reads)


def _meet(some: frozenset[Place], others: frozenset[Place]) -> bool:
    return any(one.meets(other) for one in some for other in others)


def _is_vector(stmt: Stmt) -> TypeGuard[Op]:
    return isinstance(stmt, Op) and INTRINSICS[stmt.name].form is not Form.ELEMENT
