"""What the compiler cannot write stays with PyTorch: `compose(graph, name, chip) -> Composition`.

The operations of a graph are put in an order in which those that can be written stand together.
Each run of them becomes an operator; what is left is called as it stands in the graph. The result
is a graph again, in which each operator is one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from npusmith.errors import PlanError
from npusmith.ir.opname import entry_name
from npusmith.ir.spec import Port, Source
from npusmith.plan.cutter import Cutter, Unit, crossing_name
from npusmith.plan.structures import Plan
from npusmith.plan.write import write
from npusmith.target.chips import Chip
from npusmith.task.composition import OPERATOR
from npusmith.task.graph import Graph, Node, Ref, references

_MOST = 64  # operators of one module
_TOO_MUCH = ("plan-length", "plan-time")
_Key = tuple[tuple[str, ...], tuple[str, ...]]  # inputs and nodes, outputs


@dataclass(frozen=True, slots=True)
class Left:
    """An operation that PyTorch computes, and why."""

    node: Node
    why: str


@dataclass(frozen=True, slots=True)
class Composition:
    """`graph`: calls of operators among those that are left. `written`: nodes inside of them."""

    graph: Graph
    plans: tuple[Plan, ...]
    left: tuple[Left, ...]
    written: int


def compose(graph: Graph, name: str, chip: Chip, refused: PlanError) -> Composition:
    """Operators for all that can be written. `refused`: why the whole is not one.

    Raises the first refusal where nothing can be, and plan-length for far too many operators.
    """
    work = _Work(graph, name, chip, refused)
    while True:
        order, runs = work.runs()
        parts = [_Run(Cutter(order), *run) for run in runs]
        operators = [item for item in parts if not item.left]
        if not operators:
            raise next(iter(work.left.values()))
        if len(operators) > _MOST:
            message = f"{len(operators)} operators between what is left to PyTorch"
            raise PlanError("plan-length", message, legal=f"at most {_MOST} operators")
        plans = [work.plan(item) for item in operators]
        if None not in plans:
            return work.composed(parts, [plan for plan in plans if plan is not None])


@dataclass(frozen=True, slots=True)
class _Run:
    """Units from `start` to before `stop` of a graph in order."""

    cutter: Cutter
    start: int
    stop: int
    left: bool

    @property
    def units(self) -> Sequence[Unit]:
        return self.cutter.units[self.start : self.stop]


@dataclass(slots=True)
class _Work:
    graph: Graph
    name: str
    chip: Chip
    refused: PlanError  # of all together
    left: dict[str, PlanError] = field(default_factory=dict)  # by the first node of a unit
    ends: set[str] = field(default_factory=set)  # first nodes of units behind which a run ends
    known: dict[_Key, Plan | PlanError] = field(default_factory=dict)

    # --- order

    def runs(self) -> tuple[Graph, list[tuple[int, int, bool]]]:
        """The graph with its operations in order, and the runs of its units."""
        cutter = Cutter(self.graph)
        before = [self._before(cutter, unit, at) for at, unit in enumerate(cutter.units)]
        after: dict[int, list[int]] = {}
        for at, earlier in enumerate(before):
            for one in earlier:
                after.setdefault(one, []).append(at)
        # by whether they are left: what can be next, the first of the graph first
        ready: tuple[list[int], list[int]] = ([], [])
        for at in (at for at, earlier in enumerate(before) if not earlier):
            heappush(ready[self._is_left(cutter.units[at])], at)
        done: list[int] = []
        left = False  # whose turn it is
        while any(ready):
            if not ready[left]:
                left = not left
            at = heappop(ready[left])
            done.append(at)
            for later in after.get(at, ()):
                before[later].discard(at)
                if not before[later]:
                    heappush(ready[self._is_left(cutter.units[later])], later)
        ordered = [cutter.units[at] for at in done]
        order = self.graph.model_copy(update={"nodes": tuple(_in_order(cutter, ordered))})
        runs: list[tuple[int, int, bool]] = []
        for at, unit in enumerate(ordered):
            left, ends = self._is_left(unit), at and _first(ordered[at - 1]) in self.ends
            if runs and runs[-1][2] == left and not ends:
                runs[-1] = runs[-1][0], at + 1, left
            else:
                runs.append((at, at + 1, left))
        return order, runs

    def _before(self, cutter: Cutter, unit: Unit, at: int) -> set[int]:
        """Units that have to come before this one."""
        read = cutter.bases(name for node in unit.nodes for name in references(node))
        found = {cutter.unit_of[name] for name in read if name in cutter.unit_of}
        return (found if unit.nodes else set(range(len(cutter.units)))) - {at}

    def _is_left(self, unit: Unit) -> bool:
        # a unit without nodes is an output that is an input, or a view of one
        return not unit.nodes or _first(unit) in self.left

    # --- operators

    def plan(self, run: _Run) -> Plan | None:
        """The operator of a run; None where another order has to be found, with less in it."""
        found = self._written(run)
        if not isinstance(found, PlanError):
            return found
        units = range(run.start, run.stop)
        some = False
        for at in () if found.code in _TOO_MUCH and len(units) > 1 else units:
            problem = self._written(_Run(run.cutter, at, at + 1, False))
            if isinstance(problem, PlanError):
                self.left[_first(run.cutter.units[at])] = problem
                some = True
        if not some:  # too much for one operator: two
            middle = (run.start + run.stop) // 2 - 1
            self.ends.add(_first(run.cutter.units[middle]))
        return None

    def _written(self, run: _Run) -> Plan | PlanError:
        if len(run.units) == len([unit for unit in run.cutter.units if unit.nodes]):
            return self.refused
        try:
            part = self._part(run)
        except PlanError as error:  # it reads a type that the chip does not have
            return error
        names = [item.name for item in part.inputs] + [node.name for node in part.nodes]
        key = tuple(names), part.outputs
        if key not in self.known:
            try:
                self.known[key] = write(part, self._operator(run), self.chip)
            except PlanError as error:
                self.known[key] = error
        return self.known[key]

    def _operator(self, run: _Run) -> str:
        """A name that no other run has: that of its first unit is part of it."""
        first = _first(run.units[0])
        at = next(at for at, node in enumerate(self.graph.nodes) if node.name == first)
        return entry_name(f"{self.name.removesuffix('_custom')}_{at}_custom")

    def _part(self, run: _Run) -> Graph:
        """The run as the graph of a module: what comes from elsewhere are its arguments."""
        part = run.cutter.part(run.start, run.stop)
        taken = {item.position for item in part.inputs if item.kind == "user"}
        count = len([item for item in self.graph.inputs if item.kind == "user"])
        read = {name for node in part.nodes for name in references(node)}
        inputs = []
        for item in part.inputs:
            if item.name not in read:  # for its sizes, which nobody else can have chosen
                told = {"kind": "constant", "target": item.name}
                inputs.append(item.model_copy(update=told))
            elif crossing_name(item):
                count += 1
                taken_as = {"kind": "user", "target": "", "position": count - 1}
                inputs.append(item.model_copy(update=taken_as))
            else:
                inputs.append(item)
        return part.model_copy(update={
            "inputs": tuple(inputs),
            "outputs": tuple(dict.fromkeys(part.outputs)),
            "fixed": tuple(row for row in self.graph.fixed if row[0] in taken),
            "steps": tuple(row for row in self.graph.steps if row[0] in taken),
        })  # fmt: skip

    # --- the result

    def composed(self, parts: Sequence[_Run], plans: Sequence[Plan]) -> Composition:
        nodes: list[Node] = []
        made = {item.name for item in self.graph.inputs}
        rest = iter(plans)
        for item in parts:
            found = (
                _views_and(item.cutter, item.units, made) if item.left
                else self._call(item, next(rest))
            )  # fmt: skip
            for node in found:
                if node.name not in made:
                    nodes.append(node)
                    made.add(node.name)
        nodes += _views(parts[0].cutter, self.graph.outputs, made)
        names = {node.name for node in nodes}
        symbolic = self.graph.symbolic
        graph = self.graph.model_copy(update={
            "nodes": tuple(nodes), "eager": (), "longer": None,
            "symbolic": symbolic and tuple(item for item in symbolic if item.node in names),
        })  # fmt: skip
        left = tuple(
            Left(unit.nodes[0], self.left[_first(unit)].message)
            for item in parts if item.left for unit in item.units if unit.nodes
        )  # fmt: skip
        inside = [unit for item in parts if not item.left for unit in item.units]
        return Composition(graph, tuple(plans), left, len(inside))

    def _call(self, run: _Run, plan: Plan) -> Iterator[Node]:
        """The operator as a node, and its results."""
        part = self._part(run)
        by_position = {item.position: item.name for item in part.inputs if item.kind == "user"}
        by_target = {item.target: item.name for item in part.inputs if item.kind != "user"}
        args = tuple(Ref(ref=_name_of(port, by_position, by_target)) for port in plan.spec.inputs)
        op = f"{OPERATOR}.{plan.spec.name}.default"
        specs = {name: part.spec(name) for name in part.outputs}
        if len(part.outputs) == 1:
            (name,) = part.outputs
            yield Node(
                name=name, op=op, args=args, shape=specs[name].shape, dtype=specs[name].dtype
            )
            return
        call = f"{plan.spec.name}_results"
        yield Node(name=call, op=op, args=args, shape=(), dtype=None)
        for at, name in enumerate(part.outputs):
            yield Node(
                name=name, op="aten.getitem", args=(Ref(ref=call), at), shape=specs[name].shape,
                dtype=specs[name].dtype,
            )  # fmt: skip


def _first(unit: Unit) -> str:
    """The name by which a unit is known, whatever order it stands in."""
    return unit.nodes[0].name if unit.nodes else ""


def _name_of(port: Port, by_position: Mapping[int, str], by_target: Mapping[str, str]) -> str:
    return by_position[port.position] if port.source is Source.USER else by_target[port.target]


def _in_order(cutter: Cutter, units: Sequence[Unit]) -> Iterator[Node]:
    """The nodes of the units in this order, views before what reads them, and the others last."""
    placed = {item.name for item in cutter.graph.inputs}
    for unit in units:
        for node in _views_and(cutter, [unit], placed):
            placed.add(node.name)
            yield node
    for node in cutter.graph.nodes:
        if node.name not in placed:
            placed.add(node.name)
            yield node


def _views_and(cutter: Cutter, units: Sequence[Unit], known: set[str]) -> Iterator[Node]:
    """The units' nodes, and the views before them that are not known."""
    mine = {*known}
    for unit in units:
        for node in unit.nodes:
            for view in _views(cutter, references(node), mine):
                mine.add(view.name)
                yield view
            mine.add(node.name)
            yield node


def _views(cutter: Cutter, names: Sequence[str], known: set[str]) -> list[Node]:
    """Views that make these values out of known ones, in order."""
    found: dict[str, Node] = {}
    queue = [name for name in names if name not in known]
    while queue:
        name = queue.pop()
        if name in found or name in known or name in cutter.unit_of:
            continue
        found[name] = cutter.nodes[name]
        queue += references(cutter.nodes[name])
    return sorted(found.values(), key=lambda node: cutter.position[node.name])
