"""The calls that eager PyTorch makes for a captured graph: one a kernel sequence on the device.

`graph_calls(graph)` drops what costs nothing (views, checks, dropout in eval mode) and adds the
copies that a strided operand costs. A call has one text form, `softmax(float32[16,64]) ->
float32[16,64] dim=1`, which measured tables and reports use; `parse_call` reads it back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from npusmith.task.graph import Argument, Graph, Node, Ref

BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "uint16": 2, "uint32": 4, "complex64": 8,
}  # fmt: skip


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a call reads or writes."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * BYTES[self.dtype]

    def text(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Call:
    """One operation on the device. `attrs` holds only what changes the work, sorted by name."""

    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attrs: tuple[tuple[str, str], ...] = ()

    def attr(self, name: str, default: str = "") -> str:
        return dict(self.attrs).get(name, default)

    def text(self) -> str:
        head = f"{self.op}({', '.join(item.text() for item in self.inputs)})"
        tail = ", ".join(item.text() for item in self.outputs)
        return " ".join([head, "->", tail, *(f"{k}={v}" for k, v in self.attrs)])


_RECURRENT = _names("lstm gru rnn_tanh rnn_relu")


def step_calls(call: Call) -> list[tuple[Call, int]]:
    """The products of a recurrent layer, and how often each is computed; none of anything else.

    One for all steps of a layer with its input, and one for each step with its state.
    """
    if call.op not in _RECURRENT:
        return []
    x, state = call.inputs[:2]
    weights = [item for item in call.inputs if len(item.shape) == 2]
    layers, batch = state.shape[0], max(1, state.shape[1])
    steps, each = max(1, x.size // max(1, batch * x.shape[-1])), len(weights) // max(1, layers)
    found: list[tuple[Call, int]] = []
    for at, item in enumerate(weights):
        once = at % max(1, each) == 0
        rows = Operand(x.dtype, (steps * batch if once else batch, item.shape[1]))
        result = Operand(x.dtype, (rows.shape[0], item.shape[0]))
        found.append((Call("linear", (rows, item), (result,)), 1 if once else steps))
    return found


_CALL = re.compile(r"(\w+)\((.*?)\) -> ((?:\w+\[[\d,]*\](?:, )?)*)((?: ?\w+=\S+)*)$")
_OPERAND = re.compile(r"(\w+)\[([\d,]*)\]")


def parse_call(text: str) -> Call:
    """The call that `Call.text` wrote; ValueError for anything else."""
    found = _CALL.match(text)
    if not found:
        raise ValueError(f"not a call: {text!r}")
    op, inputs, outputs, attrs = found.groups()
    pairs = tuple(tuple(word.split("=", 1)) for word in attrs.split())
    return Call(op, _operands(inputs), _operands(outputs), pairs)


def _operands(text: str) -> tuple[Operand, ...]:
    found = _OPERAND.findall(text)
    return tuple(Operand(d, tuple(int(n) for n in s.split(",") if n)) for d, s in found)


# Operations that give another look at the same bytes: nothing runs on the device.
_VIEWS = _names(
    """view reshape flatten unflatten unsqueeze squeeze expand expand_as broadcast_to view_as alias
    detach getitem permute transpose t numpy_T mT movedim swapaxes slice narrow select split chunk
    unbind split_with_sizes diagonal unfold lift_fresh lift_fresh_copy _unsafe_view as_strided
    broadcast_tensors
    """
)
# Of those, the ones after which rows no longer follow each other in memory.
_STRIDED = _names(
    """permute transpose t numpy_T mT movedim swapaxes slice narrow split chunk unbind
    split_with_sizes diagonal unfold as_strided"""
)
# Views that cut: where among the arguments they name the axis, the first one by default.
_CUT_AXIS = {
    "slice": 1, "narrow": 1, "unbind": 1, "split": 2, "chunk": 2, "split_with_sizes": 2,
}  # fmt: skip
_FREE = _names(
    """dropout feature_dropout alpha_dropout scalar_tensor sym_size sym_numel item is_floating_point
    _assert_tensor_metadata _assert_async _assert_scalar empty empty_like new_empty device dim
    """
)
# The cube reads either order of the last two axes, so these take a transposed operand as it is.
_TAKE_STRIDED = _names("matmul mm bmm _int_mm addmm baddbmm linear einsum")
_SAME = {
    "absolute": "abs", "clamp_min": "clamp", "clamp_max": "clamp", "mm": "matmul", "bmm": "matmul",
    "_int_mm": "matmul",
    "_softmax": "softmax", "_log_softmax": "log_softmax", "true_divide": "div", "divide": "div",
    "multiply": "mul", "subtract": "sub", "_to_copy": "to", "clone": "copy",
    "contiguous": "copy", "negative": "neg", "cudnn_batch_norm":
    "batch_norm", "native_layer_norm": "layer_norm", "native_group_norm": "group_norm",
    "_native_batch_norm_legit_no_training": "batch_norm", "rsub": "sub",
    "concat": "cat", "norm": "linalg_vector_norm",
}  # fmt: skip
# Overloads that are another operation: without an axis there are no indices to find.
_OVERLOADS = {
    "aten.max.default": "amax", "aten.min.default": "amin", "aten.max.other": "maximum",
    "aten.min.other": "minimum",
}  # fmt: skip
# Attributes that change the work: name and position among the arguments.
_SIZES = {"kernel": 1, "stride": 2, "padding": 3}
_CONV = {"stride": 3, "padding": 4, "dilation": 5, "groups": 6}
_TRANSPOSED = {"stride": 3, "padding": 4, "output_padding": 5, "groups": 6, "dilation": 7}
_DIM = {"dim": 1}
_KEPT: dict[str, dict[str, int]] = {
    **dict.fromkeys(
        _names(
            """softmax log_softmax sum mean max min amax amin prod argmax argmin cumsum cumprod
            flip var std all any logsumexp cat stack sort index_select gather glu roll
            linalg_vector_norm"""
        ),
        _DIM,
    ),
    "linalg_vector_norm": {"ord": 1, "dim": 2},
    "topk": {"k": 1, "dim": 2},
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONV),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _TRANSPOSED),
    **{f"{kind}_pool{n}d": _SIZES for kind in ("avg", "max") for n in (1, 2, 3)},
    "gelu": {"approximate": 1},
    "group_norm": {"groups": 1},
    "layer_norm": {"axes": 1},
    "batch_norm": {"training": 5},
    "scaled_dot_product_attention": {"is_causal": 5},
}
# Names of keyword arguments that differ from ours.
_KEYWORDS = {"axes": "normalized_shape", "groups": "num_groups", "kernel": "kernel_size"}


def op_name(text: str) -> str:
    """ "aten.add_.Tensor" is add."""
    parts = text.split(".")
    name = parts[1] if len(parts) > 1 else text
    return name[:-1] if name.endswith("_") and not name.startswith("__") else name


def graph_calls(graph: Graph) -> tuple[Call, ...]:
    """What eager would launch for this graph, in order."""
    return _Reader(graph).read()


class _Reader:
    """Walks the nodes once; knows which results are views, and which of those are strided."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.eager or graph.nodes
        self.specs = {item.name: Operand(item.dtype.value, item.shape) for item in graph.inputs}
        self.specs |= {n.name: Operand(n.dtype.value, n.shape) for n in self.nodes if n.dtype}
        self.parts = self._parts()
        self.strided: set[str] = set()
        self.calls: list[Call] = []

    def _parts(self) -> dict[str, list[str]]:
        """The getitem nodes of each node with several results."""
        parts: dict[str, list[str]] = {}
        for node in self.nodes:
            if op_name(node.op) == "getitem" and isinstance(node.args[0], Ref):
                parts.setdefault(node.args[0].ref, []).append(node.name)
        return parts

    def read(self) -> tuple[Call, ...]:
        for node in self.nodes:
            self._read_node(node)
        return tuple(self.calls)

    def _read_node(self, node: Node) -> None:
        name = op_name(node.op)
        sources = [item for item in _refs(node) if item in self.specs]
        if name in _VIEWS:
            self._view(node, name, _refs(node))
        elif name not in _FREE and not self._is_nothing(node, name, sources):
            self._call(node, _OVERLOADS.get(node.op, _SAME.get(name, name)), sources)

    def _view(self, node: Node, name: str, sources: list[str]) -> None:
        strided = any(source in self.strided for source in sources)
        if strided and name in ("reshape", "flatten"):
            self._copy(sources[0])
        elif strided or (name in _STRIDED and self._moves(node, name)):
            self.strided.add(node.name)

    def _moves(self, node: Node, name: str) -> bool:
        """Does this view leave gaps or another order? Not where it cuts the first axis."""
        at = _CUT_AXIS.get(name)
        if at is None:
            return True
        axis = node.args[at] if len(node.args) > at else node.kwargs.get("dim", 0)
        return axis != 0

    def _is_nothing(self, node: Node, name: str, sources: list[str]) -> bool:
        """Conversions to the same type, copies of what is contiguous already, empty results."""
        if not sources or not self._results(node):
            return name.startswith(("_assert", "sym_"))
        same = self.specs[sources[0]] == self.specs.get(node.name)
        kept = same and sources[0] not in self.strided
        return name in ("to", "contiguous", "_to_copy", "type_as") and kept

    def _call(self, node: Node, op: str, sources: list[str]) -> None:
        if op not in _TAKE_STRIDED and op != "copy":
            for source in sources:
                if source in self.strided:
                    self._copy(source)
        inputs = tuple(self.specs[source] for source in sources)
        attrs = _attributes(node, op, inputs)
        self.calls.append(Call(op, inputs, self._results(node), attrs))

    def _copy(self, source: str) -> None:
        spec = self.specs.get(source)
        if spec:
            self.calls.append(Call("copy", (spec,), (spec,)))
        self.strided.discard(source)

    def _results(self, node: Node) -> tuple[Operand, ...]:
        if node.name in self.specs:
            return (self.specs[node.name],)
        return tuple(
            self.specs[part] for part in self.parts.get(node.name, ()) if part in self.specs
        )


