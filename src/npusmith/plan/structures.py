"""Structures of a kernel: sorts, index maps, short axes, loops; the first that takes a graph is it.

Each orders and merges the axes of a graph (space), lays out passes and loops (passes, stores),
shares buffers (pack), and writes the host function (host), as is best at the captured sizes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import (
    Binary,
    BinOp,
    ChipFact,
    Choice,
    Const,
    Expr,
    Kernel,
    Program,
    Scalar,
    Tensor,
    TensorRole,
)
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names, names_read
from npusmith.plan.accesses import accessed
from npusmith.plan.attention_layout import has_attention
from npusmith.plan.attention_program import write_attention
from npusmith.plan.block import Block, staged
from npusmith.plan.dag import Value, reachable
from npusmith.plan.decisions import Decision, Decisions, whole
from npusmith.plan.formula import explained, formula
from npusmith.plan.host import Sizes
from npusmith.plan.lanes import INNER
from npusmith.plan.long_sorts import is_sort, write_sort
from npusmith.plan.matrix_layout import products_of
from npusmith.plan.matrix_products import write_matrix_product
from npusmith.plan.names import tensor_name
from npusmith.plan.pack import Packed, pack
from npusmith.plan.read import Meaning, read
from npusmith.plan.row_packing import pack_rows
from npusmith.plan.scalars import ONE, ZERO, all_of, product, times
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.short_versions import served, short_version
from npusmith.plan.space import Space, pin_innermost, resolve
from npusmith.plan.split_loops import write_lanes
from npusmith.plan.stores import Target, ports, store_all
from npusmith.plan.tile_folds import LONGEST, is_foldable
from npusmith.plan.tile_sorts import FORMS, has_order
from npusmith.plan.time_loops import Scan
from npusmith.plan.versions import Version, guarded
from npusmith.plan.writer import Writer
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

DEEPEST = 400  # operations one after another in one kernel: a graph with more is cut into several

# Refusals of the loops over axes that say that elements move
_MOVED = ("plan-data-movement", "plan-transpose", "plan-repeated-axis", "plan-reshape")


_ROW = 512  # elements of a row of slices: shorter ones are copied first, and packed into tiles
_MANY = 8  # rows of every core at least that are worth being many in a tile
_FEW = "few lines: each is cut into chunks"
_BLOCK = 8  # elements of 32 bytes: rows that are shorter are not laid out one by one


@dataclass(frozen=True, slots=True)
class Steps:
    """A scan, and the kernels of its graphs, each with the graph that it was made of."""

    scan: Scan
    before: tuple[tuple[Graph, Plan], ...]
    step: tuple[tuple[Graph, Plan], ...]
    after: tuple[tuple[Graph, Plan], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A tile program, the operator around it, and what was decided on the way.

    `parts`: the graphs of several kernels, and the plan of each. `versions`: what the kernel is
    merged of, where sizes decide. `longer`: the parts are of the graph with longer axes of 1.
    `steps`: of a scan, whose kernels run in a loop. `more_us`: what the partition adds to its time.
    """

    program: Program
    spec: OpSpec
    notes: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    parts: tuple[tuple[Graph, Plan], ...] = ()
    versions: tuple[Version, ...] = ()
    longer: bool = False
    steps: Steps | None = None
    more_us: float = 0.0

    @property
    def schedule(self) -> Schedule:
        """All that was decided."""
        if self.parts:
            return Schedule(kernels=tuple(plan.schedule for _, plan in self.parts))
        return whole(self.decisions)


# Written for one call: other structures that take the graph are far slower
ALONE = (Structure.MATRIX_PRODUCT, Structure.PRODUCT_BESIDE, Structure.ATTENTION)
_LONGER = 2  # times the captured rows, at least, that a kernel serves which has no other form
ROWS_FIT = "whole_rows"  # the host variable that is 1 where a tile holds rows
Way = tuple[Structure, Callable[[], Plan | None]]  # None, or an error: not for this graph


def first_of(ways: Iterator[Way], decisions: Decisions) -> Plan:
    """The first structure that takes the graph, or the one that is asked for."""
    asked = decisions.asked.structure
    before: list[Structure] = []
    for structure, write in ways:
        plan = write() if asked in (None, structure) else None
        if plan is not None:
            rest = () if structure in ALONE else (*before, *_names(ways))
            decisions.structure(structure, rest)
            return plan
        decisions.forget()
        if asked not in (None, structure):
            before.append(structure)
    tried = ", ".join(dict.fromkeys(item.value for item in before)) or "none"
    message = f"the structure cannot be {asked and asked.value}"
    raise PlanError("plan-schedule", message, legal=f"one of: {tried}")


