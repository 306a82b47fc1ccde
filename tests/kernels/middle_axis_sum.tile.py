"""y[a, c] = sum over b of x[a, b, c]: whole rows are accumulated, no reduction instruction"""
TILE = 4096

@host
def host(x, y):
    outer = x.shape[0]
    depth = x.shape[1]
    cols = x.shape[2]
    tiles = ceil_div(cols, TILE)
    work = outer * tiles
    cores = max(1, min(work, chip.vector_cores))
    launch(middle_sum, cores, work=work, depth=depth, cols=cols, tiles=tiles)

@kernel
def middle_sum(x: input(float32), y: output(float32), work: int, depth: int, cols: int, tiles: int):
    xt = ub(TILE, float32)
    acc = ub(TILE, float32)
    for item in range(core_id(), work, core_count()):
        outer = item // tiles
        at = item % tiles * TILE
        n = min(TILE, cols - at)
        with compute:
            duplicate(acc, 0.0, n)
        for b in range(depth):
            with copy_in:
                load(xt, x[(outer * depth + b) * cols + at], n)
            with compute:
                accumulate_sum(acc, xt, n)
        with copy_out:
            store(y[outer * cols + at], acc, n)
