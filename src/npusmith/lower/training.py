"""An operator and that of its gradients as one package, with a model that autograd can train.

`training_files(forward, backward, chip)`: the files of a package of two operators, and a
model_new.py whose ModelNew calls the one in forward and the other in backward.
"""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.errors import PlanError
from npusmith.ir.nodes import Program
from npusmith.ir.returned import plain
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.lower.model import LIBRARY, argument, call_text, returned_lines, tensor_names
from npusmith.lower.project import package_files
from npusmith.lower.render import render
from npusmith.target.chips import Chip

_INNER = "model."  # where the task of the gradients has the model (task/backward_task.py)
Lowered = tuple[Program, OpSpec]


def training_files(
    forward: Lowered,
    backward: Lowered,
    differentiated: Sequence[str],
    gradients: Sequence[int],
    chip: Chip,
) -> dict[str, str]:
    """The package's files by name.

    differentiated: the parameters that have a gradient, in the order of the model. gradients: the
    places of forward's outputs that have one. Raises plan-backward where the operators take tensors
    that forward makes.
    """
    files = package_files((forward, backward), forward[1].name, chip, left=None)
    return files | {"model_new.py": _model(forward[1], backward[1], differentiated, gradients)}


def _model(
    forward: OpSpec, backward: OpSpec, differentiated: Sequence[str], gradients: Sequence[int]
) -> str:
    if forward.constants or backward.constants:
        message = "tensors that forward makes are part of the operator"
        raise PlanError("plan-backward", message, seen=forward.name)
    users = 1 + max((port.position for port in forward.inputs if _is_user(port)), default=-1)
    names = tensor_names(forward.task_source, range(users))
    if len(names) != users:
        message = "forward has parameters that are no plain names of tensors"
        raise PlanError("plan-backward", message, seen=forward.name)
    taken = _State(users)
    ours = [taken.place(port, "") for port in forward.inputs]
    theirs = [
        f"gradients[{gradients[port.position - users]}].contiguous()"
        if _is_user(port) and port.position >= users
        else f"tensors[{taken.place(port, _INNER)}]"
        for port in backward.inputs
    ]
    floating = [at for at in range(users) if at in _floating(forward, backward)]
    wanted = [*floating, *(taken.of(name) for name in differentiated)]
    if len(wanted) != len(backward.outputs):
        message = f"{len(backward.outputs)} gradients of {len(wanted)} tensors"
        raise PlanError("plan-backward", message, seen=backward.name)
    held = [argument(Source.PARAMETER, name, 0, names) for name in taken.targets]
    return render(
        "model_training.py.j2", source=forward.task_source, library=LIBRARY, forward=forward,
        backward=backward, names=names, held=held,
        ours=call_text(forward.name, [f"tensors[{at}]" for at in ours]),
        theirs=call_text(backward.name, theirs),
        places={at: number for number, at in enumerate(wanted)},
        count=users + len(held),
        lines=_handed_over(forward, f"_Operator.apply({', '.join([*names, *held])})"),
    )  # fmt: skip


def _handed_over(forward: OpSpec, found: str) -> list[str]:
    count = len(forward.outputs)
    if forward.returns in ("", plain(count)):
        return [f"return {found}"]
    return returned_lines(forward.returns, found, count)


def _is_user(port: Port) -> bool:
    return port.source is Source.USER


def _floating(forward: OpSpec, backward: OpSpec) -> set[int]:
    """Places of forward's tensors of floating-point elements, as far as an operator takes them."""
    return {
        port.position
        for port in (*forward.inputs, *backward.inputs)
        if _is_user(port) and port.dtype.is_float
    }


class _State:
    """Places among the tensors of a call: forward's own, then parameters and buffers by path."""

    def __init__(self, users: int) -> None:
        self.users, self.targets = users, list[str]()

    def of(self, target: str) -> int:
        if target not in self.targets:
            self.targets.append(target)
        return self.users + self.targets.index(target)

    def place(self, port: Port, prefix: str) -> int:
        return port.position if _is_user(port) else self.of(port.target.removeprefix(prefix))
