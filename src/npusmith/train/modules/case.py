"""A random module that was captured, and programs that are held against PyTorch: `Case(module)`.

The interpreter runs a program on the captured shapes and on others that the module takes as the
same graph and that the operator accepts. Outputs are judged as `generate` judges them (strict);
what no operation has rounded has to be equal. CHIP has 4 cores and a small buffer, which makes
tiles short.
"""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from npusmith.device.tensors import array
from npusmith.errors import LangError, PlanError, TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Program
from npusmith.ir.spec import OpSpec, Source
from npusmith.lang import check_all, interpret
from npusmith.lang.extents import serves
from npusmith.lower import lower, project_files
from npusmith.plan import Plan, write
from npusmith.plan.shrink import output_shapes
from npusmith.target.chips import Chip, find_chip
from npusmith.task.casts import Casts
from npusmith.task.compare import difference
from npusmith.task.error_bounds import find_bounds
from npusmith.task.export import Captured, export_graph
from npusmith.task.golden import Golden
from npusmith.task.graph import Graph
from npusmith.task.shapes import find_classes, plan_sets
from npusmith.task.symbolic_sizes import find_symbolic
from npusmith.task.tolerance import DEFAULT, compare
from npusmith.task.user import Inputs, build_model, load_file, run_model
from npusmith.train.modules.draw import Module, Shape
from npusmith.train.modules.on_twin import OnTwin, Unfinished

TWIN = find_chip("910B2")
CHIP = replace(TWIN, ub_total_bytes=40 * 1024, vector_cores=4, cube_cores=2)
SLOW = 10.0  # seconds of processor time
WORKER_BYTES = 9 << 30  # address space of each process of a run with several
PATIENCE = 60.0  # the same, when it is given up, and so is a run of the interpreter
MOST_ELEMENTS = 20_000  # of all inputs at other shapes
MOST_MADE = 4_000_000  # of any value at other shapes
MORE_SETS = 4  # other shapes that are tried until one can be judged

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")


class Wrong(Exception):
    """The first thing that is not as PyTorch has it."""


class Crash(Exception):
    """An exception that npusmith does not raise on purpose."""


class Unfit(Exception):
    """The reference says nothing at these shapes."""


class Late(BaseException):
    """A program was interpreted for too long: some take quadratic time, in Python."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Late after that much processor time, so that other work changes no outcome."""

    def stop(number: int, frame: object) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _project(plan: Plan) -> None:
    project_files(lower(plan.program, CHIP), CHIP, plan.spec)


