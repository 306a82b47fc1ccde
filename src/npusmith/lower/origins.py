"""Which line of the tile program a line of its generated kernel was made of.

A finding of the compiler or of the twin names a line of op_kernel/<op>.cpp, which means nothing to
who wrote the tile program. The kernel is printed once more, with the origin behind each line.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec
from npusmith.lower.emit import MARK
from npusmith.lower.kernel import kernel_file, write_kernel
from npusmith.lower.tiling import plan_tiling


def origins(program: Program, spec: OpSpec) -> dict[int, int]:
    """Lines of the tile program by lines of op_kernel/<op>.cpp, from 1; of a lowered program.

    What passes have put in (queues, barriers) is of the statement beside it in the same function;
    a stage that is printed once for several is of the first of them.
    """
    tiling = plan_tiling(program, spec)
    kernel = write_kernel(program, spec, tiling, marks=True)
    texts = kernel_file(spec, tiling, kernel).split("\n")
    own = [int(text.partition(MARK)[2] or 0) for text in texts]
    near = {at: _beside(texts, own, at) for at in range(len(texts))}
    return {at + 1: line for at, line in near.items() if line}


def _beside(texts: Sequence[str], own: Sequence[int], at: int) -> int:
    """The line's own origin, or the next one above, or below, within its function."""
    for step in (-1, 1):
        place = at
        while 0 <= place < len(texts) and texts[place].strip():
            if own[place]:
                return own[place]
            place += step
    return 0
