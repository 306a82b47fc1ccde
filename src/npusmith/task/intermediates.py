"""A captured model that also returns values on the way: what each of several kernels leaves.

The captured program is the model then: it gives the model's own outputs first (captured.py has
compared the two), and behind them the values of the named nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch.utils import _pytree as pytree

from npusmith.errors import Place, TaskError
from npusmith.task.export import Captured
from npusmith.task.recurrent_layers import as_loops


def with_intermediates(captured: Captured, names: Sequence[str], path: str) -> Captured:
    """The same with these nodes of the graph as further outputs.

    Raises task-outputs for a name that is no tensor of the graph.
    """
    graph = captured.graph
    known = {node.name for node in graph.nodes if node.dtype is not None}
    for name in names:
        if name not in known:
            raise TaskError("task-outputs", f"the graph has no tensor {name}", Place(path))
    outputs = (*graph.outputs, *names)
    program = _Extended(captured.program, tuple(captured.names.get(name, name) for name in names))
    extended = graph.model_copy(update={"outputs": outputs, "returns": ""})
    return replace(captured, graph=extended, program=program)


@dataclass(frozen=True, slots=True)
class _Extended:
    """A captured program whose module returns the named nodes, too."""

    program: Any
    names: tuple[str, ...]

    def module(self) -> Any:
        model = as_loops(self.program.module())
        nodes = {node.name: node for node in model.graph.nodes}
        end = nodes["output"]
        own, _ = pytree.tree_flatten(end.args[0])
        flat = (*own, *(nodes[name] for name in self.names))
        end.args = (flat,)
        # a program's own structure of outputs, e.g. a single tensor, holds these no more
        codegen = model.graph._codegen
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=pytree.tree_structure(flat))
        model.recompile()
        return model
