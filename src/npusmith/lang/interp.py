"""What a program means: a slow, obvious interpreter on NumPy arrays.

Cores run one after another, each up to the point where it waits for the others, so that a run is
always the same. Everything that the language leaves undefined is an error here, not a number.
A kernel becomes functions of a core once for each launch (steps.py); they check in the order of the
text, at each step, what can be another than before.
Lowered programs have a meaning too: queues hold their buffers, barriers and events change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from npusmith.errors import LangError, Place
from npusmith.ir.dtypes import DType
from npusmith.ir.launches import each_launch, place, side_by_side
from npusmith.ir.nodes import (
    Assign,
    ChipFact,
    Const,
    Dim,
    Expr,
    Program,
    Size,
    Stmt,
    Tensor,
    TensorRole,
)
from npusmith.ir.text import show_stmt
from npusmith.ir.walk import line_of
from npusmith.lang.access import Accesses
from npusmith.lang.apply import apply
from npusmith.lang.budget import length_of
from npusmith.lang.copies import Exchange
from npusmith.lang.core import Clock, Core
from npusmith.lang.cube import sides_of_matrices
from npusmith.lang.flags import tell_each_other
from npusmith.lang.memory import GlobalTensor, InMemory, When, Window
from npusmith.lang.operands import on_chip, row_pitch
from npusmith.lang.scalars import Scalar, Scalars
from npusmith.lang.steps import Steps, Wait
from npusmith.target.chips import Chip
from npusmith.target.intrinsics import COMBINES, INTRINSICS

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """Of a tensor, those that a kernel takes as one of its own."""

    tensor: str
    start: int
    step: int  # how much further on they begin where the loop's variable is 1 more
    length: int


@dataclass(frozen=True, slots=True)
class Launched:
    """What the host function decides: how many cores, and a value for each parameter."""

    cores: int
    args: Mapping[str, Scalar]
    times: range = range(1)  # values of the loop's variable
    parts: Mapping[str, Elements] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Of its loop: more than `len` can count, if the program says so."""
        return max(0, self.times.stop - self.times.start)


@dataclass(frozen=True, slots=True)
class Interpreted:
    """Outputs, and for each element the core that stored it, -2 where several have."""

    outputs: list[Array]
    writers: list[Array]


def interpret(
    program: Program,
    chip: Chip,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[Shape, DType]],
) -> list[Array]:
    """Run the program; returns its outputs.

    `inputs` are arrays of the kernel's inputs in order, `outputs` shapes and dtypes of its outputs.
    Raises LangError, with line and core, when the run breaks a rule.
    """
    return interpret_traced(program, chip, inputs, outputs).outputs


def interpret_traced(
    program: Program,
    chip: Chip,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[Shape, DType]],
) -> Interpreted:
    """The same, with who stored what."""
    _check_arrays(program, inputs, outputs)
    with np.errstate(all="ignore"):
        shapes = {
            **{item.name: array.shape for item, array in zip(program.inputs, inputs, strict=True)},
            **{item.name: part[0] for item, part in zip(program.outputs, outputs, strict=True)},
        }
        tensors = _given(program, inputs, shapes)
        clock = Clock()
        runs: list[_Run] = []
        for part in each_launch(program):
            launched = run_host(part, chip, shapes)
            _add_scratch(part, launched, tensors)
            runs.append(_Run(part, launched))
        made_of = {id(run.program): run for run in runs}
        groups = [
            [made_of[id(part)] for part in group]
            for group in side_by_side(run.program for run in runs)
        ]
        for _, looped in groupby(groups, key=lambda group: group[0].program.host.launch.loop):
            together = list(looped)
            for value in together[0][0].launched.times:
                for group in together:
                    _run_group(group, value, tensors, clock)
        made = [tensors[item.name] for item in program.outputs]
        return Interpreted(
            [
                _result(program, tensor, item, shapes[item.name])
                for tensor, item in zip(made, program.outputs, strict=True)
            ],
            [tensor.writer for tensor in made],
        )


# ------------------------------------------------------------------------------------------- host


