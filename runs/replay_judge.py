"""Is a tile program right? The language's interpreter against the graph itself, run by PyTorch.

A graph of the replay is run node by node through `torch.ops.aten`, on inputs that are drawn as the
task's own lie: in its types, and in float64. The rule is the judge's strict one, with its bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from npusmith.errors import NpusmithError, TaskError
from npusmith.lang import interpret
from npusmith.lang.extents import serves
from npusmith.plan import Plan
from npusmith.target.chips import Chip
from npusmith.task import tolerance
from npusmith.task.error_bounds import find_bounds
from npusmith.task.golden import Golden
from npusmith.task.graph import Argument, Graph, GraphInput, Ref
from npusmith.task.user import Inputs, run_model

RIGHT = "right"
Array = np.ndarray[Any, Any]
Draws = Mapping[str, Mapping[str, Any]]


def judge(plan: Plan, graph: Graph, draws: Draws, chip: Chip, seed: int = 0) -> str:
    """`right`, `wrong: ...`, `fails: ...` or `not judged: ...`: what it gives for drawn inputs."""
    torch.set_num_threads(1)
    tensors = [drawn(item, draws[item.name], seed + at) for at, item in enumerate(graph.inputs)]
    by_place = {_place(item): tensor for item, tensor in zip(graph.inputs, tensors, strict=True)}
    arrays = [array(by_place[_place(port)]) for port in plan.spec.inputs]
    shapes = {port.name: item.shape for port, item in zip(plan.spec.inputs, arrays, strict=True)}
    if not serves(plan.spec, shapes):
        return "not judged: the operator refuses the sizes of the smaller case"
    outputs = [(spec.shape, spec.dtype) for spec in map(graph.spec, graph.outputs)]
    try:
        results = interpret(plan.program, chip, arrays, outputs)
    except NpusmithError as error:
        return f"fails: {error.code}: {error.message}"[:200]
    return _compared(Run(graph), tensors, results)


def _compared(model: Run, tensors: Sequence[Tensor], results: Sequence[Array]) -> str:
    leaves, tree = pytree.tree_flatten(list(tensors))
    inputs = Inputs(tuple(leaves), tree)
    try:
        natives = run_model(model, inputs.args(), "graph")
    except TaskError as error:  # a number of the model's that is another at these sizes
        return f"not judged: {error.seen or error.message}"[:200]
    goldens, _ = Golden(model, "graph").run(inputs, natives)
    bounds = find_bounds(model, inputs, natives, goldens, "graph")
    for at, result in enumerate(results):
        bound = bounds[at].numpy() if bounds else None
        found = tolerance.compare(
            result, array(natives[at]), array(goldens[at]), tolerance.DEFAULT, bound
        )
        if not found.passed:
            return f"wrong: output {at}: {found.message}"[:200]
    return RIGHT


def _place(item: Any) -> tuple[str, int | str]:
    """What a graph input and its port have in common."""
    kind = getattr(item, "kind", None) or item.source.value
    return (kind, item.position if kind == "user" else item.target)


# ------------------------------------------------------------------------------------------ values


def drawn(item: GraphInput, how: Mapping[str, Any], seed: int) -> Tensor:
    """A tensor whose values lie as `how` says; the same in every run."""
    generator = np.random.default_rng(seed)
    low, high = how["low"], how["high"]
    dtype = getattr(torch, item.dtype.value)
    if how.get("distinct"):
        span = np.arange(low, max(high + 1, low + item.size))
        values = generator.permutation(span)[: item.size].reshape(item.shape)
    elif not item.dtype.is_float:
        values = generator.integers(low, high + 1, item.shape)
    elif "std" in how:
        values = generator.normal(how["mean"], how["std"], item.shape).clip(low, high)
    else:
        values = generator.uniform(low, high, item.shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def array(tensor: Tensor) -> Array:
    plain = tensor.detach().contiguous()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


# ------------------------------------------------------------------------------------------- graph


class Run(nn.Module):
    """A graph as a module: its inputs, in order, are the arguments of forward."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        held: dict[str, Any] = {
            item.name: tensor for item, tensor in zip(self.graph.inputs, tensors, strict=True)
        }
        for node in self.graph.nodes:
            args = [_value(item, held) for item in node.args]
            kwargs = {name: _value(item, held) for name, item in node.kwargs.items()}
            if "device" in kwargs:
                kwargs["device"] = "cpu"
            held[node.name] = operation(node.op)(*args, **kwargs)
        return tuple(held[name] for name in self.graph.outputs)


@cache
def operation(name: str) -> Any:
    """`aten.add.Tensor` as PyTorch has it."""
    if name == "aten.getitem":
        return operator.getitem
    space, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload)


def _value(item: Argument, held: Mapping[str, Any]) -> Any:
    if isinstance(item, tuple):
        return [_value(part, held) for part in item]
    if isinstance(item, Ref):
        return held[item.ref]
    if isinstance(item, str):
        found = getattr(torch, item, None)
        return (
            found if isinstance(found, (torch.dtype, torch.layout, torch.memory_format)) else item
        )
    return item
