"""Folds that need another fold of the same row, and can be had in the same pass all the same.

Sums of squared distances from the mean need the mean, sums of exponentials below the maximum need
the maximum: a pass each over a row that does not stay on chip. Both follow from sums around a value
that is known before (`moments.py`) or grows with the pass (`online_columns.py`). What is looked for
is the form of the expression, wherever a model has written it, not a normalization by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npusmith.plan.dag import Value
from npusmith.plan.space import Space


class Form(Enum):
    """What is summed, with c one number for the row (or for the column, where rows are summed)."""

    DISTANCE = "x - c"
    SQUARE = "(x - c) * (x - c)"
    RAISED = "exp(x - c)"


@dataclass(frozen=True, slots=True)
class Dependent:
    """`fold` needs `centre`, which needs `lead`: a sum or a maximum of `x` over the same axes."""

    fold: Value
    form: Form
    x: Value
    centre: Value
    lead: Value


def find_dependent(space: Space, fold: Value) -> Dependent | None:
    """How a sum depends on another fold of its row, where it does so in one of these forms."""
    if fold.op != "reduce" or fold.text != "sum":
        return None
    form, distance = _form(fold.args[0])
    if distance.op != "sub":
        return None
    x, centre = distance.args
    along = set(fold.axes)
    if space.axes(centre) & along or space.axes(x) != space.axes(distance):
        return None
    lead = _lead(centre, x, along, "max" if form is Form.RAISED else "sum")
    return None if lead is None else Dependent(fold, form, x, centre, lead)


def _form(operand: Value) -> tuple[Form, Value]:
    if operand.op == "exp":
        return Form.RAISED, operand.args[0]
    if operand.op == "mul" and operand.args[0] is operand.args[1]:
        return Form.SQUARE, operand.args[0]
    return Form.DISTANCE, operand


def _lead(centre: Value, x: Value, along: set[int], text: str) -> Value | None:
    """The fold of x itself that the centre depends on."""
    seen: set[Value] = set()
    stack = [centre]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        same = value.op == "reduce" and value.args[0] is x and set(value.axes) == along
        if same and value.text == text:
            return value
        stack += value.args
    return None


def only_distances(space: Space, lead: Value) -> bool:
    """Whether a sum of x serves nothing but differences x - c, which need it to the spread of x."""
    x = lead.args[0]
    seen: set[Value] = set()
    stack = [output.value for output in space.outputs]
    while stack:
        value = stack.pop()
        if value is lead:
            return False
        if value not in seen:
            seen.add(value)
            distance = value.op == "sub" and value.args[0] is x
            stack += value.args[:1] if distance else value.args
    return True
