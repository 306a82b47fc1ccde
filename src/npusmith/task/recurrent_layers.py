"""Loops in time at the capture: short ones are unrolled, long ones are scans.

torch.export unrolls them all, in the result or on the way to it: 512 steps of six layers are tens
of thousands of operations on tensors without values, which take minutes, and no program can hold
them. Meanwhile long ones are calls of operations of our own. For what eager PyTorch would call they
are named as PyTorch's again; in the graph each layer is products over all steps at once, and a scan
of what is left of a step.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import _VF, Tensor
from torch._higher_order_ops.scan import scan_op
from torch.nn.functional import linear

from npusmith.task.graph import SCAN, Graph, Ref

UNROLLED = 8  # steps of all layers and directions together
MOST_STEPS = 1000  # that other shapes are tried with: in float64, one operation after the other
_SPACE = "npusmith_capture"
_KINDS = {"lstm": 3, "gru": 2, "rnn_tanh": 2, "rnn_relu": 2}  # results
_ATEN = {f"{_SPACE}.{kind}.default": f"aten.{kind}.input" for kind in _KINDS}


def named(op: str) -> str:
    """An operation's name in the graph."""
    return _ATEN.get(op, op)


def steps_in_time(graph: Graph) -> int:
    """Steps of all loops that stayed whole, of layers and directions one by one."""
    found = 0
    for node in graph.nodes:
        if node.op == SCAN:
            _, rows, _ = node.args
            assert isinstance(rows, tuple) and isinstance(rows[0], Ref)
            found += graph.spec(rows[0].ref).shape[0]
        elif node.op in _ATEN.values():
            x, _, _, _, layers, _, _, both, batch_first = node.args
            assert isinstance(x, Ref)
            length = graph.spec(x.ref).shape[1 if batch_first else 0]
            found += length * int(str(layers)) * (2 if both else 1)
    return found


@contextlib.contextmanager
def whole_loops(as_in: Graph | None) -> Iterator[None]:
    """While it is on, long loops of nn.LSTM, nn.GRU and nn.RNN are one call.

    `as_in`: the graph of the same model at its own sizes, which decides for all sizes.
    """
    always = None if as_in is None else steps_in_time(as_in) > 0
    with contextlib.ExitStack() as stack:
        for kind in _KINDS:
            own = functools.partial(_call, kind, getattr(_VF, kind), always)
            stack.enter_context(patch.object(_VF, kind, own))
        yield


def decompositions() -> dict[Any, Callable[..., Any]]:
    """How the operations of our own are taken apart."""
    space = getattr(torch.ops, _SPACE)
    return {getattr(space, kind).default: functools.partial(_taken_apart, kind) for kind in _KINDS}


def _call(kind: str, real: Callable[..., Any], always: bool | None, *args: Any) -> Any:
    if not isinstance(args[3], bool):  # of packed sequences
        return real(*args)
    x, hx, params, biases, layers, dropout, train, both, batch_first = args
    steps = int(x.shape[1 if batch_first else 0]) * layers * (2 if both else 1)
    if not (steps > UNROLLED if always is None else always):
        return real(*args)
    op = getattr(getattr(torch.ops, _SPACE), kind)
    return tuple(op(x, hx, params, biases, layers, dropout, train, both, batch_first))


# ----------------------------------------------------------------------------- layers and steps


class _Layers(NamedTuple):
    """The arguments of `torch._VF.lstm`, gru and rnn behind the tensors, in their order."""

    biases: bool
    layers: int
    dropout: float
    train: bool
    both: bool
    batch_first: bool


