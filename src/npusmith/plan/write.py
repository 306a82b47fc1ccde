"""`write`: a captured graph -> a tile program, with no model; search.py tries schedules of it."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from npusmith.errors import PlanError
from npusmith.ir.nodes import Binary, BinOp, Choice, Const, Dim, Expr
from npusmith.ir.rebuild import map_children
from npusmith.ir.spec import OpSpec
from npusmith.ir.text import show_expr
from npusmith.lang.extents import extent, unmet
from npusmith.lower.fold import fold
from npusmith.lower.kinds import Kind
from npusmith.lower.served import with_own_weights
from npusmith.plan.core_count import on_worthwhile_cores
from npusmith.plan.cube_products import with_cube_products
from npusmith.plan.estimate import shapes_of
from npusmith.plan.fixed_sizes import check_counted, fixed_sizes, unread
from npusmith.plan.link import link, link_steps
from npusmith.plan.long_sorts import has_sort, is_sort
from npusmith.plan.paired_kernels import write_paired
from npusmith.plan.partition import (
    Kernels,
    Part,
    is_slow,
    partition,
    passes_short_floats,
    time_together,
    us_of,
)
from npusmith.plan.provable_conditions import always, without_implied
from npusmith.plan.renamed_plans import PlanCache
from npusmith.plan.scalars import ONE, ZERO, all_of
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.shared_kernels import share_kernels
from npusmith.plan.size_regimes import Regime, takes, tried_sizes
from npusmith.plan.split_k import WORTH, with_split_products
from npusmith.plan.structures import DEEPEST, Plan, Steps
from npusmith.plan.time_loops import scan_of, taken_apart
from npusmith.plan.versions import Version, guarded, merged
from npusmith.plan.write_kernel import (
    ROOM,
    check_length,
    check_operations,
    for_other_sizes,
    has_room,
    slow_regimes,
    slow_where_tried,
    text_of,
    write_kernel,
)
from npusmith.target.chips import Chip
from npusmith.task.graph import Argument, Graph, Node, Ref, references

_AS_WRITTEN = Schedule()
_FRAMES = 20  # of Python, at most, for one step down
_LAYOUTS = (
    "view", "clone", "expand", "permute", "squeeze", "unsqueeze", "alias", "slice", "_unsafe_view",
)  # fmt: skip
_AS_CAPTURED = "own_sizes"  # ... where axes of 1 are as captured
_TOGETHER = "one_kernel"  # the host variable that is 1 where the first kernel does everything
_WORTH = 0.7  # of a kernel's time: several that take more are not worth it
_STEPS = 100  # of a loop in time, which may have more than as captured
_MUCH = 10  # times as long: what is less slow by less is not worth other kernels
_FRUITLESS = 16  # rounds of looking for kernels that are slow at no size, since the last gain
_WORTH_ROUNDED = 0.5  # ... where what passes on is rounded to 16 bits


def write(
    graph: Graph,
    name: str,
    chip: Chip,
    schedule: Schedule = _AS_WRITTEN,
    *,
    everywhere: bool = False,
    own: Plan | None = None,
) -> Plan:
    """The tile program for a graph, under the operator name `name`, with the schedule's decisions.

    One kernel where one can hold the graph, else several that run one after another.
    Raises PlanError (codes plan-*) naming the nodes that cannot be written, why, and what to do;
    plan-schedule for a decision that this program does not have.
    The program is generic in sizes: it serves every shape of the same module, unless the model
    bakes sizes into its arithmetic: these are the only ones that it serves. Very long rows get
    another schedule than short ones. `everywhere`: the schedule's tile and cores are those of all
    shapes, not only of shapes near the captured ones. `own`: what this gives without a schedule,
    where that is known: of several kernels these are not looked for again.
    """
    check_operations(graph)
    plan = _as_asked(graph, name, chip, schedule, everywhere, own)
    return replace(plan, program=share_kernels(plan.program))


def _as_asked(
    graph: Graph, name: str, chip: Chip, schedule: Schedule, everywhere: bool, own: Plan | None
) -> Plan:
    """A kernel for each part."""
    if schedule.kernels:
        own = own or _as_asked(graph, name, chip, _AS_WRITTEN, False, None)
        of = graph.longer if own.longer and graph.longer is not None else graph
        plan = _captured(of, name, chip, schedule, everywhere, own)
        return replace(plan, spec=own.spec, longer=True) if own.longer else plan
    if everywhere or graph.longer is None:
        return _captured(graph, name, chip, schedule, everywhere)
    plan = _captured(graph, name, chip, schedule)
    return _with_longer(plan, graph, graph.longer, name, chip)


def _captured(
    graph: Graph,
    name: str,
    chip: Chip,
    schedule: Schedule,
    everywhere: bool = False,
    own: Plan | None = None,
) -> Plan:
    """For sizes that the graph describes."""
    with _deep():
        if own is not None:
            plan = _several(own.parts, graph, name, chip, schedule, everywhere)
        else:
            plan = _write(graph, name, chip, schedule, everywhere)
    if len(plan.program.kernels) == 1:
        plan = _on_cores(plan, graph, chip)
    if not everywhere and (lost := unread(graph, plan.spec.inputs)):
        verb = "are numbers" if " and " in lost else "is a number"
        message = (
            f"{lost} {verb} in the model's arithmetic, and no element of it is read: "
            "other sizes would go unseen"
        )
        raise PlanError("plan-fixed-size", message)
    fixed = [e for e in fixed_sizes(graph, plan.spec.inputs) if e not in (plan.spec.legal or ())]
    notes = [f"{show_expr(expr)}: the model's arithmetic has it as a number" for expr in fixed]
    legal = (*plan.spec.legal, *fixed) if plan.spec.legal is not None else tuple(fixed) or None
    legal = legal and tuple(fold(expr, lambda _: Kind.INT) for expr in legal)
    legal = legal and without_implied(legal)
    spec = replace(
        plan.spec, legal=legal, literals=graph.literals, constants=graph.constants
    )  # fmt: skip
    return replace(plan, spec=spec, notes=(*plan.notes, *notes))


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    """Room for values that are asked about their arguments, DEEPEST of them one after another.

    And no collection of cycles: what is written are trees, millions of nodes that all stay for a
    while, and to look for cycles among them takes a quarter of the time.
    """
    before, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(before, _FRAMES * DEEPEST))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        if collects:
            gc.enable()


def _on_cores(plan: Plan, graph: Graph, chip: Chip) -> Plan:
    """One kernel on as many cores as it is worth."""
    if plan.program.kernel.is_cube:
        return plan
    shapes = shapes_of(graph, plan.spec)
    return replace(plan, program=on_worthwhile_cores(plan.program, plan.spec, shapes, chip))


@dataclass(frozen=True, slots=True)
class _Served:
    """Kernels with versions for other sizes, each looked for once while a graph is written."""

    name: str
    chip: Chip
    written: PlanCache = field(default_factory=PlanCache)

    def plan(self, plan: Plan, graph: Graph) -> Plan:
        """`plan`: as it is written without a schedule."""

        def write() -> Plan:
            return for_other_sizes(plan, graph, self.name, self.chip)

        return self.written.plan(graph, None, write)

    def slow(self, plan: Plan, graph: Graph) -> list[tuple[float, Regime]]:
        """Sizes at which it takes very long all the same, and how long."""
        return slow_regimes(plan, graph, self.chip, lambda: self.plan(plan, graph))

    def slow_us(self, plan: Plan, graph: Graph, often: int) -> float:
        """The most that it takes at these, or at the sizes of captures; 0 where it is quick."""
        if slow := self.slow(plan, graph):
            return max(us for us, _ in slow)
        return slow_where_tried(
            plan, graph, self.chip, lambda: self.plan(plan, graph), often
        )  # fmt: skip


def _write(graph: Graph, name: str, chip: Chip, schedule: Schedule, everywhere: bool) -> Plan:
    if everywhere:  # a search asks for a part that was written and checked before
        return _part(graph, name, chip, schedule, everywhere)
    served = _Served(name, chip)
    try:
        whole = write_kernel(graph, name, chip, schedule)
        check_counted(whole.program, whole.spec.inputs)
    except PlanError as error:
        if error.code == "plan-schedule" or not graph.outputs or not graph.nodes:
            raise
        try:
            parts = _with_any_rows(_parts(graph, served), graph, served)
        except PlanError as problem:
            raise problem from error
        if not parts:
            raise
        if given := schedule.given():
            raise _not_one(given[0], len(parts)) from error
        return _linked(parts, graph, served)
    if schedule.given():
        slow = slow_regimes(
            whole, graph, chip, lambda: for_other_sizes(whole, graph, name, chip)
        )  # fmt: skip
        several = _instead(graph, whole, served) if slow else None
        if several is not None:
            return _where_it_is_quick(whole, several[1], slow, graph, chip)
        return _with_long_rows(whole, graph, served)
    found = _quicker(graph, whole, served)
    if found is not None:
        return found
    return _with_long_rows(served.plan(whole, graph), graph, served)


def _with_long_rows(plan: Plan, graph: Graph, served: _Served) -> Plan:
    """Where one kernel puts rows in order that a tile holds: several kernels for longer ones.

    As it is where nothing is gained, or the graph cannot be written so.
    """
    if not _sorts_among_others(graph) or not plan.spec.legal:
        return plan
    try:
        several = _linked(_parts(graph, served, alone=True), graph, served)
    except PlanError:
        return plan
    known = _equal_sizes(plan)
    tests = _tests(plan, several)
    if not tests or not _conditions(several, known) <= _conditions(plan, known):
        return plan
    quick = Choice(all_of(tests), ONE, ZERO)
    made = _two_ways(plan, several, quick, "rows that a tile holds", graph, served.chip)
    if made is None:
        return plan
    notes = (*plan.notes, f"longer rows: {len(several.program.kernels)} kernels, one after another")
    return replace(made, spec=replace(plan.spec, legal=several.spec.legal or ()), notes=notes)


def _with_longer(own: Plan, graph: Graph, longer: Graph, name: str, chip: Chip) -> Plan:
    """Where axes of 1 may be longer: a program for these, too, by the graph that has them so.

    before: a batch of one alone
    after:  the same program where the batch is one, and another one for all others; of several
            kernels, those for all, if they do the same
    """
    try:
        other = _captured(longer, name, chip, _AS_WRITTEN)
    except PlanError:
        return own
    tests = [test for test in own.spec.legal or () if test not in (other.spec.legal or ())]
    if not tests or not _is_wider(other, own):
        return own
    spec, count = _as_shaped(other.spec, own.spec), len(other.program.kernels)
    several = all(len(plan.program.kernels) > 1 for plan in (own, other))
    if several and _computed(graph) == _computed(longer):
        return replace(other, spec=spec, longer=True)
    kernels = (*own.program.kernels, *other.program.kernels)
    if len(own.program.kernels) > 1 or any(kernel.is_cube for kernel in kernels):
        return own
    given = {_AS_CAPTURED: Choice(all_of(tests), ONE, ZERO)}
    program = merged([guarded(own.program, [*given], given, "axes of 1"), Version(other.program)])
    if not has_room(program):
        return own
    notes = (*own.notes, f"longer axes than of 1: {count} kernels, one after another")
    return replace(own, program=program, spec=spec, notes=notes)


def _computed(graph: Graph) -> list[tuple[str, int, list[Argument]]]:
    """What a graph computes, whatever it takes to lay it out: a size of 1 has other layouts."""
    return [
        (node.op, len(node.shape), [item for item in node.args if not isinstance(item, Ref)])
        for node in graph.nodes
        if node.op.split(".")[1] not in _LAYOUTS
    ]


def _is_wider(other: Plan, own: Plan) -> bool:
    """Whether a program has the same tensors and serves all sizes of another."""
    shapes = {port.name: port.shape for port in own.spec.inputs}
    if _tensors(other) != _tensors(own) or unmet(other.spec, shapes) is not None:
        return False
    known = _equal_sizes(own)
    if not _conditions(_sized(other), known) <= _conditions(_sized(own), known):
        return False
    constants = other.spec.constants == own.spec.constants
    results = [tuple(extent(dim, shapes) for dim in port.dims) for port in other.spec.outputs]
    return constants and results == [port.shape for port in own.spec.outputs]


def _sized(plan: Plan) -> Plan:
    shapes = {port.target: port.shape for port in plan.spec.inputs}
    return replace(plan, spec=with_own_weights(plan.spec, shapes))


def _as_shaped(spec: OpSpec, own: OpSpec) -> OpSpec:
    """With the shapes that another one has."""
    inputs, outputs = (
        tuple(replace(port, shape=known.shape) for port, known in zip(*pair, strict=True))
        for pair in ((spec.inputs, own.inputs), (spec.outputs, own.outputs))
    )
    return replace(spec, inputs=inputs, outputs=outputs)


def _tensors(plan: Plan) -> list[tuple[str, int | None, str]]:
    """What an operator takes and gives, and what its program calls it."""
    ports = (*plan.spec.inputs, *plan.spec.outputs)
    return [(port.name, port.position, port.target) for port in ports]


def _parts(
    graph: Graph,
    served: _Served,
    alone: bool = False,
    whole: Plan | None = None,
    often: int = 1,
) -> tuple[Part, ...]:
    """`alone`: what puts rows in order does nothing else, and so serves rows of any length.

    `whole`: the kernel of all of it, where one was written. `often`: how many times all of it runs.
    """
    name, chip = served.name, served.chip
    reads = _reads(graph)
    users = {item.position: item.name for item in graph.inputs if item.kind == "user"}

    def made(part: Graph, kernels: Kernels) -> Plan:
        if alone and _sorts_among_others(part):
            raise PlanError("plan-ub", "longer rows do not fit on chip to be sorted")
        scan = scan_of(part)
        if scan is not None:
            return _scanned(part, scan, served)
        plan = _part(part, name, chip, make=lambda own: kernels.part(own).plan)
        elsewhere = reads - _reads(part)
        ports = (port for port in plan.spec.inputs if port.position in users)
        own = tuple(port for port in ports if users[port.position] not in elsewhere)
        check_counted(plan.program, own)
        return plan

    def slow_elsewhere(part: Part) -> float:
        return 0.0 if part.plan.steps is not None else served.slow_us(part.plan, part.graph, often)

    kernels = Kernels(made, chip, slow_elsewhere)
    if whole is not None:
        kernels.add(graph, whole)
    parts = partition(graph, kernels)
    slow = sum(map(kernels.slow_us, parts))
    if not slow:
        return parts
    avoiding, least, others, fruitless = replace(kernels, avoid=True), slow, parts, 0
    while least and fruitless < _FRUITLESS:
        seen = len(kernels.within)
        found = partition(with_cube_products(graph, kernels.slow_nodes()), avoiding)
        for part in found:  # what refuses those sizes is no quicker there
            if not kernels.slow_us(part) and _refuses_some(part):
                kernels.count_slow(part, slow)
        still = sum(map(kernels.slow_us, found))  # asked of those that are chosen
        fruitless = 0 if still < least else fruitless + 1
        if still < least:
            least, others = still, found
        if len(kernels.within) == seen:
            break
    if least > slow / _MUCH:
        return parts
    one, two = (link(found, graph, name) for found in (parts, others))
    return others if _serves_all(two, one) or _takes_what(one, two, graph) else parts


def _refuses_some(part: Part) -> bool:
    """Whether its kernel does not serve all sizes of captures."""
    spec = part.plan.spec
    return not all(takes(spec, shapes) for shapes, _ in tried_sizes(part.graph, spec))


def _takes_what(one: Plan, two: Plan, graph: Graph) -> bool:
    """Whether the second serves all sizes of captures that the first one does.

    Conditions may say the same of other products of sizes, which nobody can tell from their text.
    """
    tried = [shapes for shapes, _ in tried_sizes(graph, one.spec)]
    names = [port.name for port in one.spec.inputs]
    if not tried or names != [port.name for port in two.spec.inputs]:
        return False
    return all(takes(two.spec, shapes) for shapes in tried if takes(one.spec, shapes))


def _part(
    graph: Graph,
    name: str,
    chip: Chip,
    schedule: Schedule = _AS_WRITTEN,
    everywhere: bool = False,
    make: Callable[[Graph], Plan] | None = None,
) -> Plan:
    """The kernel of a part, or a product and what is behind it side by side.

    `make`: kernels of which these have to be quicker.
    """
    if schedule.structure is Structure.PRODUCT_BESIDE:
        return write_paired(graph, name, chip, schedule, make)
    try:
        return write_kernel(graph, name, chip, schedule, everywhere)
    except PlanError as error:
        if error.code != "plan-cube":
            raise
        with contextlib.suppress(PlanError):
            return write_paired(graph, name, chip, schedule, make)
        raise


def _scanned(graph: Graph, scan: Node, served: _Served) -> Plan:
    """The kernels of a scan: those of its states, and those of a step."""
    found = taken_apart(graph, scan)

    def made(graphs: Sequence[Graph], often: int = 1) -> tuple[tuple[Graph, Plan], ...]:
        parts = (part for own in graphs for part in _parts(own, served, often=often))
        return tuple((part.graph, part.plan) for part in parts)

    steps = Steps(found, made(found.before), made((found.step,), _STEPS), made(found.after))
    return link_steps(graph, steps, served.name)


def _with_each(part: Part, written: Callable[[Graph, Plan], Plan], name: str) -> Part:
    """A part with its kernel, or all kernels of its scan, as `written` has them."""
    if (steps := part.plan.steps) is None:
        return Part(part.graph, written(part.graph, part.plan))

    def each(pairs: tuple[tuple[Graph, Plan], ...]) -> tuple[tuple[Graph, Plan], ...]:
        return tuple((graph, written(graph, plan)) for graph, plan in pairs)

    new = replace(steps, before=each(steps.before), step=each(steps.step), after=each(steps.after))
    return Part(part.graph, link_steps(part.graph, new, name))


def _sorts_among_others(graph: Graph) -> bool:
    """Whether rows are put in order, and more is done: a kernel then holds whole rows in a tile."""
    return has_sort(graph) and not is_sort(graph)


def _with_any_rows(parts: tuple[Part, ...], graph: Graph, served: _Served) -> tuple[Part, ...]:
    """Kernels that serve rows of any length in order, where these do not and others can."""
    if not any(_sorts_among_others(part.graph) for part in parts):
        return parts
    try:
        return _parts(graph, served, alone=True)
    except PlanError:
        return parts


def _reads(graph: Graph) -> Counter[str]:
    """How often each tensor is read."""
    reads = Counter(name for node in graph.nodes for name in references(node))
    reads.update(graph.outputs)
    return reads


def _linked(parts: tuple[Part, ...], graph: Graph, served: _Served) -> Plan:
    plan = _short_enough(parts, graph, served)
    check_counted(plan.program, plan.spec.inputs)
    check_length(plan.program)
    return plan


def _short_enough(parts: tuple[Part, ...], graph: Graph, served: _Served) -> Plan:
    """As many versions for other sizes as the longest text of a program has room for."""
    name, chip = served.name, served.chip
    plan = link(parts, graph, name)
    if len(text_of(plan.program)) <= ROOM:
        longer = [_with_each(item, lambda own, one: served.plan(one, own), name) for item in parts]
        several = link(longer, graph, name)
        return several if has_room(several.program) else plan
    # many kernels in versions: one of each, as lines are shared at the captured sizes
    one = PlanCache()

    def written(own: Graph, plan: Plan) -> Plan:
        if not plan.versions:
            return plan
        return one.plan(own, None, lambda: _part(own, name, chip, everywhere=True))

    return link([_with_each(item, written, name) for item in parts], graph, name)


def _quicker(graph: Graph, whole: Plan, served: _Served) -> Plan | None:
    """Several kernels instead of one that repeats work, has no lanes, or keeps few cores busy.

    None where they are not much quicker by the estimate, or serve fewer sizes.
    """
    chip = served.chip
    least = us_of(Part(graph, whole), chip)
    splits = with_split_products(graph, chip) != graph
    slow = served.slow(whole, graph)
    if not (splits or slow or is_slow(least, graph, chip)):
        return None
    several = _instead(graph, whole, served)
    if several is None:
        return None
    parts, plan = several
    worth = _WORTH_ROUNDED if passes_short_floats(parts) else WORTH if splits else _WORTH
    if time_together(parts, chip) <= worth * least:
        return plan
    return _where_it_is_quick(whole, plan, slow, graph, chip) if slow else None


def _instead(
    graph: Graph, whole: Plan, served: _Served
) -> tuple[tuple[Part, ...], Plan] | None:  # fmt: skip
    """Several kernels that serve all the sizes that one does."""
    try:
        parts = _with_any_rows(_parts(graph, served, whole=whole), graph, served)
        plan = _linked(parts, graph, served) if len(parts) > 1 else None
    except PlanError:
        return None
    if plan is None:
        return None
    return (parts, plan) if _serves_all(plan, whole) else None


def _where_it_is_quick(
    whole: Plan, several: Plan, slow: Sequence[tuple[float, Regime]], graph: Graph, chip: Chip
) -> Plan:
    """One kernel, and several for sizes that it does not serve or at which it takes very long.

    Where one program has no room for both, several for all sizes.
    """
    served = several.spec.legal or ()
    tests = _tests(whole, several)
    quick: Expr = Choice(all_of(tests), ONE, ZERO) if tests else ONE
    for _, regime in slow:
        quick = Choice(regime.test, ZERO, quick)
    made = _two_ways(whole, several, quick, "sizes at which one kernel is quick", graph, chip)
    if made is None:
        return several
    notes = (*whole.notes, f"other sizes: {len(several.program.kernels)} kernels")
    return replace(made, spec=replace(whole.spec, legal=served), notes=notes)


def _tests(whole: Plan, several: Plan) -> list[Expr]:
    """Conditions of one kernel that several do not have."""
    served = several.spec.legal or ()
    return [test for test in whole.spec.legal or () if test not in served]


def _two_ways(
    whole: Plan, several: Plan, quick: Expr, note: str, graph: Graph, chip: Chip
) -> Plan | None:
    """One kernel where `quick` is 1, else several; None where one program cannot hold both."""
    own = _on_cores(whole, graph, chip).program
    kernels = (*own.kernels, *several.program.kernels)
    if _tensors(several) != _tensors(whole) or any(item.is_cube for item in kernels):
        return None
    given = {_TOGETHER: quick}
    program = merged([guarded(own, [*given], given, note), Version(several.program)])
    return replace(whole, program=program) if has_room(program) else None


def _equal_sizes(plan: Plan) -> dict[Expr, Expr]:
    """Of sizes that have to be equal, the one that stands for all."""
    known: dict[Expr, Expr] = {}

    def first(expr: Expr) -> Expr:
        while expr in known:
            expr = known[expr]
        return expr

    for expr in plan.spec.legal or ():
        if isinstance(expr, Binary) and expr.op is BinOp.EQ:
            one, two = sorted((first(expr.left), first(expr.right)), key=show_expr)
            if isinstance(two, Dim) and one != two:
                known[two] = one
            elif isinstance(one, Dim) and one != two:
                known[one] = two
    return {expr: first(expr) for expr in known}


def _serves_all(other: Plan, one: Plan) -> bool:
    """Whether a plan has no more conditions than another, but for axes of nothing.

    Products over nothing are zeros, which no cube unit makes; that is no reason to hang elsewhere.
    """
    known = _equal_sizes(one)
    more = _conditions(_sized(other), known) - _conditions(_sized(one), known)
    return all(_excludes_empty(expr) for expr in more)


def _excludes_empty(condition: object) -> bool:
    """Whether it says `x.shape[0] >= 1`."""
    match condition:
        case Binary(BinOp.GE, Dim(), Const(1)):
            return True
        case _:
            return False


def _conditions(plan: Plan, known: Mapping[Expr, Expr]) -> set[object]:
    """Of the sizes that it serves, as far as they do not follow from equal sizes.

    a == b is b == a.
    """

    def same(expr: Expr) -> Expr:
        return known.get(expr) or map_children(expr, same)

    conditions = {fold(same(expr), lambda _: Kind.INT) for expr in plan.spec.legal or ()}
    return {
        frozenset((expr.left, expr.right))
        if isinstance(expr, Binary) and expr.op is BinOp.EQ
        else expr
        for expr in conditions
        if not always(expr)
    }


def _several(
    parts: Sequence[tuple[Graph, Plan]],
    graph: Graph,
    name: str,
    chip: Chip,
    schedule: Schedule,
    everywhere: bool,
) -> Plan:
    """Several kernels, each with its schedule."""
    given = [item for item in schedule.given() if item != "kernels"]
    if len(parts) != len(schedule.kernels):
        raise PlanError(
            "plan-schedule", f"`kernels` are {len(schedule.kernels)}",
            legal=f"{len(parts)} for this module" if parts else "no kernels: one holds the module",
        )  # fmt: skip
    if given:
        raise _not_one(given[0], len(parts))

    written = PlanCache()

    def linked(everywhere: bool) -> Plan:
        def each(own: Graph, asked: Schedule) -> Plan:
            def write() -> Plan:
                return _part(own, name, chip, asked, everywhere)

            return written.plan(own, (asked, everywhere), write)

        changed = [
            Part(own, plan if plan.steps else each(own, asked))
            for (own, plan), asked in zip(parts, schedule.kernels, strict=True)
        ]
        return link(changed, graph, name)

    plan = linked(everywhere)
    # as in _short_enough: one of each where the versions have no room
    return plan if everywhere or len(text_of(plan.program)) <= ROOM else linked(True)


def _not_one(decision: str, kernels: int) -> PlanError:
    message = f"`{decision}` is decided for each of {kernels} kernels"
    return PlanError("plan-schedule", message, legal="kernels: a schedule for each")
