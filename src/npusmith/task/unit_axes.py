"""Axes of size 1 that may have any size, such as a batch of one: found here, captured longer.

A capture leaves out what does nothing at a size of 1, so a graph of a batch of one is no program
for others. Where the model takes other sizes, it is captured at one of them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from npusmith.task.graph import Graph
from npusmith.task.shapes import Axis, Class, Shape, resize

# Near 1, so that what is tuned for the captured size suits a batch of one.
_SIZES = (2, 3, 5, 7, 11, 13)


def find_units(
    shapes: Sequence[Shape], graph: Graph, accepts: Callable[[list[Shape]], str]
) -> tuple[list[Class], int]:
    """Classes of leading axes of size 1 that vary, and the size to capture them at.

    Leading axes that broadcast against longer ones are refused by the model. accepts: why it does
    not take these shapes, empty when it does. The size is one that no value has, because equal
    sizes are guessed to be one.
    """
    rows = (*(item.shape for item in graph.inputs), *(item.shape for item in graph.nodes))
    seen = {size for row in rows for size in row}
    size, other = _two_of(seen)
    found: list[Class] = []
    for axes in _candidates(shapes):
        item = Class(1, axes, is_last=any(axis == len(shapes[i]) - 1 for i, axis in axes))
        if any(axes & other.axes for other in found):
            continue  # went together with an earlier one
        if not any(accepts(resize(shapes, {item: to})) for to in (size, other)):
            found.append(item)
    return found, size


def is_longer(own: Sequence[Shape], sized: Sequence[Shape]) -> bool:
    """Whether an axis of 1 is longer."""
    pairs = zip(own, sized, strict=True)
    return any(old == 1 < new for pair in pairs for old, new in zip(*pair, strict=True))


def _two_of(seen: Collection[int]) -> tuple[int, int]:
    unseen = [size for size in _SIZES if size not in seen]
    first, second, *_ = [*unseen, *(size for size in _SIZES if size in seen)]
    return first, second


def _candidates(shapes: Sequence[Shape]) -> Iterator[frozenset[Axis]]:
    """All leading axes together, those at one place from the right, and each alone.

    A batch leads tensors of several ranks (states and their positions); where these do not go
    together the model refuses it.
    """
    leads = [(i, len(shape)) for i, shape in enumerate(shapes) if shape and shape[0] == 1]
    ranks = sorted({rank for _, rank in leads}, reverse=True)
    groups = [[i for i, _ in leads]]
    groups += [[i for i, other in leads if other == rank] for rank in ranks]
    groups += [[i] for i, _ in leads]
    yield from dict.fromkeys(frozenset((i, 0) for i in group) for group in groups if group)
