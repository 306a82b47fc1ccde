"""Named axes: which loop every dimension of every tensor of a graph runs along.

A dimension is a tuple of atoms, the row-major product of their sizes; a broadcast dimension has no
atoms. Elementwise operations unify the atoms of their operands, reshapes split and regroup them.
What is left at the end are the loops of the kernel. An axis of size 1 that is broadcast or dropped
is pinned: it is 1 for good and disappears.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

Dim = tuple["Atom", ...]
Dims = tuple[Dim, ...]


class AxisError(Exception):
    """A reshape or alignment that no set of loops can express; `code` says which kind."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(eq=False, slots=True)
class Atom:
    """One loop axis, a node of a union-find forest: merged with `same`, or split into `pieces`."""

    size: int
    same: Atom | None = None
    pieces: tuple[Atom, Atom] | None = None
    pinned: bool = False  # the size is 1 in every shape that the kernel serves
    model: bool = False  # the size is a number in the model, not one of an input's shape
    certain: bool = False  # ... and no guess: all that runs along the axis has it
    varied: bool = False  # the graph is known at other sizes, too
    free: bool = False  # made by expand or full: the captured graph holds only its size
    fixed: bool = False  # right for the captured size only, because the model has it as a number

    def fix(self) -> None:
        for leaf in _leaves((self,)):
            leaf.fixed = True


def leaves(dim: Iterable[Atom]) -> Dim:
    """The loops that a dimension stands for now, pinned ones left out."""
    return tuple(leaf for leaf in _leaves(dim) if not leaf.pinned)


def _leaves(dim: Iterable[Atom]) -> list[Atom]:
    found: list[Atom] = []
    for atom in dim:
        if atom.same is not None:
            found += _leaves((atom.same,))
        elif atom.pieces is not None:
            found += _leaves(atom.pieces)
        else:
            found.append(atom)
    return found


def extent(dim: Iterable[Atom]) -> int:
    """The size of a dimension in the captured shapes."""
    size = 1
    for atom in dim:
        size *= atom.size
    return size


def sizes(dims: Dims) -> tuple[int, ...]:
    return tuple(extent(dim) for dim in dims)


def fresh(shape: Sequence[int], model: bool = False, free: bool = False) -> Dims:
    """A new axis for each dimension."""
    return tuple((Atom(size, model=model, free=free),) for size in shape)


def pin(dim: Dim) -> None:
    for leaf in _leaves(dim):
        leaf.pinned = True


def unify(first: Dim, second: Dim) -> None:
    """Make two dimensions of equal size run along the same loops, splitting where needed."""
    left, right = _leaves(first), _leaves(second)
    while left and right and left[-1] is right[-1]:  # or a 1 in front would split it for ever
        left.pop()
        right.pop()
    while left and right:
        one, two = left[0], right[0]
        if one is two or one.size == two.size:
            _merge(left.pop(0), right.pop(0))
        elif _divides(one.size, two.size):
            right[:1] = split(two, one.size)
        elif _divides(two.size, one.size):
            left[:1] = split(one, two.size)
        else:
            raise AxisError(
                "plan-reshape", f"an axis of {one.size} and one of {two.size} have no common split"
            )
    rest = left + right
    if any(leaf.size != 1 for leaf in rest):
        raise AxisError("plan-reshape", "two groups of axes have no common split")
    pin(tuple(rest))


def _divides(small: int, large: int) -> bool:
    return 0 < small < large and large % small == 0


def _merge(one: Atom, two: Atom) -> None:
    if one is two:
        return
    two.same = one
    one.fixed = one.fixed or two.fixed
    one.pinned = one.pinned or two.pinned
    one.model = one.model and two.model
    one.free = one.free and two.free
    one.certain = one.certain or two.certain
    one.varied = one.varied or two.varied


