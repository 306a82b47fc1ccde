"""y = x rotated by whole shares: what a core leaves in workspace, its neighbour picks up"""
TILE = 2048

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(rotate, cores, size=x.size, per_core=ceil_div(x.size, cores), ws=x.size)

@kernel
def rotate(x: input(float32), y: output(float32), ws: scratch(float32), size: int, per_core: int):
    xt = ub(TILE, float32)
    st = ub(TILE, float32)
    wt = ub(TILE, float32)
    yt = ub(TILE, float32)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            muls(st, xt, 2.0, n)
        with copy_out:
            store(ws[at], st, n)
    sync_cores()
    start = (core_id() + 1) % core_count() * per_core
    stop = min(start + per_core, size)
    for at in range(start, stop, TILE):
        n = min(TILE, stop - at)
        with copy_in:
            load(wt, ws[at], n)
        with compute:
            if n > 1 and not at == 0:
                adds(yt, wt, 1.0, n)
            else:
                adds(yt, wt, 0.0 if at == 0 else -1.0, n)
        with copy_out:
            store(y[at], yt, n)
