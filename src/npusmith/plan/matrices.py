"""Space -> program text for small matrices: a few numbers for each of many tokens.

With tensors of tokens x 4 x 4 no axis is long enough for a vector. Here the tokens are: an element
of the matrix is a row of as many lanes as there are tokens in a job, brought together by gathers
when it is loaded and taken apart when it is stored. Sums over rows or columns of the matrix are
additions of whole rows then. What repeats, as the turns of a Sinkhorn normalization do, becomes a
loop.

Sizes of the matrix have to be numbers in the model (`x.view(..., 4, 4)`). What the graph cannot
say for certain is tested on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Binary, BinOp, Const, Dim, Program
from npusmith.ir.text import show_expr
from npusmith.lang import parse
from npusmith.plan.dag import Kind, Value
from npusmith.plan.lattice import indented
from npusmith.plan.mixes import FLOATS, evaluate
from npusmith.plan.products import SHORT
from npusmith.plan.scalars import product
from npusmith.plan.space import Space

_STEP = 64  # lanes: one vector repeat
_MOST = 2048
_PAIRS = {"add": "adds", "mul": "muls", "max": "maxs", "min": "mins"}
_ALONE = frozenset({"exp", "ln", "sqrt", "abs"})
_NEUTRAL = {"sum": "0.0", "max": "-inf", "min": "inf"}
_JOIN = {"sum": "add", "max": "max", "min": "min"}

Axes = tuple[int, ...]
Names = Mapping[Value, str]


@dataclass(frozen=True, slots=True)
class _Step:
    """One value computed: what it reads, and its lines once buffers have names."""

    value: Value
    reads: tuple[Value, ...]
    lines: Callable[[Names], list[str]]
    in_place: bool = False  # the result may take the buffer of what it reads


@dataclass(slots=True)
class _Form:
    space: Space
    tokens: Axes
    sizes: dict[int, int]  # of the short groups
    outputs: tuple[str, ...]
    name: str
    tests: list[str]  # what has to be so on the host
    alone: bool
    words: dict[str, str] = field(default_factory=dict)

    def axes(self, value: Value) -> Axes:
        """The short groups that a value runs along."""
        return tuple(sorted(axis for axis in self.space.axes(value) if axis in self.sizes))

    def rows(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def __getitem__(self, word: str) -> str:
        return self.words[word]


class _Other(Exception):
    """The graph is something else."""


def write_matrices(
    space: Space, outputs: Sequence[str], name: str, room: int, taken: Iterable[str], alone: bool
) -> tuple[Program, str] | None:
    """The program for a graph of small matrices, or None where it is something else.

    With it comes the host variable that is 1 where the program is right, or "" where it always is.
    With `alone`, there is no other program: the host function fails where that one would be 0.
    """
    form = _form(space, outputs, name, set(taken), alone)
    if form is None:
        return None
    try:
        steps = _steps(form)
    except _Other:
        return None
    buffers, rows = _allocate(form, steps)
    each = sum(4 * count for count in rows.values()) + _copied(form)
    lanes = min((room - _tables(form) - 1024) // each // _STEP * _STEP, _MOST)
    if lanes < _STEP:
        return None
    text = "\n".join((*_host(form, lanes), "", "", *_kernel(form, steps, buffers, rows, lanes), ""))
    return parse(text, f"{name}.tile.py"), form["fits"] if form.tests else ""


# ------------------------------------------------------------------------------------ recognition


def _form(
    space: Space, outputs: Sequence[str], name: str, taken: set[str], alone: bool
) -> _Form | None:
    tensors = [item.groups for item in space.inputs] + [out.groups for out in space.outputs]
    shapes = {item.name: item.item.shape for item in space.inputs}
    if space.last < 1 or not all(tensors) or len(space.groups) > space.last + 1:
        return None
    short = _short(space, shapes)
    tokens = tuple(i for i in range(space.last + 1) if i not in short)
    ordered = all(groups[: len(tokens)] == tokens for groups in tensors)
    types = [item.item.dtype for item in space.inputs] + [out.dtype for out in space.outputs]
    legal = ordered and short and all(dtype in FLOATS for dtype in types)
    if not legal or len(space.inputs) > 8 or len(space.outputs) > 8:
        return None
    sizes = {i: space.groups[i].size for i in short}
    tests = [f"{show_expr(s)} == {short[i]}" for i, s in sizes.items() if not isinstance(s, Const)]
    form = _Form(space, tokens, short, tuple(outputs), name, tests, alone)
    words = (
        "fits", "tokens", "lanes", "jobs", "jobs_per_core", "head", "stop", "job", "first", "m",
        "spread", "order", "turn", "group", "e", "t", *(f"k{axis}" for axis in short),
        *(f"v{i}" for i in range(64)),
    )  # fmt: skip
    used = {item.name for item in space.inputs} | set(outputs) | taken
    for word in words:
        free = word
        while free in used:
            free += "_x"
        form.words[word] = free
    return form


def _short(space: Space, shapes: Mapping[str, tuple[int, ...]]) -> dict[int, int]:
    """Groups whose size the model says, and what one leaves of a dimension that is split by it."""
    found: dict[int, int] = {}
    for group in space.groups[1:]:
        size = evaluate(group.size, shapes)
        match group.size:
            case Const() | Binary(BinOp.FLOORDIV, Dim(), Const()) if 0 < size <= SHORT:
                found[group.id] = size
            case _:
                pass
    said = any(isinstance(space.groups[i].size, Const) for i in found)
    return found if said else {}


# ------------------------------------------------------------------------------------------ steps


def _steps(form: _Form) -> list[_Step]:
    """Every value that is computed, arguments first. Raises _Other for what has no form here."""
    order: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value in order or value.op in ("const", "count"):
            return
        for arg in value.args:
            visit(arg)
        order[value] = None

    for out in form.space.outputs:
        value = out.value
        whole = form.axes(value) == tuple(axis for axis in out.groups if axis in form.sizes)
        if not whole or value.op == "const":
            raise _Other
        visit(value)
    if not any(value.op == "reduce" for value in order):
        raise _Other  # element by element there is nothing to be gained
    return [_step(form, value) for value in order if value.op != "load"]


def _step(form: _Form, value: Value) -> _Step:
    if value.kind is not Kind.FLOAT:
        raise _Other
    if value.op == "reduce" and value.text in _JOIN and set(value.axes) <= set(form.sizes):
        return _reduction(form, value)
    if value.op in _ALONE:
        arg, axes = value.args[0], form.axes(value)
        count = _count(form, axes)
        return _Step(
            value, (arg,), lambda n: [f"{value.op}({n[value]}, {n[arg]}, {count})"], in_place=True
        )
    if value.op in (*_PAIRS, "sub", "div"):
        return _arithmetic(form, value)
    raise _Other


def _count(form: _Form, axes: Axes) -> str:
    rows = form.rows(axes)
    return f"{rows} * {form['lanes']}" if rows > 1 else form["lanes"]


def _number(form: _Form, value: Value) -> float | None:
    if value.op == "const":
        return float(value.number)
    if value.op == "count" and set(value.axes) <= set(form.sizes):
        return float(max(form.rows(value.axes) - int(value.number), 0))
    return None


def _arithmetic(form: _Form, value: Value) -> _Step:
    a, b = value.args
    left, right = _number(form, a), _number(form, b)
    count = _count(form, form.axes(value))
    if left is None and right is None:
        return _joined(form, value, a, b)
    if right is not None and value.op != "div":
        scalar = -right if value.op == "sub" else right
        name = _PAIRS["add" if value.op == "sub" else value.op]
        return _Step(
            value, (a,), lambda n: [f"{name}({n[value]}, {n[a]}, {scalar!r}, {count})"], True
        )
    if right is not None:
        # a division, as PyTorch has it: 1 / b would round twice
        spread = f"duplicate({{0}}, {right!r}, {count})"
        return _Step(value, (a,), lambda n: [
            spread.format(n[value]), f"div({n[value]}, {n[a]}, {n[value]}, {count})",
        ])  # fmt: skip
    if value.op == "div":
        return _Step(value, (b,), lambda n: [
            f"duplicate({n[value]}, {left!r}, {count})",
            f"div({n[value]}, {n[value]}, {n[b]}, {count})",
        ])  # fmt: skip
    if value.op == "sub":
        return _Step(value, (b,), lambda n: [
            f"muls({n[value]}, {n[b]}, -1.0, {count})",
            f"adds({n[value]}, {n[value]}, {left!r}, {count})",
        ], True)  # fmt: skip
    raise _Other


def _joined(form: _Form, value: Value, a: Value, b: Value) -> _Step:
    """Two values, of which one may lack axes that the other has."""
    axes = form.axes(value)
    inner = _suffix(axes, form.axes(a), form.axes(b))
    outer = axes[: len(axes) - len(inner)]

    def lines(n: Names) -> list[str]:
        views = ", ".join(
            f"{n[item]}{_view(form, form.axes(item), inner)}" for item in (value, a, b)
        )
        return _loops(form, outer, [f"{value.op}({views}, {_count(form, inner)})"])

    whole = form.axes(a) == form.axes(b)
    return _Step(value, (a, b), lines, in_place=whole or form.axes(a) == axes)


def _suffix(*rows: Axes) -> Axes:
    """The last axes that all of them end with: one instruction goes over these."""
    found: Axes = ()
    while all(len(axes) > len(found) for axes in rows):
        longer = {axes[-1 - len(found) :] for axes in rows}
        if len(longer) > 1:
            break
        found = longer.pop()
    return found


def _view(form: _Form, axes: Axes, inner: Axes) -> str:
    """Where the piece of a value that runs along `inner` starts, by the loops around it."""
    outer = axes[: len(axes) - len(inner)]
    if not outer:
        return ""
    last = f"{form[f'k{outer[-1]}']} * {_pitch(form, inner)}"
    before, stride = list[str](), form.sizes[outer[-1]] * form.rows(inner)
    for axis in reversed(outer[:-1]):
        before.insert(0, f"{form[f'k{axis}']} * {stride} * {form['lanes']}")
        stride *= form.sizes[axis]
    return f"[{' + '.join([*before, last])}]"


def _pitch(form: _Form, inner: Axes) -> str:
    rows = form.rows(inner)
    return f"({rows} * {form['lanes']})" if rows > 1 else form["lanes"]


def _loops(form: _Form, axes: Axes, body: list[str], first: int = 0) -> list[str]:
    """Loops over short axes, the first one outermost; `first`: where that one begins."""
    for axis in reversed(axes):
        start = f"{first}, " if first and axis == axes[0] else ""
        span = f"range({start}{form.sizes[axis]})"
        body = [f"for {form[f'k{axis}']} in {span}:", *indented(body)]
    return body


def _reduction(form: _Form, value: Value) -> _Step:
    """Rows added up (or joined otherwise), one reduced axis after the other outermost."""
    arg = value.args[0]
    axes, kept = form.axes(arg), form.axes(value)
    inner = _suffix(axes, kept) if kept else ()
    reduced = tuple(axis for axis in axes if axis not in kept)
    outer = tuple(axis for axis in kept if axis not in inner)
    count = _count(form, inner)

    def lines(n: Names) -> list[str]:
        target = f"{n[value]}{_view(form, kept, inner)}"
        source = f"{n[arg]}{_view(form, axes, inner)}"
        turn = [f"accumulate_{value.text}({target}, {source}, {count})"]
        size = form.sizes[reduced[0]]
        if len(reduced) > 1 or size < 2:
            start = f"duplicate({n[value]}, {_NEUTRAL[value.text]}, {_count(form, kept)})"
            return [start, *_loops(form, (*reduced, *outer), turn)]
        var = form[f"k{reduced[0]}"]
        views = ", ".join(
            f"{n[arg]}{_replaced(_view(form, axes, inner), var, str(i))}" for i in range(2)
        )
        both = f"{_JOIN[value.text]}({target}, {views}, {count})"
        more = _loops(form, (*reduced, *outer), turn, 2) if size > 2 else []
        return [*_loops(form, outer, [both]), *more]

    return _Step(value, (arg,), lines)


def _replaced(view: str, var: str, number: str) -> str:
    """The view with a number for a loop's variable."""
    words = view[1:-1].split(" ")
    return f"[{' '.join(number if word == var else word for word in words)}]"


