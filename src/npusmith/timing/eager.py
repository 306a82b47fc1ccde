"""What eager PyTorch (torch_npu) would take for a captured graph, call by call: an estimate.

`estimate(graph, chip)` uses the published measurement where a run of calls was measured with these
shapes and types on this chip, else a model fitted on those measurements (runs/eager.py). Times are
those of the device's kernels alone, in microseconds; what the host adds between them is left out.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache

from pydantic import BaseModel, ConfigDict

from npusmith.target.chips import Chip, find_chip
from npusmith.task.composition import left_graph
from npusmith.task.graph import Graph
from npusmith.timing.calls import Call, graph_calls, step_calls
from npusmith.timing.measured import FOLDER, Measured, measured_rows
from npusmith.timing.support import FITTED_ON, SURE_ROWS, nearest, widened
from npusmith.timing.work import OTHER, Constants, Rates, Work, time_us, work_of

FIT = FOLDER / "eager_fit.json"
SHARE = 0.1  # of an estimate: calls that take less do not decide what it rests on
_FAR = 2.0  # times the work of the nearest row: from there on it is said
# Published repeats of stable kernels agree within 2-5 %.
REPEAT = 0.05
_NOTHING = "nothing was published of this operation"


class OpTime(BaseModel):
    """One call, or a run of calls that was measured as a whole."""

    model_config = ConfigDict(extra="forbid")

    op: str
    shape: str  # operands and attributes, as text
    dtype: str
    us: float
    low_us: float
    high_us: float
    basis: str  # "measured" or "model"
    source: str
    rows: int  # published rows that it rests on, 1 for one that was measured itself
    reach: float = 1.0  # how many times more or less work than in the nearest of them


class Eager(BaseModel):
    """The sum over the calls; the interval adds up theirs, so it is a wide one."""

    model_config = ConfigDict(extra="forbid")

    chip: str
    us: float
    low_us: float
    high_us: float
    ops: list[OpTime]
    rows: int = 0  # published rows behind the least supported call that counts
    sure: bool = False  # every call that counts was measured, or rests on SURE_ROWS rows
    notes: list[str] = []

    def rests(self) -> str:
        """What it rests on and how far it reaches, in words."""
        modelled = [item for item in self.ops if item.basis == "model"]
        if not modelled:
            return "all of it was published for these shapes"
        far = max(item.reach for item in modelled)
        text = f"rests on {self.rows} published row{'s' * (self.rows != 1)}"
        if self.rows and far > _FAR:
            text += f", up to {far:.3g} times away in work"
        return text if self.sure else f"{text}: too few for a headline figure"


class Ratio(BaseModel):
    """Eager's time over a kernel's, with the ends that eager's interval gives."""

    model_config = ConfigDict(extra="forbid")

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2g} ({self.low:.2g} to {self.high:.2g})"


def ratio(eager: Eager, task_us: float) -> Ratio:
    """How many times faster than eager a kernel is."""
    return Ratio(value=eager.us / task_us, low=eager.low_us / task_us, high=eager.high_us / task_us)


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio:
    """Of the values, of the low ends and of the high ends: the range is a wide one."""
    return Ratio(
        value=statistics.geometric_mean(item.value for item in ratios),
        low=statistics.geometric_mean(item.low for item in ratios),
        high=statistics.geometric_mean(item.high for item in ratios),
    )


class Fit(BaseModel):
    """The file of fitted constants; see timing/work.py and runs/eager.py."""

    model_config = ConfigDict(extra="forbid")

    rates: dict[str, float]
    families: dict[str, Constants]
    operations: dict[str, Constants]
    rows: dict[str, int]  # that an operation's constants rest on
    # by family, 10th and 90th percentile of measured time over estimate:
    spread: dict[str, list[float]]  # operations that were measured
    unknown: dict[str, list[float]]  # operations left out of the fit
    errors: dict[str, dict[str, float]]
    # by "few" or "many" rows, the same percentiles for each class of distances (timing/support.py):
    reach: dict[str, list[list[float]]] = {}


@cache
def read_fit() -> Fit:
    return Fit.model_validate(json.loads(FIT.read_text(encoding="utf-8")))


def chip_rates(chip: Chip, rates: dict[str, float]) -> Rates:
    """The fitted rates of 910B2 carried to `chip`: HBM by its rate, L2 by cores and clock."""
    base = find_chip(FITTED_ON)
    memory = chip.hbm_gbps / base.hbm_gbps
    cores = chip.vector_cores * chip.clock_mhz / (base.vector_cores * base.clock_mhz)
    return Rates(
        warm=rates["warm"] * min(cores, max(memory, cores * 0.5)),
        cold=rates["cold"] * memory,
        window=rates["window"] * chip.l2_bytes / base.l2_bytes,
        peak=chip.cube_cores * chip.clock_mhz * 4096 / 1e6,  # 16 x 16 x 16 a cycle
    )


def pytorch_us(composition: Graph | None, chip: Chip) -> float:
    """Microseconds of what PyTorch computes between operators; 0 where it computes nothing."""
    return 0.0 if composition is None else estimate(left_graph(composition), chip).us


