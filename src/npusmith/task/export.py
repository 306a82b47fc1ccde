"""torch.export of the task's model as a Graph; runs in the sandboxed child only."""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import inspect
import linecache
import operator
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch._higher_order_ops.scan import scan_op
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from npusmith.errors import Place, TaskError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import Constant
from npusmith.task.alias import flat_bytes
from npusmith.task.core_aten import decompose
from npusmith.task.decompositions import table
from npusmith.task.gradients import is_of_gradients, traced
from npusmith.task.graph import SCAN, Argument, Graph, GraphInput, Node, Ref, crossing_input
from npusmith.task.hoisted_products import hoist_products
from npusmith.task.meta_constants import values_of
from npusmith.task.output_structure import (
    is_none,
    is_of_containers,
    register,
    structure_of,
)
from npusmith.task.recurrent_layers import named, whole_loops
from npusmith.task.rolled_loops import renamed_behind, roll_loops
from npusmith.task.selected_row_rules import ROW_RULES
from npusmith.task.selected_rows import NOTE, NotSelectable, depends_on_values, of_all_rows
from npusmith.task.user import (
    Inputs,
    Literals,
    Tensor,
    dtype_name,
    known_dtype,
    short_path,
    user_code,
)
from npusmith.task.value_checks import SAME_SIZES, left_out

_KINDS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "user",
}
_ENDS = ("placeholder", "output")
_CHANGES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
# Checks that export leaves behind: they compute nothing.
_CHECKS = ("aten._assert_tensor_metadata", "aten._assert_async", "aten._assert_scalar")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')


@dataclass(frozen=True, slots=True)
class Captured:
    """A graph, the tensors that its non-user inputs stand for, and what was noticed on the way."""

    graph: Graph
    values: dict[str, Tensor]  # by target
    program: Any
    notes: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)  # the program's, where others are used


def warm_up() -> None:
    """Load what torch.export loads at its first call, before the task's file runs.

    These modules are some million objects that live to the end: the garbage collector, off since
    the start of the process, shall not go through them again and again. A third of the
    time of a capture.
    """
    importlib.import_module("torch._dynamo")
    importlib.import_module("torch.export._trace")
    gc.freeze()
    gc.enable()


