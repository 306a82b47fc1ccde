"""z = x > y as bool: a mask of bits, turned into one byte per element"""
TILE = 4096

@host
def host(x, y, z):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(greater, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def greater(x: input(float32), y: input(float32), z: output(bool), size: int, per_core: int):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    zt = ub(TILE, uint8)
    mask = ub(TILE // 8, uint8)
    one = ub(TILE, float16)
    truth = ub(TILE, float16)
    with compute:
        duplicate(one, 1.0, TILE)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
            load(yt, y[at], n)
        with compute:
            compare(mask, xt, yt, "gt", n)
            selects(truth, mask, one, 0.0, n)
            cast(zt, truth, "rint", n)
        with copy_out:
            store(z[at], zt, n)
