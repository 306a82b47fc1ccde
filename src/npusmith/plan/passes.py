"""The order of a kernel: which reductions need a pass of their own, over which loops.

A value is computed in the outermost list where all its groups are open, once. A reduction is a
pass: loops over the reduced groups that accumulate, elementwise along a tile wherever possible, so
that one reduction in registers (or none) is left at the end. A reduction that leaves nothing but a
number is shared by all cores and combined across them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Assign, Binary, BinOp, Expr, Name, Note
from npusmith.plan.all_gather import gather
from npusmith.plan.block import Block, Path, choice
from npusmith.plan.dag import Value
from npusmith.plan.dependent_reductions import Dependent, Form, find_dependent
from npusmith.plan.emit import emit
from npusmith.plan.host import TILE
from npusmith.plan.loops import Body, Run, Serial, close, dealt, mixed, nest, over, share
from npusmith.plan.moments import Moments
from npusmith.plan.online_columns import OnlineColumns
from npusmith.plan.online_rows import OnlineRows
from npusmith.plan.scalars import ONE, ZERO, floating, least, plus, product
from npusmith.plan.sinks import Pass, Plain, Sink, accumulated, folded, is_exact, named, neutral
from npusmith.plan.space import Space
from npusmith.plan.writer import Writer

# ----------------------------------------------------------------------------------------- ensure


def ensure(w: Writer, path: Path, roots: Sequence[Value]) -> None:
    """Make values available where their groups are open: reductions first, then the rest."""
    ensure_reductions(w, path, roots)
    for value in _missing(w, path, roots):
        if w.find(path, value):
            continue  # another one has asked for it meanwhile
        emit(w, path[: w.home(path, value) + 1], value)


def ensure_reductions(w: Writer, path: Path, roots: Sequence[Value]) -> None:
    """The reductions that the roots need, those first on which others depend."""
    while True:
        todo = _missing(w, path, roots)
        found = [value for value in todo if value.op == "reduce"]
        if not found:
            return
        late = [item for value in found if (item := _late(w, path, value)) is not None]
        # the fold that a late one needs may stand under it only
        reductions = list(dict.fromkeys([*found, *(item.lead for item in late)]))
        first = min(reductions, key=_depth)
        here = path[: w.home(path, first) + 1]
        batch = [
            value
            for value in reductions
            if _same_pass(w.space, value, first) and (value is first or _ready(w, here, value))
        ]
        nested = inner_reductions(w, path, [value.args[0] for value in batch])
        come_along = [item for item in late if item.lead in batch and not nested]
        reduce(w, here, batch, come_along)


def _ready(w: Writer, path: Path, value: Value) -> bool:
    """Whether a reduction can have a pass now: what it needs is there, or comes inside the pass."""
    return not any(
        item.op == "reduce" and w.space.axes(item) <= path[-1].opened
        for item in _needed(w, path, value.args[0])
    )


def _needed(w: Writer, path: Path, root: Value) -> list[Value]:
    """Reductions that are not at hand on which a value depends, nested ones too."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if value in seen or w.find(path, value):
            continue
        seen.add(value)
        if value.op == "reduce":
            found[value] = None
        stack += value.args
    return list(found)


def _late(w: Writer, path: Path, value: Value) -> Dependent | None:
    """How a reduction can be had together with one that it needs and that is not there yet."""
    late = find_dependent(w.space, value)
    if late is None or w.find(path, late.lead) or not w.space.wide(late.x):
        return None
    along = frozenset(value.axes)
    if late.form is not Form.RAISED and w.space.last not in along:
        return None  # sums of rows have no one number that is near all their means
    if any(along & block.bounds.keys() for block in path):
        return None  # a chunk of a row: a centre of the whole row is not the chunk's
    home = path[: w.home(path, value) + 1]  # where the pass will be
    if _on_chip(w, path, along) or inner_reductions(w, home, [late.x]):
        return None
    needed = [item for item in _missing(w, path, [late.centre]) if item.op == "reduce"]
    return late if needed == [late.lead] else None


def _missing(w: Writer, path: Path, roots: Sequence[Value]) -> list[Value]:
    """Values to be computed, arguments first; what is under a reduction is not looked at."""
    order: dict[Value, None] = {}
    for root in roots:
        _add_missing(w, path, root, order)
    return list(order)


def _add_missing(w: Writer, path: Path, value: Value, order: dict[Value, None]) -> None:
    # No function inside of another that calls itself: each would be a cycle, which holds the writer
    # until the collector comes by.
    if value in order or value.op in ("const", "count") or w.find(path, value):
        return
    if value.op in ("index", "place") and not w.space.wide(value):
        return
    if value.op not in ("reduce", "window"):
        for arg in value.args:
            _add_missing(w, path, arg, order)
    order[value] = None


