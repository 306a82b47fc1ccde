"""y = relu(x @ w^T) of bfloat16, as a linear layer has its weight; the result in bfloat16"""

BM = 128
BN = 128
BK = 128


@host
def host(x, w, y):
    m = x.shape[0]
    k = x.shape[1]
    n = w.shape[0]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(linear_relu, cores, m=m, n=n, k=k, tiles=tiles)


@kernel
def linear_relu(
    x: input(bfloat16), w: input(bfloat16), y: output(bfloat16), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, BK, bfloat16)
    b1 = l1(BN, BK, bfloat16)
    a0 = l0a(BM, BK, bfloat16)
    b0 = l0b(BK, BN, bfloat16)
    c0 = l0c(BM, BN, float32, copies=2)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        row = tile // wide * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        for at in range(0, k, BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, x[row * k + at], deep, rows=rows, pitch=k)
                load(b1, w[col * k + at], deep, rows=cols, pitch=k)
            with split:
                load(a0, a1, rows, deep)
                load(b0, b1, deep, cols, transposed=True)
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > 0)
        with copy_out:
            store(y[row * n + col], c0, cols, rows=rows, pitch=n, relu=True)
