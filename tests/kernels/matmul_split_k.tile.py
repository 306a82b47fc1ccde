"""c = a @ b of float16 with a few columns: cores share the depth, and add their parts atomically"""

BM = 64
BN = 64
BK = 128
TILE = 4096


@host
def host(a, b, c):
    m = a.shape[0]
    k = a.shape[1]
    n = b.shape[1]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    parts = max(1, min(ceil_div(k, BK), chip.cube_cores // max(1, min(tiles, chip.cube_cores))))
    blocks = max(1, min(tiles * parts, chip.cube_cores))
    launch(clear, blocks, size=c.size)
    launch(add_parts, blocks, m=m, n=n, k=k, tiles=tiles, parts=parts)


@kernel
def clear(c: output(float32), size: int):
    zt = ub(TILE, float32)
    for at in range(core_id() * TILE, size, core_count() * TILE):
        count = min(TILE, size - at)
        with compute:
            duplicate(zt, 0.0, count)
        with copy_out:
            store(c[at], zt, count)


@kernel
def add_parts(
    a: input(float16), b: input(float16), c: output(float32), m: int, n: int, k: int, tiles: int,
    parts: int
):
    a1 = l1(BM, BK, float16)
    b1 = l1(BK, BN, float16)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, BN, float16)
    c0 = l0c(BM, BN, float32)
    wide = ceil_div(n, BN)
    for work in range(core_id(), tiles * parts, core_count()):
        tile = work // parts
        row = tile // wide * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        first = work % parts * BK
        for at in range(first, k, parts * BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, a[row * k + at], deep, rows=rows, pitch=k)
                load(b1, b[at * n + col], cols, rows=deep, pitch=n)
            with split:
                load(a0, a1, rows, deep)
                load(b0, b1, deep, cols)
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > first)
        with copy_out:
            store(c[row * n + col], c0, cols, rows=rows, pitch=n, atomic="add")
