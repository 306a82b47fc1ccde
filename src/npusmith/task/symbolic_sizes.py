"""Sizes of inputs among the numbers of a captured graph: the 48 of `x[:, :48]` is n // 2.

A graph that was captured at fixed shapes holds every size as a number. Which of them follow from
sizes of inputs, and how, is told by captures of the same model at other shapes: a number that is
another one there is fitted by a short formula over axes, which has to give all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from npusmith.task.graph import Argument, Graph, Node, SizeClass, SymbolicSize
from npusmith.task.shapes import PROBES, Class, Shape, is_whole, resize

_MOST_CLASSES = 4  # of axes that are probed one by one
_DIVISORS = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
_POWERS = (0.5, -0.5, -1.0)
_ENOUGH = 3  # captures that tell rounding from a sum
Number = int | float
Spot = tuple[int | str, int | None]  # an argument, and the element where it is a list
Capture = Callable[[list[Shape]], Graph | None]


def find_symbolic(
    graph: Graph,
    own: Sequence[Shape],
    free: Sequence[Class],
    sets: Sequence[list[Shape]],
    capture: Capture,
) -> Graph:
    """The graph with its symbolic sizes; none where no other capture is the same program.

    capture: the graph at other shapes, None where the model does not take them.
    """
    whole = [sized for sized in sets if is_whole(own, sized)]
    alike = [other for sized in whole if (other := _same(graph, capture(sized))) is not None]
    if not alike:
        return graph.model_copy(update={"symbolic": (), "classes": ()})
    if any(set(_numbers(pair[0])) != set(_numbers(pair[1])) for other in alike
           for pair in zip(graph.nodes, other.nodes, strict=True)):  # fmt: skip
        for item in free[:_MOST_CLASSES]:
            other = _same(graph, capture(resize(own, {item: probe(item)})))
            alike += [other] if other is not None else []
    captures = [graph, *alike]
    classes = _classes(captures)
    found = tuple(_symbolic(captures, classes)) if classes else ()
    return graph.model_copy(update={"symbolic": found, "classes": tuple(classes)})


def probe(item: Class) -> int:
    """A size that nobody wrote into the model."""
    return next(item.fit(size * item.step) for size in PROBES if size * item.step != item.size)


def value(item: SymbolicSize, sizes: Sequence[int]) -> Number:
    """What the number is where the classes of the graph have these sizes."""
    return _of(item, math.prod(sizes[at] for at in item.classes))


def _of(item: SymbolicSize, product: int) -> Number:
    if item.factor is not None:
        return float(item.factor * product**item.power)
    scaled = product * item.times
    part = -(-scaled // item.over) if item.up else scaled // item.over
    return (-part if item.negative else part) + item.plus


def class_sizes(graph: Graph, other: Graph) -> list[int] | None:
    """The sizes in `other` of the classes of `graph`; None where their inputs have other names."""
    shapes = {item.name: item.shape for item in other.inputs}
    found = []
    for item in graph.classes:
        name, axis = item.axes[0]
        if name not in shapes or axis >= len(shapes[name]):
            return None
        found.append(shapes[name][axis])
    return found


def by_place(graph: Graph) -> dict[str, dict[Spot, SymbolicSize]]:
    """Symbolic sizes by node, and by where they stand in it."""
    found: dict[str, dict[Spot, SymbolicSize]] = {}
    for item in graph.symbolic or ():
        found.setdefault(item.node, {})[item.argument, item.item] = item
    return found


def _same(graph: Graph, other: Graph | None) -> Graph | None:
    """The other capture where it has the same operations on the same values."""
    if other is None or [item.name for item in other.inputs] != [i.name for i in graph.inputs]:
        return None
    first, second = ([(n.name, n.op, len(n.shape)) for n in g.nodes] for g in (graph, other))
    return other if first == second and graph.outputs == other.outputs else None


def _numbers(node: Node) -> Iterator[tuple[Spot, Number]]:
    arguments: list[tuple[int | str, Argument]] = [*enumerate(node.args), *node.kwargs.items()]
    for at, argument in arguments:
        items = enumerate(argument) if isinstance(argument, tuple) else ((None, argument),)
        for i, item in items:
            if isinstance(item, int | float) and not isinstance(item, bool):
                yield (at, i), item


def _classes(captures: Sequence[Graph]) -> list[SizeClass]:
    """Axes by their sizes in all captures, those of user inputs first; only sizes that vary."""
    found: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    users = [tuple(i for i in g.inputs if i.kind == "user") for g in captures]
    for row in (*zip(*users, strict=True), *zip(*(g.nodes for g in captures), strict=True)):
        for axis in range(len(row[0].shape)):
            sizes = tuple(item.shape[axis] for item in row)
            if len(set(sizes)) > 1:
                found.setdefault(sizes, []).append((row[0].name, axis))
    inputs = {item.name for item in users[0]}
    return [
        SizeClass(sizes=sizes, axes=tuple(axes))
        for sizes, axes in found.items()
        if axes[0][0] in inputs
    ]


def _symbolic(captures: Sequence[Graph], classes: Sequence[SizeClass]) -> Iterator[SymbolicSize]:
    for row in zip(*(g.nodes for g in captures), strict=True):
        for place, items in _rows([dict(_numbers(node)) for node in row]):
            form = _form(items, classes) if len(set(items)) > 1 else None
            if form is not None:
                at, item = place
                yield form.model_copy(update={"node": row[0].name, "argument": at, "item": item})


def _rows(numbers: Sequence[dict[Spot, Number]]) -> Iterator[tuple[Spot, list[Number]]]:
    """Numbers that stand at the same place of all captures."""
    for place in numbers[0]:
        if all(place in other for other in numbers):
            yield place, [other[place] for other in numbers]


def _form(items: Sequence[Number], classes: Sequence[SizeClass]) -> SymbolicSize | None:
    """The first formula that gives all these numbers, the shortest ones first."""
    products = list(_products(len(classes)))
    if all(isinstance(item, int) for item in items):
        whole = [int(item) for item in items]
        for chosen in products:
            sizes = _multiplied(classes, chosen)
            for form in _whole_forms(whole, sizes, chosen):
                if all(_of(form, row) == item
                       for row, item in zip(sizes, whole, strict=True)):  # fmt: skip
                    return form
        return None
    if not all(map(math.isfinite, items)):
        return None
    for chosen in products:
        sizes = _multiplied(classes, chosen)
        for power in _POWERS if min(sizes) > 0 else ():
            form = _new(chosen, factor=items[0] / sizes[0] ** power, power=power)
            if all(math.isclose(_of(form, row), item, rel_tol=1e-12)
                   for row, item in zip(sizes, items, strict=True)):  # fmt: skip
                return form
    return None


def _products(count: int) -> Iterator[tuple[int, ...]]:
    """Classes that are multiplied: one, a square, two, three."""
    for i in range(count):
        yield (i,)
    for i in range(count):
        for j in range(i, count):
            yield (i, j)
    for i in range(count):
        for j in range(i + 1, count):
            for k in range(j + 1, count):
                yield (i, j, k)


def _multiplied(classes: Sequence[SizeClass], chosen: Sequence[int]) -> list[int]:
    return [math.prod(sizes) for sizes in zip(*(classes[at].sizes for at in chosen), strict=True)]


def _whole_forms(
    items: Sequence[int], sizes: Sequence[int], chosen: tuple[int, ...]
) -> Iterator[SymbolicSize]:
    """Candidates that give the first number: n, k n, n / k, n + k, rounded and negative ones."""
    own, first = sizes[0], abs(items[0])
    negative = items[0] < 0
    if own and first and first % own == 0:
        yield _new(chosen, times=first // own, negative=negative)
    if first and own % first == 0:
        yield _new(chosen, over=own // first, negative=negative)
    if len(items) < _ENOUGH:
        return
    for minus in (False, True):
        shapes = [{"over": over, "up": up} for over in (1, *_DIVISORS) for up in (False, True)]
        for parts in (*shapes, *({"times": times} for times in _DIVISORS)):
            form = _new(chosen, negative=minus, **parts)
            yield form.model_copy(update={"plus": int(items[0] - _of(form, own))})


def _new(chosen: tuple[int, ...], **parts: object) -> SymbolicSize:
    return SymbolicSize.model_validate({"node": "", "argument": 0, "classes": chosen, **parts})
