"""Which sizes of a model may change, and what in its graph follows them: by captures at others.

A batch of one is captured at another size, too, where the model takes it (unit_axes.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from npusmith.task.compare import difference
from npusmith.task.fixed_sizes import find_fixed, find_refused
from npusmith.task.graph import MOST_OPERATIONS, Graph
from npusmith.task.shapes import (
    EDGED,
    Class,
    Shape,
    aligned,
    find_classes,
    plan_sets,
    resize,
    smaller,
)
from npusmith.task.symbolic_sizes import find_symbolic, probe
from npusmith.task.unit_axes import find_units

_HELD = "the model's arithmetic has it as a number"
_UNROLLED = "a loop of the model's own code goes along it, and the graph has each of its steps"
_Capture = Callable[[list[Shape]], Graph | str]
Named = list[tuple[str, list[Shape]]]  # sets of shapes by the name of their pattern


@dataclass(frozen=True, slots=True)
class Model:
    """A model at any shapes of its inputs.

    capture: the graph there, or why there is none. refusal: why the model does not take the shapes;
    empty when it does.
    """

    capture: _Capture
    refusal: Callable[[list[Shape]], str]
    seed: int
    input_elements: int  # of all inputs of a set, at most
    value_elements: int | None = None  # of a value on the way; None: any number
    patterns: Collection[str] | None = None  # sets that are tried; None: all


@dataclass(frozen=True, slots=True)
class Sizes:
    """The graph with what was found, the classes that vary, and sets of shapes that vary them."""

    graph: Graph
    free: list[Class]
    sets: Named
    notes: list[str]


def find_varying(model: Model, own: Sequence[Shape], graph: Graph) -> Sizes:
    """Of the graph at its own shapes, and of axes of 1 that may be longer."""
    if len(graph.nodes) > MOST_OPERATIONS:
        return _as_captured(own, graph)
    model = replace(model, capture=_once(model.capture))
    free, notes = find_classes(own, model.refusal)
    if (other := _longer(model, own, graph)) is not None:
        wide = _sized(model, other.shapes, other.graph, [*other.units, *free])
        if not any(item.axes & {*wide.graph.fixed} for item in other.units):
            few = _sized(model, own, graph, free, EDGED)
            found = few.graph.model_copy(update={"longer": wide.graph})
            other_sets = [pair for pair in wide.sets if pair[1] != [*own]]
            sets = [*other_sets, *(pair for pair in few.sets if pair not in other_sets)]
            return Sizes(found, wide.free, sets, [*notes, *wide.notes, *few.notes])
    alone = _sized(model, own, graph, free)
    return replace(alone, notes=[*notes, *alone.notes])


def _as_captured(own: Sequence[Shape], graph: Graph) -> Sizes:
    """Of a graph of which each capture at other sizes would take minutes."""
    axes = tuple((i, axis) for i, shape in enumerate(own) for axis in range(len(shape)))
    note = f"all sizes are fixed: the graph has {len(graph.nodes):,} operations"
    return Sizes(graph.model_copy(update={"fixed": axes}), [], [], [note])


def _once(capture: _Capture) -> _Capture:
    """Each capture is made once: what tells sizes also tells what is fixed."""
    known: dict[tuple[Shape, ...], Graph | str] = {}

    def remembered(shapes: list[Shape]) -> Graph | str:
        key = tuple(shapes)
        if key not in known:
            known[key] = capture(shapes)
        return known[key]

    return remembered


def at_given(
    model: Model, own: Sequence[Shape], graph: Graph, given: Sequence[list[Shape]]
) -> Graph:
    """The graph with what follows from sizes, by captures at these shapes alone."""
    free = aligned(own)
    found = find_symbolic(graph, own, free, given, model.capture)
    if (other := _longer(model, own, graph)) is None:
        return found
    wide = find_symbolic(other.graph, other.shapes, [*other.units, *free], given, model.capture)
    return found.model_copy(update={"longer": wide})


@dataclass(frozen=True, slots=True)
class _Longer:
    """Shapes with axes of 1 longer, the classes of these, and the graph there."""

    shapes: list[Shape]
    units: list[Class]
    graph: Graph


def _longer(model: Model, own: Sequence[Shape], graph: Graph) -> _Longer | None:
    """None where the model has no such axis, and where a size of 1 goes away on the way."""
    units, size = find_units(own, graph, model.refusal)
    if not units:
        return None
    shapes = resize(own, dict.fromkeys(units, size))
    other = model.capture(shapes)
    if isinstance(other, str) or _ranks(other) != _ranks(graph):
        return None
    return _Longer(shapes, [replace(item, size=size) for item in units], other)


def _ranks(graph: Graph) -> list[int]:
    return [len(graph.spec(name).shape) for name in graph.outputs]


def _sized(
    model: Model,
    own: Sequence[Shape],
    graph: Graph,
    free: list[Class],
    patterns: Collection[str] | None = None,
) -> Sizes:
    """`patterns`: sets that are enough."""

    def planned(free: list[Class]) -> Named:
        sets = plan_sets(own, free, model.input_elements, model.seed)
        wanted = [names for names in (patterns, model.patterns) if names is not None]
        return _fitted(model, [s for s in sets if all(s[0] in names for names in wanted)], free)

    loops = [item for item in free if _is_unrolled(model, own, graph, item)]
    free = [item for item in free if item not in loops]
    sets = planned(free)
    tried = [sized for _, sized in sets]
    captured, graph = graph, find_symbolic(graph, own, free, tried, model.capture)
    fixed = find_fixed(own, free, tried, lambda sized: _differs(model, graph, sized))
    even = [_evened(model, own, captured, item) if item.axes & {*fixed} else item for item in free]
    if even != free:
        found = _sized(model, own, captured, [*loops, *even], patterns)
        return replace(found, graph=_with_steps(found.graph, even))
    notes = [f"size {own[i][axis]} is fixed: {_HELD}" for i, axis in fixed]
    unrolled = sorted({axis for item in loops for axis in item.axes})
    notes += [f"size {own[i][axis]} is fixed: {_UNROLLED}" for i, axis in unrolled]
    if fixed:
        free = [item for item in free if not item.axes & {*fixed}]
        sets = planned(free)
    held = [item.shape for item in graph.inputs if item.kind != "user"]
    refused = find_refused(own, free, held, model.refusal)
    graph = graph.model_copy(update={"fixed": tuple(sorted({*fixed, *unrolled, *refused}))})
    return Sizes(graph, free, sets, notes)


def _is_unrolled(model: Model, own: Sequence[Shape], graph: Graph, item: Class) -> bool:
    """Whether there are operations for each step along the class: of sizes with thousands of steps
    captures would take minutes, and their graphs are others in any case.
    """
    often = Counter(_operations(graph)).most_common(1)
    if not often or often[0][1] < item.size:
        return False
    size = probe(item)
    other = model.capture(resize(own, {item: size}))
    if isinstance(other, str):
        return False
    more, steps = len(other.nodes) - len(graph.nodes), size - item.size
    return bool(steps) and more / steps >= 1


def _evened(model: Model, own: Sequence[Shape], graph: Graph, item: Class) -> Class:
    """The class in multiples of 2, where the graph is another one at odd sizes alone."""
    even = replace(item, step=2)
    if item.step != 1 or item.size % 2 or item.size == 2:
        return item
    odd, twice = (model.capture(resize(own, {each: probe(each)})) for each in (item, even))
    if isinstance(odd, str) or isinstance(twice, str):
        return item
    return even if _operations(twice) == _operations(graph) != _operations(odd) else item


def _operations(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def _with_steps(graph: Graph, free: Sequence[Class]) -> Graph:
    """With the condition that sizes are even, for axes that are not fixed all the same."""
    steps = [(*axis, item.step) for item in free if item.step == 2 for axis in sorted(item.axes)]
    kept = [item for item in steps if item[:2] not in graph.fixed]
    return graph.model_copy(update={"steps": tuple(kept)})


def _differs(model: Model, graph: Graph, sized: list[Shape]) -> str:
    """Why the graph is another one at shapes that the model takes."""
    other = model.capture(sized)
    why = other if isinstance(other, str) else difference(graph, other)
    return "" if why and model.refusal(sized) else why


def _fitted(model: Model, sets: Named, free: Sequence[Class]) -> Named:
    """The sets, smaller where values on the way would be far larger than inputs may be."""
    found: dict[str, list[Shape]] = {}
    for name, sized in sets:
        while (
            model.value_elements is not None
            and most_elements_at(model, sized) > model.value_elements
        ):
            less = smaller(sized, free)
            if less is None:
                break
            sized = less
        if sized not in found.values():
            found[name] = sized
    return list(found.items())


def most_elements_at(model: Model, sized: list[Shape]) -> int:
    """Of the largest value that the model has on the way."""
    graph = model.capture(sized)
    return 0 if isinstance(graph, str) else most_elements(graph)


def most_elements(graph: Graph) -> int:
    """Of the largest value of a graph."""
    return max((prod(node.shape) for node in graph.nodes), default=0)
