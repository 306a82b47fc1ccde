"""layer norm over the last axis; weight and bias are loaded once, before the rows"""
COLS = 4096

@host
def host(x, weight, bias, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    cores = max(1, min(rows, chip.vector_cores))
    launch(
        layer_norm, cores, rows=rows, cols=cols, per_core=ceil_div(rows, cores),
        scale=1.0 / float(cols), eps=1e-05,
    )

@kernel
def layer_norm(
    x: input(float32), weight: input(float32), bias: input(float32), y: output(float32),
    rows: int, cols: int, per_core: int, scale: float, eps: float
):
    wt = ub(COLS, float32)
    bt = ub(COLS, float32)
    xt = ub(COLS, float32)
    yt = ub(COLS, float32)
    square = ub(COLS, float32)
    tmp = ub(COLS, float32)
    part = ub(8, float32)
    with copy_in:
        load(wt, weight, cols)
        load(bt, bias, cols)
    first = core_id() * per_core
    for row in range(first, min(first + per_core, rows)):
        with copy_in:
            load(xt, x[row * cols], cols)
        with compute:
            reduce_sum(part, xt, tmp, cols)
            mean = value(part) * scale
            adds(yt, xt, -mean, cols)
            mul(square, yt, yt, cols)
            reduce_sum(part, square, tmp, cols)
            duplicate(part, value(part) * scale + eps, 8)
            sqrt(part, part, 8)
            muls(yt, yt, 1.0 / value(part), cols)
            mul(yt, yt, wt, cols)
            add(yt, yt, bt, cols)
        with copy_out:
            store(y[row * cols], yt, cols)
