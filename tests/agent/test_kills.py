"""`kill -9` at moments drawn from a seed: a resumed run ends with the records of a whole one."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from npusmith.store.turns import Journal, open_journal

PROGRAM = Path(__file__).with_name("lightrun.py")
SESSIONS = 10
MOST_LOST = 2  # calls under way when a process is killed


def start(url: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PROGRAM), url, str(folder), str(SESSIONS)])


def everything(store: Journal) -> list[object]:
    return [(name, why, store.turns(name)) for name, why in store.sessions()]


def test_a_killed_run_goes_on_and_nothing_is_repeated_or_lost(serve, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rules = [{"replies": [f"```python\n@kernel\nn = {n * 5 % 23}\n```" for n in range(1, 24)]}]
    url = serve(rules)
    assert start(url, tmp_path / "whole").wait(120) == 0
    draw, kills, killed = random.Random(5), 0, tmp_path / "killed"
    while True:
        process = start(url, killed)
        try:
            process.wait(0.75 + draw.random() * 0.5 if kills < 3 else 120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            continue
        assert process.returncode == 0
        break
    with open_journal(tmp_path / "whole") as one, open_journal(killed) as other:
        assert everything(one) == everything(other)
        assert other.verify() == []
        assert one.spent() == other.spent()
        turns = one.spent().turns
    calls = (killed / "calls.jsonl").read_text().count("\n")
    assert turns <= calls <= turns + MOST_LOST * kills