def _names(ways: Iterator[Way]) -> list[Structure]:
    """What could be tried besides."""
    with contextlib.suppress(PlanError):
        return [structure for structure, _ in ways]
    return []


def structures(
    graph: Graph, name: str, chip: Chip, d: Decisions, everywhere: bool
) -> Iterator[Way]:
    """Those that may take the graph, the preferred one first."""
    meaning = read(graph)
    if not is_sort(graph):
        yield from structures_of(meaning, name, chip, d, everywhere)
        return

    def by_length() -> Plan:
        return _by_length([*_in_order(meaning, name, chip, d), _long_rows(graph, name, chip)])

    yield Structure.INDEX_MAPS, _optional(by_length)
    yield Structure.SORT, partial(_long_rows, graph, name, chip)


def structures_of(
    meaning: Meaning, name: str, chip: Chip, d: Decisions, everywhere: bool = False
) -> Iterator[Way]:
    """The same of a graph that has been read."""
    if has_attention(meaning):
        yield Structure.ATTENTION, lambda: Plan(*write_attention(meaning, name, chip))
        return
    if products_of(meaning):
        yield Structure.MATRIX_PRODUCT, partial(_product, meaning, name, chip, d)
        return
    _check_depth(meaning)

    def lanes() -> Plan:
        if has_order(meaning, meaning.roots):
            return _by_length(_in_order(meaning, name, chip, d, _LONGER))
        return Plan(*write_lanes(meaning, name, chip, d))

    try:
        space = resolve(meaning)
    except PlanError as error:
        if error.code not in _MOVED:
            raise
        yield from _moved(meaning, lanes, name, chip, d, everywhere)
        return
    if not space.outputs:
        raise PlanError("plan-no-output", "the graph has no output")
    w = Writer(space, Sizes(space), chip)
    broadcast = _broadcast(w)
    short = broadcast and 0 < w.row_size <= INNER[0]
    tiny = w.row_size < _BLOCK
    many_rows = Structure.INDEX_MAPS, _optional(lanes)  # too many buffers: loops need fewer
    if short and tiny:
        yield many_rows
    yield Structure.SHORT_AXES, partial(_short_axes, meaning, space, name, chip)
    if short and not tiny:
        yield many_rows
    yield Structure.LOOPS, partial(_loops, space, name, chip, d, everywhere)
    if broadcast and not short:
        yield many_rows


def _product(meaning: Meaning, name: str, chip: Chip, d: Decisions) -> Plan:
    return Plan(*write_matrix_product(meaning, name, chip, d))


def _check_depth(meaning: Meaning) -> None:
    """Refuses what follows one another too long for one kernel: the writer goes down step by step.

    By a number, not by what the interpreter's stack holds: the same graph is always cut alike.
    """
    depth: dict[Value, int] = {}
    for value in reachable(meaning.roots):
        depth[value] = 1 + max((depth[arg] for arg in value.args), default=0)
    if max(depth.values(), default=0) > DEEPEST:
        raise PlanError("plan-depth", f"{max(depth.values())} operations follow one another")


def _moved(
    meaning: Meaning, lanes: Callable[[], Plan], name: str, chip: Chip, d: Decisions,
    everywhere: bool,
) -> Iterator[Way]:  # fmt: skip
    """Elements that move: tiles that read them where index maps say, or loops over slices."""
    refused: list[PlanError] = []

    def tiles() -> Plan | None:
        try:
            return lanes()
        except PlanError as error:
            if error.code == "plan-schedule":
                raise
            refused.append(error.with_traceback(None))
            return None

    yield Structure.INDEX_MAPS, tiles
    with contextlib.suppress(PlanError):
        pin_innermost(meaning)
        space = resolve(accessed(meaning))
        alone = any(value.op == "running" for value in space.origin)
        alone = alone or any(output.places for output in space.outputs)
        # more inputs than a tile can load: loops take one piece of the output after the other
        alone = alone or any(error.code == "plan-queues" for error in refused)
        if not refused or alone or Writer(space, Sizes(space), chip).row_size >= _ROW:
            yield Structure.LOOPS, _optional(partial(_loops, space, name, chip, d, everywhere))
    if refused:
        raise refused.pop(0)


def _long_rows(graph: Graph, name: str, chip: Chip) -> Plan:
    """A kernel for rows of any length."""
    written = write_sort(graph, name, chip)
    assert written is not None
    return Plan(*written)


