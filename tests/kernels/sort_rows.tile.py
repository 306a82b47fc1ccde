"""where each row's elements come from in order: downwards, and upwards in every other row"""
TILE = 2048

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    cores = max(1, min(rows, chip.vector_cores))
    launch(sort_rows, cores, rows=rows, cols=cols)

@kernel
def sort_rows(x: input(float32), y: output(int32), rows: int, cols: int):
    xt = ub(TILE, float32)
    tmp = ub(TILE * 4, float32)
    yt = ub(TILE, int32)
    for row in range(core_id(), rows, core_count()):
        with copy_in:
            load(xt, x[row * cols], cols)
        with compute:
            if row % 2 == 0:
                argsort(yt, xt, tmp, "descending", cols)
            else:
                argsort(yt, xt, tmp, "ascending", cols)
        with copy_out:
            store(y[row * cols], yt, cols)
