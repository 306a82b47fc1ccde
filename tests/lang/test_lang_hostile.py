"""Text from anywhere: the parser answers with a program or a LangError, and runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusmith.errors import LangError
from npusmith.ir.text import show
from npusmith.lang import check_all, parse
from npusmith.target.chips import DEFAULT_CHIP, find_chip

CHIP = find_chip(DEFAULT_CHIP)
CORPUS = sorted((Path(__file__).parents[1] / "kernels").glob("*.tile.py"))
TEXTS = [path.read_text() for path in CORPUS]
FRAME = """@host
def host(x, y):
    launch(k, 1)

@kernel
def k(x: input(float32), y: output(float32)):
    a = {}
"""


def read(text: str) -> None:
    """Parse and check; anything but LangError escapes."""
    try:
        program = parse(text)
    except LangError as error:
        assert len(error.render()) < 4000
        return
    assert parse(show(program)) == program
    for error in check_all(program, CHIP):
        assert len(error.render()) < 4000


PIECES = st.sampled_from(
    [
        *("(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "-", "not ", "**", "@", "\n", "    "),
        *("if ", "else ", "for ", "in ", "with ", "lambda: ", "yield ", "await ", "*", "0", "1.5"),
        *("inf", "nan", "x", "n", "xt", "value(", "load(", "add(", "ub(64, float32)", "launch("),
        *("'", '"', '"""', "f'{", "\\", "#", "\t", "\0", "\ud800", "\u2028", "ﬁ", "９", "\x0c"),
        *("float32", "bool", "core_id()", "x.shape[0]", "copy_in", "sync_cores()", "9" * 30),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(st.one_of(PIECES, st.text(max_size=3))) + text[stop:]
    return text


@st.composite
def shuffled(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines.insert(to, lines.pop(at) if draw(st.booleans()) else lines[at])
    return "\n".join(lines)


@settings(max_examples=250, deadline=None)
@given(mutated())
def test_mutated_programs_are_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=150, deadline=None)
@given(shuffled())
def test_programs_with_lines_out_of_order_are_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_arbitrary_text_is_refused(text: str) -> None:
    with pytest.raises(LangError):
        parse(text)


MANY = 60_000
NASTY = {
    "ten megabytes": "x = 1\n" * 2_000_000,
    "brackets": "(" * MANY,
    "braces with colons": "{1:" * 29,
    "brackets closed": "(" * 29 + ")" * 28,
    "lambda chain": "lambda:" * 500 + "1",
    "minus signs": "-" * MANY,
    "minus signs within limits": "-" * 3000 + "1",
    "nots": "not " * 900 + "1",
    "sum": "1" + "+1" * 1900,
    "powers": "2" + "**2" * 900,
    "attributes": "a" + ".b" * 1900,
    "calls": "f" + "()" * 1900,
    "subscripts": "a" + "[0]" * 1000,
    "choices": "1 if 1 else " * 300 + "1",
    "comparisons": "1" + "<1" * 1900,
    "conjunctions": "True" + " and True" * 390,
    "many arguments": "min(" + "1, " * 1300 + "1)",
    "comprehensions": "[" * 20 + "x" + " for x in y]" * 20,
    "f-strings": "f'{f\"{f'''{1}'''}\"}'",
    "f-string with a huge width": "f'{1:1000000000}'",
    "huge int": "1" + "0" * 3900,
    "huge hex": "0x" + "f" * 3900,
    "huge float": "1" + "0" * 400 + ".0",
    "power tower": "9**9**9**9",
    "long string": "'" + "a" * MANY + "'",
    "strings side by side": "'a' " * 900,
    "unclosed string": "'''" + "a" * MANY,
    "escaped quotes": "'" + "\\'" * 100_000,
    "line continuations": "1 \\\n+ " * 600 + "1",
    "imports": "__import__('os').system('true')",
    "eval": "eval('1')",
    "format": "'{0.__class__}'.format(x)",
    "walrus": "(b := 3)",
    "full-width": "ｘ + ＡＢ",
    "bidirectional": "'\u202e' + x",
    "star": "*x",
    "ellipsis": "...",
    "bytes": "b'x'",
    "complex": "3j",
}


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_expression_is_refused(name: str) -> None:
    with pytest.raises(LangError) as caught:
        check_all_raising(FRAME.format(NASTY[name]))
    assert len(caught.value.render()) < 2000


def check_all_raising(text: str) -> None:
    errors = check_all(parse(text), CHIP)
    if errors:
        raise errors[0]


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n    pass\n" + "elif x:\n    pass\n" * 8000,
        "".join("\n" + "  " * depth + "if 1:" for depth in range(99)) + " pass",
        "".join("\n" + "  " * depth + "if 1:" for depth in range(500)) + " pass",
        "@a\n" * 20_000 + "def f(): pass",
        "class A(" + "a," * 1500 + "): pass",
        "def f(" + ",".join(f"a{i}" for i in range(800)) + "): pass",
        "\\\n" * 50_000,
        ";" * 50_000,
        "\ufeffx = 1",
        "# -*- coding: nonsense -*-\n",
        "\r" * 1000,
        "x" * 200_000,
        "match x:\n" + "    case " + "[" * 20 + "]" * 20 + ": pass",
    ],
    ids=range(13),
)
def test_a_nasty_module_is_refused(text: str) -> None:
    with pytest.raises(LangError):
        parse(text)


def test_nothing_in_a_text_is_executed(tmp_path: Path) -> None:
    target = tmp_path / "made"
    for text in (
        f"open({str(target)!r}, 'w')",
        f"(lambda: open({str(target)!r}, 'w'))()",
        f"f'{{open({str(target)!r})}}'",
    ):
        with pytest.raises(LangError):
            parse(text)
        with pytest.raises(LangError):
            parse(FRAME.format(text))
    assert not target.exists()
