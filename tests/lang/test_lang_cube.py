"""Kernels of cube cores: what is refused, with code and line, and near programs that are legal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from npusmith.errors import CODES, LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Memory, View
from npusmith.ir.text import show
from npusmith.ir.walk import mentioned
from npusmith.lang import check, check_all, interpret, parse
from npusmith.target.chips import DEFAULT_CHIP, find_chip

CHIP = find_chip(DEFAULT_CHIP)

BASE = """
BM = 32
BK = 64

@host
def host(a, b, c):
    blocks = 1
    launch(product, blocks, m=a.shape[0], k=a.shape[1], n=b.shape[1])

@kernel
def product(a: input(float16), b: input(float16), c: output(float32), m: int, k: int, n: int):
    a1 = l1(BM, BK, float16)
    b1 = l1(BK, 32, float16)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, 32, float16)
    c0 = l0c(BM, 32, float32)
    with copy_in:
        load(a1, a, k, rows=m, pitch=k)
        load(b1, b, n, rows=k, pitch=n)
    with split:
        load(a0, a1, m, k)
        load(b0, b1, k, n)
    with compute:
        mmad(c0, a0, b0, m, n, k, False)
    with copy_out:
        store(c, c0, n, rows=m, pitch=n)
"""

INT8 = ("a: input(float16), b: input(float16), c: output(float32)",
        "a: input(int8), b: input(int8), c: output(int32)",
        "BK, float16)", "BK, int8)", "l1(BK, 32, float16)", "l1(BK, 32, int8)",
        "BK, float16)", "BK, int8)", "b0 = l0b(BK, 32, float16)", "b0 = l0b(BK, 32, int8)",
        "l0c(BM, 32, float32)", "l0c(BM, 32, int32)")  # fmt: skip


def spoilt(edits: tuple[str, ...]) -> str:
    text = BASE
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def execute(text: str, m: int = 20, k: int = 40, n: int = 24) -> np.ndarray[Any, Any]:
    program = parse(text)
    rng = np.random.default_rng(0)
    inputs = [
        (rng.standard_normal(shape) * 8).astype(item.dtype.numpy)
        for item, shape in zip(program.inputs, ((m, k), (k, n), (n,)), strict=False)
    ]
    out = ((m, n), program.outputs[0].dtype)
    (got,) = interpret(program, CHIP, inputs, [out])
    return got


@dataclass(frozen=True)
class Bad:
    """BASE with pieces replaced; `run` says that only a run shows the error."""

    code: str
    edits: tuple[str, ...]
    run: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.edits[-1].strip()[:40]}"


def bad(code: str, *edits: str) -> Bad:
    return Bad(code, edits)


def runs(code: str, *edits: str) -> Bad:
    return Bad(code, edits, run=True)


SPLIT = "load(a0, a1, m, k)"
MMAD = "mmad(c0, a0, b0, m, n, k, False)"
LOAD = "load(a1, a, k, rows=m, pitch=k)"
STORE = "store(c, c0, n, rows=m, pitch=n)"
A1 = "a1 = l1(BM, BK, float16)"
ROW = "\n    v1 = l1(1, 32, float32)\n    v0 = bias_table(1, 32, float32)"
BIAS = ("    with split:", "        load(v1, v, n)\n    with split:\n        load(v0, v1, 1, n)",
        "b: input(float16), c", "b: input(float16), v: input(float32), c",
        "host(a, b, c)", "host(a, b, v, c)", "k, False)", "k, False, bias=v0)")  # fmt: skip
CASES = (
    # ---- memories
    bad("lang-memory", A1, A1 + "\n    ut = ub(64, float16)  # !"),
    bad("lang-memory", SPLIT, "load(c0, a1, m, k)  # !"),
    bad("lang-memory", SPLIT, "load(a0, b0, m, k)  # !"),
    bad("lang-memory", "load(a1, a, k, rows=m, pitch=k)", "load(a0, a, k, rows=m, pitch=k)  # !"),
    bad("lang-memory", MMAD, "mmad(c0, b0, a0, m, n, k, False)  # !"),
    bad("lang-memory", MMAD, "mmad(a1, a0, b0, m, n, k, False)  # !"),
    bad("lang-memory", STORE, "store(c, a1, n, rows=m, pitch=n)  # !"),
    bad("lang-memory", MMAD, MMAD + "\n        adds(c0, c0, 1.0, n)  # !"),
    bad("lang-memory", MMAD, MMAD + "\n        top = value(c0)  # !"),
    bad("lang-memory", MMAD, MMAD + "\n        set(c0, 1.0)  # !"),
    bad("lang-memory", "    with copy_out",
        "    combine_sum(c0, c0, c, 8)  # !\n    with copy_out"),
    # ---- fractals
    bad("lang-fractal", A1, "a1 = l1(BM, 72, float16)  # !"),
    bad("lang-fractal", A1, "a1 = l1(40, BK, float16)  # !"),
    bad("lang-fractal", "b0 = l0b(BK, 32, float16)", "b0 = l0b(BK, 24, float16)  # !"),
    bad("lang-fractal", *INT8, "BM = 32", "BM = 48"),
    bad("lang-fractal", "b0 = l0b(BK, 32, float16)", "b0 = l0b(4096, 16, float16)  # !"),
    bad("lang-fractal", SPLIT, "load(a0, a1[8, 0], m, k)  # !"),
    bad("lang-fractal", SPLIT, "load(a0, a1[0, 8], m, k)  # !"),
    bad("lang-fractal", SPLIT, "load(a0[16, 0], a1, m, k)  # !"),
    bad("lang-fractal", MMAD, "mmad(c0[0, 16], a0, b0, m, n, k, False)  # !"),
    bad("lang-fractal", STORE, "store(c, c0[0, 8], n, rows=m, pitch=n)  # !"),
    runs("lang-fractal", SPLIT, "load(a0, a1[m - 10, 0], 5, k)  # !"),
    bad("lang-capacity", A1, "a1 = l1(BM, 8192, float16, copies=2)  # !"),
    bad("lang-capacity", "c0 = l0c(BM, 32, float32)", "c0 = l0c(BM, 1040, float32)  # !"),
    # ---- element types
    bad("lang-op-dtype", A1, "a1 = l1(BM, BK, uint8)  # !"),
    bad("lang-op-dtype", A1, "a1 = l1(BM, BK, bfloat16)"),
    bad("lang-op-dtype", "c0 = l0c(BM, 32, float32)", "c0 = l0c(BM, 32, float16)  # !"),
    bad("lang-op-dtype", "c0 = l0c(BM, 32, float32)", "c0 = l0c(BM, 32, int32)"),
    bad("lang-op-dtype", "c: output(float32)", "c: output(int32)"),
    bad("lang-transpose", *INT8, SPLIT, SPLIT + "\n        load(a0, a1, m, k)"
        "\n        load(a0, a1, 32, 32, transposed=True)  # !"),
    # ---- bias
    bad("lang-fractal", A1, A1 + ROW.replace("1, 32, float32)", "2, 32, float32)  # !", 1), *BIAS),
    bad("lang-fractal", A1, A1 + ROW.replace("table(1, 32", "table(16, 32") + "  # !", *BIAS),
    bad("lang-capacity", A1, A1 + ROW.replace("table(1, 32", "table(1, 272") + "  # !", *BIAS),
    bad("lang-op-dtype", A1, A1 + ROW.replace("float32)", "uint8)  # !", 1), *BIAS),
    bad("lang-op-dtype", A1, A1 + ROW.replace("float32", "int32"), *BIAS),
    bad("lang-memory", A1, A1 + ROW, *BIAS, "bias=v0)", "bias=v1)  # !"),
    bad("lang-memory", A1, A1 + ROW, *BIAS, "load(v0, v1, 1, n)", "load(v0, a1, 1, n)  # !"),
    bad("lang-memory", A1, A1 + ROW, *BIAS, "load(a0, a1, m, k)", "load(a0, v1, 1, n)  # !"),
    bad("lang-transpose", A1, A1 + ROW, *BIAS, "load(v0, v1, 1, n)",
        "load(v0, v1, 1, n, transposed=True)  # !"),
    bad("lang-unused", A1, A1 + ROW, *BIAS, ", bias=v0", ""),
    runs("lang-undefined-read", A1, A1 + ROW, *BIAS, "load(v0, v1, 1, n)", "load(v0, v1, 1, n - 1)",
         "bias=v0)", "bias=v0)  # !"),
    # ---- stages, lifetimes, types
    bad("lang-stage", "split:\n        " + SPLIT, "compute:\n        " + SPLIT + "  # !"),
    bad("lang-stage", "compute:\n        " + MMAD, "split:\n        " + MMAD + "  # !"),
    bad("lang-lifetime", "    with split:",
        "    with compute:\n        " + MMAD + "  # !\n    with split:"),
    bad("lang-unused", "        load(a0, a1, m, k)\n", ""),
    bad("lang-type", MMAD, "mmad(c0, a0, b0, m, n, k, 1)  # !"),
    bad("lang-type", SPLIT, "load(a0, a1, 2.0, k)  # !"),
    bad("lang-operands", SPLIT, "load(a0, a, m, k)  # !"),
    bad("lang-buffer", SPLIT, "load(a0, m, m, k)  # !"),
    bad("lang-operands", SPLIT, "load(a0, a1[16], m, k)  # !"),
    bad("lang-operands", MMAD, "mmad(c0, a0, b0, m, n, k)  # !"),
    bad("lang-operands", A1, "a1 = l1(2048, float16)  # !"),
    bad("lang-operands", SPLIT, "load(a0, a1, m, k, pitch=3)  # !"),
    bad("lang-mode", SPLIT, "load(a0, a1, m, k, transposed=m)  # !"),
    bad("lang-buffer-length", A1, "a1 = l1(BM, 0, float16)  # !"),
    bad("lang-range", SPLIT, "load(a0, a1[16, 0], 32, k)  # !"),
    bad("lang-range", MMAD, "mmad(c0, a0, b0, m, 48, k, False)  # !"),
    # ---- what only a run shows
    runs("lang-range", SPLIT, "load(a0, a1, m, k + 40)  # !"),
    runs("lang-range", SPLIT, "load(a0, a1, m, k - 41)  # !"),
    runs("lang-range", LOAD, "load(a1, a, k, rows=m, pitch=0)  # !"),
    runs("lang-range", STORE, "store(c, c0, n, rows=m, pitch=n - 1)  # !"),
    runs("lang-matrix", MMAD, "mmad(c0, a0, b0, m, n, k - 10, False)  # !"),
    runs("lang-matrix", MMAD, "mmad(c0, a0, b0, m, n - 10, k, False)  # !"),
    runs("lang-matrix", MMAD, MMAD + "\n        mmad(c0, a0, b0, m - 10, n, k, True)  # !"),
    runs("lang-undefined-read", MMAD, "mmad(c0, a0, b0, m, n, k, True)  # !"),
    runs("lang-undefined-read", MMAD, "mmad(c0, a0, b0, m + 1, n, k, False)  # !"),
    runs("lang-undefined-read", MMAD, "mmad(c0, a0, b0, m, n, k + 1, False)  # !"),
    runs("lang-undefined-read", STORE, "store(c, c0[16, 0], n, rows=5, pitch=n)  # !"),
    runs("lang-cores", "blocks = 1", "blocks = chip.cube_cores + 1"),
    runs("lang-gm-range", STORE, "store(c, c0, n, rows=m + 1, pitch=n)  # !"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_wrong_program_is_refused_with_code_and_line(case: Bad) -> None:
    text = spoilt(case.edits)
    with pytest.raises(LangError) as caught:
        check(parse(text, "bad.tile.py"), CHIP, "bad.tile.py")
        assert case.run, "the checks let it pass"
        execute(text)
    assert caught.value.code == case.code, str(caught.value)
    lines = text.splitlines()
    if any("# !" in line for line in lines):
        assert "# !" in lines[caught.value.place.line - 1], str(caught.value)
    assert caught.value.legal


@pytest.mark.parametrize("case", [case for case in CASES if case.run], ids=str)
def test_what_only_a_run_shows_passes_the_checks(case: Bad) -> None:
    assert check_all(parse(spoilt(case.edits)), CHIP) == []


def test_the_program_that_all_cases_spoil_is_legal_and_prints_as_it_reads() -> None:
    program = parse(BASE)
    assert parse(show(program)) == program
    check(program, CHIP)
    execute(BASE)


@pytest.mark.parametrize(
    "edits",
    [
        (SPLIT, "load(a0, a1[0, 0], m, k)"),
        (MMAD, "mmad(c0, a0, b0, m, n, k, k > 100)"),
        (STORE, "store(c, c0, n, rows=16, pitch=n)\n        "
         "store(c[16 * n], c0[16, 0], n, rows=m - 16, pitch=n)"),
        (STORE, "store(c, c0, n, rows=m, pitch=n, relu=True)"),
        ("c: output(float32)", "c: output(bfloat16)"),
        INT8,
        (*INT8, "load(b0, b1, k, n)", "load(b0, b1, k, n, transposed=True)",
         "load(b1, b, n, rows=k, pitch=n)", "load(b1, b, k, rows=n, pitch=k)",
         "b1 = l1(BK, 32, int8)", "b1 = l1(32, BK, int8)"),
        (A1, A1 + ROW, *BIAS),
        ("    with copy_in", "    l1_size = 3\n    with copy_in"),
    ],
    ids=lambda edits: edits[-1].strip()[:40],
)  # fmt: skip
def test_a_near_program_is_legal(edits: tuple[str, ...]) -> None:
    program = parse(spoilt(edits))
    assert parse(show(program)) == program
    assert check_all(program, CHIP) == []
    execute(spoilt(edits))


def test_zeros_fill_the_last_block_of_a_row_and_nothing_fills_the_rows_behind() -> None:
    wide = spoilt((SPLIT, "load(a0, a1, m, 48)", "load(b0, b1, k, n)", "load(b0, b1, 48, n)",
                   MMAD, "mmad(c0, a0, b0, m, n, 48, False)"))  # fmt: skip
    with pytest.raises(LangError, match="b0"):
        execute(wide)
    rows = wide.replace("load(b1, b, n, rows=k, pitch=n)", "load(b1, b, n, rows=k, pitch=n)\n"
                        "        load(b1[32, 0], b, n, rows=16, pitch=n)\n"
                        "        load(b1, b, n, rows=k, pitch=n)")  # fmt: skip
    assert np.array_equal(execute(rows), execute(BASE))


def test_a_view_of_a_matrix_has_two_offsets() -> None:
    program = parse(spoilt((SPLIT, "load(a0, a1[16, k], 4, 8)")))
    view = program.kernel.body[1].body[0].src  # type: ignore[union-attr]
    assert isinstance(view, View)
    assert show(program).count("a1[16, k]") == 1
    assert program.kernel.buffer("a1").memory is Memory.L1
    assert {"a1", "b1", "a0", "b0", "c0"} == set(mentioned(program.kernel.body))


def test_kernels_of_both_kinds_share_a_number_of_blocks() -> None:
    vector = """
