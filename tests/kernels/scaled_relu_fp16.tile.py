"""y = relu(x * scale) on float16, computed in float32"""
TILE = 4096
SCALE = 0.3

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(scaled_relu, cores, size=x.size, per_core=ceil_div(x.size, cores), scale=SCALE)

@kernel
def scaled_relu(x: input(float16), y: output(float16), size: int, per_core: int, scale: float):
    xt = ub(TILE, float16)
    yt = ub(TILE, float16)
    wide = ub(TILE, float32)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            cast(wide, xt, "none", n)
            muls(wide, wide, scale, n)
            relu(wide, wide, n)
            cast(yt, wide, "rint", n)
        with copy_out:
            store(y[at], yt, n)