def _in_order(meaning: Meaning, name: str, chip: Chip, d: Decisions, rows: int = 1) -> list[Plan]:
    """Rows in order that a tile holds, in each form that serves the captured sizes.

    `rows`: a tile has room for so many at least.
    """
    refused: list[PlanError] = []
    for forms in FORMS:
        found: list[Plan] = []
        for form in forms:
            try:
                own = Decisions() if found else d
                given = replace(form, rows=rows)
                plan = Plan(*write_lanes(meaning, name, chip, own, given))
            except PlanError as error:
                if error.code != "plan-ub" and not found:
                    raise  # in every form
                refused.append(error.with_traceback(None))
                continue
            if all(plan.spec.legal != other.spec.legal for other in found):
                found.append(plan)
        if found:
            return found
    raise refused.pop(0)


def _by_length(plans: Sequence[Plan]) -> Plan:
    """Each where the sizes are those that it serves, the last for all others."""
    first, last = plans[0], plans[-1]
    served = last.spec.legal or ()
    versions = []
    for plan in plans[:-1]:
        tests = [test for test in plan.spec.legal or () if test not in served]
        if not tests:
            return plan
        given = {ROWS_FIT: Choice(all_of(tests), ONE, ZERO)}
        versions.append(guarded(plan.program, list(given), given, "rows that a tile holds"))
    if not versions:
        return first
    versions.append(Version(last.program))
    return replace(last, notes=first.notes, program=first.program, versions=tuple(versions))


T = TypeVar("T")


def _optional(write: Callable[[], T]) -> Callable[[], T | None]:
    """None where the graph is refused: another structure may serve it."""

    def written() -> T | None:
        try:
            return write()
        except PlanError as error:
            if error.code == "plan-schedule":
                raise
            return None

    return written


def _short_axes(meaning: Meaning, space: Space, name: str, chip: Chip) -> Plan | None:
    """The version for short axes before those for all sizes, if these can be written."""
    w = Writer(space, Sizes(space), chip)
    targets = _name_tensors(w)
    short = short_version(meaning, name, chip, _short_rows(w))
    if short is None:
        return None
    plan = Plan(short.program, _spec(space, targets, name), (*space.notes, short.note))
    if short.test is None:
        return plan
    try:
        general = _loops(space, name, chip, Decisions())
    except PlanError:
        legal = served(short)
        spec = replace(plan.spec, legal=(*(plan.spec.legal or ()), *(legal or ())))
        return None if legal is None else replace(plan, spec=spec)
    rest = general.versions or (Version(general.program),)
    return replace(plan, versions=(short, *rest))


def _loops(
    space: Space, name: str, chip: Chip, decisions: Decisions, everywhere: bool = False
) -> Plan:
    """`everywhere`: as lines are shared at the captured sizes, whatever the sizes are."""
    w = Writer(space, Sizes(space), chip, decisions=decisions)
    try:
        plan = _one_way(w, name)
    except PlanError:
        if not decisions.whole_lines():
            raise
        return _one_way(Writer(space, Sizes(space), chip, decisions=decisions), name)
    return plan if everywhere else replace(plan, versions=_by_sizes(w, name, plan.program))


def _by_sizes(w: Writer, name: str, captured: Program) -> tuple[Version, ...]:
    """A version for each way to share the lines of passes that sizes decide about.

    None where one of them does not fit the chip: then the captured sizes decide.
    """
    versions: list[Version] = []
    for lines, tests in w.decisions.ways():
        program = captured
        if lines != w.decisions.captured:
            asked = Decisions(Schedule(lines=lines))
            other = Writer(w.space, Sizes(w.space), w.chip, decisions=asked)
            try:
                program = _one_way(other, name).program
            except PlanError:
                return ()
        versions.append(guarded(program, [test.id for test in tests], w.estimates, _FEW))
    return tuple(versions) if len(versions) > 1 else ()


def _one_way(w: Writer, name: str) -> Plan:
    space = w.space
    targets = _name_tensors(w)
    root = Block(together=True)
    store_all(w, (root,), targets)
    tensors = _tensors(w, targets)
    taken = _taken(w, tensors)
    packed = pack(staged(root.items), w.temps, taken, w.chip, decisions=w.decisions)
    program = pack_rows(_program(w, name, packed, tensors, targets))
    return Plan(program, _spec(space, targets, name), _notes(space, w, packed))


def _broadcast(w: Writer) -> bool:
    """Whether operands are broadcast within rows: short ones should share a tile."""
    space = w.space
    values = reachable([out.value for out in space.outputs])
    pointwise = not any(value.op in ("reduce", "running") for value in values)
    return pointwise and len(space.groups) > 1 and len({space.axes(v) for v in values}) > 1


