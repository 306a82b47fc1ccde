"""Writes the examples of the agent's prompts: what the writer makes of examples/ and runs/shots/.

    python runs/shots.py [NAME...]

Run it when the writer or the language changes: a test writes every example again from its graph
and compares. Each program is the version for all sizes alone, and is judged on its task before it
is kept. With names only these are written, and the others stay. Programs and features lie in
src/npusmith/agent/texts/shots, graphs in runs/shots.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from replay_frozen import Case, read_cases, write_cases

from npusmith.agent.ports import find_ports
from npusmith.agent.shots import features
from npusmith.agent.tile import TileRoute
from npusmith.agent.written import written
from npusmith.ir.text import show, show_expr
from npusmith.target.chips import DEFAULT_CHIP, find_chip
from npusmith.task.load import open_task
from npusmith.task.prepared import Prepared
from npusmith.task.trials import prepare

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "examples", ROOT / "runs" / "shots")
OUT = ROOT / "src" / "npusmith" / "agent" / "texts" / "shots"
GRAPHS = ROOT / "runs" / "shots" / "graphs.jsonl.xz"
LEFT_OUT = ("mhc_sinkhorn",)  # takes longest to write, and no other operator is like it
CHIP = find_chip(DEFAULT_CHIP)


def main(wanted: Sequence[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    index = OUT / "index.json"
    rows = {row["name"]: row for row in json.loads(index.read_text("utf-8"))} if wanted else {}
    cases = read_cases(GRAPHS) if wanted else {}
    for path in sorted(
        (path for folder in FOLDERS for path in folder.glob("*.py")), key=lambda path: path.name
    ):
        if path.stem in LEFT_OUT or (wanted and path.stem not in wanted):
            continue
        task = open_task(path)
        with tempfile.TemporaryDirectory() as folder:
            prepared = prepare(task, Path(folder, "task"))
            text = show(written(prepared.graph, f"{task.name}_custom", CHIP))
            _check(prepared, text, Path(folder).resolve() / "candidate")
            cases[task.name] = Case(name=task.name, graph=prepared.graph)
        (OUT / f"{task.name}.tile").write_text(text, encoding="utf-8")
        found = features(prepared.graph).model_dump(mode="json")
        dims = [[*map(show_expr, port.dims)] for port in find_ports(prepared).outputs]
        rows[task.name] = {
            "name": task.name, "summary": task.summary, "features": found, "dims": dims,
        }  # fmt: skip
        print(task.name, found["category"], found["axis"], len(text), flush=True)
    listed = [rows[name] for name in sorted(rows)]
    index.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    write_cases([*cases.values()], GRAPHS)


def _check(prepared: Prepared, text: str, folder: Path) -> None:
    """A wrong example is none."""
    route = TileRoute(prepared, CHIP, "strict", [], timed=False)
    folder.mkdir()
    found = route.assess(route.edit(text), folder)
    if not found.correct:
        raise SystemExit(f"{prepared.name}: {found.notes}")


if __name__ == "__main__":
    main(sys.argv[1:])
