"""y[c] = largest of x[:, c]: the accumulator stays on chip until the rows are through"""
TILE = 4096

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    tiles = ceil_div(cols, TILE)
    cores = max(1, min(tiles, chip.vector_cores))
    launch(resident_max, cores, rows=x.size // cols, cols=cols, tiles=tiles)

@kernel
def resident_max(x: input(float16), y: output(float16), rows: int, cols: int, tiles: int):
    xt = ub(TILE, float16)
    best = ub(TILE, float16)
    for t in range(core_id(), tiles, core_count()):
        n = min(TILE, cols - t * TILE)
        with compute:
            duplicate(best, -inf, n)
        for row in range(rows):
            with copy_in:
                load(xt, x[row * cols + t * TILE], n)
            with compute:
                accumulate_max(best, xt, n)
        with copy_out:
            store(y[t * TILE], best, n)
