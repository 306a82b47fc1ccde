"""`open_writer(spec, chip)`: the one place that knows every writer. A run names it in its plan.

- `plan:N`: the deterministic writer, which tries N schedules on the timing model; `plan` is short
  for its default, the same as of `npusmith generate`;
- `folder:PATH`: responses on disk, PATH/<item>/<sample>.json, .py, .txt or a project's folder;
- `answers:ROOT`: the reference answers of the suite's own checkout, where it has some;
- `agent:OPTIONS`: a model, in rounds (docs/agent.md);
- `lm:OPTIONS`: a model of our own, in NumPy (docs/training.md).
"""

from __future__ import annotations

from pathlib import Path

from npusmith.bench.model import Writer
from npusmith.errors import NpusmithError, Place
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.writers.folder import AnswerWriter, FolderWriter
from npusmith.writers.plan import DEFAULT_SEARCH, PlanWriter

OPEN_WRITER = f"{__name__}:open_writer"


def whole_spec(spec: str) -> str:
    """As plans and records name a writer: with its number of schedules."""
    return f"plan:{DEFAULT_SEARCH}" if spec == "plan" else spec


def open_writer(spec: str, chip: str = DEFAULT_CHIP) -> Writer:
    """Raises usage and file-missing, and what opening a model raises."""
    kind, _, rest = whole_spec(spec).partition(":")
    if kind == "plan" and rest.isdecimal():
        return PlanWriter(find_chip(chip), search=int(rest))
    if kind in ("folder", "answers") and rest:
        root = Path(rest)
        if not root.is_dir():
            raise NpusmithError(
                "file-missing", f"{root} is no folder", Place(str(root)), seen=str(root)
            )
        return FolderWriter(root) if kind == "folder" else AnswerWriter(root)
    if kind == "agent" and rest:
        from npusmith.agent.writer import open_writer as open_agent

        return open_agent(rest, chip)
    if kind == "lm" and rest:
        from npusmith.lm.writer import open_writer as open_lm

        return open_lm(rest, chip)
    raise NpusmithError(
        "usage", f"no writer is called {spec}", seen=spec[:80],
        legal="plan, plan:N, folder:PATH, answers:ROOT, agent:model=NAME,base-url=URL,..., "
        "lm:model=FOLDER,...",
    )  # fmt: skip
