"""Every row of the intrinsic table, on every legal type, against its NumPy meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Runtime, Tensor, build_kernels

from npusmith.ir.dtypes import DType
from npusmith.target.intrinsics import CASTS, INTRINSICS, Form, Intrinsic, Operand

HARNESS = (Path(__file__).parent / "harness.h").read_text()
DST_BYTES = 8192
ROUNDED = {"exp", "ln", "rsqrt", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "tan", "asin",
           "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log2", "log10",
           "power"}  # fmt: skip
SCALARS = {"shift_left": (0, 3), "shift_right": (0, 3)}


@dataclass(frozen=True)
class Case:
    """One row, one type of the destination, one of the sources, one mode."""

    row: Intrinsic
    dst: DType
    src: DType
    mode: str = ""

    @property
    def entry(self) -> str:
        return "_".join(x for x in (self.row.name, self.src.value, self.dst.value, self.mode) if x)

    @property
    def scalar_type(self) -> DType:
        if self.row.form is Form.GATHER:
            return DType.UINT32
        return self.src if self.row.src_dtypes else self.dst

    def code(self) -> str:
        text = self.row.emit.format(
            dst="d", src="a", src0="a", src1="b", mask="m", index="i", tmp="t", scalar="k",
            mode=self.mode.upper(), count="n",
        )  # fmt: skip
        types = f"{self.dst.cpp}, {self.src.cpp}, {self.scalar_type.cpp}"
        return f"CASE({self.entry}, {types}, {text})"


def _cases(row: Intrinsic) -> Iterator[Case]:
    if row.name == "cast":
        yield from (Case(row, dst, src, m) for (src, dst), modes in CASTS.items() for m in modes)
        return
    for dst in row.dtypes:
        for src in row.src_dtypes or (dst,):
            yield from (Case(row, dst, src, mode) for mode in row.modes or ("",))


# Templates of several instructions, and single elements: tests/lower runs them against the
# interpreter.
TEMPLATES = (Form.RUNNING, Form.BLOCKS, Form.FOLD_ROWS, Form.SPREAD_ROWS, Form.ELEMENT,
             Form.SORT_ROWS)  # fmt: skip
ROWS = [row for row in INTRINSICS.values() if row.form not in TEMPLATES]
CASES = [case for row in ROWS for case in _cases(row)]


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    body = "\n".join(case.code() for case in CASES)
    text = f"{HARNESS}\nusing namespace AscendC;\n{body}\n"
    return build_kernels(runtime, text.replace("#pragma once\n", "", 1), "conformance")


def _lengths(lanes: int) -> list[int]:
    wanted = {1, 2, 3, lanes // 2 + 1, lanes - 1, lanes, lanes + 1, 2 * lanes - 1, 2 * lanes}
    return sorted(wanted | {2 * lanes + 1})


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 65504.0,
           65520.0, -70000.0, 3.0e38, 1e-40, -1e-8, 6e-8, 0.1, -0.7, 40000.6, 2147483648.0,
           -2147483904.0, 1e10, 100.0, -103.5, 88.8)  # fmt: skip


def _floats(dtype: DType, count: int, rng: np.random.Generator, special: bool) -> np.ndarray:
    values = rng.standard_normal(count) * rng.choice([1.0, 8.0, 300.0], count)
    if special:
        spots = rng.random(count) < 0.5
        values[spots] = rng.choice(SPECIAL, int(spots.sum()))
    with np.errstate(all="ignore"):
        return values.astype(dtype.numpy)


def _values(dtype: DType, count: int, rng: np.random.Generator, special: bool) -> np.ndarray:
    if dtype.is_float:
        return _floats(dtype, count, rng, special)
    info = np.iinfo(dtype.numpy)
    values = rng.integers(info.min, info.max, count, dtype=dtype.numpy, endpoint=True)
    edges = np.array([0, 1, info.min, info.max], dtype.numpy)
    spots = rng.random(count) < 0.2
    values[spots] = rng.choice(edges, int(spots.sum()))
    return values


def _scalar(case: Case, rng: np.random.Generator) -> object:
    if case.row.name in SCALARS:
        return case.scalar_type.numpy.type(rng.choice(SCALARS[case.row.name]))
    return _values(case.scalar_type, 1, rng, special=bool(rng.random() < 0.3))[0]


@dataclass(frozen=True)
class Inputs:
    old: np.ndarray
    sources: tuple[np.ndarray, np.ndarray]
    mask: np.ndarray  # or the offsets of a gather
    scalar: object


def _inputs(case: Case, count: int, rng: np.random.Generator) -> Inputs:
    special = case.row.form is not Form.LANES or bool(rng.random() < 0.3)
    old = _values(case.dst, DST_BYTES // case.dst.bytes, rng, special=False)
    first, second = (_values(case.src, count, rng, special) for _ in range(2))
    if case.row.form is Form.GATHER:
        base = int(rng.integers(0, count))
        offsets = rng.integers(0, count - base, count).astype(np.int32) * case.src.bytes
        scalar = np.uint32(base * case.src.bytes)
        return Inputs(old, (first, second), offsets.view(np.uint8), scalar)
    mask = rng.integers(0, 256, -(-count // 8), dtype=np.uint8)
    return Inputs(old, (first, second), mask, _scalar(case, rng))


def _expected(case: Case, count: int, given: Inputs) -> np.ndarray:
    row = case.row
    sources = list(given.sources[: row.operands.count(Operand.SRC)])
    if row.form is Form.GATHER:
        return row.meaning(*sources, given.mask.view(np.int32), given.scalar)
    if not row.views[1:]:
        return row.meaning(case.dst, count, given.scalar)
    if row.reads_dst:
        sources.insert(0, given.old[:count])
    if Operand.MASK in row.operands:
        sources.insert(0, given.mask)
    scalars = [given.scalar] if Operand.SCALAR in row.operands else []
    if row.name == "cast":
        return row.meaning(*sources, case.mode, case.dst)
    return row.meaning(*sources, *scalars, *([case.mode] if row.modes else []))


def _launch(kernels: Kernels, case: Case, count: int, given: Inputs) -> np.ndarray:
    out = given.old.copy()
    bits = {Operand.MASK, Operand.INDEX} & set(case.row.operands)
    mask_bytes = given.mask.nbytes if bits else 0
    header = np.array([count, out.nbytes, given.sources[0].nbytes, mask_bytes], np.int64)
    scalar = np.asarray(given.scalar).reshape(1)
    outcome = kernels.launch(case.entry, [
        Tensor(out, "dst"), Tensor(given.sources[0], "src0", False),
        Tensor(given.sources[1], "src1", False), Tensor(given.mask, "mask", False),
        Tensor(scalar, "scalar", False), Tensor(header, "header", False),
    ])  # fmt: skip
    assert outcome.findings == ()
    assert outcome.finished
    return out


def _ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers in the order of the floats, so that neighbours differ by 1."""
    bits = values.view(np.dtype(f"i{values.itemsize}")).astype(np.int64)
    low = -(1 << (8 * values.itemsize - 1))
    return np.where(bits < 0, low - bits, bits)


def _assert_same(case: Case, got: np.ndarray, want: np.ndarray) -> None:
    if not case.dst.is_float or case.row.whole_repeats:
        np.testing.assert_array_equal(got, want)
        return
    nan = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
    apart = np.abs(_ordered(got)[~nan] - _ordered(want)[~nan])
    most = 1 if case.row.name in ROUNDED else 0
    assert apart.max(initial=0) <= most, (got[~nan][apart > most], want[~nan][apart > most])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.entry)
def test_a_row_computes_its_meaning_and_touches_nothing_else(kernels: Kernels, case: Case) -> None:
    lanes = (
        case.src.per_repeat
        if case.row.whole_repeats
        else (256 // max(case.src.bytes, case.dst.bytes))
    )
    rng = np.random.default_rng(7)
    lengths = [lanes, 2 * lanes] if case.row.whole_repeats else _lengths(lanes)
    for count in lengths:
        given = _inputs(case, count, rng)
        want = _expected(case, count, given)
        got = _launch(kernels, case, count, given)
        _assert_same(case, got[: want.size], want)
        np.testing.assert_array_equal(
            got[want.size :].view(np.uint8), given.old[want.size :].view(np.uint8)
        )
