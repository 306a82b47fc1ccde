"""Several kernels -> the same kernels, with what passes between them as outputs of the operator.

So the judge sees what each of them stores. The kernels are the same text: behind the last one, one
more for each value copies it from scratch to its output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from npusmith.plan.link import link
from npusmith.plan.partition import Part
from npusmith.plan.renamed_plans import PlanCache
from npusmith.plan.shared_kernels import share_kernels
from npusmith.plan.structures import Plan
from npusmith.plan.subgraphs import crossing_name
from npusmith.plan.write_kernel import write_kernel
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph, GraphInput, Node, Ref


@dataclass(frozen=True, slots=True)
class Exposed:
    """`values`: names in the graph, and the number of the kernel that stores each, from 1."""

    plan: Plan
    values: tuple[tuple[str, int], ...]


def expose_intermediates(plan: Plan, graph: Graph, chip: Chip) -> Exposed | None:
    """The operator that also gives the values between its kernels; None where nothing passes."""
    parts = [Part(own, made) for own, made in plan.parts]
    # parts of a product are none of the model's
    known = {node.name for node in graph.nodes if not node.added}
    read = {crossing_name(item): item for part in parts for item in part.graph.inputs}
    values = [
        (name, number)
        for number, part in enumerate(parts, 1)
        for name in dict.fromkeys(part.graph.outputs)
        if name in known and name in read
    ]
    if not values:
        return None
    name = plan.spec.name
    copies = [_copy(graph, read[value]) for value, _ in values]
    written = PlanCache()

    def kernel(copy: Graph) -> Plan:
        return written.plan(copy, None, lambda: write_kernel(copy, name, chip))

    added = [Part(copy, kernel(copy)) for copy in copies]
    whole = graph.model_copy(
        update={"outputs": (*graph.outputs, *(copy.outputs[0] for copy in copies))}
    )
    linked = link([*parts, *added], whole, name)
    spec = replace(linked.spec, literals=plan.spec.literals, constants=plan.spec.constants)
    program = share_kernels(linked.program)
    return Exposed(replace(linked, spec=spec, program=program), tuple(values))


def _copy(graph: Graph, item: GraphInput) -> Graph:
    """What is stored as it is between the kernels, in the type that PyTorch gives it."""
    value = crossing_name(item)
    copied = Node(
        name=f"{value}_stored", op="aten.clone.default", args=(Ref(ref=value),),
        shape=item.shape, dtype=graph.spec(value).dtype,
    )  # fmt: skip
    return Graph(inputs=(item,), nodes=(copied,), outputs=(copied.name,), classes=graph.classes)
