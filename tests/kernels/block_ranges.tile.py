"""largest minus smallest of 8 neighbours in every row, rows of at most TILE elements"""

TILE = 1024


@host
def host(x, y):
    cols = x.shape[1]
    rows = x.shape[0]
    cores = max(1, min(rows, chip.vector_cores))
    launch(block_ranges, cores, rows=rows, cols=cols, wide=ceil_div(cols, 8), per_core=ceil_div(rows, cores))


@kernel
def block_ranges(x: input(float32), y: output(float32), rows: int, cols: int, wide: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    low = ub(TILE, float32)
    first = core_id() * per_core
    for row in range(first, min(first + per_core, rows)):
        with copy_in:
            load(xt, x[row * cols], cols)
        with compute:
            max_blocks(yt, xt, cols)
            min_blocks(low, xt, cols)
            sub(yt, yt, low, wide)
        with copy_out:
            store(y[row * wide], yt, wide)