# ---------------------------------------------------------------------------------------- buffers


def _allocate(form: _Form, steps: list[_Step]) -> tuple[dict[Value, str], dict[str, int]]:
    """A buffer for every value: the first one that is free and has its size."""
    last = {item: i for i, step in enumerate(steps) for item in step.reads}
    results = {out.value for out in form.space.outputs}
    last |= dict.fromkeys(results, len(steps))
    names: dict[Value, str] = {}
    rows: dict[str, int] = {}
    free: list[str] = []

    def take(value: Value, first: Sequence[str] = ()) -> None:
        wanted = form.rows(form.axes(value))
        fitting = [name for name in (*first, *free) if rows[name] == wanted]
        if fitting:
            names[value] = fitting[0]
            if fitting[0] in free:
                free.remove(fitting[0])
            return
        names[value] = form[f"v{len(rows)}"]
        rows[names[value]] = wanted

    for value in _loads(form, steps):
        take(value)
    for i, step in enumerate(steps):
        over = list(dict.fromkeys(names[item] for item in step.reads if last[item] == i))
        take(step.value, over if step.in_place else ())
        free += [name for name in over if name != names[step.value]]
        free.sort(key=lambda name: int(name.strip("v_x") or 0))
    return names, rows


def _loads(form: _Form, steps: list[_Step]) -> list[Value]:
    read = (item for step in steps for item in step.reads)
    results = (out.value for out in form.space.outputs)
    return list(dict.fromkeys(item for item in (*read, *results) if item.op == "load"))


