"""Graph -> parts: which operations share a kernel, and which values pass through global memory.

Operations are taken in order; a part is a run of them that one kernel can hold. Of the partitions
that end parts where one kernel holds no more, or earlier where fewer bytes pass on or something has
been reduced, that with the least estimated time is taken (estimate.py). Views and constants belong
to no part: they cost nothing and are made again wherever they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf, prod

from npusmith.errors import PlanError
from npusmith.plan.estimate import LAUNCH, WAIT, hbm_us, time_of, traffic
from npusmith.plan.node_kinds import PRODUCTS, SHORT_FLOATS, is_free, references, takes_apart
from npusmith.plan.split_k import with_split_products
from npusmith.plan.split_k_parts import PARTIAL
from npusmith.plan.structural_key import structural_key
from npusmith.plan.structures import Plan
from npusmith.plan.views import CASTS
from npusmith.plan.wide_products import with_wide_products
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput, Node, SymbolicSize

_MOST = 3  # first and last of the places where a part may end, of each kind
_FAR = 4.0  # times as long as a slow kernel: views around it may be copied
_WORTH_COPIES = 0.7  # of the time: views are copied for less
_AVOIDED = 1e6  # microseconds for a kernel that takes very long at other sizes
_SLOW, _SHORT = 3.0, 10.0  # times the traffic, and microseconds
CROSSING = "@"  # marks the target of a part's input that an earlier part stores


@dataclass(frozen=True, slots=True)
class Part:
    """Some operations of a graph as a graph of their own, and the kernel that computes them."""

    graph: Graph
    plan: Plan


Make = Callable[[Graph], Plan]
Test = Callable[[Part], bool]


def us_of(part: Part, chip: Chip) -> float:
    """Estimated microseconds of its kernel."""
    return time_of(part.plan.program, part.plan.spec, part.graph, chip)


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


@dataclass(frozen=True, slots=True)
class Unit:
    """An operation with what takes its results apart (getitem)."""

    nodes: tuple[Node, ...]


def partition(graph: Graph, made: Kernels) -> tuple[Part, ...]:
    """The parts with the least time such that a kernel can be made of each.

    Where an operation cannot be made alone because of the views around it, these are copied: they
    become operations of their own. The same where a kernel takes long and is far quicker with
    copies: a norm whose rows are stored as columns. Raises PlanError where one cannot be made even
    so; the error names all of these.
    """
    copied: frozenset[str] = made.copied[-1] if made.copied else frozenset()
    best: tuple[float, _Cutter, list[tuple[int, int]]] | None = None
    while True:
        cutter = _Cutter(graph, copied, made.chip)
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
        if made.copied:
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


def _us(cutter: _Cutter, made: Kernels, run: tuple[int, int]) -> float:
    us = made.us(cutter.part(*run))
    assert us is not None
    return us


@dataclass(frozen=True, slots=True)
class _Path:
    """The quickest way found to have made all units before one, and where its last part starts."""

    us: float
    start: int = 0


def _cheapest(cutter: _Cutter, made: Kernels) -> tuple[list[tuple[int, int]], int | None]:
    """Start and stop of the parts, and the first unit that cannot be made alone, if there is one.

    No part ends where, for as much time, another path is ahead: it would have to end behind that.
    """
    end = len(cutter.units)
    paths = {0: _Path(0.0)}
    start = reached = length = 0
    while start < end:
        us = paths[start].us
        ahead = max((stop for stop in paths if _is_ahead(paths, stop, us, cutter)), default=0)
        ahead = max(ahead, start)
        likely = reached if reached > start else min(start + length, end)
        if ahead == start or (ahead < end and made.us(cutter.part(start, ahead + 1)) is not None):
            longest = _longest(cutter, made, start, max(likely, ahead + 1))
            if longest is None:
                return [], start
            reached, length = max(reached, longest), longest - start
            for stop in _ends(cutter, made, start, longest):
                if stop > ahead and (took := made.us(cutter.part(start, stop))) is not None:
                    found = _Path(us + took + WAIT, start)
                    paths[stop] = min(paths.get(stop, found), found, key=lambda path: path.us)
        start = min(stop for stop in paths if stop > start)
    runs: list[tuple[int, int]] = []
    at = end
    while at > 0:
        runs.append((paths[at].start, at))
        at = paths[at].start
    return runs[::-1], None


def _is_ahead(paths: Mapping[int, _Path], stop: int, us: float, cutter: _Cutter) -> bool:
    """Whether a path takes no longer than one with `us` and any other kernel.

    What passes on there is counted: a kernel has to read it.
    """
    return paths[stop].us + hbm_us(cutter.passing(stop), cutter.chip) <= us + LAUNCH + WAIT


def _ends(cutter: _Cutter, made: Kernels, start: int, stop: int) -> list[int]:
    """Where a part may end: as late as it can, and before that where fewer bytes pass on.

    Around a matrix product, too: what moves its elements may cost less in a kernel of its own. Of
    a part that takes long also behind its first operation, around reductions, and where an output
    or what later parts read is ready.
    """
    most = cutter.part(start, stop)
    us = made.us(most)
    slow = us is not None and is_slow(us, most, cutter.chip)
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

    `slow_elsewhere`: whether a kernel takes very long at other sizes. With `avoid` those that are
    known to are parts only where nothing else can be made. What is known is shared by copies
    (`replace`).
    """

    make: Make
    chip: Chip
    slow_elsewhere: Test = lambda part: False
    avoid: bool = False
    known: dict[str, tuple[Part, float] | None] = field(default_factory=dict)
    copied: list[frozenset[str]] = field(default_factory=list)  # views, by earlier partitions
    slow: dict[str, bool] = field(default_factory=dict)

    def us(self, graph: Graph) -> float | None:
        """Estimated microseconds of the kernel; None where there is none."""
        key = structural_key(graph)
        if key not in self.known:
            try:
                part = Part(graph, self.make(graph))
            except PlanError:
                self.known[key] = None
            else:
                self.known[key] = part, us_of(part, self.chip)
        if (found := self.known[key]) is None:
            return None
        return found[1] + _AVOIDED if self.avoid and self.slow.get(key) else found[1]

    def part(self, graph: Graph) -> Part:
        """PlanError where there is none."""
        found = self.known.get(key := structural_key(graph))
        if found is not None and found[0].graph == graph:
            return found[0]
        part = Part(graph, self.make(graph))
        self.known[key] = part, us_of(part, self.chip) if found is None else found[1]
        return part

    def is_slow(self, part: Part) -> bool:
        """Whether it takes very long at other sizes."""
        key = structural_key(part.graph)
        if key not in self.slow:
            self.slow[key] = self.slow_elsewhere(part)
        return self.slow[key]


