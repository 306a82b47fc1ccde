"""The frozen graphs of the replay on disk: one JSON line a case, compressed."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npusmith.task.graph import Graph

FOLDER = Path(__file__).parent / "replay"
GRAPHS = FOLDER / "graphs.jsonl.xz"


class Case(BaseModel):
    """A frozen graph. `draws`: how the values of its inputs lie; only of what is judged on it."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    name: str
    graph: Graph
    check: str = ""  # the case whose sizes it is judged at; empty: at none
    draws: dict[str, dict[str, Any]] = {}


def read_cases(path: Path = GRAPHS) -> dict[str, Case]:
    if not path.is_file():
        return {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        found = [Case.model_validate_json(line) for line in file]
    return {case.name: case for case in found}


def write_cases(cases: Sequence[Case], path: Path = GRAPHS) -> None:
    """Readers see the file whole: an ended capture leaves what was there."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    with lzma.open(fresh, "wt", preset=9, encoding="utf-8") as file:
        for case in sorted(cases, key=lambda item: item.name):
            file.write(case.model_dump_json(exclude_defaults=True) + "\n")
    fresh.replace(path)
