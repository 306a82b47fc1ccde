"""Figures of a run, from its records and nothing else.

Definitions, each over the tasks for which it could be measured (docs/bench.md has the sources):

- `event@k`: the chance that at least one of k samples has the event, 1 - C(n-c, k) / C(n, k) for
  a task with c such samples among n (the unbiased estimator), averaged over tasks with n >= k.
  compile@k, pass@k and speedup@k are this for "compiled", "correct", "at least p times as fast".
- fast_p: the share of tasks with a correct kernel that is faster than p times PyTorch. Two
  conventions: "strict" (speedup > p, KernelBench) and "at_least" (speedup >= p, AscendCraft). For
  several samples of a task it is event@1.
- best@k: the expected best speedup among k samples; one that is not correct counts as 0.
- geomean: geometric mean of the speedups of correct kernels, over samples, then over tasks. Tasks
  whose eager time is estimated from fewer than three published rows are counted apart (`few_rows`)
  and left out. geomean_least and geomean_most: the same with the ends of the estimates' intervals.
- own_geomean, own_geomean_least, own_geomean_most, own_fast_1: the same, and fast_1 "at_least", at
  the tasks' own shapes where those that were judged are reduced: both sides are estimated there,
  the kernel from its tile program alone. Tasks that were not reduced count with their speedup.
- score: CANN-bench's, 0 to 100 and more: 20 for compiling, 30 for the share of right cases, 50 for
  how near the time of the right cases comes to what the hardware allows.

A sample without a verdict, a task without enough samples, and a right kernel without a time are
not measured: they leave n and are counted. Times are the records' own: estimates on the twin.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from npusmith.bench.model import TRUE_SHAPE, Item, Record
from npusmith.task.verdict import Rung

THRESHOLDS = (0.2, 0.5, 0.8, 1.0, 1.5, 2.0)
CONVENTIONS = ("strict", "at_least")  # speedup > p, and speedup >= p
EVENTS = ("compiled", "official", "strict", "precise", "clean", "cheating", "correct", "trusted")
KS = (1, 2, 5, 10, 20, 50, 100)
BASIS = "times are estimates of the CPU twin, not measured on a device"
_RESAMPLES = 1000
_SEED = 20_240_229  # of the bootstrap
_ENDS = (2.5, 97.5)  # percent: the interval that holds 95 %
_MOST_TASKS = 5000  # above, the interval is the normal one
_WEIGHTS = (20.0, 30.0, 50.0)  # CANN-bench: compile, accuracy, performance


class Figure(BaseModel):
    """A mean over tasks, with the interval that holds 95 % of its bootstrap."""

    model_config = ConfigDict(extra="forbid")

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0  # tasks that it is a mean of
    not_measured: int = 0  # tasks of the group that it says nothing about


class Group(BaseModel):
    """The figures of some tasks. Counts are of tasks, with any of their samples."""

    model_config = ConfigDict(extra="forbid")

    tasks: int  # selected
    n: int  # of them with a verdict on at least one sample
    not_measured: int
    samples: int  # with a verdict
    compiled: int
    official: int  # right by the suite's own rule, cheating or not
    strict: int  # right by ours: also types, lengths, NaN, and every trial
    precise: int  # and to the strict tolerance of docs/tasks.md
    correct: int  # official, and computed in the kernel
    trusted: int  # correct, strict, and without a finding of level error
    cheating: int
    weak: int  # tasks whose check a do-nothing kernel passes
    few_rows: int = 0  # timed tasks whose eager estimate rests on too few rows: not in geomean
    untimed: int  # tasks with a correct kernel and no time
    true_shape: dict[str, int] = {}  # of reduced tasks: what a check at the true shape said
    fast: dict[str, dict[str, int | None]]  # convention -> threshold -> tasks; None: no times
    rates: dict[str, Figure]


class Summary(BaseModel):
    """All figures of a run."""

    model_config = ConfigDict(extra="forbid")

    overall: Group
    levels: dict[str, Group]
    categories: dict[str, Group]
    dtypes: dict[str, Group]
    basis: str = BASIS

    def document(self) -> dict[str, object]:
        """For JSON: the whole run's figures on top."""
        data = self.model_dump(mode="json")
        return {**data.pop("overall"), **data}


