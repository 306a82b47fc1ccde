"""The lines of random modules: one row for each operation of PyTorch, by family."""

from __future__ import annotations

from collections.abc import Callable

import torch

from npusmith.train.modules.draw import FLOATS, INTEGERS, Op, Refused, Rule, State
from npusmith.train.modules.products import PRODUCTS

EXACT, ROUNDS, SHARP, CUTS = Rule.EXACT, Rule.ROUNDS, Rule.SHARP, Rule.CUTS
WHOLE = (torch.int32, torch.int64)
Write = Callable[[State], str]


def unary(*texts: str, of: str = "float") -> list[Write]:
    """Writers of functions of one variable; {v} stands for it, {s} and {t} for numbers, s < t."""

    def writer(text: str) -> Write:
        def write(g: State) -> str:
            low, high = sorted((g.scalar(), g.scalar()))
            return text.format(v=getattr(g, of)(), s=low, t=high, k=g.between(1, 4))

        return write

    return [writer(text) for text in texts]


def binary(*texts: str, of: str = "float") -> list[Write]:
    """Writers of functions of variables that broadcast: {v}, {w} and {u}."""

    def writer(text: str) -> Write:
        def write(g: State) -> str:
            v = getattr(g, of)()
            w = g.other(v)
            return text.format(v=v, w=w, u=g.other(v) if "{u}" in text else "")

        return write

    return [writer(text) for text in texts]


def along(*texts: str, of: str = "float") -> list[Write]:
    """Writers of functions along one dimension {d}, or several {ds}, kept or not by {keep}."""

    def writer(text: str) -> Write:
        def write(g: State) -> str:
            v = getattr(g, of)(1)
            return text.format(v=v, d=g.dim(v), ds=g.dims(v), keep=g.keep(), n=g.of(0, 1))

        return write

    return [writer(text) for text in texts]


def rows(family: str, rule: Rule, *writers: Write | list[Write], results: int = 1) -> list[Op]:
    flat = [w for item in writers for w in (item if isinstance(item, list) else [item])]
    return [Op(family, rule, write, results) for write in flat]


# --------------------------------------------------------------------------------------- pointwise

POINTWISE = [
    *rows(
        "pointwise", ROUNDS,
        unary(
            "torch.exp({v})", "torch.expm1({v})", "torch.tanh({v})", "torch.sigmoid({v})",
            "torch.erf({v})", "torch.sin({v})", "torch.cos({v})", "F.gelu({v})", "F.silu({v})",
            'F.gelu({v}, approximate="tanh")', "F.softplus({v})", "F.elu({v})", "F.mish({v})",
            "F.hardswish({v})", "F.hardsigmoid({v})", "F.logsigmoid({v})", "F.selu({v})",
            "F.leaky_relu({v})", "F.softsign({v})", "torch.log({v}.abs() + 0.5)",
            "torch.sqrt({v}.abs() + 0.25)", "torch.rsqrt({v}.abs() + 0.25)",
            "torch.log1p({v}.abs())", "1 / ({v}.abs() + 0.5)", "{v} ** 2", "{v} ** 3",
            "{v}.square()", "({v}.abs() + 0.5) ** {t}", "torch.atan({v})", "{v} * {s}",
            "{v} + {s}", "{s} - {v}", "{v} / {s}", "torch.log2({v}.abs() + 0.5)",
        ),
        binary(
            "{v} + {w}", "{v} - {w}", "{v} * {w}", "{v} / ({w}.abs() + 0.5)", "{v} * {w} + {u}",
            "torch.addcmul({v}, {w}, {u}, value=0.5)", "torch.lerp({v}, {w}, 0.25)",
            "torch.add({v}, {w}, alpha=2)", "({v} - {w}).square()",
            "torch.pow({v}.abs() + 0.5, {w})",
        ),
    ),
    *rows(
        "pointwise", EXACT,
        unary(
            "-{v}", "{v}.abs()", "F.relu({v})", "{v}.clamp({s}, {t})", "{v}.clamp(min={s})",
            "{v}.clamp(max={t})", "F.relu6({v})", "F.hardtanh({v})", "{v}.clone()",
        ),
        binary(
            "torch.maximum({v}, {w})", "torch.minimum({v}, {w})", "torch.fmax({v}, {w})",
        ),
    ),
    *rows(
        "pointwise", SHARP,
        unary(
            "torch.floor({v})", "torch.ceil({v})", "torch.round({v})", "torch.trunc({v})",
            "torch.sign({v})", "F.threshold({v}, {s}, {t})",
        ),
    ),
]  # fmt: skip