def export_graph(model: Any, inputs: Inputs, path: str, as_in: Graph | None = None) -> Captured:
    """Capture `model` on these inputs in core ATen; TaskError names what cannot be captured.

    `as_in`: the graph at the task's own sizes, of a capture at others.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            exported = _exported(model, inputs, path, as_in)
            with user_code(path, "torch.export", "task-export"):
                eager = eager_nodes(exported, path)
                program = decompose(exported, table())
            program, chosen = _on_all_rows(program, model.forward, inputs, path)
        except TaskError as error:
            raise _plainly(error) from error.__cause__
    module = program.graph_module
    for node in list(module.graph.nodes):
        if _op_name(node).startswith(_CHECKS):
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    captured = _read_program(program, inputs, path, eager)
    rolled, names = renamed_behind(hoist_products(roll_loops(captured.graph, as_in)))
    captured = replace(captured, graph=rolled, names=names, notes=(*chosen, *captured.notes))
    told = {
        "literals": _literals(model, inputs), "constants": _constants(model, captured, path),
        "returns": structure_of(program, path),
    }  # fmt: skip
    return replace(captured, graph=captured.graph.model_copy(update=told))


def _on_all_rows(
    program: Any, forward: Any, inputs: Inputs, path: str
) -> tuple[Any, tuple[str, ...]]:
    """The program with all rows where a mask selects some, and what that says to the user.

    As it is where something else depends on values: reading it names the line.
    """
    if not depends_on_values(program):
        return program, ()
    try:
        with user_code(path, "torch.export", "task-export"):
            whole = of_all_rows(program, forward, inputs.args(), ROW_RULES)
            return decompose(whole, table()), (NOTE,)
    except TaskError as error:
        if not isinstance(error.__cause__, NotSelectable):
            return program, ()
        what, node = error.__cause__.args
        if node.op == "output":
            return program, ()
        raise _not_of_all_rows(what, node, path) from error


def _not_of_all_rows(what: str, node: Any, path: str) -> TaskError:
    doing = what.partition("\n")[0]
    why = "" if str(node.target) in doing else f" ({doing})"
    message = f"{_op_name(node)} on rows that a mask selects{why}: how many depends on values"
    error = _refused(node, path, message)
    legal = (
        "of such rows: what goes element by element or row by row, reductions, products, and "
        "assignments under the same mask"
    )
    hint = "keep all rows, and weight them by the mask"
    return TaskError(error.code, message, error.place, seen=error.seen, legal=legal, hint=hint)


def _exported(model: Any, inputs: Inputs, path: str, as_in: Graph | None) -> Any:
    """Tensors that forward changes have to be buffers, whatever attributes they are.

    A forward that computes gradients is traced before it is exported.
    """
    given = inputs.args()

    def call(model: Any, same_masks: bool = False) -> Any:
        with user_code(path, "torch.export", "task-export"), whole_loops(as_in), left_out(
            same_masks
        ):  # fmt: skip
            return torch.export.export(model, args=given, strict=False)

    try:
        return call(model)
    except TaskError as error:
        changes, differs = "register it as buffer" in error.message, is_of_gradients(error.message)
        if is_of_containers(error.message) and register(lambda: model(*given)):
            return _exported(model, inputs, path, as_in)
        if SAME_SIZES in error.message:
            return call(model, True)
        if not changes and not differs:
            raise
    with _as_buffers(model) if changes else contextlib.nullcontext():
        if differs:
            with user_code(path, "torch.export", "task-export"), whole_loops(as_in):
                model = traced(model, given)
        return call(model)


@contextlib.contextmanager
def _as_buffers(model: Any) -> Iterator[None]:
    """Tensors that modules hold as plain attributes are buffers for a while."""
    held = [
        (module, name, value)
        for module in model.modules()
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor)
    ]
    try:
        for module, name, value in held:
            delattr(module, name)
            module.register_buffer(name, value, persistent=False)
        yield
    finally:
        for module, name, value in held:
            delattr(module, name)
            setattr(module, name, value)


def _literals(model: Any, inputs: Inputs) -> tuple[Any, ...] | None:
    """The arguments of forward that are no tensors, in the order of its parameters."""
    given = inspect.signature(model.forward).bind(*inputs.args(lambda tensor: tensor))
    given.apply_defaults()
    leaves = pytree.tree_flatten(list(given.arguments.values()))[0]
    found = tuple(leaf for leaf in leaves if not isinstance(leaf, torch.Tensor))
    plain = all(isinstance(leaf, Literals) and leaf == leaf for leaf in found)  # nor NaN
    return found if plain else None


def _constants(model: Any, captured: Captured, path: str) -> tuple[Constant, ...]:
    """Tensors that forward makes, which are inputs of the graph but no attributes of the model."""
    made = [
        item
        for item in captured.graph.inputs
        if item.kind == "constant" and not _has(model, item.target)
    ]
    values = {item.target: captured.values[item.target] for item in made}
    if unknown := next((name for name, tensor in values.items() if tensor.is_meta), ""):
        message = "forward uses a constant tensor whose values are computed before, not written out"
        hint = "compute it in forward, or register it as a buffer"
        raise TaskError("task-export", message, Place(path), seen=unknown, hint=hint)
    return tuple(
        Constant(item.target, item.dtype, item.shape, _base64(values[item.target])) for item in made
    )


def _has(model: Any, target: str) -> bool:
    try:
        operator.attrgetter(target)(model)
    except AttributeError:
        return False
    return True


def _base64(tensor: Tensor) -> str:
    return base64.b64encode(flat_bytes(tensor).numpy()).decode()


def _plainly(error: TaskError) -> TaskError:
    """PyTorch's words for code that looks at values, or for a name, say nothing to its author."""
    if taken := re.search(r"attribute '(\w+)' already exists", error.message):
        text = f"torch.export has an attribute {taken[1]} of its own, and so has the module"
        hint = f"rename the module's {taken[1]}"
        return TaskError(error.code, text, error.place, seen=taken[1], hint=hint)
    if "zeros(): argument 'size'" in error.message and "FakeTensor" in error.message:
        text = "a packed sequence: how many rows a step has depends on values"
        hint = "give padded sequences and their lengths, and mask what is behind them"
        return TaskError(error.code, text, error.place, seen=error.seen, hint=hint)
    if "data-dependent expression" not in error.message:
        return error
    words = "what this line does depends on values, which a graph cannot hold"
    text = f"{words} ({error.message[:160]})"
    return TaskError(error.code, text, error.place, seen=error.seen, hint=error.hint)