def fast_name(p: float, convention: str) -> str:
    """The key of a fast_p: "fast_0.8_strict" or "fast_0.8_at_least"."""
    return f"fast_{p:g}_{convention}"


_FAST = tuple(fast_name(p, how) for how in CONVENTIONS for p in THRESHOLDS)
_PLACES = {name: place for place, name in enumerate((*EVENTS, *_FAST))}


def place_of(event: str) -> int:
    """Where an event stands in Task.known and Task.seen."""
    return _PLACES[event]


# ---- published definitions, one function each


@lru_cache(maxsize=1 << 16)
def at_least_one(n: int, c: int, k: int) -> float:
    """1 - C(n-c, k) / C(n, k): the unbiased estimator of pass@k."""
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"no estimate for n={n}, c={c}, k={k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def expected_best(values: Sequence[float], k: int) -> float:
    """The mean of the largest of k values, over all choices of k of them."""
    ordered, n = sorted(values), len(values)
    if not 1 <= k <= n:
        raise ValueError(f"no estimate for n={n}, k={k}")
    # the value at place i is the largest of C(i, k-1) choices
    total = math.comb(n, k)
    return sum(value * (math.comb(i, k - 1) / total) for i, value in enumerate(ordered))


def is_fast(speedup: float, p: float, convention: str) -> bool:
    """Faster than p ("strict"), or at least that fast ("at_least")."""
    return speedup > p if convention == "strict" else speedup >= p


def fast_p(speedups: Sequence[float | None], p: float, convention: str) -> float:
    """The share of tasks: one speedup each, None where the kernel is not correct."""
    fast = sum(value is not None and is_fast(value, p, convention) for value in speedups)
    return fast / len(speedups)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def attainment(eager_us: float | None, time_us: float, roof_us: float) -> float | None:
    """CANN-bench's score of a time: 0.5 at the baseline's, 1 at the hardware's bound, and beyond.

    Without a baseline the published stand-in is 10 times the bound, and at least 10 us.
    """
    if roof_us <= 0 or time_us <= 0:
        return None
    base = eager_us if eager_us and eager_us > 0 else max(10 * roof_us, 10.0)
    span = (time_us - roof_us) + (base - roof_us)
    return (base - roof_us) / span if span > 0 else None


def cann_score(compiled: bool, cases: Sequence[float | None]) -> float:
    """CANN-bench's score of an operator: `cases` has an attainment, or None for a wrong case."""
    build, right, speed = _WEIGHTS
    if not compiled or not cases:
        return 0.0
    passed = [value for value in cases if value is not None]
    return build + (right * len(passed) + speed * sum(passed)) / len(cases)


# ---- records to tasks


@dataclass(frozen=True, slots=True)
class Ratio:
    """A speedup, and what it is by the ends of the eager estimate's interval."""

    value: float
    least: float | None
    most: float | None
    few_rows: bool  # eager's time is estimated from too few published ones


@dataclass(slots=True)
class Sample:
    """What the trials of one sample say together."""

    events: dict[str, bool | None]
    speedup: float | None = None
    score: float | None = None
    least: float | None = None  # the speedup over the ends of the eager estimate's interval
    most: float | None = None
    own: Ratio | None = None  # at the task's own shapes


