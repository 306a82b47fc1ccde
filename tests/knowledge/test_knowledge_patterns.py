"""Patterns over words, replacements, conditions, and the places that are tried first."""

from __future__ import annotations

import random

import pytest
from pydantic import ValidationError

from npusmith.knowledge.edit import Edit, Template, candidates, given_names, quoted_names
from npusmith.knowledge.pattern import PatternError, compile_pattern, find_all
from npusmith.knowledge.tokens import DIRECT, ROUTES, TILE, read_tokens, words


def apply(route: str, find: str, put: str, text: str, *where: str, **more: object) -> list[str]:
    template = Template(route=route, edits=(Edit(find=find, put=put),), where=where)
    return candidates(template, text, **more)  # type: ignore[arg-type]


def test_a_hole_takes_an_expression_up_to_its_comma() -> None:
    made = apply(DIRECT, "Mults($a, $b, $c);", "Muls($a, $b, $c);", "Mults(y, f(x, 1)[2], a * 2);")
    assert made == ["Muls(y, f(x, 1)[2], a * 2);"]


def test_a_hole_that_stands_twice_matches_the_same_words() -> None:
    text = "q.Free(x); q.Free(y);\nq.Free(z); q.Free(z);"
    made = apply(DIRECT, "$q.Free($x); $q.Free($x);", "$q.Free($x);", text)
    assert made == ["q.Free(x); q.Free(y);\nq.Free(z);"]


def test_a_gap_reaches_deeper_statements_and_leaves_no_block() -> None:
    text = "void f() { T a = g(); if (b) { use(a); } }\nvoid h() { use(c); }"
    pattern = compile_pattern("T $x = g(); ... use($y);", DIRECT)
    found = find_all(pattern, read_tokens(text, DIRECT))
    assert [match.holes["y"] for match in found] == [("a",)]


def test_braces_of_an_initialiser_end_no_statement() -> None:
    text = "void f() { P p{1, 2}; copy(a, p); }"
    made = apply(DIRECT, "P $p:name{...}; copy($a, $p);", "P $p{...}; pad($a, $p);", text)
    assert made == ["void f() { P p{1, 2}; pad(a, p); }"]


def test_ints_can_be_computed_with_and_get_endings() -> None:
    assert apply(TILE, "$t:name = $n:int", "$t = $(n / 4)", "TILE = 40000\n") == ["TILE = 10000\n"]
    assert apply(DIRECT, "Adds(y, $s:int);", "Adds(y, $(s).0f);", "Adds(y, 2);") == [
        "Adds(y, 2.0f);"
    ]


def test_a_block_keeps_its_shape_when_something_is_put_around_it() -> None:
    text = "def k():\n    for i in range(3):\n        a(i)\n        b(i)\n    c()\n"
    made = apply(
        TILE, "for $i in range($n):\n    ...", "for $i in range($n):\n    if ok:\n        ...", text
    )
    assert made == [
        "def k():\n    for i in range(3):\n        if ok:\n            a(i)\n            b(i)\n"
        "    c()\n"
    ]


def test_what_follows_a_gap_keeps_its_own_indentation() -> None:
    text = "t = ub(8, float32)\nwith compute:\n    sum(p, x, n)\n"
    find, put = "$t = ub($l, $d)\n...\nsum($a, $b, $n)", "$t = ub($l, $d)\n...\nsum($a, $b, $t, $n)"
    assert apply(TILE, find, put, text) == [text.replace("x, n", "x, t, n")]


def test_a_name_that_a_message_quotes_fills_said() -> None:
    made = apply(
        TILE, "$a:name = ub($l, $t)", "$a = ub($l, $t)\n$(said) = ub($l, $t)",
        "xt = ub(64, float32)\n", said=quoted_names(["no buffer is called 'yt'"]),
    )  # fmt: skip
    assert made == ["xt = ub(64, float32)\nyt = ub(64, float32)\n"]


