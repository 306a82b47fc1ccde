"""Sums along rows of one row times another, for all pairs of rows of a token.

Rows of one side lie one after the other, and so do those of the other side: one multiplication of
all rows by the rows shifted by `s` makes the pairs (k, k + s) side by side, so a few long
instructions make all pairs. Blocks of 8 products are summed twice, which leaves one number for 64
products; those are added up over the strips of a token, and what is left of several tokens is
brought together by gathers.
"""

from __future__ import annotations

from npusmith.ir.dtypes import DType
from npusmith.plan.lattice import FOLD, Form, indented, rows_of
from npusmith.plan.mixes import Dot


def _pairs(form: Form) -> int:
    return sum(dot.output.count(form.mix) for dot in form.mix.dots)


def _shifted(dot: Dot, form: Form) -> bool:
    """Whether both sides have as many rows: then pairs are made shift by shift."""
    return dot.left.count(form.mix) == rows_of(dot, form.mix) > 1


def _folded(form: Form, rows: int | str) -> str:
    """Elements that so many rows of products leave."""
    return f"{rows} * ({form['strip']} // {FOLD})"


# ---------------------------------------------------------------------------------------- a strip


def zero_lines(form: Form) -> list[str]:
    """Before the strips of a token."""
    count = _folded(form, _pairs(form))
    target = f"{form['sums']}[{form['near']} * {_pairs(form)} * ({form['strip']} // {FOLD})]"
    return ["with compute:", f"    duplicate({target}, 0.0, {count})"]


def dot_lines(form: Form) -> list[str]:
    mix = form.mix
    if not mix.dots:
        return []
    lines, base = list[str](), 0
    for dot in mix.dots:
        lines += _shifts(form, dot, base) if _shifted(dot, form) else _rows(form, dot, base)
        base += dot.output.count(mix)
    target = f"{form['sums']}[{form['near']} * {base} * ({form['strip']} // {FOLD})]"
    return [
        *lines,
        f"sum_blocks({form['parts']}, {form['eighths']}, {base} * ({form['strip']} // 8))",
        f"accumulate_sum({target}, {form['parts']}, {_folded(form, base)})",
    ]


def _shifts(form: Form, dot: Dot, base: int) -> list[str]:
    rows, strip, shift = rows_of(dot, form.mix), form["strip"], form["shift"]
    left, right, out = (form.place[key] for key in (dot.left.name, dot.right.name, ""))
    first = f"({rows} - {shift}) * {strip}"
    return [
        f"for {shift} in range({rows}):",
        *indented([
            f"mul({out}, {left}, {right}[{shift} * {strip}], {first})",
            f"if {shift} > 0:",
            f"    mul({out}[{first}], {left}[{first}], {right}, {shift} * {strip})",
            _fold(form, rows, f"{base} + {shift} * {rows}" if base else f"{shift} * {rows}"),
        ]),
    ]  # fmt: skip


def _rows(form: Form, dot: Dot, base: int) -> list[str]:
    rows, strip, pair = rows_of(dot, form.mix), form["strip"], form["pair"]
    left, right, out = (form.place[key] for key in (dot.left.name, dot.right.name, ""))
    one = f"{left}[{form['shift']} * {strip}]" if dot.left.axes else left
    at = f"{base} + {form['shift']} * {rows}" if dot.left.axes else str(base)
    body = [
        f"for {pair} in range({rows}):",
        f"    mul({out}[{pair} * {strip}], {right}[{pair} * {strip}], {one}, {strip})",
        _fold(form, rows, at),
    ]
    if not dot.left.axes:
        return body
    return [f"for {form['shift']} in range({dot.left.count(form.mix)}):", *indented(body)]


def _fold(form: Form, rows: int, at: str) -> str:
    """Products to sums of 8, from row `at` of those on."""
    place = f"[({at}) * ({form['strip']} // 8)]" if at != "0" else ""
    return f"sum_blocks({form['eighths']}{place}, {form.place['']}, {rows} * {form['strip']})"


# --------------------------------------------------------------------------------------- a chunk


