"""Judging a kernel's text against a case: cheap, the same answer on every machine.

A case is a tile program that is right, and shapes. What it means (lang.interpret) is the reference
for both routes. A tile program is parsed, checked and interpreted; Ascend C takes the place of the
kernel that the case's own program is lowered to, is compiled and run on the twin. `Bench.time`
estimates how long an accepted text takes on the chip, at the case's larger shapes.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from npusmith.errors import Level, NpusmithError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const, Program, TensorRole
from npusmith.ir.opname import operator_name
from npusmith.ir.spec import OpSpec, Port
from npusmith.knowledge.tokens import TILE
from npusmith.lang import check_all, interpret, parse
from npusmith.lower import lower, write_project
from npusmith.sandbox.folder import remove_tree
from npusmith.target.chips import Chip
from npusmith.timing.bottleneck import vector
from npusmith.timing.rung import time_logs
from npusmith.twin import Build, build, read_project, run
from npusmith.twin.diagnose import CompileError
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.watch import Watch

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

WRONG = "wrong-values"  # beside the codes of errors.CODES: it ran, and its answer is not right
SLOW = "slow"  # it is right, and another kernel for the same is faster
SECONDS = 10.0  # of one run on the twin
_KERNEL = "kernel.cpp"  # the copy of the right one
_LOOPS = 2_000_000  # elements of the largest tensor of a case: small shapes are the point
# Nothing may be hidden by barriers that the compiler would add.
_WATCH = Watch(auto_sync=False)
# |a - b| <= bound * (1 + |b|): sums in another order are right too.
_BOUNDS = {DType.FLOAT16: 4e-3, DType.BFLOAT16: 3e-2, DType.FLOAT32: 2e-5}


class Shapes(BaseModel):
    """One set of shapes, of the inputs and of the outputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: tuple[Shape, ...] = Field(min_length=1)
    outputs: tuple[Shape, ...] = Field(min_length=1)


class Case(BaseModel):
    """What is right: a tile program, sets of small shapes, and one of large shapes to time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    program: str = Field(max_length=100_000)
    small: tuple[Shapes, ...] = Field(min_length=1)
    large: Shapes | None = None
    category: str = ""


class Judged(BaseModel):
    """What was said of one text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accepted: bool
    rung: int  # 0 not read, 1 legal or compiled, 2 ran to its end, 3 right, without an error
    codes: tuple[str, ...] = ()  # the first is the one that stopped it
    messages: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    hints: tuple[str, ...] = ()  # what the findings propose


