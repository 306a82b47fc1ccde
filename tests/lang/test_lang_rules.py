"""What is legal, what the messages propose, and what the pages say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_lang_errors import BASE
from tile_cases import names, read

from npusmith.errors import LangError
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import Program
from npusmith.lang import check_all, interpret, parse, run_host
from npusmith.lang.lifetimes import Part, find_parts
from npusmith.lang.reference import reference
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.target.intrinsics import CASTS, INTRINSICS

CHIP = find_chip(DEFAULT_CHIP)
DOCS = Path(__file__).parents[2] / "docs"
RELU = "        relu(yt, xt, n)\n"
TAIL = "    with copy_out:\n        store(y, yt, n)\n"


def first_error(text: str) -> LangError:
    """What parse, or else the checks, object to."""
    try:
        errors = check_all(parse(text), CHIP)
    except LangError as error:
        return error
    assert errors, "nothing is wrong"
    return errors[0]


# ------------------------------------------------------------------------------------ suggestions


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("rleu(yt, xt, n)", "'relu'"),
        ("Relu(yt, xt, n)", "relu(dst, a, n)"),
        ("CompareScalar(yt, xt, n)", "compares(dst, a, s"),
        ("yt = exp(xt)", "exp(dst, a, n)"),
        ("tl.load(xt, x, n)", "load(buf, x[offset], count)"),
        ("tl.store(y, yt)", "store(y[offset], buf, count)"),
        ("DataCopy(yt, x, n)", "load(buf, x[offset], count)"),
        ("a = tl.cdiv(n, 2)", "ceil_div(a, b)"),
        ("a = math.exp(1.0)", "exp(dst, a, n)"),
        ("a = np.maximum(xt, yt)", "max(dst, a, b, n)"),
        ("a = torch.softmax(xt)", "reduce_max"),
        ("while n > 0:\n            pass", "for i in range(n)"),
        ("a = [i for i in range(3)]", "for i in range(n)"),
        ("a = n ** 2", "a * a"),
        ("a = -float('inf')", "inf"),
        ("a = np.inf", "inf"),
        ("relu(yt, xt)", "the last operand is the number of elements"),
        ('compare(yt, xt, xt, "less", n)', "'lt'"),
        ('compare(yt, xt, xt, ">=", n)', "'ge'"),
        ('cast(yt, xt, "nearest", n)', "'rint'"),
        ('cast(yt, xt, "CAST_RINT", n)', "'rint'"),
        ("muls(yt, xt, 2, n)", "write 2.0"),
        ("muls(yt, xt, n, n)", "float(n)"),
        ("a = n / 2", "//"),
        ("a = x.shape[0]", "launch()"),
        ("relu(yt, xtt, n)", "'xt'"),
        ("relu(yt, x, n)", "load()"),
        ("a = nn + 1", "did you mean 'n'"),
        ("y[0] = 1.0", "store(y[offset], buf, count)"),
        ("AllocTensor(xt)", "ub()"),
        ("a = GetBlockIdx()", "core_id()"),
        ("with compute():\n            pass", "with compute:"),
        ("alloc(xt)", "the lowering inserts"),
        ("relu(yt, xt[4], 8)", "a multiple of 8 elements"),
        ("relu(yt, xt, 65)", "ub(65, float32)"),
        ('store(y, yt, n, atomic="addd")', "'add'"),
    ],
)
def test_a_habit_of_another_system_gets_its_translation(line: str, hint: str) -> None:
    error = first_error(BASE.replace(RELU, f"        {line}\n"))
    assert hint in error.hint, str(error)


def test_too_many_buffers_are_listed_with_a_length_that_fits() -> None:
    error = first_error(BASE.replace("TILE = 64", "TILE = 65536"))
    assert "xt 262144, yt 262144" in error.message
    assert "TILE = 16384 or 23488" in error.hint
    for tile in (16384, 23488):
        assert check_all(parse(BASE.replace("TILE = 64", f"TILE = {tile}")), CHIP) == []
    assert check_all(parse(BASE.replace("TILE = 64", "TILE = 23552")), CHIP)


def test_every_mistake_of_one_kind_is_reported_in_the_order_of_lines() -> None:
    text = BASE.replace(RELU, "        a = m\n        b = k2\n").replace(
        "size = x.size", "size = z"
    )
    assert [error.place.line for error in check_all(parse(text), CHIP)] == [6, 16, 17]


def test_an_error_names_the_file_that_was_given() -> None:
    program = parse(BASE.replace(RELU, "        relu(yt, xt, m)\n"))
    (error,) = check_all(program, CHIP, "some.tile.py")
    assert str(error.place) == "some.tile.py:16, k"
    assert error.seen == "relu(yt, xt, m)"


# ------------------------------------------------------------------------------------ near twins


@pytest.mark.parametrize(
    "replaced",
    [
        "        muls(yt, xt, 1.0, n)\n        relu(yt, yt, n)\n",
        "        muls(yt, xt, 1.0, n)\n        relu(yt[32], yt, 32)\n",
        "        relu(yt, xt, 64)\n",
        "        m = min(n, 64)\n        relu(yt, xt, m)\n",
        "        relu(yt[8], xt[8], 8)\n",
        "        a = value(xt[3])\n        muls(yt, xt, a, n)\n",
        "        for i in range(3):\n            relu(yt, xt, n)\n        for i in range(2):\n"
        "            relu(yt, xt, n)\n",
        "        if n > 3:\n            m = n\n            relu(yt, xt, m)\n        else:\n"
        "            m = 3\n            relu(yt, xt, m)\n",
        "        m = 0\n        if n > 3:\n            m = n\n        relu(yt, xt, m)\n",
        "        relu(yt, xt, n)\n    if n > 3:\n        sync_cores()\n",
        "        relu(yt, xt, n)\n    for i in range(n):\n        sync_cores()\n",
        "        'a note'\n        relu(yt, xt, n)\n",
        "        total = 0.0\n        total += 1.5\n        muls(yt, xt, total, n)\n",
        "        relu(yt, xt, n)\n    with copy_in:\n        load(xt, x, n)\n    with compute:\n"
        "        add(yt, yt, xt, n)\n",
        "        relu(yt, xt, n)\n    for i in range(2):\n        with compute:\n"
        "            relu(yt, xt, n)\n",
        "        relu(yt, xt, n)\n    top = value(yt)\n    with compute:\n"
        "        adds(yt, yt, top, n)\n",
    ],
)
def test_the_legal_neighbour_of_a_mistake_passes(replaced: str) -> None:
    assert check_all(parse(BASE.replace(RELU, replaced)), CHIP) == []


def test_imports_of_npusmith_are_ignored() -> None:
    head = "from npusmith.lang import *\nimport npusmith\n"
    assert parse(head + BASE.replace('"""relu"""\n', "")).kernel == parse(BASE).kernel


def test_a_host_may_use_an_output_that_the_kernel_only_stores() -> None:
    assert check_all(parse(BASE.replace("x.size", "y.size")), CHIP) == []


def test_parts_follow_from_use() -> None:
    found = {name: find_parts(each_launch(read(name))[0]) for name in names()}
    assert found["copy"] == {"xt": Part.THROUGH}
    assert found["add"] == {"xt": Part.LOADED, "yt": Part.LOADED, "zt": Part.STORED}
    assert found["mean_all"]["total"] is Part.SCRATCH


# -------------------------------------------------------------------------------------- meaning


def run(text: str, x: np.ndarray, dtype: DType = DType.FLOAT32) -> np.ndarray:
    """The output of a program of one input and one output of one shape."""
    program = parse(text)
    assert check_all(program, CHIP) == []
    return interpret(program, CHIP, [x], [(x.shape, dtype)])[0]


def scalar(expression: str, size: int = 8) -> float:
    """The value of a float expression over `n`, as the kernel sees it."""
    body = f"        adds(yt, xt, {expression}, n)\n"
    return float(run(BASE.replace(RELU, body), np.zeros(size, np.float32))[0])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", np.float32(0.1) + np.float32(0.2)),
        ("1.0 / 3.0", np.float32(1) / np.float32(3)),
        ("1.0 / 0.0", np.inf),
        ("float(-7 // 2)", -4.0),
        ("float(-7 % 2)", 1.0),
        ("float(7 % -2)", -1.0),
        ("float(int(-2.7))", -2.0),
        ("float(ceil_div(n, 3))", 3.0),
        ("float(align_up(n + 1, 8))", 16.0),
        ("max(0.0 / 0.0, 1.0)", np.nan),
        ("max(1.0, 0.0 / 0.0)", np.nan),
        ("min(1.0, 0.0 / 0.0)", np.nan),
        ("min(2.0, 1.0)", 1.0),
        ("1.0 if n > 3 and n < 9 else 0.0", 1.0),
        ("1.0 if n > 3 and not n == 8 else 0.0", 0.0),
        ("1.0 if n == 8 or 1 // (n - 8) > 0 else 0.0", 1.0),
        ("float(16777217)", 16777216.0),
        ("16777216.0 + 1.0", 16777216.0),
        ("float(9007199791611905)", np.float32(np.int64(9007199791611905))),
        ("3.0 if 1 < n < 9 else 4.0", 3.0),
        ("float(core_count() + core_id())", 1.0),
    ],
)
def test_scalars_are_computed_as_the_page_says(expression: str, value: float) -> None:
    np.testing.assert_equal(np.float32(scalar(expression)), np.float32(value))


def test_the_example_of_the_page_is_legal_and_right() -> None:
    page = (DOCS / "language.md").read_text()
    program = parse(page.split("```python\n")[1].split("```")[0])
    assert check_all(program, CHIP) == []
    assert program == read("softmax_three_pass")


def test_a_host_serves_every_shape_of_its_rank() -> None:
    program: Program = read("softmax_three_pass")
    for shape in ((0, 0), (0, 5), (5, 0), (1, 1), (3, 100_000)):
        launched = run_host(program, CHIP, {"x": shape, "y": shape})
        assert 1 <= launched.cores <= CHIP.vector_cores


def test_non_contiguous_and_zero_dimensional_inputs_are_read_in_their_own_order() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(run(BASE, x), x)
    assert run(BASE, np.float32([[-3.0]]).reshape(())) == 0.0


def test_the_interpreter_leaves_its_inputs_alone() -> None:
    x = np.linspace(-1, 1, 40, dtype=np.float32)
    before = x.copy()
    run(BASE, x)
    np.testing.assert_array_equal(x, before)


# ----------------------------------------------------------------------------------------- pages


def test_the_quick_reference_on_disk_is_the_one_that_the_tables_give() -> None:
    assert (DOCS / "reference.md").read_text() == reference()


def test_the_quick_reference_names_every_operation_and_conversion() -> None:
    page = reference()
    assert all(f"`{name}(dst" in page for name in INTRINSICS)
    assert all(f"| {at.value} | {to.value} |" in page for at, to in CASTS)
