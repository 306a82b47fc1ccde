"""C++ that AI cores do not have is refused at the user's line, where a kernel reaches it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, check_source, read_project
from npusmith.twin.forbid import check_text, suspicious

F32 = DType.FLOAT32
Edit = Callable[..., Path]
HEAD = "__aicore__ inline "


def looks(text: str) -> bool:
    return suspicious({Path("k.cpp"): text})


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "int F(int n) { return n ? F(n - 1) : 0; }",
        HEAD + "int F(int n) { return this->F(n); }",
        HEAD + "int G(int n);\n" + HEAD + "int F(int n) { return G(n); }\n"
        + HEAD + "int G(int n) { return F(n); }",
        HEAD + "void F() { int *p = new int[4]; }",
        HEAD + "void F() { free(malloc(4)); }",
        HEAD + "void F() { throw 1; }",
        HEAD + "void F() { std::vector<int> v; }",
        "template <int N> " + HEAD + "int F(int n) { return F<N - 1>(n); }",
    ],
)  # fmt: skip
def test_text_that_may_break_a_rule_gets_a_closer_look(text: str) -> None:
    assert looks(text)


@pytest.mark.parametrize(
    "text",
    [
        "int F(int n) { return n ? n * F(n - 1) : 1; }",  # host code
        "void F() { auto *p = new int; delete p; }",
        HEAD + "void Process() { op.Process(); }",
        HEAD + "void Init(int n) { Base::Init(n); }",
        HEAD + "void F() { /* new */ const char *s = \"throw\"; }",
        HEAD + "void F() { for (int i = 0; i < 3; ++i) { G(i); } }\n" + HEAD + "void G(int) {}",
    ],
)  # fmt: skip
def test_ordinary_device_code_and_host_code_get_none(text: str) -> None:
    assert not looks(text)


def test_a_virtual_function_of_the_device_is_refused_and_one_of_the_host_is_not() -> None:
    check_text({Path("k.cpp"): "struct A { virtual void Run(); };\n" + HEAD + "void F() {}"})
    with pytest.raises(TwinError) as caught:
        check_text({Path("k.cpp"): "struct A {\n  " + HEAD + "virtual void Run();\n};"})
    assert caught.value.code == "device-cpp"
    assert caught.value.place.line == 2


SOURCE = """#include <stdexcept>
#include <vector>
#include "kernel_operator.h"
int Host(int n) { return n ? n * Host(n - 1) : 1; }
template <int N>
__aicore__ inline int Count() {
  if constexpr (N > 0) return Count<N - 1>() + 1;
  return 0;
}
__aicore__ inline int Twice(int n, int m) { return n + m; }
__aicore__ inline int Twice(int n) { return Twice(n, n); }
EXTRA
__global__ __aicore__ void kernel(GM_ADDR x, int n) {
  AscendC::GlobalTensor<int32_t> g;
  g.SetGlobalBuffer((__gm__ int32_t *)x, 8);
  g.SetValue(0, USE);
}
void kernel_do(uint32_t blocks, void *stream, uint8_t *x) {
  std::vector<int> list(3);
  int *p = new int(Host(2));
  if (list.empty()) throw std::runtime_error("host code may");
  kernel<<<blocks, nullptr, stream>>>(x, *p);
  delete p;
}
"""


def codes(tmp_path: Path, chip: Chip, extra: str, use: str) -> list[tuple[str, int]]:
    file = tmp_path / "k.asc"
    file.write_text(SOURCE.replace("EXTRA", extra).replace("USE", use))
    return [(item.code, item.line) for item in check_source(file, chip)]


def test_templates_overloads_and_host_code_may_do_all_that(tmp_path: Path, chip: Chip) -> None:
    assert codes(tmp_path, chip, "", "Count<3>() + Twice(n)") == []


@pytest.mark.parametrize(
    "extra",
    [
        "__aicore__ inline int F(int n) { return n < 2 ? n : F(n - 1); }",
        "__aicore__ inline int F(int n) { return *new int(n); }",
        "__aicore__ inline int F(int n) { std::vector<int> v(n); return v[0]; }",
        "__aicore__ inline int F(int n) { if (n) throw 1; return n; }",
        "__aicore__ inline int F(int n) { return n < 2 ? 1 : n * F(n - 1); }",  # could be a loop
        "#include <unistd.h>\n__aicore__ inline int F(int n) { return fork() + n; }",
        "#include <cstdlib>\n__aicore__ inline int F(int n) { std::exit(n); }",
    ],
)
def test_what_a_kernel_reaches_may_not(tmp_path: Path, chip: Chip, extra: str) -> None:
    ((code, line),) = codes(tmp_path, chip, extra, "F(n)")
    assert code == "device-cpp"
    assert line in (12, 13, 14)  # the function, or the kernel that it was merged into


def test_a_project_is_looked_at_too(edited: Edit, chip: Chip) -> None:
    old = "  __aicore__ inline void Process() {\n"
    root = edited(
        "add", {"op_kernel/add_custom.cpp": [(old, old + "    int *p = new int[4]; p[0] = 1;\n")]}
    )
    with pytest.raises(TwinError) as caught:
        build(read_project(root), chip, (F32, F32, F32))
    assert caught.value.code == "device-cpp"
    assert caught.value.place.file.endswith("add_custom.cpp")
    assert caught.value.place.line == 21
