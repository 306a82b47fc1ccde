"""What the deterministic writer writes, as a prompt shows it: short, and in the task's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Kernel, Program
from npusmith.ir.text import show
from npusmith.plan import write
from npusmith.plan.general_version import general_version
from npusmith.plan.names import tensor_name
from npusmith.plan.pytorch_fallback import with_fallback
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph


def written(graph: Graph, operator: str, chip: Chip) -> Program:
    """The version for all sizes, its inputs in the order in which a task lists them.

    Raises PlanError as the writer does.
    """
    return in_order(general_version(write(graph, operator, chip).program), port_names(graph))


def port_names(graph: Graph) -> list[str]:
    """Of an operator's inputs, in the order in which a task lists them."""
    used: set[str] = set()
    return [tensor_name(item.name, used) for item in graph.operator_inputs]


@dataclass(frozen=True, slots=True)
class Start:
    """What the writer has of a task. `programs`: texts; `left`: operations that it refuses, why."""

    programs: tuple[str, ...]
    left: tuple[str, ...] = ()


def find_start(graph: Graph, operator: str, chip: Chip, choice: str) -> Start | None:
    """Programs to begin with; None where there are none, or none are asked for.

    `choice`: "parts" for those of a graph that the writer refuses as a whole, "whole" for the whole
    program as well, "none".
    """
    if choice == "none":
        return None
    try:
        whole = written(graph, operator, chip)
        return Start((show(whole),)) if choice == "whole" else None
    except PlanError as error:
        refused = error
    try:
        found = with_fallback(graph, operator, chip, refused)
    except PlanError:
        return None
    left = tuple(f"{item.node.op.removeprefix('aten.')}: {item.why}" for item in found.left)
    return Start(tuple(show(general_version(plan.program)) for plan in found.plans), left)


def in_order(program: Program, order: Sequence[str]) -> Program:
    """The program with its inputs in this order of names; nothing else changes.

    The writer takes inputs as the graph has them, parameters first; a task (agent/ports.py) lists
    the arguments of forward first.
    """
    places = {name: at for at, name in enumerate(order)}
    count = len(program.inputs)
    names = program.host.tensors
    inputs = sorted(names[:count], key=lambda name: places.get(name, len(places)))
    host = replace(program.host, tensors=(*inputs, *names[count:]))
    return replace(
        program, host=host, kernels=tuple(_ordered(item, inputs) for item in program.kernels)
    )


def _ordered(kernel: Kernel, inputs: list[str]) -> Kernel:
    """Inputs of these names change places among each other; all else stays where it is."""
    own = [item for item in kernel.tensors if item.name in inputs]
    ordered = iter(sorted(own, key=lambda item: inputs.index(item.name)))
    return replace(
        kernel,
        tensors=tuple(next(ordered) if item in own else item for item in kernel.tensors),
    )
