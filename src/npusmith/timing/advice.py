"""What to change first: rules over the bottleneck vector, each with its number and its source.

`advise(timing, roof, findings, chip)` gives the rules that hold, the largest possible gain first. A
gain is an upper bound, a share of the estimated task time: what would be left out if the cause were
gone and nothing else became the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from npusmith.target.chips import Chip
from npusmith.timing.bottleneck import (
    busy_cycles,
    global_paths,
    named,
    share,
    waits_of,
    working,
)
from npusmith.timing.model import UNITS, Timing
from npusmith.timing.search_trials import Trial, tried
from npusmith.twin.finding import Finding

if TYPE_CHECKING:
    from npusmith.timing.roof import Roof

LEAST = 0.02  # a smaller gain is not worth a line
_START = 150  # cycles that a copy costs besides its bytes; derived: linear fits to msKPP, 121-192
_FULL = 16 << 10  # bytes of a copy that reaches the full rate; documented
_HIT = 0.3  # cost of a byte that L2 holds against one that it does not; derived: 1.5 / 5.2 TB/s
_UNALIGNED = 0.22  # measured: 275.3 us against 215.8 us for rows that break 512 B
_PIPES = ("V", "M", "MTE1", "MTE2", "MTE3", "FIX")


class Advice(BaseModel):
    """One thing to change."""

    model_config = ConfigDict(extra="forbid")

    rule: str
    item: str  # of twin/checklist.py; "" where the list has none
    gain: float  # at most this share of the task time
    number: str  # what was seen
    hint: str  # what to do
    source: str  # of the rule
    places: list[str] = []  # file:line of findings of the same kind
    tried: str = ""  # what the search over schedules found of this; "" where there was none


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules read."""

    timing: Timing
    roof: Roof | None
    chip: Chip | None
    values: dict[str, float]
    # Share of the time that each pipe has work, waits for bandwidth included: a profiler's "busy".
    active: dict[str, float]

    @property
    def kernel(self) -> float:
        """The kernel's share of the task time: gains inside the kernel are scaled with it."""
        return 1 - self.values["launch"]

    @property
    def copying(self) -> float:
        """That of the pipe that touches global memory most."""
        return max(self.active[unit] for unit in ("MTE2", "MTE3", "FIX"))


Found = tuple[float, str] | None  # gain and number


@dataclass(frozen=True, slots=True)
class Rule:
    """One row; `code` is the finding of level note that names places of the same cause."""

    name: str
    item: str
    test: Callable[[Facts], Found]
    hint: str
    source: str
    code: str = ""
    decisions: tuple[str, ...] = ()  # fields of a schedule that settle it


def _small_copies(facts: Facts) -> Found:
    paths = global_paths(facts.timing)
    copies = sum(path.transfers for path in paths)
    moved = sum(path.bytes for path in paths)
    spared = (copies - moved / _FULL) * _START
    cores = len(working(facts.timing))
    if copies == 0 or spared <= 0 or facts.timing.cycles <= 0:
        return None
    gain = min(spared / cores / facts.timing.cycles, facts.copying) * facts.kernel
    return gain, f"{copies:,} copies of {moved / copies:,.0f} B on average"


def _conflicts(facts: Facts) -> Found:
    part = facts.values["conflict"]
    gain = part * facts.values["busy_V"] * facts.kernel
    return gain, f"{part:.0%} of the vector unit's time is lost to bank conflicts"


def _scalar(facts: Facts) -> Found:
    busy = facts.values["busy_S"]
    other = max(facts.active.values())
    gain = (busy - other) * facts.kernel
    return gain, f"the scalar unit is busy {busy:.0%} of the time, the busiest pipe {other:.0%}"


def _barriers(facts: Facts) -> Found:
    """Only as far as the busiest pipe has nothing to do meanwhile: a scalar unit that has issued
    everything and waits for the end costs nothing. Without the last drain: a step of each pipe."""
    waits = waits_of(facts.timing, "S")
    last = sum(_step_share(facts.timing, unit) for unit in _PIPES)
    pipes = sum(waits.get(reason, 0.0) for reason in UNITS) - last
    idle = waits_of(facts.timing, busiest(facts.active)).get("issue", 0.0)
    gain = min(pipes, idle) * facts.kernel
    return gain, f"the scalar unit waits {pipes:.0%} of the time for pipes to drain"


def _step_share(timing: Timing, unit: str) -> float:
    """The mean time of a unit's step, as a share of the kernel's time."""
    steps = sum(core.units[unit].steps for core in timing.cores if unit in core.units)
    return busy_cycles(timing)[unit] / steps / timing.cycles if steps and timing.cycles else 0.0


