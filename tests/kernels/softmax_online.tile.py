"""softmax over the last axis, online: largest value and sum in one pass, results in a second"""
TILE = 4096

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    cores = max(1, min(rows, chip.vector_cores))
    launch(softmax, cores, rows=rows, cols=cols, rows_per_core=ceil_div(rows, cores))

@kernel
def softmax(x: input(float32), y: output(float32), rows: int, cols: int, rows_per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    et = ub(TILE, float32)
    tmp = ub(TILE, float32)
    part = ub(8, float32)
    factor = ub(8, float32)
    first = core_id() * rows_per_core
    for row in range(first, min(first + rows_per_core, rows)):
        top = -inf
        total = 0.0
        for t in range(ceil_div(cols, TILE)):
            n = min(TILE, cols - t * TILE)
            with copy_in:
                load(xt, x[row * cols + t * TILE], n)
            with compute:
                reduce_max(part, xt, tmp, n)
                higher = max(top, value(part))
                "what was summed so far shrinks by exp(old top - new top)"
                duplicate(factor, top - higher, 8)
                exp(factor, factor, 8)
                adds(et, xt, -higher, n)
                exp(et, et, n)
                reduce_sum(part, et, tmp, n)
                total = total * value(factor) + value(part)
                top = higher
        for t in range(ceil_div(cols, TILE)):
            n = min(TILE, cols - t * TILE)
            with copy_in:
                load(xt, x[row * cols + t * TILE], n)
            with compute:
                adds(et, xt, -top, n)
                exp(et, et, n)
                muls(yt, et, 1.0 / total, n)
            with copy_out:
                store(y[row * cols + t * TILE], yt, n)
