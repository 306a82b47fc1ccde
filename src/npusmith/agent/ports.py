"""The operator around a program that a model wrote: which tensors it may have, and their shapes.

The plan writer derives the shape of an output from the graph. Here nothing is known of the program,
so each dimension of an output is the first simple expression over the inputs' dimensions that
holds on every set of inputs of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from npusmith.errors import LangError, Place
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Program, Size
from npusmith.ir.opname import entry_name, operator_name
from npusmith.ir.spec import Constant, OpSpec, Port, Source
from npusmith.ir.text import show_expr
from npusmith.plan.fixed_sizes import fixed_sizes
from npusmith.plan.names import tensor_name
from npusmith.task.graph import Literals
from npusmith.task.prepared import Prepared

_SOURCES = {
    "user": Source.USER,
    "parameter": Source.PARAMETER,
    "buffer": Source.BUFFER,
    "constant": Source.CONSTANT,
}
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ports:
    """The tensors of a task. `dynamic`: outputs of other shapes follow from the inputs."""

    operator: str  # its name
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    dynamic: bool
    source: str  # text of the task
    type: str = ""  # of the operator, where somebody else's binding has fixed it
    fixed: tuple[Expr, ...] = ()  # sizes that the model's arithmetic has as numbers
    literals: tuple[Literals, ...] | None = None  # OpSpec's
    constants: tuple[Constant, ...] = ()  # OpSpec's
    returns: str = ""  # OpSpec's

    def lines(self) -> list[str]:
        """The list for a prompt."""
        rows = [(port, "input") for port in self.inputs] + [
            (port, "output") for port in self.outputs
        ]
        return [
            f"- {port.name}: {role}({port.dtype.value}), shape {list(port.shape)}"
            + (f", the module's {port.target}" if role == "input" and port.target else "")
            for port, role in rows
        ]

    def spec(self, program: Program) -> OpSpec:
        """The operator of a program; raises LangError agent-ports."""
        given = {port.name: port for port in self.inputs}
        names = [item.name for item in program.inputs]
        wanted = [port.name for port in self.inputs if port.name in names]
        legal = "; ".join(line.removeprefix("- ") for line in self.lines())
        first = program.kernels[0]
        place = Place(f"{self.operator}.tile.py", first.line, first.name)
        if names != wanted:
            seen = f"inputs {', '.join(names) or 'none'}"
            raise LangError(
                "agent-ports", "the kernel's inputs are not the task's, in their order", place,
                seen=seen, legal=legal,
            )  # fmt: skip
        if [item.name for item in program.outputs] != [port.name for port in self.outputs]:
            seen = f"outputs {', '.join(item.name for item in program.outputs) or 'none'}"
            raise LangError("agent-ports", "the kernel's outputs are not the task's", place,
                            seen=seen, legal=legal)  # fmt: skip
        types = {port.name: port.dtype for port in (*self.inputs, *self.outputs)}
        for item in (*program.inputs, *program.outputs):
            if item.dtype is not types[item.name]:
                seen = f"{item.name}: {item.dtype.value}"
                raise LangError("agent-ports", f"{item.name} has another element type", place,
                                seen=seen, legal=legal)  # fmt: skip
        lacking = [expr for expr in self.fixed if not _tensors(expr) <= set(names)]
        if lacking:
            seen = f"{show_expr(lacking[0])} is a number in the model, of an input not taken"
            raise LangError("agent-ports", "the kernel could not refuse other sizes", place,
                            seen=seen, legal=legal)  # fmt: skip
        outputs = tuple(_reachable(port, set(names)) for port in self.outputs)
        return OpSpec(
            self.operator, tuple(given[name] for name in names), outputs, self.source,
            type=self.type, legal=self.fixed, literals=self.literals,
            constants=self.constants, returns=self.returns,
        )  # fmt: skip

    def serves(self, spec: OpSpec) -> bool:
        """Whether that operator's outputs follow from its inputs at other shapes too."""
        return self.dynamic and spec.outputs == self.outputs


def _reachable(port: Port, held: set[str]) -> Port:
    """The output with its first shape, where its dimensions need an input that the kernel lacks."""
    if all(_tensors(dim) <= held for dim in port.dims):
        return port
    return replace(port, dims=tuple(Const(size) for size in port.shape))


def _tensors(expr: Expr) -> set[str]:
    match expr:
        case Dim(tensor) | Size(tensor):
            return {tensor}
        case Binary(_, left, right):
            return _tensors(left) | _tensors(right)
        case _:
            return set()


