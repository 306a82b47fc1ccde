"""Words that no file of the repository may hold: notes to ourselves, machines, others' licences."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written in pieces, so that this file does not hold them itself.
FORBIDDEN = {
    "unfinished work": r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b",
    "a stub": r"raise NotImplemented" r"Error",
    "a path of one machine": r"/wo" r"rk/(?:main|venv|shared)|/ro" r"ot/\.cache|/opt/wh" r"eels",
    "a licence that is not ours": r"CANN Open So"
    r"ftware License|Copyright \(c\).{0,20}Hua"
    r"wei",
    "a local package index": r"file:/" r"//opt|index-url=htt" r"p:",
}
BINARY = {".png", ".npy", ".npz", ".whl", ".gch", ".xz"}


def files() -> list[Path]:
    """Tracked files, and those that would be tracked."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    argv = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = (ROOT / name for name in listed.splitlines())
    return [path for path in found if path.is_file() and path.suffix not in BINARY]


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in files()
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if pattern.search(line)
    ]
    assert hits == []
