"""Whose tensors the ports of somebody's operator take, when only their order is known.

A REQUIRED port takes one tensor, an OPTIONAL one a tensor or none, a DYNAMIC one a list. Lists
share what the others leave in equal parts; optional ports that nothing is left for come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from npusmith.errors import TaskError
from npusmith.ir.dtypes import DType
from npusmith.twin.opdef import OpText, PortText
from npusmith.twin.orders import Attr, Sparse

Array = np.ndarray[Any, Any]
_BY_NAME = {dtype.ge: dtype for dtype in DType}


def share(ports: Sequence[PortText], count: int) -> tuple[int, ...] | None:
    """How many of `count` tensors each port takes, in order; None when they do not fit."""
    lists = sum(port.kind == "DYNAMIC" for port in ports)
    optional = sum(port.kind == "OPTIONAL" for port in ports)
    left = count - (len(ports) - lists - optional)
    each, odd = divmod(left, lists) if lists else (0, 0)
    given = 0 if lists else left
    if left < lists or odd or given > optional:
        return None
    return tuple(_takes(ports, each, given))


def _takes(ports: Sequence[PortText], each: int, given: int) -> Iterator[int]:
    for port in ports:
        if port.kind == "OPTIONAL":
            yield int(given > 0)
            given -= 1
        else:
            yield each if port.kind == "DYNAMIC" else 1


def deal(ports: Sequence[PortText], takes: Sequence[int], items: Sequence[Any]) -> list[Any]:
    """The items of each port: one, a list for a DYNAMIC port, None for an absent one."""
    rest = iter(items)
    dealt = [[next(rest) for _ in range(count)] for count in takes]
    return [
        part if port.kind == "DYNAMIC" else next(iter(part), None)
        for port, part in zip(ports, dealt, strict=True)
    ]


def types(op: OpText, given: Sequence[Any]) -> tuple[DType, ...]:
    """The element type of each port; an absent tensor's is that of the column the others fit."""
    seen = [_seen(item) for item in given]
    columns = range(max((len(port.types) for port in op.ports), default=0))
    column = next((at for at in columns if _fits(op, seen, at)), 0)
    return tuple(
        found or _declared(port, column) for port, found in zip(op.ports, seen, strict=True)
    )


def _seen(item: Any) -> DType | None:
    first = item[0] if isinstance(item, list) and item else item
    if isinstance(first, Sparse):
        return first.dtype
    return DType.of(first.dtype) if isinstance(first, np.ndarray) else None


def _fits(op: OpText, seen: Sequence[DType | None], column: int) -> bool:
    return all(
        dtype is None or column >= len(port.types) or dtype.ge == port.types[column]
        for port, dtype in zip(op.ports, seen, strict=True)
    )


def _declared(port: PortText, column: int) -> DType:
    name = port.types[column] if column < len(port.types) else ""
    return _BY_NAME.get(name, DType.FLOAT32)


def check_attrs(op: OpText, attrs: Mapping[str, Attr]) -> None:
    """TaskError binding-unknown for an attribute that the operator does not declare."""
    for name in attrs:
        if name not in op.attrs:
            raise TaskError(
                "binding-unknown",
                f"the operator has no attribute {name}",
                seen=name[:80],
                legal=", ".join(op.attrs) or "no attributes",
            )
