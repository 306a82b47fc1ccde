"""Numbers of a graph that follow from sizes of inputs: ints and floats that know their formula."""

from __future__ import annotations

from npusmith.task.graph import Literals, Ref, SymbolicSize


class SymbolicInt(int):
    """A whole number, as captured."""

    size: SymbolicSize


class SymbolicFloat(float):
    """Another number, as captured."""

    size: SymbolicSize


SYMBOLIC = (SymbolicInt, SymbolicFloat)


def symbolic(size: SymbolicSize | None, number: Ref | Literals) -> Ref | Literals:
    """The number with its formula, if it has one."""
    if size is None or not isinstance(number, int | float):
        return number
    made: SymbolicInt | SymbolicFloat
    made = SymbolicInt(number) if isinstance(number, int) else SymbolicFloat(number)
    made.size = size
    return made
