"""the largest of every 3 neighbours in a row of at most TILE elements, every other window"""

TILE = 1024


@host
def host(x, y):
    cols = x.shape[1]
    rows = x.shape[0]
    cores = max(1, min(rows, chip.vector_cores))
    launch(pool_rows, cores, rows=rows, cols=cols, wide=(cols - 3) // 2 + 1, per_core=ceil_div(rows, cores))


@kernel
def pool_rows(x: input(float32), y: output(float32), rows: int, cols: int, wide: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    one = ub(TILE, float32)
    index = ub(TILE, int32)
    with compute:
        "byte offsets of every other element"
        create_index(index, 0, wide)
        muls(index, index, 8, wide)
    first = core_id() * per_core
    for row in range(first, min(first + per_core, rows)):
        with copy_in:
            load(xt, x[row * cols], cols)
        with compute:
            gather(yt, xt, index, 0, wide)
            for tap in range(1, 3):
                gather(one, xt, index, tap * 4, wide)
                max(yt, yt, one, wide)
        with copy_out:
            store(y[row * wide], yt, wide)
