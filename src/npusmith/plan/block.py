"""Statement lists while they are being written, and the on-chip buffers that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Expr,
    For,
    If,
    Load,
    Note,
    Op,
    Stage,
    StageKind,
    Stmt,
    Store,
)
from npusmith.ir.walk import names, operands, values
from npusmith.plan.dag import Value


class Part(str, Enum):
    """What a buffer is for; the language lets it have one part."""

    LOADED = "loaded"
    STORED = "stored"
    SCRATCH = "scratch"
    THROUGH = "loaded and stored unchanged"


@dataclass(frozen=True, slots=True)
class Temp:
    """A buffer before buffers are shared out: as many as the writer likes.

    Wide ones hold a tile, the others one number (in 64 elements, which comparisons round up to) or
    `lanes` of them.
    """

    name: str
    dtype: DType
    part: Part
    wide: bool
    mask: bool = False
    hint: str = ""  # what the buffer holds, for its name
    lanes: int = 0
    share: int = 1  # a wide one holds this part of a tile: 1 / share
    times: int = 1  # ... or so many tiles


@dataclass(slots=True)
class Block:
    """One statement list: which groups have an index here, and which values are at hand."""

    opened: frozenset[int] = frozenset()
    index: dict[int, Expr] = field(default_factory=dict)
    count: Expr | None = None  # elements of the open tile along the last group
    resident: bool = False  # the open tile is all of the last group
    items: list[Stmt] = field(default_factory=list)
    buffers: dict[Value, str] = field(default_factory=dict)  # values computed here
    scalars: dict[Value, Expr] = field(default_factory=dict)  # ... and read as scalars
    spread: dict[tuple[Value, object], str] = field(default_factory=dict)  # ... copied over it
    indices: dict[tuple[tuple[int, ...], Expr], str] = field(default_factory=dict)  # of lanes
    copies: dict[object, Any] = field(default_factory=dict)  # that reads share (value_reads.py)
    extremes: dict[Value, tuple[Expr, Expr]] = field(default_factory=dict)  # of values, likewise
    decode: dict[int, Expr] = field(default_factory=dict)  # indices written down when first used
    head: int = 0  # where the next of those goes
    bounds: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # loops inside: their ranges
    starts: dict[Value, Expr | str] = field(default_factory=dict)  # what scans inside go on from
    width: Expr | None = None  # lanes of a tile that loops inside touch, where they are fewer
    joined: tuple[tuple[int, ...], str] | None = None  # groups that one variable runs along
    stretch: bool = False  # part of the turns of the loop inside it
    together: bool = False  # every core is here at the same time, with all of the work ahead


Path = tuple[Block, ...]


def staged(items: list[Stmt]) -> tuple[Stmt, ...]:
    """Sort a list into stages: between two loops first loads, then computing, then stores."""
    result: list[Stmt] = []
    segment: list[Stmt] = []
    read: set[str] = set()  # scalars that this segment takes from buffers
    for item in items:
        if _plain(item) and not (read and _early(item) and read & set(_names(item))):
            segment.append(item)
            if isinstance(item, Assign) and reads_values(item):
                read.add(item.target)
        elif _plain(item):
            result += _stages(segment)
            segment, read = [item], set()
        else:
            result += _stages(segment)
            result.append(item)
            segment, read = [], set()
    return (*result, *_stages(segment))


def _early(item: Stmt) -> bool:
    """Whether it comes before the operations of its segment."""
    return isinstance(item, Load) or (isinstance(item, Assign) and not reads_values(item))


def _names(item: Stmt) -> Iterator[str]:
    return (name for expr in operands(item) for name in names(expr))


def _plain(item: Stmt) -> bool:
    return isinstance(item, (Load, Store, Op, Assign, Note))


def _stages(segment: list[Stmt]) -> list[Stmt]:
    head = [item for item in segment if isinstance(item, Assign) and not reads_values(item)]
    kinds: tuple[tuple[StageKind, list[Stmt]], ...] = (
        (StageKind.COPY_IN, [item for item in segment if isinstance(item, Load)]),
        (StageKind.COMPUTE, _compute(segment)),
        (StageKind.COPY_OUT, [item for item in segment if isinstance(item, Store)]),
    )
    result: list[Stmt] = [*head]
    result += [Stage(kind, tuple(body)) for kind, body in kinds if body]
    return result


def _compute(segment: list[Stmt]) -> list[Stmt]:
    """Operations and scalars read from buffers; a note stays with what follows it."""
    body: list[Stmt] = [
        item
        for item in segment
        if isinstance(item, (Op, Note)) or (isinstance(item, Assign) and reads_values(item))
    ]
    return body if any(not isinstance(item, Note) for item in body) else []


def reads_values(item: Stmt) -> bool:
    """Whether a statement itself takes scalars from buffers."""
    return any(True for _ in values(item))


def loop(var: str, start: Expr, stop: Expr, step: Expr, block: Block) -> For:
    return For(var, start, stop, step, staged(block.items))


def choice(cond: Expr, then: Block, other: Block | None = None) -> If:
    return If(cond, staged(then.items), () if other is None else staged(other.items))
