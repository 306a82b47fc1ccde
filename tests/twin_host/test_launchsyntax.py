"""The rewriter of `<<<>>>` launches and of attributes that are not C++."""

from __future__ import annotations

import pytest

from npusmith.errors import TwinError
from npusmith.twin.launchsyntax import find_launches, rewrite


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("k<<<8, nullptr, stream>>>(x, y);", "::twin::Direct(8, k, x, y);"),
        ("k<<<n>>>();", "::twin::Direct(n, k);"),
        ("k<float, 4><<<n, 0, s>>>(x);", "::twin::Direct(n, k<float, 4>, x);"),
        ("ns::k<A<B>><<<n, 0, s>>>(x);", "::twin::Direct(n, ns::k<A<B>>, x);"),
        ("k<<<(n >> 3), f(1, 2), s>>>(g(x), y);", "::twin::Direct((n >> 3), k, g(x), y);"),
        ("int a = b << 3; c >>= 2;", "int a = b << 3; c >>= 2;"),
        ('s = "k<<<1, 0, s>>>(x)"; // k<<<1>>>()', 's = "k<<<1, 0, s>>>(x)"; // k<<<1>>>()'),
    ],
)
def test_a_launch_becomes_a_call(text: str, plain: str) -> None:
    assert rewrite(text) == plain


def test_of_a_dropped_launch_function_the_head_stays() -> None:
    text = "namespace n {\nvoid f() {\n  k<<<1,\n 0, s>>>(x);\n  aclrtNone(s);\n}\nint g() {}\n}"
    assert rewrite(text, drop=True) == "namespace n {\nvoid f() {\n\n\n\n}\nint g() {}\n}"


def test_directives_in_a_dropped_launch_function_stay() -> None:
    text = "void f() {\n  if (a) {\n#ifdef A\n    k<<<1, 0, s>>>(x);\n#endif\n  }\n}"
    assert rewrite(text, drop=True) == "void f() {\n\n#ifdef A\n\n#endif\n\n}"


def test_a_dropped_launch_outside_of_functions_leaves_nothing() -> None:
    assert rewrite("k<<<1,\n 0, s>>>(x);", drop=True) == "(void)0\n;"


def test_lines_stay_lines() -> None:
    text = "a;\nk<<<n,\n   nullptr,\n   s>>>(x,\n  y);\nb;\n"
    plain = rewrite(text)
    assert plain.count("\n") == text.count("\n")
    assert plain.splitlines()[5] == "b;"


def test_several_launches_in_one_function() -> None:
    text = "if (a) { k<<<1, 0, s>>>(x); } else { h<int><<<2, 0, s>>>(y); }"
    assert [launch.kernel for launch in find_launches(text)] == ["k", "h<int>"]
    assert "<<<" not in rewrite(text)


@pytest.mark.parametrize("text", ["[aicore] void f();", "[host, aicore] void f();"])
def test_attributes_vanish_at_their_place(text: str) -> None:
    plain = rewrite(text)
    assert "aicore" not in plain
    assert len(plain) == len(text)
    assert plain.endswith("void f();")


@pytest.mark.parametrize("text", ["k<<<8, 0, s>>;", "k<<<8, 0, s>>> x;", "<<<1, 2, 3>>>(x)"])
def test_what_is_not_a_launch_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(TwinError) as caught:
        rewrite("\n\n" + text, "direct.asc")
    assert caught.value.code == "launch-syntax"
    assert caught.value.place.line == 3


def test_a_marked_workspace_is_handed_over_at_the_beginning() -> None:
    text = "__global__ void k(GM_ADDR x, __kfc_workspace__ GM_ADDR w, Tiling t)\n{\n  Run();\n}"
    assert rewrite(text) == text.replace("{", "{ ::twin::SetWorkspace((void *)(w));")
    either = (
        "#if A\nvoid k(__kfc_workspace__ GM_ADDR w)\n#else\nvoid k(GM_ADDR x, int n)\n#endif\n{}"
    )
    assert rewrite(either) == either
    either = either.replace("GM_ADDR x, int n", "GM_ADDR __kfc_workspace__ w")
    assert rewrite(either) == either.replace("{", "{ ::twin::SetWorkspace((void *)(w));")
    declared = "__global__ void k(__kfc_workspace__ __gm__ uint8_t *w);"
    assert rewrite(declared) == declared
