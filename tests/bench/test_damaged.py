"""A damaged store ends every command that opens it with a code, never with a traceback."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.bench.pool import LocalPool
from npusmith.bench.runner import run
from npusmith.cli.main import call
from npusmith.errors import NpusmithError
from npusmith.store.database import FILE

FINE = (
    "run-missing",
    "store-damaged",
    "store-newer",
    "file-denied",
    "file-unusable",
    "file-missing",
    "knowledge-damaged",
    "run-changed",
)
Damage = Callable[[Path, bytes], None]


def scribble(seed: int) -> Damage:
    def damage(path: Path, data: bytes) -> None:
        draw, whole = random.Random(seed), bytearray(data)
        for _ in range(60):
            whole[draw.randrange(100, len(whole))] = draw.randrange(256)
        path.write_bytes(whole)

    return damage


def change(*statements: str) -> Damage:
    def damage(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        link = sqlite3.connect(path)
        link.execute("PRAGMA foreign_keys = OFF")
        for name in [row[0] for row in link.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:  # fmt: skip # noqa: E501
            link.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            link.execute(statement)
        link.commit()
        link.close()

    return damage


FILES: dict[str, Damage] = {
    "nothing": lambda path, data: path.write_bytes(b"") and None,
    "text": lambda path, data: path.write_bytes(b"hello " * 3000) and None,
    "half": lambda path, data: path.write_bytes(data[: len(data) // 2]) and None,
    "first-page": lambda path, data: path.write_bytes(data[:4096]) and None,
    "header": lambda path, data: path.write_bytes(data[:100]) and None,
    "folder": lambda path, data: path.mkdir(),
    "pipe": lambda path, data: os.mkfifo(path),
    "dangling": lambda path, data: path.symlink_to("/nonexistent/x"),
    **{f"scribble-{seed}": scribble(seed) for seed in range(8)},
}
RUN = {
    "no-settings": change("DROP TABLE run"),
    "no-items": change("DROP TABLE items"),
    "no-units": change("DROP TABLE units"),
    "no-records": change("DROP TABLE records"),
    "no-proposals": change("DROP TABLE proposals"),
    "plan": change("UPDATE run SET value = '{'"),
    "item": change("UPDATE items SET data = '[1]'"),
    "no-text": change("UPDATE items SET data = CAST(x'ff00fe' AS TEXT)"),
    "record": change("UPDATE records SET data = '{}'"),
    "detail": change("UPDATE records SET detail = x'ff00fe'"),
    "units": change("UPDATE units SET item = '{' WHERE id = 1"),
}
KNOWLEDGE = {
    "no-items": change("DROP TABLE items"),
    "no-history": change("DROP TABLE history"),
    "item": change("UPDATE items SET data = '[1]'"),
    "no-text": change("UPDATE items SET data = CAST(x'ff00fe' AS TEXT)"),
}


def code_of(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The code that a command ends with; "" when it worked all the same."""
    call([*args, "--json"])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return str((json.loads(said.out).get("error") or {}).get("code", ""))


@pytest.mark.parametrize("name", [*FILES, *RUN])
def test_a_damaged_run_is_named(make_plan, tmp_path, capsys, name) -> None:
    plan = make_plan(add="pass", mul="wrong")
    run(plan, tmp_path / "whole", LocalPool(1))
    data = (tmp_path / "whole" / FILE).read_bytes()
    for what in ("report", "resume"):
        folder = tmp_path / what
        folder.mkdir()
        {**FILES, **RUN}[name](folder / FILE, data)
        if what == "report":
            assert code_of(capsys, "report", str(folder)) in ("", *FINE)
            continue
        try:
            run(plan, folder, LocalPool(1), resume=True)
        except NpusmithError as error:
            assert error.code in FINE


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("knowledge") / "k.db"
    assert call(["knowledge", "list", "--store", str(file)]) == 0
    return file.read_bytes()


@pytest.mark.parametrize("name", [*FILES, *KNOWLEDGE])
def test_a_damaged_knowledge_file_is_named(knowledge, tmp_path, capsys, name) -> None:
    file = tmp_path / "k.db"
    {**FILES, **KNOWLEDGE}[name](file, knowledge)
    for args in (("list",), ("search", "tail"), ("export", str(tmp_path / "out"))):
        found = code_of(capsys, "knowledge", *args, "--store", str(file))
        assert found in ("", *FINE)
    broken = name in KNOWLEDGE or name in ("text", "half", "pipe", "dangling")
    assert bool(found) == broken or name.startswith(
        ("scribble", "first", "header", "nothing", "folder")
    )


def test_a_result_that_cannot_be_written_is_named(tmp_path, capsys) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "t.py").write_text("class Model: pass\n")
    for out in (tmp_path / "file" / "out", tmp_path / "file"):
        args = ("generate", str(tmp_path / "t.py"), "--out", str(out))
        assert code_of(capsys, *args) in (*FINE, "folder-foreign")
    for place in (tmp_path, tmp_path / "none", tmp_path / "file"):
        assert code_of(capsys, "report", str(place)) in FINE
