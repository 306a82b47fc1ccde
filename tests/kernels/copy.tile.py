"""y = x: loaded and stored again unchanged"""
TILE = 8192

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(copy, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def copy(x: input(float32), y: output(float32), size: int, per_core: int):
    xt = ub(TILE, float32)
    first = core_id() * per_core
    for at in range(first, min(first + per_core, size), TILE):
        n = min(TILE, min(first + per_core, size) - at)
        with copy_in:
            load(xt, x[at], n)
        with copy_out:
            store(y[at], xt, n)
