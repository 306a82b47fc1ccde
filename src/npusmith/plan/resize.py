"""Resizing by interpolation: nearest, linear in 1, 2 and 3 dimensions, cubic, and antialiased.

Every axis has taps: for each output the input elements that it takes, and their weights. A row of
outputs is first put together from whole input rows, one for each tap of the axes before the last;
along the row `gather` brings the taps. Places and weights are computed once a core, by vector
operations on positions, in float32 as PyTorch does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product as pairs

from npusmith.ir.nodes import Binary, BinOp, Const, Expr
from npusmith.ir.text import show_expr
from npusmith.plan.calls import (
    FLOATS,
    Call,
    Text,
    Written,
    find_call,
    finish,
    indented,
    numbers,
    room,
    size_text,
)
from npusmith.plan.scalars import same
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput

_KINDS = {
    "upsample_nearest1d": "nearest", "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest", "_upsample_nearest_exact1d": "exact",
    "_upsample_nearest_exact2d": "exact", "_upsample_nearest_exact3d": "exact",
    "upsample_linear1d": "linear", "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear", "upsample_bicubic2d": "cubic",
    "_upsample_bilinear2d_aa": "smooth",
}  # fmt: skip
_TAPS = {"nearest": 1, "exact": 1, "linear": 2, "cubic": 4}
_WIDEST = 4096  # elements of an input row
_TILE, _LINES = 512, 1024  # outputs of a row at once; outputs along another axis
_CUBIC = -0.75  # PyTorch's
_MOST_TAPS = 12


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis that is resized: `name` of its sizes, `taps` of each output."""

    name: str
    taps: int
    factor: float | None  # outputs for an input, where the model says so


@dataclass(frozen=True, slots=True)
class Resize:
    call: Call
    kind: str
    align: bool  # the outermost elements stand in the same places
    axes: tuple[Axis, ...]
    dims: tuple[Expr, ...]  # of the output


def write_resize(graph: Graph, name: str, chip: Chip) -> Written | None:
    """The program of a module that is one resize; None for any other module."""
    call = find_call(graph, tuple(_KINDS))
    return None if call is None else _program(_read(call, chip), name, chip)


# ---------------------------------------------------------------------------------------- reading


def _read(call: Call, chip: Chip) -> Resize:
    kind = _KINDS[call.word]
    x = call.input(call.argument(0), FLOATS)
    rank, out = len(x.shape) - 2, call.node.shape
    flagged = kind in ("linear", "cubic", "smooth")
    align = bool(call.argument(2, "align_corners", False)) if flagged else False
    factors = numbers(call.argument(3 if flagged else 2, "scale_factors"))
    sizes = x.shape[2:]
    widest, most = room(_WIDEST, chip), room(_LINES, chip)
    if x.shape[-1] > widest or any(size > most for size in out[2:-1]):
        call.refuse(
            "plan-ub", f"rows of {x.shape[-1]} elements or {max(out[2:])} lines are not written",
            legal=f"input rows of {widest} elements, {most} outputs along the other axes",
        )  # fmt: skip
    names = ("depth", "height", "width")[3 - rank :]
    axes, dims = [], list(call.dims(x)[:2])
    for at, name in enumerate(names):
        factor = factors[at] if factors is not None else None
        taps = _TAPS.get(kind) or _reach(sizes[at] / out[2 + at])
        axes.append(Axis(name, taps, factor))
        dims.append(_extent(call.dims(x)[2 + at], factor, out[2 + at]))
    if max(axis.taps for axis in axes) > _MOST_TAPS:
        call.refuse("plan-ub", "each output takes in too many elements", legal=f"{_MOST_TAPS}")
    return Resize(call, kind, align, tuple(axes), tuple(dims))


def _reach(ratio: float) -> int:
    """Elements under the triangle of an antialiased output."""
    return 2 * math.ceil(max(ratio, 1.0)) + 1


def _extent(size: Expr, factor: float | None, out: int) -> Expr:
    """How long the output is: a whole multiple of the input, or a number of the model."""
    if factor is not None and factor == int(factor):
        return Binary(BinOp.MUL, size, Const(int(factor)))
    return Const(out)


# ---------------------------------------------------------------------------------------- writing


