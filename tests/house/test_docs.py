"""The documentation says what the program does: generated pages, commands, codes, links, README."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main

from npusmith.cli.exits import AREA_EXITS, CODE_EXITS, EXITS, Exit, exit_of
from npusmith.cli.main import build
from npusmith.cli.pages import all_pages, leaves
from npusmith.errors import CODES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GROUP = typer.main.get_command(build())
PAGES = all_pages(GROUP)
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_what_its_table_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name], "run `npusmith docs`"


def test_every_command_and_option_is_in_the_page_of_the_command_line() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in leaves(GROUP):
        section = page.split(f"\n## npusmith {name}\n")[1].split("\n## ")[0]
        for item in command.params:
            names = [item.metavar] if item.param_type_name == "argument" else item.opts
            assert all(f"`{option}`" in section for option in names if option != "--help")


def test_every_option_says_what_it_does() -> None:
    for _, command in leaves(GROUP):
        assert command.help
        assert all(item.help for item in command.params if item.name != "help")


def test_every_exit_code_is_in_the_table_once() -> None:
    assert [row.exit for row in EXITS] == list(Exit)


def test_every_exception_from_the_areas_is_a_code() -> None:
    assert set(CODE_EXITS) <= set(CODES)


def test_every_error_code_has_an_exit_code_and_none_means_success() -> None:
    assert {row.area for row in CODES.values()} <= set(AREA_EXITS)
    assert all(exit_of(name) is not Exit.PASS for name in CODES)


def test_every_file_of_codes_is_read_and_no_code_stands_in_two() -> None:
    folder = ROOT / "src" / "npusmith" / "codes"
    tables = [tomllib.loads(file.read_text())["code"] for file in folder.glob("*.toml")]
    assert sorted(name for table in tables for name in table) == sorted(CODES)


@pytest.mark.parametrize("name", sorted(CODES))
def test_an_error_code_is_named_and_explained(name: str) -> None:
    row = CODES[name]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert row.meaning.endswith(".")
    assert row.legal
    assert row.hint
    assert f"### `{name}`" in PAGES["errors.md"]


def test_the_help_lists_every_tolerance() -> None:
    from npusmith.task.tolerance import PROFILES

    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert all(profile in page for profile in PROFILES)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_inside_the_repository_leads_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    inner = [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]
    assert [link for link in inner if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_script_that_a_page_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:python |`)((?:runs|bench|tests)/[\w/]+\.py)\b", text))
    here = {name for name in named if (ROOT / name).is_file()}
    # a page may name a module by its path below the package
    inside = {name for name in named if (ROOT / "src" / "npusmith" / name).is_file()}
    assert named - here - inside == set()


def test_every_page_is_reachable_from_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    names = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert [name for name in names if name != "README.md" and f"({name})" not in index] == []


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [block.strip() for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert len(commands) == 2
    assert all(command in script for command in commands)


def test_the_readme_shows_one_picture_and_no_badge() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text())
    assert pictures == ["docs/pipeline.svg"]


def test_the_excerpts_of_the_readme_are_what_its_first_command_writes() -> None:
    folder = ROOT / "out" / "softmax"
    if not (folder / "result.json").is_file():
        pytest.skip("the first command of README has not run here; CI runs it before the tests")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for language, path in (("python", "softmax_custom.tile.py"), ("cpp", "op_kernel/*.cpp")):
        (excerpt,) = re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)
        (file,) = folder.glob(path)
        written = {line.strip() for line in file.read_text(encoding="utf-8").splitlines()}
        lines = [line.strip() for line in excerpt.splitlines() if line.strip()]
        assert [line for line in lines if line not in written] == []
