"""The tolerant scanner: blanking keeps offsets, brackets and arguments are matched."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.twin import opdef, scan, tiling


@pytest.mark.parametrize(
    ("text", "blanked"),
    [
        ("a // b\nc", "a     \nc"),
        ("a /* b\nc */ d", "a     \n     d"),
        ('f("// no");', 'f("     ");'),
        ("x = '\"'; // c", "x = ' ';     "),
        ("n = 1'000'000;", "n = 1'000'000;"),
        ('R"(a " b)" c', None),
        ("// one \\\ntwo\nthree", "        \n   \nthree"),
    ],
)
def test_comments_and_literals_are_blanked_in_place(text: str, blanked: str | None) -> None:
    result = scan.blank(text)
    assert len(result) == len(text)
    assert [at for at, c in enumerate(result) if c == "\n"] == [
        at for at, c in enumerate(text) if c == "\n"
    ]
    if blanked is not None:
        assert result == blanked


def test_arguments_are_split_outside_of_brackets() -> None:
    assert scan.split_args("a, f(b, c), d<e, f>, g[1, 2], h->i") == (
        "a",
        "f(b, c)",
        "d<e, f>",
        "g[1, 2]",
        "h->i",
    )
    assert scan.split_args("  ") == ()
    assert scan.split_args("(n >> 3), b") == ("(n >> 3)", "b")
    assert scan.split_args("a < b, c", angles=False) == ("a < b", "c")


@pytest.mark.parametrize(
    ("text", "names", "template"),
    [
        ('extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {}', ("x", "y"), False),
        ("__global__ __vector__ void k(__gm__ half *x, __gm__ float* y) {}", ("x", "y"), False),
        ("template <typename T>\n__global__ __aicore__ void k(GM_ADDR x) {}", ("x",), True),
        ("__global__ __mix__(1, 2) void k(GM_ADDR x) {}", ("x",), False),
        ("__global__ __aicore__ void\nk\n(\nGM_ADDR x\n)\n{}", ("x",), False),
        ("__global__ __aicore__ void k() {}", (), False),
    ],
)
def test_entries_are_found_in_every_spelling(
    text: str, names: tuple[str, ...], template: bool
) -> None:
    (entry,) = scan.find_entries(scan.blank(text))
    assert entry.name == "k"
    assert entry.param_names == names
    assert entry.defined
    assert entry.template is template


def test_a_declaration_is_not_a_definition() -> None:
    (entry,) = scan.find_entries("__global__ __aicore__ void k(GM_ADDR x);")
    assert not entry.defined


@pytest.mark.parametrize(
    "piece",
    ['R"(', '"\\"', "__global__ void f(", "__global__ ", 'this->Input("x")', "struct A {",
     "static const ", "class A ", "OP_ADD(A);"],
)  # fmt: skip
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    """Whatever is repeated without end is read to the end: quadratic work would take an hour."""
    text = piece * (250_000 // len(piece))
    code = scan.blank(text)
    assert len(code) == len(text)
    assert len(scan.find_entries(code)) <= 200
    opdef.read_op(text, "A")
    tiling.find_structs({Path("a.h"): text})


def test_an_unfinished_string_ends_with_its_line() -> None:
    assert scan.blank('a "b {\nc') == 'a "   \nc'


def test_a_parameter_without_a_name_has_none() -> None:
    (entry,) = scan.find_entries("__global__ void f(1, GM_ADDR x) {}")
    assert entry.param_names == ("", "x")


def test_long_literals_before_an_entry_cost_no_more_than_their_length() -> None:
    text = f'#pragma message("{"z" * 100_000}")\n' * 20 + "__global__ void f(GM_ADDR x) {}"
    assert [entry.name for entry in scan.find_entries(scan.blank(text))] == ["f"]
