"""Loops of vector instructions of one length: the mask is written once, before the loop.

An instruction in its count form writes the mask, and its start-up (some 24 cycles) cannot overlap
the instruction before it. With the count in the mask register (counter mode) instructions that do
not depend on each other run back to back.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Expr, For, Op, Program
from npusmith.ir.walk import names
from npusmith.lower.flow import assigned
from npusmith.lower.lines import code

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
    counts = {stmt.count for stmt in loop.body if isinstance(stmt, Op)}
    if len(counts) != 1 or not all(isinstance(stmt, Op) for stmt in loop.body):
        return None
    buffers = {buffer.name: buffer.dtype for buffer in program.kernel.buffers}
    for stmt in loop.body:
        assert isinstance(stmt, Op)
        wide = all(buffers[view.buffer] is DType.FLOAT32 for view in stmt.views)
        if stmt.name not in _FORMS or not wide:
            return None
    count = counts.pop()
    return None if set(names(count)) & (assigned(loop.body) | {loop.var}) else count


def masked_form(name: str) -> str:
    """How an operation is emitted where the count stands in the mask register."""
    return _FORMS[name]


def framed(lines: list[str], count: str, indent: int) -> list[str]:
    """A loop, already indented by one more step, with its mask around it; not where it is 0."""
    return [
        *code(f"if ({count} > 0) {{", indent),
        *code("SetMaskCount();", indent + 1),
        *code(f"SetVectorMask<float, MaskMode::COUNTER>({count});", indent + 1),
        *lines,
        *code("SetMaskNorm();", indent + 1),
        *code("ResetMask();", indent + 1),
        *code("}", indent),
    ]
