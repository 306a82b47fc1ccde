"""z = x + y, element by element"""
TILE = 8192

@host
def host(x, y, z):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(add, cores, size=x.size, per_core=align_up(ceil_div(x.size, cores), 8))

@kernel
def add(x: input(float32), y: input(float32), z: output(float32), size: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    zt = ub(TILE, float32)
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
