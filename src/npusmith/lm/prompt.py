"""What a model of ours is asked: `task_prompt(source, ports)`; the corpus asks the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ASK = "Write a tile program for this module."
_TASK = re.compile(r"^(`{3,})python\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def task_prompt(source: str, ports: Sequence[str]) -> str:
    """The text of a task file, and the lines of its tensors (agent/ports.py)."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
    return "\n".join((_ASK, "", f"{fence}python", source.strip("\n"), fence, "", *ports, ""))


def task_in(prompt: str) -> str:
    """The task that a prompt holds, or ""."""
    tasks = [text for _, text in _TASK.findall(prompt) if "get_inputs" in text]
    return tasks[0] if tasks else ""
