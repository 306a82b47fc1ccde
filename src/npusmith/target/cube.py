"""The cube unit: its memories, which matrices they hold, and what each step takes.

The checker, the interpreter, the lowering and the quick reference read these rows. Source: Ascend C
API reference, Nd2NzParams, LoadData, Mmad, Fixpipe (dav-2201).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import ceil

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Memory, Role
from npusmith.target.chips import Chip

F32, F16, BF16 = DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16
I8, I32 = DType.INT8, DType.INT32

FRACTAL_BYTES = 512  # 16 rows of 32 bytes
MOST_SIZE = 4095  # rows, columns and depth of one product (doc: MmadParams)
MOST_FLAGS = 10  # between the cores of a block: 11 to 14 are SyncAll's, 0 is a wait of cube cores
MOST_POSTS = 15  # that nobody has waited for yet (doc: CrossCoreSetFlag)
MOST_PITCH = 65535  # elements between rows, in one copy that lays out fractals (doc: Nd2NzParams)

# What may be multiplied, and what it is added up in.
PRODUCTS: dict[tuple[DType, DType], DType] = {
    (F16, F16): F32,
    (BF16, BF16): F32,
    (F32, F32): F32,
    (I8, I8): I32,
}
SOURCES = tuple(dtype for dtype, _ in PRODUCTS)
SUMS = tuple(dict.fromkeys(PRODUCTS.values()))

# What a product becomes on its way to global memory: quantPre of Fixpipe.
OUTFLOWS: dict[tuple[DType, DType], str] = {
    (F32, F32): "NoQuant",
    (F32, F16): "F322F16",
    (F32, BF16): "F322BF16",
    (I32, I32): "NoQuant",
}


class Path(Enum):
    """How a part of L1 reaches L0."""

    FRACTALS = "LoadData, fractal by fractal"
    TRANSPOSED = "LoadData with ifTranspose"  # 16-bit types
    IMAGE = "LoadData as of an image of one row, which transposes"  # 32-bit types
    SQUARES = "LoadDataWithTranspose, two fractals at a time"  # 8-bit types


@dataclass(frozen=True, slots=True)
class Place:
    """One memory: which types its matrices have, and what it can hold."""

    dtypes: tuple[DType, ...]
    bytes: str  # the field of a Chip


PLACES: dict[Memory, Place] = {
    Memory.L1: Place(SOURCES, "l1_bytes"),
    Memory.L0A: Place(SOURCES, "l0a_bytes"),
    Memory.L0B: Place(SOURCES, "l0b_bytes"),
    Memory.L0C: Place(SUMS, "l0c_bytes"),
    Memory.BIAS_TABLE: Place(SUMS, "bias_table_bytes"),
}

# Which memory a queue's position is in.
ROLES = {
    Role.A1: Memory.L1,
    Role.B1: Memory.L1,
    Role.A2: Memory.L0A,
    Role.B2: Memory.L0B,
    Role.CO1: Memory.L0C,
    Role.C1: Memory.L1,
    Role.C2: Memory.BIAS_TABLE,
}


def capacity(memory: Memory, chip: Chip) -> int:
    """Bytes of a memory that a kernel may divide among its buffers."""
    return chip.ub_bytes if memory is Memory.UB else int(getattr(chip, PLACES[memory].bytes))


FRACTAL_ROWS = 16  # rows of a fractal, and columns of those of 16-bit types
_WIDE = {I8: 32, I32: 32}  # two fractals of 8-bit types are a square


def fractals(m: float, n: float, k: float, dtype: DType) -> int:
    """Steps of the cube unit for a product: 16 x 16 sums over 32 bytes of the depth each."""
    deep = FRACTAL_BYTES // FRACTAL_ROWS // dtype.bytes
    return ceil(m / FRACTAL_ROWS) * ceil(n / FRACTAL_ROWS) * ceil(k / deep)


def grid(dtype: DType) -> int:
    """What rows and columns of a matrix are multiples of: squares of whole fractals."""
    return _WIDE.get(dtype, FRACTAL_ROWS)


def elements(memory: Memory, rows: int) -> tuple[DType, ...]:
    """Types that a matrix of so many rows may have there; a row in L1 is one for the bias table."""
    return SUMS if memory is Memory.L1 and rows == 1 else PLACES[memory].dtypes


def split_path(memory: Memory, dtype: DType, transposed: bool) -> Path:
    """How a matrix comes from L1 to L0A or L0B.

    A fractal of L0B lies as its transpose does in L1, so what is transposed there is not moved.
    """
    if transposed == (memory is Memory.L0B):
        return Path.FRACTALS
    return {1: Path.SQUARES, 2: Path.TRANSPOSED, 4: Path.IMAGE}[dtype.bytes]
