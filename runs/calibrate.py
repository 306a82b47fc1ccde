"""Fits the free constants of the timing model to published measurements.

    python runs/calibrate.py --work WORK --asc-devkit CHECKOUT [--fit] [--write] [--out REPORT.md]

WORK keeps the logs of the launches, which are made once. Without --fit the present constants are
only tried. --write puts what was fitted into src/npusmith/target/fitted.json, with the errors of
both parts. Without --asc-devkit the examples are left away (and nothing can be written).

The rows that are left out (runs/calibration/tables.py) are never part of a fit. Constants are
fitted in groups, each on the rows that tell them; nothing is set by hand to suit one kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from calibration.cases import (
    Absent,
    Case,
    example_cases,
    matmul_cases,
    micro_cases,
    predict_all,
    short_cases,
)
from calibration.device import device_cases
from calibration.fit import mean, row_loss, search
from calibration.report import Result, brief, constants, errors, text, wrong_steps

from npusmith.target.costs import COSTS, FITTED

_MOST_STEPS = 300_000  # of a matmul record; --most-steps
_FIT_STEPS = 250_000  # of a case that takes part in a fit, unless it is named
_FIT_SHORT_US = 8.0  # of a row that tells start and tail
_FIT_MATMUL_STEPS = 20_000
_FIT_DOUBLE_STEPS = (
    60_000  # of one whose buffers are all double: what a record leaves open matters less
)
_DIGITS = 4
_PAGE = Path(__file__).parent.parent / "docs" / "calibration.md"
_MARKS = ("<!-- tables: written by runs/calibrate.py -->", "<!-- end of tables -->")


@dataclass(frozen=True, slots=True)
class Group:
    """Constants that are fitted together, and the rows that tell them.

    `rows`: families, or names of single cases; `metrics`: which of their times. Families count
    alike, however many rows they have.
    """

    name: str
    constants: tuple[str, ...]
    rows: tuple[str, ...]
    metrics: tuple[str, ...]

    def takes(self, case: Case) -> bool:
        """Is this a row of the group, of the calibration part and of a size for many runs?"""
        if case.left_out or case.name in self.rows:
            return not case.left_out
        if case.family in ("short", "vendor") and case.published["task"] >= _FIT_SHORT_US:
            return False
        most = _FIT_STEPS
        if case.family == "bank":
            most = _FIT_DOUBLE_STEPS if case.double else _FIT_MATMUL_STEPS
        return case.family in self.rows and case.steps <= most


GROUPS = (
    Group(
        "vector",
        ("vector.head", "bank.read_write", "bank.partial"),
        ("conflict",),
        ("cycles",),
    ),
    Group("store", ("path.ub_gm.start",), ("ub_to_gm", "add/1"), ("cycles", "mte3")),
    Group(
        "load",
        ("path.gm_ub.start", "path.gm_ub.rate"),
        ("gm_to_ub", "add/1"),
        ("cycles", "mte2"),
    ),
    Group("out", ("path.l0c_gm.rate",), ("matmul/4", "matmul/7"), ("fixpipe",)),
    Group(
        "matmul",
        (
            "path.gm_l1.rate", "path.gm_l1.request", "path.gm_l1.nz_row", "path.gm_l1.start",
            "path.gm_l1.issue", "path.gm_l1.miss", "path.l1_l0a.gap", "path.l1_l0b.gap",
            "path.l0c_gm.row", "gm.pieces", "launch.prologue_cube",
        ),
        ("bank", "l1", "matmul/1"),
        ("core", "mte1", "mte2"),
    ),
    Group("issue", ("path.gm_ub.issue",), ("ub/1",), ("core", "mte2")),
    Group(
        "memory",
        (
            "hbm.efficiency", "hbm.transfer_bytes", "gm.piece_bytes", "gm.bypass_bytes",
            "l2.same_line", "l2.same_window", "ub.hold",
        ),
        ("ub", "l1", "add"),
        ("task", "core", "mte2"),
    ),
    Group("start", ("launch.prologue",), ("short", "vendor"), ("core",)),
    Group("launch", ("launch.core", "launch.task"), ("short", "vendor"), ("lag",)),
    Group("first start", ("launch.first_prologue",), ("add",), ("scalar",)),
    Group("first", ("launch.first_core",), ("add", "ub"), ("lag",)),
    Group("early", ("hbm.early_back",), ("eager",), ("task",)),
    Group(
        "by row",
        ("scalar.read_use",),
        ("by row", "short/div/ascendc/b32", "row"),
        ("core", "cycles"),
    ),
    Group("cold", ("launch.cold",), ("ub", "l1"), ("rest",)),
    Group(
        "scalar",
        ("scalar.issue", "scalar.read", "scalar.write"),
        ("add", "add/0"),
        ("core", "scalar"),
    ),
    Group(
        "library", ("library.ascend_dequant", "library.broad_cast"), ("quant/2",), ("vec",)
    ),
)  # fmt: skip


def main() -> None:
    options = _options()
    cases, absent = _cases(options)
    print(f"{len(cases)} cases, {len(absent)} without a launch", file=sys.stderr)
    state = options.work / "fitted.json"
    fitted: dict[str, float] = json.loads(state.read_text()) if options.groups else {}
    if options.fit:
        fitted = {**_starts(), **fitted}  # whatever fitted.json holds
        for group in GROUPS:
            if not options.groups or group.name in options.groups:
                fitted |= fit_group(group, cases, fitted, options.runs)
                state.write_text(json.dumps(fitted))
    results = [
        Result(case, found) for case, found in zip(cases, predict_all(cases, fitted), strict=True)
    ]
    report = text(results, absent)
    print(report)
    if options.out:
        options.out.write_text(report)
    if wrong := wrong_steps(results):
        print("in the wrong order: " + "; ".join(wrong), file=sys.stderr)
    if options.write:
        FITTED.write_text(json.dumps(record(fitted, results), indent=2) + "\n")
        _write_page(f"{brief(results)}\n\n{constants(fitted)}")


def _starts() -> dict[str, float]:
    return {name: COSTS[name].value for group in GROUPS for name in group.constants}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="keeps logs between calls")
    parser.add_argument("--asc-devkit", type=Path, help="a checkout of asc-devkit")
    parser.add_argument("--device", type=Path, help="what npusmith device --calibrate wrote")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--write", action="store_true", help="write fitted.json")
    parser.add_argument("--out", type=Path, help="the report as Markdown")
    parser.add_argument("--most-steps", type=int, default=_MOST_STEPS)
    parser.add_argument("--runs", type=int, default=120, help="evaluations of a group")
    parser.add_argument(
        "--groups", nargs="*", help="only these, from what WORK/fitted.json holds of the others"
    )
    parser.add_argument("--only", nargs="*", default=[], help="names of examples")
    options = parser.parse_args()
    if options.write and not options.asc_devkit:
        parser.error("--write needs --asc-devkit")
    return options


def _cases(options: argparse.Namespace) -> tuple[list[Case], list[Absent]]:
    found = [*micro_cases(options.work), *short_cases(options.work)]
    found += matmul_cases(options.work, options.most_steps)
    if options.asc_devkit:
        found += example_cases(options.work, options.asc_devkit, options.only)
    if options.device:
        found += device_cases(options.device)
    cases = [one for one in found if isinstance(one, Case)]
    return cases, [one for one in found if isinstance(one, Absent)]


def fit_group(
    group: Group, cases: list[Case], known: Mapping[str, float], most_runs: int
) -> dict[str, float]:
    """The constants of one group, on the calibration rows of its families."""
    mine = [case for case in cases if group.takes(case)]
    if not mine:
        return {}
    if settled := [name for name in group.constants if COSTS[name].basis == "documented"]:
        raise SystemExit(f"documented, not free: {', '.join(settled)}")
    start = {name: known.get(name, COSTS[name].value) for name in group.constants}

    def loss(tried: Mapping[str, float]) -> float:
        losses: dict[str, list[float]] = {}
        for case, predicted in zip(mine, predict_all(mine, {**known, **tried}), strict=True):
            losses.setdefault(case.family, []).extend(
                row_loss(predicted[metric], case.published[metric])
                for metric in group.metrics
                if metric in predicted and case.tells(metric)
            )
        return mean([mean(rows) for rows in losses.values() if rows])

    fit = search(
        start, loss, most_runs, lambda line: print(f"{group.name}: {line}", file=sys.stderr)
    )
    print(f"{group.name}: {len(mine)} rows, {fit.runs} runs, loss {fit.loss:.4f}", file=sys.stderr)
    return {name: float(f"{value:.{_DIGITS}g}") for name, value in fit.values.items()}


def record(fitted: Mapping[str, float], results: list[Result]) -> dict[str, object]:
    """What fitted.json holds."""
    return {
        "by": "runs/calibrate.py",
        "errors": errors(results),
        "values": dict(sorted(fitted.items())),
    }


def _write_page(tables: str) -> None:
    """Puts the tables between the two marks of the page."""
    page = _PAGE.read_text()
    head, rest = page.split(_MARKS[0])
    _PAGE.write_text(f"{head}{_MARKS[0]}\n{tables}\n{_MARKS[1]}{rest.split(_MARKS[1])[1]}")


if __name__ == "__main__":
    main()
