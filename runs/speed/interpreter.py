"""Speed of the tile language's interpreter where a program takes many small steps.

    python runs/speed/interpreter.py [--runs 7] [--against SRC]

Microseconds of processor time for each turn of a loop: what a turn does is in PROGRAMS. Each run is
a process of its own. `--against`: the package's folder of another checkout (its src/), run in turn
with this one; printed are the ratios of the pairs, other over this. Medians, with the lowest and
the highest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[2] / "src"
TURNS = 4000
PROGRAMS = {
    "scalars": """
        with compute:
            total = 0
            for i in range({turns}):
                total = total + max(i % 7, n // (i + 1)) * 2
            set(out[0], total % 5)
            set(out[1], total % 3)
""",
    "elements": """
        with compute:
            duplicate(out, 0, TILE)
            for i in range({turns}):
                set(out[i % TILE], wrap_add(value(out[(i + 1) % TILE]), i))
""",
    "vectors": """
        with compute:
            duplicate(out, 1, TILE)
            for i in range({turns}):
                adds(out, out, 1, n)
""",
    "copies": """
        with compute:
            duplicate(out, 1, TILE)
        with copy_out:
            store(y, out, TILE)
        for i in range({turns}):
            with copy_in:
                load(part_in, x[i % TILE // 8 * 8], 8)
            with copy_out:
                store(part[core_id() * TILE + i % TILE // 8 * 8], part_in, 8)
""",
}
TEXT = """TILE = 64

@host
def host(x, y):
    n = x.shape[0]
    launch(k, 2, n=n, part=2 * TILE)

@kernel
def k(x: input(int32), y: output(int32), part: scratch(int32), n: int):
    part_in = ub(TILE, int32)
    out = ub(TILE, int32)
    if core_id() == 0:
{body}
{send}
"""
SEND = """
        with copy_out:
            store(y, out, {count})
"""


def measure() -> dict[str, float]:
    """Microseconds of a turn, program by program."""
    from npusmith.ir.dtypes import DType
    from npusmith.lang import interpret, parse
    from npusmith.target.chips import DEFAULT_CHIP, find_chip

    found = {}
    for name, body in PROGRAMS.items():
        sizes = {"scalars": 2}.get(name, 64)
        send = "" if name == "copies" else SEND.format(count=sizes)
        program = parse(TEXT.format(body=body.format(turns=TURNS), send=send))
        start = time.process_time()
        interpret(
            program, find_chip(DEFAULT_CHIP), [np.arange(64, dtype=np.int32)],
            [((sizes,), DType.INT32)],
        )  # fmt: skip
        found[name] = 1e6 * (time.process_time() - start) / TURNS
    return found


def measured_by(src: Path) -> dict[str, float]:
    """The same in a process of its own, by the package in that folder."""
    done = subprocess.run(
        [sys.executable, __file__, "--once"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(src)},
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        print(json.dumps(measure()))
        return
    runs = []
    for _ in range(args.runs):
        own = measured_by(HERE)
        other = measured_by(args.against) if args.against else None
        runs.append(own if other is None else {name: other[name] / own[name] for name in own})
    print("ratio, other over this" if args.against else "us of processor time a turn")
    for name in PROGRAMS:
        each = [run[name] for run in runs]
        print(f"{name:10} {statistics.median(each):7.2f} ({min(each):.2f} to {max(each):.2f})")


if __name__ == "__main__":
    main()
