"""The intrinsic table: one row per vector operation of the tile language.

The parser and checker read operands and dtypes, the interpreter reads `meaning`, the emitter reads
`emit`, the docs and prompts read `summary`, `source` and `evidence`. No fact about an operation is
written anywhere else.

`meaning` takes the source arrays (and, where `reads_dst`, the old destination first), then the
scalars, then the mode if the row has one, and returns the destination's new elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from npusmith.ir.dtypes import DType
from npusmith.target import meaning as m
from npusmith.target.elementwise import VECTORS

Array = np.ndarray[Any, Any]
F32, F16, BF16 = DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16
I8, U8, I16, U16 = DType.INT8, DType.UINT8, DType.INT16, DType.UINT16
I32, U32, I64 = DType.INT32, DType.UINT32, DType.INT64

_BY_NAME = {
    "half": F16, "float": F32, "int16_t": I16, "uint16_t": U16, "int32_t": I32, "uint32_t": U32,
}  # fmt: skip

FLOATS = (F16, F32)
ARITH = (F16, F32, I16, I32)
ANY16_32 = (F16, F32, BF16, I16, U16, I32, U32)


class Operand(str, Enum):
    """What stands at a position of a call."""

    DST = "dst"  # written
    SRC = "src"  # read, same dtype as dst unless the row says otherwise
    MASK = "mask"  # uint8 buffer with one bit per element, least significant bit first
    INDEX = "index"  # int32 buffer of byte offsets
    TMP = "tmp"  # scratch, clobbered
    SCALAR = "scalar"
    MODE = "mode"  # a string literal out of Intrinsic.modes
    COUNT = "count"  # elements; always last


class Evidence(str, Enum):
    """How the meaning of a row was established."""

    DOCUMENTED = "documented"
    REPRODUCED = "vendor special-value table reproduced"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


class Form(str, Enum):
    """How a row turns sources into destination."""

    MAP = "element by element"
    LANES = "reduction along the last axis, in registers: only dst[0] is written"
    ROWS = "reduction down a middle axis: a whole row is accumulated into dst"
    RUNNING = "running fold along the last axis: every element with all those before it"
    BLOCKS = "folds of blocks: one element of dst for each 32 bytes of the source"
    ELEMENT = "one element of dst, written by the scalar unit"
    GATHER = "elements of the source from where a buffer of offsets says"
    FOLD_ROWS = "every row of a tile of short rows to one element of dst"
    SORT_ROWS = "where the elements of every row come from, put in order"
    SPREAD_ROWS = "every element of the source along a row of a tile of short rows"


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One operation. `emit` is a format string over dst, src, tmp, mask, index, scalar, mode,
    count; of an element, dst is the buffer and offset says which."""

    name: str
    ascend: str
    operands: tuple[Operand, ...]
    dtypes: tuple[DType, ...]  # legal dtypes of dst (and of src, unless src_dtypes is given)
    meaning: Callable[..., Array]
    emit: str
    summary: str
    form: Form = Form.MAP
    modes: tuple[str, ...] = ()
    reads_dst: bool = False
    src_dtypes: tuple[DType, ...] = ()  # where sources differ in dtype from dst
    whole_repeats: bool = False  # the chip computes whole 256 B repeats: count is rounded up
    library: bool = False  # high-level function: takes scratch from what is left of UB
    reserve: bool = False  # clobbers the 8 KB of UB that are set aside for internals of functions
    int_scalar: bool = False  # the scalar is an int even where the dtype is a float
    source: str = "Ascend C API reference"
    evidence: Evidence = Evidence.DOCUMENTED

    @property
    def views(self) -> tuple[Operand, ...]:
        """The operands that are on-chip buffers, in order."""
        buffers = (Operand.DST, Operand.SRC, Operand.MASK, Operand.INDEX, Operand.TMP)
        return tuple(item for item in self.operands if item in buffers)


_D, _S, _K, _T = Operand.DST, Operand.SRC, Operand.MASK, Operand.TMP
_I = Operand.INDEX
_X, _M, _N = Operand.SCALAR, Operand.MODE, Operand.COUNT

COMPARE_MODES = ("lt", "gt", "eq", "le", "ge", "ne")
RUNNING_MODES = ("forward", "reverse", "exclusive")
ORDERS = ("descending", "ascending")
SORT_STEP = 32  # elements that a row takes a multiple of in a quarter of a sort's scratch
LONGEST_SORT = 255 * SORT_STEP  # as many repeats as an instruction has
RUNNING_STEP = m.SQUARE  # elements that destination and scratch come in
LONGEST_ROW = 2040  # elements of a short row: 255 blocks are the largest stride of a repeat
REPEAT = 64  # elements of float32 that a repeat takes


