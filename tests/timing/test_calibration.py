"""The calibration: its tables, what it leaves out, its search, and its own kernels."""

from __future__ import annotations

import math
import struct
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from readlog import read_log

from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.twin.direct import build_direct, run_direct

sys.path.insert(0, str(Path(__file__).parents[2] / "runs"))

from calibration import bank, fit, logs, micro, tables

from npusmith.twin.launch import LaunchOptions

NUMBERS = {
    "kernels": ("task_us",),
    "matmul": ("b", "m", "k", "n", "us"),
    "vector": ("first", "intercept", "cycles_per_repeat"),
    "isolated": ("fixed", "cycles_per_repeat"),
    "transfer": ("bytes", "cycles"),
    "mmad": ("m", "k", "n", "cycles"),
    "conflict": ("ticks",),
    "short": ("inputs", "elements", "per_core", "tile", "blocks", "task_us"),
    "rows": ("length", "few", "many", "cycles"),
}
SMALL = bank.Plan(
    batch=2, m=5, k=6, n=7, trans_a=0, trans_b=0, nz=0, out_nd=1, out_float=1,
    blocks_b=1, blocks_m=2, blocks_n=1, l0_m=2, l0_n=3, l0_k=2, whole_b=0,
    l1_k_a=4, l1_m_a=1, l1_k_b=2, l1_n_b=1,
    depth_a1=2, depth_b1=2, depth_a0=2, depth_b0=2, depth_c0=2, m_outer=0,
)  # fmt: skip


# ---- tables


@pytest.mark.parametrize("table", tables.TABLES)
def test_every_row_has_a_source_and_numbers_above_zero(table: str) -> None:
    rows = tables.read(table)
    assert rows
    assert all(row["source"] for row in rows)
    assert all(float(row[name]) > 0 for row in rows for name in NUMBERS[table])
    assert len({row["name"] for row in rows}) == len(rows)


def test_the_part_that_is_left_out_is_fixed_by_a_hash() -> None:
    names = {row["name"] for row in tables.read("kernels") if tables.left_out(row["name"])}
    whole = {"gelu/fused", "quant/0", "quant/1", "nd2nz/1", "nd2nz/2", "ub/2", "ub/3", "ub/5"}
    assert names == whole | {"l1/1", "l1/2", "l1/3", "l1/4", "l1/5"}


def test_no_shape_of_a_matmul_is_in_both_parts() -> None:
    parts: dict[str, set[bool]] = {}
    for row in tables.read("matmul"):
        key = tables.key_of("matmul", row)
        parts.setdefault(key, set()).add(tables.left_out(key))
    assert all(len(found) == 1 for found in parts.values())
    assert {True, False} <= set().union(*parts.values())


# ---- plans


def test_every_tuning_record_fits_the_chip() -> None:
    rows = tables.read("matmul")
    refused = {row["name"]: bank.plan_of(row).refusal() for row in rows}
    assert {name: why for name, why in refused.items() if why} == {}


def test_a_plan_with_a_tile_too_large_for_l0_is_refused() -> None:
    assert replace(SMALL, l0_m=16, l0_k=4).refusal() == ""
    assert replace(SMALL, l0_m=17, l0_k=4).refusal() == "tile in L0A"


def test_the_side_whose_k_is_whole_is_the_outer_loop() -> None:
    row = next(row for row in tables.read("matmul") if row["name"] == "bank-0079")
    assert bank.plan_of(row).m_outer == 0
    assert bank.plan_of({**row, "al1_k": "full"}).m_outer == 1


# ---- the search


@pytest.mark.parametrize(("start", "rate"), [(120.0, 48.0), (100.0, 55.0), (300.0, 20.0)])
def test_the_search_finds_the_constants_that_made_the_rows(start: float, rate: float) -> None:
    true = {"start": 190.0, "rate": 32.0}
    sizes = [512 << power for power in range(9)]
    cycles = [true["start"] + size / true["rate"] for size in sizes]

    def loss(tried: dict[str, float]) -> float:
        ours = [tried["start"] + size / tried["rate"] for size in sizes]
        return fit.mean([fit.row_loss(a, b) for a, b in zip(ours, cycles, strict=True)])

    found = fit.search({"start": start, "rate": rate}, loss, most_runs=400)
    assert found.loss < 0.01
    assert all(abs(found.values[name] / true[name] - 1) < 0.03 for name in true)


