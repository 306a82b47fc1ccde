"""z = x where c else y, with a bool tensor as condition"""
TILE = 4096

@host
def host(c, x, y, z):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(where, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def where(
    c: input(bool), x: input(float32), y: input(float32), z: output(float32), size: int,
    per_core: int
):
    ct = ub(TILE, uint8)
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    zt = ub(TILE, float32)
    wide = ub(TILE, float16)
    mask = ub(TILE // 8, uint8)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(ct, c[at], n)
            load(xt, x[at], n)
            load(yt, y[at], n)
        with compute:
            cast(wide, ct, "none", n)
            compares(mask, wide, 0.5, "gt", n)
            select(zt, mask, xt, yt, n)
        with copy_out:
            store(z[at], zt, n)
