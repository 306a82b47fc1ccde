"""The estimate of eager's time: lookups, the model, intervals, and the fit itself."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Argument, Graph, GraphInput, Node, Ref
from npusmith.task.user import build_model, call_inputs, load_file
from npusmith.timing.calls import graph_calls, op_name, parse_call, step_calls
from npusmith.timing.eager import Eager, Ratio, call_us, estimate, geometric_mean, read_fit
from npusmith.timing.measured import measured_rows
from npusmith.timing.work import FAMILY, PARAMETERS, work_of

ROOT = Path(__file__).parents[2]
CHIP = find_chip("910B2")


def unary(op: str, *shape: int, dtype: DType = DType.FLOAT32, **attrs: Argument) -> Graph:
    x = GraphInput(name="x", shape=shape, dtype=dtype, kind="user")
    args = (Ref(ref="x"), *attrs.values())
    y = Node(name="y", op=op, args=args, shape=shape, dtype=dtype)
    return Graph(inputs=(x,), nodes=(y,), outputs=("y",), eager=(y,))


def script() -> ModuleType:
    """runs/eager.py as a module."""
    spec = importlib.util.spec_from_file_location("eager_run", ROOT / "runs" / "eager.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["eager_run"] = module
    spec.loader.exec_module(module)
    return module


def capture(path: Path) -> Graph:
    """The graph of an example, without the sandbox that costs more than the capture."""
    module = load_file(str(path), path.read_text())
    inputs = call_inputs(module.get_inputs, str(path), 0, "get_inputs()")
    return export_graph(build_model(module, str(path), 0), inputs, str(path)).graph


def only(found: Eager) -> tuple[str, float]:
    assert len(found.ops) == 1
    return found.ops[0].basis, found.us


# --- measured rows -------------------------------------------------------------------------------


def test_a_published_case_is_answered_with_the_published_time() -> None:
    graph = unary("aten.softmax.int", 16, 16384, dim=-1)
    assert only(estimate(graph, CHIP)) == ("measured", 8.16)  # KernelBench level 1, 23_Softmax
    near = unary("aten.softmax.int", 16, 16380, dim=-1)
    assert only(estimate(near, CHIP))[0] == "model"


def test_a_measurement_counts_for_its_chip_and_type_only() -> None:
    assert only(estimate(unary("aten.sigmoid.default", 1024, 1024), CHIP))[0] == "model"
    half = unary("aten.sigmoid.default", 1024, 1024, dtype=DType.FLOAT16)
    assert only(estimate(half, CHIP)) == ("measured", 5.3)
    other = estimate(half, find_chip("910B3"))
    assert only(other)[0] == "model"
    assert "carried" in other.ops[0].source
    assert any("910B3" in note for note in other.notes)


def test_a_run_of_calls_that_was_measured_whole_is_one_entry() -> None:
    x = GraphInput(name="x", shape=(16, 16384), dtype=DType.FLOAT32, kind="user")
    s = Node(
        name="s", op="aten.sigmoid.default", args=(Ref(ref="x"),), shape=x.shape, dtype=x.dtype
    )
    y = Node(
        name="y",
        op="aten.mul.Tensor",
        args=(Ref(ref="x"), Ref(ref="s")),
        shape=x.shape,
        dtype=x.dtype,
    )
    found = estimate(Graph(inputs=(x,), nodes=(), outputs=("y",), eager=(s, y)), CHIP)
    assert only(found) == ("measured", 6.26)  # 25_Swish
    assert found.ops[0].op == "sigmoid, mul"
    assert "25_Swish" in found.ops[0].source


def test_every_row_of_the_tables_is_a_call_that_prints_as_it_was_read() -> None:
    rows = measured_rows()
    assert len(rows) > 500
    for row in rows:
        assert row.us > 0
        assert all(parse_call(text).text() == text for text in row.text)
        assert all(call.outputs for call in row.calls)


# --- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sigmoid", "exp", "softmax", "layer_norm", "nonsense", "cumsum"])
def test_more_elements_never_take_less_time(op: str) -> None:
    calls = [
        parse_call(f"{op}(float32[{rows},1024]) -> float32[{rows},1024]")
        for rows in (1, 16, 256, 4096, 65536)
    ]
    times = [call_us(call, CHIP) for call in calls]
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_the_smallest_call_still_costs_a_launch() -> None:
    for op in ("add", "softmax", "matmul"):
        assert call_us(parse_call(f"{op}(float32[1,1], float32[1,1]) -> float32[1,1]"), CHIP) > 0.9


def test_a_bigger_chip_is_not_slower() -> None:
    call = parse_call("exp(float32[8192,8192]) -> float32[8192,8192]")
    assert call_us(call, find_chip("910B4")) > call_us(call, CHIP)


def test_the_interval_contains_the_point_and_an_unknown_operation_has_a_wide_one() -> None:
    known = estimate(unary("aten.gelu.default", 1000, 1000), CHIP)
    unknown = estimate(unary("aten.bessel_j0.default", 1000, 1000), CHIP)
    for found in (known, unknown):
        assert found.low_us <= found.us <= found.high_us
        assert all(op.low_us <= op.us <= op.high_us for op in found.ops)
    assert unknown.ops[0].source.startswith("generic")
    assert any("bessel_j0" in note for note in unknown.notes)
    assert unknown.high_us / unknown.low_us > known.high_us / known.low_us
    assert unknown.high_us / unknown.low_us > 3


def test_an_estimate_says_on_how_many_rows_it_rests() -> None:
    read = estimate(unary("aten.softmax.int", 16, 16384, dim=-1), CHIP)
    assert read.sure and read.rests() == "all of it was published for these shapes"
    often = estimate(unary("aten.sigmoid.default", 1024, 1000), CHIP)
    assert often.sure and often.rows == read_fit().rows["sigmoid"] >= 3
    once = estimate(unary("aten.elu.default", 16, 16000), CHIP)
    assert (once.rows, once.sure) == (1, False)
    assert "too few for a headline figure" in once.rests()
    assert any("elu on 1" in note for note in once.notes)
    never = estimate(unary("aten.asinh.default", 16, 16000), CHIP)
    assert (never.rows, never.sure) == (0, False)


def test_the_interval_of_one_row_grows_with_the_distance_from_it() -> None:
    widths = []
    for rows in (16, 160, 1600, 160000):
        found = estimate(unary("aten.elu.default", rows, 16001), CHIP).ops[0]
        widths.append(found.high_us / found.low_us)
    assert all(far > 0.99 * near for near, far in pairwise(widths))
    assert widths[-1] > 5 * widths[0]
    far = estimate(unary("aten.elu.default", 1600, 16384), CHIP).ops[0]
    assert far.reach == 100 and "the nearest with 100 times more or less work" in far.source


def test_a_geometric_mean_comes_with_the_range_of_its_intervals() -> None:
    mean = geometric_mean([Ratio(value=1, low=0.5, high=2), Ratio(value=4, low=2, high=32)])
    assert (mean.value, mean.low, mean.high) == pytest.approx((2, 1, 8))
    assert str(mean) == "2 (1 to 8)"


def test_the_file_of_constants_is_whole() -> None:
    fit = read_fit()
    for table in (fit.families, fit.operations):
        assert all(set(item) == set(PARAMETERS) for item in table.values())
    families = {*FAMILY.values(), "other"}
    assert set(fit.families) == families
    for low, high in (*fit.spread.values(), *fit.unknown.values()):
        assert low < 1 < high


def test_the_committed_constants_give_the_errors_that_are_stated() -> None:
    run, fit = script(), read_fit()
    rates = run.chip_rates(CHIP, fit.rates)
    constants = lambda w: fit.operations.get(w.key) or fit.families[w.family]  # noqa: E731
    for name, held_out in (("left out", True), ("calibration", False)):
        errors = [
            run.error(p, constants, rates) for p in run.load_points() if p.held_out is held_out
        ]
        assert run.summary(errors) == pytest.approx(fit.errors[name])
    assert fit.errors["left out"]["median"] <= 0.20


def test_the_fit_finds_the_constants_that_made_its_data() -> None:
    """And finds the same ones again: times made from known constants, no noise."""
    run = script()
    points = [p for p in run.load_points() if p.row.case in ("sigmoid", "gelu")]
    rates = run.made_rates(run.RATES)
    known = {"start": 24, "drag": 6, "tick": 6, "row": -180, "share": -15, "skew": 6}
    made = []
    for point in points:
        us = run.time_us(point.works[0], run.constants(known), rates)
        made.append(run.replace(point, row=run.replace(point.row, us=us)))
    first = run.Fitting(
        made, dict(run.RATES), {"map": dict(run.START), "other": dict(run.START)}, {}
    )
    steps = first._fit(made, "map", None)
    assert steps == first._fit(made, "map", None)
    errors = [run.error(p, lambda work: run.constants(steps), rates) for p in made]
    assert max(map(abs, errors)) < 0.05


# --- calls ---------------------------------------------------------------------------------------


def test_names_lose_their_overload_and_their_place() -> None:
    assert op_name("aten.add_.Tensor") == "add"
    assert op_name("aten.softmax.int") == "softmax"


def test_views_are_free_and_a_transposed_operand_costs_a_copy() -> None:
    x = GraphInput(name="x", shape=(64, 32), dtype=DType.FLOAT32, kind="user")
    t = Node(name="t", op="aten.t.default", args=(Ref(ref="x"),), shape=(32, 64), dtype=x.dtype)
    y = Node(name="y", op="aten.relu.default", args=(Ref(ref="t"),), shape=(32, 64), dtype=x.dtype)
    calls = graph_calls(Graph(inputs=(x,), nodes=(), outputs=("y",), eager=(t, y)))
    assert [call.op for call in calls] == ["copy", "relu"]
    m = Node(
        name="m",
        op="aten.matmul.default",
        args=(Ref(ref="t"), Ref(ref="x")),
        shape=(32, 32),
        dtype=x.dtype,
    )
    calls = graph_calls(Graph(inputs=(x,), nodes=(), outputs=("m",), eager=(t, m)))
    assert [call.op for call in calls] == ["matmul"]


def test_a_cut_of_the_first_axis_is_contiguous_whether_the_call_names_it_or_not() -> None:
    x = GraphInput(name="x", shape=(64, 32), dtype=DType.FLOAT32, kind="user")
    for args, copies in (((32,), 0), ((32, 0), 0), ((16, 1), 1)):
        part = Node(
            name="s", op="aten.split.Tensor", args=(Ref(ref="x"), *args), shape=(), dtype=None
        )
        one = Node(
            name="p", op="aten.getitem", args=(Ref(ref="s"), 0), shape=(32, 32), dtype=x.dtype
        )
        y = one.model_copy(update={"name": "y", "op": "aten.relu.default", "args": (Ref(ref="p"),)})
        calls = graph_calls(Graph(inputs=(x,), nodes=(), outputs=("y",), eager=(part, one, y)))
        assert [call.op for call in calls] == ["copy"] * copies + ["relu"]


def test_attention_without_heads_has_one() -> None:
    with_heads, without = (
        work_of(parse_call(f"scaled_dot_product_attention({t}, {t}, {t}) -> {t}"))
        for t in ("float16[3,1,64,32]", "float16[3,64,32]")
    )
    assert without.products == with_heads.products


def test_products_are_padded_to_the_tiles_of_the_cube() -> None:
    work = work_of(parse_call("matmul(float16[1,4096], float16[4096,100]) -> float16[1,100]"))
    assert work.products == pytest.approx(16 * 112 * 4096 / 1e6)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_every_example_has_an_estimate(path: Path) -> None:
    graph = capture(path)
    found = estimate(graph, CHIP)
    assert graph.eager, "the module's own calls were not read"
    assert found.ops
    assert 0 < found.low_us <= found.us <= found.high_us
    assert len(found.ops) <= len(graph.eager) + 2


def test_layer_norm_and_softmax_are_one_call() -> None:
    for name, op in (("layer_norm", "layer_norm"), ("softmax", "softmax")):
        graph = capture(ROOT / "examples" / f"{name}.py")
        assert [call.op for call in graph_calls(graph)] == [op]


def test_a_graph_without_its_own_calls_says_so() -> None:
    graph = unary("aten.exp.default", 64, 64).model_copy(update={"eager": ()})
    assert any("decomposed" in note for note in estimate(graph, CHIP).notes)


def test_a_recurrent_layer_takes_the_products_of_its_steps() -> None:
    """As one call of its bytes it would be far quicker than its steps can be."""
    text = "gru(float32[{0},4,32], float32[2,4,64], float32[192,32], float32[192,64], " \
        "float32[192,64], float32[192,64]) -> float32[{0},4,64], float32[2,4,64]"  # fmt: skip
    few, many = (parse_call(text.format(steps)) for steps in (10, 200))
    assert [times for _, times in step_calls(few)] == [1, 10, 1, 10]
    assert step_calls(few)[0][0].text() == (
        "linear(float32[40,32], float32[192,32]) -> float32[40,192]"
    )
    step = call_us(step_calls(few)[1][0], CHIP)
    assert call_us(many, CHIP) - call_us(few, CHIP) >= 190 * 2 * step
    assert step_calls(parse_call("linear(float32[4,8], float32[6,8]) -> float32[4,6]")) == []
