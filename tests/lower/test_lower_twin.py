"""Emitted projects, compiled and run by the twin, against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npusmith.lang import parse
from npusmith.lower import lower, write_project
from npusmith.target.chips import Chip
from npusmith.twin import check_source


def test_a_project_compiles_runs_without_findings_and_gives_the_interpreters_bits(
    kernel_name: str, samples: Any, chip: Chip, tmp_path: Path
) -> None:
    program = samples.program(kernel_name)
    for at, (shapes, out_shapes) in enumerate(samples.shapes(kernel_name)):
        samples.compare(program, shapes, out_shapes, chip, tmp_path / str(at))


@pytest.mark.parametrize("name", ["mean_all", "layer_norm"])
def test_the_direct_launch_source_compiles(
    name: str, samples: Any, chip: Chip, tmp_path: Path
) -> None:
    program = samples.program(name)
    shapes, out_shapes = samples.shapes(name)[0]
    spec = samples.spec(program, shapes, out_shapes)
    write_project(lower(program, chip), chip, tmp_path, spec)
    assert check_source(tmp_path / "direct" / f"{spec.name}.asc", chip) == []


# Programs that say unusual things: each has to mean in C++ what it means to the interpreter.

SCALARS = '''
"""scalar arithmetic of every kind"""
STEP = 3
EPS = 1e-07

@host
def host(x, y):
    halved = x.size // 2 - 4
    ratio = float(x.size) / 7.0
    launch(scalars, 1, size=x.size, halved=halved, ratio=min(ratio, inf), big=1, off=-5)

@kernel
def scalars(
    x: input(float32), y: output(float32), size: int, halved: int, ratio: float, big: int, off: int
):
    xt = ub(64, float32)
    yt = ub(64, float32)
    one = ub(8, float32)
    with copy_in:
        load(xt, x, size)
    with compute:
        lead = value(xt[2]) if halved > 0 and not size == 7 else 0.5
        duplicate(yt, max(lead, -inf), 64)
        q = off // STEP
        r = off % STEP
        up = ceil_div(off, STEP) + align_up(off, 4)
        adds(yt[8], yt[8], float(q) + float(r) * 10.0 + float(up) * 100.0, 8)
        for i in range(size - 1, size + 7, STEP):
            adds(yt[16], yt[16], float(i * -1 - -i % 5), 8)
        bigger = lead > ratio or (lead < EPS and ratio != 0.0)
        if bigger:
            muls(yt[24], yt[24], ratio - (lead - ratio), 8)
        else:
            muls(yt[24], yt[24], 1.0 / (ratio / lead), 8)
        duplicate(one, float(int(ratio * 1000.0) + big), 8)
        add(yt[32], yt[32], one, 8)
        maxs(yt[40], yt[40], min(ratio, value(one[1])), 8)
        duplicate(yt[48], 16777217.0, 8)
        duplicate(yt[56], -0.0, 8)
    with copy_out:
        store(y, yt, 64)
'''

NAMES = '''
"""names that the emitted files use themselves, or that become one name in camel case"""
@host
def host(x, xGm):
    blockDim = x.size
    ubTotal = max(1, min(blockDim, 2))
    launch(names, ubTotal, tilingData=blockDim, user_bytes=ceil_div(blockDim, ubTotal))

@kernel
def names(x: input(float32), xGm: output(float32), tilingData: int, user_bytes: int):
    pipe = ub(256, float32)
    tiling = ub(256, float32)
    Compute0 = ub(256, float32)
    part_len = core_id() * user_bytes
    partLen = min(part_len + user_bytes, tilingData)
    for pipeLocal in range(part_len, partLen, 256):
        count = min(256, partLen - pipeLocal)
        with copy_in:
            load(pipe, x[pipeLocal], count)
        with compute:
            "a note that ends in a backslash \\\\"
            muls(Compute0, pipe, 2.0, count)
            adds(tiling, Compute0, 1.0, count)
        with copy_out:
            store(xGm[pipeLocal], tiling, count)
'''

TYPES = '''
"""half, int32, bf16 and int16 scalars; several outputs; a library function; bits"""
@host
def host(x, k, y, z, w):
    launch(types, 1, size=x.size)

@kernel
def types(
    x: input(float16), k: input(int32), y: output(float16), z: output(int32), w: output(bfloat16),
    size: int
):
    xt = ub(128, float16)
    kt = ub(128, int32)
    yt = ub(128, float16)
    zt = ub(128, int32)
    wt = ub(128, bfloat16)
    ht = ub(128, float16)
    ft = ub(128, float16)
    tmp = ub(128, float16)
    part = ub(16, float16)
    mask = ub(32, uint8)
    with copy_in:
        load(xt, x, size)
        load(kt, k, size)
    with compute:
        reduce_max(part, xt, tmp, size)
        top = value(part)
        adds(ht, xt, -top, size)
        floor(ft, ht, size)
        compares(mask, ft, -2.0, "lt", size)
        selects(yt, mask, ft, top * 0.1, size)
        axpy(yt, xt, 3.0, size)
        leaky_relu(yt, yt, 0.01, size)
        muls(zt, kt, value(kt[3]) - 7, size)
        shift_right(zt, zt, 2, size)
        duplicate(wt, top, size)
    with copy_out:
        store(y, yt, size)
        store(z, zt, size)
        store(w, wt, size)
'''

COMBINES = '''
"""several combines, one of them in a loop, with other vector work around"""
@host
def host(x, y):
    cores = max(1, min(x.shape[0], chip.vector_cores))
    launch(combines, cores, rows=x.shape[0], cols=x.shape[1], ws=cores * align_up(x.shape[1], 8))

@kernel
def combines(x: input(float32), y: output(float32), ws: scratch(float32), rows: int, cols: int):
    xt = ub(512, float32)
    acc = ub(512, float32)
    low = ub(512, float32)
    yt = ub(512, float32)
    with compute:
        duplicate(acc, 0.0, cols)
        duplicate(low, inf, cols)
    for row in range(core_id(), rows, core_count()):
        with copy_in:
            load(xt, x[row * cols], cols)
        with compute:
            accumulate_sum(acc, xt, cols)
            accumulate_min(low, xt, cols)
    combine_min(low, low, ws, cols)
    for turn in range(2):
        combine_sum(acc, acc, ws, cols)
        with compute:
            sub(acc, acc, low, cols)
    if core_id() == core_count() - 1:
        with compute:
            muls(yt, acc, 1.0, cols)
        with copy_out:
            store(y, yt, cols)
'''

REUSE = '''
"""one buffer loaded several times in a list; workspace rewritten by the same core"""
@host
def host(x, y):
    launch(reuse, 1, size=x.size, ws=align_up(x.size, 8))

@kernel
def reuse(x: input(float32), y: output(float32), ws: scratch(float32), size: int):
    xt = ub(1024, float32)
    yt = ub(1024, float32)
    zt = ub(1024, float32)
    with copy_in:
        load(xt, x, size)
    with compute:
        abs(yt, xt, size)
    with copy_out:
        store(ws, yt, size)
    for turn in range(3):
        with copy_in:
            load(xt, ws, size)
        with compute:
            muls(yt, xt, 1.5, size)
        with copy_out:
            store(ws, yt, size)
    with copy_in:
        load(xt, ws, size)
    with compute:
        adds(zt, xt, 0.25, size)
    with copy_out:
        store(y, zt, size)
        store(y, zt, size)
'''

ELEMENTS = '''
"""elements written one by one, before and after vector operations on the same buffers"""
TILE = 64
LOWEST = -9223372036854775808

@host
def host(a, b, k, x, y, z, w, v):
    launch(elements, 1, size=a.size)

@kernel
def elements(
    a: input(int64), b: input(int64), k: input(int32), x: input(float32), y: output(int64),
    z: output(int32), w: output(int8), v: output(float32), size: int
):
    at = ub(TILE, int64)
    bt = ub(TILE, int64)
    kt = ub(TILE, int32)
    xt = ub(TILE, float32)
    yt = ub(TILE, int64)
    zt = ub(TILE, int32)
    wt = ub(TILE, int8)
    vt = ub(TILE, float32)
    it = ub(TILE, int32)
    ft = ub(TILE, float32)
    for tile in range(ceil_div(size, TILE)):
        n = min(TILE, size - tile * TILE)
        with copy_in:
            load(at, a[tile * TILE], n)
            load(bt, b[tile * TILE], n)
            load(kt, k[tile * TILE], n)
            load(xt, x[tile * TILE], n)
        with compute:
            muls(it, kt, 3, n)
            adds(ft, xt, 1.5, n)
            for i in range(n):
                one = value(at[i])
                two = value(bt[i])
                total = wrap_add(wrap_mul(one, two), wrap_sub(LOWEST, one))
                bits = bitwise_xor(bitwise_and(one, 255), bitwise_or(two, 3))
                shift = bitwise_and(two, 63)
                set(yt[i], total if one > two else left_shift(bits, shift))
                set(it[i], wrap_add(value(it[i]), right_shift(one, shift)))
                set(wt[i], one)
                set(ft[i], value(ft[i]) * float(value(kt[i])))
            adds(zt, it, 1, n)
            muls(vt, ft, 0.5, n)
        with copy_out:
            store(y[tile * TILE], yt, n)
            store(z[tile * TILE], zt, n)
            store(w[tile * TILE], wt, n)
            store(v[tile * TILE], vt, n)
'''


@pytest.mark.parametrize(
    ("text", "shapes", "out_shapes"),
    [
        (SCALARS, [(21,)], [(64,)]),
        (NAMES, [(3, 333)], [(3, 333)]),
        (TYPES, [(100,), (100,)], [(100,), (100,), (100,)]),
        (COMBINES, [(7, 19)], [(19,)]),
        (REUSE, [(301,)], [(301,)]),
        (ELEMENTS, [(203,)] * 4, [(203,)] * 4),
    ],
    ids=["scalars", "names", "types", "combines", "reuse", "elements"],
)
def test_an_unusual_program_means_the_same_on_the_twin(
    text: str, shapes: Any, out_shapes: Any, samples: Any, chip: Chip, tmp_path: Path
) -> None:
    samples.compare(parse(text), shapes, out_shapes, chip, tmp_path)
