"""The constants of the timing model, each with its unit, its basis and its source.

`values(chip)` gives name -> number for the timer: this table, the chip's own parameters, and what
`runs/calibrate.py` fitted (fitted.json, beside this file) in place of the values here.

Bases: documented (a vendor document), measured (published, see the source), derived (arithmetic on
published numbers), fitted (by the calibration), guess (nothing published: a plausible number).
Sources by their row in the collection of measurements (mskv, mskm, mska: msKPP tables; pto: PTO-ISA
on 910B3; inst, deriv, kern: asc-devkit examples; theo: documented rates), or:
DK = developer guide; INI = platform file of CANN; PERF = vendor micro-benchmarks;
LADDER = Add ladder of asc-devkit, 910B1; COPY = data_copy example of asc-devkit, 910B1;
CANNBOT = op_summary files of BobbyWeng/cannbot-ascendc-vs-pypto, 40 vector cores at 1650 MHz.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from npusmith.errors import NpusmithError
from npusmith.target.chips import Chip

FITTED = Path(__file__).parent / "fitted.json"
Basis = Literal["documented", "measured", "derived", "fitted", "guess"]


@dataclass(frozen=True, slots=True)
class CostRow:
    """One constant. Cycles are those of the cores' clock."""

    name: str
    value: float
    unit: str
    basis: Basis
    source: str


def _rows(unit: str, *rows: tuple[str, float, Basis, str]) -> tuple[CostRow, ...]:
    return tuple(CostRow(name, value, unit, basis, source) for name, value, basis, source in rows)


_QUEUE = "CANNBOT: 83 to 94 cycles of S a tile for a queue's four calls and the copy"

# --- the scalar unit ------------------------------------------------------------------------------
_SCALAR = _rows(
    "cycles",
    ("scalar.issue", 5, "derived", "LADDER case 1: 26 cycles of S for 4 instructions and 6 flags"),
    ("scalar.other", 2, "guess", ""),
    ("scalar.call", 2, "guess", ""),
    ("scalar.read", 11, "derived", "deriv-0002: two reads, a write and an add take 34.2 cycles"),
    ("scalar.read_use", 40, "derived", "CANNBOT div: 83 cycles a row: a read and two instructions"),
    ("scalar.write", 11, "derived", "deriv-0002"),
    ("scalar.gm_read", 100, "guess", "a miss of the data cache now and then"),
    ("scalar.gm_write", 20, "guess", ""),
    ("scalar.tiling", 20, "guess", "the data cache holds the line after its first field"),
    ("scalar.enque", 20, "derived", _QUEUE),
    ("scalar.deque", 20, "derived", _QUEUE),
    ("scalar.alloc", 20, "derived", _QUEUE),
    ("scalar.free", 20, "derived", _QUEUE),
    ("scalar.set_flag", 1, "guess", "pto-0031: assumed there too"),
    ("scalar.wait_flag", 1, "guess", "pto-0031: assumed there too"),
    ("scalar.set_mask", 1, "documented", "DK: 1 cycle"),
    ("scalar.barrier", 20, "derived", "pto-0028: fitted in a sequence with gathers"),
    ("scalar.init", 50, "guess", "TPipe and InitBuffer: some 100 ns of a kernel"),
    ("scalar.fetch_event", 4, "guess", ""),
    ("scalar.cross_set", 10, "guess", ""),
    ("scalar.block_set", 50, "guess", ""),
    ("scalar.turn_set", 50, "guess", ""),
    ("scalar.cache_clean", 100, "guess", ""),
    ("scalar.mm_step", 175, "derived", "Matmul ladder 8192^3, aic_scalar_time of cases 2 to 5"),
    ("scalar.mm_load", 137, "derived", "Matmul ladder 8192^3, aic_scalar_time of cases 2 to 5"),
    ("scalar.mm_step_const", 114, "derived", "Matmul ladder 8192^3, constant tiling"),
    ("scalar.mm_load_const", 89, "derived", "Matmul ladder 8192^3, constant tiling"),
)

_QUEUES = _rows(
    "steps",
    ("queue.depth", 32, "documented", "INI; PERF for MTE1 and M"),
    (
        "queue.outstanding",
        16,
        "derived",
        "COPY 1: 128 B every 20.6 cycles with 190 of latency: > 9",
    ),
)

