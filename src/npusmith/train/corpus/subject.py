"""A random module with the compiler's program for it, verified: what samples are made of.

`open_subject(module, ...)` captures the module, has the compiler write a program for the chip and
runs it in the interpreter against PyTorch, at the module's own shapes and at others. What else is
made of it, other schedules and mutants, is held against the same sets (`Subject.judge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from npusmith.agent.ports import Ports
from npusmith.agent.written import in_order
from npusmith.errors import LangError
from npusmith.ir.nodes import Program
from npusmith.ir.spec import Source
from npusmith.ir.text import show
from npusmith.lang import check_all, parse
from npusmith.lang.extents import serves
from npusmith.lm.prompt import NAME, task_words
from npusmith.plan import Plan, write
from npusmith.plan.schedule import Schedule
from npusmith.plan.shrink import output_shapes
from npusmith.target.chips import Chip
from npusmith.task.shapes import plan_sets
from npusmith.train.corpus.families import family_of
from npusmith.train.corpus.program_hash import program_hash
from npusmith.train.corpus.sample import Kind, Sample, Split
from npusmith.train.modules.case import Case, Late, Trial, Unfit, Wrong, limited
from npusmith.train.modules.draw import Module
from npusmith.train.static_time import static_us

SECONDS = 5.0  # of a processor: for a program to be written, and for each of its runs
_LARGE = 8 << 20  # elements of the shapes for which times are given
_MOST_CHARS = 40_000  # of a program: longer ones are no examples
_SHORT = 12_000  # of one of which other schedules are written as well
VERIFIED = "npusmith run PROJECT --task TASK"  # of the program's project and the prompt's task

Shape = tuple[int, ...]


class Dropped(Exception):
    """No sample comes of the module; its text is the outcome that is counted."""


@dataclass(frozen=True, slots=True)
class Written:
    """A verified program: its text, and its estimated time at the subject's large shapes."""

    text: str
    program: Program
    schedule: Schedule
    us: float | None

    @property
    def hash(self) -> str:
        return program_hash(self.text)


@dataclass(frozen=True, slots=True)
class Subject:
    """One module, its sets of inputs, and the compiler's program."""

    case: Case
    chip: Chip
    split: Split
    plan: Plan
    ports: Ports
    trials: tuple[Trial, ...]
    large: Mapping[str, Shape]  # of the program's tensors
    first: Written
    random: Random

    @property
    def is_short(self) -> bool:
        """Whether the compiler takes little time for its program: long ones take it seconds."""
        return len(self.first.text) <= _SHORT

    @property
    def task(self) -> str:
        """The part of a prompt that says what is to be written, as the agent's prompts do."""
        return task_words(self.ports.source, self.ports.lines(), self.chip)

    @property
    def own(self) -> dict[str, Shape]:
        """The shapes of the program's tensors as the task has them."""
        return {port.name: port.shape for port in (*self.ports.inputs, *self.ports.outputs)}

    @property
    def sizes(self) -> str:
        """The large shapes, in words."""
        inputs = [port.name for port in self.ports.inputs]
        return ", ".join(f"{name} {list(self.large[name])}" for name in inputs)

    def judge(self, text: str) -> tuple[str, list[LangError]]:
        """What becomes of a program: ("right", []), ("illegal", errors), ("broken", [error]) where
        a run breaks a rule, or ("wrong: ...", []) with the first set that differs."""
        return judge(text, self.case, self.trials, self.chip)

    def write(self, schedule: Schedule) -> Written | None:
        """The program of another schedule, verified; None where there is none or it is too long."""
        plan = write(self.case.captured.graph, NAME, self.chip, schedule)
        return _written(plan, self.ports, self.case, self.trials, self.chip, self.large)

    def sample(self, kind: Kind, ask: str, answer: str, form: str, **more: object) -> Sample:
        """With what all samples of the module share."""
        meta = dict(more.pop("meta", {}))  # type: ignore[call-overload]
        given = {
            "kind": kind, "family": family_of(self.case.module), "split": self.split,
            "prompt": ask, "completion": answer, "verified_by": VERIFIED, **more,
            "meta": {"form": form, "module": self.case.module.id, "chip": self.chip.name, **meta},
        }  # fmt: skip
        return Sample.model_validate(given)


