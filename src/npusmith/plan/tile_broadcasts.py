"""Values along some axes of a tile, and broadcasts of them along the others.

A value is computed along those axes of the tile that it differs along: an exponential of one number
a row is computed once a row. Where operands of one operation run along different axes, each is
laid out along all of them by a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from npusmith.ir.nodes import Expr
from npusmith.plan import tile_sorts, window_shapes
from npusmith.plan.block import Path
from npusmith.plan.dag import Kind, Value
from npusmith.plan.index import replaced
from npusmith.plan.index_vectors import offsets, pick
from npusmith.plan.lane_space import Domain, Lanes
from npusmith.plan.reader import ELEMENT
from npusmith.plan.scalars import ZERO
from npusmith.plan.tile_folds import repeat, repeats, reserve, spread, spreads


@dataclass(slots=True)
class Broadcaster:
    """Rewrites values so that the operands of every operation run along the same axes."""

    w: Lanes
    done: dict[Value, Value] = field(default_factory=dict)

    def value(self, value: Value) -> Value:
        if value not in self.done:
            self.done[value] = self._value(value)
        return self.done[value]

    def _value(self, value: Value) -> Value:
        dag = self.w.space.dag
        match value.op:
            case "const" | "count":
                return value
            case "fetch" | "place":
                index = tuple(self._index(expr) for expr in value.index)
                return dag.keep(
                    Value(
                        value.op,
                        text=value.text,
                        dtype=value.dtype,
                        kind=value.kind,
                        index=index,
                        axes=value.axes,
                    )
                )
            case "taken":
                operand = self.value(value.args[0])
                index = tuple(self._index(expr) for expr in value.index)
                return dag.make("taken", operand, kind=value.kind, index=index, axes=value.axes)
            case "fold":
                operand = self.value(value.args[0])
                operand = self.along(operand, self._joined([operand], value.parts))
                if not self.w.interleaved:
                    reserve(self.w, self.w.domain(operand), value.parts)
                return dag.make(
                    "fold", operand, text=value.text, parts=value.parts, axes=value.axes
                )
            case "order":
                operand = self.value(value.args[0])
                operand = self.along(operand, self._joined([operand], value.parts))
                tile_sorts.reserve(self.w, self.w.domain(operand) or value.parts, value.parts)
                return dag.make(
                    "order", operand, mode=value.mode, parts=value.parts, kind=value.kind,
                    axes=value.axes,
                )  # fmt: skip
            case "window":
                shape = self.w.windows[value]
                operand = self.along(self.value(value.args[0]), shape.held)
                window_shapes.reserve(self.w, shape)
                return window_shapes.made(self.w, shape, value.text, operand)
            case "reduce":
                operand = self.along(self.value(value.args[0]), self.w.frame)
                return dag.reduce(value.text, operand, value.axes)
        args = [self.value(arg) for arg in value.args]
        if not self.w.interleaved or any(arg.kind is Kind.MASK for arg in (value, *args)):
            args = [self.along(arg, self._joined(args)) for arg in args]
        return dag.keep(replace(value, args=tuple(args), axes=(), index=(), parts=()))

    def _joined(self, args: Sequence[Value], lanes: Domain = ()) -> Domain:
        """Along what these run together."""
        return self.w.ordered({*lanes, *(lane for arg in args for lane in self.w.domain(arg))})

    def _index(self, expr: Expr) -> Expr:
        """The same, its elements of index tensors rewritten."""
        w = self.w

        def new(name: str) -> Expr | None:
            if not name.startswith(ELEMENT):
                return None
            return w.element(self.value(w.elements[int(name[1:])]))

        return replaced(expr, new)

    def along(self, value: Value, domain: Domain) -> Value:
        """The same along these axes; what is one number for the tile stays one."""
        w, dag = self.w, self.w.space.dag
        own = w.domain(value)
        assert set(own) <= set(domain), value.op
        if own == domain:
            return value
        if value.kind is Kind.MASK:
            if value.op == "const":
                return value
            truth = dag.truth(value)
            truth = self.along(truth, domain) if own else dag.make("fill", truth, parts=domain)
            return dag.compare("gt", truth, dag.const(0.5))
        if not own:
            return value
        if w.interleaved:
            pass
        elif value.kind is Kind.FLOAT and spreads(w, own, domain):
            reserve(w, domain, domain[len(own) :])
        elif value.kind is not Kind.LONG and repeats(w, own, domain):
            reserve(w, domain, own)
        return dag.make("broadcast", value, kind=value.kind, parts=domain)


def broadcast(w: Lanes, path: Path, value: Value) -> None:
    """Lay a value out along axes that it does not differ along."""
    (operand,) = value.args
    own = w.domain(operand)
    result = w.stored.pop(value, None) or w.like(value)
    path[-1].buffers[value] = result
    if value.kind is Kind.FLOAT and spreads(w, own, value.parts):
        spread(w, path, value, result)
        return
    if value.kind is not Kind.LONG and repeats(w, own, value.parts):
        repeat(w, path, value, result)
        return
    table = offsets(w, path, [(lane, w.depth(lane, own)) for lane in own])
    pick(w, path, value.kind, (result, w.held(path, operand), table), ZERO)