def _refs(node: Node) -> list[str]:
    found: list[str] = []
    for item in (*node.args, *node.kwargs.values()):
        parts = item if isinstance(item, tuple) else (item,)
        found += [part.ref for part in parts if isinstance(part, Ref)]
    return found


def _attributes(node: Node, op: str, inputs: tuple[Operand, ...]) -> tuple[tuple[str, str], ...]:
    kept = []
    for name, position in _KEPT.get(op, {}).items():
        value = node.args[position] if len(node.args) > position else None
        value = node.kwargs.get(name, node.kwargs.get(_KEYWORDS.get(name, name), value))
        if not isinstance(value, Ref) and value is not None and value != "none":
            kept.append((name, _attribute(name, value, inputs)))
    return tuple(sorted((k, v) for k, v in kept if not _is_default(k, v)))


_DEFAULTS = {"padding": "0", "output_padding": "0", "dilation": "1", "groups": "1", "stride": "1"}


def _is_default(name: str, text: str) -> bool:
    """Left out, so that calls that spell a default and calls that do not are the same."""
    if name in ("is_causal", "training"):
        return text == "False"
    return set(text.split(",")) <= {_DEFAULTS.get(name, "-")}


def _attribute(name: str, value: Argument, inputs: tuple[Operand, ...]) -> str:
    """One word; axes count from the front, windows have one number an axis."""
    parts: Iterable[object] = value if isinstance(value, tuple) else (value,)
    rank = len(inputs[0].shape) if inputs else 0
    if name == "axes":
        return str(len(tuple(parts)))
    if name == "dim":
        numbers = sorted(int(str(part)) % max(rank, 1) for part in parts)
        return ",".join(map(str, numbers)) if numbers else "all"
    words = [str(part) for part in parts]
    return ",".join(words[:1] if len(set(words)) == 1 else words)
