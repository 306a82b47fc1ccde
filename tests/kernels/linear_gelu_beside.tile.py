"""y = gelu(x @ w^T + b): vector cores follow the products of their block's cube core, tile by tile"""

BM = 128
BN = 128
BK = 64
PART = 32
AHEAD = 4


@host
def host(x, w, b, y):
    m = x.shape[0]
    k = x.shape[1]
    n = w.shape[0]
    tiles = ceil_div(m, BM) * ceil_div(n, BN)
    blocks = max(1, min(tiles, chip.cube_cores))
    room = blocks * AHEAD * BM * BN
    launch(product, blocks, m=m, n=n, k=k, tiles=tiles, t=room)
    launch(bias_gelu, blocks, m=m, n=n, tiles=tiles, t=room, beside=True)


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
        turn = tile // core_count()
        row = tile // wide * BM
        col = tile % wide * BN
        height = min(BM, m - row)
        width = min(BN, n - col)
        if turn >= AHEAD:
            wait("read")
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
            store(
                t[(core_id() * AHEAD + turn % AHEAD) * BM * BN], c0, width, rows=height, pitch=BN
            )
        post("product")


@kernel
def bias_gelu(
    b: input(float32), y: output(float32), t: scratch(float32), m: int, n: int, tiles: int
):
    tt = ub(PART * BN, float32)
    bt = ub(BN, float32)
    et = ub(BN, float32)
    ft = ub(BN, float32)
    yt = ub(PART * BN, float32)
    cube = core_id() // 2
    cubes = core_count() // 2
    wide = ceil_div(n, BN)
    for tile in range(cube, tiles, cubes):
        turn = tile // cubes
        row = tile // wide * BM
        col = tile % wide * BN
        height = min(BM, m - row)
        width = min(BN, n - col)
        pitch = align_up(width, 8)
        share = ceil_div(height, 2)
        first = core_id() % 2 * share
        with copy_in:
            load(bt, b[col], width)
        wait("product")
        for at in range(first, min(first + share, height), PART):
            rows = min(PART, min(first + share, height) - at)
            with copy_in:
                load(
                    tt, t[((cube * AHEAD + turn % AHEAD) * BM + at) * BN], width, rows=rows,
                    pitch=BN,
                )
            with compute:
                for i in range(rows):
                    add(yt[i * pitch], tt[i * pitch], bt, width)
                    muls(et, yt[i * pitch], 0.70710678, width)
                    erf(ft, et, width)
                    adds(ft, ft, 1.0, width)
                    mul(yt[i * pitch], yt[i * pitch], ft, width)
                    muls(yt[i * pitch], yt[i * pitch], 0.5, width)
            with copy_out:
                store(y[(row + at) * n + col], yt, width, rows=rows, pitch=n)
        if tile + AHEAD * cubes < tiles:
            post("read")
