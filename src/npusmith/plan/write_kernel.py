"""`write_kernel`: a captured graph -> a tile program of one kernel.

Read the graph into expressions (read), order and merge its axes (space), lay out passes and loops
(passes, stores), share buffers (pack), and write the host function (host).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from npusmith.errors import PlanError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Kernel, Program, Scalar, Tensor, TensorRole
from npusmith.ir.spec import OpSpec
from npusmith.ir.walk import names, names_read
from npusmith.plan.accesses import accessed
from npusmith.plan.block import Block, staged
from npusmith.plan.formula import explained, formula
from npusmith.plan.host import Sizes
from npusmith.plan.lanes import INNER, write_lanes
from npusmith.plan.names import tensor_name
from npusmith.plan.pack import Packed, pack
from npusmith.plan.picks import write_picks
from npusmith.plan.pooling import NAMES, write_pooling
from npusmith.plan.quicker import with_quicker
from npusmith.plan.read import Meaning, read
from npusmith.plan.scatters import write_scatter
from npusmith.plan.sorting import write_sort
from npusmith.plan.space import Space, reachable, resolve
from npusmith.plan.stores import Target, ports, store_all
from npusmith.plan.windows import find_pooling
from npusmith.plan.writer import Writer
from npusmith.target.chips import Chip
from npusmith.task.graph import Graph

# Refusals of the loops over axes that say that elements move
_MOVED = ("plan-data-movement", "plan-transpose", "plan-repeated-axis", "plan-reshape")


_ROW = 512  # elements of a row of slices: shorter ones are copied first, and packed into tiles
_BLOCK = 8  # elements of 32 bytes: rows that are shorter are not laid out one by one


@dataclass(frozen=True, slots=True)
class Plan:
    """A tile program, the operator around it, and what was decided on the way."""

    program: Program
    spec: OpSpec
    notes: tuple[str, ...]
    searched: bool = True  # whether search.py knows what could be another schedule


def write_kernel(graph: Graph, name: str, chip: Chip) -> Plan:
    """The tile program for a graph, under the operator name `name`.

    Raises PlanError (codes plan-*) naming the node that cannot be written, why, and what to do.
    The program is generic in sizes: it serves every shape of the same module, unless the model
    bakes sizes into its arithmetic. Very long rows get another schedule than short ones.
    """
    with contextlib.suppress(PlanError):  # the general way may still serve it
        pooling = find_pooling(graph, NAMES)
        if pooling is not None:
            return Plan(*write_pooling(pooling, name, chip))
    ordered = write_sort(graph, name, chip)
    if ordered is not None:
        return Plan(*ordered, searched=False)
    for write_moves in (write_picks, write_scatter):
        with contextlib.suppress(PlanError):
            moved = write_moves(graph, name, chip)
            if moved is not None:
                return Plan(*moved)
    meaning = read(graph)
    try:
        space = resolve(meaning)
    except PlanError as error:
        if error.code not in _MOVED:
            raise
        return _moved(meaning, name, chip)
    if not space.outputs:
        raise PlanError("plan-no-output", "the graph has no output")
    return _looped(meaning, space, name, chip)


def _moved(meaning: Meaning, name: str, chip: Chip) -> Plan:
    """Elements that move: tiles that read them where index maps say, or loops over slices."""
    try:
        return Plan(*write_lanes(meaning, name, chip), searched=False)
    except PlanError:
        with contextlib.suppress(PlanError):
            space = resolve(accessed(meaning))
            scanned = any(value.op == "running" for value in space.origin)
            if scanned or Writer(space, Sizes(space), chip).row_size >= _ROW:
                return _looped(None, space, name, chip)
        raise


def _looped(meaning: Meaning | None, space: Space, name: str, chip: Chip) -> Plan:
    """Loops over axes. `meaning`: where nothing is a slice, rows may be packed into tiles."""
    w = Writer(space, Sizes(space), chip)
    targets = _name_tensors(w)
    spec, outputs = _spec(space, targets, name), [target.name for target in targets]
    written: list[Block] = []

    def packed(chip: Chip) -> Packed:
        if not written:
            root = Block(together=True)
            store_all(w, (root,), targets)
            written.append(root)
        tensors = _tensors(w, targets)
        return pack(staged(written[0].items), w.temps, _taken(w, tensors), chip)

    def general(chip: Chip) -> Program:
        return _program(w, name, packed(chip), _tensors(w, targets), targets)

    def many_rows() -> Plan | None:
        assert meaning is not None
        with contextlib.suppress(PlanError):  # too many buffers, where tiles are needed for more
            return Plan(*write_lanes(meaning, name, chip), searched=False)
        return None

    def alone() -> Plan:
        whole = packed(chip)
        program = _program(w, name, whole, _tensors(w, targets), targets)
        return Plan(program, spec, _notes(space, w, whole))

    if meaning is None:
        return alone()
    short = _short(w)
    tiny = w.row_size < _BLOCK
    if short and tiny and (plan := many_rows()) is not None:
        return plan
    quick = with_quicker(space, outputs, name, chip, general)
    if quick is not None:
        return Plan(quick[0], spec, (*space.notes, quick[1]))
    if short and not tiny and (plan := many_rows()) is not None:
        return plan
    return alone()


def _short(w: Writer) -> bool:
    """Whether operands are broadcast within rows so short that a tile has to hold many of them."""
    space = w.space
    values = reachable([out.value for out in space.outputs])
    pointwise = not any(value.op in ("reduce", "running") for value in values)
    several = pointwise and len(space.groups) > 1 and len({space.axes(v) for v in values}) > 1
    return several and 0 < w.row_size <= INNER[0]


# ------------------------------------------------------------------------------------------- names


def _name_tensors(w: Writer) -> list[Target]:
    """Kernel names for inputs and outputs."""
    for item in w.space.inputs:
        w.tensors[item.item.name] = item.name
    used = set(w.tensors.values())
    outputs = w.space.outputs
    last = outputs[-1].port
    names_ = {i: tensor_name(f"y{i}" if last else "y", used) for i in range(last + 1)}
    return [Target(output, names_[output.port]) for output in outputs]


def _taken(w: Writer, tensors: Iterable[Tensor]) -> set[str]:
    """Names that buffers must not take."""
    return {item.name for item in tensors} | set(w.sizes.defined) | set(w.names)


# ----------------------------------------------------------------------------------------- program


def _tensors(w: Writer, targets: list[Target]) -> tuple[Tensor, ...]:
    inputs = [
        Tensor(w.tensors[item.item.name], item.item.dtype, TensorRole.INPUT)
        for item in w.space.inputs
    ]
    made = {t.name: t.output.dtype for t in targets}
    outputs = [Tensor(each, dtype, TensorRole.OUTPUT) for each, dtype in made.items()]
    work = [Tensor(name, DType.FLOAT32, TensorRole.SCRATCH) for name in w.sizes.scratch]
    return (*inputs, *outputs, *work)


def _program(
    w: Writer, name: str, packed: Packed, tensors: tuple[Tensor, ...], targets: list[Target]
) -> Program:
    read_names = names_read(packed.body)
    used = [item for item in (*w.sizes.defined, "cores") if item in read_names]
    host = w.sizes.write(
        name, tuple(t.name for t in tensors if t.role is not TensorRole.SCRATCH), used, ""
    )
    kernel = Kernel(
        name, tensors, tuple(Scalar(item) for item in used), packed.buffers, packed.body
    )
    everywhere = read_names | names_read(host.body)
    everywhere |= {item for buffer in packed.buffers for item in names(buffer.length)}
    folds = (packed.tile // 8).bit_length() - 1
    consts = (("TILE", packed.tile), ("FOLDS", folds))
    kept = tuple(pair for pair in consts if pair[0] in everywhere)
    return Program(kept, host, (kernel,), _doc(w.space, name, targets))


def _doc(space: Space, name: str, targets: list[Target]) -> str:
    formulas = [f"{t.name} = {formula(space, t.output.value)}" for t in targets]
    sizes = " x ".join(group.name for group in space.groups) or "one number"
    return "\n".join([f"{name} over {sizes}", *formulas, *explained(space)])


# -------------------------------------------------------------------------------------------- spec


def _spec(space: Space, targets: list[Target], name: str) -> OpSpec:
    inputs, outputs = ports(space, targets)
    return OpSpec(name, inputs, outputs, single_output=len(outputs) == 1, legal=space.legal)


def _notes(space: Space, w: Writer, packed: Packed) -> tuple[str, ...]:
    deals = [
        "dealt to cores: "
        + " x ".join([space.groups[g].name for g in deal.outer] + ["tiles"] * deal.tiled)
        for deal in w.sizes.deals.values()
    ]
    deals += [
        "dealt to cores: "
        + " x ".join([space.groups[g].name for g in cut.outer] + ["chunks"] + ["tiles"] * cut.tiled)
        for cut in w.sizes.cuts
    ]
    return (*space.notes, *deals, f"a tile is {packed.tile} elements")