# --- vector instructions: cycles for a repeat of 256 B whose operands do not meet in a bank -------
_VECTOR = _rows(
    "cycles/repeat",
    ("vector.other", 1, "guess", "most instructions take 1"),
    *(
        (f"vector.{name}", 1, "documented", "theo-0001, 0002, 0017; mskv: 2.0 with two sources")
        for name in (
            "add", "sub", "mul", "max", "min", "and", "or", "xor", "add_relu", "sub_relu", "abs",
            "reciprocal", "relu", "rsqrt", "not", "copy", "adds", "muls", "maxs", "mins",
            "leaky_relu", "shift_left", "shift_right", "axpy", "duplicate", "create_vec_index",
            "mul_cast", "add_relu_cast", "sub_relu_cast", "cast_deq",
        )
    ),
    *(
        (f"vector.{name}.16", 4, "documented", "theo-0003; mskv: 3.9-4.0")
        for name in ("exp", "ln", "sqrt")
    ),
    *(
        (f"vector.{name}.32", 2, "documented", "theo-0004; mskv: 2.0; pto: 2")
        for name in ("exp", "ln", "sqrt")
    ),
    ("vector.div.16", 4, "documented", "theo-0003; mskv: 4.0"),
    ("vector.div.32", 2, "documented", "theo-0004; mskv, pto: 4.0 with two sources in one group"),
    ("vector.mul_add_dst", 2, "documented", "theo-0005, 0006; mskv: 6.0 with three in one group"),
    ("vector.fused_mul_add", 2, "derived", "mskv VMADD: 6.0 with three operands in one group"),
    ("vector.fused_mul_add_relu", 2, "derived", "mskv VMADDRELU: 6.0, as above"),
    ("vector.cast", 1, "documented", "theo-0026, 0027; mskv VCONV"),
    ("vector.compare", 1, "documented", "theo-0007, 0008; mskv VCMP: 2.0 with two sources"),
    ("vector.compares", 1, "documented", "theo-0007, 0008"),
    ("vector.select", 1, "documented", "theo-0007, 0008; mskv VSEL: 2.0 with two sources"),
    ("vector.gather", 12, "measured", "mskv VGATHER, 32 bits"),
    ("vector.gather.16", 24, "measured", "mskv VGATHER, 16 bits"),
    ("vector.gatherb", 3, "documented", "theo-0021, 0022: 84 B a cycle; mskv: 1.7 a repeat + 13.7"),
    ("vector.gather_mask", 2, "documented", "theo-0009, 0010; mskv VREDUCE"),
    ("vector.scatter", 12, "guess", "as a gather of 32 bits"),
    ("vector.sort32", 16, "measured", "32 elements at 2 a cycle: theo-0023"),
    ("vector.mrg_sort", 16, "measured", "mskv VMRGSORT"),
    ("vector.brcb", 1, "measured", "mskv VBRCB"),
    ("vector.transpose", 21, "measured", "PTO-ISA; theo-0025 gives 1 a repeat"),
    ("vector.transpose5hd", 2, "documented", "theo-0025: 256 B a cycle, two sides of 16 blocks"),
    ("vector.move_mask", 1, "guess", ""),
    ("vector.pair_reduce_sum", 1, "documented", "theo-0015, 0016; mskv VCPADD"),
    *(
        (f"vector.block_reduce_{fold}.{bits}", cycles, "documented", "theo-0011, 0012; mskv VCG*")
        for fold in ("sum", "max", "min")
        for bits, cycles in ((16, 7), (32, 1))
    ),
    *(
        (f"vector.whole_reduce_{fold}", 7, "documented", "theo-0013, 14; pto-0016; mskv fp32: 3.0")
        for fold in ("sum", "max", "min")
    ),
    ("vector.repeat_reduce_sum", 7, "documented", "as whole_reduce_sum"),
    *(
        (f"vector.reduce_{fold}", 8, "guess", "whole_reduce and what folds its results")
        for fold in ("sum", "max", "min")
    ),
)  # fmt: skip

