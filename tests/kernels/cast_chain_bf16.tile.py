"""y = bfloat16(exp(float32(x)) + 1): bfloat16 has no arithmetic of its own"""
TILE = 4096

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(cast_chain, cores, size=x.size, per_core=ceil_div(x.size, cores))

@kernel
def cast_chain(x: input(bfloat16), y: output(bfloat16), size: int, per_core: int):
    xt = ub(TILE, bfloat16)
    yt = ub(TILE, bfloat16)
    wide = ub(TILE, float32)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            cast(wide, xt, "none", n)
            exp(wide, wide, n)
            adds(wide, wide, 1.0, n)
            cast(yt, wide, "rint", n)
        with copy_out:
            store(y[at], yt, n)
