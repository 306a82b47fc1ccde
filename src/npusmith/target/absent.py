"""Names of Ascend C that dav-2201 lacks: which chips have them, and what to write instead.

Functions that the toolchain's headers declare for every chip become templates in `twin/absent.h`
that fail when they are called; the others are only explained, because a kernel may well have a
class or a function of that name (`explain` reads the compiler's complaint).
Source: the tables "supported products" of the vendor's API reference.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

UNMODELLED = Path(__file__).with_name("unmodelled.txt")

_A5 = "Ascend 950PR/950DT"
_INFERENCE = "Atlas inference products (310P)"
_TRAINING = "Atlas training products (910)"
_EDGE = "Atlas 200I/500 A2 (310B)"
_WHERE = "dav-2201 (Atlas A2)"


@dataclass(frozen=True, slots=True)
class Absent:
    """A name that other chips have. `declared`: as a function, on this chip too."""

    name: str
    chips: tuple[str, ...]
    hint: str
    declared: bool = False

    @property
    def message(self) -> str:
        """What the compiler's error says."""
        return (
            f"{self.name} is not available on {_WHERE}; chips that have it: "
            f"{', '.join(self.chips)}. Instead: {self.hint}"
        )


def _rows(
    chips: tuple[str, ...], hint: str, *names: str, declared: bool = False
) -> tuple[Absent, ...]:
    return tuple(Absent(name, chips, hint, declared) for name in names)


_COMPARE_SELF = "Compare the tensor with itself (EQ is false for NaN) and Select"
_REGISTERS = "the functions on LocalTensor (Add, Mul, Select, ...)"