_CONFLICTS = _rows(
    "cycles/row",
    ("conflict.other", 1, "measured", "inst-0002, 0003: 22 + 64 x 2.00 for an Add"),
    ("conflict.div.16", 0, "derived", "mskv VDIV: 4.0 in spite of two sources in one group"),
    ("conflict.div.32", 2, "derived", "mskv VDIV: 4.0 with two sources in one group"),
    ("conflict.mul_add_dst", 2, "derived", "mskv VMLA: 6.0 with three operands in one group"),
    ("conflict.fused_mul_add", 2, "derived", "mskv VMADD: 6.0"),
    ("conflict.fused_mul_add_relu", 2, "derived", "mskv VMADDRELU: 6.0"),
    ("bank.read_write", 0.766, "derived", "inst-0005: 22 + 64 x 1.766 for an Add"),
    ("bank.partial", 1.344, "derived", "inst-0007: 22 + 64 x 1.672, half of the repeats meet"),
)

_HEADS = _rows(
    "cycles",
    ("vector.head", 22, "derived", "deriv-0001: inst-0001 at 1.8 GHz; LADDER: 22.0-22.7"),
    ("vector.floor", 3, "measured", "mskv: 3-4 cycles back to back"),
    *(
        (f"head.{name}", cycles, "derived", "pto, over what an add takes before its first repeat")
        for name, cycles in {
            "mul": 1, "muls": 2, "leaky_relu": 2, "select": 3, "abs": 5, "adds": 7, "exp": 7,
            "div": 7, "block_reduce_max": 7, "block_reduce_min": 7, "cast": 8, "ln": 9,
            "gather_mask": 10, "compare": 12, "compares": 12, "block_reduce_sum": 14, "sqrt": 15,
            "whole_reduce_sum": 22, "whole_reduce_max": 22, "whole_reduce_min": 22,
        }.items()
    ),
)  # fmt: skip

# How many vector instructions over all of its data a library function is.
_LIBRARY = _rows(
    "instructions",
    ("library.other", 10, "guess", ""),
    ("library.gelu", 10, "derived", "kern-0141: FasterGelu 14.7 cycles a repeat, heads included"),
    ("library.faster_gelu", 10, "derived", "kern-0141: 14.7 cycles a repeat, heads included"),
    ("library.ascend_dequant", 3, "derived", "kern-0167: 22.1 cycles a repeat with four others"),
    ("library.broad_cast", 1.5, "derived", "kern-0167: 22.1 cycles a repeat with four others"),
    *(
        (f"library.{name}", count, "guess", "steps of a usual evaluation")
        for name, count in {
            "tanh": 12, "sigmoid": 5, "erf": 25, "erfc": 35, "sin": 25, "cos": 25, "tan": 40,
            "asin": 30, "acos": 32, "atan": 30, "sinh": 12, "cosh": 10, "asinh": 14, "acosh": 12,
            "atanh": 10, "log2": 2, "log10": 2, "floor": 2, "ceil": 2, "round": 2, "trunc": 2,
            "sign": 8, "frac": 3, "lgamma": 80, "digamma": 60, "power": 40, "powers": 40, "fmod": 8,
            "swish": 5, "silu": 5, "softmax": 8, "layer_norm": 12, "rms_norm": 6,
        }.items()
    ),
)  # fmt: skip
_LIBRARY += _rows(
    "cycles/repeat",
    ("library.repeat", 1.3, "derived", "with library.gelu: 14.7 cycles a repeat of 256 B"),
)

# --- the cube unit --------------------------------------------------------------------------------
_CUBE = _rows(
    "cycles",
    ("cube.head", 21, "documented", "PERF; mska on 910B3: 23 + 1.0 a tile when isolated"),
    ("cube.gap", 2.1, "measured", "mska on 910B1: 2.1 + 1.0 a tile back to back"),
    ("cube.tile", 1, "documented", "16 x 16 x 32 B in a cycle; mska"),
) + _rows(
    "times",
    ("cube.float", 2, "documented", "DK: 4 floats deep in a cycle without HF32, 8 are 32 B"),
)

# --- transfers ------------------------------------------------------------------------------------
_FIELDS = {
    "start": "cycles",
    "rate": "bytes/cycle",
    "miss": "bytes/cycle",
    "issue": "cycles",
    "row": "cycles/row",
    "nz_row": "cycles/row",
    "request": "cycles/request",
    "gap": "cycles",
}
_COPY = "COPY 1: 128 B every 20.6 cycles"
_ROW = "COPY 2: 64 rows of 128 B take at most 8.3 cycles a row, and HBM is the limit there"
_LOADS = "Matmul ladder: 430 cycles of MTE1 for 5 loads of a K step, 348 without"
_REQUEST = "Matmul ladder 1, 4, 5: 3.0 cycles a row of 128 B, 11.2 for 256 B and 512 B"


