"""y = gelu(x @ w^T + b): the product on cube cores, bias and gelu on vector cores"""

BM = 128
BN = 128
BK = 64
TILE = 2048


@host
def host(x, w, b, y):
    m = x.shape[0]
    k = x.shape[1]
    n = w.shape[0]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    blocks = max(1, min(tiles, chip.cube_cores))
    launch(product, blocks, m=m, n=n, k=k, tiles=tiles, t=m * n)
    launch(bias_gelu, blocks, rows=m, cols=n, t=m * n)


@kernel
def product(
    x: input(float16), w: input(float16), t: scratch(float32), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, BK, float16)
    b1 = l1(BN, BK, float16)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, BN, float16)
    c0 = l0c(BM, BN, float32)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        row = tile // wide * BM
        col = tile % wide * BN
        height = min(BM, m - row)
        width = min(BN, n - col)
        for at in range(0, k, BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, x[row * k + at], deep, rows=height, pitch=k)
                load(b1, w[col * k + at], deep, rows=width, pitch=k)
            with split:
                load(a0, a1, height, deep)
                load(b0, b1, deep, width, transposed=True)
            with compute:
                mmad(c0, a0, b0, height, width, deep, at > 0)
        with copy_out:
            store(t[row * n + col], c0, width, rows=height, pitch=n)


@kernel
def bias_gelu(
    b: input(float32), y: output(float32), t: scratch(float32), rows: int, cols: int
):
    tt = ub(TILE, float32)
    bt = ub(TILE, float32)
    et = ub(TILE, float32)
    ft = ub(TILE, float32)
    yt = ub(TILE, float32)
    for row in range(core_id(), rows, core_count()):
        for at in range(0, cols, TILE):
            count = min(TILE, cols - at)
            with copy_in:
                load(tt, t[row * cols + at], count)
                load(bt, b[at], count)
            with compute:
                add(yt, tt, bt, count)
                muls(et, yt, 0.70710678, count)
                erf(ft, et, count)
                adds(ft, ft, 1.0, count)
                mul(yt, yt, ft, count)
                muls(yt, yt, 0.5, count)
            with copy_out:
                store(y[row * cols + at], yt, count)
