"""Sizes of inputs among the numbers of a captured graph: the 48 of `x[:, :48]` is n // 2.

A graph that was captured at fixed shapes holds every size as a number. Which of them follow from
sizes of inputs, and how, is told by captures of the same model at other shapes: a number that is
another one there is fitted by a short formula over axes, which has to give all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product

from npusmith.task.compare import ROUNDING, program_difference
from npusmith.task.graph import Graph, Literals, Node, Ref, SizeClass, Slot, SymbolicSize, replaced
from npusmith.task.shapes import PROBES, Class, Shape, is_whole, resize

_MOST_CLASSES = 6  # of axes that are probed one by one
_TRIED = (PROBES[0], 29, 34, PROBES[1])  # of all rests by 4
_POINTS = 3  # captures with another size of a class: so many tell (n + 3) // 4 from (n + 1) // 4
_DIVISORS = (2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
_MOST_PARTS = 8
_STEPS = (3, 4, 5, 6, 7, 8)  # of windows; of 2, both places are n // 2 rounded down and up
_POWERS = (0.5, -0.5, -1.0)
_MOST_FACTORS = 3  # axes that are one behind a view
_ENOUGH = 3  # captures that tell rounding from a sum
_RATIOS = [(n, m) for m in (2, 3, 4) for n in range(2, 4 * m) if math.gcd(n, m) == 1]
_LONG = 29  # a size at which no two of the ratios give the same number
Number = int | float
Windows = Sequence[tuple[int, int]]
Capture = Callable[[list[Shape]], Graph | str]


def find_symbolic(
    graph: Graph,
    own: Sequence[Shape],
    free: Sequence[Class],
    sets: Sequence[list[Shape]],
    capture: Capture,
) -> Graph:
    """The graph with its symbolic sizes; none where no other capture is the same program.

    capture: the graph at other shapes, or why the model does not take them.
    """

    def alike(tried: Iterable[list[Shape]]) -> Iterator[Graph]:
        found = (item for sized in tried if isinstance(item := capture(sized), Graph))
        return (item for item in found if not program_difference(graph, item))

    captures = [graph, *alike(sized for sized in sets if is_whole(own, sized))]
    rows = zip(*(item.nodes for item in captures), strict=True)
    asked = len(captures) == 1 or any(_differ(row) for row in rows)
    for item in free[:_MOST_CLASSES]:
        if asked or not _varied(item, captures):  # a prime that was drawn may be the own size
            captures += islice(alike(resize(own, {item: size}) for size in probes(item)), _POINTS)
    return _told(captures)


def _told(captures: Sequence[Graph], users: str = "user") -> Graph:
    """The first with what the others tell about its sizes, and about those of its bodies.

    `users`: the kind of the inputs whose sizes may vary.
    """
    graph = captures[0]
    if any(node.body is not None for node in graph.nodes):
        rows = zip(*(item.nodes for item in captures), strict=True)
        graph = graph.model_copy(update={"nodes": tuple(map(_with_body, rows))})
    if len(captures) == 1:
        return graph.model_copy(update={"symbolic": (), "classes": ()})
    classes, others = _classes(captures, users)
    found: tuple[SymbolicSize, ...] = ()
    if classes:
        windows = tuple(_windows(graph))
        others = [*_formed(classes, others, windows)]
        found = tuple(_symbolic(captures, classes, others, windows))
    return graph.model_copy(update={"symbolic": found, "classes": (*classes, *others)})


def _with_body(row: Sequence[Node]) -> Node:
    bodies = [node.body for node in row if node.body is not None]
    return row[0].model_copy(update={"body": _told(bodies, "constant")}) if bodies else row[0]


def probe(item: Class) -> int:
    """A size that nobody wrote into the model."""
    return next(probes(item))


def probes(item: Class) -> Iterator[int]:
    """Such sizes, small ones first: for kernels of windows they may be too small."""
    return (item.fit(size * item.step) for size in _TRIED if size * item.step != item.size)


def _varied(item: Class, captures: Sequence[Graph]) -> bool:
    """Whether an axis of the class has another size in a capture."""
    inputs = (i for graph in captures for i in graph.inputs if i.kind == "user")
    sizes = {i.shape[axis] for i in inputs for at, axis in item.axes if at == i.position}
    return len(sizes) > 1


def _numbers(node: Node) -> dict[Slot, Number]:
    found: dict[Slot, Number] = {}

    def note(slot: Slot, item: Ref | Literals) -> Ref | Literals:
        if isinstance(item, int | float) and not isinstance(item, bool):
            found[slot] = item
        return item

    for at, argument in enumerate(node.args):
        replaced(at, argument, note)
    for name, argument in node.kwargs.items():
        replaced(name, argument, note)
    return found


def _differ(row: Sequence[Node]) -> bool:
    """Whether captures of one node have other numbers."""
    first, *others = map(_numbers, row)
    return any(other != first for other in others)


def _classes(captures: Sequence[Graph], kind: str) -> tuple[list[SizeClass], list[SizeClass]]:
    """Axes by their sizes in all captures, if these vary: sizes that inputs have, and others.

    Numbers that no short formula over the first gives may be products that take in the others, as
    the rows of all windows are; and a part of the graph may begin with them.
    """
    found: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    users = [tuple(i for i in g.inputs if i.kind == kind) for g in captures]
    for row in (*zip(*users, strict=True), *zip(*(g.nodes for g in captures), strict=True)):
        for axis in range(len(row[0].shape)):
            sizes = tuple(item.shape[axis] for item in row)
            if len(set(sizes)) > 1:
                found.setdefault(sizes, []).append((row[0].name, axis))
    inputs = {item.name for item in users[0]}
    classes = [SizeClass(sizes=sizes, axes=tuple(axes)) for sizes, axes in found.items()]
    given = [item for item in classes if item.axes[0][0] in inputs]
    return given, [item for item in classes if item.axes[0][0] not in inputs]


def _windows(graph: Graph) -> Iterator[tuple[int, int]]:
    """Sizes and steps of windows, which a model may have of any length."""
    for node in graph.nodes:
        if node.op == "aten.unfold.default" and len(node.args) == 4:
            size, step = node.args[2:]
            if isinstance(size, int) and isinstance(step, int) and step > 1:
                yield size, step


def _formed(
    classes: Sequence[SizeClass], others: Sequence[SizeClass], windows: Windows
) -> Iterator[SizeClass]:
    """The others with their formulas, where short ones give all of their sizes."""
    fit = _Fit(classes, windows)
    places = {item.sizes: at for at, item in enumerate(classes)}
    for at, item in enumerate(others, len(classes)):
        form = fit.best(item.sizes, places)
        if form is not None:  # every part of the graph can work it out from inputs
            places[item.sizes] = at
        yield item.model_copy(update={"form": form})


def _symbolic(
    captures: Sequence[Graph],
    classes: Sequence[SizeClass],
    others: Sequence[SizeClass],
    windows: Windows,
) -> Iterator[SymbolicSize]:
    fit = _Fit(classes, windows)
    places = {item.sizes: at for at, item in enumerate(classes)}
    later: dict[str, dict[tuple[int, ...], int]] = {}
    for number, other in enumerate(others, len(classes)):
        if other.form is not None:
            later.setdefault(other.axes[0][0], {})[other.sizes] = number
    for row in zip(*(item.nodes for item in captures), strict=True):
        for (at, item), numbers in _rows([_numbers(node) for node in row]):
            form = fit.best(numbers, places) if len(set(numbers)) > 1 else None
            if form is not None:
                yield form.model_copy(update={"node": row[0].name, "argument": at, "item": item})
        places.update(later.get(row[0].name, {}))  # of values that are there from now on


def _rows(numbers: Sequence[dict[Slot, Number]]) -> Iterator[tuple[Slot, tuple[Number, ...]]]:
    """Numbers that stand in the same slot of all captures."""
    for slot in numbers[0]:
        if all(slot in other for other in numbers):
            yield slot, tuple(other[slot] for other in numbers)


def _form(
    items: Sequence[Number],
    classes: Sequence[SizeClass],
    windows: Windows = (),
    plain: bool = False,
) -> SymbolicSize | None:
    """The first formula that gives all these numbers, the shortest ones first.

    `plain`: products of several classes have no parts.
    """
    products = list(_products(len(classes)))
    if all(map(_is_whole, items)):
        whole = [int(item) for item in items]
        # a size itself before any multiple of another, and these before sums: few captures may
        # fit n // 8 + 7 as well; but 512 - 8 and 541 - 8 are n - 8, and no n - n // 64
        counted = partial(_counted, windows=windows)
        for forms in (_equal, _scaled, _moved, _parted, counted, _shifted, _in_proportion):
            simple = plain and forms not in (_equal, _scaled, _moved)
            for chosen in products[: len(classes)] if simple else products:
                sizes = _multiplied(classes, chosen)
                for form in forms(whole, sizes, chosen):
                    if all(form.value(row) == item
                           for row, item in zip(sizes, whole, strict=True)):  # fmt: skip
                        return form
    if plain or not all(isinstance(item, float) and math.isfinite(item) for item in items):
        return None
    for less in (0, 1) if len(items) >= _ENOUGH else (0,):
        for chosen in products:
            sizes = _multiplied(classes, chosen)
            for power in _POWERS if min(sizes) > less else ():
                factor = items[0] / (sizes[0] - less) ** power
                form = _new(chosen, factor=factor, plus=-less, power=power)
                if all(math.isclose(form.value(row), item, rel_tol=ROUNDING)
                       for row, item in zip(sizes, items, strict=True)):  # fmt: skip
                    return form
    return None


@dataclass(slots=True)
class _Fit:
    """Formulas over classes that inputs have, each looked for once."""

    classes: Sequence[SizeClass]
    windows: Windows
    plain: dict[tuple[Number, ...], SymbolicSize | None] = field(default_factory=dict)
    other: dict[tuple[Number, ...], SymbolicSize | None] = field(default_factory=dict)

    def best(
        self, items: tuple[Number, ...], places: Mapping[tuple[int, ...], int]
    ) -> SymbolicSize | None:
        """Sizes of values that were there come before formulas that few captures fit by chance."""
        if items not in self.plain:
            self.plain[items] = _form(items, self.classes, self.windows, plain=True)
        if (found := self.plain[items] or _as_product(items, places)) is not None:
            return found
        if items not in self.other:
            self.other[items] = _form(items, self.classes, self.windows)
        return self.other[items]


def _as_product(
    items: Sequence[Number], places: Mapping[tuple[int, ...], int]
) -> SymbolicSize | None:
    """The number as the size of an axis of some value, or as the product of two or three."""
    if not all(isinstance(item, int) and item > 0 for item in items):
        return None

    def factors(wanted: tuple[int, ...], most: int) -> tuple[int, ...] | None:
        if wanted in places:
            return (places[wanted],)
        for sizes, at in places.items() if most > 1 else ():
            if all(size and number % size == 0 for size, number in zip(sizes, wanted, strict=True)):
                rest = tuple(n // size for size, n in zip(sizes, wanted, strict=True))
                if (found := factors(rest, most - 1)) is not None:
                    return (at, *found)
        return None

    found = factors(tuple(int(item) for item in items), _MOST_FACTORS)
    return None if found is None else _new(tuple(sorted(found)))


def _is_whole(item: Number) -> bool:
    """The 12.0 of `float(n - 1)`, too."""
    return isinstance(item, int) or item.is_integer()


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


Sizes = Sequence[int]


def _equal(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """n itself, or -n."""
    yield _new(chosen, negative=items[0] < 0)


def _scaled(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """Candidates that give the first number: k n and n / k, and negative ones."""
    own, first, negative = sizes[0], abs(items[0]), items[0] < 0
    if own and first and first % own == 0:
        yield _new(chosen, times=first // own, negative=negative)
    if first and own % first == 0:
        yield _new(chosen, over=own // first, negative=negative)


def _moved(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """n + k and k - n."""
    if len(items) < _ENOUGH:
        return
    for minus in (False, True):
        form = _new(chosen, negative=minus)
        yield form.model_copy(update={"plus": int(items[0] - form.value(sizes[0]))})


def _parted(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """n - n // k, and where the parts of a row end: 2 (n // k), 3 (n // k)."""
    if len(items) < _ENOUGH:
        return
    for over in _DIVISORS:
        for up in (False, True):
            if over > 2:
                yield _new(chosen, times=over - 1, over=over, up=up)
            for parts in range(2, min(over, _MOST_PARTS) + 1):
                for negative in (False, True):
                    yield _new(chosen, over=over, up=up, parts=parts, negative=negative)


