"""What is fused: each launch with the operations that it joins, and what passes between them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from npusmith.ir.nodes import Load, Mmad, Op, Program, Store
from npusmith.ir.walk import statements
from npusmith.lang.interp import Launched
from npusmith.report.schedule import listed
from npusmith.report.static_values import runs
from npusmith.report.svg import line, num, picture, rect, text

_MOST = 24  # launches that are drawn
_LEFT, _WIDE, _HIGH, _GAP, _TOP = 250.0, 420.0, 44.0, 24.0, 12.0
_NAMES = 40  # characters beside a box
_OPS = 62  # and in it


@dataclass(frozen=True, slots=True)
class Step:
    """One launch: what it takes and gives, by name, in the order of its statements."""

    name: str
    cores: str
    ops: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def step(program: Program, launched: Launched, name: str) -> Step:
    """A program of one kernel as that launch runs it."""
    block = runs(program, launched)
    reads, writes, ops = [], [], []
    for stmt in statements(block):
        match stmt:
            case Load(_, src):
                reads.append(src.tensor)
            case Store(dst):
                writes.append(dst.tensor)
            case Op():
                ops.append(stmt.name)
            case Mmad():
                ops.append("mmad")
    kind = "cube" if program.kernel.is_cube else "vector"
    cores = f"{launched.cores} {kind} core{'' if launched.cores == 1 else 's'}"
    cores += ", beside the one before" if program.host.launch.beside else ""
    own = set(writes)  # a kernel's own workspace passes nothing on
    return Step(
        name, cores, tuple(ops), tuple(dict.fromkeys(item for item in reads if item not in own)),
        tuple(dict.fromkeys(writes)),
    )  # fmt: skip


def fusion(steps: Sequence[Step], outputs: Sequence[str]) -> str:
    """The picture: launches from top to bottom, tensors beside them, values as arrows."""
    shown = steps[:_MOST]
    parts: list[str] = []
    made: dict[str, int] = {}
    lanes = 0
    for at, item in enumerate(shown):
        y = _TOP + at * (_HIGH + _GAP)
        parts += _box(at, item, y)
        outside = [name for name in item.reads if name not in made]
        if outside:
            parts.append(text(_LEFT - 26, y + 27, _cut(", ".join(outside), _NAMES), "dim", "end"))
            parts += _arrow(_LEFT - 22, y + 23, _LEFT, y + 23)
        for source in sorted({made[name] for name in item.reads if name in made}):
            names = [name for name in item.reads if made.get(name) == source]
            if source < at - 1:
                lanes += 1
            parts += _edge(source, at, names, lanes)
        given = [name for name in item.writes if name in outputs]
        if given:
            right = _LEFT + _WIDE
            parts += _arrow(right, y + 23, right + 22, y + 23)
            parts.append(text(right + 28, y + 27, _cut(", ".join(given), 22), "dim"))
        made |= dict.fromkeys(item.writes, at)
    bottom = _TOP + len(shown) * (_HIGH + _GAP)
    if len(steps) > _MOST:
        parts.append(text(_LEFT, bottom + 6, f"and {len(steps) - _MOST} more launches", "dim"))
        bottom += 20
    label = f"{len(steps)} launch{'' if len(steps) == 1 else 'es'} and what passes between them"
    return picture(860, bottom, label, parts)


def _box(at: int, item: Step, y: float) -> list[str]:
    return [
        rect("lane", _LEFT, y, _WIDE, _HIGH),
        text(_LEFT + 12, y + 18, f"{at + 1}. {item.name}: {item.cores}", "head"),
        text(_LEFT + 12, y + 35, _cut(listed(dict.fromkeys(item.ops)) or "copies", _OPS), "dim"),
    ]


def _edge(source: int, target: int, names: Sequence[str], lane: int) -> list[str]:
    """An arrow down to the next launch, or around those between; the names beside it."""
    first = _TOP + source * (_HIGH + _GAP) + _HIGH
    last = _TOP + target * (_HIGH + _GAP)
    words = _cut(", ".join(names), _NAMES)
    if target == source + 1:
        x = _LEFT + 40
        return [*_arrow(x, first, x, last), text(x + 10, first + 16, words, "dim")]
    x, bend = _LEFT + _WIDE - 20, _LEFT + _WIDE + 14 + 12 * (lane % 10)
    path = f"M{num(x)} {num(first)}v8H{num(bend)}V{num(last - 9)}H{num(x)}v4"
    title = html.escape(f"{', '.join(names)}: from {source + 1} to {target + 1}")
    return [
        f'<path class="arrow" d="{path}"><title>{title}</title></path>',
        *_arrow(x, last - 6, x, last),
    ]


def _arrow(x1: float, y1: float, x2: float, y2: float) -> list[str]:
    across = x1 != x2
    head = (
        f"M{num(x2 - 5)} {num(y2 - 3)}l5 3l-5 3"
        if across
        else f"M{num(x2 - 3)} {num(y2 - 5)}l3 5l3 -5"
    )
    return [line("edge", x1, y1, x2, y2), f'<path class="edge" d="{head}"/>']


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 3]}..."