@kernel
def twice(t: scratch(float32), c: output(float32), m: int, n: int):
    xt = ub(32, float32)
    yt = ub(32, float32)
    for row in range(core_id(), m, core_count()):
        with copy_in:
            load(xt, t[row * n], n)
        with compute:
            muls(yt, xt, float(core_count()), n)
        with copy_out:
            store(c[row * n], yt, n)
"""
    edits = ("c: output(float32), m", "t: scratch(float32), m", STORE, STORE.replace("(c,", "(t,"),
             "n=b.shape[1])", "n=b.shape[1], t=c.size)\n    launch(twice, blocks, m=a.shape[0], "
             "n=b.shape[1], t=c.size)")  # fmt: skip
    text = spoilt(edits) + vector.replace("t: scratch(float32), c: output(float32)",
                                          "c: output(float32), t: scratch(float32)")  # fmt: skip
    program = parse(text)
    assert check_all(program, CHIP) == []
    assert program.is_mixed
    assert np.array_equal(execute(text), execute(BASE) * 2)  # a block has two vector cores


def test_the_error_table_names_every_code_of_matrices() -> None:
    codes = {case.code for case in CASES}
    assert {
        "lang-memory",
        "lang-fractal",
        "lang-capacity",
        "lang-transpose",
        "lang-matrix",
    } <= codes
    assert codes <= set(CODES)


def test_nan_and_infinity_propagate_and_integers_wrap() -> None:
    program = parse(BASE)
    a = np.ones((16, 16), np.float16)
    a[0, 0], a[1, 1] = np.nan, np.inf
    b = np.ones((16, 16), np.float16)
    b[1, 0] = 0
    (got,) = interpret(program, CHIP, [a, b], [((16, 16), DType.FLOAT32)])
    assert np.isnan(got[0]).all()
    assert np.isnan(got[1, 0]) and np.isinf(got[1, 1:]).all()
