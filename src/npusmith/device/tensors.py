"""PyTorch tensors as the arrays that the twin takes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from npusmith.errors import TwinError
from npusmith.ir.dtypes import DType
from npusmith.twin.opdef import PortText
from npusmith.twin.orders import Output

Array = np.ndarray[Any, Any]
_BITS = {torch.bfloat16: torch.int16, torch.uint16: torch.int16, torch.uint32: torch.int32}


def dtype_of(dtype: torch.dtype) -> DType:
    """The chip's name of a PyTorch type; TwinError inputs-mismatch when it has none."""
    try:
        return DType(str(dtype).removeprefix("torch."))
    except ValueError as error:
        raise TwinError(
            "inputs-mismatch", f"tensors of {dtype} have no element type on the chip"
        ) from error


def array(tensor: torch.Tensor) -> Array:
    """A tensor's values as a contiguous array of the same shape."""
    dtype = dtype_of(tensor.dtype)
    plain = tensor.detach().contiguous()
    bits = _BITS.get(plain.dtype)
    found: Array = (plain if bits is None else plain.view(bits)).numpy()
    return found if bits is None else found.view(dtype.numpy)


def given(port: PortText, value: object, dtype: DType) -> Array | list[Array] | None:
    """An input as the run takes it; numbers become a tensor of rank 1."""
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return _array(port, value)
    if isinstance(value, list) and all(isinstance(item, torch.Tensor) for item in value):
        return [_array(port, item) for item in value]
    numbers = value if isinstance(value, list) else [value]
    return np.asarray(numbers).astype(dtype.numpy)  # of rank 1, as aclnn makes them


def _array(port: PortText, tensor: torch.Tensor) -> Array:
    """Without AutoContiguous the kernel reads memory as it lies, from the first element on."""
    if port.contiguous or tensor.is_contiguous():
        return array(tensor)
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    if room < tensor.numel():
        return array(tensor)  # it would read past the storage; broadcast tensors are such
    return array(tensor.as_strided(tensor.shape, _strides(tensor.shape), tensor.storage_offset()))


def _strides(shape: torch.Size) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(size, 1))
    return tuple(reversed(strides))[: len(shape)]


def wanted(value: object) -> Output | list[Output]:
    """Shape and type of an output, or of each tensor of a list."""
    if isinstance(value, torch.Tensor):
        return _one(value)
    assert isinstance(value, list)
    return [_one(item) for item in value]


def _one(tensor: torch.Tensor) -> Output:
    return tuple(tensor.shape), dtype_of(tensor.dtype)


def write(tensor: torch.Tensor, values: Array) -> None:
    """Put the values into a tensor of the same shape, whatever its strides."""
    bits = _BITS.get(tensor.dtype)
    flat = np.ascontiguousarray(values)
    if bits is None:
        source = torch.from_numpy(flat)
    else:
        plain = np.dtype(str(bits).removeprefix("torch."))
        source = torch.from_numpy(flat.view(plain)).view(tensor.dtype)
    with torch.no_grad():
        tensor.copy_(source.reshape(tensor.shape))