def run_host(program: Program, chip: Chip, shapes: Mapping[str, Shape]) -> Launched:
    """Run the host function of a program of one kernel for tensors of these shapes."""
    host = program.host
    current: list[Stmt | int] = [host.line]

    def fail(code: str, message: str) -> LangError:
        at = current[0]
        line = at if isinstance(at, int) else line_of(at)
        seen = "" if isinstance(at, int) else show_stmt(at)
        return LangError(code, message, Place("", line, host.name), seen=seen)

    def leaf(expr: Expr) -> Scalar:
        match expr:
            case Dim(tensor, index):
                shape = shapes[tensor]
                if not -len(shape) <= index < len(shape):
                    message = f"{tensor} has {len(shape)} dimensions: shape[{index}]"
                    raise fail("lang-dim", message)
                return int(shape[index])
            case Size(tensor):
                return int(np.prod(shapes[tensor], dtype=np.int64))
            case ChipFact(name):
                return int(getattr(chip, name))
            case _:
                raise fail("lang-host", "core numbers and buffers exist in the kernel only")

    names = _const_values(program)
    scalars = Scalars(names, leaf, fail)
    for stmt in host.body:
        current[0] = stmt
        if isinstance(stmt, Assign):
            names[stmt.target] = scalars.value(stmt.value)
    current[0] = host.launch.line
    cores = max(1, scalars.integer(host.launch.cores))
    kernel = program.kernel
    blocks = kernel.is_cube or kernel.block_cores > 1
    what, most = ("cube", chip.cube_cores) if blocks else ("vector", chip.vector_cores)
    if cores > most:
        raise fail("lang-cores", f"{cores} cores, and {chip.name} has {most} {what} cores")
    args = {name: scalars.value(value) for name, value in host.launch.args}
    loop = host.launch.loop
    ends = (Const(0), Const(1)) if loop is None else (loop.start, loop.stop)
    parts: dict[str, Elements] = {}
    for own, part in host.launch.parts:
        numbers = (*place(host.launch, part), part.length)
        start, step, length = map(scalars.integer, numbers)
        parts[own] = Elements(part.tensor, start, step, length)
    times = range(*map(scalars.integer, ends))
    return Launched(cores * kernel.block_cores, args, times, parts)


def _const_values(program: Program) -> dict[str, Scalar]:
    return {
        name: np.float32(value) if isinstance(value, float) else value
        for name, value in program.consts
    }


# ---------------------------------------------------------------------------------------- tensors


def _check_arrays(
    program: Program, inputs: Sequence[Array], outputs: Sequence[tuple[Shape, DType]]
) -> None:
    given = ([array.dtype for array in inputs], [dtype.numpy for _, dtype in outputs])
    for what, wanted, found in zip(
        ("inputs", "outputs"), (program.inputs, program.outputs), given, strict=True
    ):
        names = ", ".join(f"{item.name}: {item.dtype.value}" for item in wanted)
        if [item.dtype.numpy for item in wanted] != found:
            seen = ", ".join(str(dtype) for dtype in found) or "none"
            message = f"the {what} given are {seen}"
            raise LangError("lang-inputs", message, legal=names or "none")


def _given(
    program: Program, inputs: Sequence[Array], shapes: Mapping[str, Shape]
) -> dict[str, GlobalTensor]:
    """Inputs and outputs."""
    found: dict[str, GlobalTensor] = {}
    for item, array in zip(program.inputs, inputs, strict=True):
        flat = np.ascontiguousarray(array).reshape(-1)
        data = flat.view(on_chip(item.dtype).numpy)
        found[item.name] = GlobalTensor(item.name, data, defined=True)
    for item in program.outputs:
        size = int(np.prod(shapes[item.name], dtype=np.int64))
        found[item.name] = _undefined(item, size)
    return found


def _undefined(item: Tensor, size: int) -> GlobalTensor:
    return GlobalTensor(item.name, np.zeros(size, on_chip(item.dtype).numpy), defined=False)


def _add_scratch(program: Program, launched: Launched, tensors: dict[str, GlobalTensor]) -> None:
    """Scratch tensors that no earlier kernel had."""
    for item in program.tensors:
        if item.role is not TensorRole.SCRATCH or item.name in tensors:
            continue
        length = int(launched.args[item.name])
        if length < 0:
            place = Place("", program.host.launch.line, program.host.name)
            raise LangError("lang-range", f"the length of {item.name!r} is {length}", place)
        tensors[item.name] = _undefined(item, length)


def _result(program: Program, tensor: GlobalTensor, item: Tensor, shape: Shape) -> Array:
    last = program.kernels[-1]
    place = Place("", last.line, last.name)
    if not tensor.defined.all():
        first = int(np.argmin(tensor.defined))
        missing = int(np.count_nonzero(~tensor.defined))
        message = f"{item.name}[{first}] is never stored ({missing} of {tensor.size} elements)"
        raise LangError("lang-unwritten", message, place)
    if item.dtype is DType.BOOL:
        if tensor.data.max(initial=0) > 1:
            message = f"{item.name!r} is bool and holds {tensor.data.max()}"
            raise LangError("lang-overflow", message, place, legal="0 and 1 in a bool tensor")
        return tensor.data.astype(np.bool_).reshape(shape)
    return tensor.data.reshape(shape)


# ------------------------------------------------------------------------------------------ cores


