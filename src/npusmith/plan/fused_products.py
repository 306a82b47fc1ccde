"""`a + c * x` as one instruction: Axpy adds a product to `a` in place, where nobody else reads `a`.

The product is rounded before it is added, as that of two instructions is: the bits stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Combine, Const, Expr, Load, Op, Stmt, Store, Value
from npusmith.ir.rebuild import with_bodies
from npusmith.ir.walk import Block, bodies, names, statements, subexpressions, values
from npusmith.lower.usage import written
from npusmith.plan.block import Part, Temp
from npusmith.plan.scalars import ZERO

_SUMS = ("add", "sub")


class Place(NamedTuple):
    """A statement that touches a buffer: the list that it stands in, and its turn in the text."""

    block: int
    at: int


class Sum(NamedTuple):
    """`total = addend + sign * product`, by their buffers."""

    total: str
    addend: str
    product: str
    sign: int


@dataclass(slots=True)
class _Uses:
    """Where buffers are touched, and which have become one."""

    temps: Mapping[str, Temp]
    touched: Touched
    places: dict[str, list[Place]] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)
    reached: int = 0  # statements so far

    def buffer(self, name: str) -> str:
        while name in self.joined:
            name = self.joined[name]
        return name

    def note(self, block: Block) -> None:
        here = self.reached
        for stmt in block:
            for name in self.touched(stmt):
                self.places.setdefault(name, []).append(Place(here, self.reached))
            self.reached += 1
            for inner in bodies(stmt):
                self.note(inner)

    def join(self, item: Sum) -> None:
        """The sum is where the addend is: in the buffer that is stored, if one is."""
        kept, gone = item.addend, item.total
        if self.temps[gone].part is Part.STORED:
            kept, gone = gone, kept
        self.joined[gone] = kept
        self.places[kept] = sorted({*self.places[kept], *self.places.pop(gone)})
        del self.places[item.product]


def fuse_products(
    body: Block, temps: Mapping[str, Temp], touched: Touched
) -> tuple[Block, dict[str, str]]:
    """The same values with fewer instructions, and the buffers that have become another one.

    before: `mul(t1, t0, v)` `muls(p, x, 0.5)` `add(t2, t1, p)`, where that is the last of t1 and p
    after:  `mul(t1, t0, v)` `axpy(t1, x, 0.5)`, and t2 is t1
    """
    used = {stmt.name for stmt in statements(body) if isinstance(stmt, Op)}
    if "muls" not in used or used.isdisjoint(_SUMS):
        return body, {}
    uses = _Uses(temps, touched)
    uses.note(body)
    uses.reached = 0
    fused = _fused(body, uses)
    return fused, {name: uses.buffer(name) for name in uses.joined}


def _fused(block: Block, uses: _Uses) -> Block:
    here = uses.reached
    items: list[Stmt | None] = []
    turns: dict[int, int] = {}  # in the text: where they stand in this list
    for stmt in block:
        turns[uses.reached] = len(items)
        uses.reached += 1
        items.append(with_bodies(stmt, tuple(_fused(inner, uses) for inner in bodies(stmt))))
    for turn, at in turns.items():
        total = items[at]
        if not isinstance(total, Op):
            continue
        for item in _sums(total, uses):
            places = uses.places.get(item.product, ())
            if len(places) != 2 or places[0].block != here or places[1] != Place(here, turn):
                continue
            made = turns[places[0].at]
            product = _product(items[made : at + 1], item, total.count, uses)
            if product is None or not _in_place(Place(here, turn), item, uses):
                continue
            views = (replace(total.views[0], buffer=item.addend), product.views[1])
            items[at] = replace(total, name="axpy", views=views, scalars=product.scalars)
            items[made] = None
            uses.join(item)
            break
    return tuple(stmt for stmt in items if stmt is not None)


def _sums(stmt: Op, uses: _Uses) -> Iterator[Sum]:
    """An addition of two can be read in two ways."""
    if stmt.name not in _SUMS or not is_plain(stmt):
        return
    total, left, right = (uses.buffer(view.buffer) for view in stmt.views)
    if left == right:
        return
    yield Sum(total, left, right, 1 if stmt.name == "add" else -1)
    if stmt.name == "add":
        yield Sum(total, right, left, 1)


def _product(between: Sequence[Stmt | None], item: Sum, count: Expr, uses: _Uses) -> Op | None:
    """The first statement, where it makes the product from what is still there at the last one."""
    made = between[0]
    if not isinstance(made, Op) or made.name != "muls" or not is_plain(made):
        return None
    source, factor = uses.buffer(made.views[1].buffer), made.scalars[0]
    if made.count != count or uses.temps[item.product].dtype is not DType.FLOAT32:
        return None
    if source == item.addend or any(isinstance(part, Value) for part in subexpressions(factor)):
        return None
    if item.sign < 0:
        if not isinstance(factor, Const):
            return None
        factor = Const(-factor.value)
    used = set(names(factor))
    for stmt in statements(tuple(stmt for stmt in between[1:-1] if stmt is not None)):
        if isinstance(stmt, Assign) and stmt.target in used:
            return None
        if source in {uses.buffer(name) for name in _filled(stmt)}:
            return None
    return replace(made, scalars=(factor,))


def _in_place(here: Place, item: Sum, uses: _Uses) -> bool:
    """Whether the sum can be where the addend is: its last use, in the list that makes both."""
    if (
        item.addend in (item.total, item.product)
        or not {item.total, item.addend} <= uses.temps.keys()
    ):
        return False
    one, two = uses.temps[item.addend], uses.temps[item.total]
    if one.part is not Part.SCRATCH or two.part not in (Part.SCRATCH, Part.STORED):
        return False
    alike = replace(one, name="", hint="", part=two.part) == replace(two, name="", hint="")
    places = uses.places[item.addend]
    last = {place.block for place in places} == {here.block} and places[-1] == here
    return alike and last and uses.places[item.total][0] == here


def is_plain(stmt: Op) -> bool:
    """Whether all its tiles are read and written from their first element on."""
    return all(view.offset == ZERO for view in stmt.views)


class Touched:
    """The buffers that statements themselves read or write, kept: several walks ask for them."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Stmt, set[str]]] = {}  # the statement keeps its id its own

    def __call__(self, stmt: Stmt) -> set[str]:
        kept = self.known.get(id(stmt))
        if kept is None:
            kept = self.known[id(stmt)] = stmt, _touched(stmt)
        return kept[1]


def _touched(stmt: Stmt) -> set[str]:
    found = {view.buffer for view in values(stmt)} | _filled(stmt)
    match stmt:
        case Store(_, src) | Combine(_, _, src):
            found.add(src.buffer)
        case Op():
            found |= {view.buffer for view in stmt.views}
        case _:
            pass
    return found


def _filled(stmt: Stmt) -> set[str]:
    match stmt:
        case Load(dst) | Combine(_, dst):
            return {dst.buffer}
        case Op():
            return {view.buffer for view in written(stmt)}
        case _:
            return set()