def is_short_row(elements: int) -> bool:
    """Whether rows of so many elements can be folded, and numbers spread along them.

    Longer rows of whole repeats are folded by blocks first, all rows at once (short_rows.j2).
    """
    most = LONGEST_ROW if elements % REPEAT else 8 * LONGEST_ROW
    return 1 <= elements <= most


# Forms whose operands are rows, from one multiple of 32 bytes to the next.
ROW_FORMS = (Form.FOLD_ROWS, Form.SPREAD_ROWS, Form.SORT_ROWS)

ROUND_MODES = ("none", "rint", "floor", "ceil", "round", "trunc", "odd")


def _types(ascend: str) -> tuple[DType, ...]:
    """Of an instruction of target/elementwise.py; functions of the library take floats."""
    row = VECTORS.get(ascend)
    return tuple(_BY_NAME[name] for name in row.dtypes) if row else FLOATS


def _unary(
    name: str, ascend: str, fn: Callable[..., Array], summary: str, **more: Any
) -> Intrinsic:
    emit = ascend + "({dst}, {src}, {count})"
    return Intrinsic(name, ascend, (_D, _S, _N), _types(ascend), fn, emit, summary, **more)


def _binary(
    name: str, ascend: str, fn: Callable[..., Array], summary: str, **more: Any
) -> Intrinsic:
    emit = ascend + "({dst}, {src0}, {src1}, {count})"
    reads = VECTORS[ascend].reads_dst
    return Intrinsic(
        name, ascend, (_D, _S, _S, _N), _types(ascend), fn, emit, summary, reads_dst=reads, **more
    )


def _scalar(
    name: str, ascend: str, fn: Callable[..., Array], summary: str, **more: Any
) -> Intrinsic:
    emit = ascend + "({dst}, {src}, {scalar}, {count})"
    reads = VECTORS[ascend].reads_dst
    return Intrinsic(
        name, ascend, (_D, _S, _X, _N), _types(ascend), fn, emit, summary, reads_dst=reads, **more
    )


def _library(
    name: str, ascend: str, fn: Callable[..., Array], summary: str, *, reserve: bool = False
) -> Intrinsic:
    more = {"library": True, "reserve": reserve, "evidence": Evidence.INFERRED}
    return _unary(name, ascend, fn, summary, **more)


def _reduce(name: str, ascend: str, fn: Callable[..., Array], summary: str) -> Intrinsic:
    emit = ascend + "({dst}, {src}, {tmp}, {count})"
    return Intrinsic(
        name,
        ascend,
        (_D, _S, _T, _N),
        FLOATS,
        fn,
        emit,
        summary,
        Form.LANES,
        evidence=Evidence.REPRODUCED,
    )


def _accumulate(name: str, ascend: str, fn: Callable[..., Array], summary: str) -> Intrinsic:
    emit = ascend + "({dst}, {dst}, {src}, {count})"
    return Intrinsic(
        name, ascend, (_D, _S, _N), ARITH, fn, emit, summary, Form.ROWS, reads_dst=True
    )


def _running(name: str, emit: str, ascend: str, fn: Callable[..., Array], sign: str) -> Intrinsic:
    return Intrinsic(
        name,
        ascend,
        (_D, _S, _T, _X, _M, _N),
        (F32,),
        fn,
        emit + "({dst}, {src}, {tmp}, {scalar}, Running::{mode}, {count})",
        f"dst[i] = s {sign} a[0] {sign} ... {sign} a[i]; reverse: {sign} a[i] {sign} ... "
        f"{sign} a[n - 1]; exclusive: ... {sign} a[i - 1]",
        Form.RUNNING,
        modes=RUNNING_MODES,
        source="ours, of TransDataTo5HD and vector instructions (templates/running.j2)",
    )


def _fold_blocks(fold: str, fn: Callable[..., Array], summary: str) -> Intrinsic:
    return Intrinsic(
        fold.lower() + "_blocks",
        "BlockReduce" + fold,
        (_D, _S, _N),
        (F32,),
        fn,
        fold + "Blocks({dst}, {src}, {count})",
        summary,
        Form.BLOCKS,
    )


