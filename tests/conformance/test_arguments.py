"""Arguments of aclnn functions, sorted by the operator's definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from npusmith.device import arguments, columns, tensors
from npusmith.device.adapters import ADAPTERS
from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.twin.opdef import OpText, PortText, read_op

X = PortText("x", "REQUIRED", ("DT_FLOAT16", "DT_BF16", "DT_FLOAT"), contiguous=True)
SCALAR = PortText("scalar", "REQUIRED", ("DT_FLOAT16", "DT_FLOAT", "DT_FLOAT"))
MASK = PortText("mask", "OPTIONAL", ("DT_UINT8", "DT_UINT8", "DT_UINT8"))
LISTS = PortText("lists", "DYNAMIC", ("DT_FLOAT16", "DT_BF16", "DT_FLOAT"))
Y = PortText("y", "REQUIRED", ("DT_FLOAT16", "DT_BF16", "DT_FLOAT"))
OP = OpText("Op", (X, SCALAR, MASK, LISTS), (X, Y), ("axis", "epsilon"))
HALF = torch.zeros(2, 3, dtype=torch.float16)
BRAIN = torch.zeros(2, 3, dtype=torch.bfloat16)


def test_inputs_then_attributes_then_outputs_that_are_no_inputs() -> None:
    bound = arguments.bind(OP, "aclnnOp", [HALF, 2.5, None, [HALF], -1, 1e-5, HALF])
    assert bound.inputs == (HALF, 2.5, None, [HALF]) and bound.outputs == (HALF,)
    assert bound.attrs == {"axis": -1, "epsilon": 1e-5}
    written = arguments.outputs(OP, bound)
    assert written[0] is bound.inputs[0] and written[1] is bound.outputs[0]


@pytest.mark.parametrize(("tensor", "scalar"), [(HALF, DType.FLOAT16), (BRAIN, DType.FLOAT32)])
def test_numbers_and_absent_tensors_take_the_types_of_their_column(
    tensor: torch.Tensor, scalar: DType
) -> None:
    bound = arguments.bind(OP, "aclnnOp", [tensor, 2, None, [tensor], 0, 0.0, tensor])
    types = columns.choose(OP, bound)
    assert types.inputs[1:3] == (scalar, DType.UINT8)
    array = tensors.given(SCALAR, 2, types.inputs[1])
    assert isinstance(array, np.ndarray)
    assert array.shape == (1,) and array.dtype == scalar.numpy


@pytest.mark.parametrize(
    "values",
    [
        [HALF, 2.5, None, [HALF], -1, 1e-5],
        [None, 2.5, None, [HALF], -1, 1e-5, HALF],
        [HALF, "text", None, [HALF], -1, 1e-5, HALF],
        [HALF, 2.5, None, [HALF], HALF, 1e-5, HALF],
        [HALF, 2.5, None, [HALF], -1, 1e-5, 3],
    ],
)
def test_arguments_that_do_not_fit_are_refused(values: list[object]) -> None:
    with pytest.raises(TwinError) as caught:
        arguments.bind(OP, "aclnnOp", values)
    assert caught.value.code == "binding-call"


def test_strided_tensors_are_copied_only_where_the_port_says_so() -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    turned = whole.T
    raw = PortText("x", "REQUIRED", ())
    assert tensors.given(X, turned, DType.FLOAT32).tolist() == [[0, 3], [1, 4], [2, 5]]  # type: ignore[union-attr]
    assert tensors.given(raw, turned, DType.FLOAT32).tolist() == [[0, 1], [2, 3], [4, 5]]  # type: ignore[union-attr]
    tensors.write(turned, np.zeros((3, 2), np.float32))
    assert whole.sum() == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int64])
def test_values_come_back_in_every_type(dtype: torch.dtype) -> None:
    tensor = torch.arange(5).to(dtype)
    fresh = torch.empty_like(tensor)
    tensors.write(fresh, tensors.array(tensor))
    assert torch.equal(fresh, tensor)


def test_a_hand_written_function_is_sorted_and_its_numbers_become_words() -> None:
    assert ADAPTERS["aclnnMseLossBackward"].sort(["g", "x", "t", 2, "out"]) == [
        *("x", "t", "g", "sum", "out")
    ]


def test_top_k_works_along_the_last_axis_with_narrow_indices() -> None:
    x, out, indices = torch.randn(3, 4), torch.zeros(2, 4), torch.zeros(2, 4, dtype=torch.int64)
    adapter = ADAPTERS["aclnnTopKV3"]
    values = adapter.sort([x, 2, 0, True, True, out, indices])
    assert adapter.steps is not None
    finish = adapter.steps(values)
    given, k, _, axis, _, best, places = values
    assert isinstance(given, torch.Tensor) and torch.equal(given, x.T) and given.is_contiguous()
    assert (k, axis) == (2, 1)
    assert isinstance(best, torch.Tensor) and isinstance(places, torch.Tensor)
    assert best.shape == (4, 2) and places.dtype == torch.int32
    found = torch.topk(given, 2, dim=1)
    best.copy_(found.values)
    places.copy_(found.indices)
    finish()
    wanted = torch.topk(x, 2, dim=0)
    assert torch.equal(out, wanted.values) and torch.equal(indices, wanted.indices)


def test_batch_norm_computes_statistics_in_float_and_gives_them_back() -> None:
    x, mean = torch.randn(2, 3, 5).half(), torch.zeros(3).half()
    out = torch.zeros_like(x)
    adapter = ADAPTERS["aclnnBatchNorm"]
    saved = [torch.zeros(3).half() for _ in range(2)]
    values = adapter.sort([x, None, None, mean, mean.clone(), True, 0.1, 1e-5, out, *saved])
    assert adapter.steps is not None
    finish = adapter.steps(values)
    shapes = [tuple(item.shape) for item in values if isinstance(item, torch.Tensor)]
    assert shapes == [(2, 3, 5, 1), (3,), (3,), (3,), (3,), (2, 3, 5, 1), (3,), (3,)]
    weight, bias, running = values[1:4]
    assert isinstance(weight, torch.Tensor) and isinstance(bias, torch.Tensor)
    assert weight.tolist() == [1, 1, 1] and bias.tolist() == [0, 0, 0]
    assert isinstance(running, torch.Tensor) and running.dtype == torch.float32
    running.fill_(2.5)
    result = values[8]
    assert isinstance(result, torch.Tensor)
    result.fill_(3)
    finish()
    assert mean.tolist() == [2.5] * 3 and bool((out == 3).all())


def test_type_lists_in_variables_are_read() -> None:
    text = """
    inline ge::DataType Wide(ge::DataType type) {
      switch (type) { case ge::DT_FLOAT16: case ge::DT_BF16: return ge::DT_FLOAT;
                      case ge::DT_INT32: return ge::DT_INT64; default: return ge::DT_UNDEFINED; }
    }
    class Op : public OpDef { public: explicit Op(const char *name) : OpDef(name) {
      std::vector<ge::DataType> types = {ge::DT_FLOAT16, ge::DT_INT32};
      std::vector<ge::DataType> wide;
      std::for_each(types.cbegin(), types.cend(), [&](ge::DataType t) { wide.push_back(Wide(t)); });
      this->Input("x").ParamType(REQUIRED).DataType(types).AutoContiguous();
      this->Input("s").ParamType(REQUIRED).DataType(wide); } };
    OP_ADD(Op);"""
    x, s = read_op(text, "Op").inputs
    assert x.types == ("DT_FLOAT16", "DT_INT32") and x.contiguous
    assert s.types == ("DT_FLOAT", "DT_INT64") and not s.contiguous