# ------------------------------------------------------------------------------------- comparisons


def compared(g: State) -> str:
    v, sign = g.number(), g.of("<", "<=", ">", ">=", "==", "!=")
    return f"{v} {sign} {g.of(g.other(v), str(g.scalar()), '0')}"


def where(g: State) -> str:
    mask, v = g.bool(), g.number()
    form = g.of(
        "torch.where({m}, {v}, {w})", "torch.where({m}, {v}, 0.5)", "{v}.masked_fill({m}, 2)"
    )
    return form.format(m=mask, v=v, w=g.other(v))


def fresh_where(g: State) -> str:
    v = g.float()
    return f"torch.where({g.other(v, (torch.bool,))}, {v}, {g.other(v)})"


def masked(g: State) -> str:
    v = g.float()
    return f"{v}.masked_fill({g.other(v, (torch.bool,))}, {g.of('0.0', '-2.0', '1.5')})"


def both(g: State) -> str:
    v = g.bool()
    sign = g.of("&", "|", "^")
    return f"{v} {sign} {g.other(v)}"


COMPARISONS = [
    *rows("comparisons", SHARP, compared, compared, compared, both),
    *rows("comparisons", SHARP, unary("~{v}", "torch.logical_not({v})", of="bool")),
    *rows("comparisons", SHARP, unary("torch.isnan({v})", "torch.isfinite({v})")),
    *rows(
        "comparisons", SHARP, binary("torch.logical_and({v}, {w})", "torch.logical_xor({v}, {w})")
    ),
    *rows("comparisons", EXACT, where, where, fresh_where, masked),
]


# ------------------------------------------------------------------------------ casts and integers


def narrowed(g: State) -> str:
    return f"{g.any()}.to({g.of(*FLOATS)})"


def to_whole(g: State) -> str:
    return f"{g.any()}.to({g.of(*INTEGERS, torch.bool)})"


CASTS = [*rows("casts", EXACT, narrowed), *rows("casts", SHARP, to_whole)]


def shifted(g: State) -> str:
    v = g.integer()
    return f"{v} {g.of('<<', '>>')} {g.between(0, 5)}"


def floored(g: State) -> str:
    return (
        f"torch.div({g.float()}, {g.of(0.5, 0.25, 2.0)}, rounding_mode={g.of('floor', 'trunc')!r})"
    )


INTEGER = [
    *rows(
        "integers", EXACT,
        binary(
            "{v} + {w}", "{v} - {w}", "{v} * {w}", "{v} // ({w}.abs() + 1)", "{v} & {w}",
            "{v} % ({w}.abs() + 1)", "torch.fmod({v}, {w}.abs() + 1)", "{v} | {w}", "{v} ^ {w}",
            'torch.div({v}, {w}.abs() + 1, rounding_mode="trunc")', "torch.maximum({v}, {w})",
            "torch.minimum({v}, {w})",
            of="integer",
        ),
        unary(
            "-{v}", "{v}.abs()", "~{v}", "{v}.clamp(-3, 5)", "{v} // 3", "{v} % 5", "{v} * 3 + 1",
            "{v} // -2", "{v} & 7", "torch.sign({v})", "{v} ** 2",
            "2 ** ({v} & 7)", "{v} ** ({v} & 3)",
            of="integer",
        ),
        shifted,
    ),
    *rows("integers", ROUNDS, unary("{v} / 4", "{v} / 3", "{v} * 0.5", of="integer")),
    *rows("integers", SHARP, floored),
    *rows("integers", CUTS, unary("torch.remainder({v}, 1.5)", "torch.fmod({v}, 0.75)")),
]  # fmt: skip


# -------------------------------------------------------------------- reductions, norms and scans


def product(g: State) -> str:
    v = g.float(1)
    d = g.dim(v)
    if g.size(v, d) > 40:
        raise Refused
    return f"{v}.prod({d}{g.keep()})"


