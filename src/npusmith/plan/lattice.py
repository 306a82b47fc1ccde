"""Where rows of a Mix lie in the unified buffer: buffers, their order, views of single rows.

The order is that of the banks: rows that are read as sources come first, and the rows that they go
into start 256 bytes off and, as far as there is room, in another 64 KB, so that neither two
sources nor a result and the next source meet in a bank (docs/timing.md, banks of UB).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.plan.mixes import Dot, Mix, Tile

_WORDS = (
    "tokens", "length", "strip", "strips", "jobs", "jobs_per_core", "spread", "head", "stop",
    "start", "end", "low", "many", "job", "token", "near", "place", "m", "pair", "shift", "lane",
    "products", "eighths", "parts", "sums", "totals", "picked", "strides", "order", "scratch",
    "fits",
)  # fmt: skip
_STEP = 128  # elements: rows of float32 that far apart start in the same bank group
_LEAST = 128  # elements of a strip worth having
_MOST = 8192
_NEARLY = 0.9  # of the longest strip
_JOBS = (16, 8, 4, 2)  # jobs whose numbers are loaded at once
_SHARED = 64  # elements: what the general program has for one number
_ROW_BYTES = 512  # of all bank groups
FOLD = 64  # products that are added up before they are added to a total

# Steps of a strip, in order.
_SOURCES, _BLEND, _ROUND, _MORE, _DOT = range(5)


@dataclass(frozen=True, slots=True)
class Buffer:
    length: int  # elements
    dtype: DType

    @property
    def bytes(self) -> int:
        return -(-self.length * self.dtype.bytes // 32) * 32


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of float32 on chip, from the first to the last of the steps that need them."""

    name: str
    rows: int
    first: int
    last: int


@dataclass(slots=True)
class Form:
    """What the text is written from."""

    mix: Mix
    name: str
    words: dict[str, str]
    jobs: int
    strip: int = 0
    buffers: dict[str, Buffer] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)  # tile -> buffer of its float32 rows

    def __getitem__(self, word: str) -> str:
        return self.words[word]

    @property
    def step(self) -> int:
        """Elements that the length of a strip is a multiple of."""
        return strip_step(self.mix)

    @property
    def pitch(self) -> str:
        """From row to row of float32, in elements."""
        return self["strip"] if self.mix.dots else f"align_up({self['m']}, {self.step})"

    @property
    def count(self) -> str:
        """Elements of a row that are computed: all of the strip where dots take it whole."""
        return self["strip"] if self.mix.dots else self["m"]

    def loaded(self, tile: Tile) -> str:
        return f"{tile.name}_in" if tile.wide else f"{tile.name}_in1"

    def stored(self, tile: Tile) -> str:
        return f"{tile.name}_out" if tile.wide else f"{tile.name}_out1"

    def numbers(self, tile: Tile) -> str:
        """Where numbers are read as scalars."""
        return self.loaded(tile) if tile.dtype is DType.FLOAT32 else f"{tile.name}_as_float"

    def blended(self, tile: Tile) -> bool:
        return tile.name in blended(self.mix)

    def loaded_pitch(self, tile: Tile) -> str:
        """Rows of a copy lie whole blocks of 32 bytes apart."""
        return f"align_up({self['m']}, {tile.dtype.per_block})"

    def var(self, axis: int) -> str:
        return self.words[f"k{axis}"]

    # ------------------------------------------------------------------------------------- views

    def row(self, tile: Tile, index: Mapping[int, str], output: bool = False) -> str:
        """A view of one row to compute on."""
        buffer = self.place.get(tile.name)
        if buffer is not None:
            return f"{buffer}{self.at(tile, index, self.pitch)}"
        buffer = self.stored(tile) if output else self.loaded(tile)
        return f"{buffer}{self.at(tile, index, self.loaded_pitch(tile))}"

    def at(self, tile: Tile, index: Mapping[int, str], pitch: str) -> str:
        """`[outer + inner * pitch]`: the lowering sees that turns of the inner loop are apart."""
        if not tile.axes:
            return ""
        last = tile.axes[-1]
        inner = f"{index[last]} * {pitch}"
        outer = self.flat(tile.axes[:-1], index)
        if outer == "0":
            return f"[{inner}]"
        return f"[({outer}) * {self.mix.short[last]} * {pitch} + {inner}]"

    def flat(self, axes: tuple[int, ...], index: Mapping[int, str]) -> str:
        """The row-major number of an element of these axes."""
        text = "0"
        for axis in axes:
            size = self.mix.short[axis]
            text = index[axis] if text == "0" else f"({text}) * {size} + {index[axis]}"
        return text

    def number(self, tile: Tile, index: Mapping[int, str]) -> str:
        """One number of the token as a scalar."""
        count = tile.count(self.mix)
        near = f"{self['near']} * {count}" if count > 1 else self["near"]
        inner = self.flat(tile.axes, index)
        return f"value({self.numbers(tile)}[{near}{'' if inner == '0' else ' + ' + inner}])"

    def loops(self, axes: tuple[int, ...], body: list[str], start: int = 0) -> list[str]:
        """Loops over short axes, the first one outermost; `start`: where that one begins."""
        for axis in reversed(axes):
            first = start if axis == axes[0] else 0
            stop = self.mix.short[axis]
            span = f"range({first}, {stop})" if first else f"range({stop})"
            body = [f"for {self.var(axis)} in {span}:", *indented(body)]
        return body


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def blended(mix: Mix) -> set[str]:
    """Names of the rows that go into an output of rows."""
    return {term.row.name for blend in mix.blends for term in blend.terms}