def eager_nodes(program: Any, path: str) -> tuple[Node, ...]:
    """The calls of an exported program as PyTorch makes them; empty when one has no form here.

    Only the estimate of what eager PyTorch would take reads them, so they never fail a capture.
    """
    calls = [
        node
        for node in program.graph_module.graph.nodes
        if node.op not in _ENDS and not _op_name(node).startswith(_CHECKS)
    ]
    try:
        return tuple(_read_node(node, path) for node in calls)
    except TaskError:
        return ()


def _read_program(
    program: Any, inputs: Inputs, path: str, eager: tuple[Node, ...] = ()
) -> Captured:
    nodes = {node.name: node for node in program.graph_module.graph.nodes}
    notes: list[str] = []
    graph_inputs, values, user = [], {}, 0
    for spec in program.graph_signature.input_specs:
        node, kind = nodes[spec.arg.name], _KINDS.get(spec.kind)
        if kind is None:
            raise _foreign(nodes, node, spec, path)
        index = user
        user += kind == "user" and isinstance(node.meta.get("val"), torch.Tensor)
        if not _is_wanted(node, kind, index, path, notes):
            continue
        graph_inputs.append(_graph_input(node, kind, spec.target or "", index))
        if kind != "user":
            values[spec.target] = _value_of(program, spec)
    calls = [node for node in nodes.values() if node.op not in (*_ENDS, "get_attr")]
    graph = Graph(
        inputs=tuple(graph_inputs),
        nodes=tuple(_read_node(node, path) for node in calls),
        outputs=_read_outputs(program, nodes, path, notes),
        eager=eager,
    )
    return Captured(graph, values, program, tuple(notes))


def _foreign(nodes: dict[str, Any], node: Any, spec: Any, path: str) -> TaskError:
    """The error for an input that is no tensor, at the first node that takes it."""
    user = next((item for item in nodes.values() if node in item.all_input_nodes), node)
    called = getattr(user.args[1], "__name__", user.args[1]) if len(user.args) > 1 else user.name
    kind = str(spec.kind).partition(".")[2].lower()
    if "_check_errors" in str(called):  # of linalg.lu_factor and others
        why = "it raises an error that depends on values, such as of a matrix without an inverse"
        return _refused(user, path, f"{called}: {why}")
    return _refused(user, path, f"{called} takes a {kind} besides tensors: it has an effect")


