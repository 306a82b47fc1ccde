"""A random module's program on the twin: the project that `generate` would write, compiled with g++
and run under the sanitizer, because the chip has rules that the interpreter does not hold.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from npusmith.errors import Level
from npusmith.ir.dtypes import DType
from npusmith.lower import lower, write_project
from npusmith.plan import Plan
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import Chip
from npusmith.twin import build, read_project, run
from npusmith.twin.launch import LaunchOptions
from npusmith.twin.watch import Watch

Array = np.ndarray[Any, Any]
Output = tuple[tuple[int, ...], DType]

SECONDS = 60.0  # for one run
WATCH = Watch(auto_sync=False)  # the lowering waits where it has to, whatever the compiler adds


class Unfinished(Exception):
    """What the sanitizer has found first, or why there are no outputs."""


def is_chosen(seed: int, number: int, share: float) -> bool:
    """Whether that module is one of the share that goes to the twin; the same ones every time."""
    return random.Random(f"twin {seed}:{number}").random() < share


class OnTwin:
    """A program as a compiled project. Raises TwinError where it does not compile."""

    def __init__(self, plan: Plan, chip: Chip) -> None:
        spec = plan.spec
        dtypes = tuple(port.dtype for port in (*spec.inputs, *spec.outputs))
        with temporary_folder("npusmith-random-") as folder:
            write_project(lower(plan.program, chip), chip, folder, spec)
            self._built = build(read_project(folder), chip, dtypes)

    def run(self, arrays: Sequence[Array], outputs: Sequence[Output]) -> list[Array]:
        """The outputs; Unfinished where a rule is broken, whatever the outputs are."""
        done = run(
            self._built, arrays, outputs, options=LaunchOptions(seconds=SECONDS, watch=WATCH)
        )
        broken = [item for item in done.findings if item.level is Level.ERROR]
        if broken:
            raise Unfinished(broken[0].render())
        if not done.completed:
            raise Unfinished("the kernel did not run to its end")
        return list(done.outputs)
