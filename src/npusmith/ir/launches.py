"""Programs of several kernels, or of kernels that are launched several times, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npusmith.ir.nodes import Kernel, Launch, Program
from npusmith.ir.rebuild import map_statements, with_names

BLOCK_VECTOR_CORES = 2  # beside the one cube core of a block


def each_launch(program: Program) -> tuple[Program, ...]:
    """A program of one kernel for each launch, in their order, over the tensors that it binds."""
    if _is_single(program):
        return (program,)
    kernels = _kernels(program)
    return tuple(
        replace(
            program,
            host=replace(program.host, launches=(replace(launch, tensors=()),)),
            kernels=(_bound(program, kernels[launch.kernel], launch),),
        )
        for launch in program.host.launches
        if launch.kernel in kernels
    )


def each_kernel(program: Program) -> tuple[Program, ...]:
    """A program of one kernel with all of its launches, for each kernel, in their order."""
    if len(program.kernels) == 1:
        return (program,)
    return tuple(
        replace(
            program,
            host=replace(
                program.host,
                launches=tuple(
                    item for item in program.host.launches if item.kernel == kernel.name
                ),
            ),
            kernels=(kernel,),
        )
        for kernel in _kernels(program).values()
    )


def joined(parts: Sequence[Program], whole: Program) -> Program:
    """The program that has these kernels: what `each_kernel` took apart, with `whole`'s order."""
    launches = {part.kernel.name: iter(part.host.launches) for part in parts}
    ordered = tuple(next(launches[item.kernel]) for item in whole.host.launches)
    kernels = tuple(part.kernel for part in parts)
    return replace(parts[0], host=replace(parts[0].host, launches=ordered), kernels=kernels)


def _is_single(program: Program) -> bool:
    host = program.host
    return len(program.kernels) == 1 and len(host.launches) == 1 and not host.launch.tensors


def _kernels(program: Program) -> dict[str, Kernel]:
    """By name, each with how many cores of a block it runs on."""
    mixed = program.is_mixed
    return {
        kernel.name: replace(kernel, block_cores=BLOCK_VECTOR_CORES)
        if mixed and not kernel.is_cube
        else kernel
        for kernel in program.kernels
    }


def _bound(program: Program, kernel: Kernel, launch: Launch) -> Kernel:
    if not launch.tensors:
        return kernel
    new = dict(launch.tensors)
    body = map_statements(kernel.body, lambda stmt: with_names(stmt, new))
    return replace(kernel, tensors=program.bound(kernel, launch), body=body)