def estimate(graph: Graph, chip: Chip) -> Eager:
    """Time of the graph in eager PyTorch on `chip`, in microseconds; an estimate, see `ops`."""
    calls = graph_calls(graph)
    ops: list[OpTime] = []
    start = 0
    while start < len(calls):
        found = _longest_run(calls[start:], chip)
        count = len(found.calls) if found else 1
        run = calls[start : start + count]
        ops.append(_measured(found, run) if found else _modelled(run[0], chip))
        start += count
    counted = _counted(ops)
    return Eager(
        chip=chip.name,
        us=_sum(item.us for item in ops),
        low_us=_sum(item.low_us for item in ops),
        high_us=_sum(item.high_us for item in ops),
        ops=ops,
        rows=min((item.rows for item in counted), default=0),
        sure=bool(counted) and not any(map(is_weak, counted)),
        notes=_notes(graph, chip, ops),
    )


def is_weak(item: OpTime) -> bool:
    """Does it rest on too few published rows for a headline figure?"""
    return item.basis == "model" and item.rows < SURE_ROWS


def _counted(ops: list[OpTime]) -> list[OpTime]:
    """The calls that take more than a trace of the whole."""
    least = SHARE * math.fsum(item.us for item in ops)
    return [item for item in ops if item.us >= least]


def call_us(call: Call, chip: Chip) -> float:
    """The model alone, without a look at the measurements."""
    if steps := step_calls(call):
        return math.fsum(times * call_us(item, chip) for item, times in steps)
    work = work_of(call)
    return time_us(work, _constants(work), chip_rates(chip, read_fit().rates))


def _sum(items: Iterable[float]) -> float:
    return round(math.fsum(items), 3)


def _constants(work: Work) -> Constants:
    fit = read_fit()
    return fit.operations.get(work.key) or fit.families.get(work.family) or fit.families[OTHER]


@cache
def _by_text(chip: str) -> dict[tuple[str, ...], Measured]:
    """Rows of this chip by their calls; of several equal ones the middle time."""
    groups: dict[tuple[str, ...], list[Measured]] = {}
    for row in measured_rows():
        if row.chip == chip:
            groups.setdefault(row.text, []).append(row)
    return {text: sorted(rows, key=_time)[len(rows) // 2] for text, rows in groups.items()}


def _time(row: Measured) -> float:
    return row.us


def _longest_run(calls: tuple[Call, ...], chip: Chip) -> Measured | None:
    """The longest measured row that these calls begin with."""
    rows = _by_text(chip.name)
    longest = max((len(text) for text in rows), default=0)
    texts = tuple(call.text() for call in calls[:longest])
    for count in range(len(texts), 0, -1):
        if texts[:count] in rows:
            return rows[texts[:count]]
    return None


def _measured(row: Measured, calls: tuple[Call, ...]) -> OpTime:
    return OpTime(
        op=", ".join(call.op for call in calls),
        shape=_shapes(calls),
        dtype=_dtypes(calls),
        us=row.us,
        low_us=round(row.us * (1 - REPEAT), 3),
        high_us=round(row.us * (1 + REPEAT), 3),
        basis="measured",
        source=f"{row.source} {row.case} ({row.name})",
        rows=1,
    )


def _modelled(call: Call, chip: Chip) -> OpTime:
    work, fit = work_of(call), read_fit()
    us = call_us(call, chip)
    rows, reached = fit.rows.get(work.key, 0), nearest(work)
    seen = fit.spread if rows >= SURE_ROWS else fit.unknown
    low, high = seen.get(work.family) or fit.unknown[OTHER]
    low, high = widened((low, high), fit.reach, rows, reached)
    if chip.name != FITTED_ON:  # how well times carry over was never measured
        low, high = low * 0.8, high * 1.25
    return OpTime(
        op=call.op,
        shape=_shapes((call,)),
        dtype=_dtypes((call,)),
        us=round(us, 3),
        low_us=round(us * low, 3),
        high_us=round(us * high, 3),
        basis="model",
        source=_model_source(call, work, rows, reached, chip),
        rows=rows,
        reach=round(min(reached, 1e9), 2),
    )


def _model_source(call: Call, work: Work, rows: int, reached: float, chip: Chip) -> str:
    if rows:
        text = f"fit of {work.key} on {rows} row{'s' * (rows > 1)} of {FITTED_ON}"
        if reached > _FAR:
            text += f", the nearest with {reached:.0f} times more or less work"
    elif work.family == OTHER:
        kind = "the products of its steps" if step_calls(call) else "generic"
        text = f"{kind}: {_NOTHING}"
    else:
        text = f"fit of the family {work.family!r}: this operation was not measured"
    if chip.name != FITTED_ON:
        text += f"; carried from {FITTED_ON} by cores, clock and bandwidth"
    return text


def _shapes(calls: tuple[Call, ...]) -> str:
    return "; ".join(call.text().split("(", 1)[1] for call in calls).replace(") ->", " ->")


def _dtypes(calls: tuple[Call, ...]) -> str:
    found = [item.dtype for call in calls for item in (*call.inputs, *call.outputs)]
    return ", ".join(dict.fromkeys(found))


def _notes(graph: Graph, chip: Chip, ops: list[OpTime]) -> list[str]:
    notes = ["an estimate of the time of eager's device kernels; the host's time is left out"]
    if not graph.eager:
        notes.append("the module's own calls are not known: its decomposed operations were taken")
    generic = sorted({item.op for item in ops if item.source.endswith(_NOTHING)})
    if generic:
        notes.append(f"nothing was published of {', '.join(generic)}: a wide guess")
    weak = sorted({f"{item.op} on {item.rows}" for item in ops if is_weak(item)})
    if weak:
        text = f"rests on fewer than {SURE_ROWS} published rows: {', '.join(weak)}"
        notes.append(f"{text}; kept out of headline figures")
    if chip.name != FITTED_ON:
        notes.append(f"the model was fitted on {FITTED_ON} and carried over to {chip.name}")
    return notes
