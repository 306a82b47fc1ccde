"""Programs of several kernels, or of kernels that are launched several times, taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from npusmith.ir.nodes import (
    Await,
    Binary,
    BinOp,
    Const,
    Expr,
    Kernel,
    Launch,
    Name,
    Part,
    Post,
    Program,
)
from npusmith.ir.rebuild import map_statements, with_names
from npusmith.ir.walk import names, statements

BLOCK_VECTOR_CORES = 2  # beside the one cube core of a block


def side_by_side(parts: Iterable[Program]) -> list[list[Program]]:
    """What `each_launch` took apart, with launches that run at the same time together."""
    groups: list[list[Program]] = []
    for part in parts:
        if part.host.launch.beside and groups:
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def flags(kernel: Kernel) -> tuple[dict[str, Post], dict[str, Await]]:
    """Flags that a kernel posts, and those that it waits for, each where it first does."""
    posts: dict[str, Post] = {}
    waits: dict[str, Await] = {}
    for stmt in statements(kernel.body):
        match stmt:
            case Post(flag):
                posts.setdefault(flag, stmt)
            case Await(flag):
                waits.setdefault(flag, stmt)
            case _:
                pass
    return posts, waits


def flag_names(program: Program) -> list[str]:
    """All flags of a program, each once: kernels that do not run side by side may share them."""
    used = (name for kernel in program.kernels for kind in flags(kernel) for name in kind)
    return list(dict.fromkeys(used))


def each_launch(program: Program) -> tuple[Program, ...]:
    """A program of one kernel for each launch, in their order, over the tensors that it binds.

    A tensor that is bound to a part of another one keeps its name. The launches of a loop come
    once, with their loop.
    """
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
    return (
        len(program.kernels) == 1
        and len(host.launches) == 1
        and not (host.launch.tensors or host.launch.parts)
    )


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
    tensors = program.bound(kernel, replace(launch, parts=()))
    return replace(kernel, tensors=tensors, body=body)


def bound_numbers(program: Program) -> list[tuple[str, Expr]]:
    """What launches need besides arguments, each once, with a name for it: of parts and loops."""
    found: dict[Expr, str] = {}
    for launch in program.host.launches:
        if launch.loop is not None:
            found.setdefault(launch.loop.start, f"{launch.loop.var}_start")
            found.setdefault(launch.loop.stop, f"{launch.loop.var}_stop")
        for own, part in launch.parts:
            first, step = place(launch, part)
            found.setdefault(first, f"{own}_first")
            found.setdefault(step, f"{own}_step")
            found.setdefault(part.length, f"{own}_length")
    return [(name, expr) for expr, name in found.items() if not isinstance(expr, Const)]


def place(launch: Launch, part: Part) -> tuple[Expr, Expr]:
    """Where a part begins, and how much further on it does where the loop's variable is 1 more."""
    if launch.loop is None:
        return part.start, Const(0)
    found = linear(part.start, launch.loop.var)
    assert found is not None  # lang/launches.py has checked it
    return found


def linear(expr: Expr, var: str) -> tuple[Expr, Expr] | None:
    """`expr` as a number and another one, by which `var` is multiplied; None where it is not so."""
    if var not in names(expr):
        return expr, Const(0)
    match expr:
        case Name():
            return Const(0), Const(1)
        case Binary(BinOp.ADD | BinOp.SUB as op, left, right):
            one, two = linear(left, var), linear(right, var)
            if one is None or two is None:
                return None
            return _sum(op, one[0], two[0]), _sum(op, one[1], two[1])
        case Binary(BinOp.MUL, left, right) if var not in names(right):
            found = linear(left, var)
            return found and (_times(found[0], right), _times(found[1], right))
        case Binary(BinOp.MUL, left, right) if var not in names(left):
            found = linear(right, var)
            return found and (_times(left, found[0]), _times(left, found[1]))
        case _:
            return None


def _sum(op: BinOp, left: Expr, right: Expr) -> Expr:
    if right == Const(0):
        return left
    if left == Const(0):
        return right if op is BinOp.ADD else _times(Const(-1), right)
    return Binary(op, left, right)


def _times(left: Expr, right: Expr) -> Expr:
    if Const(0) in (left, right):
        return Const(0)
    if left == Const(1):
        return right
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(int(left.value) * int(right.value))
    return left if right == Const(1) else Binary(BinOp.MUL, left, right)
