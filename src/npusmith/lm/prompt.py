"""What a model of ours is asked, in the corpus, in policy training and as a writer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npusmith.agent.extract import find_program
from npusmith.agent.prompt import task_part
from npusmith.agent.talk import Answer, Usage
from npusmith.errors import NpusmithError
from npusmith.target.chips import Chip

NAME = "model_custom"  # of every operator: a name tells nothing
ASK = "State the plan, then write the tile program."
_TASK = re.compile(r"^(`{3,})python\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def task_words(source: str, ports: Sequence[str], chip: Chip) -> str:
    """What is to be written: the text of a task file, and its tensors (agent/ports.py)."""
    return f"{task_part(source, ports, chip)}\n\nCall the kernel {NAME}."


def task_prompt(source: str, ports: Sequence[str], chip: Chip) -> str:
    """The question that is answered by a plan and a program in a fence."""
    return f"{task_words(source, ports, chip)}\n\n{ASK}"


def task_in(prompt: str) -> str:
    """The task that a prompt holds, or ""."""
    tasks = [text for _, text in _TASK.findall(prompt) if "get_inputs" in text]
    return tasks[0] if tasks else ""


def program_in(completion: str) -> str:
    """The tile program in a completion, or ""."""
    usage = Usage(prompt=0, completion=0)
    try:
        return find_program(Answer(text=completion, usage=usage))
    except NpusmithError:
        return ""
