"""What a writer decides while it writes: what a schedule asks for, or its own choice.

Each place that could do otherwise asks here, and says what else is legal. So the alternatives that
are searched are those that the writer has, and a decision that nobody asks for is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress, product
from typing import NoReturn

from npusmith.errors import PlanError
from npusmith.ir.nodes import Name
from npusmith.plan.schedule import Lines, Schedule, Structure
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

STEP = 256  # elements: a mask of that many bits is one block of 32 bytes
_SHARES = (0.75, 0.5, 0.375, 0.25, 0.125)  # of the writer's tile, and of the chip's cores
_MORE = (1.25, 1.5, 1.75, 2.0)  # of the writer's tile; with less double buffering

_BLOCKS = 8  # of a product, the likeliest, that are tried

Ways = tuple[tuple[object, ...], ...]
_BY_SIZES = 2  # passes that are shared by sizes, at most: each combination is a version


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a program that is written.

    `value` is what it has, `own` what the writer takes by itself. `ways`: other values that may be
    better; each way leads further and further from `own`.
    """

    name: str
    value: object
    own: object
    ways: Ways

    @property
    def others(self) -> tuple[object, ...]:
        return tuple(value for way in self.ways for value in way)


@dataclass(slots=True)
class Decisions:
    """Those of one program; `lengths` are of what lies together in its inputs."""

    asked: Schedule = field(default_factory=Schedule)
    lengths: tuple[int, ...] = ()
    made: dict[str, Decision] = field(default_factory=dict)
    passes: list[tuple[Lines, Sequence[Lines]]] = field(default_factory=list)
    tests: dict[int, tuple[Lines, Name]] = field(default_factory=dict)  # of passes by sizes

    def structure(self, found: Structure, others: Iterable[Structure]) -> None:
        """Each is a way of its own."""
        ways = tuple((item,) for item in dict.fromkeys(others) if item is not found)
        self.made["structure"] = Decision("structure", found, found, ways)

    def lines(self, own: Lines, legal: Sequence[Lines], worth: Sequence[Lines]) -> Lines:
        """Of the next pass that has a choice; `worth` are those that may be the best."""
        if len(legal) < 2:
            return own
        at = len(self.passes)
        value = self.asked.lines[at] if at < len(self.asked.lines) else own
        if value not in legal:
            _refuse("lines", value.value, [item.value for item in legal])
        self.passes.append((value, worth))
        return value

    def by_sizes(self, captured: Lines, test: Name) -> None:
        """The lines of the last pass are cut where a host variable is 1; how they are here."""
        self.tests[len(self.passes) - 1] = captured, test

    def ways(self) -> tuple[tuple[tuple[Lines, ...], tuple[Name, ...]], ...]:
        """How the lines of all passes may be shared, and the tests that say so; the last has none.

        Of many passes that have a test only one way: as at the captured sizes.
        """
        if len(self.tests) > _BY_SIZES:
            return ((self.captured, ()),)
        tests = [test for _, test in self.tests.values()]
        return tuple(
            (self._lines(way), tuple(compress(tests, (one is Lines.CHUNKED for one in way))))
            for way in product((Lines.CHUNKED, Lines.DEALT), repeat=len(tests))
        )

    def whole_lines(self) -> bool:
        """Start anew with lines that are not cut where sizes decide; False where none would be."""
        dealt = self._lines([Lines.DEALT] * len(self.tests))
        if dealt == self.captured:
            return False
        self.asked = self.asked.changed("lines", dealt)
        self.forget()
        return True

    def forget(self) -> None:
        """Nothing is decided: what was written will not be used."""
        self.made, self.passes, self.tests = {}, [], {}

    @property
    def captured(self) -> tuple[Lines, ...]:
        """How the lines of all passes are shared at the captured sizes."""
        return self._lines([found for found, _ in self.tests.values()])

    def _lines(self, by_sizes: Sequence[Lines]) -> tuple[Lines, ...]:
        found = dict(zip(self.tests, by_sizes, strict=True))
        return tuple(found.get(at, value) for at, (value, _) in enumerate(self.passes))

    def inners(self, legal: Sequence[int]) -> Sequence[int]:
        """What to try, one after another."""
        asked = self.asked.inner
        if asked is None:
            return legal
        if asked not in legal:
            _refuse("inner", asked, legal)
        return (asked,)

    def inner(self, value: int, legal: Sequence[int]) -> None:
        """What it became; tiles had no room for more than is legal."""
        ways = tuple((item,) for item in legal)
        self.made["inner"] = Decision("inner", value, value, ways)

    def tile(self, own: int, least: int, most: int, powers: bool, step: int = STEP) -> int:
        """From `least` to `most` elements, a multiple of `step`; `powers`: only powers of two."""

        def legal(value: object) -> bool:
            number = int(str(value))
            whole = number % step == 0 and not (powers and number & (number - 1))
            return number == own or (whole and least <= number <= most)

        value = own if self.asked.tile is None else self.asked.tile
        if not legal(value):
            unit = "powers of two" if powers else f"multiples of {step}"
            others = [f"{unit} from {least} to {most}"] if least <= most else []
            _refuse("tile", value, [own, *others])
        ways = (_longer(own, most, step), _shorter(own, step), *_even(own, self.lengths, step))
        kept = (tuple(item for item in way if legal(item)) for way in ways)
        self.made["tile"] = Decision("tile", value, own, tuple(way for way in kept if way))
        return value

    def block(self, ranked: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Rows and columns of a block of a product; `ranked`: all legal ones, the best first."""
        value = ranked[0] if self.asked.block is None else self.asked.block
        if value not in ranked:
            first = ", ".join("{} x {}".format(*item) for item in ranked[:_BLOCKS])
            _refuse("block", "{} x {}".format(*value), [f"{first}, and others"])
        ways = tuple((item,) for item in ranked[1:_BLOCKS])
        self.made["block"] = Decision("block", value, ranked[0], ways)
        return value

    def copies(self, queued: Sequence[str], most: int) -> dict[str, int]:
        """Of buffers that are loaded or stored, where the schedule says how many.

        `most`: of all of them alike.
        """
        value = self.asked.copies
        if lost := [name for name, count in value if name not in queued or not 0 < count < 4]:
            _refuse("copies", ", ".join(lost), [f"1 to 3 of {', '.join(queued)}"])
        ways = tuple(
            (tuple((name, count) for name in queued),)
            for count in (1, 3)
            if queued and count <= most
        )
        self.made["copies"] = Decision("copies", value, (), ways)
        return dict(value)

    def cores(self, chip: Chip) -> int:
        own = chip.vector_cores
        value = own if self.asked.cores is None else self.asked.cores
        if value > own:
            _refuse("cores", value, [f"1 to {own}"])
        fewer = tuple(dict.fromkeys(int(own * share) for share in _SHARES))
        self.made["cores"] = Decision("cores", value, own, (tuple(n for n in fewer if n),))
        return value

    def decided(self) -> tuple[Decision, ...]:
        """All of them. Raises plan-schedule for what was asked for and decides nothing here."""
        if self.passes:
            now = tuple(value for value, _ in self.passes)
            ways = tuple(
                ((*now[:i], other, *now[i + 1 :]),)
                for i, (value, worth) in enumerate(self.passes)
                for other in worth
                if other is not value
            )
            self.made["lines"] = Decision("lines", now, now, ways)
        names = list(self.made)
        lost = [name for name in self.asked.given() if name not in self.made]
        if len(self.asked.lines) > len(self.passes) and "lines" not in lost:
            _refuse("lines", str(len(self.asked.lines)), [f"one for each of {len(self.passes)}"])
        if lost:
            raise PlanError(
                "plan-schedule", f"`{lost[0]}` decides nothing in this program",
                legal=f"decisions: {', '.join(sorted(names))}",
            )  # fmt: skip
        return tuple(self.made.values())


def whole(decisions: Iterable[Decision]) -> Schedule:
    """The schedule that says everything that was decided."""
    return Schedule.model_validate({item.name: item.value for item in decisions})


def lengths(graph: Graph) -> tuple[int, ...]:
    """Of what lies together in an input: its last dimension, its last two, and so on."""
    shapes = [item.shape for item in graph.inputs]
    return tuple(sorted({math.prod(shape[i:]) for shape in shapes for i in range(len(shape))}))


def _refuse(name: str, value: object, legal: Sequence[object]) -> NoReturn:
    raise PlanError(
        "plan-schedule", f"`{name}` cannot be {value} in this program",
        legal=", ".join(str(item) for item in legal),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- tiles


def _longer(own: int, most: int, step: int) -> tuple[int, ...]:
    found = dict.fromkeys(int(own * share) // step * step for share in _MORE)
    return tuple(item for item in found if own < item <= most)


def _shorter(own: int, step: int) -> tuple[int, ...]:
    found = dict.fromkeys(int(own * share) // step * step for share in _SHARES)
    return tuple(item for item in found if item)


def _even(own: int, rows: Sequence[int], step: int) -> Iterable[tuple[int, ...]]:
    """Tiles of which a row is a whole number, or one tile more; a power of two."""
    for more in (0, 1):
        found = {-(-row // (-(-row // own) + more)) for row in rows if row > own}
        tiles = sorted({-(-length // step) * step for length in found}, reverse=True)
        yield tuple(item for item in tiles if item < own)
    power = 1 << (own.bit_length() - 1)
    yield (power,) if power < own else ()
