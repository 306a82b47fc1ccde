"""Expressions as C++: what is written, and that it means what the tile language says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusmith.ir.nodes import Expr, Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.lang import parse
from npusmith.lower import lower
from npusmith.lower.cpp import real
from npusmith.lower.facts import kernel_facts, prove
from npusmith.lower.fold import fold
from npusmith.lower.kernel import write_kernel
from npusmith.lower.kinds import Kind
from npusmith.lower.lines import code, comment, quoted
from npusmith.lower.names import Scope, camel
from npusmith.lower.render import render
from npusmith.lower.spell import Spelling
from npusmith.lower.tiling import plan_tiling
from npusmith.target.chips import Chip

TEXT = """
TILE = 64
@host
def host(x, y):
    launch(k, 1, n=x.size, m=align_up(x.size, 16), off=x.shape[0] - 3, f=1.0)
@kernel
def k(x: input(float32), y: output(float32), n: int, m: int, off: int, f: float):
    yt = ub(64, float32)
    a = EXPR
    with compute:
        duplicate(yt, 0.0, 8)
    with copy_out:
        store(y, yt, 8)
"""


def expression(text: str) -> tuple[Program, Expr]:
    program = parse(TEXT.replace("EXPR", text))
    return program, program.kernel.body[0].value  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tile", "cpp"),
    [
        ("n - (m - 1)", "n - (m - 1)"),
        ("(n + m) * 2", "(n + m) * 2"),
        ("n // 3 % 2", "n / 3 % 2"),
        ("off // 3", "FloorDiv(off, 3)"),
        ("off % 3 * 2", "FloorMod(off, 3) * 2"),
        ("-(-n)", "-(-n)"),
        ("n * -1", "n * -1"),
        ("min(TILE, n)", "ScalarMin(TILE, n)"),
        ("max(f, 0.5)", "FloatMax(f, 0.5f)"),
        ("ceil_div(n, 8) * core_count()", "CeilDiv(n, 8) * GetBlockNum()"),
        ("core_id() * n", "GetBlockIdx() * n"),
        ("f / 3.0 - float(n)", "f / 3.0f - static_cast<float>(n)"),
        ("int(f)", "static_cast<int64_t>(f)"),
        ("n if n < m and not n == 3 else 4", "(n < m && n != 3 ? n : 4)"),
        ("n < m or n > 3 and m > 4", "n < m || (n > 3 && m > 4)"),
        ("f * -inf", "f * -Infinity()"),
    ],
)
def test_an_expression_is_written_as_a_person_would(tile: str, cpp: str) -> None:
    program, expr = expression(tile)
    assert Spelling(program, {}).show(expr) == cpp


@given(st.floats(width=32, allow_nan=False))
def test_a_float_literal_reads_back_exactly(value: float) -> None:
    text = real(value, "inf")
    back = np.float32(text.removesuffix("f") if text.endswith("f") and "n" not in text else text)
    assert back.tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize(
    ("tile", "low", "step"),
    [
        ("n", 0, 1),
        ("m", 0, 16),
        ("m // 2", 0, 8),
        ("off", None, 1),
        ("min(m, TILE)", 0, 16),
        ("m * 2 + 8", 1, 8),
        ("off * 8", None, 8),
        ("align_up(n, 8)", 0, 8),
        ("max(1, n)", 1, 1),
    ],
)
def test_what_is_proved_of_an_expression(tile: str, low: int | None, step: int) -> None:
    program, expr = expression(tile)
    fact = prove(expr, kernel_facts(program))
    assert (fact.low, fact.step) == (low, step)


@pytest.mark.parametrize(
    ("tile", "folded"),
    [
        ("3 * 4 + 1", "13"),
        ("n * 1 + 0", "n"),
        ("n - n", "0"),
        ("-7 // 2", "-4"),
        ("7 // 0", "7 // 0"),
        ("64 > 0 and 512 % 64 == 0", "True"),
        ("64 > 0 and n % 64 == 0", "n % 64 == 0"),
        ("n == 3 and 1 > 2", "n == 3 and False"),
        ("n == 3 or 1 > 2", "n == 3"),
        ("2 > 1 or n == 3", "True"),
    ],
)
def test_ints_fold_as_in_python(tile: str, folded: str) -> None:
    from npusmith.ir.text import show_expr

    _, expr = expression(tile)
    assert show_expr(fold(expr, lambda _: Kind.INT)) == folded


INTS = [-(2**40), -7, -6, -1, 0, 1, 5, 6, 7, 2**40]


@pytest.fixture(scope="module")
def helper_values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """What the emitted helpers answer, compiled by g++."""
    names = ["FloorDiv", "FloorMod", "CeilDiv", "AlignUp", "FloatMin", "FloatMax"]
    helpers = render("only_helpers.j2", helpers=names)
    calls = []
    for name, check in (("FloorDiv", "b != 0"), ("FloorMod", "b != 0"), ("CeilDiv", "b > 0")):
        calls.append(f'show("{name}", {name}, [](long b) {{ return {check}; }});')
    calls.append('show("AlignUp", AlignUp, [](long b) { return b > 0; });')
    source = tmp_path_factory.mktemp("helpers") / "helpers.cpp"
    ints = ", ".join(f"{value}L" for value in INTS)
    source.write_text(
        f"""#include <cmath>
