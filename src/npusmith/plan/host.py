"""The host function: sizes, tile lengths, and how work is dealt to cores.

Everything is an expression over input shapes and chip facts, so that one program serves all sizes
of the same rank. Names are handed out here; only those that the kernel reads become parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from npusmith.ir.nodes import (
    Assign,
    Call,
    ChipFact,
    Const,
    Expr,
    Host,
    Launch,
    Name,
    ScalarFn,
    Stmt,
)
from npusmith.ir.walk import names
from npusmith.plan.scalars import largest, least, product, quotient, shares
from npusmith.plan.space import Space

TILE = Name("TILE")
FOLDS = Name("FOLDS")  # halvings that leave 8 lanes of a tile
LEAST_TILE = Const(256)  # elements: shorter copies are all start-up time
OVERLAPPED = Const(2048)  # elements: a core copies one tile of so many while it works on another
_DEEPEST = 12  # calls inside of each other
STEP = Const(64)  # elements: one vector repeat of float32


@dataclass(frozen=True, slots=True)
class Deal:
    """How one set of groups is dealt to cores: names of host variables."""

    outer: tuple[int, ...]  # groups other than the last, in memory order
    tiled: bool  # the last group is dealt out as well, tile by tile
    units: str  # pieces of work in all
    share: str  # pieces of work of one core
    tile: str = ""  # elements of a tile, where the last group is dealt out
    tiles: str = ""  # tiles along the last group


@dataclass(slots=True)
class Sizes:
    """Host variables in the order of their definitions."""

    space: Space
    defined: dict[str, Expr] = field(default_factory=dict)
    deals: dict[tuple[int, ...], Deal] = field(default_factory=dict)
    cuts: list[Deal] = field(default_factory=list)  # pieces of lines (chunks.py)
    scratch: dict[str, Expr] = field(default_factory=dict)  # workspace tensors and their lengths

    def define(self, name: str, value: Expr) -> Name:
        self.defined.setdefault(name, value)
        return Name(name)

    def new(self, name: str, value: Expr) -> Expr:
        """A variable of its own for what is more than a name or a number."""
        if isinstance(value, Const | Name):
            return value
        free = (name if i == 1 else f"{name}{i}" for i in count(1))
        return self.define(next(item for item in free if item not in self.defined), value)

    def named(self, value: Expr) -> Expr:
        """A size that no group has, as a parameter of the kernel."""
        if isinstance(value, Const):
            return value
        known = next((name for name, given in self.defined.items() if given == value), "")
        return Name(known) if known else self.define(f"dim{len(self.defined)}", value)

    def size(self, group: int) -> Name:
        """The size of a group."""
        item = self.space.groups[group]
        return self.define(item.name, item.size)

    def width(self) -> Name:
        """Lanes of a tile that a loop over the last group touches, at least one."""
        cols = self.size(self.space.last)
        return self.define("width", largest(least(TILE, cols), Const(1)))

    def deal(self, groups: frozenset[int]) -> Deal:
        """Deal these groups to cores."""
        key = tuple(sorted(groups))
        if key not in self.deals:
            self.deals[key] = self._deal(key)
        return self.deals[key]

    def _deal(self, key: tuple[int, ...]) -> Deal:
        mark = str(len(self.deals) + 1) if self.deals else ""
        tiled = self.space.last in key
        outer = tuple(group for group in key if group != self.space.last)
        lines = product(self.size(group) for group in outer)
        if not tiled:
            units = self._named(f"units{mark}", lines)
            share = f"{units}_per_core"
            self.define(share, shares(Name(units), Name("cores")))
            return Deal(outer, False, units, share)
        cols = self.size(self.space.last)
        tile = self._tile(mark, key, lines, cols)
        tiles = self.define(f"tiles{mark}", shares(cols, tile))
        units = self._named(f"pieces{mark}", product((lines, tiles)))
        share = f"{units}_per_core"
        self.define(share, shares(Name(units), Name("cores")))
        return Deal(outer, True, units, share, tile.id, tiles.id)

    def _tile(self, mark: str, key: tuple[int, ...], lines: Expr, cols: Name) -> Name:
        """Tiles of equal length, short enough that every core has some, at most TILE."""
        each = shares(product((lines, cols)), ChipFact("vector_cores"))
        fair = self.define(f"fair{mark}", largest(each, LEAST_TILE))
        turns = shares(fair, TILE)
        if len(key) == len(self.space.groups):  # nothing but tiles: copies and work overlap
            turns = largest(turns, least(quotient(fair, OVERLAPPED), Const(2)))
        limit = self.define(f"limit{mark}", shares(fair, turns))
        even = shares(cols, largest(shares(cols, limit), Const(1)))
        padded = Call(ScalarFn.ALIGN_UP, (largest(even, Const(1)), STEP))
        return self.define(f"tile{mark}", padded)

    def _named(self, name: str, value: Expr) -> str:
        """The variable that already holds this value, or a new one."""
        return value.id if isinstance(value, Name) else self.define(name, value).id

    def workspace(self, length: Expr) -> str:
        """A new workspace tensor."""
        taken = {group.name for group in self.space.groups} | set(self.scratch)
        name = next(name for i in count() if (name := f"part{i}") not in taken)
        self.scratch[name] = length
        return name

    # --------------------------------------------------------------------------------- the result

    def write(self, kernel: str, tensors: tuple[str, ...], used: list[str], doc: str) -> Host:
        """The host function for a kernel that reads the variables `used`."""
        counts = [Name(deal.units) for deal in (*self.deals.values(), *self.cuts)]
        cores: Expr = Const(1)
        if counts:
            most: Expr = counts[0]
            for at, count in enumerate(counts[1:], 1):
                most = largest(most, count)
                if at % _DEEPEST == 0:
                    most = self.define(f"units_{at}", most)
            cores = largest(least(most, ChipFact("vector_cores")), Const(1))
        defined = {"cores": cores, **self.defined}
        lengths = list(self.scratch.items())
        roots = [*used, "cores"]
        needed = closure(roots, defined)
        order = _ordered([name for name in defined if name in needed], defined)
        body = tuple(Assign(name, defined[name]) for name in order)
        args = [(name, Name(name)) for name in used] + lengths
        launch = Launch(kernel, Name("cores"), tuple(args))
        return Host("host", tensors, body, (launch,), doc)


def closure(roots: list[str], defined: Mapping[str, Expr]) -> set[str]:
    """The host variables that these are worked out from, themselves among them."""
    found: set[str] = set()
    queue = [name for name in roots if name in defined]
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += [item for item in names(defined[name]) if item in defined]
    return found


def _ordered(wanted: list[str], defined: dict[str, Expr]) -> list[str]:
    """Definitions before their uses, otherwise in the order given."""
    return [name for name in _in_order(wanted, defined) if name in wanted]


def in_order(values: Mapping[str, Expr]) -> tuple[Stmt, ...]:
    """Assignments, each after those that it reads."""
    return tuple(Assign(name, values[name]) for name in _in_order(values, values))


def _in_order(wanted: Iterable[str], defined: Mapping[str, Expr]) -> dict[str, None]:
    """What is wanted, and all that it needs, each behind what it reads."""
    done: dict[str, None] = {}
    for name in wanted:
        _add_needed(name, defined, done)
    return done


def _add_needed(name: str, defined: Mapping[str, Expr], done: dict[str, None]) -> None:
    if name in done or name not in defined:
        return
    for used in names(defined[name]):
        _add_needed(used, defined, done)
    done[name] = None