def _longest(cutter: _Cutter, made: Kernels, start: int, likely: int) -> int | None:
    """Where the longest run of units from `start` on that can be made ends, by bisection.

    `likely`: where a run from further ahead ends, since one that begins later goes on at least as
    far; or where it ends if it is as long as the last.
    """

    def is_made(stop: int) -> bool:
        return made.us(cutter.part(start, stop)) is not None

    low, high = start, len(cutter.units)
    if likely > start + 1:
        low, high = (likely, high) if is_made(likely) else (low, likely)
    step = 1
    while low < high and is_made(min(low + step, high)):
        low = min(low + step, high)
        if low == high:
            break
        step *= 2
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_made(middle) else (low, middle)
    return None if low == start else low


def _refusal(cutter: _Cutter, made: Kernels, start: int) -> PlanError:
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


# --------------------------------------------------------------------------------------- cutting


class _Cutter:
    """Takes runs of operations out of a graph."""

    def __init__(self, graph: Graph, copied: frozenset[str], chip: Chip) -> None:
        self.chip = chip
        self.graph = graph = with_split_products(with_wide_products(graph), chip)
        self.copied = copied  # views that are stored
        self.nodes = {node.name: node for node in graph.nodes}
        self._position = {name: at for at, name in enumerate(self.nodes)}
        self.inputs = {item.name: item for item in graph.inputs}
        self.units = self._units()
        self.unit_of = {node.name: i for i, unit in enumerate(self.units) for node in unit.nodes}
        if any(not self._bases([name]) & set(self.unit_of) for name in graph.outputs):
            self.units.append(Unit(()))  # for what is an input, or a view of one
        self.readers = self._readers()
        self._passing = self._passing_on()

    def reads_unknown(self, unit: int) -> bool:
        """Whether an operation reads a tensor of a type that the chip does not have."""
        read = self._bases(name for node in self.units[unit].nodes for name in references(node))
        made = (self.nodes[name] for name in read - set(self.inputs) if name in self.nodes)
        return any(node.dtype is None and self.unit_of.get(node.name) != unit for node in made)

    def passing(self, stop: int) -> int:
        """Bytes of what is made before a unit and read from it on."""
        return self._passing[stop]

    def is_joint(self, unit: int) -> bool:
        """Whether an output is ready before an operation."""
        return any(node.name in self.graph.outputs for node in self.units[unit - 1].nodes)

    def passes_on(self, unit: int, stop: int) -> bool:
        """Whether what an operation makes is read behind a part."""
        names = (node.name for node in self.units[unit].nodes)
        return any(max(self.readers.get(name, {0})) >= stop for name in names)

    def is_valley(self, start: int, unit: int) -> bool:
        """Whether less than half the bytes pass on here than behind the next operation."""
        size = self.passing(unit)
        falls = unit - 1 == start or self.passing(unit - 1) >= size
        return falls and 2 * size < self.passing(unit + 1)

    def borders_product(self, unit: int) -> bool:
        """Whether an operation, or the one in front of it, is a product of matrices."""
        nodes = (*self.units[unit - 1].nodes, *self.units[unit].nodes)
        return any(node.op in (*PRODUCTS, PARTIAL) for node in nodes)

    def reduces(self, unit: int) -> bool:
        """Whether less than half comes out of an operation than its largest operand is."""
        nodes = self.units[unit].nodes
        read = [self._bytes(name) for node in nodes for name in references(node)]
        made = [self._bytes(node.name) for node in nodes]
        return 2 * max(made, default=0) < max(read, default=0)

    def _bytes(self, name: str) -> int:
        item = self.nodes.get(name) or self.inputs[name]
        return prod(item.shape) * (item.dtype.bytes if item.dtype is not None else 0)

    def _units(self) -> list[Unit]:
        needed = self._needed()
        runs: dict[str, list[Node]] = {}
        owner: dict[str, str] = {}
        for node in self.graph.nodes:
            if node.name not in needed or self._free(node):
                continue
            base = next(iter(references(node)), "") if takes_apart(node) else ""
            key = owner.get(base, node.name) if base in self.nodes else node.name
            owner[node.name] = key
            runs.setdefault(key, []).append(node)
        return [Unit(tuple(nodes)) for nodes in runs.values()]

    def _needed(self) -> set[str]:
        found: set[str] = set()
        queue = list(self.graph.outputs)
        while queue:
            name = queue.pop()
            if name not in found:
                found.add(name)
                queue += references(self.nodes[name]) if name in self.nodes else []
        return found

    def _passing_on(self) -> list[int]:
        """`passing` of every unit, and behind the last."""
        changes = [0] * (len(self.units) + 2)
        for name, readers in self.readers.items():
            made = self.unit_of.get(name)
            if made is not None and (last := max(readers)) > made:
                changes[made + 1] += self._bytes(name)
                changes[last + 1] -= self._bytes(name)
        return list(accumulate(changes))

    def _readers(self) -> dict[str, set[int]]:
        """Units that read a value, directly or through views of it."""
        found: dict[str, set[int]] = {}
        for i, unit in enumerate(self.units):
            for node in unit.nodes:
                for name in self._bases(references(node)):
                    found.setdefault(name, set()).add(i)
        return found

    def _bases(self, names: Iterable[str]) -> set[str]:
        """What these values are views of."""
        found: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            node = self.nodes.get(name)
            if node is not None and self._free(node):
                queue += references(node)
            else:
                found.add(name)
        return found

    def _free(self, node: Node) -> bool:
        return is_free(node) and node.name not in self.copied

    def views(self, unit: int) -> frozenset[str]:
        """Views that a unit reads, and outputs that are views of what it makes."""
        own = [node for node in self.units[unit].nodes if node.name not in self.copied]
        read = [name for node in own for name in references(node)]
        made = {node.name for node in own}
        out = [name for name in self.graph.outputs if self._bases([name]) & made]
        return frozenset(
            name for name in (*read, *out) if name in self.nodes and is_free(self.nodes[name])
        )

    def part(self, start: int, stop: int) -> Graph:
        """The units from `start` to before `stop` as a graph."""
        own = [node for unit in self.units[start:stop] for node in unit.nodes]
        names = {node.name for node in own}
        outputs = [name for name in self.graph.outputs if self._home(name) in range(start, stop)]
        crossing = [
            node.name for node in own
            if any(reader >= stop for reader in self.readers.get(node.name, ()))
        ]  # fmt: skip
        included = self._with_views(names, [*outputs, *crossing])
        inside = {node.name for node in included}
        read = {ref for node in included for ref in references(node)} | set(outputs)
        symbolic = [item for item in self.graph.symbolic or () if item.node in inside]
        read |= self._sizes(symbolic, read - inside)
        inputs = [item for item in self.graph.inputs if item.name in read]
        earlier = [name for name in read if name in self.nodes and name not in inside]
        earlier.sort(key=self._position.__getitem__)
        inputs += [crossing_input(self.nodes[name]) for name in earlier]
        return Graph(
            inputs=tuple(inputs), nodes=tuple(included), outputs=(*outputs, *crossing),
            eager=self._eager(own), classes=self.graph.classes,
            symbolic=None if self.graph.symbolic is None else tuple(symbolic),
        )  # fmt: skip

    def _sizes(self, symbolic: Iterable[SymbolicSize], read: set[str]) -> set[str]:
        """Inputs of the graph that give sizes to numbers of a part, and that it does not read."""
        needed = self.graph.classes_of(symbolic)
        axes = [self.graph.classes[at].axes for at in needed]
        given = (row for row in axes if row[0][0] in self.inputs)
        return {row[0][0] for row in given if not any(name in read for name, _ in row)}

    def _home(self, output: str) -> int:
        """The unit in whose part an output is stored: the last that it is a view of."""
        bases = [self.unit_of[name] for name in self._bases([output]) if name in self.unit_of]
        return max(bases, default=len(self.units) - 1)

    def _with_views(self, names: set[str], outputs: Iterable[str]) -> list[Node]:
        """The nodes and the views and constants that they, or the outputs, read."""
        found = set(names)
        queue = [ref for name in names for ref in references(self.nodes[name])]
        queue += [name for name in outputs if name in self.nodes]
        while queue:
            name = queue.pop()
            node = self.nodes.get(name)
            if node is not None and name not in found and self._free(node):
                found.add(name)
                queue += references(node)
        return [node for node in self.graph.nodes if node.name in found]

    def _eager(self, own: Sequence[Node]) -> tuple[Node, ...]:
        """A part of one operation is that call; else only what the model rounds is of interest."""
        calls = [node for node in own if not takes_apart(node)]
        if len(calls) == 1:
            return tuple(calls)
        return tuple(node for node in self.graph.eager if node.op.split(".")[1:2] in CASTS)


def crossing_input(node: Node) -> GraphInput:
    """What an earlier part stores, as an input of a later one."""
    if node.dtype is None:
        raise PlanError("plan-dtype", f"{node.name} has no element type that the chip has")
    return GraphInput(
        name=node.name, shape=node.shape, dtype=node.dtype, kind="constant",
        target=CROSSING + node.name,
    )  # fmt: skip


def crossing_name(item: GraphInput) -> str:
    """The value of an earlier part that a part's input is; "" where it is an input of the graph."""
    return item.target.removeprefix(CROSSING) if item.target.startswith(CROSSING) else ""
