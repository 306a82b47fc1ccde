"""Windows along axes: which places of an input each output of a pooling takes in.

Output i takes in the places `i * stride - padding + k * dilation`, `k` below `size`. What lies
outside of the input counts as the neutral element of the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.plan.axes import Atom, Dim, leaves
from npusmith.plan.dag import Value


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """The windows along one dimension."""

    x: Dim  # of what is pooled
    out: Dim  # of the result
    size: int  # elements that a window takes in
    stride: int
    padding: int
    dilation: int
    reaches: bool  # windows may reach out of the input

    @property
    def span(self) -> int:
        """From the first to the last element of a window."""
        return (self.size - 1) * self.dilation + 1

    @property
    def plain(self) -> bool:
        """Whether every element is a window."""
        return (self.size, self.stride, self.padding) == (1, 1, 0)


@dataclass(frozen=True, slots=True)
class Windowed:
    """A reduction over windows: what is pooled, over its own axes, and the windows along them."""

    value: Value
    axes: tuple[WindowAxis, ...]

    @property
    def moved(self) -> tuple[Atom, ...]:
        """Axes that windows move along, before and behind."""
        moved = [axis for axis in self.axes if not axis.plain]
        return tuple(leaf for axis in moved for leaf in leaves((*axis.x, *axis.out)))