def find_ports(prepared: Prepared, op_type: str = "") -> Ports:
    """The task's tensors: forward's arguments, parameters and outputs under legal names.

    In the order of `Graph.operator_inputs`, in which the judge passes them.

    `op_type`: of the operator, where the task's own does not do.
    """
    graph, used = prepared.graph, set[str]()
    inputs = tuple(
        Port(
            tensor_name(item.name, used), item.dtype, item.shape, _SOURCES[item.kind],
            item.position, item.target,
        )
        for item in graph.operator_inputs
    )  # fmt: skip
    found = [graph.spec(name) for name in graph.outputs]
    names = ["y"] if len(found) == 1 else [f"y{number}" for number in range(len(found))]
    plain = tuple(
        Port(tensor_name(name, used), item.dtype, item.shape)
        for name, item in zip(names, found, strict=True)
    )
    cases = _cases(prepared, inputs)
    dims = [_dims(port, number, inputs, cases) for number, port in enumerate(plain)]
    outputs = tuple(
        replace(
            port, dims=tuple(dim or Const(size) for dim, size in zip(row, port.shape, strict=True))
        )
        for port, row in zip(plain, dims, strict=True)
    )
    dynamic = all(dim is not None for row in dims for dim in row)
    operator = entry_name(op_type) if op_type else operator_name(prepared.name)
    fixed = tuple(fixed_sizes(graph, inputs))
    return Ports(
        operator, inputs, outputs, dynamic, prepared.task.text, op_type, fixed, graph.literals,
        graph.constants, graph.returns,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Case:
    """One set of inputs: shapes by input, shapes by output."""

    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]


def _cases(prepared: Prepared, inputs: Sequence[Port]) -> list[_Case]:
    first = _Case(
        tuple(port.shape for port in inputs),
        tuple(prepared.graph.spec(name).shape for name in prepared.graph.outputs),
    )
    more = [
        _Case(
            tuple(
                trial.shapes[port.position] if port.source is Source.USER else port.shape
                for port in inputs
            ),
            tuple(item.shape for item in trial.record.references),
        )
        for trial in prepared.trials
        if trial.required and trial.record.references
    ]
    return list(dict.fromkeys([first, *more]))


def _dims(
    port: Port, number: int, inputs: Sequence[Port], cases: Sequence[_Case]
) -> list[Expr | None]:
    """One expression for each dimension; None where nothing simple holds on every set."""
    if any(len(case.outputs[number]) != len(port.shape) for case in cases):
        return [None] * len(port.shape)
    return [
        _fitting(inputs, cases, [case.outputs[number][at] for case in cases], at)
        for at in range(len(port.shape))
    ]


def _fitting(
    inputs: Sequence[Port], cases: Sequence[_Case], wanted: list[int], at: int
) -> Expr | None:
    for expr, values in _expressions(inputs, cases, at, wanted):
        if values == wanted:
            return expr
    return None


def _expressions(
    inputs: Sequence[Port], cases: Sequence[_Case], at: int, wanted: list[int]
) -> Iterator[tuple[Expr, list[int]]]:
    """Candidates, the likeliest first, with their value in each case."""
    plain = [
        (Dim(port.name, index), [case.inputs[number][index] for case in cases])
        for number, port in enumerate(inputs)
        for index in sorted(range(len(port.shape)), key=lambda index: index != at)
        if all(len(case.inputs[number]) == len(port.shape) for case in cases)
    ]
    yield from plain
    if len(set(wanted)) == 1:
        yield Const(wanted[0]), wanted
    for number, port in enumerate(inputs):
        yield Size(port.name), [_count(case.inputs[number]) for case in cases]
    for dim, values in plain:
        yield from _offset(dim, values, wanted)
    for first, left in plain:
        for second, right in plain:
            yield (
                Binary(BinOp.MUL, first, second),
                [a * b for a, b in zip(left, right, strict=True)],
            )
            yield (
                Binary(BinOp.ADD, first, second),
                [a + b for a, b in zip(left, right, strict=True)],
            )


def _offset(dim: Expr, values: list[int], wanted: list[int]) -> Iterator[tuple[Expr, list[int]]]:
    """A dimension plus, times or divided by what fits the first case; with a step: windows."""
    more = wanted[0] - values[0]
    yield Binary(BinOp.ADD, dim, Const(more)), [value + more for value in values]
    if values[0] and wanted[0] % values[0] == 0:
        factor = wanted[0] // values[0]
        yield Binary(BinOp.MUL, dim, Const(factor)), [value * factor for value in values]
    for step in range(2, 9):
        shift = wanted[0] * step - values[0]
        for extra in range(shift, shift + step):
            yield (
                Binary(BinOp.FLOORDIV, Binary(BinOp.ADD, dim, Const(extra)), Const(step)),
                [(value + extra) // step for value in values],
            )


def _count(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
