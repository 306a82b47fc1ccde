"""Makes short.csv from a checkout of BobbyWeng/cannbot-ascendc-vs-pypto.

    python runs/calibration/extract_short.py CHECKOUT

Its reports hold the profiler's op_summary of 700 launches of each kernel, on a chip with 40 vector
cores at 1650 MHz (device_0/info.json.0). Kept of each: the medians of the task's duration, of the
cycles of all cores together, and of the shares of the pipes. The hosts of its kernels launch 20
blocks or fewer, in whole tiles of 8192 halves; torch_npu's own kernels take all 40 cores.

The rest are published eager times of element-wise calls on 910B2 (target/measured/). cann-bench
reads 201 MB through L2 before each measured call (src/kernel_eval/eval/perf_eval.py), so their
data come from HBM ("flushed"); of the times of its stanford_bench nothing is said, and those below
4 us fit data in L2 only ("warm"). Their kernels are the vendor's, of which ours takes the place.
"""

from __future__ import annotations

import csv
import re
import sys
from math import prod
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
_REPOSITORY = "BobbyWeng/cannbot-ascendc-vs-pypto"
_MEASURED = HERE.parents[1] / "src" / "npusmith" / "target" / "measured"
_CALL = re.compile(r"(?P<name>\w+)\((?P<args>[^;]*)\) -> (?P<result>\S+)( [a-z_]+=\S+)*")
_TENSOR = re.compile(r"(\w+)\[([\d,]+)\]")
_CALLS = {"relu": (0, 1), "leaky_relu": (0, 1), "sigmoid": (4, 1), "maximum": (7, 2)}
_DTYPES = {  # what is computed, element type: type of the kernel
    **{(what, "float32"): "float" for what in (0, 4, 7)},
    **{(what, "float16"): "half" for what in (0, 4, 7)},
    (4, "bfloat16"): "half",  # goes through float in both
}
_BYTES = {"half": 2, "float": 4}
_CORES_B2, _UB = 48, 180 * 1024
_TILE, _BLOCKS, _CORES, _MHZ = 8192, 20, 40, 1650
_KERNELS = {  # folder and kernel: what of kernels/stream.asc, inputs, elements of a batch
    ("add", "add_kernel"): (1, 4, 98304),
    ("mul", "mul_kernel"): (2, 2, 98304),
    ("relu", "relu_kernel"): (0, 1, 98304),
    ("div", "div_kernel"): (3, 2, 786432),
    ("add", "aclnnAdd_AddAiCore_Add"): (6, 2, 98304),
    ("mul", "aclnnMul_MulAiCore_Mul"): (2, 2, 98304),
    ("relu", "aclnnRelu_Relu_Relu"): (0, 1, 98304),
}
_COLUMNS = (
    "name", "chip", "clock_mhz", "kernel", "what", "inputs", "elements", "per_core", "tile",
    "blocks", "dtype", "state", "task_us", "core_us", "vec_us", "scalar_us", "mte2_us", "mte3_us",
    "launches", "evidence", "source",
)  # fmt: skip


def main() -> None:
    checkout = Path(sys.argv[1])
    found = []
    for (folder, kernel), (what, inputs, each) in _KERNELS.items():
        side = "torch" if kernel.startswith("aclnn") else "ascendc"
        for batch in (1, 2, 4, 8, 16, 32, 64):
            pattern = f"operators/{folder}/reports/raw/{side}_b{batch}/**/op_summary_*.csv"
            for file in sorted(checkout.glob(pattern)):
                rows = [row for row in _read(file) if row["Op Name"] == kernel]
                if rows:
                    shape = what, inputs, each * batch
                    found.append(_row(side, folder, batch, shape, rows, file.relative_to(checkout)))
    found += [row for table in ("cann_bench", "kernelbench") for row in _eager(table)]
    with (HERE / "short.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))


def _row(
    side: str, folder: str, batch: int, shape: tuple[int, int, int],
    rows: list[dict[str, str]], source: Path,
) -> dict[str, object]:  # fmt: skip
    what, inputs, elements = shape
    blocks, per_core, tile = _split(side, elements)
    core = median(float(row["aiv_total_cycles"]) for row in rows) / blocks / _MHZ
    busy = {
        f"{pipe}_us": f"{core * median(float(row[f'aiv_{pipe}_ratio']) for row in rows):.4g}"
        for pipe in ("vec", "scalar", "mte2", "mte3")
    }
    return {
        "name": f"short/{folder}/{side}/b{batch}", "chip": "910B3", "clock_mhz": _MHZ,
        "kernel": rows[0]["Op Name"], "what": what, "inputs": inputs, "elements": elements,
        "per_core": per_core, "tile": tile, "blocks": blocks, "dtype": "half", "state": "warm",
        "task_us": f"{median(float(row['Task Duration(us)']) for row in rows):.5g}",
        "core_us": f"{core:.4g}", **busy,
        "launches": len(rows),
        "evidence": "measured: profiler, structure of the kernel published" if side == "ascendc"
        else "measured: profiler, structure of the kernel assumed",
        "source": f"{_REPOSITORY}:{source}",
    }  # fmt: skip


def _eager(table: str) -> list[dict[str, object]]:
    """Element-wise calls of one table whose kernel is one pass over whole tensors."""
    found = []
    for row in _read(_MEASURED / f"{table}.csv"):
        call = _CALL.fullmatch(row["calls"])
        if not call or call["name"] not in _CALLS or row["chip"] != "910B2":
            continue
        what, inputs = _CALLS[call["name"]]
        tensors = set(_TENSOR.findall(call["args"] + " " + call["result"]))
        if len(tensors) != 1 or (kind := _DTYPES.get((what, min(tensors)[0]))) is None:
            continue
        elements = prod(int(size) for size in min(tensors)[1].split(","))
        per_core = -(-elements // _CORES_B2 // 64) * 64
        most = _UB // (_BYTES[kind] * 2 * (inputs + 1) + (4 if what == 4 else 0)) // 64 * 64
        found.append({
            "name": f"eager/{row['case']}/{row['id']}", "chip": "910B2", "clock_mhz": 0,
            "kernel": call["name"], "what": what, "inputs": inputs, "elements": elements,
            "per_core": per_core, "tile": min(per_core, most),
            "blocks": -(-elements // per_core), "dtype": kind,
            "state": "flushed" if table == "cann_bench" else "warm",
            "task_us": row["us"], "launches": 20 if table == "cann_bench" else "",
            "evidence": "measured: profiler, structure of the kernel assumed"
            + ("" if table == "cann_bench" else ", and the state of L2"),
            "source": row["source"],
        })  # fmt: skip
    return found


def _split(side: str, elements: int) -> tuple[int, int, int]:
    """Blocks, elements of one, and elements of a tile."""
    if side == "torch":
        per_core = -(-elements // _CORES // 64) * 64
        return _CORES, per_core, min(per_core, _TILE)
    tiles = -(-elements // _TILE)
    each = -(-tiles // min(_BLOCKS, tiles))
    return -(-tiles // each), each * _TILE, _TILE


if __name__ == "__main__":
    main()
