"""Hand-written projects of both tiling styles, built and run for real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import Build, build, read_project, run

PROJECTS = Path(__file__).parents[1] / "projects"
Edit = Callable[..., Path]
F32, F16, BF16, I32 = DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.INT32


def randoms(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def scale(chip: Chip) -> Build:
    return build(read_project(PROJECTS / "scale"), chip, (F32, F32, F32))


@pytest.fixture(scope="module")
def rowsum(chip: Chip) -> Build:
    return build(read_project(PROJECTS / "rowsum"), chip, (F32, F32))


@pytest.mark.parametrize("shape", [(1,), (31,), (7, 11), (3, 5, 4099)])
def test_macro_tiling_with_arrays_and_nested_structs_reaches_the_kernel(
    add: Build, shape: tuple[int, ...]
) -> None:
    x, y = randoms(*shape), randoms(*shape) * 3
    result = run(add, [x, y], [(shape, F32)])
    assert result.findings == []
    assert result.completed
    np.testing.assert_array_equal(result.outputs[0], x + y)
    assert result.outputs[0].shape == shape
    assert result.workspace_bytes == 16 << 20
    assert len(result.tiling) == 216


def test_the_same_project_compiles_for_half(chip: Chip) -> None:
    built = build(read_project(PROJECTS / "add"), chip, (F16, F16, F16))
    x = randoms(1000).astype(np.float16)
    result = run(built, [x, x], [(x.shape, F16)])
    assert result.findings == []
    np.testing.assert_array_equal(result.outputs[0], x + x)


def test_a_zero_dimensional_tensor_is_one_element(add: Build) -> None:
    x = np.array(2.5, np.float32)
    result = run(add, [x, x], [((), F32)])
    assert result.findings == []
    assert result.outputs[0].shape == ()
    assert result.outputs[0] == 5.0


def test_an_empty_tensor_runs_and_gives_an_empty_tensor(add: Build) -> None:
    x = np.empty((0, 3), np.float32)
    result = run(add, [x, x], [((0, 3), F32)])
    assert result.findings == []
    assert result.completed
    assert result.outputs[0].shape == (0, 3)


def test_a_tensor_that_is_not_contiguous_arrives_in_order(add: Build) -> None:
    x = randoms(64, 32).T
    result = run(add, [x, x], [(x.shape, F32)])
    np.testing.assert_array_equal(result.outputs[0], x + x)


def test_attributes_take_their_defaults(scale: Build) -> None:
    x = randoms(5001)
    result = run(scale, [x, None], [(x.shape, F32)], {"alpha": 3})
    assert result.findings == []
    assert (result.blocks, result.tiling_key) == (4, 0)
    np.testing.assert_array_equal(result.outputs[0], x * np.float32(3))


def test_attributes_of_every_kind_and_an_optional_input_reach_tiling(scale: Build) -> None:
    x = randoms(5001)
    attrs = {"alpha": 1.5, "cores": 7, "twice": True, "factors": [2.0, 0.5], "mode": "negative"}
    result = run(scale, [x, np.array([2], np.float32)], [(x.shape, F32)], attrs)
    assert result.findings == []
    assert (result.blocks, result.tiling_key) == (7, 1)
    np.testing.assert_array_equal(result.outputs[0], x * np.float32(-3) + np.float32(2))


def test_private_attributes_stand_behind_the_declared_ones(edited: Edit, chip: Chip) -> None:
    """Source: IMPL_OP(...).PrivateAttr of CANN's register interface."""
    asks = """
  const auto *attrs = context->GetAttrs();
  const auto *widths = attrs->GetAttrPointer<gert::ContinuousVector>(4);
  if (attrs->GetAttrNum() != 5 || attrs->GetAttrPointer<char>(0)[0] != 'a' ||
      *attrs->GetAttrPointer<int64_t>(1) != 3 || *attrs->GetAttrPointer<bool>(2) ||
      attrs->GetAttrPointer<char>(3) != nullptr || widths->GetSize() != 2) {
    return ge::GRAPH_FAILED;
  }
"""
    gives = """
IMPL_OP(AddCustom)
    .PrivateAttr("padding", "a")
    .PrivateAttr("mode", 3L)
    .PrivateAttr("deep", false)
    .PrivateAttr("none")
    .PrivateAttr("widths", std::vector<int64_t>{1, 2});
"""
    changes = [
        ("  AddCustomTilingData tiling;\n", f"  AddCustomTilingData tiling;\n{asks}"),
        ("OP_ADD(AddCustom);\n", f"OP_ADD(AddCustom);\n{gives}"),
        (
            '"register/op_def_registry.h"',
            '"register/op_def_registry.h"\n#include "register/op_impl_registry.h"',
        ),
    ]
    root = edited("add", {"op_host/add_custom.cpp": changes})
    made = build(read_project(root), chip, (F32, F32, F32))
    x = np.ones(64, np.float32)
    result = run(made, [x, x], [(x.shape, F32)])
    assert result.completed and not result.findings


