"""Halves where an instruction gives the same bits in them: no casts, and half of the work.

A sum, difference or product of two halves that is stored as half has the same bits either way:
float32 has 24 bits, and twice the 11 of a half and two more are enough for its own rounding not to
show. What takes no rounding (largest, smallest, absolute value) may come before it in any number.
A number that is read from a half is the same float without a cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Const, Expr, Load, Name, Op, Stage, Stmt, Value
from npusmith.ir.rebuild import map_blocks
from npusmith.ir.walk import Block, statements
from npusmith.plan.block import Part, Temp
from npusmith.plan.fused_products import Touched, is_plain
from npusmith.plan.renaming import renamed
from npusmith.plan.stored_buffers import Homes, homes_of

_EXACT = ("abs", "relu", "max", "min", "maxs", "mins")
_ROUNDED = ("add", "sub", "mul", "adds", "muls")  # once


@dataclass(slots=True)
class _Uses:
    """Operations by the buffer that they write, and all that touch one."""

    temps: Mapping[str, Temp]
    homes: Homes
    made: dict[str, list[Stmt]] = field(default_factory=dict)
    numbers: dict[str, list[str]] = field(default_factory=dict)  # by name: buffers it is read from
    readers: dict[str, list[Stmt]] = field(default_factory=dict)

    def note(self, body: Block, touched: Touched) -> None:
        for stmt in statements(body):
            if isinstance(stmt, Assign):
                source = stmt.value.source.buffer if isinstance(stmt.value, Value) else ""
                self.numbers.setdefault(stmt.target, []).append(source)
            into = stmt.views[0].buffer if isinstance(stmt, Op) else ""
            into = stmt.dst.buffer if isinstance(stmt, Load) else into
            if into:
                self.made.setdefault(into, []).append(stmt)
            sources = {view.buffer for view in stmt.views[1:]} if isinstance(stmt, Op) else ()
            for name in touched(stmt):
                if name != into or name in sources:
                    self.readers.setdefault(name, []).append(stmt)

    def maker(self, name: str) -> Op | None:
        """What makes a tile of float32, where that is one operation on whole tiles."""
        temp, made = self.temps.get(name), self.made.get(name, ())
        if temp is None or temp.part is not Part.SCRATCH or temp.dtype is not DType.FLOAT32:
            return None
        found = made[0] if len(made) == 1 else None
        return found if isinstance(found, Op) and is_plain(found) else None

    def is_half(self, expr: Expr) -> bool:
        """Whether a half holds a number: one as written, or one that is read from a half's copy."""
        if isinstance(expr, Const):
            with np.errstate(over="ignore"):
                return float(np.float16(expr.value)) == float(expr.value)
        read = self.numbers.get(expr.id, ()) if isinstance(expr, Name) else ()
        return bool(read) and all(self._is_copy(buffer) for buffer in read)

    def _is_copy(self, name: str) -> bool:
        made = self.made.get(name, ())
        sources = [
            self.temps.get(stmt.views[1].buffer)
            for stmt in made
            if isinstance(stmt, Op) and stmt.name == "cast"
        ]
        return len(sources) == len(made) > 0 and all(
            source is not None and source.dtype is DType.FLOAT16 for source in sources
        )

    def widened(self, name: str) -> str:
        """The half that a tile is the copy of, "" where there is none in its place."""
        cast = self.maker(name)
        if cast is None or cast.name != "cast":
            return ""
        half = self.temps.get(cast.views[1].buffer)
        if half is None or half.dtype is not DType.FLOAT16 or half.part is not Part.LOADED:
            return ""
        made, (here, *_) = self.made.get(half.name, ()), self.homes.touches[half.name]
        inside = all(place[: len(here)] == here for place in self.homes.touches[name])
        alike = replace(half, name="", hint="") == _as_half(self.temps[name], Part.LOADED)
        return half.name if len(made) == 1 and inside and alike else ""


def in_halves(
    body: Block, temps: Mapping[str, Temp], touched: Touched
) -> tuple[Block, dict[str, Temp]]:
    """The same bits with fewer instructions, and the buffers with their types.

    before: `cast(a, x, "none")` `cast(b, y, "none")` `add(t, a, b)` `cast(out, t, "rint")`
    after:  `add(t, x, y)` `muls(out, t, 1.0)`, where nothing else reads a, b and t
    """
    if not any(temp.dtype is DType.FLOAT16 for temp in temps.values()):
        return body, dict(temps)
    uses = _Uses(temps, homes_of(body, touched))
    uses.note(body, touched)
    joined = {name: half for name in temps if (half := uses.widened(name))}
    tiles = _fitting(uses, joined)
    joined = {name: half for name, half in joined.items() if name in tiles}

    def of(block: Block) -> Block:
        items = (_narrowed(stmt, tiles, joined) for stmt in block)
        return tuple(stmt for stmt in items if stmt is not None)

    halves = {name: _as_half(temps[name], Part.SCRATCH) for name in tiles}
    named = {name: replace(temp, name=name, hint=temps[name].hint) for name, temp in halves.items()}
    return renamed(map_blocks(body, of), joined), {**temps, **named}


def _fitting(uses: _Uses, joined: Mapping[str, str]) -> set[str]:
    """Tiles that are halves, or round to halves and are stored so, and so is all around them."""
    exact = set(joined)
    rounded: set[str] = set()
    for name in uses.made:  # in the order of the text
        op = uses.maker(name)
        if op is None or not _serves(op, uses) or not set(_sources(op)) <= exact:
            continue
        (exact if op.name in _EXACT else rounded).add(name)
    tiles = exact | rounded
    while unfit := {name for name in tiles if not _fits(name, uses, tiles, rounded, joined)}:
        tiles -= unfit
    return tiles


def _fits(
    name: str, uses: _Uses, tiles: set[str], rounded: set[str], joined: Mapping[str, str]
) -> bool:
    made = uses.maker(name)
    if name not in joined and (made is None or not set(_sources(made)) <= tiles):
        return False
    return all(
        (name in joined and _is_number(stmt))
        or (
            isinstance(stmt, Op)
            and is_plain(stmt)
            and (_is_stored(stmt, uses) or (name not in rounded and stmt.views[0].buffer in tiles))
        )
        for stmt in uses.readers.get(name, ())
    )


def _is_number(stmt: Stmt) -> bool:
    """Whether one element is read as a scalar: that of a half is a float."""
    return isinstance(stmt, Assign) and isinstance(stmt.value, Value)


def _is_stored(stmt: Op, uses: _Uses) -> bool:
    """Whether it rounds to halves."""
    into = uses.temps.get(stmt.views[0].buffer)
    return stmt.name == "cast" and stmt.mode == "rint" and into is not None and (
        into.dtype is DType.FLOAT16
    )  # fmt: skip


def _serves(op: Op, uses: _Uses) -> bool:
    return op.name in (*_EXACT, *_ROUNDED) and all(uses.is_half(item) for item in op.scalars)


def _sources(op: Op) -> Iterator[str]:
    return (view.buffer for view in op.views[1:])


def _as_half(temp: Temp, part: Part) -> Temp:
    return replace(temp, name="", hint="", dtype=DType.FLOAT16, part=part)


def _narrowed(stmt: Stmt, tiles: set[str], joined: Mapping[str, str]) -> Stmt | None:
    if not isinstance(stmt, Op) or stmt.name != "cast":
        return None if isinstance(stmt, Stage) and not stmt.body else stmt
    into, source = stmt.views
    if into.buffer in joined:
        return None
    if source.buffer not in tiles:
        return stmt
    return replace(stmt, name="muls", scalars=(Const(1.0),), mode="")
