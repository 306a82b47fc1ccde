"""A pooling as a tile program: windows are folded down the height by whole rows, then along rows.

A piece of work is a block of output rows of one plane, at most TILE outputs wide. Its input rows
are loaded once, each is accumulated into the output rows whose windows it is in, and what lies
outside of the tensor is the neutral element. Along a row the vector unit has no shift by single
elements: `gather` makes one, or takes every stride-th element, by byte offsets made once a core.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Expr, Program
from npusmith.ir.spec import OpSpec, Port
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.plan.scalars import product
from npusmith.plan.windows import Pooling, Window
from npusmith.target.chips import Chip

# Names that the program has for itself.
NAMES = frozenset({
    "INPUT", "WINDOW", "OUTPUT", "TILE", "planes", "depth", "height", "width", "deep", "high",
    "wide", "tiles", "tile", "pitch", "most", "fair", "even", "rows", "blocks", "pieces",
    "pieces_per_core", "cores", "host", "first", "piece", "at", "line", "top", "slab", "front",
    "plane", "n", "m", "left", "low", "cols", "place", "base", "upper", "lower", "used", "near",
    "row", "begin", "start", "r", "d", "gap", "tap", "y", "x_in", "y_out", "x_wide", "fold",
    "joined", "shifted", "index", "divisor", "ends", "begins", "weight",
})  # fmt: skip
_PLAIN = Window(1, 1, 0, 1)
_BLOCKS = (4, 2, 1)  # output rows of a block to make room for
_FAIR, _LEAST, _WIDEST = 64, 8, 4096  # outputs of a row at once
_SPARE = 1024  # bytes: every buffer ends on a block of 32
_OPS = {True: ("max", "accumulate_max"), False: ("add", "accumulate_sum")}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Elements of the buffers."""

    input: int
    window: int
    output: int
    tile: int


@dataclass(frozen=True, slots=True)
class Form:
    """A pooling over planes: windows along depth (3d), height (2d, 3d) and width."""

    pooling: Pooling
    name: str
    across: Window
    down: Window
    deep: Window | None
    flat: bool  # lines only: all rows are one plane, and windows are one row high
    sizes: Sizes

    @property
    def half(self) -> bool:
        """Elements of 16 bits, computed in float32."""
        return self.pooling.item.dtype is not DType.FLOAT32

    @property
    def block(self) -> int:
        """Elements of 32 bytes of the tensors."""
        return self.pooling.item.dtype.per_block

    @property
    def strided(self) -> bool:
        return self.across.stride > 1


def write_pooling(
    pooling: Pooling, name: str, chip: Chip
) -> tuple[Program, OpSpec, tuple[str, ...]]:
    """The program, its operator, and notes. Raises plan-ub where no window fits."""
    form = _form(pooling, name, chip)
    text = "\n".join((*_head(form), "", "", *_host(form), "", "", *_kernel(form), ""))
    item, output = pooling.item, pooling.output
    assert output.dtype is not None
    legal = tuple(
        Binary(BinOp.GE, size, Const(window.span - 2 * window.padding))
        for window, size in zip(pooling.windows, pooling.extents, strict=True)
        if isinstance(size, Dim) and window.span > 2 * window.padding
    )
    ports = (Port(pooling.name, item.dtype, item.shape, position=item.position),)
    made = (Port("y", output.dtype, output.shape, dims=pooling.dims),)
    notes = (
        "dealt to cores: blocks of rows" + " x tiles" + ("" if form.flat else " x planes"),
        f"a tile is {form.sizes.tile} outputs of a row",
    )
    return parse(text, f"{name}.tile.py"), OpSpec(name, ports, made, legal=legal), notes


def _form(pooling: Pooling, name: str, chip: Chip) -> Form:
    windows = pooling.windows
    while len(windows) > 1 and windows[0].plain:
        windows = windows[1:]
    down = windows[-2] if len(windows) > 1 else _PLAIN
    deep = windows[-3] if len(windows) > 2 else None
    sizes = _sizes(pooling, windows[-1], down, chip)
    return Form(pooling, name, windows[-1], down, deep, len(windows) == 1, sizes)