def _copied(form: _Form) -> int:
    """Bytes of a lane in buffers that are loaded and stored."""
    space, size = form.space, 0
    for dtype, groups in (
        *((item.item.dtype, item.groups) for item in space.inputs),
        *((out.dtype, out.groups) for out in space.outputs),
    ):
        rows = form.rows(tuple(axis for axis in groups if axis in form.sizes))
        size += rows * (dtype.bytes + (4 if dtype is not DType.FLOAT32 else 0))
    return size + 4 * len(_in_rows(form))


def _tables(form: _Form) -> int:
    """Bytes of the offsets that do not depend on the number of lanes."""
    return sum(_order_size(form, rows) * 12 for rows in _out_rows(form))


def _out_rows(form: _Form) -> list[int]:
    """Sizes of the matrices that are stored."""
    sizes = (
        form.rows(tuple(axis for axis in out.groups if axis in form.sizes))
        for out in form.space.outputs
    )
    return list(dict.fromkeys(sizes))


def _in_rows(form: _Form) -> list[int]:
    """Sizes of the matrices that are loaded."""
    sizes = (
        form.rows(tuple(axis for axis in item.groups if axis in form.sizes))
        for item in form.space.inputs
    )
    return list(dict.fromkeys(sizes))


def _order_size(form: _Form, rows: int) -> int:
    return rows * _STEP


