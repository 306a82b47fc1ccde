"""`outline(task)`: the graph of a task at its own shapes, however large, without its values.

The task's code runs in the box on tensors that have shapes but no memory. Nothing is computed, so
nothing is checked: judging a candidate takes `prepare`. Also the boxed child (`main`).
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from npusmith.errors import Place, TaskError
from npusmith.sandbox.folder import temporary_folder
from npusmith.task import wire
from npusmith.task.graph import Graph
from npusmith.task.load import Task
from npusmith.task.trials import Limits, make_orders, run_child

if TYPE_CHECKING:
    from npusmith.task.user import Inputs

_GRAPH = "graph.json"
_DRAWS = 2
_TRIED = ("primes",)  # the sets of other shapes (shapes.py) that are captured, too


def outline(task: Task, *, training: bool = False, limits: Limits | None = None) -> Graph:
    """The graph that `prepare` would capture, or that of the model in training mode.

    Raises TaskError as `prepare` does; of a model that needs values on the way, task-export.
    """
    with temporary_folder("npusmith-outline-") as name:
        folder = Path(name).resolve()
        run_child(
            task,
            folder,
            make_orders(task, folder, training=training),
            limits or Limits(),
            __name__,
            _GRAPH,
        )
        try:
            return Graph.model_validate_json((folder / _GRAPH).read_bytes())
        except (OSError, ValidationError) as error:
            place = Place(str(task.path))
            raise TaskError(
                "task-result", "the sandboxed run left a graph that cannot be used", place,
                seen=str(error)[:300],
            ) from error  # fmt: skip


# --------------------------------------------------------------------------------- the boxed child


def main() -> None:
    """Reads Orders on standard input, leaves graph.json or error.json."""
    from npusmith.task.child import leave

    leave(_GRAPH, capture)


def capture(orders: wire.Orders) -> Graph:
    """The child's work; PyTorch then makes tensors without memory, on one thread."""
    import torch

    from npusmith.task.export import warm_up
    from npusmith.task.meta_constants import MetaConstants

    warm_up()
    torch.set_num_threads(1)
    torch.set_default_device("meta")
    torch.empty(0)  # PyTorch notes now which functions obey the device: before the task runs
    with MetaConstants():
        return _graph(orders)


def _graph(orders: wire.Orders) -> Graph:
    import torch

    from npusmith.task.export import export_graph
    from npusmith.task.shapes import Shape
    from npusmith.task.user import build_model, load_file, run_model
    from npusmith.task.varying_sizes import Model, find_varying

    path = orders.path
    module = load_file(path, orders.text)
    try:
        model = build_model(module, path, orders.model_seed)
    except TaskError:  # its code needs values
        with torch.device("cpu"):
            model = build_model(module, path, orders.model_seed).to("meta")
    model.train(orders.training)
    own = _own_inputs(module, orders)
    graph = export_graph(model, own, path).graph

    def resized(sized: list[Shape]) -> Inputs:
        pairs = zip(own.tensors, sized, strict=True)
        return own.replace([tensor.new_empty(shape) for tensor, shape in pairs])

    def refusal(sized: list[Shape]) -> str:
        try:
            outputs = run_model(model, resized(sized).args(), path)
        except TaskError as error:
            return error.message
        return "" if all(tensor.numel() for tensor in outputs) else "an output is empty"

    def captured(sized: list[Shape]) -> Graph | str:
        """The graph at these shapes, or why there is none."""
        try:
            return export_graph(model, resized(sized), path, graph).graph
        except TaskError as error:
            return error.message

    at_sizes = Model(captured, refusal, orders.model_seed, orders.shape_elements, None, _TRIED)
    return find_varying(at_sizes, own.shapes, graph).graph


def _own_inputs(module: types.ModuleType, orders: wire.Orders) -> Inputs:
    """The task's inputs without memory; where their code needs values, they are drawn first.

    Then numbers and shapes have to be those of another draw, too.
    """
    import torch
    from torch.utils import _pytree as pytree

    from npusmith.task.user import Inputs, set_seed, user_code

    def made(seed: int) -> tuple[list[Any], Any]:
        set_seed(seed)
        with user_code(orders.path, "get_inputs()"):
            values = module.get_inputs() if orders.has_inputs else module.get_input_groups()[0]
            leaves, tree = pytree.tree_flatten(list(values))
        found = (item.to("meta") if isinstance(item, torch.Tensor) else item for item in leaves)
        return list(found), tree

    def known(leaves: list[Any]) -> list[Any]:
        return [
            (item.shape, item.dtype) if isinstance(item, torch.Tensor) else item for item in leaves
        ]

    try:
        leaves, tree = made(orders.model_seed)
    except TaskError as error:
        if error.code != "task-raised":
            raise
        with torch.device("cpu"):
            (leaves, tree), (others, _) = (made(orders.model_seed + at) for at in range(_DRAWS))
        if known(leaves) != known(others):
            raise  # what a draw decides is none of the module's constants
    return Inputs(tuple(leaves), tree)
