"""The agent as a writer of a bench, on a task that an earlier session has prepared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from agentcases import PROGRAM, fenced

from npusmith.agent import tasks
from npusmith.agent.writer import AgentWriter
from npusmith.bench.model import Brief, Item
from npusmith.bench.plan import judge_digest
from npusmith.bench.writers import open_writer
from npusmith.errors import NpusmithError
from npusmith.task.prepared import Prepared
from npusmith.task.trials import DATA

WRONG = PROGRAM.replace("adds(t, t, 1.0, n)", "adds(t, t, 2.0, n)")
ITEM = Item(suite="s", name="tiny", category="activation", source="tiny.py", digest="d")


def writer(folder: Path, *texts: str, options: str = "samples=1,rounds=0") -> AgentWriter:
    rules = [
        {"seeds": [1000 * number, number], "replies": [text]} for number, text in enumerate(texts)
    ]
    script = folder / "script.json"
    script.write_text(json.dumps({"rules": rules}))
    return AgentWriter(f"model=scripted:{script},journal={folder / 'journal'},{options}", "910B2")


def lay_out(tiny: Prepared, folder: Path) -> None:
    """What an earlier session of the same task leaves."""
    home = folder / "journal" / "tasks" / f"{tiny.task.digest[:16]}-{judge_digest()[:16]}"
    shutil.copytree(tiny.folder, home / DATA)


def test_a_candidate_is_a_project_and_a_reply_without_one_is_a_refusal(
    tiny: Prepared, tmp_path: Path
) -> None:
    lay_out(tiny, tmp_path)
    brief = Brief(item=ITEM, reference=tiny.task.text, path=tiny.task.path, operator="tiny_custom")
    made = writer(tmp_path, fenced(WRONG))  # legal, and so a project: the suite is to judge it
    first = made.write(brief, 0, 7)
    assert {"op_kernel/tiny_custom.cpp", "tiny_custom.tile.py"} <= set(first.files)
    assert (first.refusal, first.seed, first.writer[:6]) == ("", 7, "agent:")
    assert first.tokens > 1000
    assert made.write(brief, 0, 7).digest == first.digest  # from the journal: no script is needed
    other = writer(tmp_path, "", "", "Prose.").write(brief, 2, 7)
    assert other.refusal.startswith("agent-none: no reply held a candidate")


def test_an_item_that_only_its_suite_can_judge_gets_one_answer_to_the_suites_prompt(
    tmp_path: Path,
) -> None:
    brief = Brief(item=ITEM, reference="", prompt="Write it.", formats=("kernel_only",))
    made = writer(tmp_path, fenced("kernel"), "Prose.")
    assert made.write(brief, 0, 7).format == "kernel_only"
    assert made.write(brief, 1, 7).refusal.startswith("reply-no-code")
    nothing = Brief(item=ITEM, reference="", formats=("six",))
    assert made.write(nothing, 0, 7).refusal.startswith("usage")


def test_a_bench_opens_it_by_its_options() -> None:
    found = open_writer("agent:model=scripted,samples=2")
    assert found.name == "agent:scripted"
    with pytest.raises(NpusmithError) as caught:
        open_writer("agent:model=m")
    assert caught.value.code == "model-spec"


def test_a_prepared_task_that_was_damaged_is_made_again(
    tiny: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tiny, tmp_path)
    home = tmp_path / "journal" / "tasks"
    with tasks.open_prepared(tiny.task.path, home) as found:
        assert found.graph == tiny.graph
    next(home.rglob("*.bin")).write_bytes(b"")
    made: list[Path] = []

    def again(task: object, folder: Path) -> Prepared:
        made.append(folder)
        return tiny

    monkeypatch.setattr(tasks, "prepare", again)
    with tasks.open_prepared(tiny.task.path, home):
        assert len(made) == 1
