"""Whose tensors the ports of somebody's operator take, when only their order is known.

A REQUIRED port takes one tensor, an OPTIONAL one a tensor or none, a DYNAMIC one a list. Lists
share what the others leave in equal parts; optional ports that nothing is left for come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from npusmith.errors import TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import OpSpec, Source
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


def take_inputs(
    op: OpText, spec: OpSpec | None, given: Sequence[Any], held: Mapping[str, Any]
) -> list[Any]:
    """What each input port takes: as the project's bindings say, or by number.

    `given`: the tensors of forward's arguments; `held`: parameters and buffers by attribute path.
    Raises TaskError binding-unknown.
    """
    if spec is not None:
        held = {item.target: item.array for item in spec.constants} | dict(held)
        _check_bindings(op, spec, len(given), held)
        return [
            given[port.position] if port.source is Source.USER else held[port.target]
            for port in spec.inputs
        ]
    alone, whole = share(op.inputs, len(given)), share(op.inputs, len(given) + len(held))
    if whole is not None and (alone is None or 0 in alone):
        return deal(op.inputs, whole, [*given, *held.values()])
    if alone is not None:
        return deal(op.inputs, alone, given)
    raise TaskError(
        "binding-unknown",
        f"the operator takes {len(op.inputs)} inputs, the task has {len(given)} and "
        f"{len(held)} more",
        seen=", ".join(f"{port.name} {port.kind}" for port in op.inputs)[:200],
    )


def _check_bindings(op: OpText, spec: OpSpec, arguments: int, held: Mapping[str, Any]) -> None:
    """A project's own bindings may have come with it from anywhere."""
    if len(spec.inputs) != len(op.inputs):
        raise TaskError(
            "binding-unknown",
            f"the operator takes {len(op.inputs)} inputs, its bindings name {len(spec.inputs)}",
        )
    for port in spec.inputs:
        if port.source is Source.USER and not 0 <= port.position < arguments:
            seen, legal = f"argument {port.position}", f"0 to {arguments - 1}"
        elif port.source is not Source.USER and port.target not in held:
            seen, legal = port.target, ", ".join(sorted(held)[:20])
        else:
            continue
        raise TaskError(
            "binding-unknown", f"the task has nothing for input {port.name}",
            seen=seen[:200], legal=legal or "no parameters",
        )  # fmt: skip


def share_outputs(op: OpText, wanted: int) -> tuple[int, ...]:
    """How many of the reference's outputs each of the operator's holds; TwinError output-count."""
    takes = share(op.outputs, wanted)
    if takes is None:
        raise TwinError(
            "output-count",
            f"the operator has {len(op.outputs)} outputs, the reference has {wanted}",
            seen=f"{len(op.outputs)} outputs in OpDef",
        )
    return takes


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