def test_the_search_stays_within_its_runs() -> None:
    seen = []
    fit.search({"a": 1.0}, lambda tried: seen.append(tried) or -tried["a"], most_runs=7)
    assert len(seen) <= 8


def test_an_outlier_pulls_no_more_than_a_factor_of_two() -> None:
    assert fit.row_loss(1000.0, 1.0) == fit.row_loss(0.0, 1.0) < math.log(2.02)


def test_rank_correlation_knows_order_and_ties() -> None:
    assert fit.spearman([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert fit.spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert fit.spearman([1, 1, 2], [1, 1, 2]) == pytest.approx(1)
    assert math.isnan(fit.spearman([1, 1], [1, 2]))


# ---- kernels


def test_the_conflict_kernel_issues_its_adds(tmp_path: Path) -> None:
    one = next(micro.conflicts())
    case = struct.pack("<9i", 0, 5, 64, 0x20000, 0x0, 0x10100, 1, 8, 0)
    made = logs.micro_log(tmp_path, one, case)
    assert made.log is not None, made.why
    adds = [step for core in read_log(made.log).cores for step in core.steps if step.what == "add"]
    assert sum(step.count for step in adds) == 5
    assert all(step.repeats == 64 for step in adds)
    assert adds[0].src1 is not None
    assert adds[0].src1.addr == 0x10100 // 32


def test_a_log_is_made_once(tmp_path: Path) -> None:
    one = replace(next(micro.products()), chip="910B2")  # whose toolchain other tests made
    first = logs.micro_log(tmp_path, one, one.cases[0])
    assert first.log is not None, first.why
    stamp = first.log.stat().st_mtime_ns
    again = logs.micro_log(tmp_path, one, one.cases[0])
    assert again.log == first.log
    assert first.log.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    "change",
    [{}, {"trans_a": 1}, {"trans_b": 1}, {"nz": 1, "trans_a": 1}, {"whole_b": 1, "l1_k_b": 6}],
)
def test_the_matmul_kernel_multiplies(change: dict[str, int], tmp_path: Path) -> None:
    plan = replace(SMALL, **change)
    rng = np.random.default_rng(1)
    sizes = (plan.m * 16, plan.k * 16, plan.n * 16)
    a = (rng.integers(-4, 5, (2, sizes[0], sizes[1])) / 4).astype(np.float16)
    b = (rng.integers(-4, 5, (2, sizes[1], sizes[2])) / 4).astype(np.float16)
    given = [_laid_out(a, plan.trans_a, plan.nz), _laid_out(b, plan.trans_b, plan.nz)]
    build = build_direct(logs.KERNELS / "matmul.asc", find_chip("910B2"))
    shape = (2, sizes[0], sizes[2])
    run = run_direct(
        build,
        plan.blocks,
        given,
        [(shape, DType.FLOAT32)],
        [plan.packed()],
        options=LaunchOptions(record=tmp_path / "log"),
    )
    np.testing.assert_array_equal(run.outputs[0], a.astype(np.float32) @ b.astype(np.float32))
    steps = [step for core in read_log(tmp_path / "log").cores for step in core.steps]
    assert sum(step.what == "mmad" for step in steps) == _products(plan)


def _laid_out(matrix: np.ndarray, transposed: int, nz: int) -> np.ndarray:
    """As the kernel reads it: rows of the matrix or of its transpose, or (columns, rows, 16)."""
    matrix = matrix.transpose(0, 2, 1) if transposed else matrix
    if nz:
        batch, rows, columns = matrix.shape
        matrix = matrix.reshape(batch, rows, columns // 16, 16).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(matrix)


def _products(plan: bank.Plan) -> int:
    """Tiles of C, dealt to cores, times steps of K."""
    per_m = -(-plan.m // plan.blocks_m)
    rows = [min(per_m, plan.m - first) for first in range(0, plan.m, per_m)]
    tiles = sum(-(-row // plan.l0_m) for row in rows) * -(-plan.n // plan.l0_n)
    return plan.batch * tiles * -(-plan.k // plan.l0_k)
