"""Element types: one row each, with the name every other world uses for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class _Row:
    bytes: int
    cpp: str  # the name in Ascend C kernel code
    ge: str  # the name in host code (ge::DataType)
    json: str  # the name in an msopgen JSON
    numpy: np.dtype[np.generic]


_TABLE: dict[str, _Row] = {
    "float32": _Row(4, "float", "DT_FLOAT", "float32", np.dtype(np.float32)),
    "float16": _Row(2, "half", "DT_FLOAT16", "float16", np.dtype(np.float16)),
    "bfloat16": _Row(2, "bfloat16_t", "DT_BF16", "bf16", np.dtype(ml_dtypes.bfloat16)),
    "int8": _Row(1, "int8_t", "DT_INT8", "int8", np.dtype(np.int8)),
    "uint8": _Row(1, "uint8_t", "DT_UINT8", "uint8", np.dtype(np.uint8)),
    "int16": _Row(2, "int16_t", "DT_INT16", "int16", np.dtype(np.int16)),
    "uint16": _Row(2, "uint16_t", "DT_UINT16", "uint16", np.dtype(np.uint16)),
    "int32": _Row(4, "int32_t", "DT_INT32", "int32", np.dtype(np.int32)),
    "uint32": _Row(4, "uint32_t", "DT_UINT32", "uint32", np.dtype(np.uint32)),
    "int64": _Row(8, "int64_t", "DT_INT64", "int64", np.dtype(np.int64)),
    # A bool tensor is one byte per element; kernels read and write it as uint8_t.
    "bool": _Row(1, "uint8_t", "DT_BOOL", "bool", np.dtype(np.bool_)),
    # The toolchain's name for it in kernels is no type at all: they read pairs of floats.
    "complex64": _Row(8, "unknown", "DT_COMPLEX64", "complex64", np.dtype(np.complex64)),
}


class DType(Enum):
    """An element type that a tensor or an on-chip buffer may have. `value` is PyTorch's name."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    BOOL = "bool"
    COMPLEX64 = "complex64"  # of tensors in other people's projects only

    def __init__(self, name: str) -> None:
        row = _TABLE[name]
        self.bytes, self.numpy = row.bytes, row.numpy
        self.cpp, self.ge, self.json = row.cpp, row.ge, row.json
        self.is_float = name in ("float32", "float16", "bfloat16")
        bits = 8 * row.bytes - (row.numpy.kind != "u")
        self.low = 0 if row.numpy.kind == "u" else -(2**bits)  # of an integer type
        self.high = 2**bits - 1
        self.per_block = 32 // row.bytes  # elements in one 32-byte block
        self.per_repeat = 256 // row.bytes  # elements in one 256-byte vector repeat

    @property
    def is_computed(self) -> bool:
        """Do we write kernels of this type ourselves?"""
        return self is not DType.COMPLEX64

    @classmethod
    def of(cls, dtype: np.dtype[np.generic]) -> DType:
        """The DType of a NumPy array's dtype; KeyError when the chip has no such type."""
        return _FROM_NUMPY[np.dtype(dtype)]


_FROM_NUMPY = {dtype.numpy: dtype for dtype in DType}
