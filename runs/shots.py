"""Writes the examples of the agent's prompts: what the plan writer makes of each file in examples/.

    python runs/shots.py

Run it when the writer or the language changes; the result lies in src/npusmith/agent/texts/shots.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from npusmith.agent.shots import features
from npusmith.ir.text import show
from npusmith.plan import write
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import open_task
from npusmith.task.trials import prepare

ROOT = Path(__file__).parents[1]
OUT = ROOT / "src" / "npusmith" / "agent" / "texts" / "shots"


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rows = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        task = open_task(path)
        with tempfile.TemporaryDirectory() as folder:
            graph = prepare(task, Path(folder), seeds=()).graph
        program = write(graph, f"{task.name}_custom", find_chip(DEFAULT_CHIP)).program
        (OUT / f"{task.name}.tile").write_text(show(program), encoding="utf-8")
        found = features(graph).model_dump(mode="json")
        rows.append({"name": task.name, "summary": task.summary, "features": found})
        print(task.name, found["category"], found["axis"])
    (OUT / "index.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
