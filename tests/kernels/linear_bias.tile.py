"""y = x @ w^T + b of float16 with the bias from the bias table; the result in float16"""

BM = 128
BN = 128
BK = 128


@host
def host(x, w, b, y):
    m = x.shape[0]
    k = x.shape[1]
    n = w.shape[0]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(linear_bias, cores, m=m, n=n, k=k, tiles=tiles)


@kernel
def linear_bias(
    x: input(float16), w: input(float16), b: input(float32), y: output(float16), m: int, n: int,
    k: int, tiles: int
):
    a1 = l1(BM, BK, float16)
    b1 = l1(BN, BK, float16)
    v1 = l1(1, BN, float32)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, BN, float16)
    c0 = l0c(BM, BN, float32, copies=2)
    v0 = bias_table(1, BN, float32)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        row = tile // wide * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        with copy_in:
            load(v1, b[col], cols)
        with split:
            load(v0, v1, 1, cols)
        for at in range(0, k, BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, x[row * k + at], deep, rows=rows, pitch=k)
                load(b1, w[col * k + at], deep, rows=cols, pitch=k)
            with split:
                load(a0, a1, rows, deep)
                load(b0, b1, deep, cols, transposed=True)
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > 0, bias=v0)
        with copy_out:
            store(y[row * n + col], c0, cols, rows=rows, pitch=n)