def _overlap(facts: Facts) -> Found:
    unit = busiest(facts.active)
    waits = waits_of(facts.timing, unit)
    pipes = {reason: waits[reason] for reason in _PIPES if reason in waits}
    if not pipes:
        return None
    worst = max(sorted(pipes), key=lambda reason: pipes[reason])
    text = f"{unit}, the busiest pipe, waits {sum(pipes.values()):.0%} of the time, most for"
    return sum(pipes.values()) * facts.kernel, f"{text} {worst} ({pipes[worst]:.0%})"


def _imbalance(facts: Facts) -> Found:
    spans = [core.end - core.begin for core in facts.timing.cores]
    us = 1 / facts.timing.clock_mhz
    text = f"the slowest core takes {max(spans, default=0) * us:.2f} us, a core on average"
    return facts.values[
        "imbalance"
    ] * facts.kernel, f"{text} {sum(spans) / max(len(spans), 1) * us:.2f} us"


def _idle(facts: Facts) -> Found:
    cubes = any(core.cube for core in working(facts.timing))
    if facts.chip is None or facts.timing.kernel_us <= 0:
        return None
    there = facts.chip.cube_cores if cubes else facts.chip.vector_cores
    used = sum(core.cube is cubes for core in working(facts.timing))
    if not 0 < used < there:
        return None
    left = facts.roof.bound_us / facts.timing.kernel_us if facts.roof else 0.0
    gain = min(1 - used / there, max(0.0, 1 - left)) * facts.kernel
    return gain, f"{used} of {there} {'cube' if cubes else 'vector'} cores work"


def _misses(facts: Facts) -> Found:
    traffic = _traffic(facts)
    if traffic is None:
        return None
    needed, missed, moved = traffic
    gain = (missed - needed) / (missed + _HIT * (moved - missed)) * facts.copying * facts.kernel
    text = f"{_mb(missed)} come from or go to memory behind L2, {_mb(needed)} are needed"
    return gain, text


def _reuse(facts: Facts) -> Found:
    traffic = _traffic(facts)
    if traffic is None:
        return None
    needed, missed, moved = traffic
    again = _HIT * (moved - max(missed, needed))
    gain = again / (missed + _HIT * (moved - missed)) * facts.copying * facts.kernel
    return gain, f"{_mb(moved)} move, {_mb(needed)} are needed"


def _traffic(facts: Facts) -> tuple[float, float, float] | None:
    """Bytes needed, missed by L2, and moved; None where one of them is not known."""
    paths = global_paths(facts.timing)
    moved = float(sum(path.bytes for path in paths))
    missed = float(sum(path.miss_bytes for path in paths))
    if facts.roof is None or moved <= 0:
        return None
    return facts.roof.gm_bytes, missed, moved


def _alignment(facts: Facts) -> Found:
    part = facts.values["unaligned"]
    gain = part * _UNALIGNED * facts.copying * facts.kernel
    return gain, f"{part:.0%} of the copies have rows that do not start at 512 B in global memory"


def _heads(facts: Facts) -> Found:
    part = facts.values["head"]
    gain = part * facts.values["busy_V"] * facts.kernel
    return gain, f"{part:.0%} of the vector unit's time is start-up that nothing hides"


def _work(facts: Facts) -> Found:
    """A vector or cube unit that works much longer than the graph asks for."""
    unit = busiest(facts.active)
    if facts.roof is None or unit not in ("V", "M"):
        return None
    cores = max(sum(core.cube is (unit == "M") for core in working(facts.timing)), 1)
    us = busy_cycles(facts.timing)[unit] / cores / facts.timing.clock_mhz
    if us <= 0:
        return None
    gain = facts.values[f"busy_{unit}"] * (1 - facts.roof.compute_us / us) * facts.kernel
    return gain, f"{unit} works {us:.2f} us a core, the graph needs {facts.roof.compute_us:.2f} us"


def _launch(facts: Facts) -> Found:
    spent = facts.timing.task_us - facts.timing.kernel_us
    return facts.values[
        "launch"
    ], f"launch and tail take {spent:.2f} of {facts.timing.task_us:.2f} us"


