"""Reading projects: what is found in good ones, and what is said of broken ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.errors import Level, TwinError
from npusmith.twin import read_project

PROJECTS = Path(__file__).parents[1] / "projects"
Edit = Callable[..., Path]


def refused(root: Path) -> TwinError:
    with pytest.raises(TwinError) as caught:
        read_project(root)
    return caught.value


def test_ports_kinds_types_and_attributes_are_read_from_the_text() -> None:
    op = read_project(PROJECTS / "scale").op
    assert op.type == "ScaleCustom"
    assert [(port.name, port.kind) for port in op.ports] == [
        ("x", "REQUIRED"),
        ("bias", "OPTIONAL"),
        ("y", "REQUIRED"),
    ]
    assert op.attrs == ("alpha", "cores", "twice", "factors", "mode")
    assert op.inputs[0].types == ("DT_FLOAT",)


def test_the_entry_and_its_parameters_are_found() -> None:
    project = read_project(PROJECTS / "add")
    assert project.name == "add_custom"
    assert project.entry.param_names == ("x", "y", "z", "workspace", "tiling")


def test_both_tiling_styles_name_their_structs() -> None:
    macro, plain = read_project(PROJECTS / "add"), read_project(PROJECTS / "scale")
    assert (macro.host_struct, macro.kernel_struct) == ("AddCustomTilingData",) * 2
    assert (plain.host_struct, plain.kernel_struct) == ("ScaleCustomTiling",) * 2
    assert macro.structs["AddCustomTilingData"].bytes == 216
    assert plain.kernel_structs["ScaleCustomTiling"].bytes == 24


def test_a_project_one_folder_down_is_found(tmp_path: Path, edited: Edit) -> None:
    edited("add").rename(tmp_path / "inner")
    assert read_project(tmp_path).op.type == "AddCustom"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").code == "project-missing"


def test_no_kernel_folder(edited: Edit) -> None:
    root = edited("add")
    (root / "op_kernel").rename(root / "kernels")
    assert refused(root).code == "project-no-kernel"


def test_no_kernel_source(edited: Edit) -> None:
    root = edited("add")
    (root / "op_kernel/add_custom.cpp").unlink()
    assert refused(root).code == "project-no-kernel"


def test_no_host_source(edited: Edit) -> None:
    root = edited("add")
    (root / "op_host/add_custom.cpp").unlink()
    assert refused(root).code == "project-no-host"


def test_no_entry_in_the_kernel(edited: Edit) -> None:
    root = edited("add", {"op_kernel/add_custom.cpp": [('extern "C" __global__', "static")]})
    assert refused(root).code == "project-no-entry"


def test_an_entry_in_a_comment_is_no_entry(edited: Edit) -> None:
    root = edited(
        "add", {"op_kernel/add_custom.cpp": [('extern "C" __global__', '// "C" __global__')]}
    )
    assert refused(root).code == "project-no-entry"


def test_no_operator_is_registered(edited: Edit) -> None:
    root = edited(
        "add", {"op_host/add_custom.cpp": [("OP_ADD(AddCustom);", "// OP_ADD(AddCustom);")]}
    )
    assert refused(root).code == "project-no-op"


def test_two_operators(edited: Edit) -> None:
    root = edited("add")
    text = (root / "op_host/add_custom.cpp").read_text()
    (root / "op_host/other.cpp").write_text(text.replace("AddCustom", "OtherCustom"))
    error = refused(root)
    assert error.code == "project-two-ops"
    assert "AddCustom, OtherCustom" in error.seen


def test_two_projects_below_one_folder(tmp_path: Path, edited: Edit) -> None:
    edited("add").rename(tmp_path / "one")
    edited("scale").rename(tmp_path / "two")
    assert refused(tmp_path).code == "project-two-ops"


def test_several_entries_need_one_with_the_operators_name(edited: Edit) -> None:
    extra = 'extern "C" __global__ __aicore__ void helper(GM_ADDR x) {}\nclass KernelAdd {'
    root = edited("add", {"op_kernel/add_custom.cpp": [("class KernelAdd {", extra)]})
    assert read_project(root).name == "add_custom"
    text = (root / "op_kernel/add_custom.cpp").read_text()
    (root / "op_kernel/add_custom.cpp").write_text(text.replace("void add_custom(", "void plus("))
    error = refused(root)
    assert error.code == "project-no-entry"
    assert "helper in op_kernel/add_custom.cpp, plus in op_kernel/add_custom.cpp" in error.seen


def test_a_source_that_is_not_text(edited: Edit) -> None:
    root = edited("add")
    (root / "op_kernel/add_custom.cpp").write_bytes(b"\xff\xfe\x00kernel")
    assert refused(root).code == "project-unreadable"


def test_a_source_that_lies_elsewhere(edited: Edit) -> None:
    root = edited("add")
    file = root / "op_kernel/add_custom.cpp"
    file.unlink()
    file.symlink_to("/proc/1/mem")
    assert refused(root).code == "project-link"


@pytest.mark.parametrize(
    ("old", "new"), [('"op": "AddCustom"', '"op": "MulCustom"'), ('"op":', '"op" ')]
)
def test_an_operator_json_that_is_broken_or_of_another_operator(
    edited: Edit, old: str, new: str
) -> None:
    assert refused(edited("add", {"add_custom.json": [(old, new)]})).code == "project-json"


def test_an_entry_that_the_build_would_not_find_is_named_and_still_read(edited: Edit) -> None:
    root = edited("add", {"op_kernel/add_custom.cpp": [("void add_custom(", "void add_2_custom(")]})
    project = read_project(root)
    assert project.name == "add_2_custom"
    (found,) = project.findings
    assert (found.code, found.level) == ("entry-name", Level.ERROR)
    assert "kernel entry `add_custom' not implement in `add_custom.cpp'" in found.message
    assert (found.seen, found.line > 1) == ("add_2_custom in add_custom.cpp", True)
    assert found.legal == "add_custom in add_custom.cpp"


def test_a_kernel_file_of_another_name_is_named(edited: Edit) -> None:
    root = edited("add")
    kernel = root / "op_kernel" / "add_custom.cpp"
    kernel.rename(kernel.with_name("kernel.cpp"))
    (found,) = read_project(root).findings
    assert (found.code, found.seen) == ("entry-name", "add_custom in kernel.cpp")
    # the newer build takes the file that its CMake names
    (root / "op_kernel" / "CMakeLists.txt").write_text(
        "npu_op_kernel_sources(ascendc_kernels\n  OP_TYPE AddCustom\n  KERNEL_FILE kernel.cpp\n)\n"
    )
    assert read_project(root).findings == ()


def test_names_that_the_operator_gives_itself_are_the_ones_that_count(edited: Edit) -> None:
    """ops-nn's PRelu: opFile.value and opInterface.value replace what the type would give."""
    config = (
        'this->AICore().AddConfig("ascend910b", OpAICoreConfig()'
        '.ExtendCfgInfo("opFile.value", "add_apt").ExtendCfgInfo("opInterface.value", "plus"));'
    )
    root = edited("add", {"op_kernel/add_custom.cpp": [("void add_custom(", "void plus(")]})
    kernel = root / "op_kernel" / "add_custom.cpp"
    kernel.rename(kernel.with_name("add_apt.cpp"))
    assert len(read_project(root).findings) == 1
    host = root / "op_host" / "add_custom.cpp"
    text = host.read_text()
    host.write_text(
        text.replace("this->AICore().SetTiling", config + "\n this->AICore().SetTiling")
    )
    assert read_project(root).findings == ()


