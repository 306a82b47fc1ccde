"""y = abs(x[:, :k]) for k = y.shape[1] up to 512 columns: strided rows in, whole rows out"""
TILE = 16384
MOST = 512

@host
def host(x, y):
    rows = x.shape[0]
    cols = x.shape[1]
    kept = min(y.shape[1], MOST)
    group = TILE // align_up(max(1, kept), 8)
    groups = ceil_div(rows, group)
    cores = max(1, min(groups, chip.vector_cores))
    launch(first_columns, cores, rows=rows, cols=cols, kept=kept, group=group, groups=groups)

@kernel
def first_columns(
    x: input(float32), y: output(float32), rows: int, cols: int, kept: int, group: int, groups: int
):
    xt = ub(TILE, float32)
    yt = ub(TILE, float32)
    for g in range(core_id(), groups, core_count()):
        r = min(group, rows - g * group)
        with copy_in:
            load(xt, x[g * group * cols], kept, rows=r, pitch=cols)
        with compute:
            "row by row: what lies between the rows is padding"
            for i in range(r):
                abs(yt[i * align_up(kept, 8)], xt[i * align_up(kept, 8)], kept)
        with copy_out:
            store(y[g * group * kept], yt, kept, rows=r, pitch=kept)
