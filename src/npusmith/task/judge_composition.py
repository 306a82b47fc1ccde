"""The judge for modules of several operators and PyTorch: `judge_composition(project, ...)`.

The class is written anew from composition.json, which is data, and from the task's own text: it is
ours, and it runs as a candidate's class does. What PyTorch computes in it is a warning of the
verdict for each kind of operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from npusmith.errors import CODES, NpusmithError, Place
from npusmith.target.chips import Chip
from npusmith.task.composition import is_operator, left_nodes
from npusmith.task.graph import Graph, Node
from npusmith.task.judge_options import PLAIN, JudgeOptions
from npusmith.task.load import Task
from npusmith.task.module import ClassOptions, judge_module
from npusmith.task.module_forward import composed_file
from npusmith.task.prepared import Prepared
from npusmith.task.trials import readable_beside
from npusmith.task.verdict import Verdict
from npusmith.twin.finding import Finding
from npusmith.twin.formats import Kind, Submission
from npusmith.twin.project import read_text

_MODEL, _BINDING, _MODULE = "model_new.py", "pybind.cpp", "custom_ops_lib"
_CODE = "left-to-pytorch"
_CLASS = ClassOptions()
_SERVES = re.compile(r"serves (.*)|(\w+: \w+ has shape .*; legal: .*)", re.DOTALL)


def judge_composition(
    project: Path,
    composition: Graph,
    prepared: Prepared,
    chip: Chip,
    tolerance: str,
    options: JudgeOptions = PLAIN,
    how: ClassOptions = _CLASS,
) -> Verdict:
    """Judge the project in that folder. `how`: limits and folders; the class is ours."""
    submission = composed_submission(project, composition, prepared.task)
    how = replace(how, given=True, served=_served, beside=data_beside(prepared.task))
    verdict = judge_module(submission, prepared, chip, tolerance, options, how)
    left = left_nodes(composition)
    calls = [node for node in composition.nodes if is_operator(node)]
    verdict.provenance["composition"] = {
        "operators": len(calls), "left": dict(Counter(node.op for node in left)),
    }  # fmt: skip
    verdict.findings += _findings(left)
    return verdict


def composed_submission(project: Path, composition: Graph, task: Task) -> Submission:
    """The project's sources, and the class that is written anew."""
    files = {
        str(path.relative_to(project)): read_text(path)
        for folder in ("op_host", "op_kernel")
        for path in sorted((project / folder).glob("*.*"))
        if path.suffix in (".cpp", ".h")
    }
    if not (project / _BINDING).is_file():
        raise NpusmithError(
            "file-missing", f"{project} has no {_BINDING}", Place(str(project)), seen=str(project)
        )
    files[_BINDING] = read_text(project / _BINDING)
    files[_MODEL] = composed_file(composition, task.text)
    return Submission(
        Kind.MSOPGEN, project, files, _MODEL, "ModelNew", (_BINDING,), (), (), _MODULE
    )


def data_beside(task: Task) -> list[Path]:
    """Data files that the class reads."""
    return [item for item in readable_beside(task.path) if item.suffix != ".py"]


def _served(message: str) -> str:
    """What a refusal of ours says that is served."""
    found = _SERVES.search(message)
    return found[1] or found[2] if found else ""


def _findings(left: Sequence[Node]) -> list[Finding]:
    row = CODES[_CODE]
    return [
        Finding(
            code=row.name, level=row.level, count=count,
            message=f"{op} is computed by PyTorch, not by a kernel of this project",
        )
        for op, count in Counter(node.op for node in left).items()
    ]  # fmt: skip