#include <cstdint>
#include <cstdio>
{helpers}
static const long values[] = {{{ints}}};
template <class F, class C> void show(const char *name, F f, C legal)
{{
    printf("%s\\"%s\\": [", name[0] == 'F' && name[5] == 'D' ? "" : ", ", name);
    const char *comma = "";
    for (long a : values) for (long b : values) if (legal(b)) {{
        printf("%s%ld", comma, (long)f(a, b));
        comma = ", ";
    }}
    printf("]");
}}
int main()
{{
    printf("{{");
    {" ".join(calls)}
    const float nan = std::nanf("");
    const float all[] = {{FloatMin(nan, 1), FloatMin(1, nan), FloatMax(nan, 1), FloatMax(1, nan)}};
    printf(", \\"nan\\": [%d", std::isnan(all[0]));
    for (int at = 1; at < 4; ++at) printf(", %d", std::isnan(all[at]));
    printf("]");
    printf(", \\"plain\\": [%g, %g]}}", FloatMin(2, 1), FloatMax(2, 1));
}}
"""
    )
    program = source.with_suffix("")
    subprocess.run(["g++", "-std=c++17", "-o", program, source], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(json.loads(output))


@pytest.mark.parametrize(
    ("name", "meaning", "legal"),
    [
        ("FloorDiv", lambda a, b: a // b, lambda b: b != 0),
        ("FloorMod", lambda a, b: a % b, lambda b: b != 0),
        ("CeilDiv", lambda a, b: -(-a // b), lambda b: b > 0),
        ("AlignUp", lambda a, b: -(-a // b) * b, lambda b: b > 0),
    ],
)
def test_the_int_helpers_round_as_python_does(
    name: str,
    meaning: Callable[[int, int], int],
    legal: Callable[[int], bool],
    helper_values: dict[str, list[float]],
) -> None:
    assert helper_values[name] == [meaning(a, b) for a in INTS for b in INTS if legal(b)]


def test_a_nan_on_either_side_wins(helper_values: dict[str, list[float]]) -> None:
    assert helper_values["nan"] == [1, 1, 1, 1]
    assert helper_values["plain"] == [1, 2]


def test_names_become_camel_case_and_stay_apart() -> None:
    scope = Scope()
    assert camel("rows_per_core") == "rowsPerCore" and camel("TILE_LEN") == "TILE_LEN"
    assert [scope.add(name) for name in ("a_b", "aB", "class", "pipe")] == [
        "aB",
        "aB_",
        "class_",
        "pipe_",
    ]


def test_long_lines_are_broken_and_comments_cannot_swallow_code() -> None:
    call = "Function(" + ", ".join(f"argument{at}" for at in range(20)) + ");"
    lines = code(call, 1)
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(line.strip() for line in lines) == call
    assert comment("ends in a backslash \\\nnext") == ["// ends in a backslash", "// next"]
    assert quoted('a "quoted"\n \\ word') == '"a \\"quoted\\" \\\\ word"'


def test_templates_fail_on_a_name_that_nobody_gave(tmp_path: Path) -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("tiling.h.j2")


def test_an_infinite_constant_is_written_out_where_it_is_used(chip: Chip) -> None:
    text = TEXT.replace("EXPR", "f").replace("TILE = 64", "LOW = -inf\nTOP = 2.5")
    text = text.replace(
        "duplicate(yt, 0.0, 8)", "duplicate(yt, LOW, 8)\n        mins(yt, yt, TOP, 8)"
    )
    program = lower(parse(text), chip)
    ports = [Port(item.name, item.dtype, (64,)) for item in program.kernel.tensors]
    spec = OpSpec("k_custom", (ports[0],), (ports[1],))
    kernel = write_kernel(program, spec, plan_tiling(program, spec))
    # device code may not start with a global that has to be worked out first
    assert kernel.constants == ["constexpr float TOP = 2.5f;"]
    assert kernel.helpers == ["Infinity"]
    assert "        Duplicate(ytLocal, -Infinity(), 8);" in kernel.classes[0].stages[0]


def test_a_string_literal_stays_whole_where_a_line_is_broken() -> None:
    legal = ", ".join(f'x.shape[{at}] + 2 * "k"' for at in range(12))
    text = f"Check(holds, more, {quoted(legal)}, shape);"
    lines = code(text, 1)
    assert " ".join(line.strip() for line in lines) == text
    assert len(lines) > 1
    assert all(line.replace(r"\"", "").count('"') % 2 == 0 for line in lines)