# ------------------------------------------------------------------------------------------- text


def _host(form: _Form, lanes: int) -> list[str]:
    w, space = form.words, form.space
    tokens = show_expr(product(space.groups[group].size for group in form.tokens))
    fair = f"ceil_div({w['tokens']}, chip.vector_cores)"
    fits = f"{w['fits']} = 1 if {' and '.join(form.tests)} else 0"
    guard = f" // {w['fits']}" if form.tests and form.alone else ""
    lines = [
        *([fits] if form.tests else []),
        f"{w['tokens']} = {tokens}{guard}",
        f"{w['lanes']} = min({lanes}, align_up(max({fair}, 1), {_STEP}))",
        f"{w['jobs']} = ceil_div({w['tokens']}, {w['lanes']})",
        f"cores = max(1, min({w['jobs']}, chip.vector_cores))",
        f"{w['jobs_per_core']} = ceil_div({w['jobs']}, cores)",
    ]
    given = ", ".join(f"{name}={name}" for name in _parameters(form))
    tensors = [item.name for item in space.inputs] + list(form.outputs)
    lines.append(f"launch({form.name}, cores, {given})")
    return ["@host", f"def host({', '.join(tensors)}):", *indented(lines)]


def _parameters(form: _Form) -> tuple[str, ...]:
    words = ("tokens", "lanes", "jobs", "jobs_per_core")
    tested = form.tests and not form.alone
    return tuple(form[word] for word in (*words, *(["fits"] if tested else [])))