def split(atom: Atom, size: int) -> tuple[Atom, Atom]:
    """Replace a loop by two nested ones, the outer of the given size."""
    outer, inner = (
        Atom(part, model=atom.model, fixed=atom.fixed, certain=atom.certain, varied=atom.varied)
        for part in (size, atom.size // size)
    )
    atom.pieces = (outer, inner)
    return atom.pieces


def align(layouts: Sequence[Dims]) -> Dims:
    """Broadcast layouts against each other as PyTorch does; returns the result's layout."""
    rank = max(len(dims) for dims in layouts)
    padded = [((),) * (rank - len(dims)) + dims for dims in layouts]
    return tuple(_align_dim([dims[i] for dims in padded]) for i in range(rank))


def _align_dim(column: Sequence[Dim]) -> Dim:
    size = next((extent(dim) for dim in column if extent(dim) != 1), 1)
    result: Dim = ()
    for dim in column:
        if extent(dim) == 1 and size != 1:
            pin(dim)
        elif dim and result:
            unify(result, dim)
        elif dim:
            result = dim
    return result


# ------------------------------------------------------------------------------------- reshaping


def regroup(dims: Dims, shape: Sequence[int], follows: Container[int] = ()) -> Dims:
    """`view`: the same elements in another shape. Raises plan-reshape where axes do not split.

    `follows`: the dimensions of the shape whose sizes follow from those of inputs.
    """
    head = 0
    limit = min(len(dims), len(shape))
    while head < limit and extent(dims[head]) == shape[head]:
        head += 1
    tail = 0
    while tail < limit - head and extent(dims[-1 - tail]) == shape[len(shape) - 1 - tail]:
        tail += 1
    middle = dims[head : len(dims) - tail]
    wanted = list(shape[head : len(shape) - tail])
    inside = {at for at in range(len(wanted)) if head + at in follows}
    fitted = _regroup(tuple(atom for dim in middle for atom in dim), wanted, inside)
    return dims[:head] + fitted + dims[len(dims) - tail :]


def _regroup(source: Dim, wanted: list[int], follows: Container[int]) -> Dims:
    queue = _leaves(source)
    result: list[Dim] = []
    broken: list[tuple[Atom, Atom]] = []
    for size in wanted:
        dim: list[Atom] = []
        need = size
        while need != 1:
            if not queue:
                raise AxisError("plan-reshape", f"no axis is left for a dimension of {size}")
            leaf = queue.pop(0)
            if leaf.size == need or (leaf.size and need % leaf.size == 0):
                dim.append(leaf)
                need = need // leaf.size if leaf.size else 1
            elif _divides(need, leaf.size):
                outer, inner = split(leaf, need)
                broken.append((outer, inner))
                dim.append(outer)
                queue.insert(0, inner)
                need = 1
            else:
                raise AxisError(
                    "plan-reshape", f"an axis of {leaf.size} does not split evenly by {need}"
                )
        result.append(tuple(dim))
    _place_rest(queue, result)
    _guess_numbers(broken, result, follows)
    return tuple(result)


def _place_rest(queue: list[Atom], result: list[Dim]) -> None:
    """Axes of size 1 that no wanted dimension took stay with the last one, or are pinned."""
    if any(leaf.size != 1 for leaf in queue):
        raise AxisError("plan-reshape", "axes are left over")
    last = next((i for i in reversed(range(len(result))) if result[i]), None)
    if last is None:
        pin(tuple(queue))
    else:
        result[last] += tuple(queue)


def _guess_numbers(
    broken: list[tuple[Atom, Atom]], result: list[Dim], follows: Container[int]
) -> None:
    """Of the two pieces of a split axis, decide which size is a number in the model.

    The one in a dimension that is a number, beside one that follows from inputs: the heads in
    `x.view(batch * rows, heads * width)`. `x.view(n, groups, -1)`: the piece that stands alone.
    Both alone: the smaller (a window, a head), because the captured graph holds no more than sizes.
    """
    alone = {leaf for dim in result for leaf in _leaves(dim) if len(_leaves(dim)) == 1}
    varying = {leaf for at, dim in enumerate(result) if at in follows for leaf in _leaves(dim)}
    for outer, inner in broken:
        if inner.pieces is not None or outer.pieces is not None:
            outer.model = True
        elif (outer in varying) != (inner in varying):
            (inner if outer in varying else outer).model = True
        elif (outer in alone) != (inner in alone):
            (outer if outer in alone else inner).model = True
        else:
            (outer if outer.size < inner.size else inner).model = True