def _short_rows(w: Writer) -> tuple[Expr, ...]:
    """Where reductions go along few elements of many: the tests that sizes are like that."""
    space = w.space
    values = reachable([out.value for out in space.outputs])
    folds = [value for value in values if value.op == "reduce"]
    if not folds or w.row_size > LONGEST or any(value.op == "running" for value in values):
        return ()
    of_rows = [fold for fold in folds if space.axes(fold)]  # others are numbers of everything
    least = _MANY * w.chip.vector_cores
    if not of_rows or not all(
        is_foldable(w.extent(frozenset(fold.axes))) and w.extent(space.axes(fold)) >= least
        for fold in of_rows
    ):
        return ()
    most = times(Const(_MANY), ChipFact("vector_cores"))
    rows = dict.fromkeys(
        product(space.groups[group].size for group in sorted(space.axes(fold))) for fold in of_rows
    )
    short = Binary(BinOp.LE, space.groups[space.last].size, Const(LONGEST))
    return (short, *(Binary(BinOp.GE, count, most) for count in rows))


# ------------------------------------------------------------------------------------------- names


def _name_tensors(w: Writer) -> list[Target]:
    """Kernel names for inputs and outputs."""
    for item in w.space.inputs:
        w.tensors[item.item.name] = item.name
    used = set(w.tensors.values())
    outputs = w.space.outputs
    last = outputs[-1].port
    names_ = {i: tensor_name(f"y{i}" if last else "y", used) for i in range(last + 1)}
    return [Target(output, names_[output.port]) for output in outputs]


def _taken(w: Writer, tensors: Iterable[Tensor]) -> set[str]:
    """Names that buffers must not take."""
    return {item.name for item in tensors} | set(w.sizes.defined) | set(w.names)


# ----------------------------------------------------------------------------------------- program


def _tensors(w: Writer, targets: list[Target]) -> tuple[Tensor, ...]:
    inputs = [
        Tensor(w.tensors[item.item.name], item.item.dtype, TensorRole.INPUT)
        for item in w.space.inputs
    ]
    made = {t.name: t.output.dtype for t in targets}
    outputs = [Tensor(each, dtype, TensorRole.OUTPUT) for each, dtype in made.items()]
    work = [Tensor(name, DType.FLOAT32, TensorRole.SCRATCH) for name in w.sizes.scratch]
    return (*inputs, *outputs, *work)


def _program(
    w: Writer, name: str, packed: Packed, tensors: tuple[Tensor, ...], targets: list[Target]
) -> Program:
    read_names = names_read(packed.body)
    used = [item for item in (*w.sizes.defined, "cores") if item in read_names]
    host = w.sizes.write(
        name, tuple(t.name for t in tensors if t.role is not TensorRole.SCRATCH), used, ""
    )
    kernel = Kernel(
        name, tensors, tuple(Scalar(item) for item in used), packed.buffers, packed.body
    )
    everywhere = read_names | names_read(host.body)
    everywhere |= {item for buffer in packed.buffers for item in names(buffer.length)}
    folds = (packed.tile // 8).bit_length() - 1
    consts = (("TILE", packed.tile), ("FOLDS", folds))
    kept = tuple(pair for pair in consts if pair[0] in everywhere)
    return Program(kept, host, (kernel,), _doc(w.space, name, targets))


def _doc(space: Space, name: str, targets: list[Target]) -> str:
    formulas = [f"{t.name} = {formula(space, t.output.value)}" for t in targets]
    sizes = " x ".join(group.name for group in space.groups) or "one number"
    return "\n".join([f"{name} over {sizes}", *formulas, *explained(space)])


# -------------------------------------------------------------------------------------------- spec


def _spec(space: Space, targets: list[Target], name: str) -> OpSpec:
    inputs, outputs = ports(space, targets)
    return OpSpec(name, inputs, outputs, legal=space.legal)


def _notes(space: Space, w: Writer, packed: Packed) -> tuple[str, ...]:
    deals = [
        "dealt to cores: "
        + " x ".join([space.groups[g].name for g in deal.outer] + ["tiles"] * deal.tiled)
        for deal in w.sizes.deals.values()
    ]
    deals += [
        "dealt to cores: "
        + " x ".join([space.groups[g].name for g in cut.outer] + ["chunks"] + ["tiles"] * cut.tiled)
        for cut in w.sizes.cuts
    ]
    return (*space.notes, *deals, f"a tile is {packed.tile} elements")