def _program(item: Resize, name: str, chip: Chip) -> Written:
    call = item.call
    x = call.input(call.argument(0), FLOATS)
    dims = call.dims(x)
    source, half = call.names[x.name], x.dtype.bytes == 2
    outs = {axis.name: f"{axis.name}_out" for axis in item.axes}
    sizes = [
        f"{axis.name} = {size_text(dims[2 + at : 3 + at])}" for at, axis in enumerate(item.axes)
    ]
    sizes += [f"{outs[a.name]} = {show_expr(item.dims[2 + at])}" for at, a in enumerate(item.axes)]
    lines = " * ".join(["planes", *(outs[axis.name] for axis in item.axes[:-1])])
    host = [
        f"planes = {size_text(dims[:2])}",
        *sizes,
        f"lines = {lines}",
        "cores = max(1, min(lines, chip.vector_cores))",
        "lines_per_core = ceil_div(lines, cores)",
    ]
    across = item.axes[-1]
    kernel = [
        *_buffers(item, x.dtype.value, half),
        "first = core_id() * lines_per_core",
        "last = min(first + lines_per_core, lines)",
        *(line for a in item.axes[:-1] for line in _table(item, a, outs[a.name], "0.0", 0)),
        f"for at in range(0, {outs[across.name]}, TILE):",
        *indented([
            f"n = min(TILE, {outs[across.name]} - at)",
            *_table(item, across, "n", "float(at)", 4),
            "for line in range(first, last):",
            *indented([*_where(item, outs), *_down(item, source, half), *_across(item, half),
                       "with copy_out:",
                       f"    store(y[line * {outs[across.name]} + at], y_out, n)"]),
        ]),
    ]  # fmt: skip
    scalars = ["lines", "lines_per_core", *(axis.name for axis in item.axes), *outs.values()]
    read = "\n".join(kernel)
    scalars = [scalar for scalar in scalars if f"{scalar}" in read]
    widest = room(_WIDEST, chip)
    notes = (f"input rows of at most {widest} elements",)
    consts = {"TILE": room(_TILE, chip), "WIDEST": widest}
    if len(item.axes) > 1:
        consts["LINES"] = room(_LINES, chip)
    about = f"{call.word} of {source}"
    return finish(
        Text(
            call, about, [x], item.dims, consts, host, scalars, kernel, notes,
            legal=_legal(item, x, dims, chip),
        ),
        name,
    )  # fmt: skip


def _legal(item: Resize, x: GraphInput, dims: tuple[Expr, ...], chip: Chip) -> tuple[Expr, ...]:
    """Rows and tables that fit their buffers; what the number of taps was worked out for."""
    legal: list[Expr] = [Binary(BinOp.LE, dims[-1], Const(room(_WIDEST, chip)))]
    for at, axis in enumerate(item.axes):
        own, out, size = dims[2 + at], item.dims[2 + at], x.shape[2 + at]
        if axis.factor is not None and isinstance(out, Const):
            legal.append(same(own, Const(size)))  # the factor is no whole number
        elif isinstance(out, Const) and item.kind == "smooth":
            legal.append(Binary(BinOp.LE, own, Const(size)))  # more would lie under the triangle
        if axis is not item.axes[-1] and not isinstance(out, Const):
            legal.append(Binary(BinOp.LE, out, Const(room(_LINES, chip))))
    return tuple(legal)


def _buffers(item: Resize, dtype: str, half: bool) -> list[str]:
    weighted = _weighted(item)
    lines = [f"x_in = ub(WIDEST, {dtype})", f"y_out = ub(TILE, {dtype})"]
    if half or weighted:
        lines.append("folded = ub(WIDEST, float32)")
    if half and weighted:
        lines.append("wide = ub(WIDEST, float32)")
    if half or weighted:
        lines.append("joined = ub(TILE, float32)")
    lines += ["shifted = ub(TILE, float32)"] if weighted else []
    room = "LINES" if len(item.axes) > 1 else "TILE"  # tables of both lengths are made in these
    more = {
        "linear": ["part", "square"],
        "cubic": ["part", "square"],
        "smooth": ["square", "total"],
    }
    lines += [f"{name} = ub({room}, float32)" for name in ["low", "near", *more.get(item.kind, [])]]
    for axis in item.axes:
        size = "TILE" if axis is item.axes[-1] else "LINES"
        for tap in range(axis.taps):
            lines.append(f"{axis.name}_at{tap} = ub({size}, int32)")
            lines += [f"{axis.name}_by{tap} = ub({size}, float32)"] if weighted else []
    return lines


