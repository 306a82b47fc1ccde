"""y = mean of all of x: every core sums its share, combine_sum adds the shares in core order"""
TILE = 8192

@host
def host(x, y):
    cores = max(1, min(ceil_div(x.size, TILE), chip.vector_cores))
    launch(
        mean_all,
        cores,
        size=x.size,
        per_core=ceil_div(x.size, cores),
        scale=1.0 / float(x.size),
        parts=cores * 8,
    )

@kernel
def mean_all(
    x: input(float32), y: output(float32), parts: scratch(float32), size: int, per_core: int,
    scale: float
):
    xt = ub(TILE, float32)
    tmp = ub(TILE, float32)
    part = ub(8, float32)
    total = ub(8, float32)
    yt = ub(8, float32)
    with compute:
        duplicate(total, 0.0, 8)
    first = core_id() * per_core
    last = min(first + per_core, size)
    for at in range(first, last, TILE):
        n = min(TILE, last - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            reduce_sum(part, xt, tmp, n)
            accumulate_sum(total, part, 1)
    combine_sum(total, total, parts, 1)
    if core_id() == 0:
        with compute:
            muls(yt, total, scale, 1)
        with copy_out:
            store(y, yt, 1)
