"""A kernel of index maps as a program: its host function, tensors, buffers and what it is for."""

from __future__ import annotations

from collections.abc import Sequence

from npusmith.ir.nodes import (
    Kernel,
    Program,
    Scalar,
    Tensor,
    TensorRole,
)
from npusmith.ir.walk import mentioned, names, names_read, statements
from npusmith.ir.walk import tensors as stored_or_loaded
from npusmith.plan.lane_space import Lanes
from npusmith.plan.pack import Packed
from npusmith.plan.provable_conditions import live
from npusmith.plan.stores import Target


def program_of(w: Lanes, name: str, targets: Sequence[Target], packed: Packed) -> Program:
    body = live(packed.body, packed.tile)
    used = set(mentioned(body))
    passed = {name for stmt in statements(body) for name in stored_or_loaded(stmt)}
    w.sizes.scratch = {name: size for name, size in w.sizes.scratch.items() if name in passed}
    tensors = tensors_of(w, targets)
    buffers = tuple(item for item in packed.buffers if item.name in used)
    read = names_read(body)
    given = [item for item in (*w.sizes.defined, "cores") if item in read]
    outside = tuple(t.name for t in tensors if t.role is not TensorRole.SCRATCH)
    host = w.sizes.write(name, outside, given, "")
    scalars = tuple(Scalar(item) for item in given)
    kernel = Kernel(name, tensors, scalars, buffers, body)
    everywhere = read | names_read(host.body)
    consts = (("TILE", packed.tile),) if "TILE" in everywhere | _lengths(kernel) else ()
    return Program(consts, host, (kernel,), _doc(w, name, targets))


def _doc(w: Lanes, name: str, targets: Sequence[Target]) -> str:
    """What the program is for; one that goes by places is the same whatever was captured."""
    placed = [t.name for t in targets if t.output.value in w.meaning.reader.combined]
    shapes = [f"{t.name} {list(t.output.shape)}" for t in targets if t.name not in placed]
    parts = [f"elements from where index maps say, as captured {', '.join(shapes)}"] * bool(shapes)
    parts += [f"elements of {', '.join(placed)} where places say"] * bool(placed)
    return f"{name}: {'; '.join(parts)}"


def _lengths(kernel: Kernel) -> set[str]:
    return {name for buffer in kernel.buffers for name in names(buffer.length)}


def tensors_of(w: Lanes, targets: Sequence[Target]) -> tuple[Tensor, ...]:
    inputs = (Tensor(item.name, item.item.dtype, TensorRole.INPUT) for item in w.space.inputs)
    outputs = (Tensor(t.name, t.output.dtype, TensorRole.OUTPUT) for t in targets)
    work = (Tensor(name, w.types[name], TensorRole.SCRATCH) for name in w.sizes.scratch)
    return (*inputs, *outputs, *work)
