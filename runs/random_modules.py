"""Random modules against PyTorch: does the writer give right programs, whatever it is given?

    python runs/random_modules.py [--count 500] [--seed 1] [--jobs 1] [--ops F,G] [--json FILE]
                                  [--twin 0.1]
    python runs/random_modules.py --only SEED:NUMBER          one module, and its source text

A module is made from the seed and its number alone (random_modules_draw.py) out of the operations
of random_modules_ops.py. It is captured, written as a tile program and checked; the program is
interpreted on the captured shapes and on others that the module takes as the same graph and that
the operator accepts. Outputs are judged as `generate` judges them (strict); what no operation has
rounded has to be equal. A chip with 4 cores and a small buffer makes tiles short. `--twin`: a share
of the modules, by seed and number, goes through g++ and the sanitizer too, on the twin of the 910B2
(random_modules_twin.py).

right     every output, at all shapes tried
wrong     an output differs, the program is illegal, the interpreter met something undefined, or the
          sanitizer found something
refused   the writer says that it cannot write the module (PlanError), by code and operation
crash     any other exception
slow      the writer took more than SLOW seconds of processor time, or the interpreter more than
          PATIENCE (then other shapes are left out)
unfit     PyTorch itself cannot export or run the module: nothing is said about the writer

What is wrong or crashes is cut down to the first variable that shows it, and printed. `--ops`
keeps the modules that were drawn from these families alone. Ends with 1 when anything is wrong or
crashed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from random_modules_draw import Module, Shape, draw, families_of
from random_modules_ops import FAMILIES, TABLE
from random_modules_twin import OnTwin, Unfinished, is_chosen

from npusmith.device.tensors import array
from npusmith.errors import LangError, PlanError, TaskError, TwinError
from npusmith.ir.dtypes import DType
from npusmith.ir.spec import OpSpec, Source
from npusmith.lang import check_all, interpret
from npusmith.lang.extents import serves
from npusmith.lower import lower, project_files
from npusmith.plan import Plan, write
from npusmith.plan.shrink import output_shapes
from npusmith.target.chips import find_chip
from npusmith.task.casts import Casts
from npusmith.task.compare import difference
from npusmith.task.error_bounds import find_bounds
from npusmith.task.export import Captured, export_graph, warm_up
from npusmith.task.golden import Golden
from npusmith.task.graph import Graph
from npusmith.task.shapes import find_classes, plan_sets
from npusmith.task.symbolic_sizes import find_symbolic
from npusmith.task.tolerance import DEFAULT, compare
from npusmith.task.user import Inputs, build_model, load_file, run_model

TWIN = find_chip("910B2")
CHIP = replace(TWIN, ub_total_bytes=40 * 1024, vector_cores=4, cube_cores=2)
SLOW = 10.0  # seconds of processor time
WORKER_BYTES = 9 << 30  # address space of each process of a run with several
PATIENCE = 60.0  # the same, when it is given up, and so is a run of the interpreter
MOST_ELEMENTS = 20_000  # of all inputs at other shapes
MOST_MADE = 4_000_000  # of any value at other shapes
MORE_SETS = 4  # other shapes that are tried until one can be judged
OUTCOMES = ("right", "wrong", "refused", "crash", "slow", "unfit")
BAD = ("wrong", "crash")

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one module."""

    id: str
    outcome: str
    cause: str = ""  # refused: code and operation; wrong and crash: what was seen first
    detail: str = ""
    sets: int = 0  # shapes at which its outputs were compared
    on_twin: bool = False  # on the twin as well
    source: str = ""
    least: str = ""  # the source that is left when it is cut down


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


# ------------------------------------------------------------------------------------- one module


def judge(module: Module, share: float = 0.0) -> Outcome:
    """The outcome of one module; never raises. `share`: of all modules, what goes to the twin."""
    on_twin = is_chosen(module.seed, module.number, share)
    made = _outcome(module, on_twin)
    least = cut_down(module, made.outcome, on_twin).source() if made.outcome in BAD else ""
    return replace(made, source=module.source(), least=least, on_twin=on_twin)