@dataclass(slots=True)
class Task:
    """One task's samples, counted. `known` and `seen` are by the places of _EVENTS."""

    category: str
    level: str
    dtype: str
    weak: bool = False
    true_shape: str = ""  # "right", "wrong" or "not run", the best of its samples
    samples: int = 0  # with a verdict
    right: int = 0  # correct ones
    known: list[int] = field(default_factory=lambda: [0] * len(_PLACES))  # say yes or no
    seen: list[int] = field(default_factory=lambda: [0] * len(_PLACES))  # say yes
    few_rows: bool = False  # its eager time is estimated from too few published ones
    speedups: list[float] = field(default_factory=list)  # of correct samples
    least: list[float] = field(default_factory=list)  # the same, by the ends of the interval
    most: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    reduced: bool = False  # its own shapes have an estimate, beside those that were judged
    own: list[Ratio] = field(default_factory=list)  # of correct samples, at the task's own shapes

    def add(self, sample: Sample) -> None:
        """Counts one sample."""
        self.samples += sample.events["compiled"] is not None
        self.right += sample.events["correct"] is True
        known, seen = _marks(*sample.events.values())
        fast = _fast(sample)
        for place in (*known, *fast[0]):
            self.known[place] += 1
        for place in (*seen, *fast[1]):
            self.seen[place] += 1
        if sample.speedup is not None and sample.events["correct"]:
            self.speedups.append(sample.speedup)
            if sample.least is not None and sample.most is not None:
                self.least.append(sample.least)
                self.most.append(sample.most)
        if sample.own is not None and sample.events["correct"]:
            self.own.append(sample.own)
        if sample.score is not None:
            self.scores.append(sample.score)


def sample_of(records: Sequence[Record]) -> Sample:
    """All trials of one sample: an event holds when it holds in each of them."""
    own = _own(records[0])  # the kernel's text alone says it: no trial differs
    if len(records) == 1:  # nearly all samples are
        first = records[0]
        value, least, most = _parts(_speedup(first))
        return Sample(_events(first), value, _score(first), least, most, own)
    parts = [_events(record) for record in records]
    events = {name: _all([part[name] for part in parts]) for name in EVENTS}
    if events["compiled"] is not None:
        events["cheating"] = any(record.cheating for record in records)
    columns = zip(*(_parts(_speedup(record)) for record in records), strict=True)
    value, least, most = map(_middle, columns)
    return Sample(events, value, _middle([_score(record) for record in records]), least, most, own)


def tasks_of(items: Iterable[Item], records: Iterable[Record]) -> dict[str, Task]:
    """Every task of the run by name, also those that nothing was measured for.

    Records of one sample need not follow each other; only unfinished samples are kept.
    """
    tasks = {item.name: Task(item.category, item.level, item.dtype) for item in items}
    waiting: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        task = tasks[record.item]
        task.weak |= bool(record.weak_task)
        task.few_rows |= record.eager_weak
        task.reduced |= record.own_us is not None
        task.true_shape = _better(task.true_shape, record.true_shape.partition(":")[0])
        if record.trial == 0 and _trials(record) == 1:
            task.add(sample_of([record]))
        else:
            waiting.setdefault((record.item, record.sample), []).append(record)
    for (name, _), group in waiting.items():
        tasks[name].add(sample_of(group))
    return tasks


def _better(first: str, second: str) -> str:
    """Of two words of TRUE_SHAPE; what is none of them counts for nothing."""
    return next((word for word in TRUE_SHAPE if word in (first, second)), "")


def _trials(record: Record) -> int:
    return int(record.provenance.get("trials", "0") or 0)


def _events(record: Record) -> dict[str, bool | None]:
    """Yes, no, or not measured. What does not compile is not right either."""
    compiled = record.compiled
    official = False if compiled is False else record.official
    strict = False if compiled is False else record.strict
    precise = False if compiled is False else record.precise
    clean = False if compiled is False else record.clean
    correct = official if official is None else official and not record.cheating
    trusted = _all([correct, strict, clean])
    return {
        "compiled": compiled,
        "official": official,
        "strict": strict,
        "precise": precise,
        "clean": clean,
        "cheating": None if compiled is None else bool(record.cheating),
        "correct": correct,
        "trusted": trusted,
    }


def _all(values: Sequence[bool | None]) -> bool | None:
    """False when one is, else None when one is not known."""
    if False in values:
        return False
    return None if None in values else True


def _speedup(record: Record) -> Ratio | None:
    """At the shapes that were judged."""
    return _ratio(
        record.time_us, record.eager_us, record.eager_low_us, record.eager_high_us,
        record.eager_weak,
    )  # fmt: skip


