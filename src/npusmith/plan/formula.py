"""Expressions as short text, for docstrings and notes: nothing is left out.

Operators bind as in Python, so that `sum(x) / (batch * cols)` keeps its parentheses. What is long
gets a name, `f1`, which the docstring of the program explains.
"""

from __future__ import annotations

from npusmith.ir.nodes import BinOp
from npusmith.ir.text import ATOM, UNARY, infix, number
from npusmith.plan.dag import Value
from npusmith.plan.space import Space

_SIGNS = {
    "add": BinOp.ADD, "sub": BinOp.SUB, "mul": BinOp.MUL, "div": BinOp.DIV,
    "lt": BinOp.LT, "gt": BinOp.GT, "eq": BinOp.EQ, "le": BinOp.LE, "ge": BinOp.GE,
}  # fmt: skip
_LONG = 60  # characters of an operand; a longer one gets a name

Text = tuple[str, int]  # with how tightly its outermost operator binds


def formula(space: Space, value: Value) -> str:
    """`exp(x - max(x))`; operands that are long are names, see `explained`."""
    return _text(space, value)[0]


def explained(space: Space) -> list[str]:
    """What the names in all formulas so far stand for, `f1 = ...`, each after those it needs."""
    return [f"{name} = {text}" for name, text in space.named.values()]


def _text(space: Space, value: Value) -> Text:
    """Arguments first, each once: a graph may be far deeper than Python's stack."""
    done: dict[Value, Text] = {}
    stack = [value]
    while stack:
        item = stack[-1]
        missing = [arg for arg in item.args if arg not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        if item not in done:
            parts = [_short(space, arg, done[arg]) for arg in item.args]
            done[item] = _write(space, item, parts)
    return done[value]


def _short(space: Space, value: Value, text: Text) -> Text:
    if len(text[0]) <= _LONG:
        return text
    if value not in space.named:
        space.named[value] = (_fresh(space), text[0])
    return space.named[value][0], ATOM


def _fresh(space: Space) -> str:
    taken = {item.name for item in space.inputs} | {name for name, _ in space.named.values()}
    at = len(space.named) + 1
    while f"f{at}" in taken:
        at += 1
    return f"f{at}"


def _write(space: Space, value: Value, parts: list[Text]) -> Text:
    match value.op:
        case "load":
            return value.text, ATOM
        case "const":
            return _number(value.number)
        case "count":
            return _count(space, value)
        case "index":
            return "position", ATOM
        case "scalar":
            return f"{value.text}({', '.join(text for text, _ in parts)})", ATOM
        case op if op in _SIGNS:
            return infix(_SIGNS[op], *parts)
        case "select":
            name = "where"
        case "narrow" if value.dtype is not None:
            name = value.dtype.value
        case "running":
            name = f"cum{value.text}" + ("" if value.mode == "forward" else f"_{value.mode}")
        case "reduce":
            name = value.text
        case op:
            name = op
    return f"{name}({', '.join(text for text, _ in parts)})", ATOM


def _number(value: float) -> Text:
    text = f"{value:.6g}"
    return text, UNARY if text.startswith("-") else ATOM


def _count(space: Space, value: Value) -> Text:
    """Elements that a reduction takes in, `batch * cols - 1`."""
    text: Text = ("1", ATOM)
    for at, axis in enumerate(value.axes):
        name = (space.groups[axis].name, ATOM)
        text = infix(BinOp.MUL, text, name) if at else name
    return infix(BinOp.SUB, text, number(value.number)) if value.number else text
