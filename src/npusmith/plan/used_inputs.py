"""The inputs of a graph that a kernel takes: those that it reads, and those that give it sizes."""

from __future__ import annotations

from collections.abc import Collection

from npusmith.plan.axes import Atom, Dims, leaves
from npusmith.plan.dag import reachable
from npusmith.plan.read import Meaning, check_readable
from npusmith.plan.views import atoms_of
from npusmith.task.graph import GraphInput


def used_inputs(meaning: Meaning) -> list[tuple[GraphInput, Dims]]:
    values = reachable(meaning.roots)
    used = inputs_of(meaning, {value.text for value in values if value.op == "load"})
    for item, _ in used:
        check_readable(item)
    return used


def inputs_of(meaning: Meaning, read: Collection[str]) -> list[tuple[GraphInput, Dims]]:
    """The inputs that are read, and those that outputs and counts have sizes from."""
    held = {leaf for item, dims in meaning.inputs if item.name in read for leaf in atoms_of(dims)}
    wanted = {leaf for out in meaning.outputs for leaf in atoms_of(out.dims)}
    wanted |= meaning.reader.held
    for value in reachable([out.value for out in meaning.outputs]):
        wanted |= set(leaves(value.axes)) if value.op in ("reduce", "count", "index") else set()
    wanted = _followed(meaning, wanted - held | _parted(meaning, read)) - held
    return [
        (item, dims)
        for item, dims in meaning.inputs
        if item.name in read or wanted.intersection(atoms_of(dims))
    ]


def _parted(meaning: Meaning, read: Collection[str]) -> set[Atom]:
    """Parts of one dimension of what is read, whose sizes follow from those of other inputs."""
    told = {leaf for dim, _ in meaning.reader.sized for leaf in leaves(dim)}
    rows = [leaves(dim) for item, dims in meaning.inputs if item.name in read for dim in dims]
    return {leaf for row in rows if len(row) > 1 for leaf in row if leaf in told and not leaf.model}


def _followed(meaning: Meaning, wanted: set[Atom]) -> set[Atom]:
    """These axes, and those that their sizes follow from."""
    found, queue = set(wanted), list(wanted)
    rows = [(set(leaves(dim)), formula) for dim, formula in meaning.reader.sized]
    while queue:
        leaf = queue.pop()
        for row, formula in rows:
            if leaf in row:
                new = meaning.reader.axes_of(formula) - found
                found |= new
                queue += new
    return found
