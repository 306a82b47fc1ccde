"""where each row's elements come from in order: downwards, and upwards in every other row"""
TILE = 4096

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    height = max(1, TILE // align_up(cols, 32))
    pieces = ceil_div(ceil_div(rows, 2), height)
    cores = max(1, min(pieces, chip.vector_cores))
    launch(sort_rows, cores, rows=rows, cols=cols, height=height, pieces=pieces)

@kernel
def sort_rows(x: input(float32), y: output(int32), rows: int, cols: int, height: int, pieces: int):
    xt = ub(TILE, float32)
    tmp = ub(TILE * 4, float32)
    yt = ub(TILE, int32)
    for piece in range(core_id(), pieces, core_count()):
        for odd in range(2):
            at = piece * height * 2 + odd
            n = min(height, max(ceil_div(rows - at, 2), 0))
            if n > 0:
                with copy_in:
                    load(xt, x[at * cols], cols, rows=n, pitch=2 * cols)
                with compute:
                    if odd == 0:
                        argsort_rows(yt, xt, tmp, cols, "descending", n)
                    else:
                        argsort_rows(yt, xt, tmp, cols, "ascending", n)
                with copy_out:
                    store(y[at * cols], yt, cols, rows=n, pitch=2 * cols)
