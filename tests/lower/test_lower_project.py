"""The files of a project: what host code, bindings and model_new.py say."""

from __future__ import annotations

import ast
import importlib
import json
import runpy
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npusmith.errors import LowerError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Call, Const, Dim, For, ScalarFn, Size
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.lang import parse
from npusmith.lower import lower, project_files, write_project
from npusmith.lower.binding import binding_file
from npusmith.target import cann
from npusmith.target.chips import Chip
from npusmith.twin import read_project

ADD = """
@host
def host(x, w, y):
    cols = x.shape[-1]
    rows = x.size // cols
    launch(k, min(rows, chip.vector_cores), rows=rows, share=ceil_div(rows, x.shape[0]), f=0.5)
@kernel
def k(x: input(float32), w: input(float16), y: output(float32), rows: int, share: int, f: float):
    xt = ub(64, float32)
    yt = ub(64, float32)
    wt = ub(64, float16)
    et = ub(64, float32)
    with copy_in:
        load(xt, x, rows)
        load(wt, w, share)
    with compute:
        cast(et, wt, "none", 64)
        axpy(et, xt, f, 64)
        exp(yt, et, 64)
    with copy_out:
        store(y, yt, 64)
"""
MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x, dim):
        return x.sum(dim)
"""


def spec(**changes: Any) -> OpSpec:
    given: dict[str, Any] = {
        "name": "add_custom",
        "inputs": (
            Port("x", DType.FLOAT32, (2, 3)),
            Port("w", DType.FLOAT16, (3,), Source.PARAMETER, target="fc.weight"),
        ),
        "outputs": (Port("y", DType.FLOAT32, (2, 1), dims=(Dim("x", 0), Const(1))),),
        "task_source": MODEL,
    }
    return OpSpec(**{**given, **changes})


def files(chip: Chip, **changes: Any) -> dict[str, str]:
    return project_files(lower(parse(ADD), chip), chip, spec(**changes))


@pytest.mark.parametrize("name", ["max_pooling_2d_custom", "gelu_01_custom", "X__3d", "a_b", "k"])
def test_files_and_entry_are_called_as_the_build_looks_for_them(
    name: str, chip: Chip, tmp_path: Path
) -> None:
    write_project(lower(parse(ADD), chip), chip, tmp_path, spec(name=name))
    project = read_project(tmp_path)
    assert project.findings == ()
    assert project.op.files == project.op.entries == (project.name,) == (project.kernel.stem,)


def test_the_project_has_the_files_of_the_layout(chip: Chip, tmp_path: Path) -> None:
    paths = write_project(lower(parse(ADD), chip), chip, tmp_path, spec())
    assert {str(path.relative_to(tmp_path)) for path in paths} == {
        "op_kernel/add_custom.cpp",
        "op_kernel/add_custom_tiling.h",
        "op_kernel/CMakeLists.txt",
        "op_host/add_custom.cpp",
        "op_host/CMakeLists.txt",
        "add_custom.json",
        "CMakeLists.txt",
        "build.sh",
        "setup.py",
        "README.md",
        "direct/add_custom.asc",
        "direct/pybind.cpp",
        "direct/CMakeLists.txt",
        "pybind.cpp",
        "model_new.py",
        "bindings.json",
    }
    assert all(path.is_file() for path in paths)
    assert (tmp_path / "build.sh").stat().st_mode & 0o100


def test_the_tiling_struct_is_whole_8_bytes_with_floats_last(chip: Chip) -> None:
    text = files(chip)["op_kernel/add_custom_tiling.h"]
    types = [line.split()[0] for line in text.splitlines() if line.startswith("    ")]
    assert types == ["int64_t"] * 5 + ["float", "float"]  # f and its padding


def test_the_host_refuses_shapes_that_the_arithmetic_cannot_take(chip: Chip) -> None:
    text = files(chip)["op_host/add_custom.cpp"]
    assert "if (cols == 0) {" in text and "if (xShape.GetDim(0) < 1) {" in text
    direct = files(chip)["direct/pybind.cpp"]
    assert 'TORCH_CHECK(!(cols == 0), "no tiling for this shape: cols == 0");' in direct
    assert direct.count("tiling.rows = rows;") == 1


def test_output_dims_are_written_in_the_spelling_of_each_file(chip: Chip) -> None:
    half = Call(ScalarFn.CEIL_DIV, (Binary(BinOp.ADD, Dim("x", -1), Size("w")), Const(2)))
    texts = files(chip, outputs=(Port("y", DType.FLOAT32, (2, 3), dims=(Dim("x", 0), half)),))
    host, binding = texts["op_host/add_custom.cpp"], texts["pybind.cpp"]
    assert "yShape->SetDim(0, unknown ? -1 : xShape.GetDim(0));" in host
    assert "CeilDiv(xShape.GetDim(xShape.GetDimNum() - 1) + wShape.GetShapeSize(), 2)" in host
    assert "at::empty({x.size(0), CeilDiv(x.size(-1) + w.numel(), 2)}" in binding
    assert "static int64_t CeilDiv" in binding


def test_an_output_without_dims_has_the_shape_of_the_task(chip: Chip) -> None:
    texts = files(chip, outputs=(Port("y", DType.FLOAT32, (7, 9)),))
    assert "yShape->SetDim(1, 9);" in texts["op_host/add_custom.cpp"]
    texts = files(chip, outputs=(Port("y", DType.FLOAT32, ()),))
    assert "yShape->SetDimNum(0);" in texts["op_host/add_custom.cpp"]
    assert "at::empty({}," in texts["pybind.cpp"]


def test_the_json_is_what_msopgen_reads(chip: Chip) -> None:
    (entry,) = json.loads(files(chip)["add_custom.json"])
    assert entry["op"] == "AddCustom"
    assert [item["name"] for item in entry["input_desc"]] == ["x", "w"]
    assert entry["input_desc"][1]["type"] == ["float16"]


def test_the_op_definition_lists_types_and_chips(chip: Chip) -> None:
    text = files(chip)["op_host/add_custom.cpp"]
    assert ".DataType({ge::DT_FLOAT16})" in text
    assert 'AddConfig("ascend910b")' in text and 'AddConfig("ascend910_93")' in text
    assert "OP_ADD(AddCustom);" in text


def test_a_kernel_that_waits_for_other_cores_has_the_mixed_type(samples: Any, chip: Chip) -> None:
    for name, kind in (("mean_all", "MIX_AIV_1_0"), ("add", "AIV_ONLY")):
        program = samples.program(name)
        shapes, out_shapes = samples.shapes(name)[0]
        texts = project_files(lower(program, chip), chip, samples.spec(program, shapes, out_shapes))
        kernel = next(text for path, text in texts.items() if path.startswith("op_kernel/"))
        assert f"KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{kind})" in kernel
        host = next(text for path, text in texts.items() if path.startswith("op_host/"))
        assert ("blockDim > vectorCores" in host) == (name == "mean_all")


def test_a_loop_of_one_count_writes_the_mask_once(chip: Chip, samples: Any) -> None:
    program = samples.program("block_sums")
    shapes, out_shapes = samples.shapes("block_sums")[0]
    texts = project_files(lower(program, chip), chip, samples.spec(program, shapes, out_shapes))
    kernel = next(text for path, text in texts.items() if path.startswith("op_kernel/"))
    assert kernel.count("SetMaskCount();") == kernel.count("ResetMask();") == 1
    assert kernel.count("Muls<float, false>(") == 1
    assert "Add(" in kernel  # outside of a loop: the count form


def test_operations_of_one_count_in_a_row_write_the_mask_once(chip: Chip) -> None:
    program = parse("""
