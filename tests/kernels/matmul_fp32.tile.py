"""c = a @ b of true float32, tiles of 128 x 128 of the product, 32 of the depth at a time"""

BM = 128
BN = 128
BK = 32


@host
def host(a, b, c):
    m = a.shape[0]
    k = a.shape[1]
    n = b.shape[1]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(matmul_fp32, cores, m=m, n=n, k=k, tiles=tiles)


@kernel
def matmul_fp32(
    a: input(float32), b: input(float32), c: output(float32), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, BK, float32)
    b1 = l1(BK, BN, float32)
    a0 = l0a(BM, BK, float32)
    b0 = l0b(BK, BN, float32)
    c0 = l0c(BM, BN, float32)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        row = tile // wide * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        for at in range(0, k, BK):
            deep = min(BK, k - at)
            with copy_in:
                load(a1, a[row * k + at], deep, rows=rows, pitch=k)
                load(b1, b[at * n + col], cols, rows=deep, pitch=n)
            with split:
                load(a0, a1, rows, deep)
                load(b0, b1, deep, cols)
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > 0)
        with copy_out:
            store(c[row * n + col], c0, cols, rows=rows, pitch=n)
