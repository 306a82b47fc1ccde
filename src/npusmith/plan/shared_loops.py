"""Outputs by the loop that makes them, so that what they read is read once."""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.plan.dag import reachable
from npusmith.plan.lane_space import Lanes, dependencies
from npusmith.plan.stores import Target


def loops_of(
    w: Lanes, targets: Sequence[Target], shared: bool, alone: Sequence[Target] = ()
) -> list[list[Target]]:
    """Outputs by the loop that makes them: those along the same axes that read the same tensors.

    `alone`: outputs that have a loop of their own.
    """
    held = [element.value for element in w.meaning.reader.elements]
    found: list[list[Target]] = []
    reads: list[set[str]] = []
    for target, row in zip(targets, w.rows, strict=False):
        values = dependencies([target.output.value], held)
        own = {value.text for value in values if value.op == "load"}
        for same, read in zip(found, reads, strict=True):
            alike = w.rows[targets.index(same[0])] == row and read & own
            if shared and alike and target not in alone and same[0] not in alone:
                same.append(target)
                read |= own
                break
        else:
            found.append([target])
            reads.append(own)
    return found


def numbers_of(
    w: Lanes, targets: Sequence[Target], loops: list[list[Target]], same: list[Target], outer: int
) -> list[list[Target]]:
    """Outputs of other loops that are numbers of the rows of this one, and read what it reads."""
    row = w.rows[targets.index(same[0])]

    def reads(part: Sequence[Target]) -> set[str]:
        values = reachable([target.output.value for target in part])
        return {value.text for value in values if value.op == "load"}

    return [
        part for part in loops
        if 0 < len(w.rows[targets.index(part[0])]) < len(row)
        and w.rows[targets.index(part[0])] == row[:outer] and reads(part) & reads(same)
    ]  # fmt: skip
