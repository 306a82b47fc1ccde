"""Arguments of an aclnn function, sorted by the operator's definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import torch

from npusmith.device.tensors import dtype_of
from npusmith.errors import TwinError
from npusmith.twin.opdef import OpText, PortText
from npusmith.twin.orders import Attr
from npusmith.twin.wrapper import type_number

Value: TypeAlias = Any  # a tensor, a number, a list of either, or None


@dataclass(frozen=True, slots=True)
class Bound:
    """Inputs and own outputs (those that are no inputs) in the order of the definition."""

    inputs: tuple[Value, ...]
    attrs: dict[str, Attr]
    outputs: tuple[Value, ...]


def bind(op: OpText, name: str, values: Sequence[object]) -> Bound:
    """Sort the values; TwinError binding-call when they do not fit the operator."""
    own = [port for port in op.outputs if not op.is_ref(port)]
    wanted = [port.name for port in (*op.inputs, *own)]
    wanted[len(op.inputs) : len(op.inputs)] = op.attrs
    if len(values) != len(wanted):
        raise TwinError(
            "binding-call",
            f"{name} takes {len(wanted)} arguments, the binding gives {len(values)}",
            seen=", ".join(_word(value) for value in values),
            legal=", ".join(wanted),
        )
    split, end = len(op.inputs), len(op.inputs) + len(op.attrs)
    inputs = [
        _input(op, port, value) for port, value in zip(op.inputs, values[:split], strict=True)
    ]
    attrs = {
        attr: _attr(op, attr, value)
        for attr, value in zip(op.attrs, values[split:end], strict=True)
        if value is not None
    }
    outputs = [_output(op, port, value) for port, value in zip(own, values[end:], strict=True)]
    return Bound(tuple(inputs), attrs, tuple(outputs))


def outputs(op: OpText, bound: Bound) -> list[Value]:
    """What each output of the definition is written to: its own tensor, or an input."""
    names = [port.name for port in op.inputs]
    own = iter(bound.outputs)
    return [
        bound.inputs[names.index(port.name)] if op.is_ref(port) else next(own)
        for port in op.outputs
    ]


def listed(value: Value) -> list[torch.Tensor]:
    """The tensors of a value; none for numbers and what is absent."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, torch.Tensor)]
    return []


def is_number(value: object) -> bool:
    """A scalar, or a list of them, where the definition has a tensor."""
    return isinstance(value, (bool, int, float, complex)) or (
        isinstance(value, list) and bool(value) and all(map(is_number, value))
    )


def _input(op: OpText, port: PortText, value: object) -> Value:
    if value is None and port.kind == "REQUIRED":
        raise _misfit(op, port.name, value, "a tensor: it is required")
    if port.kind == "DYNAMIC" and isinstance(value, torch.Tensor):
        return [value]
    if value is None or _is_tensors(value) or isinstance(value, torch.Tensor) or is_number(value):
        return value
    raise _misfit(op, port.name, value, "a tensor, a number or a list of them")


def _output(op: OpText, port: PortText, value: object) -> Value:
    if port.kind == "DYNAMIC" and isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.Tensor) or _is_tensors(value):
        return value
    if value is None and port.kind == "OPTIONAL":
        return []
    raise _misfit(op, port.name, value, "a tensor or a list of tensors")


def _is_tensors(value: object) -> TypeGuard[list[torch.Tensor]]:
    return isinstance(value, list) and all(isinstance(item, torch.Tensor) for item in value)


def _attr(op: OpText, name: str, value: object) -> Attr:
    if isinstance(value, torch.dtype):
        return type_number(dtype_of(value))
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list) and all(isinstance(item, (bool, int, float)) for item in value):
        return value
    raise _misfit(op, name, value, "a number, a text, or a list of numbers")


def _misfit(op: OpText, name: str, value: object, legal: str) -> TwinError:
    return TwinError(
        "binding-call",
        f"argument {name} of {op.type} got {_word(value)}",
        seen=_word(value),
        legal=legal,
    )


def _word(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value[:3]))}{', ...' if len(value) > 3 else ''}]"
    return repr(value)[:40]