@pytest.mark.parametrize(
    ("message", "hints", "text", "wanted"),
    [
        ("nothing is called 'mul_scalar'", (), "mul_scalar(a, b)\n", "muls(a, b)\n"),
        ("nothing is called 'sum_reduce'", (), "sum_reduce(a, b)\n", "reduce_sum(a, b)\n"),
        ("program_id is not of this language", ("core_id()",), "program_id(0)\n", "core_id(0)\n"),
        ("nothing is called 'take'", ("did you mean 'gather'?",), "take(a)\n", "gather(a)\n"),
        ("nothing is called 'qqqq'", (), "qqqq(a)\n", None),
        ("nothing is called 'absent'", ("abs(a)",), "other(a)\n", None),
    ],
)
def test_a_name_that_a_finding_proposes_or_that_is_most_alike_fills_hint(
    message: str, hints: tuple[str, ...], text: str, wanted: str | None
) -> None:
    edit = Edit(find="$said(...)", put="$hint(...)")
    said, hinted = given_names((message,), hints, TILE)
    made = candidates(Template(route=TILE, edits=(edit,)), text, (), 3, said, hinted)
    assert (made or [None])[0] == wanted


def test_what_a_compiler_proposes_is_taken_from_its_message() -> None:
    text = "'GetBlockId' was not declared in this scope; did you mean 'GetBlockIdx'?"
    said, hinted = given_names((text,), (), DIRECT)
    assert said[0] == "GetBlockId" and hinted[0] == "GetBlockIdx"


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ("$n < 100", True),
        ("$n >= 100", False),
        ("$t in TILE COLS", True),
        ("$t not in TILE", False),
        ("has ub($t, $d)", True),
        ("has ub(COLS, $d)", False),
        ("lacks ub($t, $d)", False),
    ],
)
def test_a_condition_decides_whether_a_template_applies(where: str, fits: bool) -> None:
    text = "TILE = 64\nxt = ub(TILE, float32)\n"
    assert bool(apply(TILE, "$t:name = $n:int", "$t = 4096", text, where)) is fits


def test_places_near_a_finding_are_tried_first() -> None:
    text = "\n".join(f"Free(a{number});" for number in range(9))
    made = apply(DIRECT, "Free($a);", "Done($a);", text, lines=(7,), most=1)
    assert made == [text.replace("Free(a6)", "Done(a6)")]


@pytest.mark.parametrize(
    ("find", "put", "where"),
    [
        ("", "x", ()),
        ("...", "x", ()),
        ("f($a)", "g($b)", ()),
        ("f($a)", "...", ()),
        ("f($a:colour)", "g()", ()),
        ("f($a)", "g($a)", ("$b in x",)),
        ("f($a)", "g($a)", ("import os",)),
    ],
)
def test_nonsense_is_no_template(find: str, put: str, where: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Template(
            route=TILE, edits=(Edit.model_construct(find=find, put=put, every=False),), where=where
        )


def test_no_text_is_too_broken_to_be_read() -> None:
    rng = random.Random(1)
    letters = "ab1.\"'(){}[]<>;:,=+-*/\\#$\n\t é\x00"
    for route in ROUTES:
        for _ in range(300):
            text = "".join(rng.choice(letters) for _ in range(rng.randrange(60)))
            tokens = read_tokens(text, route)
            assert all(text[item.start : item.end] or item.start == item.end for item in tokens)
            for find in ("f($a, ...)", "$a = $b"):
                candidates(Template(route=route, edits=(Edit(find=find, put="x"),)), text)


def test_a_search_with_many_gaps_gives_up_instead_of_hanging() -> None:
    text = "a();" * 3000
    pattern = compile_pattern("a(); ... b(); ... c(); ... d();", DIRECT)
    assert find_all(pattern, read_tokens(text, DIRECT)) == []


def test_layout_and_comments_are_no_words() -> None:
    assert words("a = 1;  // one\n", DIRECT) == words("a=1; /* two */", DIRECT)
    assert words("a = 1  # one\n\n", TILE) == words("a=1\n", TILE)


def test_a_division_by_zero_in_a_replacement_makes_no_candidate() -> None:
    assert apply(TILE, "$t:name = $n:int", "$t = $(n / 0)", "TILE = 4\n") == []
    with pytest.raises(PatternError, match="at least one word"):
        compile_pattern("# nothing", TILE)
