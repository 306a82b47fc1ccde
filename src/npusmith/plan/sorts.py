"""Rows in order: sort and topk along the last dimension.

An order says for every place of a sorted row where its element stands; values are read there, so
what is sorted may be any expression, and so may what is made of it. Integers that float32 does not
hold are put in order by their digits of 16 bits, the lowest first: equal ones stay as they are.
Other dimensions are turned to the end at the capture (task/decompositions.py).
"""

from __future__ import annotations

from dataclasses import replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const
from npusmith.plan import integers
from npusmith.plan.axes import Dim
from npusmith.plan.dag import EXACT, Dag, Kind, Value, held
from npusmith.plan.reader import Reader, Result, Rule, Tensor
from npusmith.task.graph import Node

ORDERED = "ordered"  # mode of what is read where an order says
DIGIT = 16  # bits
LONGEST = 4096  # elements, at most, that are put in order together


def mode_of(node: Node) -> str:
    """`ascending` or `descending`; `sort.stable` says first whether it is stable."""
    at, name, default = 2, "descending", False
    if "topk" in node.op:
        at, name, default = 3, "largest", True
    elif node.op.endswith("stable"):
        at = 3
    down = node.args[at] if at < len(node.args) else node.kwargs.get(name, default)
    return "descending" if down else "ascending"


def sort(r: Reader) -> Result:
    return _in_order(r, r.tensor(r.argument(0)))


def topk(r: Reader) -> Result:
    """The first elements of the whole row in order."""
    x = r.tensor(r.argument(0))
    ((kept, size),) = r.measures(r.argument(1, "k"))
    first: Dim = r.axis(kept) if isinstance(size, Const) else r.axis(kept, size)
    dims = (*x.dims[:-1], first)
    r.require(r.size(x.dims[-1]), r.size(first))
    at = {len(dims) - 1: r.index(first)}
    return tuple(r.placed(item, dims, at) for item in _in_order(r, x))


def _in_order(r: Reader, x: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of each row in order, and where they stand in it."""
    assert r.node is not None
    at, dim = len(x.dims) - 1, x.dims[-1]
    if not dim:
        return x, Tensor(r.dag.const(0.0), x.dims, DType.INT64)
    order: Tensor | None = None
    for digit in _digits(r.dag, x):
        own = Tensor(digit, x.dims, x.dtype)
        key = own if order is None else _read(r, own, order, at)
        found = r.dag.make("order", key.value, axes=dim, mode=mode_of(r.node), kind=Kind.INT)
        r.dag.spans[found] = 0, EXACT - 1
        step = Tensor(found, x.dims, DType.INT64)
        order = step if order is None else _read(r, order, step, at)
    assert order is not None
    return _read(r, x, order, at), order


def _read(r: Reader, x: Tensor, order: Tensor, at: int) -> Tensor:
    """Elements of rows where an order says."""
    return replace(r.placed(x, x.dims, {at: r.element(order)}, mode=ORDERED), moved=None)


def _digits(dag: Dag, x: Tensor) -> list[Value]:
    """What rows are put in order by, one after another: float32."""
    value = x.value
    if value.kind is Kind.FLOAT:
        return [value]
    low, high = integers.span_of(dag, value)
    if low > -EXACT and high < EXACT:
        return [held(dag, value, Kind.FLOAT)]
    if value.kind is Kind.INT:
        return _halves(dag, value, signed=True)
    lower = integers.scalar(dag, "copy", Kind.INT, value)
    upper = integers.scalar(dag, "high", Kind.INT, value)
    return [*_halves(dag, lower, signed=False), *_halves(dag, upper, signed=True)]


def _halves(dag: Dag, word: Value, signed: bool) -> list[Value]:
    """The digits of 32 bits; of a word that is no number's highest, the sign is a bit as any."""
    high = integers.shift_right(dag, word, DIGIT)
    low = dag.sub(word, integers.shift_left(dag, high, DIGIT))
    if not signed:
        sign = integers.shift_right(dag, high, DIGIT - 1)
        high = dag.sub(high, integers.shift_left(dag, sign, DIGIT))
    return [held(dag, low, Kind.FLOAT), held(dag, high, Kind.FLOAT)]


RULES: dict[str, Rule] = {"sort": sort, "topk": topk}