def _parts(ratio: Ratio | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if ratio is None else (ratio.value, ratio.least, ratio.most)


def _own(record: Record) -> Ratio | None:
    """At the task's own shapes: by two estimates where it was judged at reduced ones."""
    found = _ratio(
        record.own_us, record.own_eager_us, record.own_eager_low_us, record.own_eager_high_us,
        record.own_eager_weak,
    )  # fmt: skip
    return found or (None if "@" in record.item else _speedup(record))


def _ratio(
    us: float | None, eager: float | None, low: float | None, high: float | None, few_rows: bool
) -> Ratio | None:
    """Eager's time over a kernel's, with the ends of eager's interval."""
    if us is None or eager is None or us <= 0:
        return None
    least, most = (None if end is None else end / us for end in (low, high))
    return Ratio(eager / us, least, most, few_rows)


def _score(record: Record) -> float | None:
    """CANN-bench's score of one record, whose time stands for all its right cases."""
    if record.compiled is None:
        return None
    stopped = record.rung == Rung.COMPILED.value  # at run time: no points for compiling either
    if not record.compiled or record.cheating or stopped:
        return 0.0
    share = record.accuracy
    if share is None:
        share = None if record.official is None else float(record.official)
    if share is None:
        return None
    if share == 0:
        return _WEIGHTS[0]
    if record.time_us is None or record.roof_us is None:
        return None
    # times between which there is no span leave the points for speed out
    value = attainment(record.eager_us, record.time_us, record.roof_us) or 0.0
    return _WEIGHTS[0] + share * (_WEIGHTS[1] + _WEIGHTS[2] * value)


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if len(known) == len(values) and known else None


_Places2 = tuple[tuple[int, ...], tuple[int, ...]]  # known, and seen


@lru_cache(maxsize=1024)
def _marks(*answers: bool | None) -> _Places2:
    """The places of the events that are known, and of those that hold, in the order of EVENTS."""
    pairs = list(enumerate(answers))
    return (
        tuple(place for place, answer in pairs if answer is not None),
        tuple(place for place, answer in pairs if answer),
    )


_SPEEDS = tuple(_PLACES[name] for name in _FAST)


def _fast(sample: Sample) -> _Places2:
    """The same for the thresholds of speed."""
    correct, speedup = sample.events["correct"], sample.speedup
    if correct is False:
        return _SPEEDS, ()
    if correct is None or speedup is None:
        return (), ()
    return _SPEEDS, _faster(bisect_left(THRESHOLDS, speedup), bisect_right(THRESHOLDS, speedup))


@lru_cache(maxsize=64)
def _faster(below: int, reached: int) -> tuple[int, ...]:
    """Places of the thresholds passed: `below` lie under the speedup, `reached` are not over it."""
    passed = {"strict": THRESHOLDS[:below], "at_least": THRESHOLDS[:reached]}
    return tuple(_PLACES[fast_name(p, how)] for how in CONVENTIONS for p in passed[how])


# ---- tasks to figures


def summarize(items: Iterable[Item], records: Iterable[Record]) -> Summary:
    """All figures; both arguments are read once, one element at a time."""
    return summarize_tasks(tasks_of(items, records))


def summarize_tasks(tasks: Mapping[str, Task]) -> Summary:
    """All figures of tasks that were counted already."""
    rows = list(tasks.values())
    columns = _columns(rows)
    places = np.arange(len(rows))
    return Summary(
        overall=_group(rows, columns, places),
        levels=_split(rows, columns, [task.level for task in rows]),
        categories=_split(rows, columns, [task.category for task in rows]),
        dtypes=_split(rows, columns, [task.dtype for task in rows]),
    )


def _split(rows: Sequence[Task], columns: _Columns, names: Sequence[str]) -> dict[str, Group]:
    parts: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        parts.setdefault(name, []).append(place)
    named = sorted(name for name in parts if name)
    return {name: _group(rows, columns, np.array(parts[name])) for name in named}


def _group(rows: Sequence[Task], columns: _Columns, places: _Places) -> Group:
    tasks = [rows[place] for place in places]

    def having(event: str) -> int:
        return sum(task.seen[_PLACES[event]] > 0 for task in tasks)

    measured = sum(task.samples > 0 for task in tasks)
    timed = _has_times(tasks)
    return Group(
        tasks=len(tasks),
        n=measured,
        not_measured=len(tasks) - measured,
        samples=sum(task.samples for task in tasks),
        compiled=having("compiled"),
        official=having("official"),
        strict=having("strict"),
        precise=having("precise"),
        correct=having("correct"),
        trusted=having("trusted"),
        cheating=having("cheating"),
        weak=sum(task.weak for task in tasks),
        few_rows=sum(task.few_rows and bool(task.speedups) for task in tasks),
        untimed=sum(task.right > 0 and not task.speedups for task in tasks),
        true_shape=dict(Counter(task.true_shape for task in tasks if task.true_shape)),
        fast={
            how: {f"{p:g}": having(fast_name(p, how)) if timed else None for p in THRESHOLDS}
            for how in CONVENTIONS
        },
        rates=_rates(tasks, columns, places),
    )


def _rates(tasks: Sequence[Task], columns: _Columns, places: _Places) -> dict[str, Figure]:
    part = {name: values[places] for name, values in columns.items()}
    if not _has_times(tasks):
        part |= {name: np.full(len(tasks), np.nan) for name in part if _is_timed(name)}
    if not any(task.speedups for task in tasks):  # points for compiling say nothing alone
        part["score"] = np.full(len(tasks), np.nan)
    figures = _figures(part)
    return figures | {name: _exp(figures[name]) for name in (*_GEOMETRIC, *_OWN) if name in figures}


def _has_times(tasks: Sequence[Task]) -> bool:
    """False where right kernels have no times: wrong ones alone would make all speeds 0."""
    return any(task.speedups for task in tasks) or not any(task.right for task in tasks)


def _is_timed(name: str) -> bool:
    return name.startswith(("fast_", "speedup_", "best@", "own_fast_"))


_GEOMETRIC = ("geomean", "geomean_least", "geomean_most")
_OWN = tuple(f"own_{name}" for name in _GEOMETRIC)
_RATED = {"compile": "compiled", "pass": "correct"} | {
    name: name for name in ("official", "strict", "precise", "trusted")
}


def _columns(rows: Sequence[Task]) -> _Columns:
    """For each figure one value a task, NaN where it was not measured."""
    shape = len(rows), len(_PLACES)
    known = np.array([task.known for task in rows], dtype=np.int64).reshape(shape)
    seen = np.array([task.seen for task in rows], dtype=np.int64).reshape(shape)

    def at(event: str, k: int) -> _Table:
        return _estimate(known[:, _PLACES[event]], seen[:, _PLACES[event]], k)

    columns: _Columns = {}
    most = max((task.samples for task in rows), default=1)
    for k in (k for k in KS if k <= max(1, most)):
        columns |= {f"{label}@{k}": at(event, k) for label, event in _RATED.items()}
        for p in THRESHOLDS:
            columns[f"speedup_{p:g}@{k}"] = at(fast_name(p, "at_least"), k)
        columns[f"best@{k}"] = np.array([_best(task, k) for task in rows])
    columns |= {name: at(name, 1) for name in _FAST}
    for name, ends in zip(_GEOMETRIC, ("speedups", "least", "most"), strict=True):
        columns[name] = np.array([_log_mean(task, getattr(task, ends)) for task in rows])
    if any(task.reduced for task in rows):
        for name, part in zip(_OWN, ("value", "least", "most"), strict=True):
            columns[name] = np.array([_own_log(task, part) for task in rows])
        columns["own_fast_1"] = np.array([_own_fast(task) for task in rows])
    columns["score"] = np.array([_mean(task.scores) for task in rows])
    return columns


def _estimate(known: _Places, seen: _Places, k: int) -> _Table:
    """at_least_one for whole columns."""
    pairs, back = np.unique(np.stack([known, seen]), axis=1, return_inverse=True)
    values = [at_least_one(int(n), int(c), k) if n >= k else math.nan for n, c in pairs.T]
    return np.array(values, dtype=np.float64)[back.reshape(-1)]


def _best(task: Task, k: int) -> float:
    """Only where every correct sample has a time."""
    n = task.known[_PLACES["correct"]]
    if n < k or len(task.speedups) != task.right:
        return math.nan
    return expected_best([*task.speedups, *[0.0] * (n - task.right)], k)


def _log_mean(task: Task, ratios: Sequence[float]) -> float:
    """NaN, which is left out, for a task whose eager time rests on too little."""
    return math.nan if task.few_rows else _mean([math.log(ratio) for ratio in ratios])


def _own_log(task: Task, part: str) -> float:
    ends = [getattr(ratio, part) for ratio in task.own if not ratio.few_rows]
    return _mean([math.log(end) for end in ends if end])


def _own_fast(task: Task) -> float:
    """The share of samples; NaN where a correct one has no figure."""
    n = task.known[_PLACES["correct"]]
    if not n or len(task.own) != task.right:
        return math.nan
    return sum(is_fast(ratio.value, 1.0, "at_least") for ratio in task.own) / n


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _exp(figure: Figure) -> Figure:
    powers = {name: getattr(figure, name) for name in ("value", "low", "high")}
    return figure.model_copy(
        update={name: None if x is None else math.exp(x) for name, x in powers.items()}
    )


def _figures(columns: _Columns) -> dict[str, Figure]:
    """Means over the rows that are numbers, with their intervals."""
    table = np.stack(list(columns.values()), axis=1)
    known = ~np.isnan(table)
    counts, sums = known.sum(axis=0), np.where(known, table, 0.0).sum(axis=0)
    lows, highs = _intervals(table, known)
    return {
        name: Figure(
            value=float(sums[i] / counts[i]) if counts[i] else None,
            low=float(lows[i]) if counts[i] else None,
            high=float(highs[i]) if counts[i] else None,
            n=int(counts[i]),
            not_measured=len(table) - int(counts[i]),
        )
        for i, name in enumerate(columns)
    }


def _intervals(table: _Table, known: _Known) -> tuple[_Table, _Table]:
    """2.5 and 97.5 % of the means of resampled tasks; equal rows are drawn as one."""
    if len(table) == 0:
        return np.zeros(table.shape[1]), np.zeros(table.shape[1])
    if len(table) > _MOST_TASKS:
        return _normal(table, known)
    marked = np.where(known, table, 0.0)
    rows, counts = np.unique(np.hstack([marked, known]), axis=0, return_counts=True)
    width = table.shape[1]
    values, there = rows[:, :width], rows[:, width:]
    random = np.random.default_rng(_SEED)
    drawn = random.multinomial(len(table), counts / len(table), size=_RESAMPLES)
    sizes = drawn @ there
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, (drawn @ (values * there)) / sizes, np.nan)
    whole = ~np.isnan(means).any(axis=0)
    found = np.zeros((2, width))
    found[:, whole] = np.percentile(means[:, whole], _ENDS, axis=0)
    for column in np.flatnonzero(~whole):  # of rare figures: some resamples have none of them
        left = means[:, column][~np.isnan(means[:, column])]
        found[:, column] = np.percentile(left, _ENDS) if len(left) else 0.0
    return found[0], found[1]


def _normal(table: _Table, known: _Known) -> tuple[_Table, _Table]:
    """Mean -+ 1.96 standard errors, from what is there."""
    counts = np.maximum(known.sum(axis=0), 1)
    means = np.where(known, table, 0.0).sum(axis=0) / counts
    squares = (np.where(known, table - means, 0.0) ** 2).sum(axis=0)
    error = 1.96 * np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
    return means - error, means + error


_Table = npt.NDArray[np.float64]
_Places = npt.NDArray[np.int64]
_Known = npt.NDArray[np.bool_]
_Columns = dict[str, _Table]
