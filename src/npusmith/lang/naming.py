"""Declarations: reserved and doubled names, the order of tensors, what host and kernel share."""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Alloc,
    Assign,
    Barrier,
    Deque,
    Enque,
    Event,
    For,
    Free,
    Program,
    TensorRole,
)
from npusmith.ir.walk import statements
from npusmith.lang.log import At, Log
from npusmith.lang.source import short
from npusmith.lang.words import why_reserved

_ORDER = (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.SCRATCH)


def check_names(program: Program, file: str) -> Log:
    """Everything that is declared has a name of its own, and the two functions agree."""
    log = Log(file, program.kernel.name)
    _check_declared(program, log)
    _check_variables(program, log)
    _check_tensors(program, log)
    for stmt in statements(program.kernel.body):
        if isinstance(stmt, Alloc | Enque | Deque | Free | Barrier | Event):
            log.add("lang-lowered", "a pass has been at this program", stmt)
    return log


def _declared(program: Program) -> list[tuple[str, str, At]]:
    kernel = program.kernel
    found: list[tuple[str, str, At]] = [(name, "constant", 0) for name, _ in program.consts]
    found += [(item.name, "tensor", kernel.line) for item in kernel.tensors]
    found += [(item.name, "parameter", kernel.line) for item in kernel.scalars]
    found += [(item.name, "buffer", item) for item in kernel.buffers]
    return found


def _check_declared(program: Program, log: Log) -> None:
    seen: dict[str, str] = {}
    for name, what, at in _declared(program):
        _check_reserved(name, at, log)
        if name in seen:
            message = f"{name!r} is the name of a {seen[name]} and of a {what}"
            log.add("lang-name", message, at)
        seen.setdefault(name, what)
    for function in (program.host, program.kernel):
        _check_reserved(function.name, function.line, log, function=True)
    for item in program.kernel.buffers:
        if item.dtype is DType.BOOL:
            log.add("lang-dtype", "a buffer of bools", item, hint="uint8, one byte per element")


def _check_reserved(name: str, at: At, log: Log, *, function: bool = False) -> None:
    why = why_reserved(name, function=function)
    if why:
        hint = f"{name}_" if not name.endswith("_") and name.isascii() and "__" not in name else ""
        message = f"{short(name)!r} cannot be a name: {why}"
        log.add("lang-name", message, at, hint=f"for example {hint}" if hint else "")


def _check_variables(program: Program, log: Log) -> None:
    seen: set[str] = set()
    for stmt in (*program.host.body, *statements(program.kernel.body)):
        name = stmt.target if isinstance(stmt, Assign) else ""
        name = stmt.var if isinstance(stmt, For) else name
        if name and name not in seen:
            seen.add(name)
            _check_reserved(name, stmt, log)


def _check_tensors(program: Program, log: Log) -> None:
    kernel, host = program.kernel, program.host
    order = [_ORDER.index(item.role) for item in kernel.tensors]
    if order != sorted(order):
        message = "tensors come in the order inputs, outputs, scratch"
        log.add("lang-tensor", message, kernel.line, legal="inputs, outputs, scratch")
    if not program.outputs:
        log.add("lang-tensor", "the kernel has no output", kernel.line, hint="y: output(float32)")
    shared = tuple(item.name for item in (*program.inputs, *program.outputs))
    if host.tensors != shared:
        log.add(
            "lang-param", f"the host's parameters are ({', '.join(map(short, host.tensors))})",
            host.line, legal=f"the kernel's inputs and outputs: ({', '.join(shared)})",
            hint=f"def {host.name}({', '.join(shared)}):",
        )  # fmt: skip
