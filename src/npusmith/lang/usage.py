"""What is declared is used, and what is needed is written."""

from __future__ import annotations

from npusmith.ir.launches import each_kernel, each_launch, side_by_side
from npusmith.ir.nodes import Assign, Combine, Load, Program, Store, TensorRole
from npusmith.ir.walk import names, operands, sized_tensors, statements
from npusmith.lang.lifetimes import Part, drains, fills, find_parts, own_reads, own_writes
from npusmith.lang.log import Log


def check_usage(program: Program, file: str) -> Log:
    """Unused declarations, unwritten outputs, buffers that are read and never written."""
    log = Log(file, program.host.name)
    for part in each_kernel(program):
        own = Log(file, part.kernel.name)
        _check_buffers(part, own)
        _check_parameters(part, own)
        log.errors += own.errors
    stored: set[str] = set()
    parts = each_launch(program)
    ever = {name for part in parts for name in _stored(part)}
    for group in side_by_side(parts):
        beside = stored.union(*map(_stored, group)) if len(group) > 1 else stored
        for part in group:
            own = Log(file, part.kernel.name)
            # in a loop, a part of a tensor may be one that a later launch has stored in the last
            # round; side by side, each may load what the other has stored
            _check_tensors(part, ever if part.host.launch.parts else beside, own)
            stored |= _stored(part)
            log.errors += own.errors
    return log


def _check_parameters(program: Program, log: Log) -> None:
    used = {
        name
        for stmt in statements(program.kernel.body)
        for expr in operands(stmt)
        for name in names(expr)
    }
    for item in program.kernel.scalars:
        if item.name not in used:
            message = f"the parameter {item.name!r} is never used"
            log.add("lang-unused", message, program.kernel.line)


def _check_buffers(program: Program, log: Log) -> None:
    everything = list(statements(program.kernel.body))
    reads = {name for stmt in everything for name in own_reads(stmt)}
    writes = {name for stmt in everything for name in own_writes(stmt)}
    copied = {name for stmt in program.kernel.body for name in (*fills(stmt), *drains(stmt))}
    parts = find_parts(program)
    for item in program.kernel.buffers:
        if item.name not in reads | writes | copied:
            log.add("lang-unused", f"the buffer {item.name!r} is never used", item)
        elif parts[item.name] is Part.LOADED and item.name not in reads:
            log.add("lang-unused", f"the buffer {item.name!r} is loaded and never read", item)
        elif parts[item.name] in (Part.SCRATCH, Part.STORED) and item.name not in writes:
            what = "stored" if parts[item.name] is Part.STORED else "read"
            message = f"the buffer {item.name!r} is {what} and never written"
            log.add("lang-unwritten", message, item)


def host_tensors(program: Program) -> set[str]:
    """Tensors of which the host function takes a size."""
    host = program.host
    exprs = [stmt.value for stmt in host.body if isinstance(stmt, Assign)]
    for launch in host.launches:
        exprs += [*launch.numbers, *(part.start for _, part in launch.parts)]
    return sized_tensors(exprs)


def _stored(program: Program) -> set[str]:
    """Tensors that a kernel stores to, as the host calls them."""
    outer = {own: part.tensor for own, part in program.host.launch.parts}
    found = set()
    for stmt in statements(program.kernel.body):
        match stmt:
            case Store(dst=to):
                found.add(outer.get(to.tensor, to.tensor))
            case Combine(scratch=name):
                found.add(outer.get(name, name))
    return found


def _check_tensors(program: Program, before: set[str], log: Log) -> None:
    """`before`: tensors that earlier kernels have stored."""
    kernel = program.kernel
    everything = list(statements(kernel.body))
    outer = {own: part.tensor for own, part in program.host.launch.parts}
    combined = {stmt.scratch for stmt in everything if isinstance(stmt, Combine)}
    loaded = {stmt.src.tensor for stmt in everything if isinstance(stmt, Load)} | combined
    stored = {stmt.dst.tensor for stmt in everything if isinstance(stmt, Store)} | combined
    used = loaded | stored | host_tensors(program)
    known = before | stored | {*program.host.tensors}
    for item in kernel.tensors:
        name = outer.get(item.name, item.name)
        if item.role is TensorRole.OUTPUT and item.name not in stored:
            log.add("lang-unwritten", f"nothing is stored to {item.name!r}", kernel.line)
        elif (
            (item.role is TensorRole.SCRATCH or item.name in outer)
            and item.name in loaded
            and name not in known
        ):
            message = f"{name!r} is loaded, and nothing is stored to it"
            log.add("lang-unwritten", message, kernel.line)
        elif item.name not in used:
            log.add("lang-unused", f"the tensor {item.name!r} is never used", kernel.line)