def open_subject(module: Module, split: Split, chip: Chip) -> Subject:
    """Raises Dropped, TaskError, PlanError and what else capturing and writing raise."""
    case = Case(module)
    with limited(SECONDS):
        plan = write(case.captured.graph, NAME, chip)
    ports = _ports(case, plan)
    try:
        trials = [case.trial(plan, case.inputs)]
        for shapes in case.others(plan.spec):
            trials.append(case.trial(plan, case.module.draw_inputs(shapes)))
            break
    except Unfit as error:
        if not trials:
            raise Dropped("unfit") from error
    large = _large(case, plan, ports)
    first = _written(plan, ports, case, tuple(trials), chip, large)
    if first is None:
        raise Dropped("long")
    rng = Random(f"{module.id} {split.value}")
    return Subject(case, chip, split, plan, ports, tuple(trials), large, first, rng)


def judge(
    text: str, case: Case, trials: Sequence[Trial], chip: Chip
) -> tuple[str, list[LangError]]:
    """As `Subject.judge`; the inputs of the program are in the order of the ports."""
    try:
        program = parse(text)
    except LangError as error:
        return "illegal", [error]
    if errors := check_all(program, chip):
        return "illegal", errors
    names = [item.name for item in program.inputs]
    for trial in trials:
        try:
            with limited(SECONDS):
                found = case.run(program, chip, trial, names)
                case.compare(found, trial, "")
        except LangError as error:
            return "broken", [error]
        except Wrong as error:
            return f"wrong: {error}", []
        except (Late, MemoryError):
            return "endless", []
    return "right", []


def _written(
    plan: Plan, ports: Ports, case: Case, trials: Sequence[Trial], chip: Chip,
    large: Mapping[str, Shape],
) -> Written | None:  # fmt: skip
    program = in_order(plan.program, [port.name for port in ports.inputs])
    text = show(program)
    if len(text) > _MOST_CHARS:
        return None
    said, errors = judge(text, case, trials, chip)
    if said != "right":
        raise Dropped(f"{said.partition(':')[0]} {errors[0].code if errors else ''}".strip())
    return Written(text, parse(text), plan.schedule, static_us(program, large, chip))


def _ports(case: Case, plan: Plan) -> Ports:
    """As a task lists them: the arguments of forward, then what the module holds."""
    inputs = sorted(
        plan.spec.inputs,
        key=lambda port: (port.source is not Source.USER, port.position, port.target),
    )
    return Ports(
        NAME, tuple(inputs), plan.spec.outputs, True, case.module.source(), fixed=()
    )  # fmt: skip


def _large(case: Case, plan: Plan, ports: Ports) -> dict[str, Shape]:
    """The largest shapes that the operator serves, up to some eight million elements."""
    own = case.inputs.shapes
    sets = [shapes for _, shapes in plan_sets(own, case.free, _LARGE, case.module.number)]
    best = max(
        (item for item in (own, *sets) if _is_served(case, plan, item)),
        key=lambda shapes: sum(_size(shape) for shape in shapes), default=own,
    )  # fmt: skip
    given = case.kernel_shapes(plan.spec, best)
    shapes = [given[port.name] for port in plan.spec.inputs]
    outputs = zip(plan.spec.outputs, output_shapes(plan.spec, shapes), strict=True)
    return given | {port.name: shape for port, shape in outputs}


def _is_served(case: Case, plan: Plan, shapes: Sequence[Shape]) -> bool:
    return serves(plan.spec, case.kernel_shapes(plan.spec, shapes))


def _size(shape: Shape) -> int:
    total = 1
    for side in shape:
        total *= side
    return total
