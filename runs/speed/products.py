"""Estimated time of a square float16 product by its tiles, and how busy the cube is meanwhile.

    python runs/speed/products.py [--size 4096] [--tile 128 256] [--deep 256] [--part 64] [--band 4]

A tile program in the tile language is lowered, run dry on the twin, and timed by the model: nothing
is measured. `--deep` is the depth of the tiles in L1, `--part` of those in L0; tiles are taken in
bands of `--band` rows of tiles, which share what they read of b in L2.
"""

from __future__ import annotations

import argparse

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const
from npusmith.ir.spec import OpSpec, Port
from npusmith.lang import legal
from npusmith.plan.evaluate import Evaluator
from npusmith.plan.shrink import Shrunk
from npusmith.target.chips import find_chip

TEXT = """
BM = {tile[0]}
BN = {tile[1]}
DEEP = {deep}
BK = {part}
BAND = {band}

@host
def host(a, b, c):
    m = a.shape[0]
    k = a.shape[1]
    n = b.shape[1]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(product, cores, m=m, n=n, k=k, tiles=tiles)

@kernel
def product(
    a: input(float16), b: input(float16), c: output(float16), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, DEEP, float16)
    b1 = l1(DEEP, BN, float16)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, BN, float16)
    c0 = l0c(BM, BN, float32)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        band = tile // (BAND * wide) * BAND
        tall = min(BAND, ceil_div(m, BM) - band)
        row = (band + tile % (BAND * wide) % tall) * BM
        col = tile % (BAND * wide) // tall * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        for at in range(0, k, DEEP):
            whole = min(DEEP, k - at)
            with copy_in:
                load(a1, a[row * k + at], whole, rows=rows, pitch=k)
                load(b1, b[at * n + col], cols, rows=whole, pitch=n)
            for part in range(0, whole, BK):
                deep = min(BK, whole - part)
                with split:
                    load(a0, a1[0, part], rows, deep)
                    load(b0, b1[part, 0], deep, cols)
                with compute:
                    mmad(c0, a0, b0, rows, cols, deep, at + part > 0)
        with copy_out:
            store(c[row * n + col], c0, cols, rows=rows, pitch=n)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--tile", type=int, nargs=2, default=(128, 256), metavar=("ROWS", "COLS"))
    parser.add_argument("--deep", type=int, default=256)
    parser.add_argument("--part", type=int, default=64)
    parser.add_argument("--band", type=int, default=4)
    parser.add_argument("--chip", default="910B2")
    options = parser.parse_args()
    chip, shape = find_chip(options.chip), (options.size, options.size)
    program = legal(TEXT.format(**vars(options)), "product.tile.py", chip)
    dims = (Const(options.size), Const(options.size))
    spec = OpSpec(
        "product_custom",
        tuple(Port(name, DType.FLOAT16, shape, position=at) for at, name in enumerate("ab")),
        (Port("c", DType.FLOAT16, shape, dims=dims),),
    )
    shapes = Shrunk((shape, shape), (shape,), 1.0, 0)
    estimate = Evaluator(spec, chip, shapes, 400_000).time(program)
    cores = [core for core in estimate.timing.cores if core.cube]
    whole = sum(core.end - core.begin for core in cores)
    busy = {
        unit: sum(core.units[unit].busy for core in cores) / whole
        for unit in ("M", "MTE1", "MTE2", "FIX", "S")
    }
    rate = 2 * options.size**3 / estimate.kernel_us / 1e6
    units = ", ".join(f"{unit} {share:.0%}" for unit, share in busy.items())
    print(f"{options.size}^3 on {len(cores)} cores: kernel {estimate.kernel_us:.1f} us,", end=" ")
    print(f"{rate:.0f} TFLOP/s; busy: {units}")


if __name__ == "__main__":
    main()
