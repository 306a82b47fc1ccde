"""A matrix product and what stands behind it, in two kernels that run side by side.

before: `mm = x @ w`, a wait of all cores, `y = gelu(mm + b)`
after:  the cube cores hand over one block after another (matrix_products.py), and the vector cores
        beside them make `y` of each (product_epilogues.py)

The partition takes this where it takes less time than two kernels one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from npusmith.errors import PlanError
from npusmith.ir.nodes import Assign, Binary, BinOp, Dim, Expr, Launch, Name, Program, TensorRole
from npusmith.ir.spec import OpSpec, Source
from npusmith.ir.walk import names, subexpressions
from npusmith.plan.dag import reachable
from npusmith.plan.decisions import Decisions
from npusmith.plan.estimate import WAIT, estimate, shapes_of
from npusmith.plan.host import closure, in_order
from npusmith.plan.index import replaced
from npusmith.plan.link import link
from npusmith.plan.matrix_products import Blocks, write_handed_over
from npusmith.plan.node_kinds import product_sizes
from npusmith.plan.partition import Part, us_of
from npusmith.plan.product_blocks import refuse
from npusmith.plan.product_epilogues import MARK, write_epilogue
from npusmith.plan.read import read
from npusmith.plan.scalars import times
from npusmith.plan.schedule import Schedule, Structure
from npusmith.plan.structures import Plan
from npusmith.plan.subgraphs import Cutter, crossing_name
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

_CORES, _BLOCKS = "cores", "core_blocks"  # host variables of linked kernels
_ELEMENT = 4  # bytes
_MORE = 2  # operations behind a product that its kernel may hold: a bias, a relu

Make = Callable[[Graph], Plan]


def write_paired(
    graph: Graph, name: str, chip: Chip, schedule: Schedule, make: Make | None
) -> Plan:
    """The pair of a graph. `make`: the kernel of a part, for the partition.

    Raises PlanError where there is none.
    """
    refused = [refuse("there is no product, or nothing behind it")]
    for product, behind in _cuts(graph):
        try:
            plan = _paired(graph, product, behind, name, chip, schedule)
        except PlanError as error:
            refused.append(error.with_traceback(None))
            continue
        more = 0.0 if make is None else _us_less(graph, (product, behind), name, chip, make)
        return replace(plan, more_us=more)
    raise refused.pop()  # no cycle: its traceback has this frame


def _cuts(graph: Graph) -> Iterator[tuple[Graph, Graph]]:
    """A product with as much as its kernel may hold, and what is left, as graphs."""
    cutter = Cutter(graph)
    count = len(cutter.units)
    products = [
        at
        for at, unit in enumerate(cutter.units)
        for node in unit.nodes
        if product_sizes(graph, node) is not None
    ]
    if len(products) != 1:
        return
    least = products[0] + 1  # what is in front of it is how it reads its operands
    for stop in range(min(count - 1, least + _MORE), least - 1, -1):
        product = cutter.part(0, stop)
        if len(product.outputs) == 1 and product.outputs[0] not in graph.outputs:
            yield product, cutter.part(stop, count)


def _us_less(graph: Graph, parts: Sequence[Graph], name: str, chip: Chip, make: Make) -> float:
    """Microseconds that two kernels take less than the partition counts for them.

    It takes each for a launch, and what passes from one to the other for global memory.
    """
    try:
        made = [Part(part, make(part)) for part in parts]
        apart = link(made, graph, name)
    except PlanError:
        return 0.0
    passed = prod(graph.spec(parts[0].outputs[0]).shape) * _ELEMENT
    near = passed <= chip.l2_bytes // 2
    own = estimate(apart.program, shapes_of(graph, apart.spec), chip, near=near)
    return sum(us_of(part, chip) for part in made) + WAIT - own


def _paired(
    graph: Graph, product: Graph, behind: Graph, name: str, chip: Chip, schedule: Schedule
) -> Plan:
    d, meaning = Decisions(schedule), read(behind)
    whole = any(value.op == "reduce" for value in reachable(meaning.roots))
    (program, spec, notes), blocks = write_handed_over(read(product), name, chip, d, whole)
    crossing = [item for item in behind.inputs if crossing_name(item) == product.outputs[0]]
    if len(crossing) != 1:
        raise refuse("it reads nothing of it")
    d.structure(Structure.PRODUCT_BESIDE, ())
    first = Part(product, Plan(program, spec, notes))
    written, tests = write_epilogue(meaning, name, chip, blocks, crossing[0])
    plan = link((first, Part(behind, Plan(*written))), graph, name)
    if tests:  # of sizes that no other kernel serves: those of the model alone may have such
        legal = (*(written[1].legal or ()), *tests)
        served = Plan(written[0], replace(written[1], legal=legal), written[2])
        narrow = link((first, Part(behind, served)), graph, name)
        _check_given(narrow.spec, plan.spec)
        plan = narrow
    made = replace(plan, program=_side_by_side(plan.program, blocks))
    return replace(made, parts=(), decisions=d.decided())


def _check_given(narrow: OpSpec, wide: OpSpec) -> None:
    """Refuses conditions of sizes that the caller of the operator chooses."""
    chosen = {port.name for port in narrow.inputs if port.source is Source.USER}
    equal = [
        {test.left, test.right}
        for test in narrow.legal or ()
        if isinstance(test, Binary) and test.op is BinOp.EQ
    ]
    known: set[Expr] = set()  # sizes that weights have, too
    while more := [
        item
        for pair in equal
        if any((isinstance(e, Dim) and e.tensor not in chosen) or e in known for e in pair)
        for item in pair - known
    ]:
        known.update(more)
    for test in set(narrow.legal or ()) - set(wide.legal or ()):
        dims = (item for item in subexpressions(test) if isinstance(item, Dim))
        if any(dim.tensor in chosen and dim not in known for dim in dims):
            raise refuse("rows of other sizes would have no kernel")


def _side_by_side(program: Program, blocks: Blocks) -> Program:
    """Both kernels in one launch, with the host's variables of the product for both.

    What is handed over has room for some blocks of each core.
    """
    cube, vector = program.host.launches
    given = dict(cube.args)
    (handed,) = (
        item.name for item in program.kernels[0].tensors if item.role is TensorRole.SCRATCH
    )
    length = times(Name(_CORES), replaced(blocks.length, given.get))
    takes = {scalar.name for scalar in program.kernels[1].scalars}
    more = {f"{MARK}{name}": given[name] for name in blocks.names if f"{MARK}{name}" in takes}
    launches = (
        _launched(cube, handed, length, {}),
        replace(_launched(vector, handed, length, more), beside=True),
    )
    values = {stmt.target: stmt.value for stmt in program.host.body if isinstance(stmt, Assign)}
    values[_CORES] = values.pop(f"{_CORES}_1")  # of blocks, for both
    values.pop(_BLOCKS, None)
    used = [name for item in launches for _, value in item.args for name in names(value)]
    needed = closure([*used, _CORES], values)
    body = in_order({name: value for name, value in values.items() if name in needed})
    return replace(program, host=replace(program.host, body=body, launches=launches))


def _launched(launch: Launch, handed: str, length: Expr, more: Mapping[str, Expr]) -> Launch:
    args = tuple((name, length if name == handed else value) for name, value in launch.args)
    return replace(launch, cores=Name(_CORES), args=(*more.items(), *args))
