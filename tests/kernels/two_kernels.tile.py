"""exp of a vector, turned round: the second kernel reads what other cores stored in the first"""

TILE = 1024


@host
def host(x, y):
    n = x.size
    cores = max(1, min(ceil_div(n, 64), chip.vector_cores))
    share = ceil_div(n, cores)
    launch(exponentials, cores, n=n, share=share, e=n)
    launch(turned, cores, n=n, share=share, blocks=ceil_div(n, TILE), e=n)


@kernel
def exponentials(x: input(float32), e: scratch(float32), n: int, share: int):
    xt = ub(8 * TILE, float32)
    et = ub(8 * TILE, float32)
    start = core_id() * share
    for at in range(start, min(start + share, n), TILE):
        m = min(TILE, min(start + share, n) - at)
        with copy_in:
            load(xt, x[at], m)
        with compute:
            exp(et, xt, m)
        with copy_out:
            store(e[at], et, m)


@kernel
def turned(y: output(float32), e: scratch(float32), n: int, share: int, blocks: int):
    "whole tiles change places, their elements do not"
    xt = ub(2 * TILE, float32)
    yt = ub(2 * TILE, float32)
    for block in range(core_id(), blocks, core_count()):
        m = min(TILE, n - block * TILE)
        back = n - block * TILE - m
        with copy_in:
            load(xt, e[back], m)
        with compute:
            adds(yt, xt, float(share) * 0.0, m)
        with copy_out:
            store(y[block * TILE], yt, m)
