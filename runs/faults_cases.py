"""Operators of the fault bench: correct tile programs, small shapes to judge, large ones to time.

Relatives stand in one half: what is learnt is tried on other operators, not on their siblings.
"""

from __future__ import annotations

from pathlib import Path

from npusmith.knowledge.trial import Case, Shapes

FOLDER = Path(__file__).parents[1] / "tests" / "kernels"
Row = tuple[list[tuple[int, ...]], list[tuple[int, ...]]]


def _alike(count: int, *shapes: tuple[int, ...]) -> list[Row]:
    return [([shape] * count, [shape]) for shape in shapes]


# Category, sets of small shapes (inputs, outputs), the last set is the large one.
LEARN: dict[str, tuple[str, list[Row]]] = {
    "add": ("math", _alike(2, (3, 5003), (1,), (1024, 2048))),
    "add_int32": ("math", _alike(2, (2, 9001), (1024, 2048))),
    "cast_chain_bf16": ("math", _alike(1, (7, 1501), (1024, 2048))),
    "greater_bool": ("math", _alike(2, (3, 3001), (1024, 2048))),
    "where_bool": ("math", _alike(3, (2, 3001), (1024, 2048))),
    "softmax_online": ("activation", _alike(1, (5, 4099), (3, 1), (256, 8192))),
    "softmax_three_pass": ("activation", _alike(1, (5, 4099), (2, 7), (256, 8192))),
    "row_sum": ("reduce", [([(70, 4099)], [(70,)]), ([(960, 4096)], [(960,)])]),
    "mean_all": ("reduce", [([(5, 5003)], [()]), ([(1024, 2048)], [()])]),
    "first_columns_rows": ("index", [([(37, 50)], [(37, 19)]), ([(9600, 64)], [(9600, 19)])]),
    "resident_max": ("reduce", [([(6, 4503)], [(4503,)]), ([(64, 49152)], [(49152,)])]),
}
HELD: dict[str, tuple[str, list[Row]]] = {
    "copy": ("math", _alike(1, (4, 5003), (1024, 2048))),
    "scaled_relu_fp16": ("activation", _alike(1, (3, 3001), (1024, 2048))),
    "clamp_select": ("activation", _alike(1, (5, 2003), (1024, 2048))),
    "layer_norm": (
        "normalization",
        [
            ([(6, 1001), (1001,), (1001,)], [(6, 1001)]),
            ([(960, 4096), (4096,), (4096,)], [(960, 4096)]),
        ],
    ),
    "middle_axis_sum": (
        "reduce",
        [([(3, 4, 4503)], [(3, 4503)]), ([(8, 16, 24576)], [(8, 24576)])],
    ),
    "middle_axis_prod": (
        "reduce",
        [([(3, 4, 2503)], [(3, 2503)]), ([(8, 16, 24576)], [(8, 24576)])],
    ),
    "column_sum_atomic": ("reduce", [([(61, 4501)], [(4501,)]), ([(960, 4096)], [(4096,)])]),
    "pool_rows": (
        "pooling",
        [([(5, 12)], [(5, 5)]), ([(50, 1023)], [(50, 511)]), ([(1920, 1023)], [(1920, 511)])],
    ),
    "cumsum_exclusive": ("math", _alike(1, (3, 5003), (2, 1153), (96, 8192))),
    "cumprod_reverse": ("math", [([(5001,)], [(5001,)]), ([(65536,)], [(65536,)])]),
    "neighbour_scratch": ("math", _alike(1, (3, 3001), (512, 2048))),
}


def make_case(name: str, folder: Path = FOLDER) -> Case:
    """The case of an operator."""
    category, rows = {**LEARN, **HELD}[name]
    shapes = [Shapes(inputs=tuple(ins), outputs=tuple(outs)) for ins, outs in rows]
    text = (folder / f"{name}.tile.py").read_text(encoding="utf-8")
    return Case(
        name=name, program=text, small=tuple(shapes[:-1]), large=shapes[-1], category=category
    )
