"""Text that the vendor's compiler takes and g++ 12 refuses comes out in a form that compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from npusmith.twin import accept
from npusmith.twin.accept import rewrite

HEAD = "#include <type_traits>\nconstexpr int AIC = 1, AIV = 2, core = AIC;\n"


def run(text: str, folder: Path) -> int:
    """The exit status of a program made of the rewritten text."""
    new = accept.rewrite(HEAD + text)
    assert new.count("\n") == (HEAD + text).count("\n")
    program = folder / "program"
    command = ["g++", "-std=c++17", "-x", "c++", "-", "-o", str(program)]
    done = subprocess.run(command, input=new, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([str(program)], check=False).returncode


pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def test_specialisations_in_a_class_choose_by_their_value(tmp_path: Path) -> None:
    text = """
struct K {
  template <int C = core>
  int Run(int x);
  template <>
  int Run<AIC>(int x) { return x + 1; }
  template <>
  int Run<AIV>(int x) { return x + 2; }
};
int main() { K k; return k.Run(10) * 10 + k.template Run<AIV>(0); }
"""
    assert run(text, tmp_path) == 112


def test_a_general_template_with_a_body_serves_the_other_values(tmp_path: Path) -> None:
    text = """
struct K {
  template <int C = core> int operator()(int) { return 7; }
  template <> int operator()<AIC>(int x) { return x; }
};
int main() { K k; return k(5) * 10 + k.template operator()<3>(0); }
"""
    assert run(text, tmp_path) == 57


def test_a_call_that_never_runs_may_be_for_a_value_without_a_body(tmp_path: Path) -> None:
    text = """
struct K {
  template <int C = core> int Run();
  template <> int Run<AIC>() { return 7; }
};
int main() { K k; if (core != core) return k.template Run<3>(); return k.template Run<AIC>(); }
"""
    assert run(text, tmp_path) == 7


def test_a_member_class_may_be_specialised(tmp_path: Path) -> None:
    text = """
template <class T>
struct Outer {
  template <class U>
  struct Pick {
    using type = typename U::type;
  };
  template <>
  struct Pick<void> {
    using type = int;
  };
  typename Pick<T>::type value;
};
int main() { Outer<void> outer{4}; return outer.value; }
"""
    assert run(text, tmp_path) == 4


def test_an_array_left_out_by_a_constexpr_constructor_starts_at_zero(tmp_path: Path) -> None:
    text = """
template <int R, class Index = unsigned>
struct Coord {
  constexpr explicit Coord(Index value = Index(0)) {
    for (int i = 0; i < R; ++i) idx[i] = value;
  }
  constexpr Index At(int i) const { return idx[i]; }
 private:
  Index idx[R];
};
constexpr Coord<2> kPair(6);
int main() { return kPair.At(1); }
"""
    assert run(text, tmp_path) == 6


def test_plain_text_stays_as_it_is() -> None:
    text = "template <> void Free<1>() {}\nstruct S { int a[2]; S(); };\n"
    assert accept.rewrite(text) == text


def test_a_member_that_is_called_like_the_type_of_its_value_takes_it_by_another_name(
    tmp_path: Path,
) -> None:
    text = """
enum class MODE { A, B };
struct Own { static constexpr MODE mode = MODE::B; };
template <class P> struct K {
  static constexpr bool MODE = P::mode == MODE::B;
  int Get() { return MODE ? 4 : 2; }
};
int main() { return K<Own>().Get(); }
"""
    assert run(text, tmp_path) == 4


def test_a_pack_of_sizes_in_a_specialisation_takes_the_type_of_the_sequence(
    tmp_path: Path,
) -> None:
    text = """
using size_t = decltype(sizeof(0));
template <typename T, T... N> struct Row { static constexpr int kCount = sizeof...(N); };
template <typename S, typename T, size_t n> struct Make;
template <typename T, size_t... N> struct Make<Row<T, N...>, T, 0> { using type = Row<T, N...>; };
template <typename T, size_t n, size_t... N> struct Make<Row<T, N...>, T, n> {
  using type = typename Make<Row<T, n - 1, N...>, T, n - 1>::type;
};
int main() { return Make<Row<int>, int, 5>::type::kCount; }
"""
    assert run(text, tmp_path) == 5


def test_a_constant_that_is_read_from_bits_is_computed_by_the_compiler() -> None:
    text = (
        "const float LOW = *(float *)(&BITS);\n"
        "const float b = *(float*)&BITS; float c = *(float *)(p);"
    )
    assert rewrite(text) == (
        "const float LOW = ::twin::Bits<float>(BITS);\n"
        "const float b = ::twin::Bits<float>(BITS); float c = *(float *)(p);"
    )
