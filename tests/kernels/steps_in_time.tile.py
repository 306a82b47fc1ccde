"""y[t] = 0.5 * y[t - 1] + x[t], and the same backwards in time from there on"""

TILE = 2048

@host
def host(x, y):
    steps = x.shape[0]
    n = x.shape[1]
    tiles = ceil_div(n, TILE)
    cores = min(tiles, chip.vector_cores)
    length = (steps + 1) * n
    launch(
        zeros, cores, first=part(states, 0, n), n=n, tiles=tiles, states=length
    )
    for t in range(steps):
        launch(
            step, cores, now=part(x, t * n, n), before=part(states, t * n, n),
            after=part(states, (t + 1) * n, n), n=n, tiles=tiles, states=length,
        )
    launch(zeros, cores, first=part(back, steps * n, n), n=n, tiles=tiles, back=length)
    for s in range(1, steps + 1):
        launch(
            step, cores, now=part(states, n * (steps + 1 - s), n),
            before=part(back, (steps + 1 - s) * n, n), after=part(back, (steps - s) * n, n), n=n,
            tiles=tiles, states=length, back=length,
        )
        launch(
            copied, cores, a=part(back, (steps - s) * n, n), b=part(y, steps * n - s * n, n), n=n,
            tiles=tiles, back=length,
        )

@kernel
def zeros(first: output(float32), n: int, tiles: int):
    """Nothing before the first step."""
    first_tile = ub(TILE, float32)
    for at in range(core_id(), tiles, core_count()):
        start = at * TILE
        count = min(TILE, n - start)
        with compute:
            duplicate(first_tile, 0.0, count)
        with copy_out:
            store(first[start], first_tile, count)

@kernel
def step(
    now: input(float32), before: input(float32), after: output(float32), n: int, tiles: int
):
    """One step."""
    now_tile = ub(TILE, float32)
    before_tile = ub(TILE, float32)
    after_tile = ub(TILE, float32)
    for at in range(core_id(), tiles, core_count()):
        start = at * TILE
        count = min(TILE, n - start)
        with copy_in:
            load(now_tile, now[start], count)
            load(before_tile, before[start], count)
        with compute:
            muls(after_tile, before_tile, 0.5, count)
            add(after_tile, after_tile, now_tile, count)
        with copy_out:
            store(after[start], after_tile, count)

@kernel
def copied(a: input(float32), b: output(float32), n: int, tiles: int):
    """To where it is asked for."""
    a_tile = ub(TILE, float32)
    for at in range(core_id(), tiles, core_count()):
        start = at * TILE
        count = min(TILE, n - start)
        with copy_in:
            load(a_tile, a[start], count)
        with copy_out:
            store(b[start], a_tile, count)
