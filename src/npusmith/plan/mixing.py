"""Mix -> program text: rows of a token stay on chip while small matrices go over them.

A job is one strip (some elements of every row) of one token; with dots it is all strips of a token.
The numbers of several jobs are loaded at once and enter vector operations as scalars. Every row is
loaded once and every output stored once, which is the least traffic that the operator can have.
The sums of rows times rows are in dots.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.plan.dots import dot_lines, leave_lines, table_lines, zero_lines
from npusmith.plan.lattice import Form, fit, indented
from npusmith.plan.mixes import Blend, Mix, Term, Tile
from npusmith.plan.scalars import product
from npusmith.plan.space import Space

_SHORTEST = 256  # elements: a strip is not cut below, even where cores are left without work


def write_mix(
    space: Space, mix: Mix, name: str, room: int, taken: Iterable[str]
) -> tuple[Program, str] | None:
    """The program, with buffers of at most `room` bytes; None where not even short strips fit.

    It is right where the host variable that comes with it is 1: there the short axes have their
    captured sizes.
    """
    form = fit(mix, name, room, set(taken))
    if form is None:
        return None
    text = "\n".join((*_host(form, space), "", "", *_kernel(form), ""))
    return parse(text, f"{name}.tile.py"), form["fits"]


# ------------------------------------------------------------------------------------------- host


def _host(form: Form, space: Space) -> list[str]:
    mix, w = form.mix, form.words
    tokens = show_expr(product(space.groups[group].size for group in mix.tokens))
    tests = [f"{show_expr(space.groups[axis].size)} == {size}" for axis, size in mix.short.items()]
    tests += [f"{show_expr(space.groups[axis].size)} == 1" for axis in mix.single]
    lines = [
        f"{w['fits']} = 1 if {' and '.join(tests)} else 0",
        f"{w['tokens']} = {tokens}",
        f"{w['length']} = {show_expr(space.groups[mix.last].size)}",
        f"{w['spread']} = {_spread(form)}",
        f"{w['strip']} = align_up(ceil_div(max({w['length']}, 1), {w['spread']}), {form.step})",
        f"{w['strips']} = ceil_div({w['length']}, {w['strip']})",
        f"{w['jobs']} = {w['tokens']}" + ("" if mix.dots else f" * {w['strips']}"),
        f"cores = max(1, min({w['jobs']}, chip.vector_cores))",
        f"{w['jobs_per_core']} = ceil_div({w['jobs']}, cores)",
    ]
    given = ", ".join(f"{name}={name}" for name in _parameters(form))
    lines.append(f"launch({form.name}, cores, {given})")
    tensors = [tile.name for tile in (*mix.inputs, *mix.outputs)]
    return ["@host", f"def host({', '.join(tensors)}):", *indented(lines)]


def _spread(form: Form) -> str:
    """Strips of a row: as few as fit, more where cores would have none."""
    w = form.words
    fewest = f"ceil_div(max({w['length']}, 1), {form.strip})"
    if form.mix.dots:
        return fewest
    fair = f"ceil_div(chip.vector_cores, max({w['tokens']}, 1))"
    return f"max({fewest}, min({fair}, ceil_div(max({w['length']}, 1), {_SHORTEST})))"


def _parameters(form: Form) -> tuple[str, ...]:
    words = ("fits", "length", "strip", "strips", "jobs", "jobs_per_core")
    return tuple(form[word] for word in words if word != "strips" or not form.mix.dots)


# ----------------------------------------------------------------------------------------- kernel


def _kernel(form: Form) -> list[str]:
    mix, w = form.mix, form.words
    tensors = [f"{tile.name}: input({tile.dtype.value})" for tile in mix.inputs]
    tensors += [f"{tile.name}: output({tile.dtype.value})" for tile in mix.outputs]
    scalars = [f"{name}: int" for name in _parameters(form)]
    buffers = form.buffers.items()
    return [
        "@kernel",
        f"def {form.name}({', '.join([*tensors, *scalars])}):",
        *indented([
            *(f"{name} = ub({buffer.length}, {buffer.dtype.value})" for name, buffer in buffers),
            *table_lines(form),
            f"{w['head']} = core_id() * {w['jobs_per_core']}",
            f"{w['stop']} = min({w['head']} + {w['jobs_per_core']}, {w['jobs']})",
            f"for {w['start']} in range({w['head']}, {w['stop']}, {form.jobs}):",
            *indented(_chunk(form)),
        ]),
    ]  # fmt: skip


def _chunk(form: Form) -> list[str]:
    """Jobs whose numbers are loaded together."""
    w = form.words
    lines = [f"{w['end']} = min({w['start']} + {form.jobs}, {w['stop']})"]
    if form.mix.dots:
        lines.append(f"{w['low']} = {w['start']}")
        lines.append(f"{w['many']} = {w['end']} - {w['low']}")
    else:
        lines.append(f"{w['low']} = {w['start']} // {w['strips']}")
        lines.append(f"{w['many']} = ({w['end']} - 1) // {w['strips']} - {w['low']} + 1")
    lines += _numbers(form)
    lines += [f"for {w['job']} in range({w['start']}, {w['end']}):", *indented(_job(form))]
    return [*lines, *leave_lines(form)]


def _numbers(form: Form) -> list[str]:
    """Load the numbers of a chunk; a bfloat16 is no scalar, so 16-bit ones are converted."""
    mix, w = form.mix, form.words
    if not mix.numbers:
        return []
    lines = ["with copy_in:"]
    for tile in mix.numbers:
        count = tile.count(mix)
        span = f"{tile.name}[{w['low']} * {count}]"
        lines.append(f"    load({form.loaded(tile)}, {span}, {w['many']} * {count})")
    casts = [
        f'cast({form.numbers(t)}, {form.loaded(t)}, "none", {w["many"]} * {t.count(mix)})'
        for t in mix.numbers
        if t.dtype is not DType.FLOAT32
    ]
    return [*lines, *(["with compute:", *indented(casts)] if casts else [])]


def _job(form: Form) -> list[str]:
    w = form.words
    if not form.mix.dots:
        return [
            f"{w['token']} = {w['job']} // {w['strips']}",
            f"{w['place']} = {w['job']} % {w['strips']} * {w['strip']}",
            f"{w['near']} = {w['token']} - {w['low']}",
            *_strip(form),
        ]
    return [
        f"{w['token']} = {w['job']}",
        f"{w['near']} = {w['token']} - {w['low']}",
        *zero_lines(form),
        f"for {w['place']} in range(0, {w['length']}, {w['strip']}):",
        *indented(_strip(form)),
    ]


def _strip(form: Form) -> list[str]:
    """Stages of one strip.

    A stage holds what it loads and stores from its start to its end, so stages are short.

    Then one buffer is enough: rows are converted first, and the next ones are loaded beside
    everything that follows.
    """
    mix, w = form.mix, form.words
    sources = [tile for tile in mix.rows if form.blended(tile)]
    others = [tile for tile in mix.rows if not form.blended(tile)]
    return [
        f"{w['m']} = min({w['strip']}, {w['length']} - {w['place']})",
        *_stage("copy_in", [_copy(form, tile, True) for tile in sources]),
        *_stage("copy_in", [_copy(form, tile, True) for tile in others]),
        *_stage("compute", _widened(form, sources)),
        *_stage("compute", _blends(form)),
        *_stage("compute", [line for blend in mix.blends for line in _rounded(form, blend.output)]),
        *_stage("copy_out", [_copy(form, blend.output, False) for blend in mix.blends]),
        *_stage("compute", _widened(form, others)),
        *_stage("compute", dot_lines(form)),
    ]


def _stage(kind: str, lines: list[str]) -> list[str]:
    return [f"with {kind}:", *indented(lines)] if lines else []


def _blends(form: Form) -> list[str]:
    started: set[str] = set()
    return [line for tile in _sorted_rows(form.mix) for line in _outward(form, tile, started)]


def _copy(form: Form, tile: Tile, inward: bool) -> str:
    w, count = form.words, tile.count(form.mix)
    rows = f"{w['token']} * {count}" if count > 1 else w["token"]
    span = f"{tile.name}[{rows} * {w['length']} + {w['place']}]"
    more = f", rows={count}, pitch={w['length']}" if count > 1 else ""
    if inward:
        return f"load({form.loaded(tile)}, {span}, {w['m']}{more})"
    return f"store({span}, {form.stored(tile)}, {w['m']}{more})"


# ------------------------------------------------------------------------------------ conversions


def _widened(form: Form, tiles: list[Tile]) -> list[str]:
    """Loaded rows as float32: in one go where rows lie alike on both sides."""
    return [line for tile in tiles if tile.name in form.place for line in _wider(form, tile)]


def _wider(form: Form, tile: Tile) -> list[str]:
    target, source = form.place[tile.name], form.loaded(tile)
    mode, name = ('"none"', "cast") if tile.dtype is not DType.FLOAT32 else ("1.0", "muls")
    index = {axis: form.var(axis) for axis in tile.axes}
    row = (
        f"{name}({target}{form.at(tile, index, form.pitch)}, "
        f"{source}{form.at(tile, index, form.loaded_pitch(tile))}, {mode}, {form['m']})"
    )
    count = tile.count(form.mix)
    loop = form.loops(tile.axes, [row])
    if form.mix.dots:  # what a strip lacks is zero
        loop.insert(0, f"duplicate({target}, 0.0, {count} * {form.pitch})")
    return [
        f"if {_alike(form)}:",
        f"    {name}({target}, {source}, {mode}, {count} * {form['m']})",
        "else:",
        *indented(loop),
    ]


def _alike(form: Form) -> str:
    """Whether rows are as far apart on chip in any type."""
    if form.mix.dots:
        return f"{form['m']} == {form['strip']}"
    return f"{form['m']} % {form.step} == 0"


def _rounded(form: Form, tile: Tile) -> list[str]:
    if tile.dtype is DType.FLOAT32:
        return []
    index = {axis: form.var(axis) for axis in tile.axes}
    target, source = form.stored(tile), form.place[tile.name]
    row = (
        f"cast({target}{form.at(tile, index, form.loaded_pitch(tile))}, "
        f'{source}{form.at(tile, index, form.pitch)}, "rint", {form["m"]})'
    )
    return [
        f"if {_alike(form)}:",
        f'    cast({target}, {source}, "rint", {tile.count(form.mix)} * {form["m"]})',
        "else:",
        *indented(form.loops(tile.axes, [row])),
    ]


# ----------------------------------------------------------------------------------------- blends


def _sorted_rows(mix: Mix) -> list[Tile]:
    """Rows by the terms that they are in: those that start an output without a sum come first."""
    found: dict[str, Tile] = {}
    for summed in (False, True):
        for blend in mix.blends:
            for term in blend.terms:
                over = not set(term.row.axes) <= set(blend.output.axes)
                if over is summed:
                    found.setdefault(term.row.name, term.row)
    return list(found.values())


def _outward(form: Form, row: Tile, started: set[str]) -> list[str]:
    """Every row of one input goes into all outputs that it has a part in."""
    work = [(b, t) for b in form.mix.blends for t in b.terms if t.row.name == row.name]
    summed = [
        b.output
        for b, _ in work
        if b.output.name not in started and not set(row.axes) <= set(b.output.axes)
    ]
    index = {axis: form.var(axis) for axis in row.axes}
    lines: list[str] = []
    first = 0
    if summed and len(row.axes) == 1:
        # the first row is what the sum starts with
        lines, first = _turn(form, work, {row.axes[0]: "0"}, started), 1
    elif summed:
        lines = [_zeroed(form, tile) for tile in summed]
        started |= {tile.name for tile in summed}
    if first:
        started |= {b.output.name for b, _ in work}
    lines += form.loops(row.axes, _turn(form, work, index, started), first)
    started |= {b.output.name for b, _ in work}
    return lines


def _turn(
    form: Form, work: list[tuple[Blend, Term]], index: Mapping[int, str], started: set[str]
) -> list[str]:
    """One row into the outputs."""
    lines: list[str] = []
    begun = set(started)
    # single rows first: then one barrier a turn serves them and the loops that follow
    for blend, term in sorted(work, key=lambda item: len(item[0].output.axes)):
        out = blend.output
        more = tuple(axis for axis in out.axes if axis not in term.row.axes)
        at = {**index, **{axis: form.var(axis) for axis in more}}
        target, source = form.row(out, at, output=True), form.row(term.row, at)
        name = "axpy" if out.name in begun else "muls"
        scalar, count = _scalar(form, term, at), form.count
        lines += form.loops(more, [f"{name}({target}, {source}, {scalar}, {count})"])
        begun.add(out.name)
    return lines


def _scalar(form: Form, term: Term, index: Mapping[int, str]) -> str:
    parts = [form.number(tile, index) for tile in term.numbers]
    if term.factor != 1.0 or not parts:
        parts.append(repr(float(term.factor)))
    return " * ".join(parts)


def _zeroed(form: Form, tile: Tile) -> str:
    buffer = form.place.get(tile.name, form.stored(tile))
    pitch = form.pitch if tile.name in form.place else form.loaded_pitch(tile)
    return f"duplicate({buffer}, 0.0, {tile.count(form.mix)} * {pitch})"
