"""Bilinear samples of a plane at places of a grid, which is an input or an affine map.

A piece of work is a run of outputs of one plane. Their four neighbours become byte offsets and
weights, which are zero outside of the plane. The plane passes by in bands that fit on chip: what
lies in the band is gathered, the rest has no weight in this turn.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Expr
from npusmith.plan.calls import (
    Call,
    Text,
    Written,
    find_call,
    finish,
    indented,
    is_ref,
    room,
    size_text,
)
from npusmith.plan.scalars import same
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput

_WORDS = ("grid_sampler", "grid_sampler_2d")
_TILE, _BAND = 1024, 8192  # outputs, and elements of a plane, at once


def write_sampling(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a module that samples one plane by a grid; None for any other module."""
    call = find_call(graph, _WORDS, before=("affine_grid_generator",))
    if call is None:
        return None
    x = call.input(call.argument(0), (DType.FLOAT32,))
    if len(x.shape) != 4 or call.argument(2) != 0 or call.argument(3) != 0:
        call.refuse(
            "plan-unsupported-op", "this way of sampling is not written",
            legal="planes, bilinear, zeros outside",
        )  # fmt: skip
    if not is_ref(call.argument(1), call.before):
        return _program(call, name, chip, x, call.input(call.argument(1), (DType.FLOAT32,)), False)
    assert call.before is not None
    theta = Call(graph, call.word, call.before, None, call.names)
    return _program(call, name, chip, x, theta.input(theta.argument(0), (DType.FLOAT32,)), True)


def _program(
    call: Call, name: str, chip: Chip, x: GraphInput, grid: GraphInput, affine: bool
) -> Written:
    source, places = call.names[x.name], call.names[grid.name]
    dims = call.dims(x)
    high, wide = (dims[2:]) if affine else call.dims(grid)[1:3]
    if affine and call.node.shape[2:] != x.shape[2:]:
        call.refuse("plan-data-movement", "the affine grid is of another size than the plane")
    out: tuple[Expr, ...] = (*dims[:2], high, wide)
    host = [
        f"channels = {size_text(dims[1:2])}",
        f"planes = {size_text(dims[:2])}",
        f"height = {size_text(dims[2:3])}",
        f"width = {size_text(dims[3:])}",
        f"across = {size_text([wide])}",
        f"points = {size_text([high, wide])}",
        "tiles = ceil_div(points, TILE)",
        "pieces = planes * tiles",
        "cores = max(1, min(pieces, chip.vector_cores))",
        "pieces_per_core = ceil_div(pieces, cores)",
    ]
    names = ["gx", "gy", "low", "kept", "total", "taken"]
    sides = [f"{axis}{side}_{what}" for axis in "xy" for side in "01" for what in ("at", "by")]
    kernel = [
        "plane_in = ub(BAND, float32)",
        "grid_in = ub(2 * TILE, float32)" if not affine else "theta_in = ub(8, float32)",
        "y_out = ub(TILE, float32)",
        *(f"{n} = ub(TILE, float32)" for n in [*names, *sides]),
        "index = ub(TILE, int32)",
        "mask = ub(TILE // 8, uint8)",
        *([] if affine else ["even = ub(TILE, int32)", "with compute:",
                             "    create_index(even, 0, TILE)", "    muls(even, even, 8, TILE)"]),
        "first = core_id() * pieces_per_core",
        "for piece in range(first, min(first + pieces_per_core, pieces)):",
        *indented([
            "plane = piece // tiles",
            "at = piece % tiles * TILE",
            "n = min(TILE, points - at)",
            *(_affine(call, places) if affine else _given(places)),
            "with compute:",
            *indented([*_axis(call, "x", "gx", "width"), *_axis(call, "y", "gy", "height"),
                       "duplicate(total, 0.0, n)"]),
            "for start in range(0, height * width, BAND):",
            *indented([
                "m = min(BAND, height * width - start)",
                "with copy_in:",
                f"    load(plane_in, {source}[plane * height * width + start], m)",
                "with compute:",
                *indented([line for y in "01" for x_side in "01" for line in _corner(y, x_side)]),
            ]),
            "with compute:",
            "    muls(y_out, total, 1.0, n)",
            "with copy_out:",
            "    store(y[plane * points + at], y_out, n)",
        ]),
    ]  # fmt: skip
    scalars = ["pieces", "pieces_per_core", "tiles", "points", "channels", "height", "width"]
    scalars += ["across"] if affine else []
    about = f"bilinear samples of {source} where {places} says"
    consts = {"TILE": room(_TILE, chip), "BAND": room(_BAND, chip)}
    own = call.dims(grid)
    legal = [same(own[0], dims[0]), same(own[-1], Const(3 if affine else 2))]
    legal += [same(own[1], Const(2))] if affine else []
    inputs = [item for item in call.graph.inputs if item in (x, grid)]
    text = Text(call, about, inputs, out, consts, host, scalars, kernel, legal=tuple(legal))
    return finish(text, name)