def cut_down(module: Module, outcome: str, on_twin: bool) -> Module:
    """The module of the first variable that ends in the same way, or of as few outputs as do."""
    targets = [name for line in module.lines for name in line.targets]
    for name in targets:
        if _ends(module.only((name,)), outcome, on_twin):
            return module.only((name,))
    for name in module.outputs:
        fewer = module.only(tuple(item for item in module.outputs if item != name))
        if _ends(fewer, outcome, on_twin):
            module = fewer
    return module


def _ends(module: Module, outcome: str, on_twin: bool) -> bool:
    usable = bool(module.inputs and module.outputs)
    return usable and _outcome(module, on_twin).outcome == outcome


def _outcome(module: Module, on_twin: bool) -> Outcome:
    try:
        case = Case(module)
    except TaskError as error:
        return Outcome(module.id, "unfit", error.code, error.message)
    start, plan = time.process_time(), None
    try:
        with limited(PATIENCE):
            plan = _ours(lambda: write(case.captured.graph, "random_custom", CHIP))
        slow = time.process_time() - start > SLOW
        sets = case.check(plan, on_twin)
    except PlanError as error:
        if time.process_time() - start > SLOW:
            return Outcome(module.id, "slow", f"refused after more than {SLOW:.0f} s")
        return Outcome(module.id, "refused", f"{error.code} {_operation(error)}", error.message)
    except Wrong as error:
        return Outcome(module.id, "wrong", str(error).partition("\n")[0], str(error))
    except Unfit as error:
        return Outcome(module.id, "unfit", "reference", str(error))
    except (Crash, LangError) as error:
        return Outcome(module.id, "crash", str(error), "".join(traceback.format_exception(error)))
    except Late:
        doing = "interpreted" if plan else "being written"
        return Outcome(module.id, "slow", f"{doing} for more than {PATIENCE:.0f} s")
    if slow:
        return Outcome(module.id, "slow", f"written after more than {SLOW:.0f} s", sets=sets)
    return Outcome(module.id, "right", sets=sets)


def _project(plan: Plan) -> None:
    project_files(lower(plan.program, CHIP), CHIP, plan.spec)


