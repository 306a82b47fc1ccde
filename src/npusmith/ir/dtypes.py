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

    @property
    def bytes(self) -> int:
        return _TABLE[self].bytes

    @property
    def cpp(self) -> str:
        return _TABLE[self].cpp

    @property
    def ge(self) -> str:
        return _TABLE[self].ge

    @property
    def json(self) -> str:
        return _TABLE[self].json

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return _TABLE[self].numpy

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)

    @property
    def is_computed(self) -> bool:
        """Do we write kernels of this type ourselves?"""
        return self is not DType.COMPLEX64

    @property
    def per_block(self) -> int:
        """Elements in one 32-byte block."""
        return 32 // self.bytes

    @property
    def per_repeat(self) -> int:
        """Elements in one 256-byte vector repeat."""
        return 256 // self.bytes

    @classmethod
    def of(cls, dtype: np.dtype[np.generic]) -> DType:
        """The DType of a NumPy array's dtype; KeyError when the chip has no such type."""
        return _FROM_NUMPY[np.dtype(dtype)]


_TABLE: dict[DType, _Row] = {
    DType.FLOAT32: _Row(4, "float", "DT_FLOAT", "float32", np.dtype(np.float32)),
    DType.FLOAT16: _Row(2, "half", "DT_FLOAT16", "float16", np.dtype(np.float16)),
    DType.BFLOAT16: _Row(2, "bfloat16_t", "DT_BF16", "bf16", np.dtype(ml_dtypes.bfloat16)),
    DType.INT8: _Row(1, "int8_t", "DT_INT8", "int8", np.dtype(np.int8)),
    DType.UINT8: _Row(1, "uint8_t", "DT_UINT8", "uint8", np.dtype(np.uint8)),
    DType.INT16: _Row(2, "int16_t", "DT_INT16", "int16", np.dtype(np.int16)),
    DType.UINT16: _Row(2, "uint16_t", "DT_UINT16", "uint16", np.dtype(np.uint16)),
    DType.INT32: _Row(4, "int32_t", "DT_INT32", "int32", np.dtype(np.int32)),
    DType.UINT32: _Row(4, "uint32_t", "DT_UINT32", "uint32", np.dtype(np.uint32)),
    DType.INT64: _Row(8, "int64_t", "DT_INT64", "int64", np.dtype(np.int64)),
    # A bool tensor is one byte per element; kernels read and write it as uint8_t.
    DType.BOOL: _Row(1, "uint8_t", "DT_BOOL", "bool", np.dtype(np.bool_)),
    # The toolchain's name for it in kernels is no type at all: they read pairs of floats.
    DType.COMPLEX64: _Row(8, "unknown", "DT_COMPLEX64", "complex64", np.dtype(np.complex64)),
}

_FROM_NUMPY = {row.numpy: dtype for dtype, row in _TABLE.items()}
