"""y[row, i] = sum of x[row, :i]: what was added so far goes from tile to tile"""
TILE = 4096

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    cores = max(1, min(rows, chip.vector_cores))
    launch(cumsum_exclusive, cores, rows=rows, cols=cols)

@kernel
def cumsum_exclusive(x: input(float32), y: output(float32), rows: int, cols: int):
    xt = ub(TILE, float32)
    tmp = ub(TILE, float32)
    yt = ub(TILE, float32)
    for row in range(core_id(), rows, core_count()):
        total = 0.0
        for at in range(0, cols, TILE):
            n = min(TILE, cols - at)
            with copy_in:
                load(xt, x[row * cols + at], n)
            with compute:
                running_sum(yt, xt, tmp, total, "exclusive", n)
                total = value(yt[n - 1]) + value(xt[n - 1])
            with copy_out:
                store(y[row * cols + at], yt, n)
