"""Outputs: the passes that write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Atomic,
    Binary,
    BinOp,
    Const,
    CoreId,
    Name,
    Note,
    Span,
    Store,
    SyncCores,
    View,
)
from npusmith.ir.spec import Port, Source
from npusmith.plan.block import Block, Part, Path, choice
from npusmith.plan.chunks import Cut
from npusmith.plan.cooperative_rows import rows
from npusmith.plan.dag import Kind, Value
from npusmith.plan.emit import buffer_dtype, load
from npusmith.plan.formula import formula
from npusmith.plan.line_distribution import share_lines
from npusmith.plan.loops import nest, share
from npusmith.plan.passes import divide, ensure, ensure_reductions, inner_reductions, ordered, run
from npusmith.plan.refusals import refusal
from npusmith.plan.row_stores import PLACE, store_places
from npusmith.plan.scalar_unit import copy
from npusmith.plan.scalars import ZERO, plus, times
from npusmith.plan.schedule import Lines
from npusmith.plan.space import Output, Space
from npusmith.plan.split_phases import SplitPhases
from npusmith.plan.writer import Writer, dtype_of, op


@dataclass(frozen=True, slots=True)
class Target:
    """An output and the kernel's name for its tensor."""

    output: Output
    name: str

    @property
    def groups(self) -> frozenset[int]:
        return frozenset(self.output.groups)


_SOURCES = {
    "user": Source.USER,
    "parameter": Source.PARAMETER,
    "buffer": Source.BUFFER,
    "constant": Source.CONSTANT,
}


