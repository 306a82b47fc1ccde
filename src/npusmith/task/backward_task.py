"""The task of a module's gradients: `gradients_of(task, graph)`, a task file as any other.

Its Model takes forward's tensors, then a gradient for each output of floating-point elements, and
gives the gradients of floating-point inputs and of the parameters that forward reads, in this
order. It computes them by PyTorch's autograd, and so is its own reference in every precision.
"""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.errors import Place, TaskError
from npusmith.task.graph import Graph
from npusmith.task.load import Task

_TEXT = '''

# --- written by npusmith: the gradients of Model, as a model ---
import torch as _torch  # noqa: E402
from torch.utils._pytree import tree_leaves as _tree_leaves  # noqa: E402

_Forward, _forward_inputs = Model, get_inputs
_PARAMETERS = {parameters}  # that forward reads
_OUTPUTS = {outputs}  # places of those that have gradients


def _outputs_of(model, tensors):
    """Of a call: the outputs that have gradients."""
    given = [item for item in _tree_leaves(model(*tensors)) if _torch.is_tensor(item)]
    return [given[at] for at in _OUTPUTS]


class Model(_torch.nn.Module):
    """Gradients of forward's inputs and parameters, for gradients of its outputs."""

    def __init__(self, *args):
        super().__init__()
        self.model = _Forward(*args)

    def forward(self, *given):
        count = len(given) - len(_OUTPUTS)
        with _torch.enable_grad():
            tensors = [
                item.detach().requires_grad_() if item.is_floating_point() else item
                for item in given[:count]
            ]
            outputs = _outputs_of(self.model, tensors)
            wanted = [item for item in tensors if item.requires_grad]
            named = dict(self.model.named_parameters(remove_duplicate=False))
            wanted += [named[name] for name in _PARAMETERS]
            pairs = [
                (output, gradient)
                for output, gradient in zip(outputs, given[count:])
                if output.requires_grad
            ]
            return _torch.autograd.grad(
                [output for output, _ in pairs], wanted, [gradient for _, gradient in pairs],
                allow_unused=True, materialize_grads=True,
            )


def get_inputs():
    tensors = _forward_inputs()
    with _torch.no_grad():
        model = _Forward(*globals().get("get_init_inputs", list)())
        outputs = _outputs_of(model, tensors)
    return [*tensors, *(_torch.randn_like(output) for output in outputs)]
'''


@dataclass(frozen=True, slots=True)
class Gradients:
    """The text of the task of gradients, and what it is about.

    parameters: those that have a gradient, by path. outputs: places of forward's that have one.
    """

    text: str
    parameters: tuple[str, ...]
    outputs: tuple[int, ...]


def gradients_of(task: Task, graph: Graph) -> Gradients:
    """Of a task, whose graph this is. Raises task-gradients where forward has no such form."""
    outputs = tuple(at for at, name in enumerate(graph.outputs) if graph.spec(name).dtype.is_float)
    parameters = tuple(item.target for item in graph.inputs if item.kind == "parameter")
    why = ""
    if not task.has_inputs or graph.literals:
        why = "forward takes more than the tensors of get_inputs"
    elif not outputs:
        why = "no output has elements of floating point"
    if why:
        raise TaskError("task-gradients", why, Place(str(task.path)))
    text = _TEXT.format(outputs=list(outputs), parameters=list(parameters))
    return Gradients(task.text.rstrip() + text, parameters, outputs)