def _taken_apart(kind: str, x: Tensor, hx: Any, params: Sequence[Tensor], *given: Any) -> Any:
    """Layer by layer; NotImplemented where dropout is drawn."""
    _, layers, dropout, train, both, batch_first = _Layers(*given)
    if train and dropout:
        return NotImplemented
    ways = 2 if both else 1
    each = len(params) // (layers * ways)
    states = list(hx) if kind == "lstm" else [hx]
    ends: list[list[Tensor]] = [[] for _ in states]
    x = x.transpose(0, 1).contiguous() if batch_first else x  # one product for all steps
    for layer in range(layers):
        found = []
        for way in range(ways):
            at = layer * ways + way
            own = params[at * each : (at + 1) * each]
            rows, last = _layer(kind, x, [item[at] for item in states], own, reverse=way == 1)
            found.append(rows)
            for end, item in zip(ends, last, strict=True):
                end.append(item)
        x = torch.cat(found, -1) if both else found[0]
    return (x.transpose(0, 1) if batch_first else x, *map(torch.stack, ends))


def _layer(
    kind: str, x: Tensor, states: Sequence[Tensor], params: Sequence[Tensor], reverse: bool
) -> tuple[Tensor, list[Tensor]]:
    """One layer in one direction: the hidden state after every step, and the last states."""
    w_ih, w_hh, *rest = params
    projection = [rest.pop()] if len(rest) % 2 else []
    given = linear(x, w_ih, *rest[:1])
    given = given.flip(0) if reverse else given
    step = _projected_step if projection else _STEPS[kind]
    held = (w_hh, *rest[1:], *projection)
    *last, rows = scan_op(step, list(states), [given], held)
    return rows.flip(0) if reverse else rows, last


def _lstm_step(*args: Tensor) -> list[Tensor]:
    h, c, given, *held = args
    i, f, g, o = (given + linear(h, *held)).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return [h, c, h.clone()]


def _projected_step(*args: Tensor) -> list[Tensor]:
    *own, projection = args
    h, c, _ = _lstm_step(*own)
    h = linear(h, projection)
    return [h, c, h.clone()]


def _gru_step(*args: Tensor) -> list[Tensor]:
    h, given, *held = args
    (r, z, n), (r_h, z_h, n_h) = (item.chunk(3, -1) for item in (given, linear(h, *held)))
    r, z = torch.sigmoid(r + r_h), torch.sigmoid(z + z_h)
    n = torch.tanh(n + r * n_h)
    h = n + z * (h - n)
    return [h, h.clone()]


def _rnn_step(function: Callable[[Tensor], Tensor], *args: Tensor) -> list[Tensor]:
    h, given, *held = args
    h = function(given + linear(h, *held))
    return [h, h.clone()]


_STEPS: dict[str, Callable[..., list[Tensor]]] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": functools.partial(_rnn_step, torch.tanh),
    "rnn_relu": functools.partial(_rnn_step, torch.relu),
}


def as_loops(module: Any) -> Any:
    """The module of a captured program with its scans as loops of Python.

    PyTorch's own run under no dispatch mode but those that it knows.
    """
    for node in module.graph.nodes:
        if node.target is scan_op:
            node.target = _run
    module.recompile()
    return module


def _run(
    step: Callable[..., Sequence[Tensor]],
    states: Sequence[Tensor],
    rows: Sequence[Tensor],
    held: Sequence[Tensor],
) -> list[Tensor]:
    made: list[Sequence[Tensor]] = []
    for given in zip(*rows, strict=True):
        found = step(*states, *given, *held)
        states = found[: len(states)]
        made.append(found[len(states) :])
    return [*states, *map(torch.stack, zip(*made, strict=True))]


# ------------------------------------------------------------------------------------ operations


def _results(kind: str, *args: Any) -> tuple[Tensor, ...]:
    """Tensors of the shapes that come out."""
    x, hx, _, _, _, _, _, both, _ = args
    state = hx if kind == "lstm" else [hx]
    width = state[0].shape[-1] * (2 if both else 1)
    return (x.new_empty((*x.shape[:-1], width)), *map(torch.empty_like, state))


def _compute(kind: str, *args: Any) -> tuple[Tensor, ...]:
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
