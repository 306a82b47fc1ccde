"""Are two captures of one model the same program at different shapes?"""

from __future__ import annotations

import math

from npusmith.task.graph import Argument, Graph, Literals, Node, Ref, Slot, replaced

ROUNDING = 1e-12  # relative: of a number of Python that a formula over sizes gives too

# Argument positions that hold sizes: they follow the shapes, so they may differ.
SIZES: dict[str, tuple[int, ...]] = {
    "aten.view.default": (1,),
    "aten.reshape.default": (1,),
    "aten._unsafe_view.default": (1,),
    "aten.expand.default": (1,),
    "aten.full.default": (0,),
    "aten.empty.memory_format": (0,),
    "aten.empty_permuted.default": (0,),
    "aten.zeros.default": (0,),
    "aten.ones.default": (0,),
    "aten.new_full.default": (1,),
    "aten.new_zeros.default": (1,),
    "aten.new_ones.default": (1,),
    "aten.native_layer_norm.default": (1,),
    "aten.native_group_norm.default": (3, 4, 5),
}


def difference(base: Graph, other: Graph) -> str:
    """Why `other` is not `base` at other sizes, longer axes of 1 among them; empty when it is."""
    found = _difference(base, other)
    return _difference(base.longer, other) if found and base.longer is not None else found


def _difference(base: Graph, other: Graph) -> str:
    if why := program_difference(base, other):
        return why
    base = _at(base, other)
    reasons = (_number_difference(*pair) for pair in zip(base.nodes, other.nodes, strict=True))
    return next((reason for reason in reasons if reason), "")


def program_difference(base: Graph, other: Graph) -> str:
    """Why the two do not have the same operations on the same values, whatever their numbers."""
    if len(base.nodes) != len(other.nodes):
        return f"the graph has {len(other.nodes)} nodes here and {len(base.nodes)} at first"
    if [(item.name, len(item.shape), item.dtype) for item in other.inputs] != [
        (item.name, len(item.shape), item.dtype) for item in base.inputs
    ]:
        return "the inputs have other ranks or element types here"
    reasons = (_node_difference(*pair) for pair in zip(base.nodes, other.nodes, strict=True))
    if reason := next((reason for reason in reasons if reason), ""):
        return reason
    return "" if base.outputs == other.outputs else "the outputs come from other nodes here"


def _at(graph: Graph, other: Graph) -> Graph:
    """The graph with the numbers that follow from sizes as they are for the inputs of another."""
    shapes = {item.name: item.shape for item in other.inputs}
    slots = graph.symbolic_slots()

    def size(at: int) -> int:
        if (form := graph.classes[at].form) is not None:
            return int(form.value(math.prod(map(size, form.classes))))
        name, axis = graph.classes[at].axes[0]
        return shapes[name][axis]

    def moved(node: Node) -> Node:
        found = slots.get(node.name)
        if found is None:
            return node

        def number(slot: Slot, old: Ref | Literals) -> Ref | Literals:
            if (item := found.get(slot)) is None:
                return old
            value = item.value(math.prod(map(size, item.classes)))
            return float(value) if isinstance(old, float) else value

        args = tuple(replaced(i, old, number) for i, old in enumerate(node.args))
        kwargs = {name: replaced(name, old, number) for name, old in node.kwargs.items()}
        return node.model_copy(update={"args": args, "kwargs": kwargs})

    return graph.model_copy(update={"nodes": tuple(map(moved, graph.nodes))}) if slots else graph


def _node_difference(base: Node, other: Node) -> str:
    where = f" ({base.source})" if base.source else ""
    if base.op != other.op:
        return f"{other.op} stands where {base.op} stood{where}"
    if base.name != other.name:
        return f"there are other operations before {base.op}{where}"
    if len(base.shape) != len(other.shape) or base.dtype != other.dtype:
        return f"{base.op} gives another rank or element type{where}"
    if base.body is not None and other.body is not None:
        return program_difference(base.body, other.body)
    return ""


def _number_difference(base: Node, other: Node) -> str:
    where = f" ({base.source})" if base.source else ""
    before, after = _fixed(base), _fixed(other)
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if not _same(old, new):
            seen = f"has {_text(old)} at first and {_text(new)} here"
            return f"{base.op}{where} {seen}: a size was baked in as a number"
    if base.body is not None and other.body is not None:
        return _difference(base.body, other.body)
    return ""


def _fixed(node: Node) -> dict[str, Argument]:
    """The arguments that must not depend on shapes, by position or name."""
    free = SIZES.get(node.op, ())
    args = {str(i): item for i, item in enumerate(node.args) if i not in free}
    return {**args, **{k: v for k, v in node.kwargs.items() if k != "size"}}


def _same(old: Argument | None, new: Argument | None) -> bool:
    """Floats may differ by how a formula over sizes rounds: -9.21 / n is not -9.21 * n ** -1."""
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=ROUNDING) or (math.isnan(old) and math.isnan(new))
    return _text(old) == _text(new)  # 1 is not True, nor 1.0


def _text(item: Argument | None) -> str:
    return f"{item}" if not isinstance(item, tuple) else f"[{', '.join(map(str, item))}]"
