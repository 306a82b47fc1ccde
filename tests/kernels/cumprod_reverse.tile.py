"""y[i] = product of x[i:], from the last tile to the first"""
TILE = 2048

@host
def host(x, y):
    launch(cumprod_reverse, 1, size=x.size)

@kernel
def cumprod_reverse(x: input(float32), y: output(float32), size: int):
    xt = ub(TILE, float32)
    tmp = ub(TILE, float32)
    yt = ub(TILE, float32)
    total = 1.0
    for turn in range(ceil_div(size, TILE)):
        at = (ceil_div(size, TILE) - 1 - turn) * TILE
        n = min(TILE, size - at)
        with copy_in:
            load(xt, x[at], n)
        with compute:
            running_prod(yt, xt, tmp, total, "reverse", n)
            total = value(yt)
        with copy_out:
            store(y[at], yt, n)
