"""`torch.compile(model, backend="npusmith")`: parts of a model run as operators on the twin.

PyTorch hands over graphs of ATen operations. Those that the compiler has a row for are gathered
into parts, as large as can be; each becomes an operator at its first call (api.operator) and runs
on the twin from then on. What is left, what turns out to be unsupported and the backward pass,
PyTorch computes. `coverage()` says which is which.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils._pytree import tree_leaves

from npusmith import api
from npusmith.errors import NpusmithError
from npusmith.plan.operations import BY_EXPORT, written
from npusmith.task.decompositions import taken_apart
from npusmith.task.user import known_dtype

_LOG = logging.getLogger("npusmith")
_OUT = Path("out", "torch_compile")
_SHOWN = 6  # operations that a line of the log names
_NUMBER = itertools.count()  # of parts of this process


@dataclass(slots=True)
class Part:
    """Operations of a compiled graph, and who computes them; `why`: what keeps it off the twin."""

    operations: list[str]
    folder: Path | None  # of its operators; None where an operation has no row in the table
    why: str = ""
    calls: int = 0

    @property
    def on_twin(self) -> bool:
        return self.folder is not None and not self.why


_PARTS: list[Part] = []


def coverage() -> Sequence[Part]:
    """All parts of what this process has compiled, in order.

    A part that has not been called yet (`calls`) may still turn out to be unsupported.
    """
    return tuple(_PARTS)


def backend(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend. `options`: those of npusmith.generate; `out` is the folder of all parts."""
    chosen: api.Options = {"search": 0, "whole": True, **(options or {})}  # type: ignore[typeddict-item]

    def forward(found: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return boxed(_on_twin(found, chosen).forward)

    def backward(found: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return boxed(found.forward)

    def boxed(call: Callable[..., Any]) -> Callable[..., Any]:
        made: Callable[..., Any] = make_boxed_func(call)
        return made

    compiled: Callable[..., Any] = aot_autograd(fw_compiler=forward, bw_compiler=backward)(
        graph, inputs
    )
    return compiled


class _Support(OperatorSupportBase):  # type: ignore[misc]
    """Operations with a row in the compiler's table, on tensors of types that a chip has."""

    def __init__(self) -> None:
        names = {name for row in written().values() for name in row}
        self.names = names | taken_apart() | set(BY_EXPORT)

    def is_node_supported(self, submodules: Mapping[str, Any], node: torch.fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if getattr(node.target, "__name__", "") == "getitem":
            source = node.args[0]
            return isinstance(source, torch.fx.Node) and self.is_node_supported(submodules, source)
        packet = getattr(node.target, "overloadpacket", None)
        known = getattr(packet, "__name__", "") in self.names
        return known and all(map(_is_real, (node, *node.all_input_nodes)))


def _is_real(node: torch.fx.Node) -> bool:
    values = tree_leaves(node.meta.get("val"))
    return all(known_dtype(item) for item in values if isinstance(item, torch.Tensor))


class _Operator(torch.nn.Module):  # type: ignore[misc]
    """A part: operators on the twin, or the operations themselves where there can be none."""

    def __init__(self, graph: torch.fx.GraphModule, part: Part, options: api.Options) -> None:
        super().__init__()
        self.graph, self.part = graph, part
        own: api.Options = {**options, "out": part.folder or _OUT}
        self.run = api.operator(graph, **own)
        self.strides = [_order(node) for node in _results(graph)]

    def forward(self, *inputs: Any) -> Any:
        self.part.calls += 1
        if not self.part.why:
            try:
                return self._laid_out(self.run(*inputs))
            except NpusmithError as error:
                self.part.why = f"{error.code}: {error.message}"
                _LOG.warning("%s: left to PyTorch: %s", self.part.folder, self.part.why)
        return self.graph(*inputs)

    def _laid_out(self, results: Any) -> Any:
        """In memory as PyTorch would have them: views that come later count on it."""
        single = not isinstance(results, tuple)
        found = (results,) if single else results
        made = tuple(
            item if order == sorted(order) else _permuted(item, order)
            for item, order in zip(found, self.strides, strict=True)
        )
        return made[0] if single else made


def _permuted(item: torch.Tensor, order: list[int]) -> torch.Tensor:
    return torch.empty_permuted(item.shape, order, dtype=item.dtype).copy_(item)


def _results(graph: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    (end,) = (node for node in graph.graph.nodes if node.op == "output")
    yield from end.all_input_nodes if isinstance(end.args[0], torch.fx.Node) else end.args[0]


def _order(node: torch.fx.Node) -> list[int]:
    """Its dimensions from the outermost to the innermost in memory."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return []
    # a symbolic step counts as in the example
    strides = [step.node.hint if hasattr(step, "node") else step for step in value.stride()]
    return sorted(range(len(strides)), key=lambda axis: -strides[axis])


def _on_twin(graph: torch.fx.GraphModule, options: api.Options) -> torch.fx.GraphModule:
    """The graph with parts as operators."""
    support = _Support()
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    base = Path(options.get("out") or _OUT)
    left = _names(node for node in graph.graph.nodes if not support.is_node_supported({}, node))
    inside = [_names(part.nodes) for part in parts]
    fused = partitioner.fuse_partitions(parts, prefix="part_")
    for number, operations in enumerate(inside):
        name = f"part_{number}"
        row = Part(operations, base / str(next(_NUMBER)))
        _PARTS.append(row)
        own = fused.get_submodule(name)
        fused.delete_submodule(name)
        fused.add_submodule(name, _Operator(own, row, options))
        _LOG.info("%s: %s", row.folder, _shown(operations))
    if left:
        _PARTS.append(Part(left, None, "operations without a row in the compiler's table"))
        _LOG.info("left to PyTorch: %s", _shown(left))
    return fused


def _names(nodes: Any) -> list[str]:
    """ATen operations, as often as they stand there."""
    targets = (node.target for node in nodes if node.op == "call_function")
    return [str(target) for target in targets if hasattr(target, "overloadpacket")]


def _shown(operations: Sequence[str]) -> str:
    more = len(operations) - _SHOWN
    return ", ".join(operations[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
