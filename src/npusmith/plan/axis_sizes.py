"""Axes as expressions over input shapes: how long each is, and which shapes are served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dims, extent, leaves
from npusmith.plan.index import bound, is_positive, multiple, poly, replaced, simple
from npusmith.plan.read import Meaning
from npusmith.plan.reader import SIZE
from npusmith.plan.scalars import divides, minus, product, quotient, same
from npusmith.task.graph import GraphInput


def leaf_sizes(
    meaning: Meaning,
    used: Sequence[tuple[GraphInput, Dims]],
    called: dict[str, str],
    wanted: Iterable[Atom],
) -> dict[Atom, Expr]:
    """Each axis as an expression over input shapes: a dimension, a part of one, or a number."""
    known: dict[Atom, Expr] = {}
    whole = [
        (leaves(dim), Dim(called[item.name], i))
        for item, dims in sorted(used, key=lambda pair: pair[0].kind != "user")
        for i, dim in enumerate(dims)
    ]
    for row, size in whole:
        if len(row) == 1:
            known.setdefault(row[0], size)
    pending = [leaf for leaf in dict.fromkeys(wanted) if leaf not in known]
    for leaf in [leaf for leaf in pending if leaf.model]:
        known[leaf] = Const(leaf.size)
    for leaf in dict.fromkeys([*known, *pending]):
        if leaf.fixed:
            known[leaf] = Const(leaf.size)
    found = -1
    while found < len(known):  # an axis found in one row may leave one unknown in an earlier row
        found = len(known)
        for row, size in whole:
            _divide(row, size, known)
        for dim, formula in meaning.reader.sized:
            size_of = sized(meaning, known, formula)
            if size_of is not None:
                _divide(leaves(dim), size_of, known)
    for leaf in pending:
        if leaf not in known:
            known[leaf] = _matching(leaf, whole) or Const(leaf.size)
    return known


def _divide(row: tuple[Atom, ...], size: Expr, known: dict[Atom, Expr]) -> None:
    """The one axis of a row that is not known yet."""
    missing = [leaf for leaf in row if leaf not in known]
    if len(missing) == 1:
        others = product(known[leaf] for leaf in row if leaf is not missing[0])
        known[missing[0]] = quotient(size, others)


def sized(meaning: Meaning, known: Mapping[Atom, Expr], expr: Expr) -> Expr | None:
    """An expression over sizes of axes as one over input shapes; None where one is not known."""
    atoms = meaning.reader.atoms

    def size(name: str) -> Expr | None:
        row = leaves((atoms[int(name.removeprefix(SIZE))],))
        return product(known[leaf] for leaf in row)

    rows = [leaves((atoms[int(name.removeprefix(SIZE))],)) for name in names(expr)]
    if any(leaf not in known for row in rows for leaf in row):
        return None
    return simple(replaced(expr, size))


def _matching(leaf: Atom, whole: Sequence[tuple[tuple[Atom, ...], Expr]]) -> Expr | None:
    """`expand_as(x)` leaves a number in the graph: the first input dimension of this size."""
    same = [size for row, size in whole if leaf.free and extent(row) == leaf.size and row]
    return same[0] if same else None


def size_notes(used: Sequence[tuple[GraphInput, Dims]], known: dict[Atom, Expr]) -> list[str]:
    """Say which dimensions the program takes a number of the model's into."""
    notes = []
    for item, dims in used:
        for i, dim in enumerate(dims):
            row = leaves(dim)
            numbers = [str(leaf.size) for leaf in row if isinstance(known[leaf], Const)]
            if numbers:
                notes.append(f"{item.name}.shape[{i}] is split by {' * '.join(numbers)}")
            if dim and not row:
                notes.append(f"{item.name}.shape[{i}] is 1 in every shape that the kernel serves")
    return notes


def legal_sizes(
    meaning: Meaning,
    used: Sequence[tuple[GraphInput, Dims]],
    called: dict[str, str],
    known: dict[Atom, Expr],
) -> Iterator[Expr]:
    """A comparison for every dimension of an input that may not have any size."""
    for item, dims in used:
        for i, dim in enumerate(dims):
            own, row = Dim(called[item.name], i), leaves(dim)
            if own in (known[leaf] for leaf in row) and len(row) == 1:
                continue
            parts = [product(known[leaf] for leaf in row if leaf is not part) for part in row]
            split = next(
                (rest for part, rest in zip(row, parts, strict=True)
                 if known[part] == quotient(own, rest)), None,
            )  # fmt: skip
            if split is None:
                yield same(own, product(known[leaf] for leaf in row))
            else:
                yield divides(split, own)
    names_used = {item.name for item, _ in used}
    others = (dims for item, dims in meaning.inputs if item.name not in names_used)
    foreign = {leaf for dims in others for dim in dims for leaf in leaves(dim)}
    foreign -= {leaf for _, dims in used for dim in dims for leaf in leaves(dim)}
    for dim, formula in meaning.reader.sized:
        row = leaves(dim)
        if foreign & {*row, *meaning.reader.axes_of(formula)}:
            continue  # of an input that the kernel does not take: known as captured alone
        wanted = sized(meaning, known, formula) if all(leaf in known for leaf in row) else None
        if wanted is not None:
            yield from _equal(product(known[leaf] for leaf in row), wanted)
    for leaf, size in known.items():
        if leaf.certain and not isinstance(size, Const):
            yield same(size, Const(leaf.size))
    tight: dict[tuple[Expr, BinOp], int] = {}
    for expr in meaning.reader.positive:
        found = sized(meaning, known, expr)
        if found is None:
            continue
        if is_positive(found):
            continue
        if (parted := multiple(found)) is not None:
            yield divides(parted[1], parted[0])
            continue
        found, compared, number = bound(found)
        if isinstance(found, Const):
            continue  # compared at the capture
        old = tight.get((found, compared), number)
        tight[found, compared] = max(old, number) if compared is BinOp.GE else min(old, number)
    for (found, compared), number in tight.items():
        yield Binary(compared, found, Const(number))


def _equal(one: Expr, two: Expr) -> Iterator[Expr]:
    """That two sizes are the same, where they may differ."""
    if poly(one) == poly(two):
        return
    parts = multiple(minus(one, two)) or multiple(minus(two, one))
    yield divides(parts[1], parts[0]) if parts is not None else same(one, two)
