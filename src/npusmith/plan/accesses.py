"""Slices of inputs and joined outputs as accesses of loops: a start, and a step along each axis.

Loops over axes read and store tensors whole. Here index maps are pushed down to the inputs, as long
as each is a start and steps (slices, selections, flips of outer axes), and an output that is joined
of pieces is stored piece by piece. Maps that say anything else are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from npusmith.ir.nodes import Expr
from npusmith.ir.walk import names
from npusmith.plan.axes import Atom, Dim, leaves
from npusmith.plan.dag import Value, reachable
from npusmith.plan.index import Poly, poly, replaced, steps
from npusmith.plan.read import Meaning, Piece, Scatter
from npusmith.plan.reader import ELEMENT, INDEX, SIZE, Reader, Scattered
from npusmith.plan.refusals import refusal
from npusmith.plan.scalars import ZERO, plus, product, times
from npusmith.plan.views import atoms_of

Places = Mapping[Dim, Expr]  # of rows of axes: where along them an element is read


def accessed(meaning: Meaning) -> Meaning:
    """The same graph without index maps. Raises plan-data-movement where one is no access."""
    pusher = _Pusher(meaning)
    pieces: list[Piece] = []
    for port, out in enumerate(meaning.outputs):
        scattered = meaning.reader.scattered.get(out.value)
        if scattered is not None and atoms_of(scattered.x.dims) == atoms_of(out.dims):
            pieces += pusher.scattered(port, scattered)
            continue
        joined = meaning.reader.joined.get(out.value)
        if joined is None or atoms_of(joined.dims) != atoms_of(out.dims):
            pieces.append(Piece(port, replace(out, value=pusher.value(out.value, {}))))
            continue
        for piece, start in joined.pieces:
            value = meaning.reader.unrounded(piece.value, out.dtype)
            made = replace(piece, value=pusher.value(value, {}))
            whole = [(meaning.reader.index(dim), meaning.reader.size(dim)) for dim in piece.dims]
            at = joined.at
            whole[at] = plus(start, whole[at][0]), meaning.reader.size(joined.dims[at])
            pieces.append(Piece(port, made, pusher.access(value, whole)))
    return replace(meaning, pieces=tuple(pieces))


@dataclass(slots=True)
class _Pusher:
    meaning: Meaning
    done: dict[tuple[Value, tuple[tuple[Dim, Expr], ...]], Value] = field(default_factory=dict)

    def scattered(self, port: int, found: Scattered) -> tuple[Piece, Piece]:
        """The tensor as it was, and the rows, each at the place that is found for it."""
        x = replace(found.x, value=self.value(found.x.value, {}))
        values = replace(found.values, value=self.value(found.values.value, {}))
        own = [dim for i, dim in enumerate(x.dims) if i != found.at]
        whole = [(self.reader.index(dim), self.reader.size(dim)) for dim in own]
        size = self.reader.size(x.dims[found.at])
        whole.insert(found.at, (ZERO, size))
        start, *by = self.access(values.value, whole)
        steps_ = dict(zip((leaf for dim in own for leaf in leaves(dim)), by, strict=True))
        access = (start, *(steps_.get(leaf, ZERO) for leaf in atoms_of(values.dims)))
        step = product(self.reader.size(dim) for dim in x.dims[found.at + 1 :])
        scatter = Scatter(found.index, step, size if found.wraps else ZERO, found.adds)
        return Piece(port, x), Piece(port, values, access, scatter)

    @property
    def reader(self) -> Reader:
        return self.meaning.reader

    def refuse(self, value: Value, why: str) -> NoReturn:
        node = self.reader.origin.get(value)
        raise refusal(self.reader.graph, node, "plan-data-movement", why)

    def value(self, value: Value, places: Places) -> Value:
        key = (value, tuple(places.items()))
        if key not in self.done:
            self.done[key] = self._value(value, places)
        return self.done[key]

    def _value(self, value: Value, places: Places) -> Value:
        moved = {leaf for row in places for leaf in row}
        if value.op == "at":
            return self._at(value, places)
        if value.op == "order":
            self.refuse(value, "rows in order are tiles")
        if value.op == "put":
            self.refuse(value, "what is stored by an index is an output of its own")
        if value.op == "load":
            return self._load(value, places, moved)
        own = set(leaves(value.axes))
        if value.op == "index" and own & moved:
            if leaves(value.axes) not in places:
                self.refuse(value, "a position along a part of what is moved")
            return self.reader.position(places[leaves(value.axes)])
        if value.op in ("reduce", "running") and own & (moved | self._named(places)):
            self.refuse(value, "it goes along what is moved behind it")
        args = tuple(self.value(arg, places) for arg in value.args)
        if args == value.args:
            return value
        made = self.reader.dag.keep(replace(value, args=args, index=(), parts=()))
        if value in self.reader.origin:
            self.reader.origin.setdefault(made, self.reader.origin[value])
        return made

    def _named(self, places: Places) -> set[Atom]:
        """The axes that places are worked out from, those of index tensors among them."""
        found = {leaf for expr in places.values() for leaf in self._leaves(expr)}
        for expr in places.values():
            for name in names(expr):
                if name.startswith(ELEMENT):
                    value = self.reader.elements[int(name[1:])].value
                    found |= {leaf for item in reachable([value]) for leaf in self._axes(item)}
        return found

    def _axes(self, value: Value) -> Sequence[Atom]:
        """The axes that are written in a value itself."""
        if value.op != "load":
            return leaves(value.axes)
        return atoms_of(next(d for item, d in self.meaning.inputs if item.name == value.text))

    def _leaves(self, expr: Expr) -> list[Atom]:
        found = dict.fromkeys(name for name in names(expr) if name.startswith(INDEX))
        return [leaf for name in found for leaf in leaves((self._atom(name),))]

    def _atom(self, name: str) -> Atom:
        return self.reader.atoms[int(name[1:])]

    def _at(self, value: Value, places: Places) -> Value:
        def new(name: str) -> Expr | None:
            if not name.startswith(INDEX):
                return None
            row = leaves((self._atom(name),))
            if row not in places and set(row) & {leaf for other in places for leaf in other}:
                self.refuse(value, "a part of an axis is moved once more")
            return places.get(row)

        for dim in self.reader.fixed.get(value, ()):
            for atom in dim:
                atom.fix()
        inner, start = dict(places), 0
        for count, expr in zip(value.parts, value.index, strict=True):
            inner[leaves(value.axes[start : start + count])] = replaced(expr, new)
            start += count
        return self.value(value.args[0], inner)

    def _load(self, value: Value, places: Places, moved: set[Atom]) -> Value:
        layout = next(dims for item, dims in self.meaning.inputs if item.name == value.text)
        flat = atoms_of(layout)
        if not moved & set(flat):
            return value
        whole: list[tuple[Expr, Expr]] = []
        while flat:
            row = next((row for row in places if row and flat[: len(row)] == row), flat[:1])
            if row not in places and set(row) & moved:
                self.refuse(value, "a part of an axis is moved")
            whole.append((places.get(row, self.reader.index(row)), self.reader.size(row)))
            flat = flat[len(row) :]
        access = self.access(value, whole)
        axes = tuple(leaf for place, _ in whole for leaf in self._leaves(place))
        return self.reader.dag.keep(
            Value(
                "load", text=value.text, dtype=value.dtype, kind=value.kind, axes=axes, index=access
            )
        )

    def access(self, value: Value, whole: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, ...]:
        """The start of an access, and the step along each of its axes.

        `whole`: of every dimension in memory where along it, and its size.
        """
        address = Poly(())
        for place, size in whole:
            address = address * poly(size) + poly(place)
        order = dict.fromkeys(
            name for place, _ in whole for name in names(place) if name.startswith(INDEX)
        )
        found = steps(address.expr(), order)
        if found is None:
            self.refuse(value, "it is read at places that are no start and steps")
        start, by = found
        result = [start]
        for name in order:
            step = by[name]
            own = []
            for leaf in reversed(leaves((self._atom(name),))):
                own.append(step.expr())
                step = step * poly(self.reader.size((leaf,)))
            result += reversed(own)
        if any(not name.startswith(SIZE) for expr in result for name in names(expr)):
            self.refuse(value, "it is read at places that are no start and steps")
        return tuple(result)


def breaks(reader: Reader, row: Sequence[Atom], access: Sequence[Expr]) -> set[tuple[Atom, Atom]]:
    """Neighbours that are no one axis: a step of the first is not the whole of the second."""
    pairs = zip(row, row[1:], access[1:], access[2:], strict=False)
    return {
        (one, two)
        for one, two, outer, inner in pairs
        if poly(outer) != poly(times(inner, reader.size((two,))))
    }
