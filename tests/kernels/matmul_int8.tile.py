"""c = a @ b^T of int8, summed up in int32"""

BM = 128
BN = 128
BK = 128


@host
def host(a, b, c):
    m = a.shape[0]
    k = a.shape[1]
    n = b.shape[0]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(matmul_int8, cores, m=m, n=n, k=k, tiles=tiles)


@kernel
def matmul_int8(
    a: input(int8), b: input(int8), c: output(int32), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, BK, int8)
    b1 = l1(BN, BK, int8)
    a0 = l0a(BM, BK, int8)
    b0 = l0b(BK, BN, int8)
    c0 = l0c(BM, BN, int32)
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
                load(b1, b[col * k + at], deep, rows=cols, pitch=k)
            with split:
                load(a0, a1, rows, deep)
                load(b0, b1, deep, cols, transposed=True)
            with compute:
                mmad(c0, a0, b0, rows, cols, deep, at > 0)
        with copy_out:
            store(c[row * n + col], c0, cols, rows=rows, pitch=n)