def _counted(
    items: Sizes, sizes: Sizes, chosen: tuple[int, ...], windows: Windows
) -> Iterator[SymbolicSize]:
    """How many windows there are: (n - size) // step + 1."""
    for size, step in windows if len(chosen) == 1 else ():
        yield _new(chosen, over=step, inner=-size % step, plus=1 + size // -step)


def _shifted(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """Candidates that give the first number: n // k + m and k n + m, likewise.

    Last (n + j) // k + m, as steps of a window are counted.
    """
    if len(items) < _ENOUGH:
        return
    for minus in (False, True):
        shapes = [{"over": over, "up": up} for over in _DIVISORS for up in (False, True)]
        shapes += [{"times": times} for times in _slope(items, sizes, minus)]
        shapes += [
            {"over": over, "inner": inner} for over in _STEPS for inner in range(1, over - 1)
        ]
        for parts in shapes:
            form = _new(chosen, negative=minus, **parts)
            yield form.model_copy(update={"plus": int(items[0] - form.value(sizes[0]))})


def _slope(items: Sizes, sizes: Sizes, minus: bool) -> Iterator[int]:
    """k of k n + m, by the first capture at which n is another."""
    pairs = zip(items, sizes, strict=True)
    other = next(((item, size) for item, size in pairs if size != sizes[0]), None)
    if other is None:
        return
    rise, run = (items[0] - other[0]) * (-1 if minus else 1), sizes[0] - other[1]
    if rise % run == 0 and rise // run > 1:
        yield rise // run


def _in_proportion(items: Sizes, sizes: Sizes, chosen: tuple[int, ...]) -> Iterator[SymbolicSize]:
    """3 n // 2, as a resize by 1.5 has it; not where sizes are too short to tell such numbers."""
    if len(items) <= _ENOUGH or max(sizes) < _LONG:
        return
    for (times, over), up, negative in product(_RATIOS, (False, True), (False, True)):
        yield _new(chosen, times=times, over=over, up=up, negative=negative)


def _new(chosen: tuple[int, ...], **parts: object) -> SymbolicSize:
    return SymbolicSize.model_validate({"node": "", "argument": 0, "classes": chosen, **parts})