def _depth(value: Value, cache: dict[Value, int] | None = None) -> int:
    """How many reductions stand on top of each other."""
    known = {} if cache is None else cache
    if value not in known:
        below = max((_depth(arg, known) for arg in value.args), default=0)
        known[value] = below + (value.op == "reduce")
    return known[value]


def _same_pass(space: Space, one: Value, two: Value) -> bool:
    return set(one.axes) == set(two.axes) and space.axes(one.args[0]) == space.axes(two.args[0])


# ----------------------------------------------------------------------------------------- planning


def inner_reductions(w: Writer, path: Path, roots: Sequence[Value]) -> list[Value]:
    """Reductions and scans that computing the roots takes, nested ones too; no lone numbers."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    for root in roots:
        _add_inner(w, path, root, found, seen)
    return list(found)


def _add_inner(
    w: Writer, path: Path, value: Value, found: dict[Value, None], seen: set[Value]
) -> None:
    if value in seen or w.find(path, value):
        return
    seen.add(value)
    for arg in value.args:
        _add_inner(w, path, arg, found, seen)
    if value.op in ("reduce", "running") and w.space.axes(value):
        found[value] = None


def ordered(w: Writer, groups: frozenset[int], inner: Sequence[Value]) -> list[int]:
    """Loops, outermost first: an inner reduction's own groups come before those that it reduces.

    A scan's other groups come before the one that it runs along.
    """
    before: dict[int, set[int]] = {group: set() for group in groups}
    for value in inner:
        kept = (w.space.axes(value) - set(value.axes)) & groups
        if not kept:
            continue
        for group in set(value.axes) & groups:
            before[group] |= kept
    result: list[int] = []
    while len(result) < len(groups):
        ready = [g for g in sorted(groups) if g not in result and before[g] <= set(result)]
        if not ready:
            mixed(w, inner[0])
        result.append(ready[0])
    return result


@dataclass(frozen=True, slots=True)
class Work:
    """How the work of a pass at the top is divided."""

    dealt: frozenset[int]  # groups dealt to cores
    rest: list[int]  # loops on each core
    resident: bool  # worth keeping a whole row on chip when it fits in one tile


def divide(w: Writer, path: Path, domain: frozenset[int], roots: Sequence[Value]) -> Work:
    """Deal out what no inner reduction reduces and no scan runs along."""
    inner = inner_reductions(w, path, roots)
    reduced = frozenset(axis for value in inner for axis in value.axes)
    dealt = domain - reduced
    rest = ordered(w, domain - dealt, inner)
    last = w.space.last
    again = any(value.op == "reduce" for value in inner)  # rows are read more than once
    resident = again and last not in dealt and reduced == {last} and set(rest) <= {last}
    return Work(dealt, rest, resident)


def run(w: Writer, path: Path, work: Work, body: Body, serial: Serial | None = None) -> None:
    """A pass at the top: in two forms where rows may fit in one tile."""
    if not work.resident:
        share(w, path, work.dealt, work.rest, body, serial)
        return
    last = w.space.last
    cols = w.sizes.size(last)
    whole = Block(frozenset({last}), {last: ZERO}, cols, resident=True)
    parts = Block(frozenset())
    whole.items.append(Note("a row fits in one tile: load it once"))
    share(w, (*path, whole), work.dealt, [], body, serial)
    parts.items.append(Note("longer rows are loaded again for every pass"))
    share(w, (*path, parts), work.dealt, work.rest, body, serial)
    fits = Binary(BinOp.LE, cols, TILE)
    some = Binary(BinOp.GT, cols, ZERO)  # a row of no elements takes the other form
    path[-1].items.append(choice(Binary(BinOp.AND, some, fits), whole, parts))


# --------------------------------------------------------------------------------------- reductions


def reduce(w: Writer, path: Path, batch: Sequence[Value], late: Sequence[Dependent] = ()) -> None:
    """One pass for reductions over the same groups; the results land in the last list of `path`.

    `late`: sums that need those of the batch, and come with them.
    """
    reduced = frozenset(batch[0].axes)
    if _on_chip(w, path, reduced):
        ensure(w, path, [value.args[0] for value in batch])
        for value in batch:
            path[-1].items.append(Note(named(w, value)))
            _directly(w, path, value)
        return
    if reduced & path[-1].opened:
        mixed(w, batch[0])
    _pass(w, path, batch, late)


def _on_chip(w: Writer, path: Path, reduced: frozenset[int]) -> bool:
    return any(item.resident for item in path) and reduced == {w.space.last}


def _directly(w: Writer, path: Path, value: Value) -> None:
    """The whole row is on chip."""
    row = w.vector(path, value.args[0], True)
    if value.text == "prod":
        sink = w.temp(DType.FLOAT32, True, hint="acc")
        path[-1].items.append(neutral(value.text, sink, TILE))
        path[-1].items.append(accumulated(w, path, sink, value))
        row = sink
    path[-1].buffers[value] = folded(w, path, value.text, row, w.count(path, True), kept=True)


def _pass(w: Writer, path: Path, batch: Sequence[Value], late: Sequence[Dependent]) -> None:
    block, top = path[-1], path[-1].together
    reduced = frozenset(batch[0].axes)
    operands = [value.args[0] for value in batch]
    wide = w.space.wide(operands[0])
    lanes = wide and w.space.last in reduced
    work = divide(w, path, reduced, operands) if top else None
    sinks = _sinks(batch, late, lanes)
    seen = w.fresh("seen_") if top and any(isinstance(sink, Moments) for sink in sinks) else ""
    # long sums that are not spread over the lanes of a tile are added up in stretches
    sums = [value for value in (*batch, *(i.fold for i in late)) if value.text == "sum"]
    serial = not lanes and not all(is_exact(w, value) for value in sums)

    def loops(around: Path, body: Body, frame: Serial | None = None) -> None:
        if work is None:
            inner = inner_reductions(w, path, operands)
            nest(w, around, ordered(w, reduced, inner), body, frame)
        else:
            run(w, around, work, body, frame)

    at = Pass(
        w, path, _width(w, path, work, wide, lanes), lanes, serial,
        floating(Name(seen) if seen else product(w.sizes.size(group) for group in sorted(reduced))),
        lambda around, body: loops(around, _with_operands(w, operands, body)),
        lambda around, body: _begin(w, around, work, reduced, _with_operands(w, operands, body)),
        lambda value: ensure(w, path, [value]),
    )  # fmt: skip
    block.items.append(Note(", ".join(sink.label(w) for sink in sinks)))
    for sink in sinks:
        sink.open(at)
    if seen:
        block.items.append(Assign(seen, ZERO))

    def body(inner: Path) -> None:
        ensure(w, inner, [value.args[0] for value in batch if not is_exact(w, value)])
        if seen:
            inner[-1].items.append(Assign(seen, plus(Name(seen), w.count(inner, True))))
        for sink in sinks:
            ensure(w, inner, [sink.operand()])  # digits of integers: one buffer for all
            sink.step(at, inner)

    loops(path, body, _framed([sink.frame(at) for sink in sinks]) if serial else None)
    for sink in sinks:
        sink.fold(at)
    _close(at, sinks, top)


def _with_operands(w: Writer, operands: Sequence[Value], body: Body) -> Body:
    def ready(path: Path) -> None:
        ensure(w, path, operands)
        body(path)

    return ready


def _sinks(batch: Sequence[Value], late: Sequence[Dependent], lanes: bool) -> list[Sink]:
    """A sink for each reduction; those that others need take these in."""
    result: list[Sink] = []
    for value in batch:
        own = tuple(item for item in late if item.lead is value)
        if not own:
            result.append(Plain(value))
        elif value.text == "sum":
            result.append(Moments(value, own))
        else:
            result.append((OnlineRows if lanes else OnlineColumns)(value, own))
    return result


def _begin(w: Writer, path: Path, work: Work | None, reduced: frozenset[int], body: Body) -> None:
    """The first tile of a core's share, if there is one."""
    if work is not None:
        run = dealt(w, path, w.sizes.deal(work.dealt))
        run = replace(run, stop=least(plus(run.start, ONE), run.stop))
        body((*path, run.block))
        close(path, run)
        return
    runs: list[Run] = []
    inner = path
    for group in ordered(w, reduced, ()):
        run = over(w, inner, group)
        runs.append(replace(run, stop=least(plus(run.start, run.step), run.stop)))
        inner = (*inner, run.block)
    body(inner)
    for i, run in reversed(list(enumerate(runs))):
        close(inner[: len(path) + i], run)


