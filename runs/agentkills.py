"""A bench run of the agent writer, killed at random moments, against one that was left alone.

    python runs/agentkills.py WORK [--tasks 50] [--samples 4] [--kills 10] [--json FILE]

Real are: the endpoint (`npusmith serve-model` as a process of its own), client, sessions, journal,
interpreter and judge of the writer, runner and store of the bench. The tasks are copies of one
small task under other names, so that it is captured once, and the suite judges by the look of the
candidate, so that the run is about what is kept and not about kernels.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from npusmith.agent.shots import read_shots
from npusmith.bench.archive import open_run
from npusmith.bench.audit import verify
from npusmith.bench.model import Brief, Candidate, Item, Limits, Record
from npusmith.bench.plan import Plan
from npusmith.bench.pool import LocalPool
from npusmith.bench.runner import run
from npusmith.open_writer import OPEN_WRITER
from npusmith.store.turns import open_journal

ROOT = Path(__file__).parents[1]
LINE = "adds(t0, t0, 1.0, n)"  # of the right program


def changed(text: str, old: str, new: str) -> str:
    """The text with another word in it, which must have been there."""
    assert old in text, old
    return text.replace(old, new)


TASK = changed((ROOT / "examples" / "softsign.py").read_text(), "256, 3000", "16, 100")
PROGRAM = next(
    changed(shot.program, "softsign_custom", "task_custom")
    for shot in read_shots()
    if shot.name == "softsign"
)
SAME = ("item", "sample", "trial", "key", "candidate", "compiled", "official", "error", "rung")


class Copies:
    """A suite of one task under many names; a candidate is right when it holds the right sum."""

    name = "copies"

    def __init__(self, suite: str, root: Path, options: dict[str, str]) -> None:
        self.root = root

    def items(self) -> Iterator[Item]:
        for path in sorted(self.root.glob("*/task.py")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield Item(
                suite="copies", name=path.parent.name, category="a", source=str(path), digest=digest
            )

    def brief(self, item: Item) -> Brief:
        path = self.root / item.name / "task.py"
        return Brief(item=item, reference=path.read_text(), path=path, operator="TaskCustom")

    def evaluate(self, item: Item, candidate: Candidate, limits: Limits) -> Record:
        right = LINE in candidate.files.get("task_custom.tile.py", "")
        return Record(
            key="", suite="copies", item=item.name, category="a", writer="", sample=0, candidate="",
            compiled=True, official=right, strict=right, clean=True, rung="ran",
        )  # fmt: skip


def script() -> dict[str, object]:
    """Replies by turn: drafts that fail in four ways, and a repair that often succeeds."""
    bad = [
        changed(PROGRAM, "with compute:", "with computing:"),
        changed(PROGRAM, LINE, "adds(t0, t0, 2.0, n)"),
        changed(PROGRAM, "TILE = ", "TILE = 100 * "),
    ]
    drafts = ["I would rather talk.", *(f"```python\n{text}```\n" for text in bad)]
    mended = [*drafts, f"```python\n{PROGRAM}```\n", *drafts[1:3]]
    return {
        "rules": [
            {"contains": ["## Findings"], "replies": mended},
            {"replies": drafts},
        ]
    }


def start_server(work: Path) -> tuple[subprocess.Popen[bytes], str]:
    rules, address = work / "script.json", work / "address"
    rules.write_text(json.dumps(script()))
    argv = ["serve-model", "--script", rules, "--port", 0, "--address-file", address]
    process = subprocess.Popen([sys.executable, "-m", "npusmith", *map(str, argv)])
    while not address.is_file() or not address.read_text().endswith("\n"):
        time.sleep(0.05)
    return process, address.read_text().strip()


def make_plan(work: Path, name: str, url: str, samples: int) -> Plan:
    journal = work / f"{name}-journal"
    options = f"model=m,base-url={url},samples=2,rounds=3,journal={journal},max-tokens=2000"
    return Plan(
        suite="copies", root=work / "suite", writer=f"agent:{options},budget-tokens=100000000",
        samples=samples, suites="agentkills:Copies", writers=OPEN_WRITER, limits=Limits(seconds=60),
    )  # fmt: skip


def records(folder: Path) -> list[dict[str, object]]:
    with open_run(folder) as found:
        assert verify(found).wrong == []
        return [{name: getattr(row, name) for name in SAME} for row in found.records()]


def turns(folder: Path) -> list[object]:
    with open_journal(folder) as store:
        assert store.verify() == []
        return [(name, why, store.turns(name)) for name, why in store.sessions()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", default="")
    given = parser.parse_args()
    if given.once:
        plan = Plan.model_validate_json(Path(given.once).read_text())
        run(plan, given.work, LocalPool(2), resume=True)
        return
    shutil.rmtree(given.work, ignore_errors=True)
    for number in range(given.tasks):
        folder = given.work / "suite" / f"task{number:02}"
        folder.mkdir(parents=True)
        (folder / "task.py").write_text(TASK)
    server, url = start_server(given.work)
    try:
        found = compare(given, url)
    finally:
        server.kill()
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


def compare(given: argparse.Namespace, url: str) -> dict[str, object]:
    clock = time.monotonic()
    whole = start(given, "whole", url)
    assert whole.wait() == 0
    seconds = time.monotonic() - clock
    draw, kills = random.Random(1), 0
    while True:
        process = start(given, "killed", url)
        try:
            code = process.wait(draw.uniform(0.06, 0.2) * seconds if kills < given.kills else None)
            assert code == 0
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    one, other = records(given.work / "whole"), records(given.work / "killed")
    return {
        "units": len(one),
        "right": sum(bool(row["official"]) for row in one),
        "kills": kills,
        "same_records": [unlike(row) for row in one] == [unlike(row) for row in other],
        "same_turns": turns(given.work / "whole-journal") == turns(given.work / "killed-journal"),
        "turns": sum(len(row[2]) for row in turns(given.work / "whole-journal")),  # type: ignore[index]
        "seconds_alone": round(seconds, 1),
    }


def unlike(row: dict[str, object]) -> dict[str, object]:
    """Without the key, which is of the writer's name for the journal, too."""
    return {name: value for name, value in row.items() if name != "key"}


def start(given: argparse.Namespace, name: str, url: str) -> subprocess.Popen[bytes]:
    plan = given.work / f"{name}.json"
    plan.write_text(make_plan(given.work, name, url, given.samples).model_dump_json())
    argv = [sys.executable, __file__, str(given.work / name), "--once", str(plan)]
    return subprocess.Popen(argv, start_new_session=True)


if __name__ == "__main__":
    main()