def _sizes(pooling: Pooling, across: Window, down: Window, chip: Chip) -> Sizes:
    """The most output rows in a block, up to where blocks share enough, that leave a fair width."""
    choices = _BLOCKS if down.span > down.stride else (1,)
    sizes = [_fitted(pooling, across, down, rows, chip.ub_bytes - _SPARE) for rows in choices]
    found = next((item for item in sizes if item.tile >= _FAIR), sizes[-1])
    if found.tile < _LEAST:
        raise PlanError(
            "plan-ub",
            f"{_LEAST} windows of {down.span} x {across.span} elements, side by side, do not fit "
            f"into {chip.ub_bytes} B of {chip.name}",
        )
    return found


def _fitted(pooling: Pooling, across: Window, down: Window, rows: int, room: int) -> Sizes:
    """Buffers in the proportions of a block of that many rows. The input is held twice."""
    size, stride = pooling.item.dtype.bytes, across.stride
    loaded = -(-((rows - 1) * down.stride + down.span) // rows)  # input rows by output row
    held = 2 * size + (4 if size < 4 else 0)
    each = 4 * stride + 12 + 2 * size + 4 + 12 * pooling.inside + held * loaded * stride
    output = room // each // 8 * 8
    window = output * stride
    widest = min(window // rows, window * loaded // down.span - 16)
    tile = min((widest - across.span - 14) // stride + 1, output, _WIDEST) // 8 * 8
    return Sizes(window * loaded, window, output, tile)


# -------------------------------------------------------------------------------------------- text


def _head(form: Form) -> list[str]:
    p, sizes = form.pooling, form.sizes
    words = [
        f"{what} {' x '.join(str(getattr(window, key)) for window in p.windows)}"
        for what, key in (("windows of", "size"), ("stride", "stride"), ("padding", "padding"))
    ]
    if any(window.dilation > 1 for window in p.windows):
        words.append(f"dilation {' x '.join(str(window.dilation) for window in p.windows)}")
    kind = "largest" if p.largest else "mean"
    return [
        f'"""{form.name}: the {kind} over {", ".join(words)}"""',
        "",
        f"INPUT = {sizes.input}",
        f"WINDOW = {sizes.window}",
        f"OUTPUT = {sizes.output}",
        f"TILE = {sizes.tile}",
    ]


def _times(*terms: str | int) -> str:
    """A product, with factors of 1 left out."""
    return " * ".join(str(term) for term in terms if str(term) != "1") or "1"


def _plus(first: str, number: int) -> str:
    return f"{first} + {number}" if number > 0 else f"{first} - {-number}" if number else first


def _windows(window: Window, extent: str) -> str:
    whole = _plus(extent, 2 * window.padding - window.span)
    return f"{whole} + 1" if window.stride == 1 else f"({whole}) // {window.stride} + 1"


def _host(form: Form) -> list[str]:
    p, across, down = form.pooling, form.across, form.down
    planes, height, depth = _extents(form)
    lines = [f"{name} = {show_expr(size)}" for name, size in (
        ("planes", planes), ("depth", depth), ("height", height), ("width", p.extents[-1]),
    ) if size is not None]  # fmt: skip
    if form.deep is not None:
        lines.append(f"deep = {_windows(form.deep, 'depth')}")
    reach = _plus(_times("(tile - 1)", across.stride), across.span)
    slabs = "blocks" if form.flat else f"planes * {'deep * ' if form.deep else ''}blocks"
    lines += [
        f"high = {_windows(down, 'height')}",
        f"wide = {_windows(across, 'width')}",
        "tiles = ceil_div(max(wide, 1), TILE)",
        "tile = align_up(ceil_div(max(wide, 1), tiles), 8)",
        f"pitch = align_up({reach} + 7, 8)",
        f"gap = align_up(min(max(width, 1), pitch), {form.block})",
        f"most = {_fitting(form)}",
        f"fair = ceil_div({slabs.replace('blocks', 'high')} * tiles, chip.vector_cores)",
        "even = max(1, min(min(most, fair), high))",
        "rows = ceil_div(max(high, 1), ceil_div(max(high, 1), even))",
        "blocks = ceil_div(high, rows)",
        f"pieces = {slabs} * tiles",
        "cores = max(1, min(pieces, chip.vector_cores))",
        "pieces_per_core = ceil_div(pieces, cores)",
    ]
    given = ", ".join(f"{name}={name}" for name in _parameters(form))
    lines.append(f"launch({form.name}, cores, {given})")
    return ["@host", f"def host({p.name}, y):", *_indented(lines)]


def _extents(form: Form) -> tuple[Expr | None, Expr, Expr | None]:
    """Planes, height and depth; lines are the rows of one plane."""
    p = form.pooling
    outer = (*p.lead, *p.extents)[:-1]
    if form.flat:
        return None, product(outer), None
    if form.deep is None:
        return product(outer[:-1]), outer[-1], None
    return product(outer[:-2]), outer[-1], outer[-2]


def _fitting(form: Form) -> str:
    """How many output rows fit into the buffers."""
    down = form.down
    loaded = f"INPUT // gap - {down.span}" if down.span > down.stride or down.stride > 1 else ""
    rows = "INPUT // gap" if not loaded else f"({loaded}) // {down.stride} + 1"
    if down.stride == 1 and loaded:
        rows = f"{loaded} + 1"
    return f"min(min(WINDOW // pitch, OUTPUT // align_up(tile, {form.block})), {rows})"


def _parameters(form: Form) -> tuple[str, ...]:
    names = ("pieces", "pieces_per_core", "tiles", "tile", "rows", "pitch", "high", "wide", "width")
    planes = () if form.flat else ("blocks", "height")
    return (*names, *planes, *(("deep", "depth") if form.deep else ()))


def _kernel(form: Form) -> list[str]:
    p = form.pooling
    dtype = p.item.dtype.value
    scalars = ", ".join(f"{name}: int" for name in _parameters(form))
    return [
        "@kernel",
        f"def {form.name}({p.name}: input({dtype}), y: output({dtype}), {scalars}):",
        *_indented([
            *_buffers(form),
            *_tables(form),
            "first = core_id() * pieces_per_core",
            "for piece in range(first, min(first + pieces_per_core, pieces)):",
            *_indented([*_where(form), *_columns(form), *_across(form), *_leave(form)]),
        ]),
    ]  # fmt: skip


def _buffers(form: Form) -> list[str]:
    p = form.pooling
    dtype = p.item.dtype.value
    lines = [f"x_in = ub(INPUT, {dtype})", f"y_out = ub(OUTPUT, {dtype})"]
    lines += ["x_wide = ub(INPUT, float32)"] * form.half
    lines.append("fold = ub(WINDOW, float32)")
    room = "OUTPUT" if form.strided else "WINDOW"
    if _moves(form):
        lines += [f"joined = ub({room}, float32)", f"index = ub({room}, int32)"]
    if form.across.size > 1:
        lines.append(f"shifted = ub({room}, float32)")
    if p.inside:
        lines += [f"{name} = ub(TILE, float32)" for name in ("ends", "begins", "weight")]
    elif _divides(form):
        lines.append("divisor = ub(TILE, float32)")
    return lines


def _moves(form: Form) -> bool:
    return form.across.size > 1 or form.strided


def _divides(form: Form) -> bool:
    """Whether the mean takes a division: not where a product is exact."""
    p = form.pooling
    return not p.largest and (p.inside or abs(math.frexp(p.divisor)[0]) != 0.5)


def _tables(form: Form) -> list[str]:
    """What is the same for every piece: byte offsets, and the number to divide by."""
    lines = []
    if form.strided:
        lines += [
            '"byte offsets of every window\'s first element"',
            "for row in range(rows):",
            *_indented([
                "create_index(index[row * tile], 0, tile)",
                f"muls(index[row * tile], index[row * tile], {4 * form.across.stride}, tile)",
                "adds(index[row * tile], index[row * tile], row * pitch * 4, tile)",
            ]),
        ]  # fmt: skip
    elif _moves(form):
        lines += ["create_index(index, 0, rows * pitch)", "muls(index, index, 4, rows * pitch)"]
    if _divides(form) and not form.pooling.inside:
        lines.append(f"duplicate(divisor, {float(form.pooling.divisor)}, TILE)")
    return ["with compute:", *_indented(lines)] if lines else []


def _where(form: Form) -> list[str]:
    """Which outputs the piece is, and which columns of the input they take."""
    across, down = form.across, form.down
    lines = ["at = piece % tiles * tile"]
    if form.flat:
        lines.append("top = piece // tiles * rows")
    else:
        lines += ["line = piece // tiles", "top = line % blocks * rows", "slab = line // blocks"]
    lines += [
        "n = min(tile, wide - at)",
        "m = min(rows, high - top)",
        "used = m * pitch",
        f"left = {_plus(_times('at', across.stride), -across.padding)}",
        "low = max(left, 0)",
        f"cols = min(left + {_plus(_times('(n - 1)', across.stride), across.span)}, width) - low",
        "place = align_up(low - left, 8)",
        *(["base = place - (low - left)"] if _moves(form) else []),
        f"gap = align_up(cols, {form.block})",
    ]
    if not form.flat:
        lines += [
            f"start = {_plus(_times('top', down.stride), -down.padding)}",
            "upper = max(start, 0)",
            f"lower = min(start + {_plus(_times('(m - 1)', down.stride), down.span)}, height)",
        ]
    if form.deep is not None:
        lines += ["front = slab % deep", "plane = slab // deep"]
        lines.append(f"near = {_plus(_times('front', form.deep.stride), -form.deep.padding)}")
    neutral = "-inf" if form.pooling.largest else "0.0"
    return [*lines, "with compute:", f"    duplicate(fold, {neutral}, used)"]


def _columns(form: Form) -> list[str]:
    """Load the rows of the block and fold windows from top to bottom (and front to back)."""
    if form.deep is None:
        return _rows(form, "top" if form.flat else "slab * height + upper")
    deep = form.deep
    return [
        f"for d in range({_inside(deep, 'near')}, min(near + {deep.span}, depth){_by(deep)}):",
        *_indented(_rows(form, "(plane * depth + d) * height + upper")),
    ]


def _inside(window: Window, start: str) -> str:
    """The first element of the window that starts there which is in the tensor."""
    if not window.padding:
        return start
    if window.dilation == 1:
        return f"max({start}, 0)"
    return f"{start} + ceil_div(max(-{start}, 0), {window.dilation}) * {window.dilation}"


def _by(window: Window) -> str:
    return f", {window.dilation}" if window.dilation > 1 else ""


def _rows(form: Form, first: str) -> list[str]:
    p, down = form.pooling, form.down
    count = "m" if form.flat else "lower - upper"
    source = "x_wide" if form.half else "x_in"
    join = _OPS[p.largest][1]
    lines = []
    if form.half:
        lines += [
            f"for r in range({count}):",
            '    cast(x_wide[r * gap], x_in[r * gap], "none", cols)',
        ]
    lines.append("for row in range(m):")
    if form.flat:
        lines.append(f"    {join}(fold[row * pitch + place], {source}[row * gap], cols)")
    else:
        turns = f"{_inside(down, 'begin')}, min(begin + {down.span}, height){_by(down)}"
        lines += _indented([
            f"begin = {_plus(_times('(top + row)', down.stride), -down.padding)}",
            f"for r in range({turns}):",
            f"    {join}(fold[row * pitch + place], {source}[(r - upper) * gap], cols)",
        ])  # fmt: skip
    at = f"({first}) * width + low"
    return [
        "with copy_in:",
        f"    load(x_in, {p.name}[{at}], cols, rows={count}, pitch=width)",
        "with compute:",
        *_indented(lines),
    ]


# -------------------------------------------------------------------------------------- along rows


def _across(form: Form) -> list[str]:
    if not _moves(form):
        return []
    lines = _strided(form) if form.strided else _doubled(form)
    return ["with compute:", *_indented(lines)]


def _strided(form: Form) -> list[str]:
    """One element of every window at a time."""
    across, join = form.across, _OPS[form.pooling.largest][0]
    lines = ["gather(joined, fold, index, base * 4, m * tile)"]
    if across.size > 1:
        offset = f"(base + {_times('tap', across.dilation)}) * 4"
        lines += [
            f"for tap in range(1, {across.size}):",
            f"    gather(shifted, fold, index, {offset}, m * tile)",
            f"    {join}(joined, joined, shifted, m * tile)",
        ]
    return lines


def _doubled(form: Form) -> list[str]:
    """Windows of 2, 4, 8 ... out of two of half the size, with one element more where it is odd."""
    across, join = form.across, _OPS[form.pooling.largest][0]
    base, rest = ("base + ", "used - base") if across.padding else ("", "used")
    held, size, lines = "fold", 1, list[str]()
    if across.padding:
        held = "joined"
        lines += [
            "if base > 0:",
            "    gather(joined, fold, index, base * 4, used - base)",
            "else:",
            "    muls(joined, fold, 1.0, used)",
        ]
    for source, more in _steps(across.size):
        start = held if source == "joined" else source
        offset = size * across.dilation
        begin = f"({base}{offset}) * 4" if start == "fold" else str(4 * offset)
        count = f"{rest} - {(size + more - 1) * across.dilation}"
        lines += [
            f"gather(shifted, {start}, index, {begin}, {count})",
            f"{join}(joined, {held}, shifted, {count})",
        ]
        held, size = "joined", size + more
    return lines


def _steps(size: int) -> list[tuple[str, int]]:
    """What is joined to windows of 1 to make windows of `size`: the buffer, and how many more."""
    steps, now = list[tuple[str, int]](), 1
    for bit in f"{size:b}"[1:]:
        steps.append(("joined", now))
        now *= 2
        if bit == "1":
            steps.append(("fold", 1))
            now += 1
    return steps


def _leave(form: Form) -> list[str]:
    """Divide, round, and store the rows."""
    p = form.pooling
    result = "joined" if _moves(form) else "fold"
    source = f"{result}[row * {'tile' if form.strided else 'pitch'}]"
    target = f"y_out[row * align_up(n, {form.block})]"
    last = source if form.half else target
    lines = []
    if p.inside:
        lines += _weights(form)
        lines.append(f"div({last}, {source}, weight, n)")
    elif _divides(form):
        lines.append(f"div({last}, {source}, divisor, n)")
    elif not p.largest:
        lines.append(f"muls({last}, {source}, {1.0 / p.divisor}, n)")
    elif not form.half:
        lines.append(f"muls({target}, {source}, 1.0, n)")
    if form.half:
        lines.append(f'cast({target}, {source}, "rint", n)')
    block = ["for row in range(m):", *_indented(lines)]
    at = "top" if form.flat else "slab * high + top"
    return [
        "with compute:",
        *_indented([*(_counts(form.across) if p.inside else []), *block]),
        "with copy_out:",
        f"    store(y[({at}) * wide + at], y_out, n, rows=m, pitch=wide)",
    ]


def _counts(across: Window) -> list[str]:
    """How many elements of every window along the row are in the tensor, in `ends`."""
    return [
        "create_index(begins, float(at), n)",
        f"muls(begins, begins, {float(across.stride)}, n)",
        f"adds(begins, begins, {float(-across.padding)}, n)",
        f"adds(ends, begins, {float(across.size)}, n)",
        "mins(ends, ends, float(width), n)",
        "maxs(begins, begins, 0.0, n)",
        "sub(ends, ends, begins, n)",
    ]


def _weights(form: Form) -> list[str]:
    """... and how many in all, for one row."""
    lines, terms = [], list[str]()
    if not form.flat:
        down = form.down
        lines.append(f"begin = {_plus(_times('(top + row)', down.stride), -down.padding)}")
        terms.append(f"(min(begin + {down.size}, height) - max(begin, 0))")
    if form.deep is not None:
        terms.append(f"(min(near + {form.deep.size}, depth) - max(near, 0))")
    factor = f"float({' * '.join(terms)})" if terms else "1.0"
    return [*lines, f"muls(weight, ends, {factor}, n)"]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