def ports(space: Space, targets: Sequence[Target]) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs and outputs of the operator."""
    inputs = tuple(
        Port(
            name=item.name,
            dtype=item.item.dtype,
            shape=item.item.shape,
            source=_SOURCES[item.item.kind],
            position=item.item.position,
            target=item.item.target,
        )
        for item in space.inputs
    )
    outputs = {
        t.name: Port(t.name, t.output.dtype, t.output.shape, dims=t.output.dims) for t in targets
    }
    return inputs, tuple(outputs.values())


def store_all(w: Writer, root: Path, targets: Sequence[Target]) -> None:
    """One pass for outputs whose work is dealt out alike; numbers are stored by core 0."""
    numbers = [t.output.value for t in targets if not t.groups and not is_copy(w, t)]
    ensure_reductions(w, root, numbers)  # several in one pass, where they go over the same groups
    placed = [target for target in targets if target.output.places]
    waiting = [target for target in targets if target not in placed]
    while waiting:
        first = waiting[0]
        if not first.groups:
            waiting.pop(0)
            _store_number(w, root, first)
            continue
        work = divide(w, root, first.groups, [first.output.value])
        same = [t for t in waiting if t.groups and _alike(w, root, t, work.dealt)]
        _store_pass(w, root, same)
        waiting = [target for target in waiting if target not in same]
    if placed:
        root[-1].items.append(SyncCores())
    for target in placed:
        store_places(w, root, target.output, partial(_store_here, w, targets=[target]))


def _alike(w: Writer, root: Path, target: Target, dealt: frozenset[int]) -> bool:
    return divide(w, root, target.groups, [target.output.value]).dealt == dealt


def _store_number(w: Writer, root: Path, target: Target) -> None:
    if not is_copy(w, target):
        ensure(w, root, [target.output.value])
    only = Block()
    store_one(w, (*root, only), target)
    alone = Binary(BinOp.EQ, CoreId(), ZERO)
    root[-1].items.append(choice(alone, only))


def _store_pass(w: Writer, root: Path, targets: Sequence[Target]) -> None:
    domain = frozenset[int]().union(*(target.groups for target in targets))
    values = [target.output.value for target in targets]
    work = divide(w, root, domain, values)
    inner = inner_reductions(w, root, values)
    lines, cut = share_lines(w, work, inner, domain)
    if cut is not None:
        SplitPhases(w, cut, inner).run(root, values, partial(_store_piece, w, targets, cut))
        return
    if lines is Lines.TOGETHER:
        rows(w, root, sorted(work.dealt), lambda path: _store_row(w, path, targets))
        return
    # loops that are left belong to each output, not to the pass
    run(w, root, replace(work, rest=[]), partial(_store_line, w, targets))


def _store_line(w: Writer, targets: Sequence[Target], path: Path) -> None:
    """At the dealt groups: outputs by the loops that are left for them."""
    waiting = list(targets)
    while waiting:
        left = waiting[0].groups - path[-1].opened
        same = [t for t in waiting if t.groups - path[-1].opened == left]
        _store_nest(w, path, left, same)
        waiting = [target for target in waiting if target not in same]


def _store_piece(w: Writer, targets: Sequence[Target], cut: Cut, path: Path) -> None:
    """A chunk of a line; what is one for the whole line goes with its first chunk."""
    along = [target for target in targets if cut.group in target.groups]
    once = [target for target in targets if target not in along]
    _store_line(w, along, path)
    if once:
        first = Block(path[-1].opened)
        _store_line(w, once, (*path, first))
        path[-1].items.append(choice(Binary(BinOp.EQ, Name("chunk"), ZERO), first))


def _store_row(w: Writer, path: Path, targets: Sequence[Target]) -> None:
    """A row that all cores do together: each its part of the elements, core 0 the numbers."""
    lone = [target for target in targets if target.groups <= path[-1].opened]
    rest = [target for target in targets if target not in lone]
    ensure_reductions(w, path, [t.output.value for t in targets if not is_copy(w, t)])
    for target in lone:
        _store_number(w, path, target)
    for left in dict.fromkeys(target.groups - path[-1].opened for target in rest):
        same = [target for target in rest if target.groups - path[-1].opened == left]
        share(w, path, left, [], partial(_store_here, w, targets=same))


def _store_nest(w: Writer, path: Path, left: frozenset[int], targets: Sequence[Target]) -> None:
    inner = inner_reductions(w, path, [target.output.value for target in targets])
    nest(w, path, ordered(w, left, inner), lambda deep: _store_here(w, deep, targets))


def _store_here(w: Writer, path: Path, targets: Sequence[Target]) -> None:
    ensure_reductions(w, path, [t.output.value for t in targets if not is_copy(w, t)])
    for target in targets:
        path[-1].items.append(Note(f"{target.name} = {formula(w.space, target.output.value)}"))
    for target in targets:
        reserve(w, path, target)
    ensure(w, path, [t.output.value for t in targets if not is_copy(w, t)])
    made = [(target, _made(w, path, target)) for target in targets]  # some from what others store
    for target, buffer in made:
        _store(w, path, target, buffer)
    _forget_stored(w, path[-1])


def reserve(w: Writer, path: Path, target: Target) -> None:
    """Let a value that is computed here be computed in the buffer that is stored."""
    value = target.output.value
    plain = target.output.dtype is dtype_of(value)
    computed = value.op not in ("load", "fetch", "reduce", "const", "count", "index")
    here = path[-1]
    if not plain or not computed or w.find(path, value) or value in w.stored:
        return
    if path[w.home(path, value)] is here and w.space.wide(value) == _is_wide(w, target):
        w.stored[value] = w.temp(
            target.output.dtype, _is_wide(w, target), Part.STORED, hint=target.name
        )


def _is_wide(w: Writer, target: Target) -> bool:
    return w.space.last in target.groups


def is_copy(w: Writer, target: Target) -> bool:
    """An input stored as it is: no arithmetic, any type."""
    value, output = target.output.value, target.output
    return (
        value.op == "load"
        and value.dtype is output.dtype
        and w.space.wide(value) == _is_wide(w, target)
    )


def store_one(w: Writer, path: Path, target: Target) -> None:
    _store(w, path, target, _made(w, path, target))
    _forget_stored(w, path[-1])


def _made(w: Writer, path: Path, target: Target) -> str:
    """A buffer with an output's elements."""
    if is_copy(w, target):
        return load(w, path, target.output.value, Part.THROUGH)
    return stored(w, path, target, _is_wide(w, target))