class _Run:
    """One launch, and what its kernel is to a core; in a loop it runs with other tensors."""

    def __init__(self, program: Program, launched: Launched) -> None:
        self.program, self.launched = program, launched
        consts, kernel = dict(program.consts), program.kernel
        lengths = {item.name: length_of(item, consts) or 0 for item in kernel.buffers}
        scalars = {item.name for item in kernel.scalars}
        self.names = _const_values(program)
        self.names |= {name: value for name, value in launched.args.items() if name in scalars}
        accesses = Accesses(kernel, lengths, self.names)
        self.steps = Steps(kernel, accesses, sides_of_matrices(program))

    def at(self, value: int, tensors: Mapping[str, GlobalTensor]) -> Mapping[str, InMemory]:
        """The tensors, and the parts of them that stand under names of the kernel."""
        found: dict[str, InMemory] = dict(tensors)
        for own, part in self.launched.parts.items():
            whole, start = tensors[part.tensor], part.start + part.step * value
            if start < 0 or part.length < 0 or start + part.length > whole.size:
                message = (
                    f"{own!r} is elements {start} to {start + part.length - 1} of "
                    f"{part.tensor!r}, which has {whole.size}"
                )
                host = self.program.host
                raise LangError("lang-gm-range", message, Place("", host.launch.line, host.name))
            found[own] = Window(own, whole, start, part.length)
        return found


def _run_group(
    group: Sequence[_Run], value: int, tensors: Mapping[str, GlobalTensor], clock: Clock
) -> None:
    """A kernel, or two that run side by side: vector cores have the first numbers there."""
    count, first = sum(run.launched.cores for run in group), 0
    cores: dict[bool, list[Core]] = {}
    for run in sorted(group, key=lambda run: run.program.kernel.is_cube):
        kernel, launched, given = run.program.kernel, run.launched, run.at(value, tensors)
        cores[kernel.is_cube] = [
            Core(
                kernel, run.steps.new_buffers(), given, run.names, (number, launched.cores),
                When(first + number, count, clock.epoch),
            )
            for number in range(launched.cores)
        ]  # fmt: skip
        first += launched.cores
    if len(group) == 1:
        _run_cores(group[0], next(iter(cores.values())), clock)
    else:
        _run_blocks(group, cores)
    # the next kernel sees what this one has stored
    clock.epoch = max(core.when.now for each in cores.values() for core in each) + 1


def _run_blocks(group: Sequence[_Run], cores: Mapping[bool, Sequence[Core]]) -> None:
    """Each core as far as it gets without the other side of its block, again and again."""
    told = tell_each_other(cores[True], cores[False])
    running: list[tuple[Core, Iterator[Wait]]] = []
    for run in group:
        whole = run.steps.whole()
        running += [(core, whole(core)) for core in cores[run.program.kernel.is_cube]]
    before = -1
    while running:
        ahead = ((core, rest) for core, rest in running if next(rest, None) is not None)
        running, done = list(ahead), sum(each.turns for each in told)
        if running and done == before:
            raise running[0][0].fail("lang-flag", "what is awaited here is never posted")
        before = done
    for each in told:
        each.finish()


def _run_cores(run: _Run, cores: Sequence[Core], clock: Clock) -> None:
    whole = run.steps.whole()
    runs = [whole(core) for core in cores]
    while True:
        waits = [next(each, None) for each in runs]
        first = waits[0]
        for core, wait in zip(cores, waits, strict=True):
            if wait is not first:
                message = "core 0 waits elsewhere, or does not wait"
                raise core.fail("lang-divergent", message)
        if first is None:
            return
        _meet(cores, clock)
        if isinstance(first, Exchange):
            _combine(first, cores, cores[0].tensors[first.stmt.scratch])
            _meet(cores, clock)


def _meet(cores: Sequence[Core], clock: Clock) -> None:
    clock.epoch += 1
    for core in cores:
        core.when.meet(clock.epoch)


def _combine(exchange: Exchange, cores: Sequence[Core], scratch: InMemory) -> None:
    parts = [exchange.give(core) for core in cores]
    count, dtype = parts[0].size, DType.of(parts[0].dtype)
    if any(part.size != count for part in parts):
        raise cores[0].fail("lang-divergent", "the count differs from core to core")
    if count == 0:
        return
    needed = len(cores) * row_pitch(count, dtype)
    if scratch.size < needed:
        message = f"{scratch.name!r} has {scratch.size} elements, and {needed} are needed"
        raise cores[0].fail("lang-combine", message)
    row = INTRINSICS[COMBINES[exchange.stmt.op]]
    total = parts[0]
    for part in parts[1:]:
        total = apply(row, dtype, count, [part], old=total)
    scratch.forget(needed)
    for core in cores:
        exchange.take(core, total)
