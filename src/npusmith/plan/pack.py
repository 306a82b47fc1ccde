"""Buffers for temporaries: a linear scan over the kernel, then the largest tile that fits UB.

A temporary lives from its first to its last use; one that is used inside a loop and outside of it
lives through the whole loop. Temporaries of one part, type and size share a buffer where their
lives do not overlap.
"""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    Buffer,
    Combine,
    Const,
    For,
    If,
    Load,
    Op,
    Stage,
    Stmt,
    Store,
)
from npusmith.ir.walk import statements, values
from npusmith.lang.words import why_reserved
from npusmith.lower.double_buffer import MOST_BUFFERS, MOST_PER_POSITION
from npusmith.plan.block import Part, Temp
from npusmith.plan.decisions import STEP, Decisions
from npusmith.plan.fused_products import Touched, fuse_products
from npusmith.plan.half_arithmetic import in_halves
from npusmith.plan.host import TILE
from npusmith.plan.renaming import renamed
from npusmith.plan.scalars import quotient, times
from npusmith.plan.stored_buffers import Homes, homes_of, is_alike, without_copies
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import INTRINSICS, Form

_SMALL = 64  # elements of a buffer for one number: comparisons work on whole 256-byte repeats
LARGEST = 8192  # elements of a tile
_MASK = 32  # bytes of a small mask: at least a block
_QUARTER = 4  # part of a tile of which any tile has whole repeats
_SHORT = tuple(range(1024 - STEP, 0, -STEP))  # lengths to choose from, besides whole 1024s
_BLOCK = 32  # bytes
_LIBRARY_SPARE = 16 * 1024  # bytes that library functions take from what is left of UB
_Alike = tuple[DType, Part, bool, bool, int, int, int]
_DOUBLED = (Part.LOADED, Part.STORED, Part.THROUGH)  # the lowering may double-buffer these


@dataclass(frozen=True, slots=True)
class Tiles:
    """Which tiles there are to choose from, in elements."""

    least: int = STEP  # of one that a schedule asks for
    largest: int = LARGEST
    doubled: bool = True  # with room for two of every buffer that is loaded or stored