def _path(name: str, **fields: tuple[float, Basis, str]) -> tuple[CostRow, ...]:
    """A path; a field that is not given is that of path.other (docs/timing.md)."""
    return tuple(
        CostRow(f"path.{name}.{field}", value, _FIELDS[field], basis, source)
        for field, (value, basis, source) in fields.items()
    )


_PATHS = (
    *_path(
        "other",
        start=(28, "guess", "as L1 to L0"),
        rate=(128, "guess", ""),
        issue=(2, "derived", "mskr: 2 cycles on top of the bytes, back to back"),
        row=(1, "guess", ""),
        nz_row=(1, "guess", ""),
        request=(0, "guess", ""),
        gap=(0, "guess", ""),
    ),
    *_path(
        "gm_ub",
        start=(192, "derived", "dma-0002 on 910B3; LADDER case 1: 190 with a rate of 32"),
        rate=(126, "derived", "dma-0002: 910B3, data in L2; INI: 110"),
        miss=(32, "documented", "INI: DDR; LADDER case 1: 701 cycles for 2 x 8 KB; dma-0001: 51"),
        issue=(20.6, "derived", _COPY),
        row=(4, "guess", _ROW),
    ),
    *_path(
        "ub_gm",
        start=(167, "derived", "LADDER cases 1 and 2: 295 cycles for 8 KB; dma-0004: 121"),
        rate=(64, "documented", "INI; dma-0004: 79.5"),
        issue=(20.6, "guess", "as gm_ub"),
        row=(4, "guess", "as gm_ub"),
    ),
    *_path(
        "gm_l1",
        start=(187, "derived", "dma-0003"),
        rate=(105, "derived", _REQUEST + "; dma-0003: 171 in all"),
        miss=(40, "guess", "COPY L1 2: 24 cores get 31.7 each when HBM is the limit"),
        issue=(38, "derived", "closed-form matmul model: 38 cycles a DMA"),
        row=(4, "guess", "as gm_ub"),
        nz_row=(1.8, "derived", "bank: contiguous rows of 64-256 B in L2 take 1.5-2.3 cycles each"),
        request=(1.8, "derived", _REQUEST),
    ),
    *_path(
        "l1_gm",
        start=(167, "guess", "as ub_gm"),
        rate=(64, "guess", "as ub_gm"),
        issue=(20.6, "guess", "as ub_gm"),
        row=(4, "guess", "as gm_ub"),
    ),
    *_path(
        "gm_l0a",
        start=(196, "derived", "dma-0006"),
        rate=(162, "derived", "dma-0006"),
        issue=(20.6, "guess", "as gm_ub"),
    ),
    *_path(
        "gm_l0b",
        start=(196, "guess", "as gm_l0a"),
        rate=(128, "derived", "mskm GM_TO_L0B: 154 GiB/s at 64 KB"),
        issue=(20.6, "guess", "as gm_ub"),
    ),
    *_path(
        "l0c_gm",
        start=(60, "derived", "dma-0005: 35, and never less than 80 in all"),
        rate=(134, "derived", "dma-0005, floats; Matmul ladder 4: 64 a cycle of halves"),
        issue=(20.6, "guess", "as gm_ub"),
        row=(1.7, "derived", "bank: 1,600 rows of 32 B a core"),
        nz_row=(4, "guess", "as gm_ub"),
    ),
    *_path(
        "l1_l0a",
        start=(28, "documented", "PERF"),
        rate=(256, "documented", "PERF; theo-0029; dma-0007: 263"),
        gap=(16, "derived", _LOADS),
    ),
    *_path(
        "l1_l0b",
        start=(28, "documented", "PERF"),
        rate=(128, "documented", "PERF; theo-0030; dma-0008: 132"),
        gap=(16, "derived", _LOADS),
    ),
    *_path(
        "l1_l0b_sparse",
        start=(30, "documented", "PERF"),
        rate=(128, "documented", "PERF"),
    ),
    *_path(
        "l1_bt",
        start=(20, "documented", "PERF"),
        rate=(32, "documented", "theo-0031; dma-0009: 35"),
    ),
    *_path(
        "l1_fb",
        start=(20, "documented", "PERF"),
        rate=(32, "documented", "theo-0031; dma-0010: 33"),
    ),
    *_path(
        "l0c_l1",
        start=(20, "documented", "PERF"),
        rate=(128, "documented", "theo-0032"),
    ),
    *_path(
        "ub_ub",
        start=(22, "derived", "the head of a vector instruction"),
        rate=(256, "documented", "theo-0028; mskm UB_TO_UB"),
        row=(1, "guess", "a repeat"),
    ),
    *_path(
        "fill_l1",
        start=(28, "guess", "as L1 to L0"),
        rate=(64, "guess", ""),
    ),
)  # fmt: skip

