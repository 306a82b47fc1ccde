"""Buffers that are stored do more: what is copied into one is computed there.

A stored buffer belongs to the statement list that stores it. Scratch that nothing outside of one
turn of that list touches may share it, until the result is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from npusmith.ir.nodes import Const, Op, Stage, Stmt, Store
from npusmith.ir.rebuild import map_blocks
from npusmith.ir.walk import Block, bodies, statements
from npusmith.plan.block import Part, Temp
from npusmith.plan.fused_products import Touched
from npusmith.plan.scalars import ZERO


@dataclass(slots=True)
class Homes:
    """In which lists a buffer is touched, each with those around it, and the list that stores it.

    What is nested in a stage counts as part of the list that holds the stage.
    """

    touched: Touched
    touches: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    stores: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lists: int = 0

    def note(self, block: Block, around: tuple[int, ...] = ()) -> None:
        self.lists += 1
        here = (*around, self.lists)
        for stmt in block:
            if not isinstance(stmt, Stage):
                self._touch(stmt, here)
                for inner in bodies(stmt):
                    self.note(inner, here)
                continue
            for item in statements((stmt,)):
                self._touch(item, here)

    def _touch(self, stmt: Stmt, here: tuple[int, ...]) -> None:
        for name in self.touched(stmt):
            self.touches.setdefault(name, []).append(here)
        if isinstance(stmt, Store):
            self.stores[stmt.src.buffer] = here

    def within(self, scratch: str, stored: str) -> bool:
        """Whether only one turn of the list that stores a buffer touches the other."""
        home = self.stores.get(stored)
        return home is not None and all(
            place[: len(home)] == home for place in self.touches[scratch]
        )


def homes_of(body: Block, touched: Touched) -> Homes:
    found = Homes(touched)
    found.note(body)
    return found


def without_copies(
    body: Block, temps: Mapping[str, Temp], touched: Touched
) -> tuple[Block, dict[str, str]]:
    """The same values without copies into stored buffers, and the buffers that became these.

    before: `max(t, t, u)` `muls(out, t, 1.0)`, where that is the last of t and the first of out
    after:  `max(t, t, u)`, and t is out
    """
    homes, first, last = homes_of(body, touched), dict[str, int](), dict[str, int]()
    ops: dict[int, Op] = {}
    for at, stmt in enumerate(statements(body)):
        for name in touched(stmt):
            first.setdefault(name, at)
            last[name] = at
        if isinstance(stmt, Op):
            ops[at] = stmt
    joined: dict[str, str] = {}
    for at, stmt in ops.items():
        if stmt.name != "muls" or stmt.scalars != (Const(1.0),):
            continue
        into, source = stmt.views
        one, two = temps.get(source.buffer), temps.get(into.buffer)
        if one is None or two is None or {into.offset, source.offset} != {ZERO}:
            continue
        alone = last[one.name] == at == first[two.name] and two.name not in joined.values()
        if alone and is_alike(one, two) and homes.within(one.name, two.name):
            joined[one.name] = two.name

    def is_gone(stmt: Stmt) -> bool:
        if not isinstance(stmt, Op) or stmt.name != "muls":
            return isinstance(stmt, Stage) and not stmt.body
        return joined.get(stmt.views[1].buffer) == stmt.views[0].buffer

    return map_blocks(body, lambda block: tuple(s for s in block if not is_gone(s))), joined


def is_alike(scratch: Temp, stored: Temp) -> bool:
    """Whether scratch may be where a tile is stored."""
    kinds = scratch.part is Part.SCRATCH and stored.part is Part.STORED
    return kinds and replace(scratch, name="", hint="", part=stored.part) == replace(
        stored, name="", hint=""
    )
