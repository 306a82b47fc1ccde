"""What the compiler cannot write stays with PyTorch: `with_fallback(graph, ...)`.

The operations of a graph are put in an order in which those that can be written stand together.
Each run of them becomes an operator; what is left is called as it stands in the graph. The result
is a graph again, in which each operator is one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from npusmith.errors import PlanError
from npusmith.ir.opname import entry_name
from npusmith.ir.spec import Source
from npusmith.ir.walk import sized_tensors, statements, tensors
from npusmith.lang.usage import host_tensors
from npusmith.plan.estimate import origin
from npusmith.plan.partition import Part
from npusmith.plan.structures import Plan
from npusmith.plan.subgraphs import Cutter, Unit, crossing_name
from npusmith.plan.write import write
from npusmith.plan.write_kernel import check_operations
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
    """`graph`: calls of operators among those that are left to PyTorch."""

    graph: Graph
    plans: tuple[Plan, ...]
    left: tuple[Left, ...]


def with_fallback(graph: Graph, name: str, chip: Chip, refused: PlanError) -> Composition:
    """Operators for all that can be written. `refused`: why the whole is not one.

    Raises the first refusal where nothing can be, and plan-length for far too many operators, or
    operations of the graph.
    """
    check_operations(graph)
    work = _Work(graph, name, chip, refused)
    while True:
        runs = work.runs()
        operators = [item for item in runs if not item.left]
        if not operators:
            raise next(iter(work.left.values()))
        if len(operators) > _MOST:
            message = f"{len(operators)} operators between what is left to PyTorch"
            raise PlanError("plan-length", message, legal=f"at most {_MOST} operators")
        parts = [part for part in map(work.part, operators) if part is not None]
        if len(parts) == len(operators):
            return work.composed(runs, parts)


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
    known: dict[_Key, Part | PlanError] = field(default_factory=dict)

    # --- order

    def runs(self) -> list[_Run]:
        """The operations in order, as runs of those that may become an operator and of others."""
        cutter = Cutter(self.graph)
        sorter = TopologicalSorter(
            {at: self._before(cutter, unit, at) for at, unit in enumerate(cutter.units)}
        )
        sorter.prepare()
        # what can be next, by whether it is left: the first of the graph first
        ready: tuple[list[int], list[int]] = ([], [])
        ordered: list[Unit] = []
        left = False  # whose turn it is
        while sorter.is_active():
            for at in sorter.get_ready():
                heappush(ready[self._is_left(cutter.units[at])], at)
            if not ready[left]:
                left = not left
            at = heappop(ready[left])
            ordered.append(cutter.units[at])
            sorter.done(at)
        order = self.graph.model_copy(update={"nodes": tuple(_in_order(cutter, ordered))})
        cutter = Cutter(order)
        runs: list[_Run] = []
        for at, unit in enumerate(ordered):
            left, ends = self._is_left(unit), at and _first(ordered[at - 1]) in self.ends
            if runs and runs[-1].left == left and not ends:
                runs[-1] = replace(runs[-1], stop=at + 1)
            else:
                runs.append(_Run(cutter, at, at + 1, left))
        return runs

    def _before(self, cutter: Cutter, unit: Unit, at: int) -> set[int]:
        """Units that have to come before this one."""
        read = cutter.bases(name for node in unit.nodes for name in references(node))
        found = {cutter.unit_of[name] for name in read if name in cutter.unit_of}
        return (found if unit.nodes else set(range(len(cutter.units)))) - {at}

    def _is_left(self, unit: Unit) -> bool:
        # a unit without nodes is an output that is an input, or a view of one
        return not unit.nodes or _first(unit) in self.left

    # --- operators

    def part(self, run: _Run) -> Part | None:
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

    def _written(self, run: _Run) -> Part | PlanError:
        if len(run.units) == len([unit for unit in run.cutter.units if unit.nodes]):
            return self.refused
        try:
            graph = self._module(run)
        except PlanError as error:  # it reads a type that the chip does not have
            return error
        names = [item.name for item in graph.inputs] + [node.name for node in graph.nodes]
        key = tuple(names), graph.outputs
        if key not in self.known:
            try:
                plan = write(graph, self._operator(run), self.chip)
                self.known[key] = Part(graph, _without_unused(plan))
            except PlanError as error:
                self.known[key] = error.with_traceback(None)
        return self.known[key]

    def _operator(self, run: _Run) -> str:
        """A name that no other run has: that of its first unit is part of it."""
        first = _first(run.units[0])
        at = next(at for at, node in enumerate(self.graph.nodes) if node.name == first)
        return entry_name(f"{self.name.removesuffix('_custom')}_{at}_custom")

    def _module(self, run: _Run) -> Graph:
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

    def composed(self, runs: Sequence[_Run], parts: Sequence[Part]) -> Composition:
        cutter = runs[0].cutter
        nodes: list[Node] = []
        made = {item.name for item in self.graph.inputs}
        rest = iter(parts)
        for run in runs:
            if run.left:
                nodes += _views_and(cutter, run.units, made)
            else:
                called = [node for node in _call(next(rest)) if node.name not in made]
                made.update(node.name for node in called)
                nodes += called
        nodes += _views(cutter, self.graph.outputs, made)
        names = {node.name for node in nodes}
        symbolic = self.graph.symbolic
        graph = self.graph.model_copy(update={
            "nodes": tuple(nodes), "eager": (), "longer": None,
            "symbolic": symbolic and tuple(item for item in symbolic if item.node in names),
        })  # fmt: skip
        left = tuple(
            Left(unit.nodes[0], self.left[_first(unit)].message)
            for run in runs if run.left for unit in run.units if unit.nodes
        )  # fmt: skip
        return Composition(graph, tuple(part.plan for part in parts), left)


def _without_unused(plan: Plan) -> Plan:
    """Without tensors that were given for their sizes, of which the program needs none.

    Only what is served mentions them then: sizes that the operators before have made so.
    """
    program, spec = plan.program, plan.spec
    every = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    used = {name for stmt in every for name in tensors(stmt)} | host_tensors(program)
    used |= {part.tensor for launch in program.host.launches for _, part in launch.parts}
    lost = {port.name for port in spec.inputs if port.source is Source.CONSTANT} - used
    if not lost:
        return plan
    if named := lost & sized_tensors(dim for port in spec.outputs for dim in port.dims):
        message = f"sizes of {', '.join(sorted(named))} are those of outputs, and nothing is read"
        raise PlanError("plan-fixed-size", message)
    kernels = tuple(
        replace(kernel, tensors=tuple(item for item in kernel.tensors if item.name not in lost))
        for kernel in program.kernels
    )
    shared = tuple(name for name in program.host.tensors if name not in lost)
    served = spec.legal and tuple(expr for expr in spec.legal if not lost & sized_tensors([expr]))
    inputs = tuple(port for port in spec.inputs if port.name not in lost)
    return replace(
        plan,
        program=replace(program, kernels=kernels, host=replace(program.host, tensors=shared)),
        spec=replace(spec, inputs=inputs, legal=served or None),
    )


def _call(part: Part) -> Iterator[Node]:
    """The operator as a node, and its results."""
    graph, spec = part.graph, part.plan.spec
    args = tuple(Ref(ref=origin(graph, port).name) for port in spec.inputs)
    op = f"{OPERATOR}.{spec.name}.default"
    made = [graph.spec(name) for name in graph.outputs]
    if len(made) == 1:
        yield Node(name=made[0].name, op=op, args=args, shape=made[0].shape, dtype=made[0].dtype)
        return
    call = f"{spec.name}_results"
    yield Node(name=call, op=op, args=args, shape=(), dtype=None)
    for at, item in enumerate(made):
        taken = Ref(ref=call), at
        yield Node(
            name=item.name, op="aten.getitem", args=taken, shape=item.shape, dtype=item.dtype
        )


def _first(unit: Unit) -> str:
    """The name by which a unit is known, whatever order it stands in."""
    return unit.nodes[0].name if unit.nodes else ""


def _in_order(cutter: Cutter, units: Sequence[Unit]) -> Iterator[Node]:
    """The nodes of the units in this order, views before what reads them, and the others last."""
    placed = {item.name for item in cutter.graph.inputs}
    yield from _views_and(cutter, units, placed)
    yield from (node for node in cutter.graph.nodes if node.name not in placed)


def _views_and(cutter: Cutter, units: Sequence[Unit], known: set[str]) -> Iterator[Node]:
    """The units' nodes, and the views before them that are not known; all of them are then."""
    for node in (node for unit in units for node in unit.nodes):
        for item in (*_views(cutter, references(node), known), node):
            known.add(item.name)
            yield item


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
