"""Numbers of every core, brought to every core with one wait."""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Const,
    CoreId,
    Expr,
    Load,
    Name,
    Note,
    Span,
    Store,
    SyncCores,
    View,
)
from npusmith.plan.block import Block, Part, Path
from npusmith.plan.scalars import ONE, ZERO, minus, plus, product, times
from npusmith.plan.writer import Writer, op

EIGHT = Const(8)  # a block of 32 bytes: what a core writes lies in no block of another
_EIGHTH = Const(0.125)


def lanes_of_all() -> Expr:
    """Lanes that hold one number of every core, each eight times over."""
    return Binary(BinOp.MUL, Name("cores"), EIGHT)


def gather(w: Writer, path: Path, parts: Sequence[Expr]) -> list[View]:
    """For each number the lanes that hold it for all cores, in the order of the cores.

    Every core writes each of its numbers eight times. Sums over the lanes are eight times too
    large, which is exact. One buffer leaves and one comes: a queue position has few.
    """
    block, count = path[-1], lanes_of_all()
    side, sides = _side(w, path, len(parts))
    scratch = w.sizes.workspace(product((count, Const(len(parts) * sides))))
    block.items.append(Note("every core leaves its numbers in the workspace, then takes up all"))
    given = w.temp(DType.FLOAT32, False, Part.STORED, hint="given", lanes=8 * len(parts))
    for i, part in enumerate(parts):
        here = View(given, Const(8 * i))
        block.items.append(op("duplicate", (here,), (part,), EIGHT))
        place = plus(times(plus(side, Const(i)), count), times(CoreId(), EIGHT))
        block.items.append(Store(Span(scratch, place), here, EIGHT))
    block.items.append(SyncCores())
    taken = w.temp(DType.FLOAT32, False, Part.LOADED, hint="taken", lanes=most(w) * len(parts))
    whole = product((count, Const(len(parts))))
    block.items.append(Load(View(taken), Span(scratch, times(side, count)), whole))
    return [
        View(taken, product((count, Const(i)))) if i else View(taken) for i in range(len(parts))
    ]


def most(w: Writer) -> int:
    """Elements of a buffer for such lanes."""
    return w.chip.vector_cores * int(EIGHT.value)


def _side(w: Writer, path: Path, parts: int) -> tuple[Expr, int]:
    """In a loop, turns take the halves of the workspace by turns.

    A core is two turns ahead only when all others are done with the turn before: no second wait.
    """
    if len(path) == 1:
        return ZERO, 1
    name = w.fresh("side_")
    path[0].items.append(Assign(name, ZERO))
    path[-1].items.append(Assign(name, minus(Const(parts), Name(name))))
    return Name(name), 2


def over_all(w: Writer, block: Block, text: str, lanes: str | View, result: str) -> None:
    """The numbers of all cores as one."""
    spare = w.temp(DType.FLOAT32, False, hint="spare", lanes=most(w))
    block.items.append(op(f"reduce_{text}", (result, lanes, spare), (), lanes_of_all()))
    if text == "sum":
        block.items.append(op("muls", (result, result), (_EIGHTH,), ONE))
