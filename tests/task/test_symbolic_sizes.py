"""Numbers of several captures are fitted by the shortest formula over sizes that gives them all."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from npusmith.ir.dtypes import DType
from npusmith.task.compare import difference
from npusmith.task.graph import Graph, GraphInput, Node, Ref
from npusmith.task.shapes import Shape, find_classes
from npusmith.task.symbolic_sizes import find_symbolic

OWN = [(6, 40)]
OTHERS = [[(7, 101)], [(51, 33)]]


def graph(shape: Shape, number: float) -> Graph:
    """One operation with a number, on a tensor of this shape."""
    return Graph(
        inputs=(GraphInput(name="x", shape=shape, dtype=DType.FLOAT32, kind="user"),),
        nodes=(
            Node(name="y", op="aten.mul.Tensor", args=(Ref(ref="x"), number), shape=shape,
                 dtype=DType.FLOAT32),
        ),
        outputs=("y",),
    )  # fmt: skip


FORMULAS: dict[str, Callable[[int, int], float]] = {
    "a size": lambda n, m: m,
    "less one": lambda n, m: m - 1,
    "half, rounded down": lambda n, m: m // 2,
    "half, rounded up": lambda n, m: -(-m // 2),
    "minus half": lambda n, m: -(m // 2),
    "three times": lambda n, m: 3 * m,
    "three times and one": lambda n, m: 3 * m + 1,
    "the number of elements": lambda n, m: n * m,
    "a square": lambda n, m: n * n,
    "a root": lambda n, m: math.sqrt(m),
    "eight over a root": lambda n, m: 8 / math.sqrt(m),
    "an inverse": lambda n, m: 1 / (n * m),
    "an inverse that rounds twice": lambda n, m: -9.21 / m,
    "less one, as a float": lambda n, m: float(m - 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_holds_at_sizes_that_nobody_captured(name: str) -> None:
    formula = FORMULAS[name]
    graphs = {shape: graph(shape, formula(*shape)) for (shape,) in (OWN, *OTHERS)}
    found = find_symbolic(graphs[OWN[0]], OWN, (), OTHERS, lambda sized: graphs[sized[0]])
    (item,) = found.symbolic or ()
    at = {row.axes[0][1]: i for i, row in enumerate(found.classes)}
    sizes = {at[0]: 13, at[1]: 29}
    product = math.prod(sizes[i] for i in item.classes)
    assert item.value(product) == pytest.approx(formula(13, 29), rel=1e-12)
    assert difference(found, graph((13, 29), formula(13, 29))) == ""
    assert "a size was baked in" in difference(found, graph((13, 29), formula(13, 29) + 1))


@pytest.mark.parametrize(("times", "over"), [(3, 2), (5, 4), (4, 3), (7, 2)])
def test_sizes_in_proportion_need_captures_that_tell_them_apart(times: int, over: int) -> None:
    sets = [*OTHERS, [(9, 7)]]
    graphs = {shape: graph(shape, times * shape[1] // over) for (shape,) in (OWN, *sets)}
    found = find_symbolic(graphs[OWN[0]], OWN, (), sets, lambda sized: graphs[sized[0]])
    (item,) = found.symbolic or ()
    assert [item.value(size) for size in (1, 30, 1001)] == [
        times * size // over for size in (1, 30, 1001)
    ]
    few = find_symbolic(graphs[OWN[0]], OWN, (), OTHERS, lambda sized: graphs[sized[0]])
    assert few.symbolic == ()


@pytest.mark.parametrize("odd", [lambda n, m: math.log(m), lambda n, m: min(m, 50) + n % 4])
def test_what_no_formula_gives_stays_a_number(odd: Callable[[int, int], float]) -> None:
    graphs = {shape: graph(shape, odd(*shape)) for (shape,) in (OWN, *OTHERS)}
    found = find_symbolic(graphs[OWN[0]], OWN, (), OTHERS, lambda sized: graphs[sized[0]])
    assert found.symbolic == ()
    assert difference(found, graphs[(7, 101)])


def test_steps_of_a_window_are_fitted_where_the_model_takes_no_other_set_of_sizes() -> None:
    """A kernel of 11 is too large for the primes; of sizes one by one, it takes some."""

    def steps(width: int) -> int:
        return (width - 7) // 4 + 1

    def captured(sized: list[Shape]) -> Graph | str:
        ((rows, width),) = sized
        return graph((rows, width), steps(width)) if rows == 6 else "too small"

    free, _ = find_classes(OWN, lambda sized: "")
    found = find_symbolic(captured(OWN), OWN, free, OTHERS, captured)
    (item,) = found.symbolic or ()
    assert [item.value(width) for width in range(7, 99)] == [steps(n) for n in range(7, 99)]


def test_of_a_graph_that_no_other_shape_gives_nothing_varies() -> None:
    found = find_symbolic(graph(OWN[0], 40), OWN, (), OTHERS, lambda sized: "refused")
    assert found.symbolic == () and found.classes == ()


def test_as_much_less_at_sizes_near_each_other_is_no_part_of_them() -> None:
    """Kernels of 9 on rows of 512, 541 and 557: n - 8, which n - n // 64 gives as well."""
    own, others = [(6, 512)], [[(7, 541)], [(6, 557)]]
    graphs = {shape: graph(shape, shape[1] - 8) for (shape,) in (own, *others)}
    found = find_symbolic(graphs[own[0]], own, (), others, lambda sized: graphs[sized[0]])
    (item,) = found.symbolic or ()
    assert [item.value(n) for n in (512, 88, 30)] == [504, 80, 22]
