"""Equal kernels of a program become one that is launched several times.

before: kernels net_2(x, mm, n) and net_5(relu_1, bmm_2, depth), equal but for their names
after:  launch(net_2, cores, x0=x, y0=mm, n=rows * 64)
        launch(net_2, cores, x0=relu_1, y0=bmm_2, n=rows * 128)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from npusmith.ir.nodes import (
    Combine,
    Const,
    Expr,
    Host,
    Kernel,
    Launch,
    Load,
    Name,
    Note,
    Op,
    Program,
    Stmt,
    Tensor,
    TensorRole,
)
from npusmith.ir.rebuild import (
    map_blocks,
    map_children,
    map_operands,
    map_statements,
    with_names,
)
from npusmith.ir.text import show
from npusmith.ir.walk import (
    Block,
    inner_names,
    mentioned,
    names,
    operands,
    statements,
    target,
    tensors,
)
from npusmith.plan.names import tensor_name
from npusmith.plan.versions import ROLES

_NO_HOST = Host("host", (), (), ())
_KEPT = 4  # programs: the same one is asked about for its length, and then written
_LETTERS = {TensorRole.INPUT: "x", TensorRole.OUTPUT: "y", TensorRole.SCRATCH: "s"}


@dataclass(frozen=True, slots=True)
class _Form:
    """A kernel, and its names in the order in which they come in its body."""

    kernel: Kernel
    tensors: tuple[str, ...]
    scalars: tuple[str, ...]
    key: str  # the same for kernels that do the same


@lru_cache(maxsize=_KEPT)
def share_kernels(program: Program) -> Program:
    """The same program with one kernel where several differ in names alone."""
    consts = dict(program.consts)
    outlines = [_outline(kernel) for kernel in program.kernels]
    groups: dict[str, list[_Form]] = {}
    for kernel, outline in zip(program.kernels, outlines, strict=True):
        if outlines.count(outline) > 1:  # a form takes a walk over all expressions
            form = _form(kernel, consts)
            groups.setdefault(form.key, []).append(form)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    launches = {launch.kernel: launch for launch in program.host.launches}
    taken = {*consts, *(item.name for item in program.tensors)}
    for forms in groups.values():
        first, *others = _alike(forms)
        if not others:
            continue
        formals = _formals((first, *others), taken)
        kernels[first.kernel.name] = _with_formals(first, formals)
        for form in (first, *others):
            if form is not first:
                del kernels[form.kernel.name]
            launches[form.kernel.name] = _launch(launches[form.kernel.name], form, first, formals)
    if len(kernels) == len(program.kernels):
        return program
    count, times = len(kernels), len(launches)
    host = replace(
        program.host, launches=tuple(launches[item.kernel] for item in program.host.launches)
    )
    doc = f"{program.doc}\n{count} kernels are launched {times} times: equal ones are written once"
    return replace(program, host=host, kernels=tuple(kernels.values()), doc=doc)


# --------------------------------------------------------------------------------- what is equal


def _outline(kernel: Kernel) -> tuple[object, ...]:
    """What a glance shows; the same for kernels that are equal but for names."""
    steps = (
        stmt.name if isinstance(stmt, Op) else type(stmt).__name__
        for stmt in statements(kernel.body)
        if not isinstance(stmt, Note)
    )
    return len(kernel.tensors), len(kernel.scalars), len(kernel.buffers), *steps


def _form(kernel: Kernel, consts: Mapping[str, int | float]) -> _Form:
    body = map_blocks(kernel.body, _without_notes)
    everything = list(statements(body))
    own = {item.name for item in kernel.scalars}
    read = [(*_names(stmt), target(stmt)) for stmt in everything]
    variables = dict.fromkeys(name for row in read for name in row if name not in {*consts, ""})
    touched = dict.fromkeys(name for stmt in everything for name in tensors(stmt))
    buffers = dict.fromkeys(mentioned(body))
    new = {
        **{name: f"v{i}" for i, name in enumerate(variables)},
        **{name: f"t{i}" for i, name in enumerate(touched)},
        **{name: f"b{i}" for i, name in enumerate(buffers)},
    }

    def plain(expr: Expr) -> Expr:
        match expr:
            case Name(name) if name in consts:
                return Const(consts[name])
            case _:
                return map_children(expr, plain)

    def as_written(stmt: Stmt) -> Stmt:
        return with_names(map_operands(stmt, plain), new)

    alike = Kernel(
        "kernel",
        tuple(
            sorted(
                (
                    Tensor(new.get(item.name, item.name), item.dtype, TensorRole.INPUT)
                    for item in kernel.tensors
                ),
                key=lambda item: item.name,
            )
        ),
        tuple(
            sorted(
                (replace(item, name=new.get(item.name, item.name)) for item in kernel.scalars),
                key=lambda item: item.name,
            )
        ),
        tuple(
            replace(
                item,
                name=new.get(item.name, item.name),
                length=plain(item.length),
                cols=None if item.cols is None else plain(item.cols),
            )
            for item in kernel.buffers
        ),
        map_statements(body, as_written),
    )
    scalars = tuple(name for name in variables if name in own)
    return _Form(kernel, tuple(touched), scalars, show(Program((), _NO_HOST, (alike,))))


def _without_notes(block: Block) -> Block:
    return tuple(stmt for stmt in block if not isinstance(stmt, Note))


def _names(stmt: Stmt) -> Iterable[str]:
    return (name for expr in operands(stmt) for name in names(expr))


def _alike(forms: Sequence[_Form]) -> list[_Form]:
    """The first, and those whose tensors can have their names beside what is inside of it."""
    first, *others = forms
    inside = inner_names(first.kernel)
    return [first, *(form for form in others if inside.isdisjoint(form.tensors))]


# ------------------------------------------------------------------------------------ one of them


def _formals(forms: Sequence[_Form], taken: set[str]) -> dict[str, Tensor]:
    """The tensors of the kernel by those of the first: their own where all launches agree."""
    first = forms[0]
    kernel = first.kernel
    used = taken | inner_names(kernel)
    found: dict[str, Tensor] = {}
    for at, name in enumerate(first.tensors):
        item = kernel.tensor(name)
        if len({form.tensors[at] for form in forms}) == 1:
            found[name] = item
            continue
        role = _role(kernel, name)
        count = sum(_LETTERS[role] == other.name[0] for other in found.values())
        found[name] = Tensor(tensor_name(f"{_LETTERS[role]}{count}", used), item.dtype, role)
    return found


def _role(kernel: Kernel, name: str) -> TensorRole:
    """What the kernel does with a tensor."""
    using = [stmt for stmt in statements(kernel.body) if name in tensors(stmt)]
    if all(isinstance(stmt, Load) for stmt in using):
        return TensorRole.INPUT
    if any(isinstance(stmt, Load | Combine) for stmt in using):
        return TensorRole.SCRATCH
    return TensorRole.OUTPUT


def _with_formals(form: _Form, formals: Mapping[str, Tensor]) -> Kernel:
    """The kernel over names that stand for the tensors of any launch."""
    kernel = form.kernel
    new = {name: item.name for name, item in formals.items()}
    inside = inner_names(kernel)
    for buffer in kernel.buffers:
        owners = (name for name in formals if buffer.name.startswith(f"{name}_"))
        owner = max(owners, key=len, default="")
        called = f"{new[owner]}{buffer.name[len(owner) :]}" if owner else buffer.name
        if called not in inside:
            inside.add(called)
            new[buffer.name] = called

    def text(words: str) -> str:
        return re.sub(r"\w+", lambda word: new.get(word[0], word[0]), words)

    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Note):
            return replace(stmt, text=text(stmt.text))
        return with_names(stmt, new)

    tensors = sorted(formals.values(), key=lambda item: ROLES.index(item.role))
    return replace(
        kernel,
        tensors=tuple(tensors),
        buffers=tuple(replace(item, name=new.get(item.name, item.name)) for item in kernel.buffers),
        body=map_statements(kernel.body, moved),
        doc=text(kernel.doc),
    )


def _launch(launch: Launch, form: _Form, first: _Form, formals: Mapping[str, Tensor]) -> Launch:
    called = dict(zip(form.scalars, first.scalars, strict=True))
    own = dict(zip(form.tensors, formals.values(), strict=True))
    return replace(
        launch,
        kernel=first.kernel.name,
        args=tuple((called.get(name, name), value) for name, value in launch.args),
        tensors=tuple(
            (item.name, name)
            for name, item in own.items()
            if item.name != name and name not in dict(launch.parts)
        ),
        parts=tuple((own[name].name if name in own else name, part) for name, part in launch.parts),
    )
