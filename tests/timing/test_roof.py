"""Roofs computed by hand, on the default chip: 48 vector cores at 1800 MHz, 1510 GB/s."""

from __future__ import annotations

import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.task.graph import Argument, Graph, GraphInput, Node, Ref
from npusmith.timing.measured import measured_rows
from npusmith.timing.roof import MODEL_ERROR, Roof, beaten, roof

CHIP = find_chip("910B2")
F32, F16, I8 = DType.FLOAT32, DType.FLOAT16, DType.INT8


def source(name: str, *shape: int, dtype: DType = F32) -> GraphInput:
    return GraphInput(name=name, shape=shape, dtype=dtype, kind="user")


def node(
    name: str, op: str, *args: Argument, shape: tuple[int, ...], dtype: DType | None = F32
) -> Node:
    words = tuple(Ref(ref=item[1:]) if str(item).startswith("%") else item for item in args)
    return Node(name=name, op=op, args=words, shape=shape, dtype=dtype)  # type: ignore[arg-type]


def graph(inputs: list[GraphInput], nodes: list[Node], *outputs: str) -> Graph:
    return Graph(inputs=tuple(inputs), nodes=tuple(nodes), outputs=outputs)


def vector_us(cycles: float) -> float:
    """Cycles of 256 B repeats over all vector cores."""
    return cycles / (48 * 1800)


def add(rows: int, dtype: DType = F32) -> Roof:
    shape = (rows, 1024)
    total = node("sum", "aten.add.Tensor", "%a", "%b", shape=shape, dtype=dtype)
    inputs = [source("a", *shape, dtype=dtype), source("b", *shape, dtype=dtype)]
    return roof(graph(inputs, [total], "sum"), CHIP)


def test_add_reads_two_tensors_and_writes_one() -> None:
    found = add(1024)
    count = 3 * 1024 * 1024 * 4
    assert found.gm_bytes == count
    assert found.vector_ops == {"float32": 1024 * 1024}
    assert found.cube_flops == {}
    assert found.memory_us == pytest.approx(count / 1.51e6)
    assert found.compute_us == pytest.approx(vector_us(1024 * 1024 / 64))
    assert found.bound_us == found.memory_us


def test_what_fits_l2_moves_faster_and_what_does_not_waits_for_memory() -> None:
    small, large = add(1024), add(64 * 1024)
    assert small.memory_l2_us == pytest.approx(small.gm_bytes / (67.1 * 48 * 1800))
    beyond = large.gm_bytes - CHIP.l2_bytes
    assert large.memory_l2_us == pytest.approx(CHIP.l2_bytes / (67.1 * 48 * 1800) + beyond / 1.51e6)
    assert large.memory_l2_us < large.memory_us


def test_softmax_of_several_nodes_keeps_its_intermediates_on_chip() -> None:
    shape, row = (64, 512), (64, 1)
    nodes = [
        node("top", "aten.amax.default", "%x", (-1,), True, shape=row),
        node("less", "aten.sub.Tensor", "%x", "%top", shape=shape),
        node("e", "aten.exp.default", "%less", shape=shape),
        node("total", "aten.sum.dim_IntList", "%e", (-1,), True, shape=row),
        node("y", "aten.div.Tensor", "%e", "%total", shape=shape),
    ]
    found = roof(graph([source("x", *shape)], nodes, "y"), CHIP)
    size = 64 * 512
    assert found.gm_bytes == 2 * size * 4
    assert found.vector_ops == {"float32": 5 * size}
    # amax 1, sub 1, exp 2, sum 1, div 2 cycles for each 256 B
    assert found.compute_us == pytest.approx(vector_us(7 * size / 64))


def test_matmul_counts_two_operations_a_product_and_no_vector_work() -> None:
    shape = (1024, 1024)
    product = node("y", "aten.mm.default", "%a", "%b", shape=shape, dtype=F16)
    inputs = [source("a", *shape, dtype=F16), source("b", *shape, dtype=F16)]
    found = roof(graph(inputs, [product], "y"), CHIP)
    assert found.cube_flops == {"float16": 2 * 1024**3}
    assert found.vector_ops == {}
    assert found.compute_us == pytest.approx(1024**3 / (24 * 1800 * 4096))
    # cann-bench publishes 6.07 us for this case
    assert found.hardware_us == pytest.approx(6.07, rel=0.01)


