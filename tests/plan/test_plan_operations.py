"""The page of operations says what is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modules import agrees, plan

from npusmith.plan.operations import APART, BY_EXPORT, CORE, core, written
from npusmith.plan.read import RULES
from npusmith.task.decompositions import taken_apart

A = torch.ops.aten
X = torch.linspace(-2, 2, 120).reshape(2, 3, 4, 5).sin()
LAST = [X.mean(-1, keepdim=True), X.var(-1, keepdim=True).rsqrt()]
SOME: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "adaptive_avg_pool1d": (lambda t: F.adaptive_avg_pool1d(t, 3), (X[0],)),
    "col2im": (lambda t: F.fold(t, (6, 5), (2, 2)), (X.reshape(1, 4, 30)[..., :20],)),
    "embedding_dense_backward": (
        lambda g, i: A.embedding_dense_backward(g, i, 9, -1, False),
        (X[0, 0], torch.tensor([1, 8, 1, 0])),
    ),
    "fill": (lambda t: torch.fill(t, 2.0) + t, (X,)),
    "native_group_norm_backward": (
        lambda g, x, w: A.native_group_norm_backward(
            g, x, x.mean((2, 3)), x.var((2, 3)), w, 2, 3, 20, 3, [True, True, True]
        ),
        (X.cos(), X, X[0, :, 0, 0]),
    ),
    "native_layer_norm_backward": (
        lambda g, x, w: A.native_layer_norm_backward(g, x, [5], *LAST, w, w, [True, True, True]),
        (X.cos(), X, X[0, 0, 0]),
    ),
    "reflection_pad1d": (lambda t: F.pad(t, (2, 1), mode="reflect"), (X[0],)),
    "reflection_pad2d": (lambda t: F.pad(t, (2, 1, 1, 2), mode="reflect"), (X,)),
    "reflection_pad3d": (lambda t: F.pad(t, (2, 1, 1, 2, 1, 1), mode="reflect"), (X[None],)),
    "replication_pad2d": (lambda t: F.pad(t, (2, 1, 1, 2), mode="replicate"), (X,)),
    "replication_pad3d": (lambda t: F.pad(t, (2, 1, 1, 2, 1, 1), mode="replicate"), (X[None],)),
}


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the list is that of 2.13")
def test_the_core_opset_is_pytorchs() -> None:
    tagged = set()
    for schema in torch._C._jit_get_all_schemas():  # A has only those that somebody asked for
        space, _, name = schema.name.partition("::")
        packet = getattr(A, name, None) if space == "aten" else None
        for overload in packet.overloads() if packet else ():
            if torch.Tag.core in getattr(packet, overload).tags:
                tagged.add(name)
    assert tagged == CORE


@pytest.mark.parametrize("name", BY_EXPORT)
def test_what_export_takes_apart_is_written(name: str) -> None:
    model, args = SOME[name]
    if (
        name == "native_layer_norm_backward"
    ):  # constants of the model are inputs, which have no home
        plan(model, *args)
    else:
        agrees(plan(model, *args), model, *args, loose=20)


def test_every_name_stands_in_one_family_and_every_rule_in_some() -> None:
    found = [name for names in written().values() for name in names]
    assert len(found) == len(set(found))
    refused = {name for name in RULES if name not in found}
    assert refused == {"convolution", "mode", "_local_scalar_dense"}


def test_most_of_the_core_opset_is_written() -> None:
    apart = {name for names in APART.values() for name in names}
    assert apart <= CORE
    have, left = core(taken_apart())
    assert len(have) / (len(have) + len(left)) >= 0.97
