"""Buffers that are stored do more: what is copied into one is computed there.

A stored buffer belongs to the statement list that stores it. Scratch that nothing outside of one
turn of that list touches may share it, until the result is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    copies = list(_copies(body, temps))
    joined = _joined(copies, body, touched) if copies else {}

    def is_gone(stmt: Stmt) -> bool:
        if not isinstance(stmt, Op) or stmt.name != "muls":
            return isinstance(stmt, Stage) and not stmt.body
        return joined.get(stmt.views[1].buffer) == stmt.views[0].buffer

    return map_blocks(body, lambda block: tuple(s for s in block if not is_gone(s))), joined


def _copies(body: Block, temps: Mapping[str, Temp]) -> Iterator[tuple[int, str, str]]:
    """Copies of whole scratch into a stored buffer of its kind: where in the text, and of which."""
    for at, stmt in enumerate(statements(body)):
        if not isinstance(stmt, Op) or stmt.name != "muls" or stmt.scalars != (Const(1.0),):
            continue
        into, source = stmt.views
        one, two = temps.get(source.buffer), temps.get(into.buffer)
        if one is None or two is None or {into.offset, source.offset} != {ZERO}:
            continue
        if is_alike(one, two):
            yield at, one.name, two.name


def _joined(
    copies: Sequence[tuple[int, str, str]], body: Block, touched: Touched
) -> dict[str, str]:
    """Of these the scratch that is last read by its copy, and what it is copied into."""
    homes, first, last = homes_of(body, touched), dict[str, int](), dict[str, int]()
    for at, stmt in enumerate(statements(body)):
        for name in touched(stmt):
            first.setdefault(name, at)
            last[name] = at
    joined: dict[str, str] = {}
    for at, one, two in copies:
        alone = last[one] == at == first[two] and two not in joined.values()
        if alone and homes.within(one, two):
            joined[one] = two
    return joined


def is_alike(scratch: Temp, stored: Temp) -> bool:
    """Whether scratch may be where a tile is stored."""
    kinds = scratch.part is Part.SCRATCH and stored.part is Part.STORED
    return kinds and replace(scratch, name="", hint="", part=stored.part) == replace(
        stored, name="", hint=""
    )
