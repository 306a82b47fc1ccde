"""y = low where x < low, x elsewhere, by comparing and selecting"""
TILE = 4096
LOW = -0.5

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(clamp, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def clamp(x: input(float32), y: output(float32), size: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    mask = ub(TILE // 8, uint8)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            compares(mask, xt, LOW, "ge", n)
            selects(yt, mask, xt, LOW, n)
        with copy_out:
            store(y[at], yt, n)
