"""The forward of a module of several operators, as Python text: `write_forward(graph, ...)`.

The graph is that of task/composition.py: operators are called through their binding, and what was
left to PyTorch by its ATen names. Sizes that follow from those of inputs are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from npusmith.ir.returned import plain, spelled
from npusmith.ir.spec import Source
from npusmith.lower.model import (
    LIBRARY,
    Forward,
    argument,
    call_text,
    module_file,
    tensor_names,
)  # fmt: skip
from npusmith.lower.render import python_literal
from npusmith.task.composition import is_operator
from npusmith.task.graph import Argument, Graph, GraphInput, Literals, Node, Ref, SymbolicSize

CHECK = '''
def _check(name, tensor, rank, dtype, sizes, steps):
    """What the operators were not written for would give something else, or nothing."""
    shape = tuple(tensor.shape)
    if len(shape) != rank or tensor.dtype != dtype:
        raise ValueError(f"serves {name} of rank {rank} and {dtype}, not {shape} of {tensor.dtype}")
    for axis, size in sizes.items():
        if shape[axis] != size:
            raise ValueError(f"serves size {size} of axis {axis} of {name}, not {shape}")
    for axis, step in steps.items():
        if shape[axis] % step:
            raise ValueError(f"serves multiples of {step} of axis {axis} of {name}, not {shape}")
'''.strip()
_TYPES = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128",
)  # fmt: skip
_TORCH = {  # words that stand for attributes of torch, by the name of the argument
    "dtype": _TYPES,
    "memory_format": ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"),
    "layout": ("strided",),
}
_RESERVED = ("self", "held", "tensors", "torch", "leaves", "given", "numbers", "served", LIBRARY)


def composed_file(graph: Graph, source: str) -> str:
    """The text of model_new.py: the task's own, and ModelNew with this forward."""
    positions = [item.position for item in graph.inputs if item.kind == "user"]
    names = tensor_names(source, positions)
    lines, values = write_forward(
        graph, lambda item: argument(Source(item.kind), item.target, item.position, names)
    )
    count = len(values)
    returned = spelled(graph.returns or plain(count), lambda at: values[at], count)
    body = [*lines, f"return {returned}"]
    about = "replaced by operators, and by PyTorch where it says so"
    forward = Forward(names, positions, graph.literals)
    return module_file(source, "ModelNew", about, body, forward, graph.constants, check=CHECK)


def write_forward(graph: Graph, taken: Callable[[GraphInput], str]) -> tuple[list[str], list[str]]:
    """Checks of the arguments, one line for each call; and the expressions of the outputs.

    taken: the expression of an input.
    """
    text = _Text(graph, taken)
    lines = [*text.checks(), *map(text.line, graph.nodes)]
    return lines, [text.value(name) for name in graph.outputs]


def read_forward(graph: Graph, names: dict[str, object]) -> Callable[..., Any]:
    """The same as a function of the tensors among forward's arguments, and what the module holds.

    It gives a list of the outputs.

    `names`: torch, and what stands for the operators' library. The text is ours, of a graph whose
    names and operations were checked (task/composition.py).
    """

    def taken(item: GraphInput) -> str:
        return f"tensors[{item.position}]" if item.kind == "user" else f"held[{item.target!r}]"

    lines, values = write_forward(graph, taken)
    text = "\n".join(f"    {line}" for line in [*lines, f"return [{', '.join(values)}]"])
    space = dict(names)
    exec(f"{CHECK}\n\n\ndef forward(tensors, held):\n{text}\n", space)
    found: Callable[..., Any] = space["forward"]  # type: ignore[assignment]
    return found


class _Text:
    def __init__(self, graph: Graph, taken: Callable[[GraphInput], str]) -> None:
        self.graph, self.taken = graph, taken
        self.inputs = {item.name: item for item in graph.inputs}
        self.made: set[str] = set()  # tensors so far
        self.symbolic = graph.symbolic_slots()
        first = next(iter(graph.inputs), None)
        self.device = '"cpu"' if first is None else f"{taken(first)}.device"

    def value(self, name: str) -> str:
        if name in self.inputs:
            return self.taken(self.inputs[name])
        return f"{name}_" if name in _RESERVED or name.startswith("_") else name

    def checks(self) -> Iterator[str]:
        for item in self.graph.inputs:
            if item.kind == "user":
                at, shape = item.position, item.shape
                sizes = {axis: shape[axis] for i, axis in self.graph.fixed if i == at}
                if self.graph.symbolic is None:  # captured at no other sizes
                    sizes = dict(enumerate(shape))
                steps = {axis: step for i, axis, step in self.graph.steps if i == at}
                dtype = f"torch.{item.dtype.value}"
                named = f'"{item.name}", {self.taken(item)}'
                yield f"_check({named}, {len(shape)}, {dtype}, {sizes}, {steps})"

    def line(self, node: Node) -> str:
        line = self._line(node)
        if node.shape:
            self.made.add(node.name)
        return line

    def _line(self, node: Node) -> str:
        if node.op == "aten.getitem":
            source, at = (self._argument(node, slot, arg) for slot, arg in enumerate(node.args))
            return f"{self.value(node.name)} = {source}[{at}]"
        space, name, overload = node.op.split(".")
        given = [self._argument(node, slot, arg) for slot, arg in enumerate(node.args)]
        if is_operator(node):
            return f"{self.value(node.name)} = {call_text(name, given)}"
        given += [f"{key}={self._argument(node, key, arg)}" for key, arg in node.kwargs.items()]
        called = f"torch.ops.{space}.{name}.{overload}({', '.join(given)})"
        return f"{self.value(node.name)} = {called}  # left to PyTorch"

    def _argument(self, node: Node, slot: int | str, argument: Argument) -> str:
        if isinstance(argument, tuple):
            items = (self._scalar(node, slot, at, item) for at, item in enumerate(argument))
            return f"[{', '.join(items)}]"
        return self._scalar(node, slot, None, argument)

    def _scalar(self, node: Node, slot: int | str, at: int | None, item: Ref | Literals) -> str:
        if isinstance(item, Ref):
            return self.value(item.ref)
        if (size := self.symbolic.get(node.name, {}).get((slot, at))) is not None:
            return self._size(size)
        if isinstance(item, str):
            if slot == "device":
                return self.device
            words = _TORCH.get(slot, ()) if isinstance(slot, str) else _TYPES
            return f"torch.{item}" if item in words else python_literal(item)
        return python_literal(item)

    # --- sizes

    def _size(self, item: SymbolicSize) -> str:
        """As SymbolicSize.value, of the sizes that there are."""
        found = " * ".join(map(self._class, item.classes)) or "1"
        if item.factor is not None:
            return f"{item.factor!r} * ({found} + {item.plus}) ** {item.power!r}"
        if item.times != 1:
            found = f"{found} * {item.times}"
        if item.inner:
            found = f"{found} + {item.inner}"
        if item.over != 1:
            found = f"-(-({found}) // {item.over})" if item.up else f"({found}) // {item.over}"
        if item.parts != 1 or item.negative:
            found = f"{-item.parts if item.negative else item.parts} * ({found})"
        return f"{found} + {item.plus}" if item.plus else found

    def _class(self, at: int) -> str:
        row = self.graph.classes[at]
        for name, axis in row.axes:
            if name in self.inputs or name in self.made:
                return f"{self.value(name)}.shape[{axis}]"
        if row.form is None:
            return str(row.sizes[0])
        return f"({self._size(row.form)})"
