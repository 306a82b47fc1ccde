"""Loops in time at the capture: short ones are unrolled, long ones stay one node.

torch.export unrolls them all, in the result or on the way to it: 512 steps of six layers are tens
of thousands of operations on tensors without values, which take minutes, and no program can hold
them. Meanwhile long ones are calls of operations of our own, which are named as PyTorch's again in
the graph.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch import _VF

from npusmith.task.graph import Graph, Ref

UNROLLED = 64  # steps of all layers and directions together
MOST_STEPS = 1000  # that other shapes are tried with: in float64, one operation after the other
_SPACE = "npusmith_capture"
_KINDS = {"lstm": 3, "gru": 2, "rnn_tanh": 2, "rnn_relu": 2}  # results
_ATEN = {f"{_SPACE}.{kind}.default": f"aten.{kind}.input" for kind in _KINDS}


def named(op: str) -> str:
    """An operation's name in the graph."""
    return _ATEN.get(op, op)


def steps_in_time(graph: Graph) -> int:
    """Steps of the longest loop that stayed whole, all layers and directions together; 0: none."""
    found = 0
    for node in graph.nodes:
        if node.op in _ATEN.values():
            x, _, _, _, layers, _, _, both, batch_first = node.args
            assert isinstance(x, Ref)
            length = graph.spec(x.ref).shape[1 if batch_first else 0]
            found = max(found, length * int(str(layers)) * (2 if both else 1))
    return found


@contextlib.contextmanager
def whole_loops(as_in: Graph | None) -> Iterator[None]:
    """While it is on, long loops of nn.LSTM, nn.GRU and nn.RNN are one call.

    `as_in`: the graph of the same model at its own sizes, which decides for all sizes.
    """
    always = None if as_in is None else any(node.op in _ATEN.values() for node in as_in.nodes)
    with contextlib.ExitStack() as stack:
        for kind in _KINDS:
            own = functools.partial(_call, kind, getattr(_VF, kind), always)
            stack.enter_context(patch.object(_VF, kind, own))
        yield


def _call(kind: str, real: Callable[..., Any], always: bool | None, *args: Any) -> Any:
    if not isinstance(args[3], bool):  # of packed sequences
        return real(*args)
    x, hx, params, biases, layers, dropout, train, both, batch_first = args
    steps = int(x.shape[1 if batch_first else 0]) * layers * (2 if both else 1)
    if not (steps > UNROLLED if always is None else always):
        return real(*args)
    op = getattr(getattr(torch.ops, _SPACE), kind)
    return tuple(op(x, hx, params, biases, layers, dropout, train, both, batch_first))


def _results(kind: str, *args: Any) -> tuple[torch.Tensor, ...]:
    """Tensors of the shapes that come out."""
    x, hx, _, _, _, _, _, both, _ = args
    state = hx if kind == "lstm" else [hx]
    width = state[0].shape[-1] * (2 if both else 1)
    return (x.new_empty((*x.shape[:-1], width)), *map(torch.empty_like, state))


def _compute(kind: str, *args: Any) -> tuple[torch.Tensor, ...]:
    return tuple(getattr(torch, kind)(*args))


for _kind, _count in _KINDS.items():
    _state = "Tensor[]" if _kind == "lstm" else "Tensor"
    torch.library.define(
        f"{_SPACE}::{_kind}",
        f"(Tensor x, {_state} hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> "
        f"({', '.join(['Tensor'] * _count)})",
    )
    torch.library.impl(f"{_SPACE}::{_kind}", "cpu", functools.partial(_compute, _kind))
    torch.library.register_fake(f"{_SPACE}::{_kind}", functools.partial(_results, _kind))