@dataclass(slots=True)
class Life:
    """Half steps from the first write to the last read."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Packed:
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    tile: int


def pack(
    body: tuple[Stmt, ...],
    temps: dict[str, Temp],
    taken: set[str],
    chip: Chip,
    decisions: Decisions | None = None,
    tiles: Tiles | None = None,
) -> Packed:
    """Share buffers, name them, and choose the tile. Raises plan-ub when not even 256 fit.

    A tile that is chosen shorter leaves the buffers as long as they are: near_shapes.py. Parts of a
    tile are smaller where tiles are long: of short ones a quarter is the least.
    """
    tiles, touched = tiles or Tiles(), Touched()
    body, temps = in_halves(body, temps, touched)
    body = renamed(*fuse_products(body, temps, touched))
    try:
        return _pack(body, temps, touched, taken, chip, decisions, tiles)
    except PlanError as problem:
        if problem.code != "plan-ub" or all(temp.share <= _QUARTER for temp in temps.values()):
            raise
        larger = {
            name: replace(temp, share=min(temp.share, _QUARTER)) for name, temp in temps.items()
        }
        return _pack(body, larger, touched, taken, chip, decisions, tiles)


def _pack(
    body: tuple[Stmt, ...],
    temps: dict[str, Temp],
    touched: Touched,
    taken: set[str],
    chip: Chip,
    decisions: Decisions | None,
    tiles: Tiles,
) -> Packed:
    body = renamed(*without_copies(body, temps, touched))
    shared = _longest_tile(body, temps, chip, tiles, touched)
    names = _names(shared, temps, taken)
    mapping = {temp: names[i] for i, members in enumerate(shared) for temp in members}
    kinds = [temps[members[0]] for members in shared]
    copies = _copies(kinds, names, decisions)
    _check_queues(kinds, copies, _combines(body))
    tile = _tile(kinds, copies, body, chip, decisions, tiles)
    buffers = [
        _buffer(kind, name, asked) for kind, name, asked in zip(kinds, names, copies, strict=True)
    ]
    order = {Part.LOADED: 0, Part.THROUGH: 1, Part.STORED: 2, Part.SCRATCH: 3}
    by_part = sorted(
        zip(buffers, kinds, strict=True), key=lambda pair: (order[pair[1].part], not pair[1].wide)
    )
    return Packed(
        tuple(buffer for buffer, _ in by_part),
        renamed(body, mapping),
        tile,
    )


# ------------------------------------------------------------------------------------------ lives


@dataclass(slots=True)
class Scan:
    """A walk over the kernel that numbers statements and notes where temporaries are touched."""

    temps: dict[str, Temp]
    lives: dict[str, Life]
    touched: dict[str, list[tuple[int, tuple[int, ...]]]]
    spans: dict[int, tuple[int, int]]
    now: int = 0

    def walk(self, block: tuple[Stmt, ...], loops: tuple[int, ...]) -> None:
        loaded: list[str] = []
        for stmt in block:
            self.now += 2
            self._touch(stmt, loops)
            match stmt:
                case For():
                    mark = len(self.spans)
                    self.spans[mark] = (0, 0)
                    start = self.now
                    self.walk(stmt.body, (*loops, mark))
                    self.now += 2
                    self.spans[mark] = (start, self.now)
                case If():
                    self.walk(stmt.then, loops)
                    self.walk(stmt.orelse, loops)
                case Stage():
                    self.walk(stmt.body, loops)
                    loaded += [s.dst.buffer for s in stmt.body if isinstance(s, Load)]
                case _:
                    pass
        self.now += 2
        for name in loaded if loops else ():  # in a loop it is given back at the end of its list
            self.touched[name].append((self.now, loops))

    def _touch(self, stmt: Stmt, loops: tuple[int, ...]) -> None:
        for name, late in _uses(stmt):
            if name in self.temps:
                self.touched.setdefault(name, []).append((self.now + late, loops))


def _uses(stmt: Stmt) -> list[tuple[str, int]]:
    """Buffers that a statement touches; 1 where a write may share a buffer with a source."""
    used = [(view.buffer, 0) for view in values(stmt)]
    match stmt:
        case Load(dst):
            used.append((dst.buffer, 0))
        case Store(_, src):
            used.append((src.buffer, 0))
        case Combine(_, dst, src):
            used += [(dst.buffer, 0), (src.buffer, 0), (src.buffer, 1)]
        case Op(name, views):
            used += _op_uses(name, [view.buffer for view in views])
            # of a buffer that is read at two places one stands elsewhere than what is written
            sources = {view.buffer: view.offset for view in views[1:]}
            used += [(v.buffer, 1) for v in views[1:] if v.offset != sources[v.buffer]]
        case _:
            pass
    return used


def _op_uses(name: str, views: list[str]) -> list[tuple[str, int]]:
    row = INTRINSICS[name]
    # in place only where source and destination elements are alike
    apart = row.form not in (Form.MAP, Form.ROWS)
    in_place = not row.library and name not in ("cast", "compare", "compares", "select", "selects")
    in_place = in_place and not apart
    used = [(views[0], 1)] if in_place else [(views[0], 0), (views[0], 1)]
    used += [(view, 0) for view in views[1:]]
    if apart:
        used += [(view, 1) for view in views[1:]]
    return used


def _lives(body: tuple[Stmt, ...], temps: dict[str, Temp]) -> dict[str, Life]:
    scan = Scan(temps, {}, {}, {})
    scan.walk(body, ())
    lives = {}
    for name, touches in scan.touched.items():
        life = Life(min(at for at, _ in touches), max(at for at, _ in touches))
        nests = {loops for _, loops in touches}
        everywhere = set.intersection(*map(set, nests))
        for loops in nests:
            for mark in set(loops) - everywhere:
                start, end = scan.spans[mark]
                life.start, life.end = min(life.start, start), max(life.end, end)
        lives[name] = life
    return lives


# ----------------------------------------------------------------------------------------- sharing


def _longest_tile(
    body: tuple[Stmt, ...], temps: dict[str, Temp], chip: Chip, tiles: Tiles, touched: Touched
) -> list[list[str]]:
    """With scratch in stored buffers where tiles are longer for that."""
    lives, sources = _lives(body, temps), _first_sources(body, temps)
    apart = _assign(lives, temps, sources, None)
    inside = _assign(lives, temps, sources, homes_of(body, touched))

    def tile(shared: list[list[str]]) -> int:
        kinds = [temps[members[0]] for members in shared]
        with contextlib.suppress(PlanError):
            return _tile(kinds, (0,) * len(kinds), body, chip, None, tiles)
        return 0

    return max(apart, inside, key=tile) if len(inside) < len(apart) else apart


def _assign(
    lives: dict[str, Life], temps: dict[str, Temp], sources: dict[str, str], homes: Homes | None
) -> list[list[str]]:
    """Temporaries by the buffer that they share, in the order of their first use.

    A tile goes where its first source was, if that is free: its other sources stay in other
    buffers, and so in other banks.
    """
    shared: list[list[str]] = []
    kinds: dict[_Alike, list[int]] = {}  # of `shared`, by what its members have in common
    ends: list[int] = []  # of the last life of each
    for name in sorted(lives, key=lambda item: (lives[item].start, int(item[1:]))):
        temp, life = temps[name], lives[name]
        alike = kinds.setdefault(_alike(temp), [])
        free = [at for at in alike if ends[at] < life.start]
        same = [at for at in free if temps[shared[at][0]].hint == temp.hint] or free
        near = [at for at in same if shared[at][-1] == sources.get(name)] or same
        if near:
            shared[near[0]].append(name)
            ends[near[0]] = life.end
            continue
        found = _scratch_for(name, shared, ends, lives, temps, homes) if homes else None
        if found is None:
            alike.append(len(shared))
            shared.append([name])
            ends.append(life.end)
            continue
        scratch_kind = kinds[_alike(temps[shared[found][0]])]
        scratch_kind.remove(found)
        bisect.insort(alike, found)
        shared[found].insert(0, name)
        ends[found] = max(ends[found], life.end)
    return shared


def _scratch_for(
    name: str,
    shared: Sequence[Sequence[str]],
    ends: Sequence[int],
    lives: Mapping[str, Life],
    temps: Mapping[str, Temp],
    homes: Homes,
) -> int | None:
    """Scratch that is over when a tile to be stored is first written, in the same list alone."""
    if temps[name].part is not Part.STORED:
        return None
    for at, members in enumerate(shared):
        if ends[at] < lives[name].start and all(
            is_alike(temps[member], temps[name]) and homes.within(member, name)
            for member in members
        ):
            return at
    return None


def _alike(temp: Temp) -> _Alike:
    """What two of one buffer have in common."""
    return temp.dtype, temp.part, temp.wide, temp.mask, temp.lanes, temp.share, temp.times


def _first_sources(body: tuple[Stmt, ...], temps: dict[str, Temp]) -> dict[str, str]:
    """Of each tile that is computed the first of its sources."""
    found: dict[str, str] = {}
    for op in statements(body):
        if isinstance(op, Op) and len(op.views) > 1:
            target, source, *_ = (view.buffer for view in op.views)
            if target in temps and temps[target].wide:
                found.setdefault(target, source)
    return found


def _names(shared: Sequence[Sequence[str]], temps: dict[str, Temp], taken: set[str]) -> list[str]:
    used = set(taken)
    names = []
    for members in shared:
        temp = temps[members[0]]
        stem = _stem(temp, [temps[name] for name in members])
        name, turn = stem, 0
        while name in used or why_reserved(name) or (turn == 0 and stem in ("t", "s", "m")):
            name, turn = f"{stem}{turn}", turn + 1
        used.add(name)
        names.append(name)
    return names


def _stem(temp: Temp, members: Iterable[Temp]) -> str:
    suffix = {Part.LOADED: "_in", Part.STORED: "_out", Part.THROUGH: "_copy"}.get(temp.part)
    if suffix is not None:
        return f"{temp.hint}{suffix if temp.wide else suffix + '1'}"
    hints = {member.hint for member in members}
    if hints == {temp.hint} and temp.hint:
        return temp.hint if temp.wide else f"{temp.hint}1"
    return "m" if temp.mask else "t" if temp.wide else "s"


# ------------------------------------------------------------------------------------------- sizes


def _copies(
    kinds: Sequence[Temp], names: Sequence[str], decisions: Decisions | None
) -> tuple[int, ...]:
    """How many of each buffer a schedule wants; 0: the lowering makes two where there is room."""
    if decisions is None:
        return (0,) * len(kinds)
    queued = [name for kind, name in zip(kinds, names, strict=True) if kind.part in _DOUBLED]
    fullest = max((sum(kind.part is part for kind in kinds) for part in _DOUBLED), default=1)
    asked = decisions.copies(queued, MOST_PER_POSITION // max(fullest, 1))
    return tuple(asked.get(name, 0) for name in names)


def _tile(
    kinds: Sequence[Temp],
    copies: Sequence[int],
    body: tuple[Stmt, ...],
    chip: Chip,
    decisions: Decisions | None,
    tiles: Tiles,
) -> int:
    """Elements that the buffers have room for."""
    ops = list(_ops(body))
    library = any(INTRINSICS[item.name].library for item in ops)
    room = chip.ub_bytes - (_LIBRARY_SPARE if library else 0)
    if _combines(body):  # the numbers of all cores, in blocks, in two copies
        room -= 2 * (_BLOCK * chip.vector_cores + _BLOCK)
    wide = [kind for kind in kinds if kind.wide]

    def size(tile: int, spare: bool = tiles.doubled) -> int:
        return sum(
            _bytes(kind, tile if kind.wide else kind.lanes or _SMALL, count, spare)
            for kind, count in zip(kinds, copies, strict=True)
        )

    step = _SMALL * max((kind.share for kind in wide), default=1)  # parts are whole repeats too
    lengths = (*range(tiles.largest, 1023, -1024), *_SHORT)
    legal = [tile for tile in lengths if tile % step == 0] if wide else [STEP]
    fitting = (tile for tile in legal if size(tile) <= room)
    tile = next(fitting, 0)
    if not tile:
        raise PlanError(
            "plan-ub",
            f"{len(wide)} tiles are alive at once: {size(STEP)} B for {STEP} elements each, "
            f"{chip.name} has {max(room, 0)} B",
        )
    powers = any(item.name == "accumulate_prod" for item in ops)
    if powers:
        tile = 1 << (tile.bit_length() - 1)  # products are folded by halves
    if decisions is None or not wide:
        return tile
    whole = math.lcm(step, STEP)
    longer = range(tile + whole, 2 * tile + 1, whole)
    most = max((item for item in longer if size(item, False) <= room), default=tile)
    asked = decisions.tile(tile, tiles.least, most, powers, whole)
    return asked if powers else max(asked, tile)


def _bytes(temp: Temp, length: int, copies: int, spare: bool) -> int:
    """`spare`: with room for a second buffer where one may be made."""
    if temp.mask:
        return max(length // (8 if temp.wide else 2), 32)
    double = 2 if spare and temp.part in _DOUBLED and temp.times == 1 else 1
    return length // temp.share * temp.times * temp.dtype.bytes * (copies or double)


def _combines(block: tuple[Stmt, ...]) -> bool:
    return any(isinstance(stmt, Combine) for stmt in statements(block))


def _ops(block: tuple[Stmt, ...]) -> Iterable[Op]:
    for stmt in block:
        match stmt:
            case Op():
                yield stmt
            case For() | Stage():
                yield from _ops(stmt.body)
            case If():
                yield from _ops(stmt.then)
                yield from _ops(stmt.orelse)
            case _:
                pass


def _buffer(temp: Temp, name: str, copies: int) -> Buffer:
    if temp.share > 1 or temp.times > 1:
        part = quotient(TILE, Const(temp.share))
        return Buffer(name, temp.dtype, times(part, Const(temp.times)), copies=copies)
    if not temp.mask:
        small = Const(temp.lanes) if temp.lanes else Const(_SMALL)
        return Buffer(name, temp.dtype, TILE if temp.wide else small, copies=copies)
    length = Binary(BinOp.FLOORDIV, TILE, Const(8)) if temp.wide else Const(_MASK)
    return Buffer(name, DType.UINT8, length)


def _check_queues(kinds: Sequence[Temp], copies: Sequence[int], combines: bool) -> None:
    """A chip has so many buffers, and queues for those that are filled, or sent.

    `combines`: the lowering adds one that is sent, and one that is filled with what others sent.
    """
    total = len(kinds) + 2 * combines
    if total > MOST_BUFFERS:
        raise PlanError(
            "plan-queues", f"{total} buffers in one kernel", legal=f"at most {MOST_BUFFERS}"
        )
    for part in _DOUBLED:
        found = zip(kinds, copies, strict=True)
        count = sum(max(asked, 1) for kind, asked in found if kind.part is part)
        count += combines and part is not Part.THROUGH
        if count > MOST_PER_POSITION:
            raise PlanError(
                "plan-queues", f"{count} buffers are {part.value} at once",
                legal=f"at most {MOST_PER_POSITION}",
            )  # fmt: skip
