"""y[row] = sum of x[row, :]: several rows are finished before one store sends their sums"""
TILE = 4096
ROWS = 64

@host
def host(x, y):
    cols = max(1, x.shape[-1])
    rows = x.size // cols
    blocks = ceil_div(rows, ROWS)
    cores = max(1, min(blocks, chip.vector_cores))
    launch(row_sum, cores, rows=rows, cols=cols, blocks=blocks)

@kernel
def row_sum(x: input(float32), y: output(float32), rows: int, cols: int, blocks: int):
    xt = ub(TILE, float32)
    tmp = ub(TILE, float32)
    part = ub(8, float32)
    sums = ub(ROWS * 8, float32)
    for block in range(core_id(), blocks, core_count()):
        count = min(ROWS, rows - block * ROWS)
        for i in range(count):
            duplicate_at = i * 8
            total = 0.0
            for t in range(ceil_div(cols, TILE)):
                n = min(TILE, cols - t * TILE)
                with copy_in:
                    load(xt, x[(block * ROWS + i) * cols + t * TILE], n)
                with compute:
                    reduce_sum(part, xt, tmp, n)
                    total += value(part)
            with compute:
                duplicate(sums[duplicate_at], total, 1)
        with copy_out:
            "one element per 32-byte row of the buffer, side by side in the tensor"
            store(y[block * ROWS], sums, 1, rows=count, pitch=1)
