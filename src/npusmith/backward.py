"""`generate --backward`: the operator of a module's gradients, and a package that trains with both.

Beside the operator of a task, in its folder:

    <task>_backward.py the task of its gradients, as any other (task/backward_task.py)
    backward/          the operator of that, judged as any other
    training/          both as one package, with a model_new.py that autograd can train
"""

from __future__ import annotations

from pathlib import Path

from npusmith import pipeline
from npusmith.errors import Place, TaskError
from npusmith.lower import lower
from npusmith.lower.training import Lowered, training_files
from npusmith.target.chips import Chip
from npusmith.task.backward_task import Gradients, gradients_of
from npusmith.task.load import open_task, stem_of
from npusmith.task.verdict import Verdict
from npusmith.writers.plan import PlanWriter, Written, read_back


def add_backward(
    task: Path, folder: Path, writer: PlanWriter, verdict: Verdict,
    progress: pipeline.Progress, *, seed: int = 0, timed: bool = False,
) -> Verdict:  # fmt: skip
    """The verdict of the gradients of what `writer` wrote last, which is in `folder` and right.

    verdict: forward's, for its tolerance. Raises task-gradients, and plan-backward where the
    operators do not make a package; then they stand alone.
    """
    forward = writer.written
    if forward is None:
        why = "a part of the module is left to PyTorch, which has gradients of its own"
        raise TaskError("task-gradients", why, Place(str(task)))
    asked = gradients_of(open_task(task), forward.graph)
    own = folder / f"{stem_of(task)}_backward.py"
    own.write_text(asked.text, encoding="utf-8")
    found = pipeline.generate(
        own, folder / "backward", writer.chip, verdict.tolerance, progress, writer=writer,
        seed=seed, timed=timed,
    )  # fmt: skip
    if found.verdict == "pass" and writer.written is not None:
        progress.step("package", "both operators, and a model that autograd can train")
        write_package(forward, writer.written, asked, folder / "training", writer.chip)
    return found


def write_package(
    forward: Written, backward: Written, asked: Gradients, folder: Path, chip: Chip
) -> None:
    """Both operators, and a model_new.py whose ModelNew calls them. Raises plan-backward."""
    both = _lowered(forward, chip), _lowered(backward, chip)
    for name, text in training_files(*both, asked.parameters, asked.outputs, chip).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _lowered(written: Written, chip: Chip) -> Lowered:
    return lower(read_back(written.program, written.spec, chip)[1], chip), written.spec
