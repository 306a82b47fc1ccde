"""Graph -> one call: a module that is one operation of PyTorch which moves elements.

Some scatters are programs of their own (scatters.py), written from the call as PyTorch makes it:
core ATen takes some of them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Dim, Expr, Program
from npusmith.ir.spec import OpSpec, Port, Source
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.plan.names import tensor_name
from npusmith.plan.reader import refusal
from npusmith.plan.scalars import product
from npusmith.target.chips import Chip
from npusmith.task.graph import Argument, Graph, GraphInput, Node

FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
INDICES = (DType.INT64, DType.INT32)
_WHOLE = 192 * 1024  # bytes of UB that buffers are sized for; they shrink with a smaller one
_PLAIN = ("detach", "clone", "alias", "contiguous", "lift_fresh_copy")

Written = tuple[Program, OpSpec, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call whose tensors are the graph's inputs."""

    graph: Graph
    word: str  # PyTorch's name of the operation
    node: Node
    names: dict[str, str]  # of the inputs, in the program

    def refuse(self, code: str, why: str, *, legal: str = "", hint: str = "") -> NoReturn:
        raise refusal(self.graph, self.node, code, why, legal=legal, hint=hint)

    def argument(self, index: int, name: str = "", default: Argument = None) -> Argument:
        """A positional argument, or the keyword of that name, or the default."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default) if name else default

    def input(self, arg: Argument, dtypes: Sequence[DType]) -> GraphInput:
        """The graph's input that an argument is, of one of these types."""
        found = [item for item in self.graph.inputs if item.name == getattr(arg, "ref", None)]
        if not found:
            self.refuse("plan-data-movement", "its tensors are not all inputs of the module")
        if found[0].dtype not in dtypes:
            legal = ", ".join(dtype.value for dtype in dtypes)
            self.refuse("plan-dtype", f"{found[0].name} is {found[0].dtype.value}", legal=legal)
        return found[0]

    def dims(self, item: GraphInput) -> tuple[Expr, ...]:
        return tuple(Dim(self.names[item.name], i) for i in range(len(item.shape)))


@dataclass(frozen=True, slots=True)
class Text:
    """A program's parts before they are put together."""

    call: Call
    about: str
    inputs: Sequence[GraphInput]  # in the order of the kernel's parameters
    dims: tuple[Expr, ...]  # of the output
    consts: dict[str, int]
    host: Sequence[str]  # statements before the launch
    scalars: Sequence[str]  # int parameters of the kernel, each a name of the host
    kernel: Sequence[str]
    notes: tuple[str, ...] = ()
    scratch: Mapping[str, str] = field(default_factory=dict)  # float32 workspace: its length
    legal: tuple[Expr, ...] = ()  # what holds for the shapes that are served, besides ranks


def find_call(graph: Graph, words: Sequence[str]) -> Call | None:
    """The call that the graph is, when it is one of `words`; None otherwise."""
    calls = [node for node in graph.eager if word_of(node) not in _PLAIN]
    if not calls or word_of(calls[-1]) not in words or len(graph.outputs) != 1 or len(calls) > 1:
        return None
    if graph.outputs[0] in {item.name for item in graph.inputs}:
        return None  # nobody reads the call
    taken: set[str] = {"y"}
    names = {item.name: tensor_name(item.name, taken) for item in graph.inputs}
    return Call(graph, word_of(calls[-1]), calls[-1], names)


def word_of(node: Node) -> str:
    parts = node.op.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else ""


def finish(text: Text, name: str) -> Written:
    """The program, its operator, and notes."""
    call, out = text.call, text.call.node
    if out.dtype is None:
        call.refuse("plan-dtype", "the result has an element type that vector cores do not have")
    names = [call.names[item.name] for item in text.inputs]
    tensors = [
        f"{n}: input({item.dtype.value})" for n, item in zip(names, text.inputs, strict=True)
    ]
    lengths = {**{scalar: scalar for scalar in text.scalars}, **text.scratch}
    given = ", ".join(f"{key}={value}" for key, value in lengths.items())
    work = (f"{key}: scratch(float32)" for key in text.scratch)
    ints = (f"{scalar}: int" for scalar in text.scalars)
    heads = ", ".join([*tensors, f"y: output({out.dtype.value})", *work, *ints])
    lines = [
        f'"""{name}: {text.about}"""', "",
        *(f"{key} = {value}" for key, value in text.consts.items()), "", "",
        "@host", f"def host({', '.join(names)}, y):",
        *indented([*text.host, f"launch({name}, cores, {given})"]), "", "",
        "@kernel", f"def {name}({heads}):",
        *indented(text.kernel), "",
    ]  # fmt: skip
    ports = tuple(
        Port(
            name=call.names[item.name], dtype=item.dtype, shape=item.shape,
            source=Source(item.kind), position=item.position, target=item.target,
        )
        for item in text.inputs
    )  # fmt: skip
    made = (Port("y", out.dtype, out.shape, dims=text.dims),)
    program = parse("\n".join(lines), f"{name}.tile.py")
    return program, OpSpec(name, ports, made, legal=text.legal), text.notes


def room(elements: int, chip: Chip) -> int:
    """The length of a buffer that has so many elements where UB is 192 KB."""
    return max(64, elements * chip.ub_bytes // _WHOLE // 64 * 64)


def size_text(items: Sequence[Expr]) -> str:
    """The product of some dimensions, as text of the host function."""
    return show_expr(product(items))


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