def ours(do: Callable[[], Result]) -> Result:
    """What that gives; an exception that is no message of npusmith's own is a Crash."""
    try:
        return do()
    except (PlanError, LangError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise Crash(said) from error


@dataclass(frozen=True, slots=True)
class Trial:
    """A set of inputs, as the operator takes them, and what PyTorch makes of it."""

    at: str  # the shapes
    names: list[str]  # of the operator's inputs
    inputs: list[Array]
    outputs: list[tuple[Shape, DType]]
    natives: list[Array]
    goldens: list[Array]
    bounds: list[Array | None]


def _interpreted(plan: Plan, trial: Trial) -> list[Array]:
    try:
        return ours(lambda: interpret(plan.program, CHIP, trial.inputs, trial.outputs))
    except LangError as error:
        said = f"interpreter: {error.code}: {error.message}"
        raise Wrong(f"{said}\nat {trial.at}\n{error}") from error


def _compiled(plan: Plan) -> OnTwin:
    try:
        return OnTwin(plan, TWIN)
    except TwinError as error:
        raise Wrong(f"twin: {error.code}: {error.message}\n{error}") from error


def _run_on(twin: OnTwin, trial: Trial) -> list[Array]:
    try:
        return twin.run(trial.inputs, trial.outputs)
    except Unfinished as error:
        raise Wrong(f"twin: {error}\nat {trial.at}") from error


class Case:
    """A module that was captured, and the program that is held against it."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.path = f"random_{module.seed}_{module.number}.py"
        self.model = build_model(load_file(self.path, module.source()), self.path, module.number)
        self.inputs = module.draw_inputs()
        self.golden = Golden(self.model, self.path)
        run_model(self.model, self.inputs.args(), self.path)
        own = self.inputs.shapes
        self.free, _ = find_classes(own, self._refusal)
        self.sets = plan_sets(own, self.free, MOST_ELEMENTS, module.number)
        captured = export_graph(self.model, self.inputs, self.path)
        primes = [shapes for name, shapes in self.sets if name == "primes"]
        graph = find_symbolic(captured.graph, own, self.free, primes, self._graph_at)
        self.captured: Captured = replace(captured, graph=graph)

    def check(self, plan: Plan, on_twin: bool) -> int:
        """At how many shapes the program was judged; raises Wrong at the first that it fails."""
        if errors := ours(lambda: check_all(plan.program, CHIP)):
            raise Wrong(f"illegal program: {errors[0].code}\n{errors[0]}")
        ours(lambda: _project(plan))
        # a program for as many cores as the twin has: some exchange an element for each of them
        own = ours(lambda: write(self.captured.graph, "random_custom", TWIN)) if on_twin else plan
        twin = _compiled(own) if on_twin else None
        self._judge(plan, self.inputs, twin)
        for shapes in self.others(plan.spec):
            try:
                self._judge(plan, self.module.draw_inputs(shapes), twin)
            except (Unfit, Late):
                continue
            return 2
        return 1

    def others(self, spec: OpSpec) -> Iterator[list[Shape]]:
        """Other shapes that the module takes as the same graph and the operator accepts."""
        sets = [shapes for _, shapes in self.sets]
        random.Random(self.module.number).shuffle(sets)
        for shapes in sets[:MORE_SETS]:
            if serves(spec, self.kernel_shapes(spec, shapes)) and self._is_same(shapes):
                yield shapes

    def _refusal(self, shapes: list[Shape]) -> str:
        try:
            run_model(self.model, self.module.draw_inputs(shapes).args(), self.path)
        except TaskError as error:
            return error.message
        return ""

    def _graph_at(self, shapes: list[Shape]) -> Graph | str:
        try:
            return export_graph(self.model, self.module.draw_inputs(shapes), self.path).graph
        except TaskError as error:
            return error.message

    def _is_same(self, shapes: list[Shape]) -> bool:
        other = self._graph_at(shapes)
        if not isinstance(other, Graph) or difference(self.captured.graph, other):
            return False
        # indices of indices make thousands of millions of elements of few
        return all(math.prod(node.shape) <= MOST_MADE for node in other.nodes)

    def kernel_shapes(self, spec: OpSpec, shapes: Sequence[Shape]) -> dict[str, Shape]:
        held, user = self.captured.values, Source.USER
        return {
            port.name: shapes[port.position]
            if port.source is user
            else tuple(held[port.target].shape)
            for port in spec.inputs
        }

    def _judge(self, plan: Plan, inputs: Inputs, twin: OnTwin | None) -> None:
        """All outputs on these inputs."""
        trial = self.trial(plan, inputs)
        with limited(PATIENCE):
            found = _interpreted(plan, trial)
        self.compare(found, trial, "")
        if twin is not None:
            self.compare(_run_on(twin, trial), trial, "twin: ")

    def trial(self, plan: Plan, inputs: Inputs) -> Trial:
        """What PyTorch makes of these inputs."""
        at = ", ".join("x".join(map(str, shape)) or "scalar" for shape in inputs.shapes)
        try:
            with Casts() as casts:
                natives = run_model(self.model, inputs.args(), self.path)
        except TaskError as error:
            raise Unfit(error.message) from error
        if casts.undefined:
            raise Unfit("a float becomes an integer that cannot hold it")
        goldens, _ = self.golden.run(inputs, natives)
        held, given = self.captured.values, inputs.tensors
        arrays = [
            array(given[port.position] if port.source is Source.USER else held[port.target])
            for port in plan.spec.inputs
        ]
        shapes = ours(lambda: output_shapes(plan.spec, [item.shape for item in arrays]))
        wanted = [tuple(item.shape) for item in natives]
        if list(shapes) != wanted:
            raise Wrong(f"shapes of outputs are {list(shapes)}, PyTorch has {wanted}\nat {at}")
        outputs = [(s, port.dtype) for s, port in zip(shapes, plan.spec.outputs, strict=True)]
        bounds: list[Any] = find_bounds(self.model, inputs, natives, goldens, self.path)
        return Trial(
            at, [port.name for port in plan.spec.inputs], arrays, outputs,
            [array(item) for item in natives],
            [item.numpy() for item in goldens],
            [item.numpy() for item in bounds] or [None] * len(natives),
        )  # fmt: skip

    def run(self, program: Program, chip: Chip, trial: Trial, names: Sequence[str]) -> list[Array]:
        """The program's outputs; `names`: of its inputs, in its own order. Raises LangError."""
        inputs = [trial.inputs[trial.names.index(name)] for name in names]
        return interpret(program, chip, inputs, trial.outputs)

    def compare(self, found: Sequence[Array], trial: Trial, by: str) -> None:
        """Raises Wrong at the first output that is not right."""
        for i, name in enumerate(self.module.outputs):
            native = trial.natives[i]
            if name in self.module.exact:
                said = unequal(found[i], native)
            else:
                said = _apart(found[i], native, trial.goldens[i], trial.bounds[i])
            if said:
                raise Wrong(f"{by}output {i}: {said}\nat {trial.at}")


def _apart(found: Array, native: Array, golden: Array, bound: Array | None) -> str:
    """The strict profile's message; "" where the output is right.

    float64 does not round where the module says so: what is as near to PyTorch's answer as the rule
    asks is right as well.
    """
    said = compare(found, native, golden, DEFAULT, bound).message
    return said and compare(found, native, None, DEFAULT, bound).message


def unequal(found: Array, native: Array) -> str:
    """Where values that nothing rounds differ; NaN equals NaN, and 0 equals -0."""
    if found.shape != native.shape or found.dtype != native.dtype:
        return (
            f"{found.dtype}{list(found.shape)} where {native.dtype}{list(native.shape)} is expected"
        )
    same = (found == native) | ((found != found) & (native != native))
    if same.all():
        return ""
    first = int(np.flatnonzero(~same.reshape(-1))[0])
    spot = [int(i) for i in np.unravel_index(first, native.shape)]
    wrong = int(np.count_nonzero(~same))
    return (
        f"{wrong} of {native.size} elements are not equal; first at {spot}: "
        f"{found.reshape(-1)[first]} where {native.reshape(-1)[first]} is expected"
    )
