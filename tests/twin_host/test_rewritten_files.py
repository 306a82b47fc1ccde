"""Headers of a kernel are compiled in copies in which the vendor's own C++ is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project
from npusmith.twin.diagnose import CompileError
from npusmith.twin.dialect import check, check_preprocessed
from npusmith.twin.rewritten_files import Copies
from npusmith.twin.toolchain import INCLUDE

Edit = Callable[..., Path]
F32 = DType.FLOAT32
BUFFERS = "constexpr int32_t BUFFERS = 2;"
POLICY = """#pragma once
#include "../near/two.h"
struct Policy {
  template <int way = 1> HOST_DEVICE constexpr int32_t Buffers();
  template <> HOST_DEVICE constexpr int32_t Buffers<1>() { return kTwo; }
  template <> HOST_DEVICE constexpr int32_t Buffers<2>() { return 1; }
};
"""
MACROS = "#pragma once\n#define HOST_DEVICE __forceinline__ [host, aicore]\n"


@pytest.fixture
def project(edited: Edit) -> Path:
    """add, whose kernel takes a constant from a header with specialisations in a class."""
    kernel = [(BUFFERS, '#include "far/policy.h"\nconstexpr int32_t BUFFERS = Policy{}.Buffers();')]
    root = edited("add", {"op_kernel/add_custom.cpp": kernel})
    for name, text in {
        "far/policy.h": POLICY,
        "near/two.h": '#pragma once\n#include "macros.h"\nconstexpr int32_t kTwo = 2;\n',
        "near/macros.h": MACROS,
    }.items():
        file = root / "op_kernel" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return root


def test_headers_in_the_vendors_own_cpp_compile_and_errors_in_them_name_the_users_line(
    project: Path, chip: Chip
) -> None:
    assert build(read_project(project), chip, (F32, F32, F32)).kernel.is_file()
    header = project / "op_kernel" / "far" / "policy.h"
    header.write_text(POLICY.replace("return 1;", "return none;"))
    with pytest.raises(CompileError) as caught:
        build(read_project(project), chip, (F32, F32, F32))
    first = caught.value.errors[0]
    assert (first.file, first.line) == (str(header), 6)
    assert "'none' was not declared" in first.message


def test_texts_that_need_no_change_have_no_copies(tmp_path: Path) -> None:
    file = tmp_path / "a.h"
    copies = Copies.of(tmp_path / "tree", {file: "int a;\n"})
    assert copies.place(file) == file
    assert copies.folders([tmp_path]) == [tmp_path]
    assert not (tmp_path / "tree").exists()


def test_a_copy_lies_as_its_original_and_says_whose_it_is(tmp_path: Path) -> None:
    first, second = tmp_path / "x" / "a.h", tmp_path / "y" / "b.h"
    tree = tmp_path / "tree"
    copies = Copies.of(tree, {first: '#include "../y/b.h"\n', second: "[host, aicore] int f();\n"})
    copy = copies.place(second)
    assert copy.read_text() == f'#line 1 "{second}"\n               int f();\n'
    assert (copies.place(first).parent / "../y/b.h").resolve() == copy
    assert copies.folders([first.parent, tmp_path / "z"]) == [
        copies.place(first).parent,
        first.parent,
        tmp_path / "z",
    ]


def test_what_macros_hide_in_a_copy_is_seen(tmp_path: Path) -> None:
    """The preprocessor names the copy and, by #line, the original; both are the user's."""
    file, tree = tmp_path / "op" / "k.h", tmp_path / "build" / "tree"
    text = f'# 1 "{tree}{file}" 1\n# 1 "{file}"\nint a;\n__asm__("nop");\n'
    out = tmp_path / "build" / "kernel.i"
    out.parent.mkdir()
    out.write_text(text)
    with pytest.raises(TwinError) as caught:
        check_preprocessed(out, tmp_path / "op", (), str(tree))
    assert (caught.value.place.file, caught.value.place.line) == (str(file), 2)


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ('__has_include("../common/a.h")', False),
        ("defined(__has_include)", False),
        ('__has_include("./a.h")', False),
        ('__has_include("a.h")', True),
        ("__has_include(<a.h>)", True),
        ("__has_include(NAME)", True),
        ('__has_include("../../../../etc/passwd")', True),
        ('__has_include_next("../a.h")', True),
    ],
)
def test_a_kernel_may_ask_for_files_of_its_own_repository_alone(
    tmp_path: Path, asked: str, refused: bool
) -> None:
    texts = {tmp_path / "op" / "op_kernel" / "k.h": f"#if {asked}\n#endif\n"}
    if not refused:
        check(texts, tmp_path)
        return
    with pytest.raises(TwinError, match="__has_include"):
        check(texts, tmp_path)


def test_a_kernel_inside_of_our_own_repository_may_not_ask_for_our_headers() -> None:
    file = INCLUDE.parents[3] / "examples" / "op" / "k.h"
    asked = '#if __has_include("../../src/npusmith/twin/include/kernel_operator.h")\n#endif\n'
    with pytest.raises(TwinError, match="__has_include"):
        check({file: asked}, INCLUDE.parents[3])
