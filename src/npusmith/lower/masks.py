"""Vector instructions of one length, in a loop or in a row: the mask is written once, before them.

An instruction in its count form writes the mask, and its start-up (some 24 cycles) cannot overlap
the instruction before it. With the count in the mask register (counter mode) instructions that do
not depend on each other run back to back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Barrier, Expr, For, Op, Program, Stmt
from npusmith.ir.walk import Block, names
from npusmith.lower.flow import assigned
from npusmith.lower.lines import code

_WORTH = 2  # start-ups that are hidden: writing the mask takes four short steps

_TWO = "MASK_PLACEHOLDER, 1, BinaryRepeatParams{{1, 1, 1, 8, 8, 8}})"
_ONE = "MASK_PLACEHOLDER, 1, UnaryRepeatParams{{1, 1, 8, 8}})"
_BINARY = "{ascend}<float, false>({dst}, {src0}, {src1}, " + _TWO
_JOINED = "{ascend}<float, false>({dst}, {dst}, {src}, " + _TWO
_SCALAR = "{ascend}<float, false>({dst}, {src}, {scalar}, " + _ONE
_TRIPLE = "{ascend}<float, float, false>({dst}, {src}, {scalar}, " + _ONE

# Forms that take the count from the mask register; {ascend} is the row's own name.
_FORMS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "max", "min"), _BINARY),
    **dict.fromkeys(
        ("accumulate_sum", "accumulate_prod", "accumulate_max", "accumulate_min"), _JOINED
    ),
    **dict.fromkeys(("adds", "muls", "maxs", "mins"), _SCALAR),
    "axpy": _TRIPLE,
}


def shared_count(loop: For, program: Program) -> Expr | None:
    """The count that all instructions of a loop have, where one mask serves them all."""
    ops = [stmt for stmt in loop.body if isinstance(stmt, Op)]
    if len(ops) != len(loop.body) or not all(_fits(op, program) for op in ops):
        return None
    counts = {op.count for op in ops}
    if len(counts) != 1:
        return None
    count = counts.pop()
    return None if set(names(count)) & (assigned(loop.body) | {loop.var}) else count


@dataclass(frozen=True, slots=True)
class Run:
    """Statements of a list, from the first to before the last, for which one mask is written."""

    first: int
    stop: int
    count: Expr


def runs(block: Block, program: Program) -> Iterator[Run]:
    """Instructions of one length that follow one another, many of them without a barrier between.

    Behind a barrier the start-up is not hidden, with or without a mask.
    """
    at = 0
    while at < len(block):
        first = block[at]
        if not isinstance(first, Op) or not _fits(first, program):
            at += 1
            continue
        stop, hidden = at + 1, 0
        while stop < len(block) and _continues(block[stop], first.count, program):
            hidden += isinstance(block[stop], Op) and isinstance(block[stop - 1], Op)
            stop += 1
        if hidden >= _WORTH:
            yield Run(at, stop, first.count)
        at = stop


def _continues(stmt: Stmt, count: Expr, program: Program) -> bool:
    if isinstance(stmt, Barrier):
        return True
    return isinstance(stmt, Op) and stmt.count == count and _fits(stmt, program)


def _fits(op: Op, program: Program) -> bool:
    """Whether there is a form that takes the count from the mask register."""
    wide = all(program.kernel.buffer(view.buffer).dtype is DType.FLOAT32 for view in op.views)
    return op.name in _FORMS and wide


def masked_form(name: str) -> str:
    """How an operation is emitted where the count stands in the mask register."""
    return _FORMS[name]


def framed(lines: list[str], count: str, indent: int) -> list[str]:
    """Instructions, indented by one more step, with their mask around them; none where it is 0."""
    return [
        *code(f"if ({count} > 0) {{", indent),
        *code("SetMaskCount();", indent + 1),
        *code(f"SetVectorMask<float, MaskMode::COUNTER>({count});", indent + 1),
        *lines,
        *code("SetMaskNorm();", indent + 1),
        *code("ResetMask();", indent + 1),
        *code("}", indent),
    ]