def _store(w: Writer, path: Path, target: Target, buffer: str) -> None:
    output = target.output
    at, atomic = w.address(path, output.groups, output.access), None
    if output.places:
        at = plus(at, times(PLACE, w.sizes.named(output.places.step)))
        atomic = Atomic.ADD if output.places.adds else None
    count = w.count(path, _is_wide(w, target))
    path[-1].items.append(Store(Span(target.name, at), View(buffer), count, atomic=atomic))


def _forget_stored(w: Writer, block: Block) -> None:
    """A stored buffer's contents are undefined afterwards: whoever needs the value computes it."""
    for value, buffer in list(block.buffers.items()):
        if w.temps[buffer].part is Part.STORED:
            del block.buffers[value]


def stored(w: Writer, path: Path, target: Target, wide: bool) -> str:
    """The output's elements in its own type, in a buffer that is only stored."""
    value, dtype = target.output.value, target.output.dtype
    held = w.find(path, value)
    if held is not None and w.temps[held].part is Part.STORED and w.temps[held].hint == target.name:
        return held
    count = w.count(path, wide)
    steps = _steps(w, target, value)
    source = w.vector(path, value, wide) if steps else ""
    for i, (step, mode) in enumerate(steps):
        last = i == len(steps) - 1
        part, hint = (Part.STORED, target.name) if last else (Part.SCRATCH, "")
        buffer = w.temp(step, wide, part, hint=hint)
        path[-1].items.append(op("cast", (buffer, source), (), count, mode))
        source = buffer
    if steps:
        return source
    buffer = w.temp(dtype, wide, Part.STORED, hint=target.name)
    if value.kind is Kind.LONG:
        number = w.number(path, value) if w.is_number(value, wide) else w.held(path, value)
        copy(w, path, buffer, number, count)
        return buffer
    if w.is_number(value, wide):
        number = w.number(path, value)
        path[-1].items.append(op("duplicate", (buffer,), (number,), count))
    else:
        one = Const(1) if value.kind is Kind.INT else Const(1.0)
        path[-1].items.append(op("muls", (buffer, w.held(path, value)), (one,), count))
    return buffer


_FROM_FLOAT: dict[DType, tuple[tuple[DType, str], ...]] = {
    **{dtype: ((dtype, "rint"),) for dtype in (DType.FLOAT16, DType.BFLOAT16, DType.INT16)},
    **{dtype: ((dtype, "rint"),) for dtype in (DType.INT32, DType.INT64)},
    **{dtype: ((DType.FLOAT16, "rint"), (dtype, "rint")) for dtype in (DType.UINT8, DType.INT8)},
}
_FROM_INT: dict[DType, tuple[tuple[DType, str], ...]] = {
    DType.INT64: ((DType.INT64, "none"),),
    DType.INT16: ((DType.INT16, "none"),),
    **{
        dtype: ((DType.FLOAT32, "rint"), *_FROM_FLOAT[dtype]) for dtype in (DType.UINT8, DType.INT8)
    },
}


def _steps(w: Writer, target: Target, value: Value) -> tuple[tuple[DType, str], ...]:
    """Casts from what a value is held in to the output's type, which has room for it."""
    dtype = buffer_dtype(target.output.dtype)
    if dtype_of(value) is dtype:
        return ()
    known = _FROM_FLOAT if value.kind is Kind.FLOAT else _FROM_INT
    if dtype in known and value.kind in (Kind.FLOAT, Kind.INT):
        return known[dtype]
    raise refusal(
        w.space.graph, target.output.node, "plan-dtype",
        f"output {target.name} is {target.output.dtype.value}: not exact on a vector core",
        legal="float32, float16, bfloat16, bool, or int32 from int32 arithmetic",
    )  # fmt: skip