def _given(places: str) -> list[str]:
    """Pairs of the grid, which are the same for all channels, as two rows."""
    return [
        "with copy_in:",
        f"    load(grid_in, {places}[2 * (plane // channels * points + at)], 2 * n)",
        "with compute:",
        "    gather(gx, grid_in, even, 0, n)",
        "    gather(gy, grid_in, even, 4, n)",
    ]


def _affine(call: Call, places: str) -> list[str]:
    """gx, gy = theta (x, y, 1), x and y from -1 to 1 over the grid."""
    assert call.before is not None
    align = bool(call.before.args[2]) if len(call.before.args) > 2 else False
    lines = [
        "with copy_in:",
        f"    load(theta_in, {places}[plane // channels * 6], 6)",
        "down = points // across",
        *(f"t{i} = value(theta_in[{i}])" for i in range(6)),
    ]
    body = [
        "create_index(kept, float(at), n)",
        "adds(low, kept, 0.5, n)",
        "muls(low, low, 1.0 / float(across), n)",
        'cast(index, low, "floor", n)',
        'cast(low, index, "rint", n)',
        "muls(taken, low, -float(across), n)",
        "add(taken, taken, kept, n)",
        *_spread("taken", "across", align),
        *_spread("low", "down", align),
    ]
    for name, terms in (("gx", ("t0", "t1", "t2")), ("gy", ("t3", "t4", "t5"))):
        body += [
            f"muls({name}, taken, {terms[0]}, n)",
            f"muls(kept, low, {terms[1]}, n)",
            f"add({name}, {name}, kept, n)",
            f"adds({name}, {name}, {terms[2]}, n)",
        ]
    return [*lines, "with compute:", *indented(body)]


def _spread(name: str, count: str, align: bool) -> list[str]:
    """Positions 0, 1, ... as numbers from -1 to 1."""
    if align:
        return [
            f"muls({name}, {name}, 2.0 / float(max({count} - 1, 1)), n)",
            f"adds({name}, {name}, -1.0, n)",
        ]
    return [
        f"muls({name}, {name}, 2.0 / float({count}), n)",
        f"adds({name}, {name}, 1.0 / float({count}) - 1.0, n)",
    ]


def _axis(call: Call, axis: str, grid: str, size: str) -> list[str]:
    """The neighbours on both sides and their weights, zero for what is not there."""
    align = bool(call.argument(4, "align_corners", False))
    factor, offset = (f"0.5 * float({size} - 1)",) * 2 if align else (
        f"0.5 * float({size})", f"0.5 * float({size}) - 0.5",
    )  # fmt: skip
    zero, one = f"{axis}0", f"{axis}1"
    lines = [
        f"muls(kept, {grid}, {factor}, n)",
        f"adds(kept, kept, {offset}, n)",
        '"far outside is as good as just outside"',
        "maxs(kept, kept, -8.0, n)",
        f"mins(kept, kept, float({size}) + 8.0, n)",
        'cast(index, kept, "floor", n)',
        f'cast({zero}_at, index, "rint", n)',
        f"sub({one}_by, kept, {zero}_at, n)",
        f"muls({zero}_by, {one}_by, -1.0, n)",
        f"adds({zero}_by, {zero}_by, 1.0, n)",
        f"adds({one}_at, {zero}_at, 1.0, n)",
    ]
    for side in (zero, one):
        lines += [
            f'compares(mask, {side}_at, 0.0, "ge", n)',
            f"selects(low, mask, {side}_by, 0.0, n)",
            f'compares(mask, {side}_at, float({size} - 1), "le", n)',
            f"selects({side}_by, mask, low, 0.0, n)",
            f"maxs({side}_at, {side}_at, 0.0, n)",
            f"mins({side}_at, {side}_at, float({size} - 1), n)",
        ]
    return lines


def _corner(y: str, x: str) -> list[str]:
    """One neighbour of every output, as far as it lies in the band."""
    return [
        f"muls(kept, y{y}_at, float(width), n)",
        f"add(kept, kept, x{x}_at, n)",
        "adds(kept, kept, -float(start), n)",
        f"mul(low, y{y}_by, x{x}_by, n)",
        'compares(mask, kept, 0.0, "ge", n)',
        "selects(taken, mask, low, 0.0, n)",
        'compares(mask, kept, float(m - 1), "le", n)',
        "selects(low, mask, taken, 0.0, n)",
        "maxs(kept, kept, 0.0, n)",
        "mins(kept, kept, float(m - 1), n)",
        'cast(index, kept, "rint", n)',
        "muls(index, index, 4, n)",
        "gather(taken, plane_in, index, 0, n)",
        "mul(taken, taken, low, n)",
        "add(total, total, taken, n)",
    ]
