"""How forward hands over its tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from npusmith.ir.returned import arranged, check, plain, spelled


class Pair(NamedTuple):
    one: Any
    two: Any


@pytest.mark.parametrize(
    ("text", "count", "made"),
    [
        ("0", 1, "a"),
        ("(0,)", 1, ("a",)),
        ("(0, [1, 2])", 3, ("a", ["b", "c"])),
        ("{'y': 0, 3: (1,)}", 2, {"y": "a", 3: ("b",)}),
        ("{-1: 0, 'n': None}", 1, {-1: "a", "n": None}),
        ("[None, Pair(one=0, two={'x': 1})]", 2, [None, Pair(one="a", two={"x": "b"})]),
    ],
)
def test_values_are_arranged_as_the_text_says_and_spelled_so(
    text: str, count: int, made: object
) -> None:
    values = ["a", "b", "c"][:count]
    assert arranged(text, values) == made
    assert eval(spelled(text, lambda at: repr(values[at]), count)) == made


def test_names_that_no_named_tuple_has_are_places() -> None:
    assert arranged("Out(_low=0, high=1)", "ab") == ("a", "b")


def test_one_tensor_is_itself_and_several_are_a_tuple() -> None:
    assert arranged(plain(1), "a") == "a"
    assert arranged(plain(2), "ab") == ("a", "b")


@pytest.mark.parametrize(
    "text",
    ["", "1", "(0, 0)", "(1, 0)", "x", "__import__('os')", "{1.5: 0}", "{0, 1}", "'0'", "True",
     "(" * 5000, "0" * (1 << 17), "(0, None)",
     "Out(0, 1)", "Out(a=0, **{'b': 1})", "a.Out(a=0, b=1)", "Out(a=0, b=open('x'))", "(*(0,), 1)",
     "{**{'a': 0}, 'b': 1}", "-0, 1", "{True: 0, 'b': 1}", "Out(a=0, a=1)"],
)  # fmt: skip
def test_a_text_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        check(text, 1 if text in ("x", "1", "True") else 2)