_MEMORY = (
    *_rows(
        "cycles",
        ("gm.miss_latency", 0, "guess", "dma-0001 and 0002: a cold start is not the longer one"),
        ("l2.same_line", 0.375, "derived", "COPY 7, L1 6: 17.9 cycles of 48 cores, 9.0 of 24"),
    ),
    *_rows(
        "bytes",
        ("hbm.transfer_bytes", 1000, "derived", "LADDER: 1.36 TB/s of 8 KB, 1.54 of 32 KB"),
        ("gm.piece_bytes", 512, "derived", "COPY 4, L1 3: 31 cycles a piece of 48 cores, 16 of 24"),
        ("gm.bypass_bytes", 195, "derived", "COPY 8, L1 7: 11.6, 7.9 cycles a row of 128 B"),
        ("l2.same_window", 131072, "guess", "COPY 7 and 8: cores 128 KB apart are not in the way"),
    ),
    *_rows(
        "pieces/cycle",
        ("gm.pieces", 2.2, "derived", "bank: 1.6 to 2.4 in 6 records with rows of 96 to 416 B"),
    ),
    *_rows(
        "times",
        ("gm.atomic", 1, "guess", "an atomic transfer takes no longer"),
        ("hbm.early_back", 0.35, "derived", "eager element-wise calls of cann-bench, L2 flushed"),
        ("hbm.write_back", 1, "derived", "one bus for both directions; a free one fits 0.8"),
        ("ub.hold", 0.1, "derived", "LADDER 5, 6: 4.4 us of MTE2 and 6.7 of the core for 5.9 of V"),
    ),
    *_rows(
        "halvings",
        ("gm.knee", 2, "derived", "COPY L1 2, UB 3: 24 cores have 95 % of what 48 get from HBM"),
    ),
    *_rows(
        "0 or 1",
        ("l2.on", 1, "documented", "0: as if there were no L2"),
        # As cann-bench measures, whose times the eager estimates rest on: L2 flushed before a call.
        ("l2.warm", 0, "documented", "1: the launch's data are in L2 as far as they fit; 0: none"),
        ("l2.full", 1, "documented", "without l2.warm, 1: L2 holds other data; 0: it is empty"),
    ),
)  # fmt: skip

# --- cores together, launch -----------------------------------------------------------------------
_JOINS = _rows(
    "cycles",
    ("join.other", 200, "guess", ""),
    ("join.sync_all", 700, "guess", "nothing published"),
    ("join.soft_sync", 2000, "guess", "several transfers through global memory"),
    ("join.cross_wait", 150, "guess", ""),
    ("join.block_wait", 600, "guess", "a flag in global memory"),
    ("join.turn_wait", 600, "guess", "a flag in global memory"),
    ("join.matmul_request", 600, "guess", "a message through global memory"),
    ("join.matmul_wait", 300, "guess", ""),
)