ABSENT: tuple[Absent, ...] = (
    # vector instructions of other chips, on LocalTensor
    *_rows(
        (_A5, _EDGE, _INFERENCE),
        "SetValue in a loop, or Gather with the inverse permutation",
        "Scatter",
        declared=True,
    ),
    *_rows((_A5,), "Gather with an offset tensor", "Interleave", "DeInterleave", declared=True),
    *_rows(
        (_A5,),
        "Cast to float with CAST_TRUNC, CAST_FLOOR or another mode",
        "Truncate",
        declared=True,
    ),
    *_rows((_INFERENCE,), "DataCopyPad, or Duplicate under a mask", "VectorPadding", declared=True),
    *_rows((_A5,), "Adds with the negated scalar", "Subs", declared=True),
    *_rows((_A5,), "Muls with the reciprocal, or Duplicate and Div", "Divs", declared=True),
    *_rows((_A5,), "Duplicate the scalar, then And or Or", "Ands", "Ors", declared=True),
    *_rows((_A5,), "Sub, then Exp", "ExpSub", "FusedExpSub", declared=True),
    *_rows((_A5,), "Sub, then Abs", "AbsSub", "FusedAbsSub", declared=True),
    *_rows((_A5,), "Muls with -1", "Neg"),
    *_rows((_A5,), "Muls, then Cast", "MulsCast", declared=True),
    *_rows((_A5,), "Mul on int32_t halves", "Mull", declared=True),
    *_rows((_A5,), "Select by Compares with 0", "Prelu", declared=True),
    *_rows((_A5,), "a TBuf, and SetFlag and WaitFlag", "AllocMutexID", "ReleaseMutexID"),
    # moves and cube
    *_rows((_INFERENCE,), "LoadData, without decompression", "LoadDataUnzip", "LoadUnzipIndex"),
    *_rows((_INFERENCE, _TRAINING), "a bias in the bias table (C2)", "BroadCastVecToMM"),
    *_rows((_INFERENCE, _TRAINING), "Mmad on L0A, L0B and L0C", "Conv2D", "Gemm"),
    # scalar atomics, SIMT
    *_rows(
        (_A5,),
        "SetAtomicAdd and DataCopy from UB",
        *("AtomicAdd", "AtomicSub", "AtomicMax", "AtomicMin", "AtomicAnd", "AtomicOr", "AtomicXor"),
        *("AtomicInc", "AtomicDec", "AtomicCas", "AtomicExch"),
    ),
    *_rows((_A5,), _REGISTERS, "MicroAPI", "Reg", "RegTensor", "MaskReg", "UnalignReg"),
    *_rows((_A5,), _REGISTERS, "LoadAlign", "StoreAlign", "CreateMask", "UpdateMask"),
    *_rows((_A5,), _REGISTERS, "__simd_vf__", "__simd_callee__", "__VEC_SCOPE__", "VF_CALL"),
    *_rows(
        (_A5,),
        "vector functions on LocalTensor; this chip has no threads",
        *("Simt", "__simt_vf__", "__simt_callee__", "asc_vf_call", "threadIdx", "blockDim"),
    ),
    *_rows((_A5,), "LocalTensor and GlobalTensor", "TensorTraitND"),
    # element types
    *_rows(
        (_A5,),
        "half, bfloat16_t or int8_t",
        *("fp8_e4m3fn_t", "fp8_e5m2_t", "fp8_e8m0_t", "hifloat8_t"),
        *("fp4x2_e2m1_t", "fp4x2_e1m2_t", "float8_e4m3_t", "float8_e5m2_t", "float8_e8m0_t"),
        *("float4_e2m1_t", "float4_e1m2_t", "complex32", "complex64"),
    ),
    *_rows((_A5,), "SetFlag and WaitFlag", "Mutex", "MutexID"),
    # the high-level library
    *_rows((_A5,), "ClampMax and ClampMin, or Mins and Maxs", "Clamp"),
    *_rows((_A5,), "Select", "Where"),
    *_rows((_A5,), _COMPARE_SELF, "IsNan", "IsInf", "IsFinite"),
    *_rows(
        (_A5,),
        "And, Or and Not on int16_t or uint16_t",
        *("LogicalAnd", "LogicalAnds", "LogicalOr", "LogicalOrs", "LogicalNot", "LogicalXor"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
    ),
    *_rows((_A5,), "Mul and Add, or FusedMulAdd", "Fma"),
    *_rows((_A5,), "Mul, Add and Sqrt", "Hypot"),
    *_rows((_A5,), "Round, or Cast with CAST_RINT", "Rint"),
    *_rows((_A5,), "Sin and Cos", "SinCos"),
    *_rows((_A5,), "SetSaturationFlag", "SetSaturationStrategy", "GetSaturationStrategy"),
)

# Headers of parts of CANN that the twin has nothing of, by the beginnings of their names.
UNMODELLED_HEADERS = {
    "lib/hccl/": "communication between chips (HCCL)",
    "hccl/": "communication between chips (HCCL)",
    "tiling/hccl/": "communication between chips (HCCL)",
    "shmem": "memory shared between chips (SHMEM)",
    "pto/": "PTO tile instructions",
    "simt_api/": "threads (SIMT), which Atlas A2 does not have",
}
_BY_NAME = {row.name: row for row in ABSENT}
_COMPLAINT = re.compile(
    r"'(?:AscendC::)?(\w+)'[^']*(?:was not declared in this scope|is not a member of"
    r"|does not name a type|has not been declared|is not a template)"
    r"|(?:use of undeclared identifier|unknown type name|(?<!has )no member named"
    r"|no template named) '(\w+)'"
    r"|'(?:class|struct) (?:const )?(?:AscendC|matmul|matmul_tiling|gert|ge|ops|platform_ascendc)::"
    r"[^']*' has no member named '(\w+)'"
)


def explain(message: str) -> str:
    """A compiler's message, with what is known of the name that it misses."""
    found = _COMPLAINT.search(message)
    name = next(filter(None, found.groups())) if found else ""
    if name in _BY_NAME:
        return f"{message}: {_BY_NAME[name].message}"
    if name in unmodelled():
        return f"{message}: {name} is documented for Atlas A2; the twin does not model this yet"
    return message


@functools.cache
def unmodelled() -> frozenset[str]:
    """Names that the API reference has for this chip and the twin lacks
    (`runs/documented_names.py`)."""
    return frozenset(UNMODELLED.read_text().split())


def absent_header() -> str:
    """Text of `twin/absent.h`: templates that lose against every function of the user's own."""
    lines = [
        f"// What {_WHERE} lacks, generated from npusmith/target/absent.py.",
        '#line 3 "npusmith absent"',  # no message names this file as the user's
        "#pragma once",
        "",
        "namespace twin {",
        "template <typename...>",
        "inline constexpr bool kAbsent = false;",
        "template <auto...>",
        "inline constexpr bool kAbsentValue = false;",
        "}  // namespace twin",
        "",
        "namespace AscendC {",
        "",
    ]
    for row in ABSENT:
        if row.declared:
            lines += _templates(row)
    return "\n".join([*lines, "}  // namespace AscendC"]) + "\n"


def _templates(row: Absent) -> list[str]:
    """One for a call without or with types, one for a call with a type and values."""
    text = row.message.replace('"', "'")
    return [
        "template <typename... T>",
        f"void {row.name}(...) {{",
        f'  static_assert(twin::kAbsent<T...>, "{text}");',
        "}",
        "template <typename T, auto first, auto... rest>",
        f"void {row.name}(...) {{",
        f'  static_assert(twin::kAbsentValue<first>, "{text}");',
        "}",
        "",
    ]
