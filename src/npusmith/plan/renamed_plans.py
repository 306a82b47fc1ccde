"""The plan of a graph that differs from another in the numbers of names alone: `renamed_plan(...)`.

before: the kernel of a block of a network, which reads add_5 and blocks.3.up.weight
after:  that of the next block, which does the same with add_7 and blocks.4.up.weight

It is the plan that would be written for that graph, without the work. What is decided follows from
what a graph does; names decide the order of factors, the names of buffers and where lines end. So
only such names are replaced as cannot change these: digits by as many digits, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile

from npusmith.ir.nodes import Assign, Dim, Expr, Host, Kernel, Name, Note, Program, Size, Stmt
from npusmith.ir.rebuild import map_children, map_host, map_statements, with_names
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.walk import inner_names
from npusmith.plan.decisions import Decision
from npusmith.plan.estimate import origin
from npusmith.plan.names import as_identifier, is_ours
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import Plan
from npusmith.plan.versions import Version
from npusmith.task.graph import Graph

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PlanCache:
    """Plans that were written, by what their graphs do and what else they follow from."""

    known: dict[tuple[str, object], tuple[Graph, Plan]] = field(default_factory=dict)

    def plan(self, graph: Graph, asked: object, write: Callable[[], Plan]) -> Plan:
        """What `write` gives, or gave for a graph that differs in names alone.

        `asked`: what it follows from besides the graph.
        """
        key = structural_key(graph), asked
        if (found := self.known.get(key)) is not None:
            plan = renamed_plan(found[1], found[0], graph)
            if plan is not None:
                return plan
        plan = write()
        self.known[key] = graph, plan
        return plan


def renamed_plan(plan: Plan, own: Graph, other: Graph) -> Plan | None:
    """The plan of `own` as that of `other`, which has the same structural key.

    None where it may not be the one that would be written: where it is of several kernels, or
    where names are not alike.
    """
    if own == other:
        return plan
    if plan.parts or plan.steps is not None or plan.spec.constants:
        return None
    pairs = _called_after(plan.program, own, other)
    new = dict(pairs)
    if len(new) < len(pairs) or not _are_alike(new):
        return None
    names = _Names(new)
    return names.plan(plan, own, other) if names.are_apart(plan.program) else None


def _called_after(program: Program, own: Graph, other: Graph) -> list[tuple[str, str]]:
    """Names in both graphs that tensors of the program are called after: what it takes, and what
    passes between kernels that run side by side."""
    inputs, nodes = (
        [(as_identifier(one.name), as_identifier(two.name)) for one, two in zip(*rows, strict=True)]
        for rows in ((own.inputs, other.inputs), (own.nodes, other.nodes))
    )
    called = [item.name for kernel in program.kernels for item in kernel.tensors]
    taken = _pattern({name for name, _ in inputs})
    between = [name for name in called if not taken.search(name)]
    made = _pattern({name for name, _ in nodes})
    inside = {match[0] for name in between for match in made.finditer(name)}
    return [*inputs, *(pair for pair in nodes if pair[0] in inside)]


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """One of these names, alone or with `_` and more around it; the longest first."""
    longest = sorted(map(re.escape, names), key=len, reverse=True) or ["(?!)"]  # nothing
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(longest)})(?![A-Za-z0-9])")


def _are_alike(new: Mapping[str, str]) -> bool:
    """Whether digits alone differ, and names come in one order, told by the same characters."""
    olds = sorted(new)
    news = [new[old] for old in olds]
    return (
        all(one == two or _is_alike(one, two) for one, two in zip(olds, news, strict=True))
        and news == sorted(set(news))
        and _shared(olds) == _shared(news)
    )


def _is_alike(one: str, two: str) -> bool:
    same = _DIGIT.sub("0", one) == _DIGIT.sub("0", two)
    return same and not is_ours(one) and not is_ours(two)


def _shared(names: Sequence[str]) -> list[int]:
    """How many characters neighbours begin with that are the same."""
    return [
        sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, two, strict=False)))
        for one, two in pairwise(names)
    ]


@dataclass(slots=True)
class _Names:
    """A program over other names of tensors, and of all that is called after them."""

    new: Mapping[str, str]  # of tensors
    tensors: re.Pattern[str] = field(init=False)
    words: dict[str, str] = field(default_factory=dict)
    exprs: dict[Expr, Expr] = field(default_factory=dict)
    programs: dict[int, Program] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tensors = _pattern(self.new)

    def are_apart(self, program: Program) -> bool:
        """Whether nothing else in it has a name like one of these but for numbers.

        Of two buffers `add` the second is `add_2`, and `add_3` beside a tensor `add_2`.
        """
        taken = {_NUMBER.sub("0", name) for name in self.new}
        others = [name for name in _identifiers(program) if not self.tensors.search(name)]
        kernels = [kernel.name for kernel in program.kernels]
        return all(_NUMBER.sub("0", name) not in taken for name in others) and not any(
            map(self.tensors.search, kernels)
        )

    def plan(self, plan: Plan, own: Graph, other: Graph) -> Plan:
        return replace(
            plan,
            program=self.program(plan.program),
            spec=self._spec(plan.spec, own, other),
            notes=tuple(map(self.text, plan.notes)),
            decisions=tuple(map(self._decision, plan.decisions)),
            versions=tuple(map(self._version, plan.versions)),
        )

    def word(self, word: str) -> str:
        """What is called after a tensor has its new name: `add_5_in`."""
        found = self.words.get(word)
        if found is None:
            found = self.tensors.sub(lambda name: self.new[name[0]], word)
            self.words[word] = found
        return found

    def text(self, words: str) -> str:
        return _WORD.sub(lambda word: self.word(word[0]), words)

    # ------------------------------------------------------------------------------------ programs

    def program(self, program: Program) -> Program:
        """The same object for the same object: versions share them with their kernel."""
        if id(program) not in self.programs:
            self.programs[id(program)] = replace(
                program,
                host=self._host(program.host),
                kernels=tuple(map(self._kernel, program.kernels)),
                doc=self.text(program.doc),
            )
        return self.programs[id(program)]

    def _version(self, version: Version) -> Version:
        host = version.host and {
            self.word(name): self.expr(value) for name, value in version.host.items()
        }
        test = None if version.test is None else self.expr(version.test)
        program, note = self.program(version.program), self.text(version.note)
        return Version(program, test, host, note)

    def _host(self, host: Host) -> Host:
        host = map_host(host, self.expr)
        launches = tuple(
            replace(
                item,
                args=tuple((self.word(name), value) for name, value in item.args),
                tensors=tuple((self.word(a), self.word(b)) for a, b in item.tensors),
                parts=tuple(
                    (self.word(name), replace(part, tensor=self.word(part.tensor)))
                    for name, part in item.parts
                ),
            )
            for item in host.launches
        )
        body = tuple(
            replace(stmt, target=self.word(stmt.target)) if isinstance(stmt, Assign) else stmt
            for stmt in host.body
        )
        return replace(
            host, tensors=tuple(map(self.word, host.tensors)), body=body, launches=launches
        )

    def _kernel(self, kernel: Kernel) -> Kernel:
        new = {name: self.word(name) for name in _names_of(kernel)}

        def moved(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Note):
                return replace(stmt, text=self.text(stmt.text))
            return with_names(stmt, new)

        return replace(
            kernel,
            tensors=tuple(replace(item, name=new[item.name]) for item in kernel.tensors),
            scalars=tuple(replace(item, name=new[item.name]) for item in kernel.scalars),
            buffers=tuple(
                replace(
                    item,
                    name=new[item.name],
                    length=self.expr(item.length),
                    cols=None if item.cols is None else self.expr(item.cols),
                )
                for item in kernel.buffers
            ),
            body=map_statements(kernel.body, moved),
            doc=self.text(kernel.doc),
        )

    # ---------------------------------------------------------------------------------- operators

    def _decision(self, item: Decision) -> Decision:
        """Buffers have as many copies as is decided, by their names."""
        ways = tuple(tuple(map(self._value, way)) for way in item.ways)
        return replace(item, value=self._value(item.value), own=self._value(item.own), ways=ways)

    def _value(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        return self.word(value) if type(value) is str else value

    def _spec(self, spec: OpSpec, own: Graph, other: Graph) -> OpSpec:
        def given(port: Port) -> Port:
            at = next(i for i, item in enumerate(own.inputs) if item is origin(own, port))
            return replace(port, name=self.word(port.name), target=other.inputs[at].target)

        def made(port: Port) -> Port:
            dims = tuple(map(self.expr, port.dims))
            return replace(port, name=self.word(port.name), dims=dims)

        legal = None if spec.legal is None else tuple(map(self.expr, spec.legal))
        inputs, outputs = tuple(map(given, spec.inputs)), tuple(map(made, spec.outputs))
        return replace(spec, inputs=inputs, outputs=outputs, legal=legal)

    def expr(self, expr: Expr) -> Expr:
        """Over sizes of tensors, and over what the host function calls after them."""
        found = self.exprs.get(expr)
        if found is None:
            found = self.exprs[expr] = self._expr(expr)
        return found

    def _expr(self, expr: Expr) -> Expr:
        match expr:
            case Name(name):
                return Name(self.word(name))
            case Dim(tensor, index):
                return Dim(self.word(tensor), index)
            case Size(tensor):
                return Size(self.word(tensor))
            case _:
                return map_children(expr, self.expr)


def _names_of(kernel: Kernel) -> set[str]:
    return inner_names(kernel) | {item.name for item in kernel.tensors}


def _identifiers(program: Program) -> Iterator[str]:
    """Whatever has a name in a program, but for the host's variables, which its kernels take."""
    for kernel in program.kernels:
        yield from _names_of(kernel)
    yield from (stmt.target for stmt in program.host.body if isinstance(stmt, Assign))
    yield from (name for name, _ in program.consts)
