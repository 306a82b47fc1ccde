"""Graph -> parts: which operations share a kernel, and which values pass through global memory.

Operations are taken in order; a part is a run of them that one kernel can hold. Of the partitions
that end parts where one kernel holds no more, or earlier where fewer bytes pass on or something has
been reduced, that with the least estimated time is taken (estimate.py). Views and constants belong
to no part: they cost nothing and are made again wherever they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from npusmith.errors import PlanError
from npusmith.plan.attention_graph import us_apart, with_attention
from npusmith.plan.concat_chains import with_concat_chains
from npusmith.plan.estimate import LAUNCH, WAIT, hbm_us, time_of, traffic
from npusmith.plan.node_kinds import ATTENTION, SHORT_FLOATS
from npusmith.plan.renamed_plans import renamed_plan
from npusmith.plan.split_k import with_split_products
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import Plan
from npusmith.plan.subgraphs import Cutter, crossing_name
from npusmith.plan.time_loops import beside_scans
from npusmith.plan.wide_products import with_wide_products
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

_MOST = 3  # first and last of the places where a part may end, of each kind
_FAR = 4.0  # times as long as a slow kernel: views around it may be copied
_WORTH_COPIES = 0.7  # of the time: views are copied for less
_AVOIDED = 1e3  # times what a kernel takes at other sizes, where that is very long
_SLOW, _SHORT = 3.0, 10.0  # times the traffic, and microseconds
_HOPELESS = 10.0  # times as long as a slow kernel: with more in it, it will not be better
_MANY = 100  # operations: of fewer, all runs are tried
_FIRST = 8  # operations of the first run that is tried


@dataclass(frozen=True, slots=True)
class Part:
    """Some operations of a graph as a graph of their own, and the kernel that computes them."""

    graph: Graph
    plan: Plan


Make = Callable[[Graph, "Kernels"], Plan]
Us = Callable[[Part], float]


def us_of(part: Part, chip: Chip) -> float:
    """Estimated microseconds of its kernel."""
    return time_of(part.plan.program, part.plan.spec, part.graph, chip) + part.plan.more_us


def time_together(parts: Sequence[Part], chip: Chip) -> float:
    """Of all of them: one launch, with a wait of all cores between two kernels."""
    return sum(us_of(part, chip) for part in parts) + (WAIT - LAUNCH) * (len(parts) - 1)


def passes_short_floats(parts: Sequence[Part]) -> bool:
    """Whether values of 16 bits pass through global memory, which one kernel need not round."""
    inputs = (item for part in parts for item in part.graph.inputs)
    return any(crossing_name(item) and item.dtype in SHORT_FLOATS for item in inputs)


def is_slow(us: float, graph: Graph, chip: Chip, times: float = 1.0) -> bool:
    """Whether kernels take so long that they may repeat work, or have no lanes for it.

    `times`: so often as long.
    """
    return us > times * (_SLOW * traffic(graph, chip) + _SHORT)


def partition(graph: Graph, made: Kernels) -> tuple[Part, ...]:
    """The parts with the least time such that a kernel can be made of each.

    Where an operation cannot be made alone because of the views around it, these are copied: they
    become operations of their own. The same where a kernel takes long and is far quicker with
    copies: a norm whose rows are stored as columns. Raises PlanError where one cannot be made even
    so; the error names all of these. Attention is one operation where that takes less time.
    """
    fused = with_attention(graph)
    if fused is graph:
        return _partition(graph, made)
    try:
        parts = _partition(fused, replace(made, copied=made.copied_fused))
    except PlanError:
        return _partition(graph, made)
    took = sum(us_of(part, made.chip) for part in parts if _attends(part))
    if took <= us_apart(fused, made.chip):
        return parts
    try:
        apart = _partition(graph, made)
    except PlanError:
        return parts
    return min(parts, apart, key=lambda found: time_together(found, made.chip))


def _attends(part: Part) -> bool:
    return any(node.op == ATTENTION for node in part.graph.nodes)


def _partition(graph: Graph, made: Kernels) -> tuple[Part, ...]:
    copied: frozenset[str] = made.copied[-1] if made.copied else beside_scans(graph)
    best: tuple[float, Cutter, list[tuple[int, int]]] | None = None
    cut = with_split_products(with_wide_products(with_concat_chains(graph)), made.chip)
    while True:
        cutter = Cutter(cut, copied)
        runs, stuck = _cheapest(cutter, made)
        if stuck is not None and best is None:
            views = cutter.views(stuck) - copied
            if not views:
                raise _refusal(cutter, made, stuck)
            copied |= views
            continue
        us = inf if stuck is not None else sum(_us(cutter, made, run) + WAIT for run in runs)
        if best is not None and us > _WORTH_COPIES * best[0]:
            break
        best = us, cutter, runs
        if made.copied and not made.avoid:
            break
        slow = [
            run
            for run in runs
            if is_slow(_us(cutter, made, run), cutter.part(*run), made.chip, _FAR)
        ]
        views = frozenset(
            name for run in slow for unit in range(*run) for name in cutter.views(unit)
        )
        if views <= copied:
            break
        copied |= views
    _, cutter, runs = best
    made.copied.append(cutter.copied)
    return tuple(made.part(cutter.part(start, stop)) for start, stop in runs)


def _us(cutter: Cutter, made: Kernels, run: tuple[int, int]) -> float:
    us = made.us(cutter.part(*run))
    assert us is not None
    return us


@dataclass(frozen=True, slots=True)
class _Path:
    """The quickest way found to have made all units before one, and where its last part starts."""

    us: float
    start: int = 0


def _cheapest(cutter: Cutter, made: Kernels) -> tuple[list[tuple[int, int]], int | None]:
    """Start and stop of the parts, and the first unit that cannot be made alone, if there is one.

    No part ends where, for as much time, another path is ahead: it would have to end behind that.
    """
    end = len(cutter.units)
    paths = {0: _Path(0.0)}
    start = reached = length = 0
    while start < end:
        us = paths[start].us
        near = (stop for stop in paths if _is_ahead(paths, stop, us, cutter, made.chip))
        ahead = max(near, default=0)
        ahead = max(ahead, start)
        likely = reached if reached > start else min(start + length, end)
        if ahead == start or (ahead < end and made.us(cutter.part(start, ahead + 1)) is not None):
            longest = _longest(cutter, made, start, max(likely, ahead + 1))
            if longest is None:
                return [], start
            reached, length = max(reached, longest), longest - start
            for stop in _ends(cutter, made, start, longest):
                least = us + LAUNCH + WAIT  # of any kernel: what takes no longer is better
                if stop <= ahead or (stop in paths and paths[stop].us <= least):
                    continue
                if (took := made.us(cutter.part(start, stop))) is not None:
                    found = _Path(us + took + WAIT, start)
                    paths[stop] = min(paths.get(stop, found), found, key=lambda path: path.us)
        start = min(stop for stop in paths if stop > start)
    runs: list[tuple[int, int]] = []
    at = end
    while at > 0:
        runs.append((paths[at].start, at))
        at = paths[at].start
    return runs[::-1], None


def _is_ahead(paths: Mapping[int, _Path], stop: int, us: float, cutter: Cutter, chip: Chip) -> bool:
    """Whether a path takes no longer than one with `us` and any other kernel.

    What passes on there is counted: a kernel has to read it.
    """
    return paths[stop].us + hbm_us(cutter.passing(stop), chip) <= us + LAUNCH + WAIT


def _ends(cutter: Cutter, made: Kernels, start: int, stop: int) -> list[int]:
    """Where a part may end: as late as it can, and before that where fewer bytes pass on.

    Around a matrix product, too: what moves its elements may cost less in a kernel of its own. Of
    a part that takes long also behind its first operation, around reductions, and where an output
    or what later parts read is ready.
    """
    most = cutter.part(start, stop)
    us = made.us(most)
    slow = us is not None and is_slow(us, most, made.chip)
    products = [at for at in range(start + 1, stop) if cutter.borders_product(at)]
    if stop == len(cutter.units) and not (slow or products):
        return [stop]
    fewer: list[int] = []  # the earlier, the fewer bytes
    least = cutter.passing(stop)
    for at in range(stop - 1, start, -1):
        if (size := cutter.passing(at)) < least:
            fewer.append(at)
            least = size
    inside = range(start + 1, stop) if slow else ()
    reduced = [at for at in inside if cutter.reduces(at - 1) or cutter.reduces(at)]
    others = [at for at in inside if cutter.is_joint(at)]
    others += [at for at in inside if cutter.is_valley(start, at)]
    others += [at for at in inside if cutter.passes_on(at - 1, stop)]
    firsts = (*products[:_MOST], *inside[:1], *fewer[:1], *reduced[:_MOST], *others[:_MOST])
    lasts = (*fewer[-1:], *reduced[-_MOST:], *others[-_MOST:])
    return list(dict.fromkeys((stop, *firsts, *lasts)))


@dataclass(slots=True)
class Kernels:
    """What `make` gives, asked once for graphs that differ in names alone.

    `make` is given these kernels, too: one that knew them by itself would be a cycle, and all that
    was written would stay until the collector comes by.

    `slow_elsewhere`: the microseconds that a kernel takes at other sizes, where that is very long,
    else 0. With `avoid` those that are known to are parts only where nothing else can be made, and
    so are those that do the same and more and were not asked about. What is known is shared by
    copies (`replace`).
    """

    make: Make
    chip: Chip
    slow_elsewhere: Us = lambda part: 0.0
    avoid: bool = False
    known: dict[str, tuple[list[Part], float] | None] = field(default_factory=dict)
    copied: list[frozenset[str]] = field(default_factory=list)  # views, by earlier partitions
    copied_fused: list[frozenset[str]] = field(default_factory=list)  # ... with attention as one
    slow: dict[str, float] = field(default_factory=dict)
    # nodes of slow ones (names, and what these do), and what the kernels take
    within: list[tuple[frozenset[tuple[str, str]], float]] = field(default_factory=list)

    def add(self, graph: Graph, plan: Plan) -> None:
        """The kernel of all of a graph, which was made before."""
        cutter = Cutter(graph, frozenset())
        part = Part(cutter.part(0, len(cutter.units)), plan)
        if part.graph.inputs == graph.inputs:
            self.known[structural_key(part.graph)] = [part], us_of(part, self.chip)

    def us(self, graph: Graph) -> float | None:
        """Estimated microseconds of the kernel; None where there is none."""
        return self.times(graph)[1]

    def times(self, graph: Graph) -> tuple[float, float] | tuple[None, None]:
        """The same without and with what is added to those that are avoided."""
        key = structural_key(graph)
        if key not in self.known:
            try:
                part = Part(graph, self.make(graph, self))
            except PlanError:
                self.known[key] = None
            else:
                self.known[key] = [part], us_of(part, self.chip)
        if (found := self.known[key]) is None:
            return None, None
        more = _AVOIDED * self._known_slow(graph, key) if self.avoid else 0.0
        return found[1], found[1] + more

    def _known_slow(self, graph: Graph, key: str) -> float:
        if key in self.slow:
            return self.slow[key]
        own = _names(graph)
        return max((us for nodes, us in self.within if nodes <= own), default=0.0)

    def slow_nodes(self) -> set[str]:
        """Names of what slow ones compute."""
        return {name for nodes, _ in self.within for name, _ in nodes}

    def part(self, graph: Graph) -> Part:
        """PlanError where there is none."""
        found = self.known.get(key := structural_key(graph))
        same, us = ([], None) if found is None else found
        if (part := next((each for each in same if each.graph == graph), None)) is not None:
            return part
        plans = (renamed_plan(each.plan, each.graph, graph) for each in same)
        plan = next((plan for plan in plans if plan is not None), None)
        part = Part(graph, self.make(graph, self) if plan is None else plan)
        self.known[key] = [*same, part], us_of(part, self.chip) if us is None else us
        return part

    def slow_us(self, part: Part) -> float:
        """What it takes at other sizes, where that is very long."""
        key = structural_key(part.graph)
        if key not in self.slow:
            self.slow[key] = 0.0
            self.count_slow(part, self.slow_elsewhere(part))
        return self.slow[key]

    def count_slow(self, part: Part, us: float) -> None:
        """It takes so long at other sizes."""
        self.slow[structural_key(part.graph)] = us
        if us:
            self.within.append((_names(part.graph), us))


def _names(graph: Graph) -> frozenset[tuple[str, str]]:
    return frozenset((node.name, node.op) for node in graph.nodes)


def _longest(
    cutter: Cutter, made: Kernels, start: int, likely: int, hopeless: bool = False
) -> int | None:
    """Where the longest run of units from `start` on that can be made ends, by bisection.

    From above: what cannot be made is found out in a tenth of the time that a kernel takes.
    `likely`: where a run from further ahead ends, since one that begins later goes on at least as
    far; or where it ends if it is as long as the last. Runs of several units that take hopelessly
    long count only where nothing else can be made (`hopeless`), and where there are few.
    """

    def is_made(stop: int) -> bool:
        part = cutter.part(start, stop)
        us, _ = made.times(part)
        if us is None or hopeless or stop == start + 1:
            return us is not None
        return not is_slow(us, part, made.chip, _HOPELESS)

    hopeless |= len(cutter.units) < _MANY
    low, over = start, len(cutter.units) + 1  # the longest that is made; one that is not
    if likely > start + 1:
        low, over = (likely, over) if is_made(likely) else (low, likely)
    step = _FIRST if low == start else 1
    while over - low > 1 and over > len(cutter.units):
        stop = min(low + step, over - 1)
        low, over = (stop, over) if is_made(stop) else (low, stop)
        step *= 2
    while over - low > 1:
        stop = over - max((over - low) // 4, 1)
        low, over = (stop, over) if is_made(stop) else (low, stop)
    if low > start:
        return low
    return None if hopeless else _longest(cutter, made, start, likely, hopeless=True)


def _refusal(cutter: Cutter, made: Kernels, start: int) -> PlanError:
    """The error of the first unit that cannot be made alone, naming the others too."""
    first: PlanError | None = None
    others: list[str] = []
    for at in range(start, len(cutter.units)):
        if first is not None and cutter.reads_unknown(at):
            continue  # of complex numbers, say: what makes them is what cannot be written
        try:
            made.part(cutter.part(at, at + 1))
        except PlanError as error:
            if first is None:
                first = error
            else:
                others += [f"{node.op} ({node.name})" for node in cutter.units[at].nodes[:1]]
    assert first is not None
    if others:
        also = ", ".join(dict.fromkeys(others))
        first = PlanError(
            first.code, f"{first.message}; by themselves these cannot be written either: {also}",
            first.place, seen=first.seen, legal=first.legal, hint=first.hint,
        )  # fmt: skip
    return first
