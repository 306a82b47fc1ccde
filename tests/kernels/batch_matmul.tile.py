"""c[i] = a[i] @ b[i] of float16: deep tiles in L1, multiplied in parts of 32"""

BM = 48
BN = 80
DEEP = 96
BK = 32


@host
def host(a, b, c):
    batch = a.shape[0]
    m = a.shape[1]
    k = a.shape[2]
    n = b.shape[2]
    tiles = batch * ceil_div(m, BM) * ceil_div(n, BN)
    cores = max(1, min(tiles, chip.cube_cores))
    launch(batch_matmul, cores, m=m, n=n, k=k, tiles=tiles)


@kernel
def batch_matmul(
    a: input(float16), b: input(float16), c: output(float32), m: int, n: int, k: int, tiles: int
):
    a1 = l1(BM, DEEP, float16)
    b1 = l1(DEEP, BN, float16)
    a0 = l0a(BM, BK, float16)
    b0 = l0b(BK, BN, float16)
    c0 = l0c(BM, BN, float32)
    tall = ceil_div(m, BM)
    wide = ceil_div(n, BN)
    for tile in range(core_id(), tiles, core_count()):
        item = tile // (tall * wide)
        row = tile // wide % tall * BM
        col = tile % wide * BN
        rows = min(BM, m - row)
        cols = min(BN, n - col)
        for at in range(0, k, DEEP):
            whole = min(DEEP, k - at)
            with copy_in:
                load(a1, a[(item * m + row) * k + at], whole, rows=rows, pitch=k)
                load(b1, b[(item * k + at) * n + col], cols, rows=whole, pitch=n)
            for part in range(0, whole, BK):
                deep = min(BK, whole - part)
                with split:
                    load(a0, a1[0, part], rows, deep)
                    load(b0, b1[part, 0], deep, cols)
                with compute:
                    mmad(c0, a0, b0, rows, cols, deep, at + part > 0)
        with copy_out:
            "the left part, then the rest, from columns of fractals of the same product"
            left = min(cols, 32)
            store(c[(item * m + row) * n + col], c0, left, rows=rows, pitch=n)
            if cols > 32:
                store(c[(item * m + row) * n + col + 32], c0[0, 32], cols - 32, rows=rows, pitch=n)