class Timed(BaseModel):
    """An estimate of the timing model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    us: float
    vector: tuple[float, ...]


@dataclass
class Bench:
    """A case made ready in a folder; safe for several processes."""

    case: Case
    chip: Chip
    folder: Path

    @cached_property
    def program(self) -> Program:
        return parse(self.case.program, self.case.name)

    @cached_property
    def kernel(self) -> str:
        """The Ascend C kernel that the case's program is lowered to.

        Kept beside the project: its own copy is exchanged while something is judged, by this
        process or another one, and stays so when that is killed.
        """
        assert self.project
        return (self.folder / _KERNEL).read_text(encoding="utf-8")

    @cached_property
    def project(self) -> Path:
        """Made under another name first, the kernel's copy last: what is there is whole."""
        folder, fresh = self.folder / "project", self.folder / "project.new"
        with _locked(self.folder):
            if (self.folder / _KERNEL).is_file():
                return folder
            for old in (folder, fresh):
                remove_tree(old)
            write_project(lower(self.program, self.chip), self.chip, fresh, self._spec)
            copy = fresh / _KERNEL
            copy.write_bytes((fresh / "op_kernel" / f"{self._spec.name}.cpp").read_bytes())
            fresh.replace(folder)
            (folder / _KERNEL).replace(self.folder / _KERNEL)
        return folder

    @cached_property
    def references(self) -> list[list[Array]]:
        """The right outputs for each set of small shapes."""
        return [
            interpret(self.program, self.chip, self.inputs(shapes), self._outputs(shapes))
            for shapes in self.case.small
        ]

    def inputs(self, shapes: Shapes) -> list[Array]:
        """Values of either sign, the same in every run."""
        rng = np.random.default_rng(7)
        return [
            _values(tensor.dtype, shape, rng)
            for tensor, shape in zip(self.program.inputs, shapes.inputs, strict=True)
        ]

    def judge(self, route: str, text: str) -> Judged:
        """Is this text right?"""
        return self._judge_tile(text) if route == TILE else self._judge_direct(text)

    def time(self, route: str, text: str) -> Timed | None:
        """Estimated task time of an accepted text; None when it does not come to its end."""
        if self.case.large is None:
            return None
        try:
            if route == TILE:
                return self._time_tile(text)
            with self._kernel_in(text):
                built = self._build(self.project)
                return self._time(built, self.folder)
        except NpusmithError:
            return None

    # ---- tile programs

    def _judge_tile(self, text: str) -> Judged:
        try:
            program = parse(text)
        except NpusmithError as error:
            return _refused(0, [error])
        errors = check_all(program, self.chip)
        if errors:
            return _refused(0, errors)
        if not self._fits(program):
            return Judged(accepted=False, rung=0, codes=("lang-inputs",))
        for shapes, wanted in zip(self.case.small, self.references, strict=True):
            try:
                given = interpret(program, self.chip, self.inputs(shapes), self._outputs(shapes))
            except NpusmithError as error:
                return _refused(1, [error])
            except (MemoryError, RecursionError, OverflowError) as error:
                return Judged(accepted=False, rung=1, messages=(type(error).__name__,))
            if message := _difference(given, wanted):
                return Judged(accepted=False, rung=2, codes=(WRONG,), messages=(message,))
        return Judged(accepted=True, rung=3)

    def _fits(self, program: Program) -> bool:
        """Whether it has the tensors of the case."""

        def ports(item: Program) -> list[tuple[TensorRole, DType]]:
            return [(port.role, port.dtype) for port in (*item.inputs, *item.outputs)]

        return ports(program) == ports(self.program)

    def _time_tile(self, text: str) -> Timed | None:
        program = parse(text)
        folder = self.folder / "timed"
        with _locked(self.folder):
            write_project(lower(program, self.chip), self.chip, folder, self._spec)
            return self._time(self._build(folder), self.folder)

    # ---- Ascend C

    def _judge_direct(self, text: str) -> Judged:
        try:
            with self._kernel_in(text):
                built = self._build(self.project)
                return self._run_all(built)
        except CompileError as error:
            rows = error.errors[:8]
            return Judged(
                accepted=False, rung=0, codes=(error.code,),
                messages=tuple(row.message for row in rows) or (error.message,),
                lines=tuple(row.line for row in rows if row.file.endswith(".cpp")),
            )  # fmt: skip
        except NpusmithError as error:
            return _refused(0, [error])

    def _run_all(self, built: Build) -> Judged:
        for shapes, wanted in zip(self.case.small, self.references, strict=True):
            result = run(
                built,
                self.inputs(shapes),
                self._outputs(shapes),
                options=LaunchOptions(seconds=SECONDS, watch=_WATCH),
            )
            errors = [item for item in result.findings if item.level is Level.ERROR]
            if errors:
                return Judged(
                    accepted=False, rung=1 + result.completed,
                    codes=tuple(dict.fromkeys(item.code for item in errors)),
                    messages=tuple(item.message for item in errors[:8]),
                    lines=tuple(dict.fromkeys(item.line for item in errors)),
                )  # fmt: skip
            if not result.completed:
                return Judged(accepted=False, rung=1, codes=("kernel-crash",))
            if message := _difference(result.outputs, wanted):
                return Judged(accepted=False, rung=2, codes=(WRONG,), messages=(message,))
        return Judged(accepted=True, rung=3)

    @contextmanager
    def _kernel_in(self, text: str) -> Iterator[None]:
        """The text in the place of the project's kernel, for as long as the block lasts."""
        honest = self.kernel
        path = self.project / "op_kernel" / f"{self._spec.name}.cpp"
        with _locked(self.folder):
            path.write_text(text, encoding="utf-8")
            try:
                yield
            finally:
                path.write_text(honest, encoding="utf-8")

    def _build(self, folder: Path) -> Build:
        ports = (*self.program.inputs, *self.program.outputs)
        return build(read_project(folder), self.chip, tuple(port.dtype for port in ports))

    def _time(self, built: Build, folder: Path) -> Timed | None:
        """From a run without values: what a kernel does next does not depend on its data here."""
        shapes = self.case.large
        assert shapes is not None
        log = folder / "log"
        result = run(
            built,
            self.inputs(shapes),
            self._outputs(shapes),
            options=LaunchOptions(seconds=SECONDS, record=log, dry=True),
        )
        timings = time_logs(result.logs, self.chip)
        for path in result.logs:
            path.unlink()
        if not timings or not timings[0].finished:
            return None
        return Timed(us=round(timings[0].task_us, 3), vector=tuple(vector(timings[0])))

    # ---- below

    def _outputs(self, shapes: Shapes) -> list[tuple[Shape, DType]]:
        tensors = zip(shapes.outputs, self.program.outputs, strict=True)
        return [(shape, tensor.dtype) for shape, tensor in tensors]

    @cached_property
    def _spec(self) -> OpSpec:
        first = self.case.small[0]
        inputs = zip(self.program.inputs, first.inputs, strict=True)
        outputs = zip(self.program.outputs, first.outputs, strict=True)
        return OpSpec(
            operator_name(self.case.name),
            tuple(
                Port(item.name, item.dtype, shape, position=at)
                for at, (item, shape) in enumerate(inputs)
            ),
            tuple(
                Port(item.name, item.dtype, shape, dims=tuple(Const(size) for size in shape))
                for item, shape in outputs
            ),
        )


def _refused(rung: int, errors: Sequence[NpusmithError]) -> Judged:
    return Judged(
        accepted=False, rung=rung, codes=tuple(dict.fromkeys(item.code for item in errors)),
        messages=tuple(item.message for item in errors[:8]),
        lines=tuple(dict.fromkeys(item.place.line for item in errors if item.place.line)),
        hints=tuple(text for item in errors[:4] for text in (item.hint, item.legal) if text),
    )  # fmt: skip


def _values(dtype: DType, shape: Shape, rng: np.random.Generator) -> Array:
    if int(np.prod(shape, dtype=np.int64)) > _LOOPS * 16:
        raise ValueError("a case has small shapes")
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(np.float32).astype(dtype.numpy)
    return rng.integers(-1000, 1000, shape).astype(dtype.numpy)


def _difference(given: Sequence[Array], wanted: Sequence[Array]) -> str:
    """What is wrong with the outputs, in words; "" when nothing is."""
    for number, (left, right) in enumerate(zip(given, wanted, strict=True)):
        wrong = _wrong(left, right)
        if wrong.any():
            first = int(np.argmax(wrong.reshape(-1)))
            return (
                f"output {number}: {int(wrong.sum())} of {wrong.size} elements are wrong, "
                f"the first at {first}"
            )
    return ""


def _wrong(left: Array, right: Array) -> Array:
    dtype = DType.of(right.dtype)
    if not dtype.is_float:
        return np.asarray(left != right)
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= _BOUNDS[dtype] * (1 + np.abs(b))
    return np.asarray(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