@host
def host(x, y):
    launch(k, 1, n=x.size)
@kernel
def k(x: input(float32), y: output(float32), n: int):
    xt = ub(64, float32)
    yt = ub(256, float32)
    with copy_in:
        load(xt, x, n)
    with compute:
        muls(yt, xt, 1.0, n)
        muls(yt[n], xt, 2.0, n)
        muls(yt[2 * n], xt, 3.0, n)
        muls(yt, xt, 4.0, 64)
    with copy_out:
        store(y, yt, n)
""")
    size = (Dim("x", 0),)
    ports = (Port("x", DType.FLOAT32, (64,)),), (Port("y", DType.FLOAT32, (64,), dims=size),)
    texts = project_files(lower(program, chip), chip, OpSpec("k", *ports))
    kernel = next(text for path, text in texts.items() if path.startswith("op_kernel/"))
    assert kernel.count("SetMaskCount();") == kernel.count("ResetMask();") == 1
    assert kernel.count("Muls<float, false>(") == 3
    assert kernel.index("ResetMask();") < kernel.index("Muls(")


def test_model_new_passes_users_tensors_and_parameters(chip: Chip) -> None:
    text = files(chip)["model_new.py"]
    ast.parse(text)
    assert text.startswith(MODEL.rstrip())
    # forward has an argument that is no tensor: the tensors are picked out by type
    assert "custom_ops_lib.add_custom(tensors[0], self.fc.weight)" in text
    plain = MODEL.replace("x, dim", "data").replace("x.sum(dim)", "data")
    text = files(chip, task_source=plain)["model_new.py"]
    assert "def forward(self, data):" in text
    assert "return custom_ops_lib.add_custom(data, self.fc.weight)" in text


def test_model_new_refuses_other_numbers_than_those_of_the_kernel(
    chip: Chip, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    source = MODEL.replace("x, dim", "x, dim=1, *, scale=float('inf')")
    text = files(chip, task_source=source, literals=(1, float("inf")))["model_new.py"]
    calls = types.SimpleNamespace(add_custom=lambda x, w: x)
    monkeypatch.setitem(sys.modules, "custom_ops_lib", calls)
    space: dict[str, Any] = {}
    exec(text, space)
    model, x = space["ModelNew"](), torch.ones(2, 3)
    model.fc = torch.nn.Linear(3, 1)
    assert model(x) is x and model(x=x, dim=1) is x and model(dim=1, x=x) is x
    with pytest.raises(ValueError, match=r"serves \[1, inf\] besides tensors, not \[0, inf\]"):
        model(x, 0)
    with pytest.raises(ValueError, match=r"not \[1, 2.0\]"):
        model(x, scale=2.0)
    unknown = files(chip, task_source=source)["model_new.py"]
    assert "served" not in unknown


def test_model_new_returns_a_tuple_where_the_model_does(chip: Chip) -> None:
    text = files(chip, returns="(0,)")["model_new.py"]
    assert "return (custom_ops_lib.add_custom(tensors[0], self.fc.weight),)" in text
    text = files(chip, returns="{'sum': [0]}")["model_new.py"]
    assert "return {'sum': [custom_ops_lib.add_custom(tensors[0], self.fc.weight)]}" in text


def test_ports_that_are_not_the_kernels_tensors_are_refused(chip: Chip) -> None:
    with pytest.raises(LowerError) as caught:
        files(chip, inputs=(Port("x", DType.FLOAT32, (2, 3)),))
    assert caught.value.code == "lower-port"
    assert "x float32, w float16" in caught.value.render()


@pytest.mark.parametrize("before", ["", "i = 3\n"])
def test_a_loop_variable_read_after_its_loop_is_refused(
    before: str, chip: Chip, kernel_text: Any
) -> None:
    body = f"""
{before}for i in range(n):
    j = i
