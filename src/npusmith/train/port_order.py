"""The compiler's program with its inputs in the order in which a task lists them.

The compiler takes inputs as the graph has them, parameters first; whoever writes for a task's list
of tensors (agent/ports.py) has the arguments of forward first. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from npusmith.agent.ports import Ports
from npusmith.ir.nodes import Program, Tensor, TensorRole


def in_port_order(program: Program, ports: Ports) -> Program:
    """Inputs that are not the task's, of kernels that are launched with other names, stay put."""
    place = {port.name: number for number, port in enumerate(ports.inputs)}

    def ordered(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
        rows = tuple(tensors)
        inputs = [item for item in rows if item.role is TensorRole.INPUT]
        if not all(item.name in place for item in inputs):
            return rows
        moved = sorted(inputs, key=lambda item: place[item.name])
        return (*moved, *(item for item in rows if item.role is not TensorRole.INPUT))

    kernels = tuple(replace(item, tensors=ordered(item.tensors)) for item in program.kernels)
    names = program.host.tensors
    inputs = [name for name in names if name in place]
    rest = [name for name in names if name not in place]
    tensors = (*sorted(inputs, key=place.__getitem__), *rest)
    return replace(program, kernels=kernels, host=replace(program.host, tensors=tensors))
