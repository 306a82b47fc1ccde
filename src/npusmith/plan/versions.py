"""Versions of one kernel, each with a test of sizes; the first one whose test holds is run.

before: a program for short rows, one that cuts lines into chunks, and one that serves all sizes
after:  `if brief == 1: ... else: if chunked == 1: ... else: ...`

All have the same inputs and outputs. One of them runs, so each has the unified buffer to itself
(ir/branches.py): its buffers are its own, and it takes as long as it does alone. The last one may
be of several kernels: the others stand in front of its first kernel, and where one of them has
done everything, the later kernels do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from npusmith.ir.launches import each_launch
from npusmith.ir.nodes import (
    Assign,
    Binary,
    BinOp,
    Choice,
    Const,
    Expr,
    For,
    Host,
    If,
    Kernel,
    Name,
    Note,
    Program,
    Scalar,
    Stmt,
    Tensor,
    TensorRole,
)
from npusmith.ir.rebuild import map_statements, renamed, with_names
from npusmith.ir.text import show_expr
from npusmith.ir.walk import names, statements
from npusmith.lang.extents import extent
from npusmith.lower.kinds import Kind, kernel_kinds
from npusmith.plan.host import in_order
from npusmith.plan.scalars import ONE, ZERO, all_of
from npusmith.target.chips import Chip

FITS = "brief"  # the host variable that is 1 where axes are short
SHORT_AXES = "short axes of the captured sizes stay on chip"
_HERE = "inside"  # ... and where so many axes are inside of a tile
_CORES = "cores"
_REST = "all other shapes"
_NOTHING = "the first kernel has done everything"
ROLES = (TensorRole.INPUT, TensorRole.OUTPUT, TensorRole.SCRATCH)  # in this order


@dataclass(frozen=True, slots=True)
class Version:
    """A program, and the test of host variables under which it runs: the last one has none.

    `host`: the variables that the test is made of, where the program does not have them.
    """

    program: Program
    test: Expr | None = None
    host: Mapping[str, Expr] | None = None
    note: str = _REST  # what it is

    def where(self, test: Expr, note: str) -> Version:
        """Where another test of sizes holds, too."""
        host = {**(self.host or {}), _HERE: Choice(test, ONE, ZERO)}
        holds = [*([self.test] if self.test else []), Binary(BinOp.EQ, Name(_HERE), ONE)]
        return Version(self.program, all_of(holds), host, note if self.test is None else self.note)

    def holds(self, shapes: Mapping[str, tuple[int, ...]], chip: Chip) -> bool:
        """Whether tensors of these shapes pass its test."""
        if self.test is None:
            return True
        defined = {**_values(self.program.host), **(self.host or {})}
        defined |= {name: Const(value) for name, value in self.program.consts}
        return bool(extent(Choice(self.test, ONE, ZERO), shapes, chip.vector_cores, defined))


def taken(
    versions: Sequence[Version], shapes: Mapping[str, tuple[int, ...]], chip: Chip
) -> Version:
    """The one that runs for tensors of these shapes."""
    return next(version for version in versions if version.holds(shapes, chip))


def guarded(
    program: Program, tests: Sequence[str], defined: Mapping[str, Expr], note: str
) -> Version:
    """A version for sizes at which all `tests` are 1, of which there may be none.

    `defined`: host variables, among them the tests and what these read.
    """
    host: dict[str, Expr] = {}
    waiting = [*tests]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in host:
            host[name] = defined[name]
            waiting += names(defined[name])
    assert _CORES not in host
    hold = [Binary(BinOp.EQ, Name(name), ONE) for name in tests]
    return Version(program, all_of(hold), host, note) if hold else Version(program)


def merged(versions: Sequence[Version]) -> Program:
    """All in one, as if each were alone where it runs."""
    if len(versions) == 1:
        return versions[0].program
    program = _noted(versions[-1])
    for version in reversed(versions[:-1]):
        program = _joined(_apart(version, program), program)
    return program


def _noted(version: Version) -> Program:
    """With what it is, and which shapes it is for."""
    kernel, *later = version.program.kernels
    notes = [version.note]
    if version.test is not None:
        found = [(version.host or {})[name] for name in names(version.test)]
        tests = [item.cond if isinstance(item, Choice) else item for item in found]
        notes.append(f"shapes with {' and '.join(map(show_expr, tests))}")
    noted = replace(kernel, body=(*map(Note, notes), *kernel.body))
    return replace(version.program, kernels=(noted, *later))


def _joined(first: Version, other: Program) -> Program:
    assert first.test is not None
    one, (two, *later) = _noted(first).kernel, other.kernels
    scalars = (*map(Scalar, names(first.test)), *one.scalars, *two.scalars)
    tensors = (*two.tensors, *(item for item in one.tensors if item not in two.tensors))
    kernel = replace(
        two,
        tensors=tuple(sorted(tensors, key=lambda item: ROLES.index(item.role))),
        scalars=tuple(dict.fromkeys(scalars)),
        buffers=(*one.buffers, *two.buffers),
        body=(If(first.test, one.body, two.body),),
    )
    consts = tuple(dict([*first.program.consts, *other.consts]).items())
    kernels = (kernel, *(_unless(first.test, item) for item in later))
    return Program(consts, _host(first, other.host, kernel), kernels, other.doc)


def _unless(test: Expr, kernel: Kernel) -> Kernel:
    """The kernel where a test of host variables does not hold; nothing elsewhere."""
    scalars = dict.fromkeys((*map(Scalar, names(test)), *kernel.scalars))
    body = (If(test, (Note(_NOTHING),), kernel.body),)
    return replace(kernel, scalars=tuple(scalars), body=body)


def _host(first: Version, other: Host, kernel: Kernel) -> Host:
    """The variables of both, and the cores of the one that runs."""
    assert first.test is not None
    mine, its = (_values(host) for host in (first.program.host, other))
    own, rest = mine.pop(_CORES), its.pop(_CORES)
    cores = own if own == rest else Choice(first.test, own, rest)
    body = in_order({**(first.host or {}), **mine, **its, _CORES: cores})
    launch, *later = other.launches
    given = dict([*first.program.host.launch.args, *launch.args])
    parameters = {item.name: Name(item.name) for item in kernel.scalars}
    launches = [replace(launch, args=tuple({**parameters, **given}.items()))]
    tests = {name: Name(name) for name in names(first.test)}
    launches += [replace(item, args=(*{**tests, **dict(item.args)}.items(),)) for item in later]
    return replace(other, body=body, launches=tuple(launches))


def _values(host: Host) -> dict[str, Expr]:
    return {stmt.target: stmt.value for stmt in host.body if isinstance(stmt, Assign)}


# ------------------------------------------------------------------------------------------- names

# What a name stands for: an input or output, a host variable or constant, a variable of the kernel
Meaning = Tensor | Expr | Kind | None  # None: a buffer, or workspace; each program has its own


def _apart(first: Version, other: Program) -> Version:
    """With names of its own for what stands for something else in `other`."""
    own = dict(_meanings(first.program, first.host or {}))
    known = dict(_meanings(other, {}))
    taken = {*own, *known}
    new: dict[str, str] = {}
    more = True
    while more:
        more = False
        for name, meaning in own.items():
            if name in known and name not in new and not _same(meaning, known[name], new):
                new[name], more = _free(name, taken), True
    return _called(first, new) if new else first


def _meanings(program: Program, more: Mapping[str, Expr]) -> Iterator[tuple[str, Meaning]]:
    part = each_launch(program)[0]  # later kernels have variables of their own
    kernel = part.kernel
    kinds = kernel_kinds(part)
    for stmt in statements(kernel.body):
        match stmt:
            case Assign(name) | For(name):
                yield name, kinds[name]
    yield from ((buffer.name, None) for buffer in kernel.buffers)
    for tensor in program.tensors:
        yield tensor.name, None if tensor.role is TensorRole.SCRATCH else tensor
    yield from ((name, Const(value)) for name, value in program.consts)
    values = {**more, **_values(program.host)}
    yield from ((name, value) for name, value in values.items() if name != _CORES)
    scalars = {item.name for item in kernel.scalars}
    given = part.host.launch.args
    yield from ((name, value) for name, value in given if name in scalars and value != Name(name))


def _same(one: Meaning, two: Meaning, new: Mapping[str, str]) -> bool:
    if one is None or isinstance(one, Tensor | Kind):
        return one is not None and one == two
    return renamed(one, new) == two


def _free(name: str, taken: set[str]) -> str:
    """The name with a number behind it that makes it new; it is taken from now on."""
    found = next(item for i in count(2) if (item := f"{name}_{i}") not in taken)
    taken.add(found)
    return found


def _called(version: Version, new: Mapping[str, str]) -> Version:
    program, host = version.program, version.host or {}
    assert version.test is not None
    return replace(
        version,
        program=_renamed(program, new),
        test=renamed(version.test, new),
        host={new.get(name, name): renamed(value, new) for name, value in host.items()},
    )


def _renamed(program: Program, new: Mapping[str, str]) -> Program:
    """The same with other names of everything but the kernel."""

    def called(stmt: Stmt) -> Stmt:
        return with_names(stmt, new)

    host, kernel, launch = program.host, program.kernel, program.host.launch
    args = tuple((new.get(name, name), renamed(value, new)) for name, value in launch.args)
    tensors = tuple(replace(item, name=new.get(item.name, item.name)) for item in kernel.tensors)
    scalars = tuple(replace(item, name=new.get(item.name, item.name)) for item in kernel.scalars)
    buffers = tuple(
        replace(item, name=new.get(item.name, item.name), length=renamed(item.length, new))
        for item in kernel.buffers
    )
    body = map_statements(kernel.body, called)
    return replace(
        program,
        consts=tuple((new.get(name, name), value) for name, value in program.consts),
        host=replace(
            host, body=map_statements(host.body, called), launches=(replace(launch, args=args),)
        ),
        kernels=(replace(kernel, tensors=tensors, scalars=scalars, buffers=buffers, body=body),),
    )
