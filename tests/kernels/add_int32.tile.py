"""z = x + y on int32, which wraps"""
TILE = 8192

@host
def host(x, y, z):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(add_int, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def add_int(x: input(int32), y: input(int32), z: output(int32), size: int, per_core: int):
    xt = ub(TILE, int32)
    yt = ub(TILE, int32)
    zt = ub(TILE, int32)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
            load(yt, y[at], n)
        with compute:
            add(zt, xt, yt, n)
        with copy_out:
            store(z[at], zt, n)