def _weighted(item: Resize) -> bool:
    return item.kind not in ("nearest", "exact")


def _table(item: Resize, axis: Axis, count: str, start: str, unit: int) -> list[str]:
    """Places (in bytes where `unit` is 4) and weights of the taps of `count` outputs."""
    name, out = axis.name, f"{axis.name}_out"
    lines = [
        *_pace(item, axis, name, out),
        "with compute:",
        f"    create_index(near, {start}, {count})",
    ]
    body = _positions(item, count, name)
    for tap in range(axis.taps):
        body += _tap(item, axis, tap, count, unit)
    if item.kind == "smooth":
        body += _balanced(axis, count)
    return [*lines, *indented(body)]


def _pace(item: Resize, axis: Axis, name: str, out: str) -> list[str]:
    """Input elements for each output."""
    if item.align:
        spread = f"float({name} - 1) / float(max({out} - 1, 1))"
        return [f"{name}_pace = {spread} if {out} > 1 else 0.0"]
    if axis.factor is not None:
        return [f"{name}_pace = 1.0 / {axis.factor!r}"]
    return [f"{name}_pace = float({name}) / float({out})"]


def _positions(item: Resize, n: str, name: str) -> list[str]:
    """`near`: where an output stands among the inputs; `low`: the element before it."""
    pace = f"{name}_pace"
    if item.kind == "smooth":
        return [
            f"adds(near, near, 0.5, {n})",
            f"muls(near, near, {pace}, {n})",
            f"adds(low, near, 0.5 - max({pace}, 1.0), {n})",
            f'cast({name}_at0, low, "trunc", {n})',
            f'cast(low, {name}_at0, "rint", {n})',
            f"maxs(low, low, 0.0, {n})",
        ]
    half = not item.align and item.kind in ("linear", "cubic")
    lines = [f"adds(near, near, 0.5, {n})"] * (half or item.kind == "exact")
    lines.append(f"muls(near, near, {pace}, {n})")
    lines += [f"adds(near, near, -0.5, {n})"] * half
    lines += [f"maxs(near, near, 0.0, {n})"] * (item.kind == "linear")
    lines += [f'cast({name}_at0, near, "floor", {n})', f'cast(low, {name}_at0, "rint", {n})']
    if item.kind in ("linear", "cubic"):
        lines.append(f"sub(part, near, low, {n})")
    return lines


def _tap(item: Resize, axis: Axis, tap: int, n: str, unit: int) -> list[str]:
    """Place and weight of one tap; `total` serves as room until the weights are balanced."""
    place, weight, name = f"{axis.name}_at{tap}", f"{axis.name}_by{tap}", axis.name
    spot = "square" if _weighted(item) else "near"
    shift = tap - 1 if item.kind == "cubic" else tap
    lines = _weight(item, name, weight, tap, n)
    lines += [
        f"adds({spot}, low, {float(shift)}, {n})",
        f"maxs({spot}, {spot}, 0.0, {n})",
        f"mins({spot}, {spot}, float({name} - 1), {n})",
        f'cast({place}, {spot}, "rint", {n})',
    ]
    return lines + [f"muls({place}, {place}, {unit}, {n})"] * (unit > 0)


def _weight(item: Resize, name: str, weight: str, tap: int, n: str) -> list[str]:
    if item.kind == "linear":
        if tap:
            return [f"muls({weight}, part, 1.0, {n})"]
        return [f"muls({weight}, part, -1.0, {n})", f"adds({weight}, {weight}, 1.0, {n})"]
    if item.kind == "cubic":
        return _cubic(weight, tap, n)
    if item.kind != "smooth":
        return []
    # 1 - |distance / support|, not below 0, and 0 for what lies behind the last element
    return [
        f"adds({weight}, low, {tap + 0.5}, {n})",
        f"sub({weight}, {weight}, near, {n})",
        f"muls({weight}, {weight}, 1.0 / max({name}_pace, 1.0), {n})",
        f"abs({weight}, {weight}, {n})",
        f"muls({weight}, {weight}, -1.0, {n})",
        f"adds({weight}, {weight}, 1.0, {n})",
        f"maxs({weight}, {weight}, 0.0, {n})",
        f"adds(square, low, {float(tap)}, {n})",
        f"muls(square, square, -1.0, {n})",
        f"adds(square, square, float({name}), {n})",
        f"maxs(square, square, 0.0, {n})",
        f"mins(square, square, 1.0, {n})",
        f"mul({weight}, {weight}, square, {n})",
    ]