def _fold_rows(name: str, ascend: str, fn: Callable[..., Array], summary: str) -> Intrinsic:
    return Intrinsic(
        name,
        ascend,
        (_D, _S, _T, _X, _N),
        (F32,),
        fn,
        "FoldRows<RowFold::" + name.split("_")[0].upper() + ">({dst}, {src}, {tmp}, {scalar}, "
        "{count})",
        summary,
        Form.FOLD_ROWS,
        int_scalar=True,
    )


_ROWS: tuple[Intrinsic, ...] = (
    # ---- two sources
    _binary("add", "Add", m.add, "dst = a + b"),
    _binary("sub", "Sub", m.sub, "dst = a - b"),
    _binary("mul", "Mul", m.mul, "dst = a * b"),
    _binary("div", "Div", m.div, "dst = a / b"),
    _binary("max", "Max", m.maximum, "dst = larger of a and b; NaN wins"),
    _binary("min", "Min", m.minimum, "dst = smaller of a and b; NaN wins"),
    _binary("bit_and", "And", np.bitwise_and, "dst = a & b"),
    _binary("bit_or", "Or", np.bitwise_or, "dst = a | b"),
    # ---- one source
    _unary("bit_not", "Not", np.bitwise_not, "dst = ~a"),
    _unary("abs", "Abs", m.absolute, "dst = |a|"),
    _unary("exp", "Exp", m.exp, "dst = e**a"),
    _unary("ln", "Ln", m.ln, "dst = natural logarithm of a"),
    _unary("sqrt", "Sqrt", m.sqrt, "dst = square root of a"),
    _unary(
        "rsqrt",
        "Rsqrt",
        m.rsqrt,
        "dst = 1 / sqrt(a), approximate on the chip: prefer sqrt and div",
        evidence=Evidence.INFERRED,
    ),
    _unary(
        "reciprocal",
        "Reciprocal",
        m.reciprocal,
        "dst = 1 / a, approximate on the chip: prefer div",
        evidence=Evidence.INFERRED,
    ),
    _unary("relu", "Relu", m.relu, "dst = max(a, 0); NaN stays"),
    # ---- one source and a scalar
    _scalar("adds", "Adds", m.add, "dst = a + s"),
    _scalar("muls", "Muls", m.mul, "dst = a * s"),
    _scalar("maxs", "Maxs", m.maximum, "dst = larger of a and s"),
    _scalar("mins", "Mins", m.minimum, "dst = smaller of a and s"),
    _scalar("leaky_relu", "LeakyRelu", m.leaky_relu, "dst = a if a >= 0 else a * s"),
    _scalar(
        "shift_left",
        "ShiftLeft",
        m.shift_left,
        "dst = a << s",
        int_scalar=True,
    ),
    _scalar(
        "shift_right",
        "ShiftRight",
        m.shift_right,
        "dst = a >> s, arithmetic for signed",
        int_scalar=True,
    ),
    _scalar("axpy", "Axpy", m.axpy, "dst = dst + a * s, product rounded first"),
    _binary("mul_add_dst", "MulAddDst", m.mul_add_dst, "dst = dst + a * b, product rounded first"),
    # ---- fill and convert
    Intrinsic(
        "duplicate",
        "Duplicate",
        (_D, _X, _N),
        ANY16_32,
        m.duplicate,
        "Duplicate({dst}, {scalar}, {count})",
        "dst = s everywhere",
    ),
    Intrinsic(
        "set",
        "SetValue",
        (_D, _X),
        (F16, F32, I8, U8, I16, I32, I64),
        m.element,
        "{dst}.SetValue({offset}, {scalar})",
        "one element: dst[i] = s, an int modulo 2**(bits of dst)",
        Form.ELEMENT,
        evidence=Evidence.INFERRED,
    ),
    Intrinsic(
        "create_index",
        "CreateVecIndex",
        (_D, _X, _N),
        (F16, F32, I16, I32),
        m.create_index,
        "CreateVecIndex({dst}, {scalar}, {count})",
        "dst[i] = s + i",
    ),
    Intrinsic(
        "cast",
        "Cast",
        (_D, _S, _M, _N),
        (F32, F16, BF16, I8, U8, I16, I32, I64),
        m.cast,
        "Cast({dst}, {src}, RoundMode::CAST_{mode}, {count})",
        "dst = a in dst's dtype; the pairs and modes of CASTS are legal",
        modes=ROUND_MODES,
        src_dtypes=(F32, F16, BF16, I8, U8, I16, I32, I64),
    ),
    # ---- compare and select
    Intrinsic(
        "compare",
        "Compare",
        (_D, _S, _S, _M, _N),
        (U8,),
        m.compare,
        "Compare({dst}, {src0}, {src1}, CMPMODE::{mode}, {count})",
        "dst = one bit per element: a <mode> b; ne with NaN is 0",
        modes=COMPARE_MODES,
        src_dtypes=FLOATS,
        whole_repeats=True,
        evidence=Evidence.REPRODUCED,
    ),
    Intrinsic(
        "compares",
        "CompareScalar",
        (_D, _S, _X, _M, _N),
        (U8,),
        m.compare,
        "CompareScalar({dst}, {src}, {scalar}, CMPMODE::{mode}, {count})",
        "dst = one bit per element: a <mode> s; ne with NaN is 0",
        modes=COMPARE_MODES,
        src_dtypes=FLOATS,
        whole_repeats=True,
        evidence=Evidence.REPRODUCED,
    ),
    Intrinsic(
        "select",
        "Select",
        (_D, _K, _S, _S, _N),
        FLOATS,
        m.select,
        "Select({dst}, {mask}, {src0}, {src1}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {count})",
        "dst = a where the mask's bit is 1, else b",
        reserve=True,
    ),
    Intrinsic(
        "selects",
        "Select",
        (_D, _K, _S, _X, _N),
        FLOATS,
        m.select,
        "Select({dst}, {mask}, {src}, {scalar}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count})",
        "dst = a where the mask's bit is 1, else s",
        reserve=True,
    ),
    # ---- reductions along the last axis
    _reduce("reduce_sum", "ReduceSum", m.reduce_sum, "dst[0] = sum of a"),
    _reduce("reduce_max", "ReduceMax", m.reduce_max, "dst[0] = largest of a; NaN wins"),
    _reduce("reduce_min", "ReduceMin", m.reduce_min, "dst[0] = smallest of a; NaN wins"),
    # ---- reductions down a middle axis
    _accumulate("accumulate_sum", "Add", m.add, "dst = dst + a"),
    _accumulate("accumulate_prod", "Mul", m.mul, "dst = dst * a"),
    _accumulate("accumulate_max", "Max", m.maximum, "dst = larger of dst and a"),
    _accumulate("accumulate_min", "Min", m.minimum, "dst = smaller of dst and a"),
    # ---- running folds along the last axis
    _running("running_sum", "RunningSum", "TransDataTo5HD and Add", m.running_sum, "+"),
    _running("running_prod", "RunningProduct", "TransDataTo5HD and Mul", m.running_prod, "*"),
    # ---- folds of blocks
    _fold_blocks(
        "Sum", m.sum_blocks, "dst[i] = sum of the elements of a in its i-th block of 32 bytes"
    ),
    _fold_blocks("Max", m.max_blocks, "dst[i] = largest of a in its i-th block; NaN wins"),
    _fold_blocks("Min", m.min_blocks, "dst[i] = smallest of a in its i-th block; NaN wins"),
    # ---- tiles of short rows: s elements each, from one multiple of 32 bytes to the next
    _fold_rows("sum_rows", "BlockReduceSum", m.sum_rows, "dst[i] = sum of row i of a"),
    _fold_rows("max_rows", "BlockReduceMax", m.max_rows, "dst[i] = largest of row i; NaN wins"),
    _fold_rows("min_rows", "BlockReduceMin", m.min_rows, "dst[i] = smallest of row i; NaN wins"),
    Intrinsic(
        "spread_rows",
        "Brcb",
        (_D, _S, _T, _X, _N),
        (F32,),
        m.spread_rows,
        "SpreadRows({dst}, {src}, {tmp}, {scalar}, {count})",
        "row i of dst = a[i] everywhere, up to the start of the next row",
        Form.SPREAD_ROWS,
        int_scalar=True,
    ),
    # ---- order of elements
    Intrinsic(
        "argsort_rows",
        "Sort32, MrgSort and Extract",
        (_D, _S, _T, _X, _M, _N),
        (I32,),
        m.argsort_rows,
        "ArgsortRows<Order::{mode}>({dst}, {src}, {tmp}, {scalar}, {count})",
        "row by row: dst[i] = the place in the row of the element that comes i-th; of equal ones "
        "the first; NaN is the largest",
        Form.SORT_ROWS,
        modes=ORDERS,
        src_dtypes=(F32,),
        int_scalar=True,
        source="ours, of the sort instructions (templates/sorting.j2)",
        evidence=Evidence.INFERRED,
    ),
    # ---- elements from anywhere in a buffer
    Intrinsic(
        "gather",
        "Gather",
        (_D, _S, _I, _X, _N),
        ANY16_32,
        m.gather,
        "Gather({dst}, {src}, {index}.ReinterpretCast<uint32_t>(), {scalar}, {count})",
        "dst[i] = the element of a at byte s + index[i]",
        Form.GATHER,
        int_scalar=True,
        evidence=Evidence.REPRODUCED,
    ),
    # ---- library functions: accurate to one unit in the last place on the twin
    _library("tanh", "Tanh", m.tanh, "dst = tanh(a)"),
    _library("sigmoid", "Sigmoid", m.sigmoid, "dst = 1 / (1 + e**-a)"),
    _library("erf", "Erf", m.erf, "dst = erf(a)"),
    _library("erfc", "Erfc", m.erfc, "dst = 1 - erf(a)"),
    _library("sin", "Sin", m.sin, "dst = sin(a)"),
    _library("cos", "Cos", m.cos, "dst = cos(a)"),
    _library("tan", "Tan", m.tan, "dst = tan(a)"),
    _library("asin", "Asin", m.asin, "dst = arcsin(a)"),
    _library("acos", "Acos", m.acos, "dst = arccos(a)"),
    _library("atan", "Atan", m.atan, "dst = arctan(a)"),
    _library("sinh", "Sinh", m.sinh, "dst = sinh(a)"),
    _library("cosh", "Cosh", m.cosh, "dst = cosh(a)"),
    _library("asinh", "Asinh", m.asinh, "dst = arsinh(a)"),
    _library("acosh", "Acosh", m.acosh, "dst = arcosh(a)"),
    _library("atanh", "Atanh", m.atanh, "dst = artanh(a)"),
    _library("log2", "Log2", m.log2, "dst = base-2 logarithm of a"),
    _library("log10", "Log10", m.log10, "dst = base-10 logarithm of a"),
    _library("floor", "Floor", m.floor, "dst = a rounded down"),
    _library("ceil", "Ceil", m.ceil, "dst = a rounded up"),
    _library("round", "Round", m.rint, "dst = a rounded to nearest, ties to even"),
    _library("trunc", "Trunc", m.trunc, "dst = a rounded towards zero"),
    _library("sign", "Sign", m.sign, "dst = -1, 0 or 1", reserve=True),
    Intrinsic(
        "power",
        "Power",
        (_D, _S, _S, _N),
        FLOATS,
        m.power,
        "Power({dst}, {src0}, {src1}, {count})",
        "dst = a ** b",
        library=True,
        reserve=True,
        evidence=Evidence.INFERRED,
    ),
)