REDUCTIONS = [
    *rows(
        "reductions", ROUNDS,
        along(
            "{v}.sum({ds}{keep})", "{v}.sum({ds}{keep})", "{v}.mean({ds}{keep})",
            "{v}.var({ds}, correction={n}{keep})", "{v}.std({ds}, correction={n}{keep})",
            "torch.logsumexp({v}, {ds}{keep})", "torch.linalg.vector_norm({v}, 2, {ds}{keep})",
            "torch.linalg.vector_norm({v}, 1, {ds}{keep})", "{v}.norm(dim={d}{keep})",
            "{v}.abs().sum({d})", "{v}.square().mean({ds}{keep})",
        ),
        unary("{v}.sum()", "{v}.mean()"),
        product,
    ),
    *rows(
        "reductions", EXACT,
        along(
            "{v}.amax({ds}{keep})", "{v}.amin({ds}{keep})", "{v}.max({d}{keep})[0]",
            "{v}.min({d}{keep}).values",
        ),
        along("{v}.sum({ds}{keep})", "{v}.amax({ds}{keep})", "{v}.prod({d})", of="integer"),
        unary("{v}.max()", "{v}.min()"),
    ),
    *rows(
        "reductions", SHARP,
        along(
            "{v}.argmax({d}{keep})", "{v}.argmin({d}{keep})", "torch.count_nonzero({v}, {d})",
            "({v} > 0).any({d}{keep})", "({v} > -1).all({d}{keep})", "({v} > 0).sum({ds})",
        ),
        along("{v}.any({d})", "{v}.all({d})", "{v}.argmax({d}{keep})", of="integer"),
    ),
    *rows("reductions", SHARP, along("torch.max({v}, {d}{keep})", "{v}.min({d})"), results=2),
]  # fmt: skip


def layer_norm(g: State) -> str:
    v = g.float(1)
    dtype = g.values[v].dtype
    shape = tuple(g.values[v].shape[-g.between(1, min(2, g.rank(v))) :])
    if g.of(True, False):
        return f"F.layer_norm({v}, {shape})"
    return f"F.layer_norm({v}, {shape}, {g.parameter(shape, dtype)}, {g.parameter(shape, dtype)})"


def group_norm(g: State) -> str:
    v = g.float(2)
    channels = g.size(v, 1)
    groups = g.of(*[n for n in range(1, channels + 1) if channels % n == 0])
    shape, dtype = (channels,), g.values[v].dtype
    if g.of(True, False):
        return f"F.group_norm({v}, {groups})"
    return f"F.group_norm({v}, {groups}, {g.parameter(shape, dtype)}, {g.parameter(shape, dtype)})"


def rms_norm(g: State) -> str:
    v = g.float(1)
    d = g.dim(v)
    scaled = f"{v} * torch.rsqrt({v}.square().mean({d}, keepdim=True) + 0.125)"
    return scaled if g.of(True, False) else f"{scaled} * {g.other(v)}"


NORMS = [
    *rows(
        "norms", ROUNDS,
        along(
            "F.softmax({v}, {d})", "F.log_softmax({v}, {d})", "{v} - {v}.mean({ds}, keepdim=True)",
            "{v} - {v}.amax({ds}, keepdim=True)", "F.normalize({v}, dim={d})",
            "({v} - {v}.mean({d}, keepdim=True)) / ({v}.std({d}, keepdim=True) + 0.5)",
            "{v} / ({v}.abs().sum({ds}, keepdim=True) + 0.5)", "F.softmin({v}, {d})",
            "{v} * ({v}.amax({ds}, keepdim=True) - {v})",
        ),
        layer_norm, layer_norm, group_norm, rms_norm,
    ),
]  # fmt: skip

SCANS = [
    *rows(
        "scans", ROUNDS,
        along(
            "{v}.cumsum({d})", "{v}.cumsum({d})", "(1 + {v} / 16).cumprod({d})",
            "{v}.flip({d}).cumsum({d}).flip({d})", "torch.logcumsumexp({v}, {d})",
            "{v}.cumsum({d}) - {v}",
        ),
    ),
    *rows("scans", EXACT, along("{v}.cummax({d})[0]", "{v}.cummin({d}).values")),
    *rows("scans", EXACT, along("{v}.cumsum({d})", "{v}.cummax({d})[0]", of="integer")),
]  # fmt: skip


# ------------------------------------------------------------------------------------------- moves


def sliced(g: State) -> str:
    v = g.any(1)
    parts = []
    for _ in range(g.rank(v)):
        low = g.of("", "", "1", "2", "-3")
        parts.append(
            g.of(":", ":", f"{low}:", f"{low}:-1", f"{low}::2", "::3", f":{g.between(1, 5)}")
        )
    return f"{v}[{', '.join(parts)}]"