def test_of_variants_for_several_chips_the_file_called_like_the_operator_counts(
    edited: Edit,
) -> None:
    root = edited("add")
    kernel = root / "op_kernel" / "add_custom.cpp"
    (root / "op_kernel" / "add_custom_apt.cpp").write_text(kernel.read_text())
    assert read_project(root).kernel == kernel


@pytest.mark.parametrize("name", [path.name for path in sorted(PROJECTS.iterdir())])
def test_projects_with_the_names_of_the_build_have_no_finding(name: str) -> None:
    assert read_project(PROJECTS / name).findings == ()


def test_a_kernel_only_answer_gets_its_tiling_argument(edited: Edit) -> None:
    file = "op_kernel/bump.cpp"
    root = edited("bump")
    text = (root / file).read_text()
    lines = text.replace("GM_ADDR workspace,", "GM_ADDR workspace").split("GM_ADDR tiling", 1)
    (root / file).write_text("".join(lines))
    assert read_project(root).entry.param_names[-1] == "workspace"
    assert read_project(root, kernel_only=True).entry.param_names[-2:] == ("workspace", "tiling")


def test_sources_for_several_libraries_may_define_a_name_twice(edited: Edit) -> None:
    root = edited("bump")
    assert read_project(root).host_flags == ()
    (root / "CMakeLists.txt").write_text("target_sources(optiling PRIVATE op_host/bump.cpp)\n")
    assert read_project(root).host_flags == ("-Wl,-z,muldefs",)