with compute:
    duplicate(yt, float(i), 8)
with copy_out:
    store(y, yt, 8)
"""
    program = lower(parse(kernel_text(body, buffers="yt")), chip)
    ports = spec(
        inputs=(Port("x", DType.FLOAT32, (8,)),), outputs=(Port("y", DType.FLOAT32, (8,)),)
    )
    with pytest.raises(LowerError) as caught:
        project_files(program, chip, ports)
    assert caught.value.code == "lower-loop-variable"


def test_a_loop_in_the_host_function_is_refused(chip: Chip, samples: Any) -> None:
    program = lower(samples.program("add"), chip)
    loop = For("i", Const(0), Const(2), Const(1), ())
    program = replace(program, host=replace(program.host, body=(loop,)))
    shapes, out_shapes = samples.shapes("add")[0]
    with pytest.raises(LowerError) as caught:
        project_files(program, chip, samples.spec(program, shapes, out_shapes))
    assert caught.value.code == "lower-host"


def test_a_name_that_nothing_assigns_is_refused(chip: Chip, kernel_text: Any) -> None:
    body = "with compute:\n    duplicate(yt, 0.0, lost)\nwith copy_out:\n    store(y, yt, 8)"
    with pytest.raises(LowerError) as caught:
        lower(parse(kernel_text(body, buffers="yt")), chip)
    assert caught.value.code == "lower-name"


@pytest.fixture
def setup_py(chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """setup.py of a project, on a machine without anything of Ascend's."""
    for name in (*cann.VARIABLES, "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    path = tmp_path / "setup.py"
    path.write_text(files(chip)["setup.py"])
    return path


def _place(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    importlib.invalidate_caches()


def test_setup_py_says_which_part_of_ascend_is_missing(
    setup_py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = setup_py.parent
    with pytest.raises(SystemExit, match="torch_npu is not installed"):
        runpy.run_path(str(setup_py))
    _place(root, "site/torch_npu/__init__.py")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(root / "cann"))
    with pytest.raises(SystemExit, match=f"no CANN in {root / 'cann'}; source its set_env.sh"):
        runpy.run_path(str(setup_py))
    _place(root, "cann/include/acl/acl.h")
    with pytest.raises(SystemExit, match=r"no aclnn_add_custom.h .* install the operator first"):
        runpy.run_path(str(setup_py))


@pytest.mark.parametrize("custom", [False, True])
def test_setup_py_builds_with_what_the_operator_s_package_installed(
    setup_py: Path, monkeypatch: pytest.MonkeyPatch, custom: bool
) -> None:
    root, given = setup_py.parent, {}
    vendor = root / ("mine/vendors/customize" if custom else "cann/opp/vendors/customize")
    _place(root, "site/torch_npu/__init__.py", "cann/include/acl/acl.h")
    _place(vendor, "op_api/include/aclnn_add_custom.h")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(root / "cann"))
    if custom:
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(vendor))
    monkeypatch.setattr("setuptools.setup", lambda **options: given.update(options))
    runpy.run_path(str(setup_py))
    (module,) = given["ext_modules"]
    wanted = [vendor / "op_api/include", root / "cann/include", root / "site/torch_npu/include"]
    assert module.include_dirs[:3] == [str(path) for path in wanted]
    assert str(vendor / "op_api/lib") in module.runtime_library_dirs
    assert {"cust_opapi", "nnopbase", "torch_npu"} <= set(module.libraries)