@pytest.mark.parametrize(
    ("attrs", "code"),
    [
        ({}, "attr-missing"),
        ({"alpha": 1.0, "beta": 2.0}, "attr-unknown"),
        ({"alpha": "one"}, "attr-type"),
        ({"alpha": [1.0]}, "attr-type"),
        ({"alpha": 1.0, "cores": 0}, "host-crash"),
        ({"alpha": 1.0, "cores": 65536}, "block-dim"),
    ],
)
def test_an_attribute_that_does_not_fit_is_a_finding(
    scale: Build, attrs: dict[str, object], code: str
) -> None:
    x = randoms(8)
    result = run(scale, [x, None], [(x.shape, F32)], attrs)  # type: ignore[arg-type]
    assert [finding.code for finding in result.findings] == [code]
    assert not result.completed


def test_an_entry_called_sqrt_may_call_sqrt_and_read_compile_info(rowsum: Build) -> None:
    x = np.abs(randoms(100, 333))
    result = run(rowsum, [x], [((100,), F32)])
    assert result.completed
    assert [finding.code for finding in result.findings] == []
    np.testing.assert_allclose(result.outputs[0], np.sqrt(x.sum(1)), rtol=1e-5)


def test_a_tiling_function_that_refuses_says_what_it_printed(rowsum: Build) -> None:
    result = run(rowsum, [randoms(12)], [((12,), F32)])
    (finding,) = result.findings
    assert finding.code == "tiling-failed"
    assert "x must have 2 dimensions, not 1" in finding.seen
    assert not result.completed


def test_a_list_of_tensors_arrives_as_a_descriptor_and_values_are_readable_on_the_host(
    chip: Chip,
) -> None:
    built = build(read_project(PROJECTS / "sumlist"), chip, (I32, I32, I32))
    xs = [np.array([value], np.int32) for value in (5, 7, 11)]
    result = run(built, [xs, np.array([100], np.int32)], [((2,), I32)])
    assert result.findings == []
    assert result.outputs[0].tolist() == [123, 0]  # InitValue(0) cleared what was not written


@pytest.mark.parametrize(("dtype", "value"), [(F32, 1.25), (BF16, 2.0)])
def test_an_output_named_like_an_input_shares_its_memory(
    chip: Chip, dtype: DType, value: float
) -> None:
    built = build(read_project(PROJECTS / "bump"), chip, (dtype, dtype))
    x = np.full(3, value, ml_dtypes.bfloat16 if dtype is BF16 else np.float32)
    result = run(built, [x], [((3,), dtype)])
    assert result.findings == []
    assert [float(item) for item in result.outputs[0]] == [value + 1, value, value]
    assert float(x[0]) == value  # the caller's array is not touched


def test_undeclared_types_are_a_finding(add: Build) -> None:
    x = randoms(64)
    result = run(add, [x, x.astype(np.int32)], [(x.shape, F32)])
    assert "opdef-dtype" in [finding.code for finding in result.findings]


def test_a_wrong_output_shape_is_seen_by_shape_inference(add: Build) -> None:
    x = randoms(64)
    result = run(add, [x, x], [((8, 8), F32)])
    assert [(f.code, f.level.value) for f in result.findings] == [("infer-shape", "warning")]


def test_the_wrong_number_of_inputs_is_the_callers_error(add: Build) -> None:
    with pytest.raises(TwinError, match="inputs-mismatch"):
        run(add, [randoms(3)], [((3,), F32)])


def test_outputs_that_nobody_writes_are_poison(chip: Chip, add: Build) -> None:
    x = randoms(8)
    result = run(add, [x, x], [((16,), F32)])
    assert np.isnan(result.outputs[0][8:]).all()
