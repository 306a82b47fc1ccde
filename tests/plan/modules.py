"""Small modules, their graphs, and a comparison of what the writer makes of them with PyTorch.

A chip with 4 cores and a small unified buffer makes tiles short, so that rows of a few thousand
elements already take several tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from npusmith.ir.nodes import Program
from npusmith.ir.text import show
from npusmith.lang import check, interpret, parse
from npusmith.lang.extents import extent
from npusmith.lower.host import TILING
from npusmith.lower.served import input_conditions, output_conditions
from npusmith.plan import Plan, write
from npusmith.plan.versions import Version, taken
from npusmith.target.chips import find_chip
from npusmith.task.export import export_graph
from npusmith.task.graph import Graph
from npusmith.task.symbolic_sizes import find_symbolic
from npusmith.task.user import Inputs
from npusmith.task.varying_sizes import Model, find_varying

CHIP = replace(find_chip("910B2"), ub_total_bytes=40 * 1024, vector_cores=4, cube_cores=2)

Tensor = torch.Tensor
RELATIVE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Tensor) -> Any:
        return self.fn(*args)


def module(model: nn.Module | Callable[..., Any]) -> nn.Module:
    return (model if isinstance(model, nn.Module) else Call(model)).eval()


def capture(
    model: nn.Module | Callable[..., Any], *args: Tensor, as_in: Graph | None = None
) -> Graph:
    leaves, tree = pytree.tree_flatten(args)
    return export_graph(module(model), Inputs(tuple(leaves), tree), "task.py", as_in).graph


def capture_at(model: nn.Module | Callable[..., Any], *cases: tuple[Tensor, ...]) -> Graph:
    """The graph of the first case; the others say which of its numbers are sizes."""
    graphs = {str(_shapes(case)): capture(model, *case) for case in cases}
    own, *others = map(_shapes, cases)
    return find_symbolic(graphs[str(own)], own, (), others, lambda sized: graphs[str(sized)])


def capture_free(model: nn.Module | Callable[..., Any], *args: Tensor) -> Graph:
    """The graph as `generate` captures it: at all sizes that the model takes, too."""

    def drawn(shapes: list[tuple[int, ...]]) -> list[Tensor]:
        pairs = zip(shapes, args, strict=True)
        return [torch.randn(shape, device=arg.device).to(arg.dtype) for shape, arg in pairs]

    def refusal(shapes: list[tuple[int, ...]]) -> str:
        try:
            module(model)(*drawn(shapes))
        except (RuntimeError, ValueError, IndexError) as error:
            return str(error)
        return ""

    def graph_at(shapes: list[tuple[int, ...]]) -> Graph | str:
        return refusal(shapes) or capture(model, *drawn(shapes), as_in=own)

    own = capture(model, *args)
    at_sizes = Model(graph_at, refusal, 1, 20_000, patterns=("primes",))
    return find_varying(at_sizes, _shapes(args), own).graph


def _shapes(case: tuple[Tensor, ...]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in case]


def plan(model: nn.Module | Callable[..., Any], *args: Tensor) -> Plan:
    """The plan of a model; its text reads back as itself, is legal, and says what it serves."""
    return plan_graph(capture(model, *args))


def plan_graph(graph: Graph) -> Plan:
    made = write(graph, "op_custom", CHIP)
    check(made.program, CHIP)
    assert parse(show(made.program)) == made.program
    assert input_conditions(made.spec, TILING) or made.spec.legal is None
    assert output_conditions(made.spec, TILING) or made.spec.legal is None
    return made


def own_program(made: Plan) -> Program:
    """What runs at the captured sizes; versions for others have programs of their own."""
    versions = made.versions or (Version(made.program),)
    ports = (*made.spec.inputs, *made.spec.outputs)
    return taken(versions, {port.name: port.shape for port in ports}, CHIP).program


def general_program(made: Plan) -> Program:
    """What runs at all sizes that no other version is for."""
    return made.versions[-1].program if made.versions else made.program


def agrees(
    made: Plan, model: nn.Module | Callable[..., Any], *args: Tensor, loose: float = 1.0
) -> None:
    """The program's outputs on these inputs are PyTorch's, special values included."""
    with torch.no_grad():
        wanted = module(model)(*[arg.clone() for arg in args])
    wanted = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    arrays = [as_array(tensor) for tensor in _operands(made, module(model), args)]
    shapes = {port.name: array.shape for port, array in zip(made.spec.inputs, arrays, strict=True)}
    outputs = [
        (tuple(extent(dim, shapes) for dim in port.dims), port.dtype) for port in made.spec.outputs
    ]
    assert [shape for shape, _ in outputs] == [tuple(tensor.shape) for tensor in wanted]
    results = interpret(made.program, CHIP, arrays, outputs)
    for result, tensor in zip(results, wanted, strict=True):
        _close(result, tensor, loose)


def _operands(made: Plan, model: nn.Module, args: tuple[Tensor, ...]) -> list[Tensor]:
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return [
        args[port.position] if port.source.value == "user" else held[port.target]
        for port in made.spec.inputs
    ]


def as_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    plain = tensor.detach().contiguous()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def _close(result: np.ndarray[Any, Any], tensor: Tensor, loose: float) -> None:
    wanted = as_array(tensor)
    assert result.dtype == wanted.dtype
    if tensor.dtype not in RELATIVE:
        np.testing.assert_array_equal(result, wanted)
        return
    limit = RELATIVE[tensor.dtype] * loose
    wide, expected = result.astype(np.float64), wanted.astype(np.float64)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(
        wide, expected, rtol=limit, atol=limit * min(scale, 1.0) * 0.1, equal_nan=True
    )
