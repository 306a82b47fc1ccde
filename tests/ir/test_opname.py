"""Names of operators: what CANN's build makes of a type, and which types we give."""

from __future__ import annotations

import random
import re

import pytest

from npusmith.ir.opname import entry_name, operator_name, operator_type
from npusmith.ir.spec import OpSpec

# Types and entry functions as ops-nn, ops-math, ops-cv and ops-transformer publish them.
PUBLISHED = {
    "AddLayerNorm": "add_layer_norm",
    "AvgPool3DGrad": "avg_pool3_d_grad",
    "BidirectionLSTMV2": "bidirection_lstmv2",
    "CTCLossV2Grad": "ctc_loss_v2_grad",
    "ActsULQInputGrad": "acts_ulq_input_grad",
    "GLU": "glu",
    "Dilation2D": "dilation2_d",
    "LambNextMVWithDecay": "lamb_next_mv_with_decay",
    "MaxPool3D": "max_pool3_d",
    "MVNV2": "mvnv2",
    "NLLLoss": "nll_loss",
    "Relu6D": "relu6_d",
    "SyncBNTrainingUpdate": "sync_bn_training_update",
    "ThresholdGradV2D": "threshold_grad_v2_d",
}


@pytest.mark.parametrize(("op_type", "entry"), PUBLISHED.items())
def test_published_entries_are_what_the_rule_gives(op_type: str, entry: str) -> None:
    assert entry_name(op_type) == entry


TASKS = {
    "max_pooling_2d": ("MaxPooling2dCustom", "max_pooling2d_custom"),
    "gelu_01": ("Gelu01Custom", "gelu01_custom"),
    "x_2d": ("X2dCustom", "x2d_custom"),
    "2d": ("Op2dCustom", "op2d_custom"),
    "19_ReLU": ("Op19ReluCustom", "op19_relu_custom"),
    "a__B": ("AbCustom", "ab_custom"),
    "conv2_d": ("Conv2dCustom", "conv2d_custom"),
    "small_k_dim": ("SmallKDimCustom", "small_k_dim_custom"),
    "\u00e9t\u00e9": ("TCustom", "t_custom"),
    "_": ("Custom", "custom"),
}


@pytest.mark.parametrize(("task", "names"), TASKS.items())
def test_a_task_gives_a_type_and_the_entry_that_the_build_finds(
    task: str, names: tuple[str, str]
) -> None:
    spec = OpSpec(operator_name(task), (), ())
    assert (spec.op_type, spec.name) == names


def _every(op_type: str) -> str:
    """An underscore before each capital: how older scripts of the build name folders."""
    return re.sub("([A-Z])", r"_\1", op_type[0].lower() + op_type[1:]).lower()


def _manual(op_type: str) -> str:
    """The manual for AI CPU operators: capitals behind digits and capitals belong together."""
    text = re.sub("([A-Z0-9])([A-Z])(?=[a-z])", r"\1_\2", op_type)
    return re.sub("([a-z])([A-Z])", r"\1_\2", text).lower()


def test_types_that_we_give_read_the_same_by_every_published_rule() -> None:
    draw = random.Random(0)
    letters = "ab0_19zQ-é."
    for _ in range(20_000):
        task = "".join(draw.choices(letters, k=draw.randint(0, 12)))
        name = operator_name(task)
        op_type = operator_type(name)
        assert re.fullmatch("[A-Z][A-Za-z0-9]*", op_type, re.ASCII), task
        assert entry_name(op_type) == _every(op_type) == _manual(op_type) == name, task
        assert operator_name(task) == OpSpec(name, (), ()).name, task


def test_a_type_that_somebody_else_has_fixed_stays() -> None:
    spec = OpSpec("whatever", (), (), type="ApplyAdamWV2")
    assert (spec.op_type, spec.name) == ("ApplyAdamWV2", "apply_adam_wv2")


def test_names_of_files_do_not_grow_too_long() -> None:
    assert len(operator_name("x" * 1000)) < 120