# Two states of a launch: launch.warm 0 when the kernel never ran before (what asc-devkit's examples
# print), 1 when it did (what a profiler sees of repeated calls).
_LAUNCH = (
    _rows(
        "cycles",
        ("launch.stagger", 10, "guess", "between the starts of two cores"),
        ("launch.prologue", 1000, "derived", "CANNBOT: 0.7 us of S in the least vector kernels"),
        ("launch.prologue_cube", 1000, "guess", "0.8 us for the least matmul, all in all"),
        ("launch.first_prologue", 1000, "derived", "COPY: 1.1 us of S, launched first"),
        ("launch.cold", 10000, "derived", "COPY: 6.2 us of core time outside MTE2, launched first"),
        ("launch.epilogue", 200, "guess", ""),
    )
    + _rows(
        "us",
        ("launch.task", 0.5, "derived", "CANNBOT: task less core time, 0.86 us of 12 cores"),
        ("launch.core", 0.024, "derived", "CANNBOT: 1.2 us of 20 vector cores, 1.5 of 40"),
        ("launch.core_cube", 0.075, "derived", "CANNBOT: matmul 0.55 us of 1 core, 1.97 of 20"),
        ("launch.first", 0.1, "derived", "kern-0007, 0008: 0.46 us on one core, launched first"),
        ("launch.first_core", 0.15, "derived", "LADDER: 7 to 9.4 us of 48 cores, launched first"),
        ("launch.first_core_cube", 0, "guess", "no row of the calibration part tells it"),
        (
            "launch.mix",
            6.6,
            "derived",
            "a Matmul as a mixed kernel 17.85 us, on cube cores alone 11.21",
        ),
    )
    + _rows(
        "0 or 1",
        ("launch.warm", 1, "documented", "1: the kernel ran before, as in benchmarks; 0: never"),
    )
)

# What comes from the chip; the values here are those of 910B1. The two factors can be fitted.
_CHIP = (
    _rows(
        "times",
        ("hbm.transfer_share", 0.125, "guess", "at most that part of a transfer's bytes"),
        ("hbm.efficiency", 1.05, "derived", "of hbm_gbps of the chip, with hbm.transfer_bytes"),
        ("l2.efficiency", 1, "guess", "of l2.rate"),
    )
    + _rows(
        "bytes/cycle",
        ("hbm.rate", 805, "measured", "chips.py, by chip; deriv-0008"),
        ("l2.rate", 3222, "derived", "deriv-0009: 5.96 TB/s of 24 + 48 cores; DK: 5.2"),
    )
    + _rows("bytes", ("l2.bytes", 192 * 1024**2, "documented", "INI, by chip"))
)

COSTS: dict[str, CostRow] = {
    row.name: row
    for row in (
        *_SCALAR, *_QUEUES, *_VECTOR, *_CONFLICTS, *_HEADS, *_LIBRARY, *_CUBE, *_PATHS, *_MEMORY,
        *_JOINS, *_LAUNCH, *_CHIP,
    )
}  # fmt: skip

_L2_BYTES_PER_SECOND = 5.96e12  # deriv-0009
_L2_BYTES = 192 * 1024**2  # of the chip on which that was measured: a slice of L2 has its rate


def values(chip: Chip, changes: Mapping[str, float] | None = None) -> dict[str, float]:
    """Every constant for a chip: this table, then fitted.json, the chip, and `changes`.

    Raises timing-costs for a name that is not in the table or a value that is no number >= 0.
    """
    found = dict(_in_use())
    hertz = chip.clock_mhz * 1e6
    changed = _checked(changes or {}, "changes")
    found |= changed
    l2 = _L2_BYTES_PER_SECOND * chip.l2_bytes / _L2_BYTES
    found["hbm.rate"] = chip.hbm_gbps * 1e9 / hertz * found["hbm.efficiency"]
    found["l2.rate"] = l2 / hertz * found["l2.efficiency"]
    found["l2.bytes"] = float(chip.l2_bytes)
    return found | changed


def basis(name: str) -> Basis:
    """What a constant in use rests on: `fitted` when the calibration replaced it."""
    return "fitted" if name in _fitted() else COSTS[name].basis


@cache
def _in_use() -> dict[str, float]:
    """The table and what was fitted, for any chip: estimates ask thousands of times a kernel."""
    return {name: row.value for name, row in COSTS.items()} | _checked(_fitted(), "fitted.json")


@cache
def _fitted() -> dict[str, float]:
    """`values` of fitted.json; nothing when there is no such file."""
    if not FITTED.exists():
        return {}
    found: dict[str, float] = json.loads(FITTED.read_text())["values"]
    return found


def _checked(found: Mapping[str, float], where: str) -> dict[str, float]:
    for name, value in found.items():
        if name not in COSTS:
            raise NpusmithError(
                "timing-costs", f"{where} names no constant of the model", seen=name
            )
        if not math.isfinite(value) or value < 0:
            raise NpusmithError(
                "timing-costs", f"{where} gives {name} a value that it cannot have", seen=str(value)
            )
    return dict(found)
