"""How the cores share the work: what each launch runs, and each core's part of it."""

from __future__ import annotations

from dataclasses import dataclass

from npusmith.ir.nodes import Program
from npusmith.lang.interp import Launched
from npusmith.report.core_grid import Cell, core_grid
from npusmith.report.static_values import constants, shares
from npusmith.target.chips import Chip
from npusmith.timing.model import CoreTime, Timing


@dataclass(frozen=True, slots=True)
class Split:
    """One launch. `shares` holds each core's turns of the loop over `unit`; empty when no loop is
    dealt to the cores, or the data decide."""

    cores: int
    of: int  # such cores of the chip
    values: tuple[tuple[str, float], ...]
    unit: str
    shares: tuple[int, ...]
    kind: str = "vector"
    kernel: str = ""  # where there are several launches

    @property
    def words(self) -> str:
        """The split in a sentence."""
        used = f"{self.cores} of {self.of} {self.kind} cores"
        if not self.shares:
            return used
        most, least = max(self.shares), min(self.shares)
        idle = sum(1 for share in self.shares if share == 0)
        each = f"{most:,}" if most == least else f"{least:,} to {most:,}"
        words = f"{used}, {each} of {sum(self.shares):,} turns of the loop over {self.unit} each"
        if not idle:
            return words
        return f"{words}; {idle} launched {'core has' if idle == 1 else 'cores have'} nothing to do"

    @property
    def picture(self) -> str:
        """Each core of the chip with its turns."""
        most = max(self.shares, default=1) or 1
        cells = [self._cell(core, most) for core in range(self.of)]
        return core_grid(cells, f"What each core does: {self.words}")

    def _cell(self, core: int, most: int) -> Cell:
        if core >= self.cores:
            return Cell(core, f"core {core}: not launched")
        if not self.shares:
            return Cell(core, f"core {core}: launched", 1.0)
        share = self.shares[core]
        turns = "1 turn" if share == 1 else f"{share:,} turns"
        return Cell(core, f"core {core}: {turns} of {self.unit}", share / most, f"{share:,}")


def split(program: Program, launched: Launched, chip: Chip, kernel: str = "") -> Split:
    """How one launch of a program of one kernel is shared."""
    cube = program.kernel.is_cube
    unit, parts = shares(program, launched)
    of = chip.cube_cores if cube else chip.vector_cores
    values = tuple(constants(launched.args).items())
    return Split(launched.cores, of, values, unit, parts, "cube" if cube else "vector", kernel)


def core_times(timing: Timing, chip: Chip) -> list[tuple[str, str]]:
    """For each kind of core that worked: how evenly, in words, and a picture of how long each did.

    Times are estimates, from a core's first step to its last.
    """
    found = []
    for kind, of in (("cube", chip.cube_cores), ("vector", chip.vector_cores)):
        cores = [core for core in timing.cores if core.cube == (kind == "cube")]
        spans = {core.number // 2: core for core in cores if _us(core, timing) > 0}
        if not spans:
            continue
        most = max(_us(core, timing) for core in spans.values())
        mean = sum(_us(core, timing) for core in spans.values()) / len(spans)
        used = f"{len(spans)} of {of} {kind} cores"
        words = f"{used}: {most:.2f} us the longest, {mean:.2f} us on average"
        cells = [_time_cell(core, spans.get(core), timing, most) for core in range(of)]
        found.append((words, core_grid(cells, words)))
    return found


def _time_cell(number: int, core: CoreTime | None, timing: Timing, most: float) -> Cell:
    if core is None:
        return Cell(number, f"core {number}: no work")
    us = _us(core, timing)
    busy = ", ".join(
        f"{name} {unit.busy / timing.clock_mhz:.2f} us busy"
        for name, unit in core.units.items()
        if unit.steps
    )
    words = f"core {number}: {us:.2f} us; {busy}"
    return Cell(number, words, us / most, f"{us:.2f}" if us < 10 else f"{us:.3g}")


def _us(core: CoreTime, timing: Timing) -> float:
    return (core.end - core.begin) / timing.clock_mhz
