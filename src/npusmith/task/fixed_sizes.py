"""Sizes that a captured graph holds as numbers: a kernel for that graph serves these sizes alone.

In `x.view(-1, 4, 4)` the model itself takes no other row than one of 16, and nothing else says so.

In `x.sum() / x.shape[0]` a graph divides by 1024. Which axes such a number came from is found by
capturing again at other sizes: where the graph is another one, in more than the sizes of its views,
each class of axes is tried by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npusmith.task.shapes import Axis, Class, Shape, aligned, is_whole, resize
from npusmith.task.symbolic_sizes import probe

# Why the graph captured at these shapes is another program; empty when it is the same, and where
# the model does not take them.
Differs = Callable[[list[Shape]], str]


def find_fixed(
    own: Sequence[Shape], free: Sequence[Class], tried: Sequence[list[Shape]], differs: Differs
) -> tuple[Axis, ...]:
    """Axes (tensor, axis from the left) that must keep their own sizes.

    tried: sets of other shapes; without any, a size of each class. Sizes of 1, and of a single
    step, say nothing: graphs differ there, by what they leave out, that compute the same.
    """
    alone = [resize(own, {item: probe(item)}) for item in free]
    whole = [sized for sized in tried if is_whole(own, sized) and not _shrunk(free, own, sized)]
    other = [sized for sized in whole or alone if differs(sized)]
    if not other:
        return ()
    fixed = [item for item, sized in zip(free, alone, strict=True) if differs(sized)]
    for sized in other:
        changed = [item for item in free if _changes(item, own, sized)]
        if not any(item in fixed for item in changed):  # a branch that only some sizes take
            fixed += changed
    return tuple(sorted({axis for item in fixed for axis in item.axes}))


def find_refused(
    own: Sequence[Shape],
    free: Sequence[Class],
    held: Sequence[Shape],
    refusal: Callable[[list[Shape]], str],
) -> tuple[Axis, ...]:
    """Axes of one input that the model takes at no other size, where no parameter has that size.

    held: shapes of parameters, buffers and constants, which a kernel is given and compares. Where
    axes of several inputs are refused, their sizes may hang together: an axis of 1 of one input
    broadcasts against another, which a kernel compares, and is looked at where there is no other.
    """
    moving = {axis for item in free for axis in item.axes}
    known = {size for shape in held for size in shape}
    first = own[0] if len(own) == 1 else ()
    units = [Class(1, frozenset({(0, axis)})) for axis, size in enumerate(first) if size == 1]
    alone = [
        item
        for item in [*units, *aligned(own)]
        if not item.axes & moving
        and item.size not in known
        and all(refusal(resize(own, {item: times * item.size})) for times in (2, 3))
    ]
    axes = sorted({axis for item in alone for axis in item.axes})
    return tuple(axes) if len({position for position, _ in axes}) == 1 else ()


def _shrunk(free: Sequence[Class], own: Sequence[Shape], sized: Sequence[Shape]) -> bool:
    """Whether a class has a single step left: the `x.shape[1] // 4` of a view is 1 there."""
    return any(sized[i][axis] <= item.step < own[i][axis] for item in free for i, axis in item.axes)


def _changes(item: Class, own: Sequence[Shape], sized: Sequence[Shape]) -> bool:
    return any(own[i][axis] != sized[i][axis] for i, axis in item.axes)
