"""y = 2 * x where a tile is whole, else x + x; y's buffer is stored twice in a turn of the loop"""
TILE = 2048

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE * 2), chip.vector_cores))
    launch(either_way_twice, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def either_way_twice(x: input(float32), y: output(float32), size: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE * 2):
        n = min(TILE, last - at)
        m = min(TILE, last - at - n)
        if n == TILE:
            with copy_in:
                load(xt, x[at], n)
            with compute:
                muls(yt, xt, 2.0, n)
        else:
            with copy_in:
                load(xt, x[at], n)
            with compute:
                add(yt, xt, xt, n)
        with copy_out:
            store(y[at], yt, n)
        if m == TILE:
            with copy_in:
                load(xt, x[at + n], m)
            with compute:
                muls(yt, xt, 2.0, m)
        else:
            with copy_in:
                load(xt, x[at + n], m)
            with compute:
                add(yt, xt, xt, m)
        with copy_out:
            store(y[at + n], yt, m)
