"""`write_kernel`: a captured graph -> a tile program of one kernel.

The first structure that takes the graph (structures.py), or one that takes much less time by the
estimate; where a schedule is given, with its decisions near the captured sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from npusmith.errors import PlanError
from npusmith.ir.nodes import Choice, Expr, Program
from npusmith.ir.text import show
from npusmith.lang.source import MAX_CHARS, MAX_STATEMENT
from npusmith.plan.decisions import Decisions, lengths
from npusmith.plan.estimate import estimate, shapes_of, time_of, traffic
from npusmith.plan.fixed_sizes import check_counted
from npusmith.plan.near_shapes import NEAR, near, tuned
from npusmith.plan.node_kinds import PRODUCTS
from npusmith.plan.scalars import ONE, ZERO
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.shared_kernels import share_kernels
from npusmith.plan.size_regimes import Regime, arithmetic_us, largest_tried, read_at, regimes
from npusmith.plan.structures import ALONE, Plan, first_of, structures, structures_of
from npusmith.plan.versions import Version, guarded, merged, taken
from npusmith.target.chips import Chip
from npusmith.task.graph import MOST_OPERATIONS, Graph

_SLOW = 1.5  # times the traffic: where a structure takes longer, others are tried
_WORTH = 0.8  # of its time
_MOST = 3  # versions for other sizes that are tried, where it is slowest
ROOM = 256 * 1024  # characters of a program up to which it gets versions for other sizes
_LONG_TEXT = 128 * 1024  # characters: of 80,000 a look takes a tenth of a second
_HANGS_US = 2_000.0  # at sizes of captures, which may be small
_VERY_LONG = 100.0  # times the traffic: it would be taken for a kernel that hangs
_AS_WRITTEN = Schedule()
_MOST_PRODUCTS = 512  # of a graph: each is a kernel of its own
_MOST_NUMBERS = 8_000  # of 8 bytes, in 64 KB of tiling data (kTilingBytes of the twin's host)
_TEXTS = 4  # programs whose text is kept: several ask about the same one


def write_kernel(
    graph: Graph, name: str, chip: Chip, schedule: Schedule = _AS_WRITTEN, everywhere: bool = False
) -> Plan:
    """The tile program for a graph, under the operator name `name`.

    Raises PlanError (codes plan-*) naming the node that cannot be written, why, and what to do.
    The program is generic in sizes: it serves every shape of the same module, unless the model
    bakes sizes into its arithmetic. Very long rows get another schedule than short ones.
    `everywhere`: what the schedule tunes is not kept to shapes near the captured ones.
    """

    def written(asked: Schedule) -> tuple[Plan, Decisions]:
        made = Decisions(asked, lengths(graph))
        return first_of(structures(graph, name, chip, made, everywhere), made), made

    plan, decisions = _quickest(graph, chip, schedule, written)
    if not any(kernel.is_cube for kernel in plan.program.kernels):
        decisions.cores(chip)
    plan = replace(plan, decisions=decisions.decided())
    if schedule == _AS_WRITTEN:
        return _merged(plan, plan.program)
    if not everywhere and _other(plan, own := write_kernel(graph, name, chip)):
        return _near(plan, for_other_sizes(own, graph, name, chip), decisions)
    plan = _merged(plan, tuned(plan.program, plan.spec, decisions.made, everywhere))
    return plan if everywhere else for_other_sizes(plan, graph, name, chip)


def _quickest(
    graph: Graph,
    chip: Chip,
    schedule: Schedule,
    written: Callable[[Schedule], tuple[Plan, Decisions]],
) -> tuple[Plan, Decisions]:
    """The preferred structure, or one that takes much less time by the estimate."""

    def us(plan: Plan) -> float:
        return time_of(plan.program, plan.spec, graph, chip)

    best = written(schedule)
    if schedule.structure is not None or not graph.nodes:
        return best
    others = best[1].made["structure"].others
    least = us(best[0]) if others else 0.0
    for other in others if least > _SLOW * traffic(graph, chip) else ():
        try:
            tried = written(schedule.changed("structure", other))
        except PlanError:
            continue
        if (time := us(tried[0])) < _WORTH * least:
            best, least = tried, time
    return best


@lru_cache(maxsize=_TEXTS)
def text_of(program: Program) -> str:
    """What the language takes or refuses for its length: equal kernels written once."""
    return show(share_kernels(program))


def check_operations(graph: Graph) -> None:
    """Raises plan-length for a graph of which no part of a program could be short enough."""
    products = sum(node.op in PRODUCTS for node in graph.nodes)
    for count, most, what in (
        (len(graph.nodes), MOST_OPERATIONS, "operations"),
        (products, _MOST_PRODUCTS, "matrix products"),
    ):
        if count > most:
            raise PlanError(
                "plan-length", f"the graph has {count:,} {what}", legal=f"at most {most:,}",
                hint="generate the module in parts: a layer, a step of its loop",
            )  # fmt: skip


def check_length(program: Program) -> None:
    """Raises plan-length for a program that the language would not take."""
    text = text_of(program)
    count, longest = len(program.kernels), max(map(len, text.split("\n")))
    numbers = sum(len(launch.args) for launch in program.host.launches)
    for what, length, unit, most in (
        (f"the program of {count} kernels", len(text), "characters", MAX_CHARS),
        (f"a statement of the program of {count} kernels", longest, "characters", MAX_STATEMENT),
        (f"the tiling data of {count} kernels", numbers, "numbers", _MOST_NUMBERS),
    ):
        if length > most:
            raise PlanError(
                "plan-length", f"{what} has {length:,} {unit}", legal=f"at most {most:,}",
                hint="generate the module in parts",
            )  # fmt: skip


def has_room(program: Program) -> bool:
    """Whether a program with a version more is still short enough."""
    text = text_of(program)
    return len(text) <= ROOM and max(map(len, text.split("\n"))) <= MAX_STATEMENT


def for_other_sizes(plan: Plan, graph: Graph, name: str, chip: Chip) -> Plan:
    """With versions for sizes at which the program is slow, and one captured there is not."""
    if plan.schedule.structure in (Structure.SORT, *ALONE):
        return plan
    versions = plan.versions or (Version(plan.program),)
    slow = [
        (share, regime)
        for regime in regimes(graph, plan.spec, shapes_of(graph, plan.spec), chip)
        if (share := _share(versions, regime, graph, chip)) > _SLOW
    ]
    found: dict[int, Version] = {}
    for at, (_, regime) in sorted(enumerate(slow), key=lambda item: -item[1][0])[:_MOST]:
        version = _version_at(plan, regime, graph, name, chip)
        if version is None:
            break  # the writer has nothing better where it is slowest
        found[at] = version
    added = [found[at] for at in sorted(found)]
    if not added:
        return plan
    program = merged((*added, *versions))
    if not has_room(program):
        return plan
    return replace(plan, program=program, versions=(*added, *versions))


def slow_regimes(
    plan: Plan, graph: Graph, chip: Chip, served: Callable[[], Plan]
) -> list[tuple[float, Regime]]:
    """Longer rows at which it takes very long, whatever versions are added: work is repeated, or
    done element by element, where what was held on chip at the captured sizes is not. These sizes
    may be none that anybody has, so that much arithmetic is no reason.

    With the estimated microseconds there. `served`: the plan with versions for other sizes.
    """
    if not _is_looked_at(plan):
        return []
    own = shapes_of(graph, plan.spec)
    there = [
        item
        for few in (False, True)
        for item in regimes(graph, plan.spec, own, chip, longer=True, few=few)
    ]

    def found(plan: Plan) -> list[tuple[float, Regime]]:
        return [
            (us, regime)
            for us, regime in _very_long(plan, there, graph, chip)
            if us > _VERY_LONG * arithmetic_us(read_at(graph, plan.spec, regime), chip)
        ]

    return found(plan) and found(served())


def _very_long(
    plan: Plan, there: Sequence[Regime], graph: Graph, chip: Chip
) -> Iterator[tuple[float, Regime]]:
    versions = plan.versions or (Version(plan.program),)
    for regime in there:
        us = _us_at(versions, regime, chip)
        if us > _VERY_LONG * traffic(regime.graph(graph), chip):
            yield us, regime


def _is_looked_at(plan: Plan) -> bool:
    """Of longer texts both forms would hardly fit one program."""
    alone = plan.schedule.structure in (Structure.SORT, *ALONE)
    return not alone and len(show(plan.program)) <= _LONG_TEXT


def slow_where_tried(
    plan: Plan, graph: Graph, chip: Chip, served: Callable[[], Plan], often: int = 1
) -> float:
    """The microseconds that it takes at the sizes of captures, where that is very long; else 0.

    `often`: how many times it runs one after another.

    They belong together: a regime may know nothing of how the size of a tensor follows from
    another. No test of sizes tells them from others.
    """
    if not _is_looked_at(plan):
        return 0.0
    tried = largest_tried(graph, plan.spec)

    def longest(plan: Plan) -> float:
        found = (us for us, _ in _very_long(plan, tried, graph, chip) if often * us > _HANGS_US)
        return max(found, default=0.0)

    return longest(plan) and longest(served())


def _share(versions: Sequence[Version], regime: Regime, graph: Graph, chip: Chip) -> float:
    """How many times as long as the traffic a kernel takes."""
    return _us_at(versions, regime, chip) / traffic(regime.graph(graph), chip)


def _us_at(versions: Sequence[Version], regime: Regime, chip: Chip) -> float:
    """Estimated microseconds of the version that runs there."""
    return estimate(taken(versions, regime.shapes, chip).program, regime.shapes, chip)


def _version_at(plan: Plan, regime: Regime, graph: Graph, name: str, chip: Chip) -> Version | None:
    """What would run at these sizes, were it captured there; None where that is no quicker."""
    there = regime.graph(graph)

    def written(asked: Schedule) -> tuple[Plan, Decisions]:
        made, meaning = Decisions(asked, lengths(there)), read_at(graph, plan.spec, regime)
        return first_of(structures_of(meaning, name, chip, made), made), made

    try:
        other, _ = _quickest(there, chip, _AS_WRITTEN, written)
        check_counted(other.program, other.spec.inputs)
    except PlanError:
        return None
    if not _alike(other, plan):
        return None
    own, found = (
        taken(item.versions or (Version(item.program),), regime.shapes, chip)
        for item in (plan, other)
    )
    us, own_us = (estimate(item.program, regime.shapes, chip) for item in (found, own))
    if us > _WORTH * own_us:
        return None
    return found.where(_held_to(found, plan, regime, chip), regime.note)


def _held_to(version: Version, plan: Plan, regime: Regime, chip: Chip) -> Expr:
    """The test of the regime; a narrower one where the version is much slower at its border."""
    if regime.border is None:
        return regime.test
    own = taken(plan.versions or (Version(plan.program),), regime.border, chip)
    us, own_us = (estimate(item.program, regime.border, chip) for item in (version, own))
    return regime.test if us <= _SLOW * own_us else regime.narrow


def _alike(one: Plan, two: Plan) -> bool:
    """Whether two programs take and give the same tensors, and serve the same sizes."""
    ports = [(plan.program.inputs, plan.program.outputs) for plan in (one, two)]
    legal = [None if plan.spec.legal is None else {*plan.spec.legal} for plan in (one, two)]
    return ports[0] == ports[1] and legal[0] == legal[1]


def _merged(plan: Plan, captured: Program) -> Plan:
    """All versions in one kernel. `captured`: that for the captured sizes, as it was tuned."""
    if not plan.versions:
        return replace(plan, program=captured)
    versions = tuple(
        replace(item, program=captured) if item.program is plan.program else item
        for item in plan.versions
    )
    return replace(plan, program=merged(versions), versions=versions)


_STRUCTURAL = ("structure", "lines", "inner", "copies")


def _other(plan: Plan, own: Plan) -> bool:
    """Whether it is laid out in another form than the writer's own, or needs longer buffers."""
    made = {item.name: item.value for item in own.decisions}
    for item in plan.decisions:
        if item.name in _STRUCTURAL and item.value != made.get(item.name):
            return True
        match item.value, item.own:
            case (int(value), int(writers)) if item.name == "tile" and value > writers:
                return True
    return False


def _near(plan: Plan, own: Plan, decisions: Decisions) -> Plan:
    """The program of a schedule near the captured sizes, else the writer's own."""
    first = tuned(plan.program, plan.spec, decisions.made, everywhere=True)
    if plan.schedule.structure is Structure.SHORT_AXES:  # right where axes are short
        first = _merged(plan, first).program
    tensors = first.inputs, first.outputs
    if (own.program.inputs, own.program.outputs) != tensors:
        return replace(plan, program=first, notes=(*plan.notes, "this schedule holds everywhere"))
    test = {NEAR.id: Choice(near(plan.spec), ONE, ZERO)}
    version = guarded(first, list(test), test, "shapes near the captured ones")
    versions = (version, *(own.versions or (Version(own.program),)))
    legal = tuple(dict.fromkeys((*(plan.spec.legal or ()), *(own.spec.legal or ()))))
    both = plan.spec.legal is not None and own.spec.legal is not None
    spec = replace(plan.spec, legal=legal if both else None)
    return replace(plan, program=merged(versions), spec=spec, versions=versions)
