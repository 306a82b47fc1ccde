"""x * 2 * 3 * 0.5: one kernel, launched with other tensors and numbers"""

TILE = 1024


@host
def host(x, y):
    n = x.size
    cores = max(1, min(ceil_div(n, 64), chip.vector_cores))
    share = ceil_div(n, cores)
    launch(scaled, cores, a=x, b=twice, n=n, share=share, factor=2.0, twice=n)
    launch(scaled, cores, a=twice, b=six_times, n=n, share=share, factor=3.0, twice=n, six_times=n)
    launch(scaled, cores, a=six_times, b=y, n=n, share=share, factor=0.5, six_times=n)


@kernel
def scaled(a: input(float32), b: output(float32), n: int, share: int, factor: float):
    at = ub(TILE, float32)
    bt = ub(TILE, float32)
    start = core_id() * share
    for place in range(start, min(start + share, n), TILE):
        m = min(TILE, min(start + share, n) - place)
        with copy_in:
            load(at, a[place], m)
        with compute:
            muls(bt, at, factor, m)
        with copy_out:
            store(b[place], bt, m)
