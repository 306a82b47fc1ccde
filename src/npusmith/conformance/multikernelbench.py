"""MultiKernelBench's bundled Ascend C examples against the models they are published with.

`run(root, options, watch)`: six operator projects in the six-string format and two direct launches
in JSON, each judged by the suite's own rule (its random sets, allclose within 1e-4) and by ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from npusmith.conformance.rows import Row, RowFile
from npusmith.errors import Level, NpusmithError, TaskError
from npusmith.sandbox.folder import temporary_folder
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import open_task
from npusmith.task.module import judge_module
from npusmith.task.tolerance import DEFAULT
from npusmith.task.trials import prepare
from npusmith.task.verdict import Rung, Verdict
from npusmith.twin.formats import read_submission

# What is changed in a published model, and why.
_CHANGES = (
    (
        # A tensor of this shape takes 6.4 GB.
        (
            ("4096, 393216", "16, 16384"),
            ("batch_size = 4096", "batch_size = 16"),
            ("dim = 393216", "dim = 16384"),
        ),
        "shape 16x16384, as published before 2026-01-22, instead of 4096x393216",
    ),
    (
        # The model was written for other backends; this answer's operator takes float only.
        ((", dtype=torch.float16)", ")"),),
        "float32 inputs: the operator is declared for nothing else",
    ),
)


@dataclass(frozen=True, slots=True)
class Example:
    """A bundled answer and the file of its model, below the checkout."""

    category: str
    name: str
    answer: str
    model: str


EXAMPLES = (
    *(
        Example(
            "ascendc", name, f"prompts/ascendc_new_model_{name}.py", f"prompts/cuda_model_{name}.py"
        )
        for name in ("add", "layer_norm", "leaky_relu", "matmul_add", "mse_loss", "reduce_sum")
    ),
    Example(
        "ascendc_direct_launch", "add", "prompts/ascendc_direct_launch_model_add.json",
        "prompts/cuda_model_add.py",
    ),
    Example(
        "ascendc_direct_launch", "relu", "prompts/ascendc_direct_launch_model_relu.json",
        "reference/activation/relu.py",
    ),
)  # fmt: skip

Watch = Callable[[Row, int, int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Which examples, and where the rows go."""

    names: tuple[str, ...] = ()
    seconds: float = 180
    rows: Path | None = None
    resume: bool = False


def run(root: Path, options: Options, watch: Watch | None = None) -> list[Row]:
    """A row for each example, in the order of EXAMPLES."""
    chosen = [item for item in EXAMPLES if not options.names or item.name in options.names]
    for item in chosen:
        for name in (item.answer, item.model):
            if not (root / name).is_file():
                raise NpusmithError("file-missing", f"{root / name} does not exist", seen=name)
    with RowFile(options.rows, options.resume) as file:
        done = {row.key for row in file.rows}
        for number, item in enumerate(chosen, 1):
            key = f"0/{item.category}/{item.name}", 0
            if key in done:
                continue
            file.add(_run_one(root, item, options.seconds))
            if watch is not None:
                watch(file.rows[-1], number, len(chosen))
        order = [f"0/{item.category}/{item.name}" for item in chosen]
        rows = [row for row in file.rows if row.key[0] in order]
        return sorted(rows, key=lambda row: order.index(row.key[0]))


def _run_one(root: Path, item: Example, seconds: float) -> Row:
    start = time.monotonic()
    row = Row(level=0, category=item.category, task=item.name, case=0, precise=False)
    with temporary_folder("npusmith-suite-") as name:
        try:
            task = open_task(_model(root / item.model, Path(name), row))
            prepared = prepare(task, Path(name) / "trials", shapes=False)
            submission = read_submission(root / item.answer)
            verdict = judge_module(
                submission, prepared, find_chip(DEFAULT_CHIP), DEFAULT, seconds=seconds
            )
            _fill(row, verdict)
        except (NpusmithError, TaskError) as error:
            row.error = f"{error.code}: {error.message}"
    row.seconds = round(time.monotonic() - start, 2)
    return row


def _model(path: Path, folder: Path, row: Row) -> Path:
    """The published model, or a copy with what must be changed; the row says so."""
    text = fresh = path.read_text()
    for pairs, note in _CHANGES:
        before = fresh
        for old, new in pairs:
            fresh = fresh.replace(old, new)
        if fresh != before:
            row.warnings.append(note)
    if fresh == text:
        return path
    copy = folder / path.name
    copy.write_text(fresh)
    return copy


def _fill(row: Row, verdict: Verdict) -> None:
    row.compiled = verdict.compiled
    row.official = bool(verdict.provenance.get("official"))
    # the judge compares shapes, types and numbers of outputs before any value
    cheats = any(finding.code.startswith("cheat-") for finding in verdict.findings)
    row.strict = row.official and verdict.error is None and not cheats
    row.precise = verdict.rung in (Rung.VALUES, Rung.RACE_FREE)
    levels: dict[Level, list[str]] = {Level.ERROR: row.findings, Level.WARNING: row.warnings}
    for finding in verdict.findings:
        codes = levels.get(finding.level)
        if codes is not None and finding.code not in codes:
            codes.append(finding.code)
    row.clean = row.compiled and not row.findings
    row.stages = dict(verdict.seconds)
    failed = [f"{trial.name}: {trial.message}" for trial in verdict.trials if not trial.passed]
    if verdict.error is not None:
        row.error = f"{verdict.error['code']}: {verdict.error['message']}"
    elif not (row.precise and row.clean):
        row.error = "; ".join(failed[:3]) or ", ".join(row.findings)