def _cubic(weight: str, tap: int, n: str) -> list[str]:
    """Keys' kernel at the distance of the tap: ((c3 d + c2) d + c1) d + c0."""
    a = _CUBIC
    far = (a, -5 * a, 8 * a, -4 * a)
    close = (a + 2, -(a + 3), 0.0, 1.0)
    factor, offset = ((1.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (-1.0, 2.0))[tap]
    c3, c2, c1, c0 = far if tap in (0, 3) else close
    return [
        f"muls(square, part, {factor}, {n})",
        f"adds(square, square, {offset}, {n})",
        f"muls({weight}, square, {c3}, {n})",
        f"adds({weight}, {weight}, {c2}, {n})",
        f"mul({weight}, {weight}, square, {n})",
        f"adds({weight}, {weight}, {c1}, {n})",
        f"mul({weight}, {weight}, square, {n})",
        f"adds({weight}, {weight}, {c0}, {n})",
    ]


def _balanced(axis: Axis, n: str) -> list[str]:
    """Weights that add up to 1."""
    weights = [f"{axis.name}_by{tap}" for tap in range(axis.taps)]
    lines = [f"muls(total, {weights[0]}, 1.0, {n})"]
    lines += [f"add(total, total, {weight}, {n})" for weight in weights[1:]]
    return lines + [f"div({weight}, {weight}, total, {n})" for weight in weights]


def _where(item: Resize, outs: dict[str, str]) -> list[str]:
    """The plane of a line, and its place along the axes before the last."""
    lines, rest = [], "line"
    for axis in reversed(item.axes[:-1]):
        lines.append(f"{axis.name}_to = {rest} % {outs[axis.name]}")
        lines.append(f"{axis.name}_up = {rest} // {outs[axis.name]}")
        rest = f"{axis.name}_up"
    return lines


def _down(item: Resize, source: str, half: bool) -> list[str]:
    """Input rows, weighted and added up in `folded`; a row that is taken as it is stays in x_in."""
    before = item.axes[:-1]
    plane = f"{before[0].name}_up" if before else "line"
    weighted, lines = _weighted(item), []
    if weighted:
        lines += ["with compute:", "    duplicate(folded, 0.0, width)"]
    for taps in pairs(*(range(axis.taps) for axis in before)):
        place, weights = plane, []
        for axis, tap in zip(before, taps, strict=True):
            name = f"{axis.name}_at{tap}[{axis.name}_to]"
            place = f"({place} * {axis.name} + value({name}))"
            weights.append(f"value({axis.name}_by{tap}[{axis.name}_to])")
        lines += [
            f"row = {place}",
            "with copy_in:",
            f"    load(x_in, {source}[row * width], width)",
        ]
        if weighted:
            factor = " * ".join(weights) or "1.0"
            held = "wide" if half else "x_in"
            lines += [f"by = {factor}", "with compute:"]
            lines += ['    cast(wide, x_in, "none", width)'] * half
            lines.append(f"    axpy(folded, {held}, by, width)")
        elif half:
            lines += ["with compute:", '    cast(folded, x_in, "none", width)']
    return lines


def _across(item: Resize, half: bool) -> list[str]:
    """The taps along the row."""
    axis = item.axes[-1]
    if not _weighted(item):
        if half:
            body = [
                f"gather(joined, folded, {axis.name}_at0, 0, n)",
                'cast(y_out, joined, "rint", n)',
            ]
        else:
            body = [f"gather(y_out, x_in, {axis.name}_at0, 0, n)"]
        return ["with compute:", *indented(body)]
    body = [
        f"gather(joined, folded, {axis.name}_at0, 0, n)",
        f"mul(joined, joined, {axis.name}_by0, n)",
    ]
    for tap in range(1, axis.taps):
        body += [
            f"gather(shifted, folded, {axis.name}_at{tap}, 0, n)",
            f"mul(shifted, shifted, {axis.name}_by{tap}, n)",
            "add(joined, joined, shifted, n)",
        ]
    last = 'cast(y_out, joined, "rint", n)' if half else "muls(y_out, joined, 1.0, n)"
    return ["with compute:", *indented([*body, last])]