def _is_wanted(node: Any, kind: str, index: int, path: str, notes: list[str]) -> bool:
    """Tensors that the graph reads, and user inputs of a type that the chip has."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return False  # a number: export has put it into the nodes
    if kind != "user" and not node.users:
        return False
    if known_dtype(value) is not None:
        return True
    name = f"input {index} ({node.name})" if kind == "user" else f"{kind} {node.name}"
    if not node.users:
        notes.append(f"{name} is {dtype_name(value)} and unused; it is left out")
        return False
    message = f"{name} is {dtype_name(value)}, which the chip does not have"
    raise TaskError("task-dtype", message, Place(path), seen=dtype_name(value))


def _graph_input(node: Any, kind: Any, target: str, index: int) -> GraphInput:
    value = node.meta["val"]
    return GraphInput(
        name=node.name,
        shape=tuple(int(dim) for dim in value.shape),
        dtype=DType(dtype_name(value)),
        kind=kind,
        target=target,
        position=index if kind == "user" else 0,
    )


def _value_of(program: Any, spec: Any) -> Tensor:
    held = program.state_dict if spec.target in program.state_dict else program.constants
    return values_of(held[spec.target]).detach().contiguous()


def _op_name(node: Any) -> str:
    if node.target is operator.getitem:
        return "aten.getitem"
    return named(str(node.target))


def _read_node(node: Any, path: str) -> Node:
    value = node.meta.get("val")
    is_tensor = isinstance(value, torch.Tensor)
    source = _source(node, path)
    if node.op != "call_function" or _op_name(node).startswith("<"):
        raise _refused(node, path, f"{_op_name(node)} ({node.op}) has no form in core ATen")
    args, body = node.args, None
    if node.target is scan_op:
        step, *args = args
        body = _read_body(getattr(node.graph.owning_module, step.target), path)
    return Node(
        name=node.name,
        op=SCAN if body is not None else _op_name(node),
        args=tuple(_read_argument(item, node, path) for item in args),
        body=body,
        kwargs={name: _read_argument(item, node, path) for name, item in node.kwargs.items()},
        shape=_shape(node, path) if is_tensor else (),
        dtype=known_dtype(value) if is_tensor else None,
        source=source,
    )


def _read_body(module: Any, path: str) -> Graph:
    """What a scan does in a step."""
    nodes = list(module.graph.nodes)
    (end,) = (node for node in nodes if node.op == "output")
    given = [node for node in nodes if node.op == "placeholder"]
    for node in given:
        if known_dtype(node.meta["val"]) is None:
            kind = dtype_name(node.meta["val"])
            raise _refused(node, path, f"a step takes {kind}, which the chip does not have")
    return Graph(
        inputs=tuple(
            crossing_input(node.name, _shape(node, path), DType(dtype_name(node.meta["val"])))
            for node in given
        ),
        nodes=tuple(_read_node(node, path) for node in nodes if node.op == "call_function"),
        outputs=tuple(node.name for node in end.args[0]),
    )


def _shape(node: Any, path: str) -> tuple[int, ...]:
    shape = node.meta["val"].shape
    if all(isinstance(dim, int) for dim in shape):
        return tuple(shape)
    raise _refused(node, path, f"the shape of {_op_name(node)} ({node.name}) depends on values")


def _refused(node: Any, path: str, message: str) -> TaskError:
    """The error that names the line of a node that no graph can hold."""
    spot, _, function = _source(node, path).partition(" ")
    line = int(spot.rpartition(":")[2] or 0)
    return TaskError("task-export", message, Place(path, line, function), seen=_line(path, line))


def _line(path: str, line: int) -> str:
    return linecache.getline(path, line).strip()[:200]


def _source(node: Any, path: str) -> str:
    """The innermost line of the task's file that led to this node."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if frame[0] == path]
    return f"{short_path(path)}:{own[-1][1]} {own[-1][2]}" if own else ""


def _read_argument(item: Any, node: Any, path: str) -> Argument:
    if isinstance(item, (list, tuple)):
        return tuple(_read_scalar(part, node, path) for part in item)
    return _read_scalar(item, node, path)


def _read_scalar(item: Any, node: Any, path: str) -> Ref | int | float | bool | str | None:
    if isinstance(item, torch.fx.Node):
        return Ref(ref=item.name)
    if item is None or isinstance(item, (bool, int, float, str)):
        return item
    if isinstance(item, (torch.dtype, torch.memory_format, torch.layout)):
        return str(item).removeprefix("torch.")
    if isinstance(item, torch.device):
        return str(item)
    kind = type(item).__name__
    raise _refused(node, path, f"{_op_name(node)} ({node.name}) has an argument of type {kind}")


def _read_outputs(
    program: Any, nodes: dict[str, Any], path: str, notes: list[str]
) -> tuple[str, ...]:
    names: list[str] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind in _CHANGES:
            notes.append(f"forward changes {spec.target} in place; only its outputs are compared")
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        if is_none(spec):
            continue
        node = nodes.get(getattr(spec.arg, "name", ""))
        if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
            raise TaskError("task-outputs", f"output {len(names)} is not a tensor", Place(path))
        if known_dtype(node.meta["val"]) is None:
            kind = dtype_name(node.meta["val"])
            message = f"output {len(names)} is {kind}, which the chip does not have"
            raise TaskError("task-dtype", message, Place(path), seen=kind)
        names.append(node.name)
    return tuple(names)