def selected(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    return f"{v}.select({d}, {g.of(0, -1, g.between(0, g.size(v, d) - 1))})"


def narrow(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    start = g.between(0, g.size(v, d) - 1)
    return f"{v}.narrow({d}, {start}, {g.between(1, g.size(v, d) - start)})"


def split(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    size = g.size(v, d)
    half = g.between((size + 1) // 2, size - 1)
    return f"{v}.{g.of(f'split({half}, {d})', f'chunk(2, {d})', f'tensor_split(2, {d})')}"


def cat(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    shape = list(g.values[v].shape)
    if g.of(True, False):
        w = g.pick(lambda x: x.shape == g.values[v].shape and x.dtype == g.values[v].dtype)
    else:
        shape[d] = g.between(1, 6)
        w = g.input(tuple(shape), g.draw_of(g.values[v].dtype))
    return f"torch.cat([{v}, {w}], {d})"


def stack(g: State) -> str:
    v = g.any()
    like = g.values[v]
    w = g.pick(lambda x: x.shape == like.shape and x.dtype == like.dtype, latest=False)
    u = g.of(f"{v}, {w}", f"{w}, {v}, {v}")
    return f"torch.stack([{u}], {g.between(-like.dim() - 1, like.dim())})"


def padded(g: State) -> str:
    v = g.number(1)
    sides = [g.between(-1, 3) for _ in range(2 * g.between(1, min(3, g.rank(v))))]
    return f"F.pad({v}, {tuple(sides)}{g.of('', ', value=1.5')})"


def padded_by_itself(g: State) -> str:
    v = g.float(2)
    count = g.between(1, min(2, g.rank(v) - 1))
    sides = tuple(g.between(0, 2) for _ in range(2 * count))
    return f"F.pad({v}, {sides}, mode={g.of('reflect', 'replicate', 'circular')!r})"


def rolled(g: State) -> str:
    v = g.any(1)
    return f"torch.roll({v}, {g.of(1, -1, 2, 5)}, {g.dim(v)})"


def flipped(g: State) -> str:
    v = g.any(1)
    return f"{v}.flip({g.dims(v)})"


def permuted(g: State) -> str:
    v = g.any(2)
    order = list(range(g.rank(v)))
    g.random.shuffle(order)
    return f"{v}.{g.of(f'permute({tuple(order)})', f'transpose({g.dim(v)}, {g.dim(v)})')}"


def reshaped(g: State) -> str:
    v = g.any(1)
    rank = g.rank(v)
    start = g.between(0, rank - 1)
    form = g.of("flatten", "all", "lead", "numbers", "squeeze", "unsqueeze")
    if form == "flatten":
        return f"{v}.flatten({start}, {g.between(start, rank - 1)})"
    if form == "all":
        return f"{v}.reshape(-1)"
    if form == "lead":
        return f"{v}.reshape({v}.shape[0], -1)"
    if form == "squeeze":
        return f"{v}.squeeze()"
    if form == "unsqueeze":
        return f"{v}.unsqueeze({g.between(-rank - 1, rank)})"
    return f"{v}.reshape({factors(g, g.values[v].numel())})"


def factors(g: State, count: int) -> str:
    """Two or three numbers with that product, one of them left to PyTorch."""
    first = g.of(*[n for n in range(1, count + 1) if count % n == 0]) if count else 1
    return g.of(f"{first}, -1", f"-1, {max(first, 1)}")


def unflattened(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    size = g.size(v, d)
    first = g.of(*[n for n in range(2, size + 1) if size % n == 0] or [1])
    return f"{v}.unflatten({d}, {g.of((first, -1), (-1, first))})"


def windowed(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    return f"{v}.unfold({d}, {g.between(1, min(4, g.size(v, d)))}, {g.between(1, 3)})"


def shuffled(g: State) -> str:
    v = g.float(3)
    return f"F.pixel_{g.of('shuffle', 'unshuffle')}({v}, {g.of(2, 3)})"


def expanded(g: State) -> str:
    v = g.any()
    lead = g.of("", f"{g.between(2, 4)}, ")
    shape = ", ".join("-1" if n != 1 else str(g.between(1, 5)) for n in g.values[v].shape)
    return f"{v}.expand({lead}{shape})" if lead or shape else f"{v}.expand(3)"


def repeated(g: State) -> str:
    v = g.any(1)
    times = tuple(g.of(1, 1, 2, 3) for _ in range(g.rank(v) + g.of(0, 0, 1)))
    d = g.dim(v)
    return f"{v}.{g.of(f'repeat{times}', f'repeat_interleave({g.between(2, 3)}, {d})')}"


def triangle(g: State) -> str:
    return f"torch.{g.of('tril', 'triu')}({g.any(2)}, {g.between(-2, 2)})"


def diagonal(g: State) -> str:
    v = g.any(2)
    return f"torch.diagonal({v}, {g.between(-1, 1)}, {g.dim(v)}, {g.dim(v)})"


def counted(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    return g.of(
        f"torch.arange({v}.shape[{d}])", f"torch.arange({v}.shape[{d}], dtype=torch.float32)",
        f"torch.full_like({v}, 2)", f"torch.ones_like({v})", f"torch.zeros({v}.shape[{d}], 3)",
        f"torch.arange({v}.shape[{d}]) * 2",
    )  # fmt: skip


MOVES = rows(
    "moves", EXACT, sliced, sliced, selected, narrow, cat, cat, stack, padded, padded,
    padded_by_itself, rolled, flipped, permuted, permuted, reshaped, reshaped, unflattened,
    windowed, shuffled, expanded, repeated, triangle, diagonal, counted,
) + rows("moves", EXACT, split, results=2)  # fmt: skip


# ---------------------------------------------------------------------------------------- indexing


def gathered(g: State) -> str:
    v = g.number(1)
    d = g.dim(v)
    shape = list(g.values[v].shape)
    shape[d] = g.between(1, 6)
    index = g.index(g.size(v, d), tuple(shape))
    form = g.of("torch.gather({v}, {d}, {i})", "torch.take_along_dim({v}, {i}, {d})")
    return form.format(v=v, d=d, i=index)


def picked(g: State) -> str:
    v = g.any(1)
    d = g.dim(v)
    return f"{v}.index_select({d}, {g.index(g.size(v, d), (g.between(1, 9),))})"


def embedded(g: State) -> str:
    v = g.pick(lambda x: x.dim() == 2 and x.is_floating_point())
    shape = g.of((g.between(1, 9),), (2, g.between(1, 7)))
    return f"F.embedding({g.index(g.size(v, 0), shape)}, {v})"


def indexed(g: State) -> str:
    v = g.any(1)
    index = g.index(g.size(v, 0), g.of((g.between(1, 9),), (g.between(1, 3), g.between(1, 4))))
    if g.rank(v) == 1 or g.of(True, False):
        return f"{v}[{index}]"
    return f"{v}[:, {g.index(g.size(v, 1), (g.between(1, 7),))}]"


def ordered(g: State) -> tuple[str, int, str, str]:
    """A variable, a dimension, values for some of its rows, and different places for them."""
    v = g.float(1)
    d = g.dim(v)
    shape = list(g.values[v].shape)
    shape[d] = g.between(1, min(5, shape[d]))
    values = g.input(tuple(shape), g.draw_of(g.values[v].dtype))
    return v, d, values, g.order(tuple(shape), d)


def scattered(g: State) -> str:
    v, d, values, places = ordered(g)
    return f"{v}.scatter({d}, {places}, {values})"


def scatter_added(g: State) -> str:
    v = g.float(1)
    d = g.dim(v)
    shape = list(g.values[v].shape)
    shape[d] = g.between(1, 6)
    values = g.input(tuple(shape), g.draw_of(g.values[v].dtype))
    index = g.index(g.size(v, d), tuple(shape))
    reduce = g.of("sum", "amax", "amin", "mean")
    form = g.of(
        f"scatter_add({d}, {index}, {values})",
        f"scatter_reduce({d}, {index}, {values}, {reduce!r})",
    )
    return f"{v}.{form}"


def index_added(g: State) -> str:
    v = g.float(1)
    d = g.dim(v)
    shape = list(g.values[v].shape)
    shape[d] = g.between(1, 6)
    values = g.input(tuple(shape), g.draw_of(g.values[v].dtype))
    return f"{v}.index_add({d}, {g.index(g.size(v, d), (shape[d],))}, {values})"


def index_put(g: State) -> str:
    v = g.float(1)
    count = g.between(1, min(5, g.size(v, 0)))
    values = g.input((count, *g.values[v].shape[1:]), g.draw_of(g.values[v].dtype))
    return f"{v}.index_put(({g.order((count,), 0)},), {values})"


def index_copied(g: State) -> str:
    v = g.float(1)
    count = g.between(1, min(5, g.size(v, 0)))
    values = g.input((count, *g.values[v].shape[1:]), g.draw_of(g.values[v].dtype))
    return f"{v}.index_copy(0, {g.order((count,), 0)}, {values})"


def one_hot(g: State) -> str:
    below = g.between(2, 12)
    return f"F.one_hot({g.index(below, g.shape(1)[-2:])}, {below})"


INDEXING = [
    *rows("indexing", EXACT, gathered, gathered, picked, picked, embedded, indexed, indexed),
    *rows("indexing", EXACT, scattered, index_put, index_copied, one_hot),
    *rows("indexing", ROUNDS, scatter_added, scatter_added, index_added),
]


# -------------------------------------------------------------------------------- pooling, sorting


def pooled(kind: str) -> Write:
    def write(g: State) -> str:
        n = g.of(1, 2, 2)
        v = g.float(n + 1)
        if g.rank(v) > n + 2:
            raise Refused
        if g.of(0, 0, 1):
            sizes = tuple(g.between(1, 4) for _ in range(n))
            return f"F.adaptive_{kind}_pool{n}d({v}, {sizes if n > 1 else sizes[0]})"
        size, step = g.between(1, 4), g.between(1, 3)
        pad = g.between(0, size // 2)
        ceil = g.of("", ", ceil_mode=True")
        more = ", count_include_pad=False" if kind == "avg" and g.of(True, False) else ""
        return f"F.{kind}_pool{n}d({v}, {size}, {step}, {pad}{ceil}{more})"

    return write


def resized(g: State) -> str:
    v = g.float(3)
    rank = g.rank(v) - 2
    if rank > 3 or any(g.size(v, 2 + i) == 0 for i in range(rank)):
        raise Refused
    smooth = ("linear", "bilinear", "trilinear")[rank - 1]
    mode = g.of("nearest", "nearest-exact", "area", smooth, smooth, *["bicubic"] * (rank == 2))
    size = tuple(g.between(1, 9) for _ in range(rank))
    to = g.of(f"scale_factor={g.of(2, 3, 1.5)}", f"size={size}")
    more = ", align_corners=True" if mode in (smooth, "bicubic") and g.of(True, False) else ""
    return f"F.interpolate({v}, {to}, mode={mode!r}{more})"


def sampled(g: State) -> str:
    """Places that are not rounded: samples jump where a place is on an edge."""
    v = g.float(4)
    if g.rank(v) != 4 or g.size(v, 0) == 0 or 0 in (g.size(v, 2), g.size(v, 3)):
        raise Refused
    high, wide = g.between(1, 6), g.between(1, 7)
    count = g.size(v, 0) * high * wide * 2
    places = f"torch.arange({count}, dtype={v}.dtype).mul(0.37).frac().mul(2.5).sub(1.25)"
    grid = f"{places}.view({g.size(v, 0)}, {high}, {wide}, 2)"
    mode, padding = g.of("bilinear", "bicubic"), g.of("zeros", "border", "reflection")
    align = g.of(True, False)
    return (
        f"F.grid_sample({v}, {grid}, mode={mode!r}, padding_mode={padding!r}, "
        f"align_corners={align})"
    )


POOLING = [
    *rows("pooling", EXACT, pooled("max"), pooled("max")),
    *rows("pooling", ROUNDS, pooled("avg"), pooled("avg"), resized, resized, sampled),
]


def ranked(g: State) -> str:
    v = g.number(1)
    d = g.dim(v)
    return f"torch.topk({v}, {g.between(1, min(8, g.size(v, d)))}, {d})[0]"


SORTING = [
    *rows("sorting", EXACT, ranked, ranked),
    *rows("sorting", EXACT, along("{v}.sort({d})[0]", "{v}.sort({d}, descending=True)[0]")),
    *rows("sorting", SHARP, along("torch.argsort({v}, dim={d}, stable=True)")),
    *rows("sorting", SHARP, along("torch.sort({v}, dim={d}, stable=True)"), results=2),
    *rows("sorting", EXACT, along("{v}.sort({d})[0]", of="integer")),
]

TABLE = (
    *POINTWISE, *COMPARISONS, *CASTS, *INTEGER, *REDUCTIONS, *NORMS, *SCANS, *MOVES, *INDEXING,
    *POOLING, *SORTING, *PRODUCTS,
)  # fmt: skip
FAMILIES = tuple(dict.fromkeys(op.family for op in TABLE))