def _kernel(
    form: _Form, steps: list[_Step], names: Names, rows: Mapping[str, int], lanes: int
) -> list[str]:
    w, space = form.words, form.space
    tensors = [f"{item.name}: input({item.item.dtype.value})" for item in space.inputs]
    tensors += [
        f"{name}: output({out.dtype.value})"
        for name, out in zip(form.outputs, space.outputs, strict=True)
    ]
    tensors += [f"{name}: int" for name in _parameters(form)]
    body = [
        line for step in rolled([step.lines(names) for step in steps], w["turn"]) for line in step
    ]
    first = f"{w['job']} * {w['lanes']}"
    chunk = [
        f"{w['first']} = {first}",
        f"{w['m']} = min({w['lanes']}, {w['tokens']} - {w['first']})",
        *_entering(form, steps, names),
        *(["with compute:", *indented(body)] if body else []),
        *_leaving(form, names),
    ]
    return [
        "@kernel",
        f"def {form.name}({', '.join(tensors)}):",
        *indented([
            *_declared(form, rows, lanes),
            "with compute:",
            *indented(_offsets(form)),
            f"{w['head']} = core_id() * {w['jobs_per_core']}",
            f"{w['stop']} = min({w['head']} + {w['jobs_per_core']}, {w['jobs']})",
            f"for {w['job']} in range({w['head']}, {w['stop']}):",
            *indented(chunk),
        ]),
    ]  # fmt: skip


def _declared(form: _Form, rows: Mapping[str, int], lanes: int) -> list[str]:
    space, lines = form.space, list[str]()
    for item in space.inputs:
        count = form.rows(tuple(axis for axis in item.groups if axis in form.sizes)) * lanes
        lines.append(f"{item.name}_in = ub({count}, {item.item.dtype.value})")
        if item.item.dtype is not DType.FLOAT32:
            lines.append(f"{item.name}_wide = ub({count}, float32)")
    for name, out in zip(form.outputs, space.outputs, strict=True):
        count = form.rows(tuple(axis for axis in out.groups if axis in form.sizes)) * lanes
        lines.append(f"{name}_out = ub({count}, {out.dtype.value})")
        if out.dtype is not DType.FLOAT32:
            lines.append(f"{name}_wide = ub({count}, float32)")
    lines += [f"{name} = ub({count * lanes}, float32)" for name, count in rows.items()]
    lines += [f"{form['spread']}{n} = ub({lanes}, int32)" for n in _in_rows(form)]
    sizes = _out_rows(form)
    lines += [f"{form['order']}{n} = ub({_order_size(form, n)}, int32)" for n in sizes]
    most = max(_order_size(form, n) for n in sizes)
    return [*lines, *(f"{form[word]} = ub({most}, float32)" for word in ("e", "t"))]


