"""run.html: one self-contained page about one run.

As on the page of a verdict, all text of strangers is escaped by the template, and the policy allows
the page's own style sheet and script only; the script filters and sorts the list of tasks. Tasks
are written one after the other, so the page of a large run needs no more memory than that of a
small one.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npusmith.bench.archive import Run, rank
from npusmith.bench.metrics import (
    CONVENTIONS,
    THRESHOLDS,
    Figure,
    Group,
    Summary,
    Task,
    fast_name,
    summarize_tasks,
    tasks_of,
)
from npusmith.bench.model import Item, Record
from npusmith.bench.published import published
from npusmith.bench.report.lanes import draw
from npusmith.bench.report.plots import (
    HEIGHT,
    WIDTH,
    Bar,
    Curve,
    bars,
    speed_bars,
    speed_curve,
    time_bars,
)
from npusmith.bench.work import REFUSED
from npusmith.errors import CODES
from npusmith.report.sources import Source, make_source
from npusmith.report.text import plain
from npusmith.report.webpage import assets, environment, script

_HERE = Path(__file__).parent
_MOST_CHARS = 3_000_000  # of kernels on one page; the others are in the store
_MOST_FILE = 60_000
_MOST_SAMPLES = 20  # rows of a task
# What a reader looks at first: the kernel, then what calls it.
_KERNELS = tuple(
    re.compile(pattern)
    for pattern in (
        r"op_kernel/.*\.(cpp|h|asc)$", r"kernel.*\.(cpp|asc|h)$", r"tile\.py$", r"op_host/",
        r"\.(cpp|asc|h)$", r"\.py$", r"\.json$",
    )
)  # fmt: skip


_SHORT = ("right", "suite only", "cheating", "wrong", "no build", "refused", "no verdict")


@dataclass(slots=True)
class Facts:
    """What one pass over the records leaves beside the tasks."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    cheating: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    bases: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shown:
    """One task as the page shows it."""

    anchor: str
    item: Item
    count: int  # records
    right: int
    best: Record | None
    speedup: float | None
    records: tuple[Record, ...]  # the best ones
    sources: tuple[Source, ...]
    hidden: int  # characters of its kernel that the page leaves out
    timeline: str  # markup


@dataclass(frozen=True, slots=True)
class Line:
    """One task in the list."""

    anchor: str
    item: Item
    task: Task


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one kind; `form` is how to print them."""

    label: str
    form: str
    cells: list[Figure]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures under shared heads."""

    title: str
    heads: list[str]
    rows: list[Row]


_BY_K = (
    ("compile", "compile@k", "percent"),
    ("official", "right by the suite's rule", "percent"),
    ("strict", "right by the strict rule", "percent"),
    ("precise", "... and its tolerance", "percent"),
    ("pass", "pass@k: right, in the kernel", "percent"),
    ("trusted", "trusted: strict and clean", "percent"),
    ("speedup_1", "speedup@k: at least 1x", "percent"),
    ("best", "best@k: expected best speedup", "times"),
)
_CONVENTIONS = ("strict: faster than p", "at least p times as fast")
_SINGLE = (
    ("geomean", "geometric mean speedup of correct kernels", "times"),
    ("geomean_least", "... by the low ends of the eager estimates", "times"),
    ("geomean_most", "... by the high ends", "times"),
    ("own_geomean", "geometric mean speedup at the tasks' own shapes, by estimates", "times"),
    ("own_geomean_least", "... by the low ends of the eager estimates", "times"),
    ("own_geomean_most", "... by the high ends", "times"),
    ("own_fast_1", "... share of tasks at least as fast as eager there", "percent"),
    ("score", "CANN-bench's score, mean of tasks", "points"),
)
OUTCOMES = (
    "right and clean", "right by the suite only", "outside the kernel", "wrong", "not compiled",
    "refused", "no verdict",
)  # fmt: skip


