"""Operators of a library: what lies around a project, variants for chips, several operators."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project, scan
from npusmith.twin.architecture import is_foreign, keep_ours
from npusmith.twin.check import check_source
from npusmith.twin.cmake_project import read_names
from npusmith.twin.conditions import active, undefined
from npusmith.twin.diagnose import Diagnostic, explain_headers
from npusmith.twin.dialect import check
from npusmith.twin.headers import Trees, find_headers, find_repository
from npusmith.twin.options import BuildOptions
from npusmith.twin.toolchain import INCLUDE, LIBRARY, find_compiler
from npusmith.twin.typelists import find_lists

Edit = Callable[..., Path]
F32 = DType.FLOAT32


@pytest.fixture
def library(tmp_path: Path, edited: Edit) -> Path:
    """lib/math/add_custom in lib/, whose common/inc/ and math/shared/ hold what it includes."""
    root = tmp_path / "lib"
    (root / ".git").mkdir(parents=True)
    kernel = [
        ('#include "kernel_operator.h"', '#include "kernel_operator.h"\n#include "../shared/n.h"')
    ]
    kernel += [("constexpr int32_t BUFFERS = 2;", "constexpr int32_t BUFFERS = kBuffers;")]
    host = [
        (
            '#include "add_custom_tiling.h"',
            '#include "add_custom_tiling.h"\n#include "units.h"\n#include "util/math_util.h"',
        )
    ]
    host += [("(total + cores - 1) / cores", "Ops::Base::CeilDiv(total, cores)")]
    host += [("+ 31) / 32 * 32", "+ kUnit - 1) / kUnit * kUnit")]
    changes = {"op_kernel/add_custom.cpp": kernel, "op_host/add_custom.cpp": host}
    (root / "math").mkdir()
    edited("add", changes).rename(root / "math" / "add_custom")
    write(root / "common" / "inc" / "units.h", "#pragma once\nconstexpr unsigned kUnit = 32;\n")
    write(
        root / "math" / "shared" / "op_kernel" / "n.h",
        "#pragma once\nconstexpr int kBuffers = 2;\n",
    )
    return root


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def refused(root: Path, **options: object) -> TwinError:
    with pytest.raises(TwinError) as caught:
        read_project(root, options=BuildOptions(**options))  # type: ignore[arg-type]
    return caught.value


# ---- headers around a project


def test_an_operator_of_a_library_compiles_with_what_lies_around_it(
    library: Path, chip: Chip
) -> None:
    project = read_project(library / "math" / "add_custom")
    forwards = dict(project.kernel_headers.forwards)
    assert forwards == {"../shared/n.h": library / "math" / "shared" / "op_kernel" / "n.h"}
    assert [file.name for file in project.host_headers.files] == ["units.h"]
    assert build(project, chip, (F32, F32, F32)).kernel.is_file()


def test_a_header_for_all_comes_before_that_of_another_operator(library: Path) -> None:
    write(library / "math" / "other" / "op_host" / "units.h", "")
    project = read_project(library / "math" / "add_custom")
    assert project.host_headers.files == (library / "common" / "inc" / "units.h",)


def test_an_operator_called_like_a_shared_header_does_not_stand_for_it(library: Path) -> None:
    """The header that libraries share is log/log.h; an operator Log has log/op_kernel/log.h."""
    host = library / "math" / "add_custom" / "op_host" / "add_custom.cpp"
    host.write_text('#include "log/log.h"\n' + host.read_text())
    write(library / "math" / "log" / "op_kernel" / "log.h", "#error not this one\n")
    write(library / "math" / "other" / "log" / "log.h", "#error nor this one\n")
    forwards = dict(read_project(host.parents[1]).host_headers.forwards)
    assert forwards["log/log.h"].is_relative_to(LIBRARY)
    write(library / "common" / "inc" / "log" / "log.h", "")
    forwards = dict(read_project(host.parents[1]).host_headers.forwards)
    assert forwards["log/log.h"] == library / "common" / "inc" / "log" / "log.h"


def test_a_header_of_the_library_that_needs_a_toolkit_gives_way_to_the_twins(library: Path) -> None:
    host = library / "math" / "add_custom" / "op_host" / "add_custom.cpp"
    host.write_text('#include "log/log.h"\n' + host.read_text())
    theirs = write(library / "common" / "inc" / "log" / "log.h", '#include "inner/more.h"\n')
    write(
        theirs.parent / "inner" / "more.h", "#include <sys/stat.h>\n#include <toolchain/none.h>\n"
    )
    forwards = dict(read_project(host.parents[1]).host_headers.forwards)
    assert forwards["log/log.h"].is_relative_to(LIBRARY)
    write(theirs.parent / "inner" / "more.h", "#include <sys/stat.h>\n")
    forwards = dict(read_project(host.parents[1]).host_headers.forwards)
    assert forwards["log/log.h"] == theirs


def test_the_folder_of_tests_and_a_foreign_chip_give_no_header(library: Path) -> None:
    (library / "common").rename(library / "tests")
    write(library / "math" / "arch35" / "units.h", "")
    project = read_project(library / "math" / "add_custom")
    assert project.host_headers.files == (
        library / "math" / "arch35" / "units.h",
    )  # better than none
    (library / "math" / "arch35" / "units.h").unlink()
    assert read_project(library / "math" / "add_custom").host_headers.files == ()


def test_documented_headers_are_never_taken_from_a_library(library: Path) -> None:
    write(library / "common" / "inc" / "kernel_operator.h", "#error theirs\n")
    project = read_project(library / "math" / "add_custom")
    assert "kernel_operator.h" not in dict(project.kernel_headers.forwards)


def test_headers_of_the_system_are_never_taken_from_a_library(library: Path) -> None:
    for name in ("math.h", "stddef.h"):
        write(library / "common" / "inc" / name, "#error theirs\n")
    source = write(library / "math" / "a.cpp", '#include <math.h>\n#include "stddef.h"\n')
    trees = Trees()
    assert find_headers(library / "math", [source], trees).forwards == ()
    assert not trees  # nothing was listed


def test_includes_in_a_circle_end(library: Path) -> None:
    inc = library / "common" / "inc"
    write(inc / "units.h", '#pragma once\n#include "more.h"\nconstexpr unsigned kUnit = 32;\n')
    write(inc / "more.h", '#pragma once\n#include "units.h"\n')
    found = read_project(library / "math" / "add_custom").host_headers
    assert {file.name for file in found.files} == {"units.h", "more.h"}


def test_what_lies_outside_of_the_repository_is_not_read(library: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.h", "")
    source = write(library / "math" / "a.cpp", f'#include "{secret}"\n#include "../../secret.h"\n')
    assert find_headers(library / "math", [source], Trees()).files == ()


def test_a_missing_header_says_where_to_put_one(library: Path, chip: Chip) -> None:
    base = library / "math" / "add_custom"
    write(base / "CMakeLists.txt", "project(x)\ninclude_directories(${SOMEWHERE}/inc)\n")
    (library / "common" / "inc" / "units.h").unlink()
    message = check_source(base, chip)[0].message
    assert message.startswith("units.h: No such file or directory; put units.h in ")
    assert "-I" in message and "CMakeLists.txt:2 is computed by CMake" in message


def test_a_header_of_a_package_names_the_package() -> None:
    row = Diagnostic("a.cpp", 1, "nlohmann/json.hpp: No such file or directory")
    assert explain_headers([row], [])[0].message.endswith("it comes with nlohmann-json3-dev")


def test_a_header_that_is_a_link_is_not_said_to_be_missing(tmp_path: Path) -> None:
    write(tmp_path / "other" / "word.h", "")
    (tmp_path / "word.h").symlink_to(tmp_path / "other" / "word.h")
    row = Diagnostic(str(tmp_path / "a.cpp"), 1, "word.h: No such file or directory")
    assert "word.h is a link there" in explain_headers([row], [])[0].message
    (tmp_path / "word.h").unlink()
    assert "put word.h in " in explain_headers([row], [])[0].message


def test_without_git_the_chain_of_cmake_files_makes_the_repository(tmp_path: Path) -> None:
    base = tmp_path / "a" / "b"
    base.mkdir(parents=True)
    assert find_repository(base) == base
    write(tmp_path / "a" / "CMakeLists.txt", "")
    assert find_repository(base) == tmp_path / "a"


# ---- other operators of a library


def test_host_sources_of_the_operator_whose_kernel_is_shared_come_along(tmp_path: Path) -> None:
    write(tmp_path / ".git" / "HEAD", "")
    define = 'class A : public OpDef {{ this->Input("x"); }};\nOP_ADD({});\n'
    write(tmp_path / "base" / "op_host" / "base_def.cpp", define.format("Base"))
    write(
        tmp_path / "base" / "op_host" / "base_tiling.cpp", "IMPL_OP_OPTILING(Inplace).Tiling(f);\n"
    )
    entry = '#include "../base/k.h"\nextern "C" __global__ __aicore__ void inplace(GM_ADDR x) {}\n'
    write(tmp_path / "base" / "op_kernel" / "k.h", "")
    write(tmp_path / "inplace" / "op_host" / "inplace_def.cpp", define.format("Inplace"))
    write(tmp_path / "inplace" / "op_kernel" / "inplace.cpp", entry)
    names = [file.name for file in read_project(tmp_path / "inplace").hosts]
    assert names == ["inplace_def.cpp", "base_tiling.cpp"]
    write(tmp_path / "inplace" / "op_host" / "own.cpp", "IMPL_OP_OPTILING(Inplace).Tiling(f);\n")
    names = [file.name for file in read_project(tmp_path / "inplace").hosts]
    assert names == ["inplace_def.cpp", "own.cpp"]


def test_sources_that_cmake_names_outside_of_the_project_come_along(library: Path) -> None:
    """Variables of the files around count, up to that with project()."""
    base = library / "math" / "add_custom"
    root = "project(lib)\nset(COMMON ${CMAKE_CURRENT_SOURCE_DIR}/common)\nadd_subdirectory(math)\n"
    own = "target_sources(optiling PRIVATE ${COMMON}/src/func.cpp op_host/add_custom.cpp)\n"
    own += "target_sources(optiling PRIVATE ${NOWHERE}/src/other.cpp ../../../out.cpp)\n"
    own += "target_sources(opapi PRIVATE ${CMAKE_SOURCE_DIR}/common/src/api.cpp)\n"
    write(library / "CMakeLists.txt", root)
    write(base / "CMakeLists.txt", own)
    func = write(library / "common" / "src" / "func.cpp", "int Func() { return 1; }\n")
    write(library / "common" / "src" / "other.cpp", "")
    write(library / "common" / "src" / "api.cpp", '#include "opdev/op_log.h"\n')
    write(library.parent / "out.cpp", "")
    hosts = read_project(base).hosts
    assert [file for file in hosts if not file.is_relative_to(base)] == [func]
    write(base / "CMakeLists.txt", "project(own)\n" + own)
    assert [file for file in read_project(base).hosts if not file.is_relative_to(base)] == []


def test_of_a_folder_without_kernels_the_sources_that_include_its_headers_come_along(
    library: Path,
) -> None:
    shared = library / "common" / "op_host"
    (library / "common" / "inc").rename(shared)
    used = write(shared / "a" / "sizes.cpp", '#include "../units.h"\n')
    write(shared / "a" / "tuning.cpp", '#include "tuning.h"\n')
    write(shared / "a" / "tuning.h", "#include <tuning/none.h>\n")
    base = library / "math" / "add_custom"
    hosts = read_project(base).hosts
    assert [file for file in hosts if not file.is_relative_to(base)] == [used]


def test_examples_in_a_folder_of_host_sources_are_left_out(library: Path) -> None:
    base = library / "math" / "add_custom"
    write(base / "op_host" / "examples" / "main.cpp", "int main() {}\n")
    assert [file.name for file in read_project(base).hosts] == ["add_custom.cpp"]


def test_the_source_called_like_a_header_of_the_library_comes_along(library: Path) -> None:
    defining = write(library / "common" / "src" / "op_host" / "units.cpp", '#include "units.h"\n')
    write(library / "common" / "src" / "arch35" / "units.cpp", "")
    project = read_project(library / "math" / "add_custom")
    assert project.hosts[1:] == (defining,)
    assert defining in project.outside


def test_a_path_whose_first_folder_has_another_name_is_found_by_the_rest(library: Path) -> None:
    source = write(library / "math" / "a.cpp", '#include "maths/shared/op_kernel/n.h"\n')
    found = find_headers(library / "math", [source], Trees()).forwards
    assert found == (
        ("maths/shared/op_kernel/n.h", library / "math" / "shared" / "op_kernel" / "n.h"),
    )


def test_an_operator_of_a_library_is_chosen_by_type_or_name(library: Path) -> None:
    for name in ("AddCustom", "add_custom"):
        assert read_project(library, options=BuildOptions(name)).op.type == "AddCustom"
    error = refused(library, op="sub_custom")
    assert (error.code, error.seen) == ("project-no-op", "add_custom, shared")


def test_two_projects_with_one_operator_are_named(library: Path) -> None:
    (library / "more").mkdir()
    copied = library / "more" / "add_custom"
    subprocess.run(["cp", "-r", str(library / "math" / "add_custom"), str(copied)], check=True)
    error = refused(library, op="add_custom")
    assert error.code == "project-two-ops"
    assert error.seen == "math/add_custom, more/add_custom"


def test_operators_with_folders_of_their_own_in_one_project(tmp_path: Path) -> None:
    host, kernel = tmp_path / "op_host", tmp_path / "op_kernel"
    for name in ("One", "Two"):
        low = name.lower()
        text = f'class {name} : public OpDef {{ this->Input("{low}"); }};\nOP_ADD({name});\n'
        write(host / low / f"{low}.cpp", f'#include "{low}.h"\n{text}')
        write(host / low / f"{low}.h", f"struct {name}Tiling {{ int n; }};\n")
        entry = f'extern "C" __global__ __aicore__ void {low}(GM_ADDR x) {{}}\n'
        write(kernel / low / f"{low}.cpp", f'#include "k.h"\n{entry}')
        write(kernel / low / "k.h", "")
    assert refused(tmp_path).code == "project-two-ops"
    project = read_project(tmp_path, options=BuildOptions("two"))
    assert project.kernel == kernel / "two" / "two.cpp"
    assert set(project.texts) == {
        host / "two" / "two.cpp", host / "two" / "two.h", kernel / "two" / "two.cpp",
        kernel / "two" / "k.h",
    }  # fmt: skip


def test_two_operators_may_share_one_kernel(tmp_path: Path) -> None:
    shared = 'this->AICore().AddConfig("ascend910b", c.ExtendCfgInfo("opInterface.value", "one"));'
    for name, more in (("One", ""), ("Two", shared)):
        text = f'class {name} : public OpDef {{ this->Input("x"); {more} }};\nOP_ADD({name});\n'
        write(tmp_path / "op_host" / f"{name.lower()}.cpp", text)
    entry = 'extern "C" __global__ __aicore__ void one(GM_ADDR x) {}\n'
    write(tmp_path / "op_kernel" / "one.cpp", entry)
    for name in ("One", "Two"):
        assert read_project(tmp_path, options=BuildOptions(name)).name == "one"


def test_headers_that_include_each_other_without_end_are_an_error(
    library: Path, chip: Chip
) -> None:
    inc = library / "common" / "inc"
    write(inc / "units.h", '#include "more.h"\n')
    write(inc / "more.h", '#include "units.h"\n')
    found = check_source(library / "math" / "add_custom", chip)
    assert found[0].code == "compile-failed"
    assert "nested" in found[0].message


# ---- variants for chips


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        ("arch35/a.h", True),
        ("arch22/a.h", False),
        ("arch32/a.h", False),
        ("ascend910b/a.cpp", False),
        ("ascend910_93/a.cpp", False),
        ("ascend910_95/a.cpp", True),
        ("ascend310p/a.cpp", True),
        ("a_tiling_arch35.cpp", True),
        ("a_regbase_tiling.cpp", True),
        ("conv2d_v2.cpp", False),
    ],
)
def test_names_say_for_which_chip_a_file_is(path: str, foreign: bool) -> None:
    assert is_foreign(Path(path)) is foreign


def test_the_kernel_of_register_based_chips_stands_back_behind_its_twin() -> None:
    folder = Path("op_kernel")
    files = [folder / "gelu.cpp", folder / "gelu_apt.cpp", folder / "only_apt.cpp"]
    assert keep_ours(folder, files) == [files[0], files[2]]


def test_what_sources_for_other_chips_define_may_be_missing(edited: Edit, chip: Chip) -> None:
    call = (
        "AddCustomTilingData tiling;",
        "if (context == nullptr) return Other(context);\n  AddCustomTilingData tiling;",
    )
    declared = (
        "namespace optiling {",
        "namespace optiling {\nge::graphStatus Other(gert::TilingContext *);",
    )
    root = edited("add", {"op_host/add_custom.cpp": [declared, call]})
    assert "undefined reference to 'optiling::Other" in check_source(root, chip)[0].message
    write(
        root / "op_host" / "arch35" / "other.cpp", "ge::graphStatus Other(gert::TilingContext *) {}"
    )
    assert build(read_project(root), chip, (F32, F32, F32)).host.is_file()
    write(root / "op_host" / "arch35" / "other.cpp", "ge::graphStatus Another();")
    assert "undefined reference to 'optiling::Other" in check_source(root, chip)[0].message


def test_an_entry_that_only_other_chips_have_is_named(edited: Edit) -> None:
    root = edited("add")
    (root / "op_kernel" / "arch35").mkdir()
    (root / "op_kernel" / "add_custom.cpp").rename(root / "op_kernel" / "arch35" / "add_custom.cpp")
    write(root / "op_kernel" / "rest.cpp", "")
    error = refused(root)
    assert error.code == "project-no-entry"
    assert "looked at op_kernel/rest.cpp; left out, for other chips: op_kernel/arch35" in error.seen


def test_entries_under_conditions_are_those_of_this_chip(edited: Edit) -> None:
    root = edited("add")
    file = root / "op_kernel" / "add_custom.cpp"
    other = 'extern "C" __global__ __aicore__ void add_custom(GM_ADDR x) {}\n'
    file.write_text(f"#if __NPU_ARCH__ == 3510\n{other}#else\n{file.read_text()}\n#endif\n")
    assert len(read_project(root).entry.params) == 5


def test_a_template_beside_the_entry_of_its_name_is_not_the_entry(edited: Edit) -> None:
    root = edited("add")
    file = root / "op_kernel" / "add_custom.cpp"
    other = "template <int n> __global__ __aicore__ void add_custom(GM_ADDR x) {}\n"
    file.write_text(file.read_text() + other + "// ASCENDC_TPL_SEL\n")
    assert not read_project(root).entry.template


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#if __NPU_ARCH__ == 3510\na\n#else\nb\n#endif", "b"),
        ("#if defined(__NPU_ARCH__) && (__NPU_ARCH__ == 2201)\na\n#else\nb\n#endif", "a"),
        ("#ifdef __CCE_KT_TEST__\na\n#endif\nb", "b"),
        ("#ifndef __CCE_KT_TEST__\na\n#endif", "a"),
        ("#if __CCE_AICORE__ == 310\na\n#elif __CCE_AICORE__ >= 220U\nb\n#else\nc\n#endif", "b"),
        ("#if X\na\n#elif __CCE_AICORE__ == 310\nb\n#else\nc\n#endif", "a c"),
        ("#if !X || __CCE_AICORE__ == 220\na\n#else\nb\n#endif", "a"),
        ("#if X && __CCE_AICORE__ == 310\n#if Y\na\n#endif\n#endif\nb", "b"),
        ("#if 1 \\\n  && __NPU_ARCH__ == 3510\na\n#endif\nb", "b"),
        ("#endif\n#else\na", "a"),
        ("#if TYPE == 7\na\n#else\nb\n#endif", "a"),
    ],
)
def test_conditions_on_the_chip_are_decided_and_others_keep_all_branches(
    text: str, kept: str
) -> None:
    found = active(text, {"TYPE": 7})
    assert found.split() == kept.split()
    assert [len(line) for line in found.split("\n")] == [len(line) for line in text.split("\n")]


# ---- options, and what CMake files name


def test_cmake_files_name_folders_and_definitions(tmp_path: Path) -> None:
    base = tmp_path / "op"
    (tmp_path / "inc").mkdir()
    (base / "own").mkdir(parents=True)
    text = "set(UP ${CMAKE_CURRENT_SOURCE_DIR}/..)\nset(DIR own)\n# include_directories(inc)\n"
    text += "include_directories(${CMAKE_CURRENT_SOURCE_DIR}/../inc ${DIR} /usr)\n"
    text += "include_directories(${UP}/inc)\nadd_compile_definitions(ALL_OF=1 _GNU=1)\n"
    text += "include_directories(${ELSEWHERE}/inc)\n"
    write(base / "CMakeLists.txt", text)
    write(
        base / "op_kernel" / "CMakeLists.txt", "add_ops_compile_options(ALL OPTIONS -DFAST -O2)\n"
    )
    write(base / "op_host" / "CMakeLists.txt", "target_compile_definitions(x PRIVATE HOST=2)\n")
    found = read_names(base, tmp_path)
    assert found.folders == (tmp_path / "inc", base / "own")
    assert (found.host, found.kernel) == (("ALL_OF=1", "HOST=2"), ("ALL_OF=1", "FAST"))
    assert [place.line for place in found.computed] == [7]


def test_options_reach_host_and_kernel(library: Path, tmp_path: Path, chip: Chip) -> None:
    base = library / "math" / "add_custom"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (library / "common" / "inc" / "units.h").rename(moved / "units.h")
    file = moved / "units.h"
    file.write_text(file.read_text().replace("32", "UNIT"))
    kernel = base / "op_kernel" / "add_custom.cpp"
    kernel.write_text(kernel.read_text() + "\nstatic_assert(UNIT == 32 && defined_flag == 1);\n")
    options = BuildOptions(include=(moved,), define=("UNIT=32", "defined_flag=1"))
    assert check_source(base, chip, options) == []


def test_options_that_cannot_be_used_are_refused(library: Path, tmp_path: Path) -> None:
    base = library / "math" / "add_custom"
    assert refused(base, include=(tmp_path / "nowhere",)).code == "build-option"
    assert refused(base, define=("A B",)).code == "build-option"


# ---- the headers that libraries share


def test_headers_that_libraries_share_say_what_their_use_expects() -> None:
    text = """
