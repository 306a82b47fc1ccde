"""Hand buffers from pipe to pipe through queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from npusmith.errors import LowerError, Place
from npusmith.ir.nodes import Alloc, Buffer, Deque, Enque, Free, Program, Role, Stage, Stmt
from npusmith.ir.rebuild import with_bodies, with_body
from npusmith.ir.walk import Block, bodies
from npusmith.lower.usage import block_leaves, leaves_written, loads, reads_filled, stores, writes
from npusmith.target.chips import Chip


def insert_queues(program: Program, chip: Chip) -> Program:
    """Insert Alloc, Enque, Deque and Free by the lifetime rule of docs/language.md.

    before: `with copy_in: load(xt, ...)`  `with compute: exp(yt, xt, n)`  `with copy_out: ...`
    after:  copy_in: Alloc(xt) load Enque(xt);  compute: Deque(xt) Alloc(yt) exp Enque(yt) Free(xt);
            copy_out: Deque(yt) store Free(yt)

    Where only one stage uses a buffer, the queue calls stand inside it; else around the statements
    from the first to the last that use it.
    """
    body = program.kernel.body
    for buffer in program.kernel.buffers:
        if buffer.role in _LOADED:
            body = _lists(body, partial(_queue_loads, buffer.name))
        elif buffer.role in (Role.VECOUT, Role.CO1):
            if block_leaves(body, buffer.name):
                raise _astray(buffer, "is written in a list of statements that does not store it")
            body = _lists(body, partial(_queue_stores, buffer))
    return with_body(program, body)


_LOADED = (Role.VECIN, Role.THROUGH, Role.A1, Role.B1, Role.A2, Role.B2, Role.C1, Role.C2)


def _lists(block: Block, fn: Callable[[Block], Block]) -> Block:
    """`fn` over every statement list that may hold stages, innermost first."""
    inner = tuple(
        stmt
        if isinstance(stmt, Stage)
        else with_bodies(stmt, tuple(_lists(body, fn) for body in bodies(stmt)))
        for stmt in block
    )
    return fn(inner)


def _queue_loads(buffer: str, block: Block) -> Block:
    fills = [at for at, stmt in enumerate(block) if isinstance(stmt, Stage) and loads(stmt, buffer)]
    edit = _Edit(block)
    for fill, following in zip(fills, [*fills, len(block)][1:], strict=True):
        readers = [at for at in range(fill + 1, following) if reads_filled(block[at], buffer)]
        edit.wrap(fill, fill, Alloc(buffer), Enque(buffer))
        if readers:
            edit.wrap(readers[0], readers[-1], Deque(buffer), Free(buffer))
        else:  # loaded for nothing: the queue still has to be emptied
            edit.after.setdefault(fill, []).extend((Deque(buffer), Free(buffer)))
    return edit.done()


def _queue_stores(buffer: Buffer, block: Block) -> Block:
    name = buffer.name
    drains = [at for at, stmt in enumerate(block) if isinstance(stmt, Stage) and stores(stmt, name)]
    edit = _Edit(block)
    for previous, drain in zip([-1, *drains][:-1], drains, strict=True):
        users = [at for at in range(previous + 1, drain) if leaves_written(block[at], name)]
        if not any(writes(block[at], name) for at in users):
            raise _astray(buffer, "is stored in a list of statements that does not write it")
        edit.wrap(users[0], users[-1], Alloc(name), Enque(name))
        edit.wrap(drain, drain, Deque(name), Free(name))
    return edit.done()


def _astray(buffer: Buffer, what: str) -> LowerError:
    return LowerError("lower-lifetime", f"buffer {buffer.name!r} {what}", Place(line=buffer.line))


class _Edit:
    """What to put before and after given positions of one statement list."""

    def __init__(self, block: Block) -> None:
        self.block = list(block)
        self.before: dict[int, list[Stmt]] = {}
        self.after: dict[int, list[Stmt]] = {}

    def wrap(self, first: int, last: int, start: Stmt, end: Stmt) -> None:
        """`start` before position `first`, `end` after `last`; inside when both are one stage."""
        stmt = self.block[first]
        if first == last and isinstance(stmt, Stage):
            self.block[first] = replace(stmt, body=_inside(stmt.body, start, end))
            return
        self.before.setdefault(first, []).append(start)
        self.after.setdefault(last, []).append(end)

    def done(self) -> Block:
        result: list[Stmt] = []
        for index, stmt in enumerate(self.block):
            result += [*self.before.get(index, ()), stmt, *self.after.get(index, ())]
        return tuple(result)


def _inside(body: Block, start: Stmt, end: Stmt) -> Block:
    """Queue calls stand at the two ends of the stage."""
    head = 0
    while head < len(body) and isinstance(body[head], Alloc | Deque):
        head += 1
    tail = len(body)
    while tail > head and isinstance(body[tail - 1], Enque | Free):
        tail -= 1
    if isinstance(end, Enque):  # the next pipe can start before anything is given back
        return (*body[:head], start, *body[head:tail], end, *body[tail:])
    return (*body[:head], start, *body[head:], end)