def _framed(frames: Sequence[Serial]) -> Serial:
    before = tuple(stmt for frame in frames for stmt in frame.before)
    return Serial(before, tuple(stmt for frame in frames for stmt in frame.after))


def _close(at: Pass, sinks: Sequence[Sink], top: bool) -> None:
    """The results; where all cores take part, with what they have found."""
    if not top:
        for sink in sinks:
            sink.close(at, ())
        return
    alone = [sink for sink in sinks if isinstance(sink, Plain) and sink.value.text == "prod"]
    others = [sink for sink in sinks if sink not in alone]
    if len(others) == 1 and isinstance(others[0], Plain):
        alone, others = [*alone, others[0]], []
    for lone in alone:
        lone.combine(at)
    if not others:
        return
    parts = [sink.parts(at) for sink in others]
    lanes = iter(gather(at.w, at.path, [part for row in parts for part in row]))
    for sink, row in zip(others, parts, strict=True):
        sink.close(at, [next(lanes) for _ in row])


def _width(w: Writer, path: Path, work: Work | None, wide: bool, lanes: bool) -> Expr:
    """Elements of an accumulator that are in use."""
    if not wide:
        return ONE
    if not lanes:
        return w.count(path, True)
    if work is not None and w.space.last in work.dealt:
        return Name(w.sizes.deal(work.dealt).tile)
    return w.width(path)
