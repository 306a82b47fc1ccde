"""Defaults out of npusmith.toml and pyproject.toml: what they set, and what a project may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from npusmith.bench.runner import Progress
from npusmith.cli.bench import AskedOptions, progress_line
from npusmith.cli.main import build, call
from npusmith.cli.options import SearchOptions
from npusmith.cli.settings import PROJECT_OPTIONS, Settings, leaves, read_settings
from npusmith.errors import NpusmithError
from npusmith.open_writer import open_writer, whole_spec
from npusmith.target.chips import find_chip
from npusmith.writers.plan import DEFAULT_SEARCH, PlanWriter

GENERATE = ["generate", "relu.py"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and no file of the user's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def group() -> Any:
    return get_command(build())


def read(group: Any, folder: Path, text: str, args: list[str] | None = None) -> Settings:
    (folder / "npusmith.toml").write_text(text, encoding="utf-8")
    return read_settings(group, GENERATE if args is None else args, folder)


def test_a_table_of_a_command_is_for_that_command_alone(group: Any, project: Path) -> None:
    found = read(group, project, 'chip = "910B3"\nseed = 7\n[generate]\nsearch = 64\nseed = 8\n')
    assert found.defaults["generate"] == {"chip": "910B3", "seed": 8, "search": 64}
    assert found.defaults["run"] == {"chip": "910B3", "seed": 7}
    assert "search" not in found.defaults["bench"]
    assert found.applied == (
        "chip = 910B3 (npusmith.toml)",
        "seed = 8 (npusmith.toml)",
        "search = 64 (npusmith.toml)",
    )


@pytest.mark.parametrize("more", [["--seed", "1"], ["--seed=1"], ["--no-auto-sync"]])
def test_what_the_command_line_says_itself_is_not_told_as_a_setting(
    group: Any, project: Path, more: list[str]
) -> None:
    text = "seed = 7\nauto-sync = true\n"
    told = ("seed = 7 (npusmith.toml)", "auto-sync = True (npusmith.toml)")
    found = read(group, project, text, ["run", "project", *more])
    assert found.applied == (told[:1] if "sync" in more[0] else told[1:])


def test_a_command_of_a_group_has_its_table_below_the_group(group: Any, project: Path) -> None:
    text = "[conformance.npukernelbench]\nseconds = 30\n"
    found = read(group, project, text, ["conformance", "npukernelbench", "--root", "x"])
    assert found.defaults == {"conformance": {"npukernelbench": {"seconds": 30}}}
    assert found.applied == ("seconds = 30 (npusmith.toml)",)


def test_a_repository_is_searched_to_its_root_and_no_further(group: Any, project: Path) -> None:
    inner = project / "repository" / "kernels"
    inner.mkdir(parents=True)
    (project / "npusmith.toml").write_text("seed = 1\n", encoding="utf-8")
    assert read_settings(group, GENERATE, inner).defaults == {}
    root = inner.parent
    (root / "pyproject.toml").write_text("[tool.npusmith]\nseed = 2\n", encoding="utf-8")
    assert read_settings(group, GENERATE, inner).defaults == {}  # no repository yet
    (root / ".git").mkdir()
    assert read_settings(group, GENERATE, inner).defaults["generate"] == {"seed": 2}


def test_the_users_file_sets_what_a_project_may_not_and_comes_first(
    group: Any, project: Path, tmp_path: Path
) -> None:
    own = tmp_path / "config" / "npusmith"
    own.mkdir(parents=True)
    text = 'seed = 1\nchip = "910B4"\n[generate]\nbase-url = "http://here/v1"\n'
    (own / "npusmith.toml").write_text(text, encoding="utf-8")
    found = read(group, project, "seed = 2\n")
    mine = {"seed": 2, "chip": "910B4", "base_url": "http://here/v1"}
    assert found.defaults["generate"] == mine


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[generate]\nbase-url = "http://there/v1"\n', "base-url is not for the file of a project"),
        ('[generate]\nkey-env = "SECRET"\n', "key-env is not for the file of a project"),
        ('[bench]\nwriter = "agent:model=m"\n', "writer is not for the file of a project"),
        ("[generate]\nsamples = 5000\n", "samples is not for the file of a project"),
        ('[bench]\nray = "auto"\n', "ray is not for the file of a project"),
        ('[generate]\nout = "/somewhere"\n', "out is not for the file of a project"),
        ("serch = 3\n", "no command has an option serch"),
        ("[generate]\nstrict = true\n", "generate has no option strict"),
        ("[generat]\nseed = 3\n", "there is no command generat"),
        ("[generate]\njson = true\n", "generate has no option json"),
        ("seed = \n", "Invalid value"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    group: Any, project: Path, text: str, message: str
) -> None:
    with pytest.raises(NpusmithError, match=message) as error:
        read(group, project, text)
    assert error.value.code == "settings-file"
    assert error.value.place.file.endswith("npusmith.toml")


def test_bytes_that_are_no_text_and_endless_nesting_are_refused(group: Any, project: Path) -> None:
    for content in (b"\xff\xfe", b"a = " + b"[" * 100_000, b"#" * ((1 << 20) + 1)):
        (project / "npusmith.toml").write_bytes(content)
        with pytest.raises(NpusmithError) as error:
            read_settings(group, GENERATE, project)
        assert error.value.code == "settings-file"


def test_every_name_that_a_project_may_set_is_an_option(group: Any) -> None:
    names = {name for _, command in leaves(group) for item in command.params for name in item.opts}
    assert {f"--{name}" for name in PROJECT_OPTIONS} <= names


def test_a_command_line_takes_defaults_and_checks_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "npusmith.toml").write_text('chip = "910X"\n', encoding="utf-8")
    assert call(["check", "nothing.py"]) == 2
    assert "chip-unknown" in capsys.readouterr().err
    assert call(["check", "nothing.py", "--chip", "910B2"]) == 3
    assert "npusmith.toml" not in capsys.readouterr().err  # the command line has its own
    (project / "npusmith.toml").write_text("[generate]\nsearch = -1\n", encoding="utf-8")
    assert call(["generate", "nothing.py"]) == 2
    assert "Invalid value for '--search'" in capsys.readouterr().err


def test_generate_bench_and_python_have_one_policy_of_search() -> None:
    assert SearchOptions().schedules() == DEFAULT_SEARCH
    assert SearchOptions(search=8).schedules() == 8
    assert SearchOptions(search=8, no_search=True).schedules() == 0
    assert SearchOptions(search=0).schedules() == 0
    assert AskedOptions().spec == whole_spec("plan") == f"plan:{DEFAULT_SEARCH}"
    assert open_writer("plan").name == PlanWriter(find_chip("910B2")).name == AskedOptions().spec
    assert (AskedOptions(search=8).spec, AskedOptions(no_search=True).spec) == ("plan:8", "plan:0")
    assert AskedOptions(writer="folder:answers", search=8).spec == "folder:answers"


def test_workers_have_their_old_name_too() -> None:
    for name in ("bench", "conformance npukernelbench", "judge-server", "train data"):
        leaf = dict(leaves(get_command(build())))[name]
        (item,) = [item for item in leaf.params if item.name == "workers"]
        assert item.opts == ["--workers", "--jobs"]


def test_the_pace_of_a_run_is_said_in_what_is_larger_than_one() -> None:
    made = Progress(done=0, total=6, whole=False, running=2, passed=0, rate=0.0, left=None)
    assert progress_line(made).strip() == "0 of 6+, 0 right here"
    slow = replace(made, done=3, whole=True, rate=0.01, left=300.0)
    assert progress_line(slow).strip() == "3 of 6 (50%), 0 right here, 100 s a unit, 0:05:00 left"
    assert "2.5 units/s" in progress_line(replace(slow, rate=2.5))