def write_page(run: Run, path: Path) -> Summary:
    """Writes the page; gives the figures on it, which are those of the records."""
    facts = Facts()
    tasks = run_tasks(run, facts)
    summary = summarize_tasks(tasks)
    lines = [Line(f"t{place}", item, tasks[item.name]) for place, item in enumerate(run.items())]
    filters: dict[str, Callable[..., Any]] = {"rate": show_rate, "spread": spread, "judged": judged}
    made = environment(_HERE, filters)
    made.globals |= {"outcome": outcome}
    stream = made.get_template("page.html.j2").stream(
        run=run, plan=run.plan, summary=summary, all=summary.overall, lines=lines, facts=facts,
        groups=_groups(summary), tables=_tables(summary.overall), units=run.store.counts(),
        outcomes=_outcomes(facts), speeds=_speeds(tasks), curve=_curve(summary, tasks),
        times=time_bars(facts.seconds), shown=_shown(run, lines), width=WIDTH, height=HEIGHT,
        assets=assets((_HERE / "style.css",), (script("table"),)),
        provenance=_provenance(run), published=published(run.plan.suite),
    )  # fmt: skip
    stream.enable_buffering(200)
    with path.open("wb") as file:
        stream.dump(file, encoding="utf-8", errors="backslashreplace")
    return summary


def run_tasks(run: Run, facts: Facts) -> dict[str, Task]:
    """The tasks as `run.tasks()` counts them, and the facts of the same pass."""

    def watched() -> Iterator[Record]:
        for record in run.records():
            _note(facts, record)
            yield record

    return tasks_of(run.items(), watched())


def _note(facts: Facts, record: Record) -> None:
    facts.outcomes[outcome(record)] += 1
    facts.findings.update(record.findings)
    facts.cheating.update(record.cheating)
    if record.error:
        facts.errors[_error_kind(record)] += 1
    if record.eager_us is not None:
        facts.bases[record.eager_basis or "unknown"] += 1
    if "unit" in record.seconds:
        facts.seconds.append(record.seconds["unit"])


def _error_kind(record: Record) -> str:
    """The code that an error begins with, or behind a trial's name; else what it amounts to."""
    parts = [part.strip() for part in record.error.partition("\n")[0].split(":")]
    code = next((part for part in parts[:3] if part in CODES), "")
    return code or ("wrong values" if record.compiled else parts[0][:60])


def outcome(record: Record) -> str:
    """One of OUTCOMES."""
    if record.compiled is None:
        return "no verdict"
    if not record.compiled:
        return "refused" if record.rung == REFUSED else "not compiled"
    if record.cheating:
        return "outside the kernel"
    if record.official is None:
        return "no verdict"
    if not record.official:
        return "wrong"
    return "right and clean" if record.strict and record.clean else "right by the suite only"


def _outcomes(facts: Facts) -> tuple[Bar, ...]:
    return bars(
        [
            (label, facts.outcomes[name], name == OUTCOMES[0])
            for name, label in zip(OUTCOMES, _SHORT, strict=True)
        ]
    )


def _best(task: Task) -> float | None:
    return max(task.speedups, default=None)


def _speeds(tasks: Mapping[str, Task]) -> tuple[Bar, ...]:
    found = [best for task in tasks.values() if (best := _best(task)) is not None]
    return speed_bars(found) if found else ()


def _curve(summary: Summary, tasks: Mapping[str, Task]) -> Curve | None:
    found = [best for task in tasks.values() if (best := _best(task)) is not None]
    return speed_curve(found, summary.overall.n - summary.overall.untimed)


def _groups(summary: Summary) -> list[tuple[str, dict[str, Group]]]:
    kinds = (
        ("Categories", summary.categories), ("Levels", summary.levels),
        ("Element types", summary.dtypes),
    )  # fmt: skip
    return [(name, groups) for name, groups in kinds if groups]


