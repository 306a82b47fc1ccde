"""`npusmith generate` on the reference files of a MultiKernelBench checkout, one after another.

    git -C CHECKOUT worktree add OLD 6254b8d        # the shapes of December 2025
    python runs/multikernelbench.py --root OLD/reference --out rows.jsonl activation loss

One JSON row per task: category, task, verdict, rung, why (what stopped it), weak_task, findings and
seconds. The checkout is the user's; nothing of it is kept here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("categories", nargs="+", help="a category, or category/task")
    parser.add_argument("--root", type=Path, required=True, help="the reference folder")
    parser.add_argument("--out", type=Path, default=Path("rows.jsonl"))
    parser.add_argument("--seconds", type=float, default=240, help="limit for each task")
    options = parser.parse_args()
    for task in _tasks(options.root, options.categories):
        row = {"category": task.parent.name, "task": task.stem, **_generate(task, options.seconds)}
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row["category"], row["task"], row["verdict"], row["why"], file=sys.stderr)


def _tasks(root: Path, names: list[str]) -> list[Path]:
    found = []
    for name in names:
        found += sorted(root.glob(f"{name}.py" if "/" in name else f"{name}/*.py"))
    if not found:
        raise SystemExit(f"no reference files of {names} below {root}")
    return found


def _generate(task: Path, seconds: float) -> dict[str, Any]:
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "npusmith", "generate", str(task), "--json"]
        try:
            done = subprocess.run(
                [*command, "--out", str(Path(work, "out"))], capture_output=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return _row("timeout", "", f"not ended after {seconds:g} s", {}, clock)
    data: dict[str, Any] = json.loads(done.stdout)
    return _row(str(data["verdict"]), str(data.get("rung")), _why(data), data, clock)


def _why(data: dict[str, Any]) -> str:
    if data.get("error"):
        return str(data["error"]["message"])
    bad = [item for item in data["trials"] if not item["passed"] and not item["skipped"]]
    return "; ".join(f"{item['name']}: {item['message']}" for item in bad)[:500]


def _row(verdict: str, rung: str, why: str, data: dict[str, Any], clock: float) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "rung": rung,
        "why": why,
        "weak_task": data.get("weak_task") or [],
        "findings": [item["code"] for item in data.get("findings") or []],
        "seconds": round(time.monotonic() - clock, 1),
    }


if __name__ == "__main__":
    main()