RULES: tuple[Rule, ...] = (
    Rule(
        "small-copies", "P01", _small_copies,
        "move at least 16 KiB with one copy: larger tiles, or several rows with one strided copy",
        "asc-devkit data_copy: 564.84 us with rows of 128 B, 215.82 us with tiles of 128 KiB; a "
        "start of about 150 cycles is derived from msKPP tables",
        "slow-copy", ("tile", "structure"),
    ),
    Rule(
        "bank-conflict", "P02", _conflicts,
        "put the operands of one instruction into different bank groups of UB: shift one buffer by "
        "a few blocks of 32 B, or shorten the tile (16,256 instead of 16,384 elements)",
        "asc-devkit bank_conflict_ub: Add of 64 repeats in 150 cycles with, 86 without conflict",
    ),
    Rule(
        "scalar-work", "P03", _scalar,
        "replace loops over elements by vector instructions; take address arithmetic out of the "
        "inner loop",
        "asc-devkit add ladder: 1,239,690 us with a scalar loop, 6,910 us with vectors on one core",
        "slow-scalar",
    ),
    Rule(
        "barriers", "P04", _barriers,
        "wait for one pipe with a flag or a queue instead of PipeBarrier<PIPE_ALL>; read results "
        "back into the scalar unit once, at the end",
        "PTO-ISA: about 20 cycles a barrier, and all pipes drain meanwhile",
        "slow-barrier",
    ),
    Rule(
        "no-overlap", "P06", _overlap,
        "give the queues two buffers, so that copies of one tile run beside work on another",
        "asc-devkit guide: double buffering helps most where copies and work take equally long",
        decisions=("copies", "tile"),
    ),
    Rule(
        "imbalance", "P07", _imbalance,
        "deal the tiles out so that no core gets more than one more than another",
        "the kernel ends with its slowest core", decisions=("cores", "lines"),
    ),
    Rule(
        "idle-cores", "P07", _idle,
        "start more blocks: split another axis, or smaller tiles",
        "asc-devkit add ladder: 6,910 us on one core, 307 us on 48", decisions=("cores", "lines"),
    ),
    Rule(
        "l2-misses", "", _misses,
        "order the tiles so that what is read again still lies in L2 (slices of less than L2)",
        "asc-devkit L2 slicing: 828 us without, 366 us with; hit rate 0 to 75 %",
        decisions=("block", "structure"),
    ),
    Rule(
        "read-again", "", _reuse,
        "keep data in UB or L1 between steps instead of passing it through global memory",
        "every byte beyond those that the graph needs; L2 gives about 5.2 TB/s (documented)",
        decisions=("structure", "block", "inner"),
    ),
    Rule(
        "unaligned", "P01", _alignment,
        "let the rows of a copy start at multiples of 512 B in global memory: pad the row pitch",
        "asc-devkit data_copy: 275.3 us for a pitch of 12,287 elements, 215.8 us for 12,288",
    ),
    Rule(
        "vector-heads", "", _heads,
        "longer instructions: count forms over whole tiles, the mask set once for many calls",
        "asc-devkit bank_conflict_ub: 22 cycles of an Add whose mask is set before it (derived)",
        decisions=("tile", "structure"),
    ),
    Rule(
        "more-work", "", _work,
        "cheaper instructions: fewer passes over the tile, no casts there and back, masks set once",
        "cycles of the unit against those of the graph's own arithmetic", decisions=("structure",),
    ),
    Rule(
        "launch", "", _launch,
        "fuse this operator with its neighbours: each kernel pays for its launch",
        "task minus core time in published profiles: 0.9 us of 12 cores, 1.5 of 40 in repeated "
        "launches, 7 to 10 us of 48 in a first one",
    ),
)  # fmt: skip


def advise(
    timing: Timing,
    roof: Roof | None = None,
    findings: Sequence[Finding] = (),
    chip: Chip | None = None,
    most: int = 3,
    trials: Sequence[Trial] | None = None,
) -> list[Advice]:
    """The rules with the largest possible gains, at most so many; empty: nothing stands out.

    trials: of the search that chose the kernel's schedule; None where there was none.
    """
    facts = Facts(timing, roof, chip, named(timing, roof), active(timing))
    found = [_apply(rule, facts, findings, trials) for rule in RULES]
    held = [item for item in found if item is not None and item.gain >= LEAST]
    return sorted(held, key=lambda item: -item.gain)[:most]


def active(timing: Timing) -> dict[str, float]:
    """Share of the time that each pipe has work."""
    return {
        unit: share(timing, unit) + waits_of(timing, unit).get("memory", 0.0) for unit in _PIPES
    }


def busiest(shares: dict[str, float]) -> str:
    """The pipe with the largest share."""
    return max(_PIPES, key=lambda unit: shares[unit])


def _apply(
    rule: Rule, facts: Facts, findings: Sequence[Finding], trials: Sequence[Trial] | None
) -> Advice | None:
    found = rule.test(facts)
    if found is None:
        return None
    gain, number = found
    places = [str(item.place) for item in findings if rule.code and item.code == rule.code]
    return Advice(
        rule=rule.name, item=rule.item, gain=round(min(gain, 1.0), 4), number=number,
        hint=rule.hint, source=rule.source, places=list(dict.fromkeys(places))[:5],
        tried=tried(rule.decisions, trials) if trials else "",
    )  # fmt: skip


def _mb(count: float) -> str:
    return f"{count / 1e6:,.2f} MB"
