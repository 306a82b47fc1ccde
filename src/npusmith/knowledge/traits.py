"""What a kernel's text shows without being run: the names it uses, and how it loads the chip.

Read by both axes of the search: names for the first, the vector for the second. Works on text that
does not parse.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from npusmith.ir.dtypes import DType
from npusmith.knowledge.tokens import TILE, Kind, Token, read_tokens
from npusmith.lang.words import CALLS, CHIP_FACTS, EXPRESSIONS, OPERATIONS
from npusmith.target.apis import ALL
from npusmith.target.intrinsics import INTRINSICS

# What stands for a pipe or a habit; the share of each in all of them is the vector.
_SIGNS: dict[str, str] = {
    "load": "MTE2", "copy_in": "MTE2", "VECIN": "MTE2",
    "store": "MTE3", "copy_out": "MTE3", "VECOUT": "MTE3",
    "value": "S", "GetValue": "S", "SetValue": "S",
    "PipeBarrier": "barrier", "SetFlag": "event", "WaitFlag": "event", "Sync": "event",
    "SyncAll": "cores", "sync_cores": "cores", "combine_sum": "cores", "combine_max": "cores",
    "SetAtomicAdd": "atomic", "atomic": "atomic",
    "DataCopyPad": "padded", "DataCopy": "block",
    "TBuf": "scratch", "VECCALC": "scratch", "InitBuffer": "buffers", "ub": "buffers",
    "for": "loop", "if": "branch",
    "Cast": "cast", "cast": "cast", "Select": "select", "select": "select", "Compare": "select",
    "ReduceSum": "reduce", "ReduceMax": "reduce", "reduce_sum": "reduce", "reduce_max": "reduce",
    "Gather": "gather", "gather": "gather", "Duplicate": "fill", "duplicate": "fill",
    "float16": "half", "half": "half", "bfloat16": "half", "bfloat16_t": "half",
    "int32": "int", "int32_t": "int",
}  # fmt: skip
SIGNS = tuple(sorted(set(_SIGNS.values())))
_TYPES = {
    **{dtype.value: dtype.value for dtype in DType},
    "float": "float32", "half": "float16", "bfloat16_t": "bfloat16", "int32_t": "int32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traits:
    """`words` near the lines that were named (all of the text when none was), names, vector."""

    apis: tuple[str, ...]
    dtypes: tuple[str, ...]
    words: tuple[str, ...]
    vector: tuple[float, ...]


def read_traits(text: str, route: str, lines: Sequence[int] = ()) -> Traits:
    """The traits of a kernel; `lines` are those of its findings."""
    tokens = read_tokens(text, route)
    near = [token for token in tokens if _is_near(token, lines)] if lines else list(tokens)
    names = api_names(route)
    apis = dict.fromkeys(token.text for token in near if token.text in names)
    types = dict.fromkeys(_TYPES[token.text] for token in tokens if token.text in _TYPES)
    said = [token.text for token in near if token.kind in (Kind.NAME, Kind.TEXT)]
    return Traits(tuple(apis), tuple(types), tuple(said), static_vector(tokens))


def static_vector(tokens: Sequence[Token]) -> tuple[float, ...]:
    """Square roots of the shares of SIGNS: their dot product is the overlap of two kernels."""
    counts = Counter(_SIGNS[token.text] for token in tokens if token.text in _SIGNS)
    total = sum(counts.values()) or 1
    return tuple(math.sqrt(counts[sign] / total) for sign in SIGNS)


def _is_near(token: Token, lines: Sequence[int]) -> bool:
    return any(abs(token.line - line) <= 1 for line in lines)


@cache
def api_names(route: str) -> frozenset[str]:
    """Names that mean the same in every kernel; all others are a kernel's own."""
    if route == TILE:
        return frozenset((*OPERATIONS, *EXPRESSIONS, *CALLS))
    return frozenset(name for row in ALL for name in (row.name, *row.aka))


@cache
def fixed_names(route: str) -> frozenset[str]:
    """Names that a pattern keeps: those of APIs, types, keywords and constants."""
    return api_names(route) | (_TILE_WORDS if route == TILE else _CPP_WORDS)


@cache
def known_names(route: str) -> frozenset[str]:
    """Names that may be meant by one that does not exist: of APIs, types, modes and constants."""
    if route != TILE:
        return fixed_names(route) - _KEYWORDS
    modes = {mode for row in INTRINSICS.values() for mode in row.modes}
    types = {dtype.value for dtype in DType}
    return api_names(route) | modes | types | frozenset(CHIP_FACTS)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TILE_WORDS = _names(
    """host kernel def for in range if else with copy_in compute copy_out launch ub chip inf and or
    not True False input output scratch int float rows pitch atomic shape size vector_cores ub_bytes
    import from as pass return while None"""
) | frozenset(dtype.value for dtype in DType)
_KEYWORDS = _names(
    """alignas auto bool break case char class const constexpr continue default delete do double
    else enum extern false float for goto if inline int long namespace new nullptr operator private
    protected public register reinterpret_cast return short signed sizeof static static_cast struct
    switch template this true typedef typename union unsigned using virtual void volatile while"""
)
_CPP_WORDS = _KEYWORDS | _names(
    """half bfloat16_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t
    __aicore__ __global__ __gm__ __ubuf__ GM_ADDR AscendC LocalTensor GlobalTensor TPipe TQue TBuf
    TQueBind TPosition QuePosition VECIN VECOUT VECCALC GM HardEvent V_S S_V V_MTE3 MTE2_V MTE3_V
    V_MTE2 MTE3_MTE2 MTE2_MTE3 S_MTE3 MTE3_S MTE2_S S_MTE2 V_V event_t PIPE_V PIPE_S PIPE_MTE2
    PIPE_MTE3 PIPE_ALL RoundMode CAST_NONE CAST_RINT CAST_FLOOR CAST_CEIL CAST_ROUND CAST_TRUNC
    CAST_ODD CMPMODE LT GT EQ LE GE NE SELMODE VSEL_CMPMASK_SPR VSEL_TENSOR_SCALAR_MODE
    VSEL_TENSOR_TENSOR_MODE DataCopyParams DataCopyExtParams DataCopyPadParams
    DataCopyPadExtParams Init Process InitBuffer AllocTensor FreeTensor EnQue DeQue Get GetValue
    SetValue SetGlobalBuffer ReinterpretCast GetSize GetPhyAddr FetchEventID AllocEventID
    ReleaseEventID GetTPipePtr SetFlag WaitFlag PipeBarrier Sync ScalarMin ScalarMax std min max
    pipe tiling tilingData EVENT_ID0 EVENT_ID1"""
)
