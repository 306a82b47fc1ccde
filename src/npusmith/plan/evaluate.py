"""How long a tile program would take at the shapes of its task: `Evaluator(...).time(program)`.

The program is lowered, compiled (cached) and run dry on tensors without values, at shapes that
`shrink` chose; the log of that run goes to the timing model. Nothing is judged here. The same
program gives the same cycles on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from npusmith.errors import PlanError
from npusmith.ir.nodes import Const, Program
from npusmith.ir.spec import OpSpec
from npusmith.lower import lower, write_project
from npusmith.plan.shrink import Shrunk
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.target.costs import values
from npusmith.timing.model import Timing
from npusmith.timing.simulate import simulate
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.orders import Virtual

SAMPLE = 20_000  # steps of a core that are recorded; the rest is extrapolated
_SECONDS = 120.0
_FIRST = 800.0  # cycles of first tiles; with starts and ends, what does not grow with the work


@dataclass(frozen=True, slots=True)
class Estimate:
    """`timing` is of the shapes that were run; cycles and times are of the task's own."""

    cycles: float
    kernel_us: float
    task_us: float
    timing: Timing


@dataclass(frozen=True, slots=True)
class Evaluator:
    """What stays the same from one evaluation to the next."""

    spec: OpSpec
    chip: Chip
    shapes: Shrunk
    sample: int = SAMPLE

    def time(self, program: Program) -> Estimate:
        """One evaluation. Raises what lowering and compiling raise, and plan-time."""
        timing = self._launch(program)
        used = values(self.chip)
        still = used["launch.prologue"] + used["launch.epilogue"] + _FIRST
        fixed = min(still, timing.cycles)
        cycles = fixed + (timing.cycles - fixed) * self.shapes.share
        kernel = cycles / self.chip.clock_mhz
        return Estimate(cycles, kernel, kernel + timing.task_us - timing.kernel_us, timing)

    def _launch(self, program: Program) -> Timing:
        with temporary_folder("npusmith-evaluate-") as name:
            folder = Path(name)
            # sizes of a part's outputs may follow from the chip, as those of an operator cannot
            sized = zip(self.spec.outputs, self.shapes.outputs, strict=True)
            given = tuple(replace(item, dims=tuple(map(Const, shape))) for item, shape in sized)
            spec = replace(self.spec, outputs=given)
            write_project(lower(program, self.chip), self.chip, folder / "project", spec)
            ports = (*self.spec.inputs, *self.spec.outputs)
            project = read_project(folder / "project")
            built = build(project, self.chip, tuple(port.dtype for port in ports))
            inputs = zip(self.spec.inputs, self.shapes.inputs, strict=True)
            outputs = zip(self.spec.outputs, self.shapes.outputs, strict=True)
            done = run(
                built,
                [Virtual(shape, port.dtype) for port, shape in inputs],
                [(shape, port.dtype) for port, shape in outputs],
                options=LaunchOptions(
                    seconds=_SECONDS, record=folder / "log", dry=True, most_steps=self.sample
                ),
            )
            if not done.completed or not done.logs:
                seen = "; ".join(item.message for item in done.findings)[:300]
                raise PlanError("plan-time", "the program cannot be timed", seen=seen)
            less = {"l2.bytes": self.shapes.l2_bytes} if self.shapes.l2_bytes else None
            return simulate(done.logs[0], built.toolchain, self.chip, less)
