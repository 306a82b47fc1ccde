"""The commands: what they answer, and with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.cli import knowledge as commands
from npusmith.cli.exits import Exit
from npusmith.errors import NpusmithError
from npusmith.knowledge.exchange import read_seeds

PROGRAM = (
    next(item for item in read_seeds() if item.name == "tile-load-once").proofs[0].case.program
)
SHAPES = {"inputs": ["3x1003"], "outputs": ["3x1003"]}


class Silent:
    def step(self, name: str, detail: str = "") -> None: ...


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "k.db"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before.tile.py", tmp_path / "after.tile.py"
    before.write_text(PROGRAM.replace("muls(", "scale_by("))
    after.write_text(PROGRAM)
    return before, after


def test_a_fix_is_learnt_listed_served_exported_and_imported(
    store: Path, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    silent = Silent()
    learnt = commands.learn(*pair, store=store, **SHAPES)(silent)
    name = str(learnt.data["item"])
    assert learnt.data["state"] == "verified"
    rows = commands.show_list(store=store)(silent).data["items"]
    assert name in [row["name"] for row in rows] and len(rows) > 35
    now = commands.Situation(file=pair[0], code=["lang-unknown-op"], line=[17])
    words = "nothing is called 'scale_by'"
    served = commands.search.__wrapped__(words, now=now, store=store)(silent)  # type: ignore[attr-defined]
    found = served.data["served"]
    assert found[0]["item"].startswith(f"{name}@") and found[0]["edit"] == PROGRAM
    shown = commands.show(name, store=store)(silent).data
    assert shown["history"] == [["added", "taught: judged"]]
    commands.export(tmp_path / "out", name=[name], store=store)(silent)
    other = tmp_path / "other.db"
    reply = commands.import_items(tmp_path / "out", store=other)(silent)
    assert reply.exit is Exit.PASS and reply.data["hold"] == 1
    assert commands.show(name, store=other)(silent).data["state"] == "verified"


def test_what_was_not_judged_is_kept_and_not_served(store: Path, pair: tuple[Path, Path]) -> None:
    reply = commands.learn(*pair, store=store)(Silent())
    assert reply.data["state"] == "unverified"
    rows = commands.show_list(store=store)(Silent()).data["items"]
    assert reply.data["item"] not in [row["name"] for row in rows]


def test_an_imported_item_that_does_not_hold_is_not_served(
    store: Path, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    name = str(commands.learn(*pair, store=store, **SHAPES)(Silent()).data["item"])
    commands.export(tmp_path / "out", name=[name], store=store)(Silent())
    file = tmp_path / "out" / f"{name}.toml"
    file.write_text(file.read_text().replace('put = "muls(', 'put = "adds('))
    reply = commands.import_items(file, store=tmp_path / "other.db")(Silent())
    assert reply.exit is Exit.FAILED
    shown = commands.show(name, store=tmp_path / "other.db")(Silent())
    assert shown.data["state"] == "unverified"


def test_two_kernels_of_which_the_second_is_wrong_teach_nothing(
    store: Path, pair: tuple[Path, Path]
) -> None:
    pair[1].write_text(PROGRAM.replace("2.0", "3.0"))
    program = pair[0].with_name("right.tile.py")
    program.write_text(PROGRAM)
    with pytest.raises(NpusmithError) as refused:
        commands.learn(*pair, program=program, store=store, **SHAPES)(Silent())
    assert refused.value.code == "knowledge-pair" and "not accepted" in refused.value.message


@pytest.mark.parametrize("what", ["nothing", "binary", "huge"])
def test_a_file_that_is_no_kernel_is_refused(what: str, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.tile.py"
    if what == "binary":
        path.write_bytes(b"\xff\xfe\x00" * 9)
    elif what == "huge":
        path.write_text("x = 1\n" * 100_000)
    with pytest.raises(NpusmithError) as refused:
        commands.learn(path, path, store=store)(Silent())
    assert refused.value.code == ("file-missing" if what == "nothing" else "file-unusable")
