"""The judge of single kernels: `judge_intermediates` compares what passes from one to the next.

The operator is the candidate with these values as outputs behind its own, and the task is prepared
with them (plan/expose_intermediates.py; `intermediates` of `prepare`). An operator whose outputs
are right may have a kernel that is wrong where these inputs do not show it; where the outputs are
wrong, the first kernel whose value differs is the one to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npusmith.errors import Level
from npusmith.lower.bindings import read_bindings
from npusmith.target.chips import Chip
from npusmith.task.judge import open_operator
from npusmith.task.prepared import Array, Prepared, TrialData
from npusmith.task.tolerance import check_profile, compare
from npusmith.task.verdict import Intermediate, Verdict
from npusmith.twin.finding import Finding


def judge_intermediates(
    project: Path,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    values: Sequence[tuple[str, int]],
) -> list[Intermediate]:
    """One row for each value (node of the graph, number of its kernel): of the worst set of inputs.

    The reference's last outputs are these values. Sets of inputs with which the operator does not
    end say nothing of them; no row where there is no other set. Raises what compiling and binding
    raise.
    """
    profile = check_profile(tolerance)
    operator = open_operator(project, prepared, chip, read_bindings(project))
    worst: dict[str, Intermediate] = {}
    sets = 0
    for trial in prepared.trials:
        if trial.skipped:
            continue
        result = operator.call(trial)
        if not result.completed:
            continue  # which kernel it was says the operator's own run
        sets += 1
        first = len(trial.references) - len(values)
        for at, (value, kernel) in enumerate(values, first):
            row = Intermediate(value=value, kernel=kernel)
            _weigh(trial, at, result.outputs[at], row, profile)
            before = worst.get(value)
            if before is None or _rank(row) > _rank(before):
                worst[value] = row
    for row in worst.values():
        row.sets = sets
    return list(worst.values())


def _rank(row: Intermediate) -> tuple[bool, float]:
    return not row.passed, row.max_abs_error or 0.0


def _weigh(trial: TrialData, at: int, got: Array, row: Intermediate, profile: str) -> None:
    want = trial.references[at]
    row.shape, row.dtype, row.elements = list(want.shape), str(want.dtype), want.size
    found = compare(got, want, trial.goldens[at], profile, trial.bounds[at])
    row.passed, row.max_abs_error, row.mismatched = found.passed, found.max_abs, found.mismatched
    row.message = "" if found.passed else f"{trial.name}: {found.message}"


def put_intermediates(verdict: Verdict, rows: Sequence[Intermediate]) -> None:
    """The rows in the verdict; where the outputs are right and a value is not, a warning.

    Of the first kernel that stores one: what later ones store differs for that reason already.
    """
    verdict.intermediates = list(rows)
    if not verdict.correct:
        return
    wrong = [row for row in rows if not row.passed]
    if wrong:
        first = min(wrong, key=lambda row: row.kernel)
        message = f"kernel {first.kernel} stores {first.value} wrongly: {first.message}"
        message += f"; {len(wrong) - 1} more values differ" if len(wrong) > 1 else ""
        finding = Finding(code="kernel-differs", message=message, level=Level.WARNING)
        verdict.findings.append(finding)
