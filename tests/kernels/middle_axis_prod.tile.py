"""y[a, c] = product over b of x[a, b, c] on float16, accumulated in float32 scratch"""
TILE = 2048

@host
def host(x, y):
    outer = x.shape[0]
    depth = x.shape[1]
    cols = x.shape[2]
    tiles = ceil_div(cols, TILE)
    work = outer * tiles
    cores = max(1, min(work, chip.vector_cores))
    launch(middle_prod, cores, work=work, depth=depth, cols=cols, tiles=tiles)

@kernel
def middle_prod(x: input(float16), y: output(float16), work: int, depth: int, cols: int, tiles: int):
    xt = ub(TILE, float16)
    yt = ub(TILE, float16)
    wide = ub(TILE, float32)
    acc = ub(TILE, float32)
    for item in range(core_id(), work, core_count()):
        outer = item // tiles
        at = item % tiles * TILE
        n = min(TILE, cols - at)
        with compute:
            duplicate(acc, 1.0, n)
        for b in range(depth):
            with copy_in:
                load(xt, x[(outer * depth + b) * cols + at], n)
            with compute:
                cast(wide, xt, "none", n)
                accumulate_prod(acc, wide, n)
        with compute:
            cast(yt, acc, "rint", n)
        with copy_out:
            store(y[outer * cols + at], yt, n)
