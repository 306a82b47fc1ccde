"""rows that are short, a tile of them at a time: y = x * largest - sum - smallest of every row"""

LINES = 256
TILE = 8192


@host
def host(x, y):
    cols = x.shape[1]
    rows = x.shape[0]
    height = max(1, min(LINES, TILE // align_up(cols, 8)))
    pieces = ceil_div(rows, height)
    cores = max(1, min(pieces, chip.vector_cores))
    per_core = ceil_div(pieces, cores)
    launch(short_rows, cores, rows=rows, cols=cols, height=height, pieces=pieces, per_core=per_core)


@kernel
def short_rows(x: input(float32), y: output(float32), rows: int, cols: int, height: int, pieces: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    wide = ub(TILE, float32)
    t = ub(TILE, float32)
    top = ub(LINES, float32)
    low = ub(LINES, float32)
    total = ub(LINES, float32)
    first = core_id() * per_core
    pitch = align_up(cols, 8)
    for piece in range(first, min(first + per_core, pieces)):
        m = min(height, rows - piece * height)
        with copy_in:
            load(xt, x[piece * height * cols], cols, rows=m, pitch=cols)
        with compute:
            max_rows(top, xt, t, cols, m)
            min_rows(low, xt, t, cols, m)
            sum_rows(total, xt, t, cols, m)
            add(total, total, low, m)
            spread_rows(wide, top, t, cols, m)
            for row in range(m):
                mul(yt[row * pitch], xt[row * pitch], wide[row * pitch], cols)
            spread_rows(wide, total, t, cols, m)
            for row in range(m):
                sub(yt[row * pitch], yt[row * pitch], wide[row * pitch], cols)
        with copy_out:
            store(y[piece * height * cols], yt, cols, rows=m, pitch=cols)
