"""What the calibration prints and keeps: errors of both parts, ladders, pipes, instructions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from calibration.cases import Absent, Case
from calibration.fit import mean, median, spearman
from npusmith.target.costs import COSTS

_PIPES = ("vec", "scalar", "mte1", "mte2", "mte3", "mac", "fixpipe")
SHORT = {  # families of short.csv
    "short": "kernels of known structure",
    "vendor": "torch_npu's kernels, data in L2",
    "by row": "a scalar read for each row",
    "eager": "torch_npu's kernels, L2 flushed",
}
SHORT_US = 30.0
_LADDERS = ("add", "matmul")


@dataclass(frozen=True, slots=True)
class Result:
    """One case with what we say of it."""

    case: Case
    predicted: dict[str, float]

    @property
    def metric(self) -> str:
        """The end-to-end time that was published: of the task where there is one."""
        return "task" if "task" in self.case.published else next(iter(self.case.published))

    def error(self, metric: str = "") -> float:
        """(ours - published) / published."""
        metric = metric or self.metric
        return self.predicted[metric] / self.case.published[metric] - 1


def errors(results: list[Result]) -> dict[str, dict[str, float]]:
    """Both parts, end-to-end kernel times: rows, median and mean of the absolute error."""
    whole = [r for r in results if r.case.end_to_end]
    long = [r for r in whole if r.case.family not in SHORT]
    below = [r for r in whole if r.case.family in SHORT and r.case.published["task"] < SHORT_US]
    return {
        "calibration": _errors([r for r in long if not r.case.left_out]),
        "left_out": _errors([r for r in long if r.case.left_out]),
        "short": _errors([r for r in below if not r.case.left_out]),
        "short_left_out": _errors([r for r in below if r.case.left_out]),
    }


def _errors(results: list[Result]) -> dict[str, float]:
    sizes = [abs(result.error()) for result in results]
    return {"rows": len(sizes), "median": _round(median(sizes)), "mean": _round(mean(sizes))}


def brief(results: list[Result]) -> str:
    """The tables of docs/calibration.md."""
    examples = [r for r in results if r.case.family not in SHORT]
    known = [r for r in results if r.case.family in ("short", "by row")]
    parts = (
        _summary(results), _short(results), _ladders(results), _pipes(examples, "examples"),
        _pipes(known, SHORT["short"]),
    )  # fmt: skip
    return "\n\n".join(parts)


def constants(fitted: Mapping[str, float]) -> str:
    """What was fitted, beside what the table of constants says."""
    lines = ["| Constant | fitted | before | unit |", "|---|---|---|---|"]
    for name, value in sorted(fitted.items()):
        row = COSTS[name]
        lines.append(f"| `{name}` | {value:g} | {row.value:g} | {row.unit} |")
    return "\n".join(lines)


def text(results: list[Result], absent: list[Absent]) -> str:
    """All tables as Markdown."""
    parts = [
        brief(results),
        _micro(results),
        _rows("Short kernels", [r for r in results if r.case.family in SHORT]),
        _rows(
            "Examples",
            [r for r in results if r.case.end_to_end and r.case.family not in (*SHORT, "bank")],
        ),
        _rows("Matmul records", [r for r in results if r.case.family == "bank"]),
        _absent(absent),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(results: list[Result]) -> str:
    lines = [
        "| End-to-end kernel times | rows | median | mean | ratio, median |",
        "|---|---|---|---|---|",
    ]
    chosen = [r for r in results if r.case.end_to_end and r.case.family not in SHORT]
    for part, out in (("calibration", False), ("left out", True)):
        mine = [r for r in chosen if r.case.left_out == out]
        groups = {
            f"{part}: all": mine,
            f"{part}: examples": [r for r in mine if r.case.family not in (*SHORT, "bank")],
            f"{part}: matmul records": [r for r in mine if r.case.family == "bank"],
            f"{part}: matmul records, all buffers double": [r for r in mine if r.case.double],
            f"{part}: matmul records, others": [
                r for r in mine if r.case.family == "bank" and not r.case.double
            ],
        }
        lines += [_line(name, group) for name, group in groups.items() if group]
    return "\n".join(lines)


def _short(results: list[Result]) -> str:
    """Kernels below SHORT_US, and those of the same tables above it."""
    lines = [
        f"| Published times below {SHORT_US:g} us, and longer ones of the same tables | part "
        "| rows | median | mean | ratio, median | ratio, geometric mean |",
        "|---|---|---|---|---|---|---|",
    ]
    mine = [r for r in results if r.case.family in SHORT]
    below = [r for r in mine if r.case.published["task"] < SHORT_US]
    groups = {"below, all": below}
    groups |= {
        f"below, {SHORT[name]}": [r for r in below if r.case.family == name] for name in SHORT
    }
    groups["longer"] = [r for r in mine if r not in below]
    for name, group in groups.items():
        for part, out in (("calibration", False), ("left out", True)):
            rows = [r for r in group if r.case.left_out == out]
            if rows:
                lines.append(_short_line(f"{name} | {part}", rows))
    return "\n".join(lines)


def _short_line(name: str, rows: list[Result]) -> str:
    logs = [math.log(result.error() + 1) for result in rows]
    return f"{_line(name, rows)} {math.exp(mean(logs)):.2f} |"


def _line(name: str, group: list[Result]) -> str:
    sizes = [abs(result.error()) for result in group]
    ratio = median([result.error() + 1 for result in group])
    both = f"{_percent(median(sizes))} | {_percent(mean(sizes))}"
    return f"| {name} | {len(sizes)} | {both} | {ratio:.2f} |"


def _ladders(results: list[Result]) -> str:
    lines = [
        "| Variants of one kernel | rows | rank correlation | steps in the wrong order |",
        "|---|---|---|---|",
    ]
    families = sorted({r.case.family for r in results if r.case.end_to_end})
    for family in families:
        mine = [r for r in results if r.case.family == family]
        if len(mine) < 2:
            continue
        ours = [r.predicted[r.metric] for r in mine]
        theirs = [r.case.published[r.metric] for r in mine]
        wrong = "" if family in (*SHORT, "bank") else ", ".join(_wrong(mine))
        lines.append(
            f"| {family} | {len(mine)} | {spearman(ours, theirs):.3f} | {wrong or 'none'} |"
        )
    return "\n".join(lines)


def _wrong(mine: list[Result]) -> Iterator[str]:
    """Neighbours in the table whose order is another one than published."""
    for left, right in pairwise(mine):
        ours = right.predicted[right.metric] - left.predicted[left.metric]
        theirs = right.case.published[right.metric] - left.case.published[left.metric]
        if ours * theirs <= 0:
            yield f"{left.case.name} to {right.case.name}"


def wrong_steps(results: list[Result]) -> list[str]:
    """Of the two ladders whose order must be right."""
    return [
        step
        for family in _LADDERS
        for step in _wrong([r for r in results if r.case.family == family])
    ]


def _pipes(results: list[Result], title: str) -> str:
    lines = [
        f"| Busy time of a pipe, {title} | rows | median error | ratio, median |",
        "|---|---|---|---|",
    ]
    everything: list[float] = []
    for pipe in _PIPES:
        ratios = [
            r.predicted[pipe] / r.case.published[pipe]
            for r in results
            if pipe in r.case.published and pipe in r.predicted and r.case.tells(pipe)
        ]
        sizes = [abs(ratio - 1) for ratio in ratios]
        everything += sizes
        if sizes:
            lines.append(
                f"| {pipe} | {len(sizes)} | {_percent(median(sizes))} | {median(ratios):.2f} |"
            )
    lines.append(f"| all | {len(everything)} | {_percent(median(everything))} | |")
    return "\n".join(lines)


def _micro(results: list[Result]) -> str:
    mine = [r for r in results if not r.case.end_to_end]
    lines = ["| Instruction or transfer | published cycles | ours | error |", "|---|---|---|---|"]
    for result in mine:
        ours, theirs = result.predicted["cycles"], result.case.published["cycles"]
        lines.append(f"| {result.case.name} | {theirs:.1f} | {ours:.1f} | {result.error():+.1%} |")
    return "\n".join(lines) if mine else ""


def _rows(title: str, mine: list[Result]) -> str:
    lines = [f"| {title} | part | published us | ours | error | pipes, ours / published |"]
    lines.append("|---|---|---|---|---|---|")
    for result in mine:
        part = "left out" if result.case.left_out else "calibration"
        ours, theirs = result.predicted[result.metric], result.case.published[result.metric]
        pipes = " ".join(
            f"{pipe} {result.predicted[pipe] / result.case.published[pipe]:.2f}"
            for pipe in ("core", *_PIPES)
            if pipe in result.predicted and pipe != result.metric
        )
        times = f"{theirs:.5g} | {ours:.5g} | {result.error():+.1%}"
        lines.append(f"| {result.case.name} | {part} | {times} | {pipes} |")
    return "\n".join(lines) if mine else ""


def _absent(absent: list[Absent]) -> str:
    if not absent:
        return ""
    return "\n".join(["Not run:", "", *(f"- {one.name}: {one.why}" for one in absent)])


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def _round(value: float) -> float:
    return 0.0 if math.isnan(value) else round(value, 4)
