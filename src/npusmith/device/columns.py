"""Which column of an operator's DataType lists a call uses: CANN compiles one kernel for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from npusmith.device.arguments import Bound, Value, is_number, listed, outputs
from npusmith.device.tensors import dtype_of
from npusmith.ir.dtypes import DType
from npusmith.twin.opdef import OpText, PortText

_BY_NAME = {dtype.ge: dtype for dtype in DType}


@dataclass(frozen=True, slots=True)
class Types:
    """The element type of each port."""

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]

    @property
    def all(self) -> tuple[DType, ...]:
        return (*self.inputs, *self.outputs)


def choose(op: OpText, bound: Bound) -> Types:
    """The types of a call. Where no column fits, the tensors' own: the run then says so."""
    values = [*bound.inputs, *outputs(op, bound)]
    column = _column(op.ports, values)
    types = tuple(_type(port, value, column) for port, value in zip(op.ports, values, strict=True))
    return Types(types[: len(op.inputs)], types[len(op.inputs) :])


def _column(ports: Sequence[PortText], values: Sequence[Value]) -> int:
    """The first column that fits every tensor; 0 when there is none."""
    count = max((len(port.types) for port in ports), default=0)
    for column in range(count):
        if all(_fits(port, value, column) for port, value in zip(ports, values, strict=True)):
            return column
    return 0


def _fits(port: PortText, value: Value, column: int) -> bool:
    given = listed(value)
    if not given or column >= len(port.types):
        return True
    return dtype_of(given[0].dtype).ge == port.types[column]


def _type(port: PortText, value: Value, column: int) -> DType:
    given = listed(value)
    if given:
        return dtype_of(given[0].dtype)
    if column < len(port.types):
        return _BY_NAME[port.types[column]]
    return _guess(value)


def _guess(value: Value) -> DType:
    """Of a number or an absent tensor whose types the text does not tell."""
    first = value[0] if isinstance(value, list) and value else value
    if is_number(first) and isinstance(first, int) and not isinstance(first, torch.Tensor):
        return DType.INT64
    return DType.FLOAT32