def _tables(group: Group) -> list[Table]:
    """The figures by k, the shares by threshold, and what has one value."""
    ks = [name.partition("@")[2] for name in group.rates if name.startswith("pass@")]
    by_k = [
        Row(label, form, [group.rates[f"{name}@{k}"] for k in ks]) for name, label, form in _BY_K
    ]
    shares = [
        Row(label, "percent", [group.rates[fast_name(p, how)] for p in THRESHOLDS])
        for how, label in zip(CONVENTIONS, _CONVENTIONS, strict=True)
    ]
    kept = [row for row in _SINGLE if row[0] in group.rates]
    single = [Row(label, form, [group.rates[name]]) for name, label, form in kept]
    return [
        Table("of k samples", [f"k = {k}" for k in ks], by_k),
        Table("fast_p", [f"p = {p:g}" for p in THRESHOLDS], shares),
        Table("over tasks", ["value"], single),
    ]


def _shown(run: Run, lines: list[Line]) -> Iterator[Shown]:
    """One task after the other, while the template writes."""
    room = _MOST_CHARS
    for line in lines:
        records = list(run.records(line.item.name))
        count, right = len(records), sum(bool(r.official and not r.cheating) for r in records)
        records = heapq.nlargest(_MOST_SAMPLES, records, key=rank)
        best = run.full(records[0]) if records else None
        sources, hidden = _sources(run, best, line.anchor, room) if best else ((), 0)
        room -= sum(len(piece.text) for s in sources for row in s.lines for piece in row)
        yield Shown(
            anchor=line.anchor,
            item=line.item,
            count=count,
            right=right,
            best=best,
            speedup=_best(line.task),
            records=tuple(records),
            sources=sources,
            hidden=hidden,
            timeline=draw(best.timeline) if best else "",
        )


def _sources(run: Run, best: Record, anchor: str, room: int) -> tuple[tuple[Source, ...], int]:
    """The files of a candidate, the kernel first, as far as there is room on the page."""
    files = sorted(run.candidate(best).files.items(), key=lambda file: (_order(file[0]), file[0]))
    sources, hidden = [], 0
    for place, (name, text) in enumerate(files):
        if len(text) > min(room, _MOST_FILE):
            hidden += len(text)
            continue
        room -= len(text)
        sources.append(make_source(f"{anchor}-{place}", plain(name), text))
    return tuple(sources), hidden


def _order(name: str) -> int:
    return next((at for at, part in enumerate(_KERNELS) if part.search(name)), len(_KERNELS))


def judged(record: Record) -> list[tuple[str, str]]:
    """What else a reader must know of how a record came about."""
    said = record.provenance
    rows = [
        ("Shapes", said.get("shapes", "")),
        ("True shape", record.true_shape),
        ("Further values", said.get("more", "")),
        ("Search", said.get("search_policy", "")),
        *(("Note", text) for name, text in said.items() if name.startswith("note_")),
    ]
    return [(name, text) for name, text in rows if text]


def _provenance(run: Run) -> list[tuple[str, str]]:
    plan = run.plan
    rows = [
        ("suite", f"{plan.suite} at {plan.root}"),
        ("options of the suite", _listed(plan.options) or "none"),
        ("writer", f"{plan.writer_name} {plan.writer_version}"),
        ("samples and trials", f"{plan.samples} and {plan.trials}"),
        ("limits", _listed(plan.limits.model_dump())),
        ("judge", plan.judge),
        *plan.versions.items(),
    ]
    return [(name, plain(text)) for name, text in rows]


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def show_rate(value: float | None, form: str = "percent") -> str:
    """A share in percent, a factor, or points; a dash for what was not measured."""
    if value is None:
        return "-"
    return {"percent": f"{100 * value:.1f} %", "times": f"{value:.2f}x"}.get(form, f"{value:.1f}")


def spread(value: Figure, form: str = "percent") -> str:
    """The interval in words, its unit said once; nothing where it is a point."""
    if value.low is None or value.high is None or value.low == value.high:
        return ""
    low, high = show_rate(value.low, form), show_rate(value.high, form)
    return f"{low.removesuffix(' %').removesuffix('x')} to {high}"
