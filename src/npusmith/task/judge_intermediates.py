"""The judge of single kernels: `judge_intermediates` compares what passes from one to the next.

The operator is the candidate with these values as outputs behind its own, and the task is prepared
with them (plan/expose_intermediates.py; `intermediates` of `prepare`). An operator whose outputs
are right may have a kernel that is wrong where these inputs do not show it; where the outputs are
wrong, the first kernel whose value differs is the one to look at. Error bounds, which take most of
the time, are made for the sets with a value that nothing else excuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from npusmith.errors import Level
from npusmith.lower.bindings import read_bindings
from npusmith.target.chips import Chip
from npusmith.task.judge import open_operator
from npusmith.task.prepared import Array, Prepared, TrialData
from npusmith.task.references import with_bounds
from npusmith.task.running import PARALLEL_BYTES
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

    def run(trial: TrialData) -> tuple[list[Intermediate], Sequence[Array]] | None:
        """The rows, and the outputs where an error bound may excuse what is wrong."""
        result = operator.call(trial)
        if not result.completed:
            return None  # which kernel it was says the operator's own run
        rows = _rows(trial, result.outputs, values, profile)
        late = trial.record.heavy and not all(row.passed for row in rows)
        return rows, result.outputs if late else ()

    live = [trial for trial in prepared.trials if not trial.skipped]
    small = all(trial.bytes < PARALLEL_BYTES for trial in live)
    with ThreadPoolExecutor(2 if small else 1) as pool:
        done = [
            (trial, found) for trial, found in zip(live, pool.map(run, live), strict=True) if found
        ]
    bounded = with_bounds(prepared, [trial.name for trial, (_, late) in done if late])
    sets = [
        _rows(bounded.get(trial.name, trial), late, values, profile, last=True) if late else rows
        for trial, (rows, late) in done
    ]
    worst = [max(found, key=_rank) for found in zip(*sets, strict=True)]
    for row in worst:
        row.sets = len(sets)
    return worst


def _rows(
    trial: TrialData,
    outputs: Sequence[Array],
    values: Sequence[tuple[str, int]],
    profile: str,
    *,
    last: bool = False,
) -> list[Intermediate]:
    """Of one set; `last`: no bounds will come, so that PyTorch's own error may excuse a value."""
    found: list[Intermediate] = []
    bounds = trial.bounds
    if trial.record.heavy and not last:
        bounds = [np.zeros(want.shape, np.float32) for want in trial.references]
    first = len(trial.references) - len(values)
    for at, (value, kernel) in enumerate(values, first):
        row = Intermediate(value=value, kernel=kernel)
        _weigh(trial, at, outputs[at], bounds[at], row, profile)
        found.append(row)
    return found


def _rank(row: Intermediate) -> tuple[bool, float]:
    return not row.passed, row.max_abs_error or 0.0


def _weigh(
    trial: TrialData, at: int, got: Array, bound: Array | None, row: Intermediate, profile: str
) -> None:
    want = trial.references[at]
    row.shape, row.dtype, row.elements = list(want.shape), str(want.dtype), want.size
    found = compare(got, want, trial.goldens[at], profile, bound)
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
