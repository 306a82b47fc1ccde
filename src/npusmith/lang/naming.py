"""Declarations: reserved and doubled names, the order of tensors, what host and kernel share."""

from __future__ import annotations

from itertools import groupby

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Alloc,
    Barrier,
    Deque,
    Enque,
    Event,
    Free,
    Kernel,
    Program,
    Stmt,
    Tensor,
    TensorRole,
)
from npusmith.ir.walk import statements, target
from npusmith.lang.log import At, Log
from npusmith.lang.source import short
from npusmith.lang.words import why_reserved

_ORDER = (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.SCRATCH)


def check_names(program: Program, file: str) -> Log:
    """Everything that is declared has a name of its own, and the two functions agree."""
    log = Log(file, program.host.name)
    _check_variables(program.host.body, log)
    _check_loops(program, log)
    _check_tensors(program, log)
    for kernel in program.kernels:
        own = Log(file, kernel.name)
        _check_kernel(program, kernel, own)
        log.errors += own.errors
    return log


def _check_kernel(program: Program, kernel: Kernel, log: Log) -> None:
    _check_declared(program, kernel, log)
    _check_variables(tuple(statements(kernel.body)), log)
    order = [_ORDER.index(item.role) for item in kernel.tensors]
    if order != sorted(order):
        message = "tensors come in the order inputs, outputs, scratch"
        log.add("lang-tensor", message, kernel.line, legal="inputs, outputs, scratch")
    for stmt in statements(kernel.body):
        if isinstance(stmt, Alloc | Enque | Deque | Free | Barrier | Event):
            log.add("lang-lowered", "a pass has been at this program", stmt)


def _declared(program: Program, kernel: Kernel) -> list[tuple[str, str, At]]:
    found: list[tuple[str, str, At]] = [(name, "constant", 0) for name, _ in program.consts]
    found += [(item.name, "tensor", kernel.line) for item in kernel.tensors]
    found += [(item.name, "parameter", kernel.line) for item in kernel.scalars]
    found += [(item.name, "buffer", item) for item in kernel.buffers]
    return found


def _check_declared(program: Program, kernel: Kernel, log: Log) -> None:
    seen: dict[str, str] = {}
    for name, what, at in _declared(program, kernel):
        _check_reserved(name, at, log)
        if name in seen:
            message = f"{name!r} is the name of a {seen[name]} and of a {what}"
            log.add("lang-name", message, at)
        seen.setdefault(name, what)
    for function in (program.host, kernel):
        _check_reserved(function.name, function.line, log, function=True)
    for item in kernel.buffers:
        if item.dtype is DType.BOOL:
            log.add("lang-dtype", "a buffer of bools", item, hint="uint8, one byte per element")


def _check_reserved(name: str, at: At, log: Log, *, function: bool = False) -> None:
    why = why_reserved(name, function=function)
    if why:
        hint = f"{name}_" if not name.endswith("_") and name.isascii() and "__" not in name else ""
        message = f"{short(name)!r} cannot be a name: {why}"
        log.add("lang-name", message, at, hint=f"for example {hint}" if hint else "")


def _check_variables(body: tuple[Stmt, ...], log: Log) -> None:
    seen: set[str] = set()
    for stmt in body:
        name = target(stmt)
        if name and name not in seen:
            seen.add(name)
            _check_reserved(name, stmt, log)


def _check_loops(program: Program, log: Log) -> None:
    """Each loop of the host has a variable that nothing else is called."""
    loops = [loop for loop, _ in groupby(item.loop for item in program.host.launches) if loop]
    taken = {*dict(program.consts), *map(target, program.host.body), *program.host.tensors}
    for loop in loops:
        _check_reserved(loop.var, loop.line, log)
        if loop.var in taken:
            message = f"{loop.var!r} is a loop's variable, and something else of the host's"
            log.add("lang-name", message, loop.line, hint="a name of its own for each loop")
        taken.add(loop.var)


def _check_tensors(program: Program, log: Log) -> None:
    host, first = program.host, program.kernels[0]
    known: dict[str, Tensor] = {}
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for launch in program.host.launches:
        if (kernel := kernels.get(launch.kernel)) is None:
            continue
        for item in program.bound(kernel, launch):
            if known.setdefault(item.name, item) != item:
                other = known[item.name]
                log.add(
                    "lang-tensor",
                    f"{item.name!r} is {other.role.value}({other.dtype.value}) in one kernel and "
                    f"{item.role.value}({item.dtype.value}) in another", kernel.line,
                    legal="tensors of one name are one tensor, with one role and element type",
                )  # fmt: skip
    if not program.outputs:
        log.add("lang-tensor", "the kernel has no output", first.line, hint="y: output(float32)")
    shared = tuple(item.name for item in (*program.inputs, *program.outputs))
    if host.tensors != shared:
        log.add(
            "lang-param", f"the host's parameters are ({', '.join(map(short, host.tensors))})",
            host.line, legal=f"the kernels' inputs and outputs: ({', '.join(shared)})",
            hint=f"def {host.name}({', '.join(shared)}):",
        )  # fmt: skip