def table_lines(form: Form) -> list[str]:
    """Byte offsets for the gathers, once a core."""
    if not form.mix.dots:
        return []
    total = _pairs(form) * form.jobs
    strides, lines, base = form["strides"], list[str](), 0
    lines.append(f"create_index({strides}, 0, {total})")
    lines.append(f"muls({strides}, {strides}, {form['strip']} // {FOLD} * 4, {total})")
    for dot in form.mix.dots:
        lines += _order(form, dot, base)
        base += dot.output.count(form.mix)
    return ["with compute:", *indented(lines)]


def _order(form: Form, dot: Dot, base: int) -> list[str]:
    """Where in the totals every element of the output is, in bytes.

    Element e is that of token e // size; in it e % size is k * rows + i, whose place is
    (i - k) % rows * rows + k where pairs are made by shifts. In float32: exact, and it can floor.
    """
    size, rows = dot.output.count(form.mix), rows_of(dot, form.mix)
    table, count = f"{dot.output.name}_{form['order']}", dot.output.count(form.mix) * form.jobs
    e, k, t = form["totals"], form["picked"], form["scratch"]

    def floored(to: str, of: str, by: int) -> list[str]:
        return [
            f"adds({to}, {of}, 0.5, {count})",
            f"muls({to}, {to}, {1.0 / by!r}, {count})",
            f'cast({to}, {to}, "floor", {count})',
        ]

    lines = [f"create_index({e}, 0.0, {count})"]
    if _shifted(dot, form):
        # k = e // rows % rows, and then e becomes token * size + (i - k) % rows * rows + k
        lines += [
            *floored(t, e, rows),
            f"axpy({e}, {t}, {-float(rows)!r}, {count})",  # i
            *floored(k, t, rows),  # token
            f"axpy({t}, {k}, {-float(rows)!r}, {count})",  # k
            f"sub({e}, {e}, {t}, {count})",
            f"muls({k}, {k}, {float(size)!r}, {count})",
            f"add({k}, {k}, {t}, {count})",  # token * size + k
            *floored(t, e, rows),
            f"axpy({e}, {t}, {-float(rows)!r}, {count})",  # (i - k) % rows
            f"axpy({k}, {e}, {float(rows)!r}, {count})",
            f"muls({e}, {k}, 1.0, {count})",
        ]
    total = _pairs(form)
    lines += [
        *floored(t, e, size),
        f"axpy({e}, {t}, {float(total - size)!r}, {count})",
        f"adds({e}, {e}, {float(base)!r}, {count})",
        f"muls({e}, {e}, 4.0, {count})",
        f'cast({table}, {e}, "rint", {count})',
    ]
    return lines


def leave_lines(form: Form) -> list[str]:
    """Add up what is left of the chunk's tokens, and store it."""
    mix, w = form.mix, form.words
    if not mix.dots:
        return []
    total = f"{w['many']} * {_pairs(form)}"
    span, lane = f"{w['strip']} // {FOLD}", w["lane"]
    compute = [
        f"gather({w['totals']}, {w['sums']}, {w['strides']}, 0, {total})",
        f"for {lane} in range(1, {span}):",
        f"    gather({w['picked']}, {w['sums']}, {w['strides']}, {lane} * 4, {total})",
        f"    accumulate_sum({w['totals']}, {w['picked']}, {total})",
    ]
    out = []
    for dot in mix.dots:
        tile = dot.output
        count = f"{w['many']} * {tile.count(mix)}"
        plain = tile.dtype is DType.FLOAT32
        target = form.stored(tile) if plain else w["scratch"]
        compute.append(f"gather({target}, {w['totals']}, {tile.name}_{w['order']}, 0, {count})")
        if not plain:
            compute.append(f'cast({form.stored(tile)}, {w["scratch"]}, "rint", {count})')
        span = f"{tile.name}[{w['low']} * {tile.count(mix)}]"
        out.append(f"store({span}, {form.stored(tile)}, {count})")
    return ["with compute:", *indented(compute), "with copy_out:", *indented(out)]