def test_the_host_says_what_it_serves_and_checks_it_in_both_functions(chip: Chip) -> None:
    half = Binary(BinOp.EQ, Binary(BinOp.MOD, Dim("x", 1), Const(8)), Const(0))
    same = Binary(BinOp.EQ, Dim("w", 0), Dim("x", 1))
    texts = files(chip, legal=(same, half))
    host = texts["op_host/add_custom.cpp"]
    assert 'IsLegal(xShape.GetDimNum() == 2, "x", xShape, "rank 2")' in host
    assert 'IsLegal(wShape.GetDim(0) == xShape.GetDim(1), "w", wShape, "w.shape[0] == x.sh' in host
    assert "xShape.GetDim(1) % 8 == 0" in host
    assert host.count("!Serves(xShape, wShape)") == 2  # tiling, shape inference
    assert 'CheckShape(x.size(1) % 8 == 0, "x", x, "x.shape[1] % 8 == 0");' in texts["pybind.cpp"]
    assert "CheckShape(x.size(1) % 8 == 0" in texts["direct/pybind.cpp"]
    assert "- `x.shape[1] % 8 == 0`" in texts["README.md"]
    unknown = files(chip)["op_host/add_custom.cpp"]
    assert "Serves" not in unknown  # nothing is known of what this kernel serves


def test_what_an_output_divides_by_is_checked_before_it_is_divided_by(chip: Chip) -> None:
    part = Binary(BinOp.FLOORDIV, Dim("x", 0), Dim("w", 0))
    out = Port("y", DType.FLOAT32, (2, 3), dims=(part, Const(3)))
    host = files(chip, outputs=(out,), legal=())["op_host/add_custom.cpp"]
    assert "wShape.GetDim(0) >= 1" in host


def test_tensors_do_not_take_the_names_of_namespaces() -> None:
    """A tensor called torch makes a division of every `#include <torch/extension.h>`."""
    port = Port("torch_", DType.FLOAT32, (4,))
    spec = OpSpec("op_custom", (port,), (Port("y", DType.FLOAT32, (4,)),))
    assert "const at::Tensor &torch_)" in binding_file([spec])
