"""Conditions on sizes that the model's arithmetic has as numbers (found by task/fixed_sizes.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from npusmith.errors import PlanError
from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Load, Program
from npusmith.ir.spec import Port, Source
from npusmith.ir.walk import statements
from npusmith.lang.usage import host_tensors
from npusmith.plan.scalars import ZERO
from npusmith.task.graph import Graph

_MAKERS = (
    ["full"], ["full_like"], ["new_full"], ["zeros"], ["zeros_like"], ["ones"], ["ones_like"],
    ["empty"], ["empty_permuted"], ["expand"],
)  # fmt: skip
_VIEWS = ["view"], ["reshape"], ["_unsafe_view"]


def fixed_sizes(graph: Graph, ports: Sequence[Port]) -> Iterator[Expr]:
    """`x.shape[0] == 1024`, or `x.shape[0] % 2 == 0`, of inputs that the kernel takes."""
    given = {port.position: port for port in ports if port.source is Source.USER}
    for position, axis in graph.fixed:
        if (port := given.get(position)) is not None:
            yield Binary(BinOp.EQ, Dim(port.name, axis), Const(port.shape[axis]))
    for position, axis, step in graph.steps:
        if (port := given.get(position)) is not None:
            rest = Binary(BinOp.MOD, Dim(port.name, axis), Const(step))
            yield Binary(BinOp.EQ, rest, ZERO)


def held_sizes(graph: Graph, called: Mapping[str, str]) -> Iterator[Expr]:
    """Conditions for a program that has numbers of the graph as they were captured.

    called: the program's names of inputs. Raises plan-fixed-size where a number follows from a size
    that the program is not given.
    """
    shapes = {item.name: item.shape for item in graph.inputs}
    for at in sorted(graph.classes_of(graph.symbolic or ())):
        axes = [(name, axis) for name, axis in graph.classes[at].axes if name in called]
        if not axes and graph.classes[at].form is not None:
            continue  # it follows from classes that are held, too
        if not axes:
            message = "a size that the model computes with is no size of what is sorted"
            raise PlanError("plan-fixed-size", message)
        for name, axis in axes:
            yield Binary(BinOp.EQ, Dim(called[name], axis), Const(shapes[name][axis]))


def unread(graph: Graph, ports: Sequence[Port]) -> str:
    """Fixed sizes of inputs that the kernel does not take, and so could not refuse."""
    given = {port.position for port in ports if port.source is Source.USER}
    bound = (*graph.fixed, *(item[:2] for item in graph.steps))
    lost = [(at, axis) for at, axis in bound if at not in given]
    made, viewed = (_sizes(graph, of) for of in (_MAKERS, _VIEWS))
    varied = graph.varied
    for item in graph.inputs:
        if item.kind == "user" and item.position not in given:
            lost += [(item.position, i) for i, size in enumerate(item.shape) if size in made]
            if varied:  # a view takes it, or it would be one of the sizes that captures vary
                alone = [i for i in range(len(item.shape)) if (item.name, i) not in varied]
                lost += [(item.position, i) for i in alone if item.shape[i] in viewed]
    return " and ".join(f"size {axis} of argument {at}" for at, axis in dict.fromkeys(lost))


def check_counted(program: Program, ports: Sequence[Port]) -> None:
    """Raises plan-fixed-size for an input that decides what is served and nothing else.

    `arange(x.shape[0])[:4]` asks for an x of four rows. The positions as a part of their own need
    its size.
    """
    parts = each_launch(program)
    loads = (stmt for part in parts for stmt in statements(part.kernel.body))
    used = {stmt.src.tensor for stmt in loads if isinstance(stmt, Load)} | host_tensors(program)
    used |= {part.tensor for launch in program.host.launches for _, part in launch.parts}
    for port in ports:
        if port.source is Source.USER and port.name not in used:
            message = (
                f"sizes of {port.name} decide which outputs there are, and none follows from it"
            )
            hint = "write the number out, or compute something from the input in the same module"
            raise PlanError("plan-fixed-size", message, hint=hint)


def _sizes(graph: Graph, names: Sequence[list[str]]) -> set[int]:
    """Of results whose sizes may be those of a tensor that the graph does not name."""
    nodes = (node for node in graph.nodes if node.op.split(".")[1:2] in names)
    return {size for node in nodes for size in node.shape} - {1}
