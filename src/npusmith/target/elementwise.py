"""The element-wise vector instructions of dav-2201: one row each.

What follows from a row: the functions of twin/vector.h and their C-style twins in twin/intrin.h
with their element types (`elementwise_header`), what the twin's runtime takes for an update of the
destination, the element types in the table of APIs, and for the tile language element types and
whether an operation reads its destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Shape(str, Enum):
    """What an instruction takes beside its destination; OTHER: its function is written by hand."""

    BINARY = "two tensors"
    UNARY = "a tensor"
    SCALAR = "a tensor and a scalar"
    OTHER = "its own"


@dataclass(frozen=True, slots=True)
class Vector:
    """One instruction. Element types are C++ names, those of the destination.

    `raw`: the C-style name, "" for none, with the shape `raw_shape` where it is not `shape`;
    `operation`: of the runtime, where it is not the name; `mixed`: pairs of source and destination
    type beside equal ones; `folds`: the destination may be a source with a repeat stride of 0.
    """

    name: str
    shape: Shape
    dtypes: tuple[str, ...]
    raw: str = ""
    raw_shape: Shape | None = None
    operation: str = ""
    mixed: tuple[str, ...] = ()
    reads_dst: bool = False
    folds: bool = False

    @property
    def legal(self) -> str:
        """The element types in words."""
        return f"{', '.join(self.dtypes[:-1])} or {self.dtypes[-1]}"


_ARITH = ("half", "float", "int16_t", "int32_t")
_SUMS = ("half", "float", "int16_t")
_FLOATS = ("half", "float")
_BITS = ("int16_t", "uint16_t")
_SHIFTS = ("int16_t", "uint16_t", "int32_t", "uint32_t")
_WIDENED = ("half->float",)
_B, _U, _S, _O = Shape.BINARY, Shape.UNARY, Shape.SCALAR, Shape.OTHER

ROWS = (
    Vector("Add", _B, _ARITH, "vadd", folds=True),
    Vector("Sub", _B, _ARITH, "vsub", folds=True),
    Vector("Mul", _B, _ARITH, "vmul", folds=True),
    Vector("Max", _B, _ARITH, "vmax", folds=True),
    Vector("Min", _B, _ARITH, "vmin", folds=True),
    Vector("Div", _B, _FLOATS, "vdiv"),
    Vector("And", _B, _BITS, "vand"),
    Vector("Or", _B, _BITS, "vor"),
    Vector("AddRelu", _B, _SUMS, "vaddrelu", folds=True),
    Vector("SubRelu", _B, _SUMS, "vsubrelu", folds=True),
    Vector("FusedMulAdd", _B, _FLOATS, "vmadd", reads_dst=True),
    Vector("FusedMulAddRelu", _B, _FLOATS, "vmaddrelu", reads_dst=True),
    Vector("MulAddRelu", _B, _FLOATS, operation="FusedMulAddRelu", reads_dst=True),
    Vector("MulAddDst", _O, _FLOATS, "vmla", _B, mixed=_WIDENED, reads_dst=True),
    Vector("Abs", _U, _FLOATS, "vabs"),
    Vector("Exp", _U, _FLOATS, "vexp"),
    Vector("Ln", _U, _FLOATS, "vln"),
    Vector("Reciprocal", _U, _FLOATS, "vrec"),
    Vector("Rsqrt", _U, _FLOATS, "vrsqrt"),
    Vector("Sqrt", _U, _FLOATS, "vsqrt"),
    Vector("Relu", _U, ("half", "float", "int32_t"), "vrelu"),
    Vector("Not", _U, _BITS, "vnot"),
    Vector("Adds", _S, _ARITH, "vadds"),
    Vector("Muls", _S, _ARITH, "vmuls"),
    Vector("Maxs", _S, _ARITH, "vmaxs"),
    Vector("Mins", _S, _ARITH, "vmins"),
    Vector("LeakyRelu", _S, _FLOATS, "vlrelu"),
    Vector("ShiftLeft", _S, _SHIFTS, "vshl"),
    Vector("ShiftRight", _O, _SHIFTS, "vshr", _O),
    Vector("Axpy", _O, _FLOATS, "vaxpy", _S, mixed=_WIDENED, reads_dst=True),
    Vector("CreateVecIndex", _O, _ARITH),
)
VECTORS: Mapping[str, Vector] = MappingProxyType({row.name: row for row in ROWS})


def elementwise_header() -> str:
    """Text of `twin/elementwise.h`: macros with the types of each row, and lists of rows.

    A list calls the macro that it is given with a function's name, the row's name and the
    operation's.
    """
    lines = [
        "// Generated from npusmith/target/elementwise.py.",
        "#pragma once",
        "#define TWIN_TAKES(T, name, row) static_assert(twin::kOneOf<T, TWIN_TYPES_##row>, "
        '#name " on dav-2201 takes " TWIN_LEGAL_##row)',
    ]
    for row in ROWS:
        lines.append(f"#define TWIN_TYPES_{row.name} {', '.join(map(_typed, row.dtypes))}")
        lines.append(f'#define TWIN_LEGAL_{row.name} "{row.legal}"')
    for shape in (Shape.BINARY, Shape.UNARY, Shape.SCALAR):
        own = [row for row in ROWS if row.shape is shape]
        lines.append(_listed(shape.name, ((row.name, row) for row in own)))
        raw = [row for row in ROWS if row.raw and (row.raw_shape or row.shape) is shape]
        lines.append(_listed(f"RAW_{shape.name}", ((row.raw, row) for row in raw)))
    whole = [row for row in ROWS if not row.operation]
    lines.append(_listed("READS_DST", ((row.name, row) for row in whole if row.reads_dst)))
    lines.append(_listed("FOLDS", ((row.name, row) for row in whole if row.folds)))
    return "\n".join(lines) + "\n"


def _typed(name: str) -> str:
    return name if name in ("half", "float") else f"std::{name}"


def _listed(name: str, rows: Iterable[tuple[str, Vector]]) -> str:
    calls = (f"ROW({function}, {row.name}, {row.operation or row.name})" for function, row in rows)
    return f"#define TWIN_{name}_ROWS(ROW) {' '.join(calls)}"
