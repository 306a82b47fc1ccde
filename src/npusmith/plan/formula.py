"""Expressions as short text, for docstrings and notes."""

from __future__ import annotations

from npusmith.plan.dag import Value
from npusmith.plan.space import Space

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"lt": "<", "gt": ">", "eq": "==", "le": "<=", "ge": ">="}
_DEEP = 5  # levels that are written out; below stands "..."
_LONG = 100  # characters


def formula(space: Space, value: Value) -> str:
    """`exp(x - max(x))`, cut off where it gets long."""
    texts = (_text(space, value, deep) for deep in range(_DEEP, 0, -1))
    return next((text for text in texts if len(text) <= _LONG), "...")


def _text(space: Space, value: Value, deep: int) -> str:
    if value.op == "load":
        return value.text
    if value.op == "const":
        return f"{value.number:.6g}"
    if value.op == "count":
        names = " * ".join(space.groups[axis].name for axis in value.axes)
        return f"({names} - {value.number})" if value.number else names
    if value.op == "index":
        return "position"
    if deep == 0:
        return "..."
    parts = [_text(space, arg, deep - 1) for arg in value.args]
    if value.op in _INFIX or value.op in _COMPARE:
        sign = (_INFIX | _COMPARE)[value.op]
        return f" {sign} ".join(
            f"({part})" if _loose(arg) else part
            for arg, part in zip(value.args, parts, strict=True)
        )
    if value.op == "select":
        return f"where({', '.join(parts)})"
    if value.op == "narrow" and value.dtype is not None:
        return f"{value.dtype.value}({parts[0]})"
    if value.op == "running":
        return f"cum{value.text}{'' if value.mode == 'forward' else '_' + value.mode}({parts[0]})"
    if value.op == "reduce":
        return f"{value.text}({parts[0]})"
    return f"{value.op}({', '.join(parts)})"


def _loose(value: Value) -> bool:
    """Whether an operand needs parentheses."""
    return value.op in _INFIX or value.op in _COMPARE