def test_two_outputs_are_written_once_each() -> None:
    shape = (16, 128)
    nodes = [
        node("pair", "aten.max.dim", "%x", -1, shape=(), dtype=None),
        node("value", "aten.getitem", "%pair", 0, shape=(16,)),
        node("place", "aten.getitem", "%pair", 1, shape=(16,), dtype=DType.INT64),
    ]
    found = roof(graph([source("x", *shape)], nodes, "value", "place", "value"), CHIP)
    assert found.gm_bytes == 16 * 128 * 4 + 16 * 4 + 16 * 8
    assert found.vector_ops == {"float32": 16 * 128}


def test_int8_matmul_is_twice_as_fast_as_half_and_vectors_of_bytes_work_in_16_bits() -> None:
    shape = (256, 256)
    product = node("y", "aten.mm.default", "%a", "%b", shape=shape, dtype=DType.INT32)
    inputs = [source("a", *shape, dtype=I8), source("b", *shape, dtype=I8)]
    found = roof(graph(inputs, [product], "y"), CHIP)
    assert found.cube_flops == {"int8": 2 * 256**3}
    assert found.compute_us == pytest.approx(256**3 / (24 * 1800 * 8192))
    assert found.gm_bytes == 2 * 256 * 256 + 4 * 256 * 256
    assert add(64, I8).compute_us == pytest.approx(add(64, F16).compute_us)


def test_views_cost_nothing_and_unused_inputs_are_not_read() -> None:
    turned = node("t", "aten.permute.default", "%x", (1, 0), shape=(128, 64))
    inputs = [source("x", 64, 128), source("unused", 4096)]
    found = roof(graph(inputs, [turned], "t"), CHIP)
    assert found.gm_bytes == 2 * 64 * 128 * 4
    assert found.compute_us == 0.0


def test_a_slice_reads_only_its_part() -> None:
    nodes = [
        node("part", "aten.slice.Tensor", "%x", 0, 0, 16, shape=(16, 64)),
        node("y", "aten.relu.default", "%part", shape=(16, 64)),
    ]
    found = roof(graph([source("x", 1024, 64)], nodes, "y"), CHIP)
    assert found.gm_bytes == 2 * 16 * 64 * 4


def test_hardware_time_is_what_cann_bench_publishes_where_memory_limits() -> None:
    rows = [r for r in measured_rows() if r.case == "sigmoid" and r.roofline_us]
    checked = 0
    for row in rows:
        call = row.calls[0]
        dtype = DType(call.inputs[0].dtype)
        if dtype is DType.BFLOAT16:  # there its own count of vector operations limits
            continue
        shape = call.inputs[0].shape
        y = node("y", "aten.sigmoid.default", "%x", shape=shape, dtype=dtype)
        found = roof(graph([source("x", *shape, dtype=dtype)], [y], "y"), CHIP)
        assert found.hardware_us == pytest.approx(row.roofline_us, rel=0.02)
        checked += 1
    assert checked > 5


def test_a_slower_memory_moves_the_roof() -> None:
    half = find_chip("910B4")
    shape = (1024, 1024)
    y = node("y", "aten.relu.default", "%x", shape=shape)
    task = graph([source("x", *shape)], [y], "y")
    ratio = roof(task, half).memory_us / roof(task, CHIP).memory_us
    assert ratio == pytest.approx(CHIP.hbm_gbps / half.hbm_gbps)


def test_a_time_below_the_least_by_more_than_the_models_error_is_too_good() -> None:
    limits = add(4096)
    least = max(limits.memory_l2_us, limits.compute_us)
    assert beaten(limits, least) == ""
    assert beaten(limits, least * (1 - MODEL_ERROR) * 1.001) == ""
    assert "memory" in beaten(limits, least * (1 - MODEL_ERROR) * 0.999)
    assert beaten(limits, 0.0) == ""
