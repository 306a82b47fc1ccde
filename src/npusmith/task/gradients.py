"""Forwards that compute gradients: `traced(model, inputs)`, a module that torch.export takes.

torch.export traces above PyTorch's autograd and cannot follow a call of it; `make_fx` traces below,
where a gradient is a call of ATen like any other. What comes out has the parameters and buffers of
the model under their names, so that the export of it has the same signature. Runs in the sandboxed
child only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from npusmith.task.traced_module import TracedModule

# What torch.export says where forward asks for a gradient, by torch.autograd and by torch.func.
_SIGNS = ("fake tensor in the exported program constant's list", "functorch tensor")


def is_of_gradients(message: str) -> bool:
    """Whether torch.export gave up because forward computes gradients."""
    return any(sign in message for sign in _SIGNS)


def traced(model: torch.nn.Module, inputs: tuple[Any, ...]) -> torch.nn.Module:
    """The calls of ATen that `model` makes on these inputs, as a module with the same state.

    What forward does on the way, such as keeping a value in an attribute, is done once, here.
    Raises what forward raises, and what make_fx does for tensors whose values decide.
    """
    leaves, form = pytree.tree_flatten(inputs)
    places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def run(state: dict[str, torch.Tensor], *tensors: torch.Tensor) -> Any:
        given = list(leaves)
        for at, tensor in zip(places, tensors, strict=True):
            given[at] = tensor
        return functional_call(model, state, pytree.tree_unflatten(given, form))

    # leaves of their own, of which forward may ask for the gradients
    state = {
        name: value.detach().requires_grad_(value.requires_grad)
        for name, value in _state(model).items()
    }
    graph = make_fx(run)(state, *(leaves[at] for at in places))

    def run_graph(*given: Any, **named: Any) -> Any:
        leaves = pytree.tree_leaves((given, named))
        return graph(_state(model), *(leaf for leaf in leaves if isinstance(leaf, torch.Tensor)))

    return TracedModule(model, run_graph, model.forward)


def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