def _ours(do: Callable[[], Result]) -> Result:
    """What that gives; an exception that is no message of npusmith's own is a Crash."""
    try:
        return do()
    except (PlanError, LangError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise Crash(said) from error


def _operation(error: PlanError) -> str:
    word = error.message.partition(" ")[0]
    return word if word.startswith("aten.") else error.message[:60]


@dataclass(frozen=True, slots=True)
class Trial:
    """A set of inputs, as the operator takes them, and what PyTorch makes of it."""

    at: str  # the shapes
    inputs: list[Array]
    outputs: list[tuple[Shape, DType]]
    natives: list[Array]
    goldens: list[Array]
    bounds: list[Array | None]


def _interpreted(plan: Plan, trial: Trial) -> list[Array]:
    try:
        return _ours(lambda: interpret(plan.program, CHIP, trial.inputs, trial.outputs))
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
        if errors := _ours(lambda: check_all(plan.program, CHIP)):
            raise Wrong(f"illegal program: {errors[0].code}\n{errors[0]}")
        _ours(lambda: _project(plan))
        # a program for as many cores as the twin has: some exchange an element for each of them
        own = _ours(lambda: write(self.captured.graph, "random_custom", TWIN)) if on_twin else plan
        twin = _compiled(own) if on_twin else None
        self._judge(plan, self.inputs, twin)
        for shapes in self._others(plan.spec):
            try:
                self._judge(plan, self.module.draw_inputs(shapes), twin)
            except (Unfit, Late):
                continue
            return 2
        return 1

    def _others(self, spec: OpSpec) -> Iterator[list[Shape]]:
        """Other shapes that the module takes as the same graph and the operator accepts."""
        sets = [shapes for _, shapes in self.sets]
        random.Random(self.module.number).shuffle(sets)
        for shapes in sets[:MORE_SETS]:
            if serves(spec, self._kernel_shapes(spec, shapes)) and self._is_same(shapes):
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

    def _kernel_shapes(self, spec: OpSpec, shapes: Sequence[Shape]) -> dict[str, Shape]:
        held, user = self.captured.values, Source.USER
        return {
            port.name: shapes[port.position]
            if port.source is user
            else tuple(held[port.target].shape)
            for port in spec.inputs
        }

    def _judge(self, plan: Plan, inputs: Inputs, twin: OnTwin | None) -> None:
        """All outputs on these inputs."""
        trial = self._trial(plan, inputs)
        with limited(PATIENCE):
            found = _interpreted(plan, trial)
        self._compare(found, trial, "")
        if twin is not None:
            self._compare(_run_on(twin, trial), trial, "twin: ")

    def _trial(self, plan: Plan, inputs: Inputs) -> Trial:
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
        shapes = _ours(lambda: output_shapes(plan.spec, [item.shape for item in arrays]))
        wanted = [tuple(item.shape) for item in natives]
        if list(shapes) != wanted:
            raise Wrong(f"shapes of outputs are {list(shapes)}, PyTorch has {wanted}\nat {at}")
        outputs = [(s, port.dtype) for s, port in zip(shapes, plan.spec.outputs, strict=True)]
        bounds: list[Any] = find_bounds(self.model, inputs, natives, goldens, self.path)
        return Trial(
            at, arrays, outputs, [array(item) for item in natives],
            [item.numpy() for item in goldens],
            [item.numpy() for item in bounds] or [None] * len(natives),
        )  # fmt: skip

    def _compare(self, found: Sequence[Array], trial: Trial, by: str) -> None:
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


# ---------------------------------------------------------------------------------------- all of it


def modules(seed: int, families: Sequence[str]) -> Iterator[Module]:
    """Those of that seed which were drawn from these families alone."""
    chosen = (n for n in count() if set(families_of(seed, n, TABLE)) <= set(families))
    return (draw(seed, number, TABLE) for number in chosen)


def run(
    seed: int, wanted: int, families: Sequence[str], jobs: int = 1, share: float = 0.0
) -> Iterator[Outcome]:
    """Outcomes in the order of the numbers."""
    chosen = islice(modules(seed, families), wanted)
    judged = partial(judge, share=share)
    if jobs == 1:
        yield from map(judged, chosen)
        return
    with ProcessPoolExecutor(jobs, initializer=_alone) as pool:
        yield from pool.map(judged, chosen, chunksize=4)


def _alone() -> None:
    # A module that wants more than its worker may have is a crash of its own, not of the whole run.
    resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, WORKER_BYTES))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of PyTorch, of rows that are too short for a variance
    warm_up()


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many of each outcome, and the causes by number."""
    total = Counter(item.outcome for item in outcomes)
    every = max(len(outcomes), 1)
    lines = [f"{name:8} {total[name]:5} {total[name] / every:6.1%}" for name in OUTCOMES]
    lines.append(f"{'judged at other shapes too':26} {sum(item.sets > 1 for item in outcomes)}")
    judged = [item for item in outcomes if item.sets or item.outcome in BAD]
    lines.append(f"{'judged on the twin too':26} {sum(item.on_twin for item in judged)}")
    for name in ("refused", "slow", "unfit"):
        causes = Counter(item.cause for item in outcomes if item.outcome == name)
        lines += [f"{name}: {cause}  {times}" for cause, times in causes.most_common()]
    return "\n".join(lines)


def shown(item: Outcome) -> str:
    """A wrong or crashed module, as an issue wants it."""
    return f"--- {item.id} {item.outcome}: {item.cause}\n{item.detail}\n\n{item.least}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", metavar="SEED:NUMBER")
    parser.add_argument("--ops", default=",".join(FAMILIES), help=", ".join(FAMILIES))
    parser.add_argument(
        "--twin", type=float, default=0.0, metavar="SHARE", help="of the modules, on the twin too"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="one outcome a line, as they come"
    )
    args = parser.parse_args()
    families = args.ops.split(",")
    if unknown := set(families) - set(FAMILIES):
        parser.error(f"no families: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    _alone()
    outcomes = []
    if args.only:
        seed, _, number = args.only.partition(":")
        module = draw(int(seed), int(number), TABLE)
        print(module.source())
        results: Iterator[Outcome] = iter([judge(module, args.twin)])
    else:
        results = run(args.seed, args.count, families, args.jobs, args.twin)
    with (args.json or Path(os.devnull)).open("w", encoding="utf-8") as lines:
        for item in results:
            outcomes.append(item)
            print(json.dumps(asdict(item)), file=lines, flush=True)
            if item.outcome in BAD:
                print(shown(item), flush=True)
    print(summary(outcomes))
    return int(any(item.outcome in BAD for item in outcomes))


if __name__ == "__main__":
    sys.exit(main())