def rows_of(dot: Dot, mix: Mix) -> int:
    """Products of a dot that are made side by side: one for each row of its right side."""
    return dot.right.count(mix)


def strip_step(mix: Mix) -> int:
    """Products that are made side by side leave whole blocks of 32 bytes when they are folded."""
    steps = [FOLD * 8 // math.gcd(rows_of(dot, mix), 8) for dot in mix.dots]
    return math.lcm(_STEP, *steps)


# ----------------------------------------------------------------------------------------- fitting


def fit(mix: Mix, name: str, room: int, taken: set[str]) -> Form | None:
    """Long strips that fit, and the numbers of as many jobs as do not shorten them by much."""
    if len(mix.inputs) > 8 or len(mix.outputs) > 8:  # queues of one kind
        return None
    forms = [Form(mix, name, words_of(mix, taken), jobs) for jobs in _JOBS]
    for form in forms:
        form.strip = _longest(form, room)
    longest = max(form.strip for form in forms)
    if longest < max(_LEAST, forms[0].step):
        return None
    best = next(form for form in forms if form.strip >= _NEARLY * longest)
    _declare(best)
    return best


def words_of(mix: Mix, taken: Iterable[str]) -> dict[str, str]:
    """Names that nothing else in the program has."""
    used = {*taken, *(tile.name for tile in (*mix.inputs, *mix.outputs))}
    found: dict[str, str] = {}
    for word in (*_WORDS, *(f"k{axis}" for axis in mix.short), *(f"wide{i}" for i in range(16))):
        name = word
        while name in used:
            name += "_x"
        found[word] = name
    return found


def _longest(form: Form, room: int) -> int:
    low, high = 0, _MOST // form.step
    while low < high:
        middle = (low + high + 1) // 2
        form.strip = middle * form.step
        if _declare(form) <= room:
            low = middle
        else:
            high = middle - 1
    return low * form.step


def _declare(form: Form) -> int:
    """Buffers for the strip, in their order. Returns the bytes that they take."""
    mix = form.mix
    form.buffers, form.place = {}, {}
    sources = _share(form, _held(mix, True))
    targets = _share(form, _held(mix, False))
    queues = _queues(form)
    before = sum(buffer.bytes for buffer in (*sources.values(), *queues.values()))
    spare = (_ROW_BYTES // 2 - before) % _ROW_BYTES
    if sources and targets and spare:
        last = list(sources)[-1]
        sources[last] = Buffer(sources[last].length + spare // 4, DType.FLOAT32)
    form.buffers = {**sources, **queues, **targets, **_small(form)}
    return sum(buffer.bytes for buffer in form.buffers.values())


def _held(mix: Mix, sources: bool) -> list[Held]:
    """Rows of float32: those that are read to go into others, or all the rest."""
    used = blended(mix)
    dotted = {tile.name for dot in mix.dots for tile in (dot.left, dot.right)}
    found = []
    for tile in mix.rows:
        if (tile.name in used) is sources and (tile.dtype is not DType.FLOAT32 or mix.dots):
            first = _SOURCES if sources else _MORE
            last = _DOT if tile.name in dotted else _BLEND
            found.append(Held(tile.name, tile.count(mix), first, last))
    if sources:
        return found
    for blend in mix.blends:
        if blend.output.dtype is not DType.FLOAT32:
            found.append(Held(blend.output.name, blend.output.count(mix), _BLEND, _ROUND))
    if mix.dots:
        rows = max(rows_of(dot, mix) for dot in mix.dots)
        found.append(Held("", rows, _DOT, _DOT))  # products
    return found


def _share(form: Form, held: list[Held]) -> dict[str, Buffer]:
    """Give rows their buffers; rows that are not needed together share one."""
    ends: dict[str, int] = {}
    rows: dict[str, int] = {}
    for item in sorted(held, key=lambda item: (item.first, -item.rows)):
        free = [name for name, end in ends.items() if end < item.first and rows[name] >= item.rows]
        name = free[0] if free else form[f"wide{len(set(form.place.values()) | set(ends))}"]
        ends[name] = item.last
        rows[name] = max(item.rows, rows.get(name, 0))
        form.place[item.name] = name
    return {name: Buffer(count * form.strip, DType.FLOAT32) for name, count in rows.items()}


def _queues(form: Form) -> dict[str, Buffer]:
    """What is loaded and stored strip by strip."""
    mix = form.mix
    tiles = sorted(mix.rows, key=lambda tile: not form.blended(tile))
    loads = {form.loaded(t): Buffer(t.count(mix) * form.strip, t.dtype) for t in tiles}
    outs = [blend.output for blend in mix.blends]
    stores = {form.stored(t): Buffer(t.count(mix) * form.strip, t.dtype) for t in outs}
    return {**loads, **stores}


def _small(form: Form) -> dict[str, Buffer]:
    """Buffers whose size is not that of a strip."""
    mix, found = form.mix, dict[str, Buffer]()
    for tile in mix.numbers:
        count = max(tile.count(mix) * form.jobs, _SHARED)
        found[form.loaded(tile)] = Buffer(count, tile.dtype)
        if tile.dtype is not DType.FLOAT32:
            found[form.numbers(tile)] = Buffer(count, DType.FLOAT32)
    if not mix.dots:
        return found
    pairs = sum(dot.output.count(mix) for dot in mix.dots)
    folded = pairs * form.strip // FOLD
    found[form["eighths"]] = Buffer(pairs * form.strip // 8, DType.FLOAT32)
    found[form["parts"]] = Buffer(folded, DType.FLOAT32)
    found[form["sums"]] = Buffer(folded * form.jobs, DType.FLOAT32)
    for word in ("totals", "picked", "scratch"):
        found[form[word]] = Buffer(pairs * form.jobs, DType.FLOAT32)
    found[form["strides"]] = Buffer(pairs * form.jobs, DType.INT32)
    for dot in mix.dots:
        count = max(dot.output.count(mix) * form.jobs, _SHARED)
        found[f"{dot.output.name}_{form['order']}"] = Buffer(count, DType.INT32)
        found[form.stored(dot.output)] = Buffer(count, dot.output.dtype)
    return found
