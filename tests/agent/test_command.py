"""`npusmith generate --writer agent` against a real server process, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from agentcases import PROGRAM, fenced


def npusmith(*args: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NPUSMITH_API_KEY": "sk-to-be-kept-secret"}
    return subprocess.run(
        [sys.executable, "-m", "npusmith", *map(str, args), "--json"],
        capture_output=True, text=True, env=env, timeout=300, check=False,
    )  # fmt: skip


def test_a_model_behind_a_url_writes_an_operator(serve, task_file: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    typo = PROGRAM.replace("with compute:", "with computing:")
    url = serve(
        [
            {"contains": ["## Findings", "lang-statement"], "replies": [fenced(PROGRAM)]},
            {"replies": [fenced(typo)]},
        ]
    )
    out = tmp_path / "out"
    done = npusmith(
        "generate", task_file, "--writer", "agent", "--model", "m", "--base-url", url,
        "--samples", 1, "--out", out, "--record", tmp_path / "calls.jsonl",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["verdict"], said["provenance"]["ended"]) == ("pass", "target")
    assert said["provenance"]["turns"] == 2
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {
        "tiny_custom.tile.py",
        "op_kernel/tiny_custom.cpp",
        "result.json",
        "report.html",
    } <= names
    everywhere = [*out.rglob("*"), *tmp_path.glob("out-journal/*"), tmp_path / "calls.jsonl"]
    secret = [path for path in everywhere if path.is_file() and b"sk-to-be" in path.read_bytes()]
    assert secret == []
    assert "sk-to-be" not in done.stdout + done.stderr


def test_a_budget_of_nothing_is_refused_before_anything_is_done(
    task_file: Path, tmp_path: Path
) -> None:
    done = npusmith(
        "generate", task_file, "--writer", "agent", "--model", "scripted", "--budget-tokens", 0,
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert json.loads(done.stdout)["error"]["code"] == "budget-zero"
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
