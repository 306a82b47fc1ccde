"""Writes the tables beside this file from the collection of published measurements.

    python runs/calibration/extract.py GROUND_TRUTH.csv

Facts only: a name, the shape or tiling, the number and where it was published (`source`, `ids`).
The collection itself has more columns and many more rows; what the calibration does not use stays
there.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

Row = dict[str, str]
HERE = Path(__file__).parent

# asc-devkit's best-practice examples: kernel in the collection -> our name.
_EXAMPLES = {
    "add_custom": "add",
    "matmul_custom": "matmul",
    "mmad_custom": "mmad",
    "matmul_gelu": "gelu",
    "quant_group_matmul": "quant",
    "nd2nz": "nd2nz",
    "data_copy GM->UB": "ub",
    "data_copy GM->L1": "l1",
}
_PIPES = ("vec", "scalar", "mte1", "mte2", "mte3", "mac", "fixpipe")
_TILING = re.compile(
    r"block_dim b(\d+),m(\d+),n(\d+); L0C (\d+)x(\d+); ka=(\w+) kb=(\w+); AL1 k=(\w+),m\*(\d+); "
    r"BL1 k=(\w+),n\*(\d+); pingpong A1=(\d) B1=(\d) A0=(\d) B0=(\d) C0=(\d)$"
)
_TILING_NAMES = (
    "blocks_b", "blocks_m", "blocks_n", "l0c_m", "l0c_n", "ka", "kb", "al1_k", "al1_m", "bl1_k",
    "bl1_n", "pp_a1", "pp_b1", "pp_a0", "pp_b0", "pp_c0",
)  # fmt: skip
_GIB = 1 << 30
_B1_MHZ = 1850.0
_TABLE_HZ = 1.85e9  # the clock that the transfer tables were made with (see the notes of `dma`)


def main() -> None:
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    _write("kernels.csv", _kernels(rows))
    _write("matmul.csv", map(_matmul, _of(rows, "bank")))
    _write("vector.csv", map(_vector, _of(rows, "mskv")))
    _write(
        "isolated.csv", (_isolated(row) for row in _of(rows, "pto") if "fixed=" in row["variant"])
    )
    _write("transfer.csv", [*map(_transfer, _of(rows, "mskm")), *map(_repeats, _of(rows, "mskr"))])
    _write("mmad.csv", map(_mmad, _of(rows, "mska")))
    _write("conflict.csv", map(_conflict, _of(rows, "inst")[:8]))


def _of(rows: list[Row], prefix: str) -> list[Row]:
    return [row for row in rows if row["id"].split("-")[0] == prefix]


def _write(name: str, rows: Iterator[Row] | list[Row] | map[Row]) -> None:
    rows = list(rows)
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows", file=sys.stderr)


def _kernels(rows: list[Row]) -> list[Row]:
    """One row for each scenario, its times as columns; empty: not published."""
    found: dict[str, Row] = {}
    for row in _of(rows, "kern"):
        ours = _EXAMPLES.get(row["kernel"])
        if ours is None or "05_best_practices" not in row["source"]:
            continue
        number = re.search(r"(?:case|scenario)(\d+)", row["variant"])
        name = f"{ours}/{number.group(1) if number else row['variant']}"
        mine = found.setdefault(name, _kernel(name, row))
        metric = {"aiv": "core", "aicore": "core"}.get(row["metric"], row["metric"])
        if f"{metric}_us" in mine and not mine[f"{metric}_us"]:
            mine[f"{metric}_us"] = row["value"]
        if metric == "total_cycles":  # of all cores together
            mine["core_us"] = f"{float(row['value']) / int(row['cores']) / _B1_MHZ:.2f}"
        mine["ids"] += f" {row['id']}" if mine["ids"] else row["id"]
    return list(found.values())


def _kernel(name: str, row: Row) -> Row:
    times = {f"{pipe}_us": "" for pipe in ("task", "core", *_PIPES)}
    source = row["source"].removesuffix("/README.md")
    head = {"name": name, "chip": row["chip"], "shape": row["shape"], "cores": row["cores"]}
    return {**head, **times, "ids": "", "source": source}


def _matmul(row: Row) -> Row:
    """Sizes in elements, tiles in blocks of 16; `full`: all of K."""
    shape = re.fullmatch(r"B(\d+) M(\d+) K(\d+) N(\d+)", row["shape"])
    tiling = _TILING.match(row["variant"])
    trans = re.search(r"trans flag (\d)", row["description"])
    if not (shape and tiling and trans):
        raise SystemExit(f"{row['id']} does not look like a tiling record")
    flag = int(trans.group(1)) - 1
    inputs = re.search(r"; (NZ inputs|ND inputs|mixed)", row["description"])
    return {
        "name": row["id"],
        "chip": row["chip"],
        **dict(zip("bmkn", shape.groups(), strict=True)),
        "trans_a": str(flag & 1),
        "trans_b": str(flag >> 1),
        "inputs": inputs.group(1)[:2].lower().replace("mi", "mixed") if inputs else "",
        "out_nd": str(int("ND output" in row["description"])),
        "out_fp32": str(int(row["dtype"].endswith("float32"))),
        "bias": str(int("bias True" in row["description"])),
        **dict(zip(_TILING_NAMES, tiling.groups(), strict=True)),
        "us": row["value"],
        "source": "CANN-8.1.RC1 repository_Ascend910B2_matmul " + row["notes"].split(";")[0],
    }


def _vector(row: Row) -> Row:
    first, intercept = re.findall(r"=([\d.]+)", row["variant"])
    return {
        "name": row["id"],
        "chip": row["chip"],
        "instruction": row["kernel"],
        "types": row["dtype"],
        "first": first,
        "intercept": intercept,
        "cycles_per_repeat": row["value"],
        "source": row["source"],
    }


def _isolated(row: Row) -> Row:
    fixed = re.search(r"fixed=([\d.]+)", row["variant"])
    return {
        "name": row["id"],
        "instruction": row["kernel"],
        "fixed": fixed.group(1) if fixed else "",
        "cycles_per_repeat": row["value"],
        "source": row["source"],
    }


def _transfer(row: Row) -> Row:
    size = float(row["shape"].removesuffix(" KiB")) * 1024
    return _cycles(row, "bytes", size)


def _repeats(row: Row) -> Row:
    return _cycles(row, "load2d", int(row["shape"].removeprefix("repeat ")) * 512)


def _cycles(row: Row, form: str, size: float) -> Row:
    cycles = size / (float(row["value"]) * _GIB) * _TABLE_HZ
    head = {"name": row["id"], "chip": row["chip"], "path": row["kernel"].lower(), "form": form}
    return {**head, "bytes": f"{size:g}", "cycles": f"{cycles:.1f}", "source": row["source"]}


def _mmad(row: Row) -> Row:
    m, k, n = re.findall(r"[MKN](\d+)", row["shape"])
    cycles = 2 * int(m) * int(k) * int(n) / float(row["value"])
    sizes = {"m": m, "k": k, "n": n, "types": row["dtype"], "cycles": f"{cycles:.2f}"}
    return {"name": row["id"], "chip": row["chip"], **sizes, "source": row["source"]}


def _conflict(row: Row) -> Row:
    ticks = {"scenario": row["variant"].removeprefix("scenario "), "ticks": row["value"]}
    return {"name": row["id"], **ticks, "source": row["source"].removesuffix("/README.md")}


if __name__ == "__main__":
    main()
