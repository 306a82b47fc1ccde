"""Tutorials hold what they say: blocks run as written, and print what stands below them.

A block that a test cannot run has `<!-- not run: REASON -->` on the line before it. Of such a
block, and of the shell blocks of README and other pages, commands and options have to exist.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import typer.main
from markdown_blocks import Block, blocks, commands, indented, inline

import npusmith
from npusmith.cli.main import build
from npusmith.cli.settings import leaves

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LEAVES = dict(leaves(typer.main.get_command(build())))
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # typer gives it no name of its own
OTHER_PROGRAMS = {"accelerate", "cat", "export", "mkdir", "pip", "python"}


def run_shell(text: str, folder: Path) -> str:
    """What a block prints, as bash runs it; stops at the first command that fails."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return done.stdout


def run_python(text: str, names: dict[str, object]) -> str:
    """What a block prints; `names` holds what earlier blocks of the page defined."""
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(text, "tutorial", "exec"), names)
    return printed.getvalue()


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("bash"):
        pytest.skip("no bash")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # Python blocks of a page are one program: its classes go to the sandbox by value.
    program = ModuleType("tutorial")
    printed = ""
    ran = 0
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "text":
            wanted = lines(block.text)
            assert [line for line in wanted if line not in lines(printed)] == [], printed
            continue
        ran += 1
        if block.language == "sh":
            printed = run_shell(block.text, tmp_path)
        else:
            assert block.language == "python", f"{page.name}:{block.line}"
            printed = run_python(block.text, program.__dict__)
    assert ran >= 2


def parse(command: str) -> None:
    """Raise USAGE_ERROR where a command of npusmith, or an option of it, is not there."""
    words = shlex.split(command, comments=True)
    for ending in ("||", "&&", ">", "|"):
        words = words[: words.index(ending)] if ending in words else words
    if words[0] != "npusmith":
        assert words[0] in OTHER_PROGRAMS or "=" in words[0], command
        return
    name = next((" ".join(words[1:n]) for n in (3, 2) if " ".join(words[1:n]) in LEAVES), None)
    if name is None:
        raise typer.BadParameter(f"no such command: {command}")
    leaf = LEAVES[name]
    leaf.make_context(name, words[1 + len(name.split()) :])


def named(command: str) -> list[str]:
    """The words of a command that are neither a command nor an option of it."""
    words = [word.strip("[],.;:") for word in command.replace("|", " ").split()[1:]]
    plain = [word for word in words if word]
    name = next((" ".join(plain[:n]) for n in (2, 1) if " ".join(plain[:n]) in LEAVES), None)
    if name is None:  # a group of commands, or a placeholder
        groups = {leaf.split()[0] for leaf in LEAVES}
        return [] if plain[0] in groups or plain[0].isupper() else plain[:1]
    options = {
        option for item in LEAVES[name].params for option in (*item.opts, *item.secondary_opts)
    }
    given = (word.partition("=")[0] for word in plain if word.startswith("-"))
    return [option for option in given if option not in options and option != "--help"]


def run_by(script: str) -> list[str]:
    """Options that a script's text has."""
    return re.findall(r"""["'](--[\w-]+|-[a-z])["']""", (ROOT / script).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if inline(page)], ids=lambda page: page.stem
)
def test_commands_in_a_sentence_exist(page: Path) -> None:
    assert {command: wrong for command in inline(page) if (wrong := named(command))} == {}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if indented(page)], ids=lambda page: page.stem
)
def test_indented_commands_exist(page: Path) -> None:
    for block in indented(page):
        command = block.text.partition(" #")[0]
        words = shlex.split(command)
        if words[0] == "npusmith":
            assert named(command) == [], f"{page.name}:{block.line}"
        elif len(words) > 1 and words[1].endswith(".py"):
            options = [word.partition("=")[0] for word in words[2:] if word.startswith("-")]
            assert set(options) <= set(run_by(words[1])), f"{page.name}:{block.line}"


def unrun(page: Path) -> list[Block]:
    """Blocks of tutorials that are marked, and blocks of commands on other pages."""
    if page in TUTORIALS:
        return [block for block in blocks(page) if block.reason]
    return [
        block
        for block in blocks(page)
        if block.language == "sh"
        or (block.language == "text" and block.text.startswith("npusmith "))
    ]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if unrun(page)], ids=lambda page: page.stem
)
def test_commands_of_a_block_that_is_not_run_exist(page: Path) -> None:
    for block in unrun(page):
        if block.language == "python":
            used = re.findall(r"\bns\.(\w+)", block.text)
            compile(block.text, page.name, "exec")
            assert used and [name for name in used if not hasattr(npusmith, name)] == []
            continue
        assert block.language in ("sh", "text"), f"{page.name}:{block.line}"
        for line in commands(block.text):
            for command in line.split(" && "):
                parse(command)


@pytest.mark.parametrize(
    "command", ["npusmith generated x", "npusmith run P --tsak T", "npusmith profile"]
)
def test_a_command_that_does_not_exist_is_seen(command: str) -> None:
    with pytest.raises(USAGE_ERROR):
        parse(command)


def test_a_wrong_word_of_a_command_in_a_sentence_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Say `npusmith generate TASK [--serach 3]`, `npusmith bech x`, "
        "`npusmith bench S --jobs 2`\n\n"
        "    npusmith run P --tsak T  # two\n"
    )
    assert [named(command) for command in inline(page)] == [["--serach"], ["bech"], []]
    assert [named(block.text) for block in indented(page)] == [["--tsak"]]
