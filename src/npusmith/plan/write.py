"""`write`: a captured graph -> a tile program, with no model; search.py tries schedules of it."""

from __future__ import annotations

from dataclasses import replace

from npusmith.errors import PlanError
from npusmith.ir.text import show_expr
from npusmith.plan.fixed_sizes import fixed_sizes, unread
from npusmith.plan.link import link
from npusmith.plan.partition import partition
from npusmith.plan.write_kernel import Plan, write_kernel
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph


def write(graph: Graph, name: str, chip: Chip) -> Plan:
    """The tile program for a graph, under the operator name `name`.

    One kernel where one can hold the graph, else several that run one after another.
    Raises PlanError (codes plan-*) naming the nodes that cannot be written, why, and what to do.
    The program is generic in sizes: it serves every shape of the same module, unless the model
    bakes sizes into its arithmetic: these are the only ones that it serves. Very long rows get
    another schedule than short ones.
    """
    plan = _write(graph, name, chip)
    if lost := unread(graph, plan.spec.inputs):
        raise PlanError("plan-fixed-size", f"{lost} is a number in the model's arithmetic")
    fixed = [e for e in fixed_sizes(graph, plan.spec.inputs) if e not in (plan.spec.legal or ())]
    notes = [f"{show_expr(expr)}: the model's arithmetic has it as a number" for expr in fixed]
    legal = (*plan.spec.legal, *fixed) if plan.spec.legal is not None else tuple(fixed) or None
    spec = replace(plan.spec, legal=legal, literals=graph.literals)
    return replace(plan, spec=spec, notes=(*plan.notes, *notes))


def _write(graph: Graph, name: str, chip: Chip) -> Plan:
    try:
        return write_kernel(graph, name, chip)
    except PlanError as error:
        if not graph.outputs or not graph.nodes:
            raise
        try:
            parts = partition(graph, lambda part: write_kernel(part, name, chip))
        except PlanError as problem:
            raise problem from error
        return link(parts, graph, name) if parts else _again(error)


def _again(error: PlanError) -> Plan:
    raise error