#include "infershape_broadcast_util.h"
#include "infershape_elewise_util.h"
#include "op_kernel/math_util.h"
#include "op_kernel/platform_util.h"
#include "securec.h"
#include "tiling_base_class.h"
#include "tiling_base_util.h"
#include "util/const_util.h"
#include "toolchain/slog.h"
#include "base/err_msg.h"
#include "error/ops_error.h"
#include "graph/operator_reg.h"
namespace ge {
REG_OP(Foo).INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16})).ATTR(n, ListInt, {1, 2})
    .OP_END_FACTORY_REG(Foo)
}
int Checked(const char *name, const int *given) {
  OPS_LOG_E_IF_NULL(name, given, return 1)
  OPS_LOG_E_IF(*given > 3, name, return 2, "%d is too much", *given);
  if (CheckLogLevel(OP, DLOG_ERROR) == 1) dlog_error(OP, "%d", *given);
  REPORT_INNER_ERR_MSG("E0", "%d", *given);
  return 0;
}
using namespace Ops::Base;
static_assert(CeilDiv(7, 2) == 4 && CeilDiv(-7, 2) == -3 && CeilDiv(5, 0) == 5);
static_assert(FloorDiv(7u, 2) == 3 && CeilAlign(33, 32) == 64 && FloorAlign(33L, 32) == 32);
"""
    command = [find_compiler().path, "-std=c++17", "-fsyntax-only", "-Werror", f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command, f"-I{LIBRARY}", "-x", "c++", "-"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]


def test_a_guard_that_begins_like_a_macro_of_the_compiler_is_a_kernels_own() -> None:
    guard = "#ifndef __OPTIMIZED_LOSS_H__\n#define __OPTIMIZED_LOSS_H__\n#endif\n"
    check({Path("k.h"): guard}, Path())
    with pytest.raises(TwinError, match="__OPTIMIZE__"):
        check({Path("k.h"): "#ifdef __OPTIMIZE__\n#endif\n"}, Path())


def test_types_that_are_one_for_all_columns_are_read() -> None:
    code = """static const std::vector<ge::DataType> ins = {ge::DT_FLOAT, ge::DT_FLOAT16};
    static const std::vector<ge::DataType> outs(ins.size(), ge::DT_BOOL), few(3, ge::DT_INT32);"""
    found = find_lists(scan.blank(code.replace(", few", ";\nstd::vector<DataType> few")))
    assert found == {
        "ins": ("DT_FLOAT", "DT_FLOAT16"), "outs": ("DT_BOOL",) * 2, "few": ("DT_INT32",) * 3
    }  # fmt: skip


def test_a_submodule_gives_a_header_when_nothing_else_does(library: Path) -> None:
    kernel = library / "math" / "add_custom" / "op_kernel" / "add_custom.cpp"
    kernel.write_text('#include "tiles/add.hpp"\n' + kernel.read_text())
    theirs = write(library / "third_party" / "tiles" / "include" / "tiles" / "add.hpp", "")
    write(library / "third_party" / "tiles" / "include" / "units.h", "#error not this one\n")
    write(library / "common" / "stub" / "tiles" / "add.hpp", "#error nor this one\n")
    project = read_project(kernel.parents[1])
    assert dict(project.kernel_headers.forwards)["tiles/add.hpp"] == theirs
    assert project.host_headers.files == (library / "common" / "inc" / "units.h",)
    write(library / "math" / "other" / "op_kernel" / "tiles" / "add.hpp", "#error nor this one\n")
    project = read_project(kernel.parents[1])
    assert dict(project.kernel_headers.forwards)["tiles/add.hpp"] == theirs


def test_sources_for_other_ways_to_call_an_operator_are_left_alone(library: Path) -> None:
    base = library / "math" / "add_custom"
    write(base / "op_host" / "fallback_add.cpp", '#include "fallback_add.h"\nint unknown(T);\n')
    write(base / "op_host" / "fallback_add.h", '#include "fallback/fallback.h"\n')
    launch = 'extern "C" void aclrtlaunch_add_kernel(unsigned n);\n'
    write(base / "op_host" / "python.cpp", launch + "void f() { aclrtlaunch_add_kernel(1); }\n")
    assert [file.name for file in read_project(base).hosts] == ["add_custom.cpp"]


def test_a_header_of_what_the_twin_does_not_model_says_so() -> None:
    row = Diagnostic("/k.cpp", 3, "lib/hccl/hccl.h: No such file or directory")
    (said,) = explain_headers([row], ())
    assert "communication between chips (HCCL); the twin does not model this yet" in said.message


def test_lines_may_end_as_on_windows(library: Path) -> None:
    base = library / "math" / "add_custom"
    file = base / "op_host" / "add_custom_tiling.h"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert all("\r" not in text for text in read_project(base).texts.values())


def test_a_kernel_beside_host_code_that_registers_nothing_is_checked_by_itself(
    tmp_path: Path, chip: Chip
) -> None:
    write(tmp_path / "op_host" / "scale.cpp", "#include <torch/none.h>\n")
    write(tmp_path / "inc" / "wide.h", "#pragma once\nconstexpr int kWide = WIDE;\n")
    kernel = write(
        tmp_path / "op_kernel" / "scale.cpp",
        '#include "kernel_operator.h"\n#include "wide.h"\n'
        'extern "C" __global__ __aicore__ void scale(GM_ADDR x) { x[0] = kWide; }\n',
    )
    options = BuildOptions(include=(tmp_path / "inc",), define=("WIDE=3",))
    assert check_source(kernel, chip, options) == []
    assert [item.code for item in check_source(kernel, chip)] == ["compile-failed"]


def test_an_entry_may_call_another_one(edited: Edit, chip: Chip) -> None:
    head = 'extern "C" __global__ __aicore__ void add_custom('
    other = (
        '#pragma message("two entries")\n'
        'extern "C" __global__ __aicore__ void add_more(GM_ADDR x) { (void)x; }\n'
    )
    root = edited("add", {"op_kernel/add_custom.cpp": [(head, other + head)]})
    kernel = root / "op_kernel" / "add_custom.cpp"
    body = kernel.read_text().index("{", kernel.read_text().index(head)) + 1
    text = kernel.read_text()
    kernel.write_text(f"{text[:body]} add_more(nullptr);{text[body:]}")
    assert build(read_project(root), chip, (F32, F32, F32)).kernel.is_file()


def test_ports_that_a_library_declares_by_functions_of_its_own_are_read(library: Path) -> None:
    host = library / "math" / "add_custom" / "op_host" / "add_custom.cpp"
    text = host.read_text()
    start, end = text.index('this->Input("x")'), text.index("this->AICore()")
    outs = [port.name for port in read_project(host.parents[1]).op.outputs]
    calls = f'AddInput("x", 1); this->AddInput("y", 2); AddOutput("{outs[0]}");\n'
    host.write_text('#include "ports.h"\n' + text[:start] + calls + text[end:])
    write(
        library / "common" / "inc" / "ports.h",
        "class Ports : public OpDef {\n"
        "  void AddInput(const char *name, int at) {\n"
        "    this->Input(name).ParamType(OPTIONAL).DataType({ge::DT_FLOAT});\n  }\n"
        "  void AddOutput(const std::string &what) { Output(what).DataType({ge::DT_FLOAT16}); }\n"
        "};\n",
    )
    op = read_project(host.parents[1]).op
    assert [(port.name, port.kind, port.types) for port in op.ports] == [
        ("x", "OPTIONAL", ("DT_FLOAT",)),
        ("y", "OPTIONAL", ("DT_FLOAT",)),
        (outs[0], "REQUIRED", ("DT_FLOAT16",)),
    ]


def test_macros_that_nobody_defines_are_known_to_be_undefined() -> None:
    texts = [
        "#ifdef TORCH_MODE\nint a;\n#endif\n#ifndef K_H\n#define K_H\n#endif\n",
        "#if defined(OWN) || defined(__CCE__) || defined(DT_INT8)\n#elif defined GIVEN\n#endif\n",
    ]
    absent = undefined(texts, ("GIVEN=1",))
    assert absent == {"OWN": None, "TORCH_MODE": None}
    assert "int a" not in active(texts[0], absent)
    assert "int a" in active(texts[0])