def _offsets(form: _Form) -> list[str]:
    """Byte offsets for the gathers, once a core.

    A row of lanes takes an element of every matrix. Where the elements of 64 matrices are among the
    rows: element e is in row e % size, lane e // size; in float32, which is exact and can floor.
    """
    e, t, lanes = form["e"], form["t"], form["lanes"]
    lines = list[str]()
    for size in _in_rows(form):
        table = f"{form['spread']}{size}"
        lines.append(f"create_index({table}, 0, {lanes})")
        lines.append(f"muls({table}, {table}, {4 * size}, {lanes})")
    for size in _out_rows(form):
        count = _order_size(form, size)
        lines += [
            f"create_index({e}, 0.0, {count})",
            f"adds({t}, {e}, 0.5, {count})",
            f"muls({t}, {t}, {1.0 / size!r}, {count})",
            f'cast({t}, {t}, "floor", {count})',
            f"axpy({e}, {t}, {-float(size)!r}, {count})",
            f"muls({e}, {e}, float({form['lanes']}), {count})",
            f"add({e}, {e}, {t}, {count})",
            f"muls({e}, {e}, 4.0, {count})",
            f'cast({form["order"]}{size}, {e}, "rint", {count})',
        ]
    return lines


def _entering(form: _Form, steps: list[_Step], names: Names) -> list[str]:
    """Load matrices one after the other, and make rows of lanes."""
    w, copies, lines = form.words, list[str](), list[str]()
    loads = {value.text: value for value in _loads(form, steps)}
    for item in form.space.inputs:
        value = loads[item.item.name]
        rows = form.rows(form.axes(value))
        copies.append(
            f"load({item.name}_in, {item.name}[{w['first']} * {rows}], {w['m']} * {rows})"
        )
        source = f"{item.name}_in"
        if item.item.dtype is not DType.FLOAT32:
            lines.append(f'cast({item.name}_wide, {source}, "none", {w["m"]} * {rows})')
            source = f"{item.name}_wide"
        lines += [
            f"if {w['m']} < {w['lanes']}:",
            f"    duplicate({names[value]}, 1.0, {rows} * {w['lanes']})",
            *_row_gathers(form, names[value], source, rows),
        ]
    return ["with copy_in:", *indented(copies), "with compute:", *indented(lines)]


def _row_gathers(form: _Form, target: str, source: str, rows: int) -> list[str]:
    w = form.words
    return [
        f"for {w['group']} in range({rows}):",
        f"    gather({target}[{w['group']} * {w['lanes']}], {source}, {w['spread']}{rows}, "
        f"{w['group']} * 4, {w['m']})",
    ]


def _leaving(form: _Form, names: Names) -> list[str]:
    """Make matrices of rows again, 64 tokens at a time, and store them."""
    w, lines, copies = form.words, list[str](), list[str]()
    for name, out in zip(form.outputs, form.space.outputs, strict=True):
        value = out.value
        rows = form.rows(tuple(axis for axis in out.groups if axis in form.sizes))
        plain = out.dtype is DType.FLOAT32
        target = f"{name}_out" if plain else f"{name}_wide"
        lines += [
            f"for {w['group']} in range(0, {w['m']}, {_STEP}):",
            f"    gather({target}[{w['group']} * {rows}], {names[value]}, {w['order']}{rows}, "
            f"{w['group']} * 4, min({_STEP}, {w['m']} - {w['group']}) * {rows})",
        ]
        if not plain:
            lines.append(f'cast({name}_out, {target}, "rint", {w["m"]} * {rows})')
        copies.append(f"store({name}[{w['first']} * {rows}], {name}_out, {w['m']} * {rows})")
    return ["with compute:", *indented(lines), "with copy_out:", *indented(copies)]


def rolled(steps: list[list[str]], turn: str) -> Iterator[list[str]]:
    """Steps with the longest repetition among them as a loop."""
    best = (0, 0, 0, 0)  # lines saved, start, period, times
    for start in range(len(steps)):
        for period in range(1, (len(steps) - start) // 2 + 1):
            times = 1
            while (
                steps[start : start + period]
                == steps[start + times * period : start + (times + 1) * period]
            ):
                times += 1
            saved = (times - 1) * period
            if saved > best[0]:
                best = (saved, start, period, times)
    saved, start, period, times = best
    if saved == 0:
        yield from steps
        return
    yield from steps[:start]
    body = [line for step in steps[start : start + period] for line in step]
    yield [f"for {turn} in range({times}):", *indented(body)]
    yield from steps[start + times * period :]
