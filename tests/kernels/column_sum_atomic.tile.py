"""y[c] = sum over rows of x[r, c]: every core adds its rows with an atomic store"""
TILE = 4096

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    cores = max(1, min(rows, chip.vector_cores))
    launch(column_sum, cores, rows=rows, cols=cols, per_core=ceil_div(rows, cores))

@kernel
def column_sum(x: input(float32), y: output(float32), rows: int, cols: int, per_core: int):
    xt = ub(TILE, float32)
    acc = ub(TILE, float32)
    zero = ub(TILE, float32)
    tiles = ceil_div(cols, TILE)
    "the output starts with unknown contents: one core clears each tile first"
    for t in range(core_id(), tiles, core_count()):
        n = min(TILE, cols - t * TILE)
        with compute:
            duplicate(zero, 0.0, n)
        with copy_out:
            store(y[t * TILE], zero, n)
    sync_cores()
    first = core_id() * per_core
    last = min(first + per_core, rows)
    for t in range(tiles):
        n = min(TILE, cols - t * TILE)
        with compute:
            duplicate(acc, 0.0, n)
        for row in range(first, last):
            with copy_in:
                load(xt, x[row * cols + t * TILE], n)
            with compute:
                accumulate_sum(acc, xt, n)
        with copy_out:
            store(y[t * TILE], acc, n, atomic="add")