INTRINSICS: dict[str, Intrinsic] = {row.name: row for row in _ROWS}

_FIVE = ("rint", "floor", "ceil", "round", "trunc")

# Legal (source, destination) pairs of Cast on dav-2201 and their rounding modes.
# Source: Ascend C API reference, Cast.
CASTS: dict[tuple[DType, DType], tuple[str, ...]] = {
    (I8, F16): ("none",),
    (U8, F16): ("none",),
    (I16, F16): ("none", *_FIVE),
    (I16, F32): ("none",),
    (F16, I8): ("none", *_FIVE),
    (F16, U8): ("none", *_FIVE),
    (F16, I16): _FIVE,
    (F16, I32): _FIVE,
    (F16, F32): ("none",),
    (BF16, F32): ("none",),
    (BF16, I32): _FIVE,
    (I32, F32): ("none", *_FIVE),
    (I32, I16): ("none",),
    (I32, I64): ("none",),
    (F32, F16): ("none", *_FIVE, "odd"),
    (F32, BF16): _FIVE,
    (F32, I16): _FIVE,
    (F32, I32): _FIVE,
    (F32, I64): _FIVE,
    (F32, F32): _FIVE,
    (I64, I32): ("none",),
    (I64, F32): _FIVE,
}

# Combine and Accumulate share their operators.
COMBINES: dict[str, str] = {
    "sum": "accumulate_sum",
    "prod": "accumulate_prod",
    "max": "accumulate_max",
    "min": "accumulate_min",
}
