"""Files of every wrong kind given to `npusmith run`: a stable code, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npusmith.cli.exits import Exit
from npusmith.cli.main import call

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.randn(4)]
def get_init_inputs():
    return []
"""


def code_of(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    exit_code = call([*args, "--json"])
    out = capsys.readouterr()
    assert "Traceback" not in out.err
    assert exit_code not in (Exit.PASS,)
    document = json.loads(out.out)
    error = document.get("error") or document
    return str(error.get("code"))


@pytest.fixture
def task(tmp_path: Path) -> Path:
    file = tmp_path / "task.py"
    file.write_text(TASK)
    return file


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.json", "{", "format-syntax"),
        ("a.json", '{"sources": []}', "format-part"),
        ("a.json", '{"sources": [{"path": "../x.cpp", "content": ""}]}', "format-part"),
        ("a.py", "kernel_src = ", "format-syntax"),
        ("a.py", "kernel_src = ''", "format-part"),
        ("a.py", "\0", "format-syntax"),
    ],
)
def test_a_submission_that_is_none_is_refused(
    tmp_path: Path, task: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, code: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert code_of(["run", str(file), "--task", str(task)], capsys) == code


def test_a_project_without_a_task_needs_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(["run", str(tmp_path)], capsys) == "usage"


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(["run", str(tmp_path / "gone.asc")], capsys) == "file-missing"


def test_a_source_without_main_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.asc"
    file.write_text("int helper() { return 0; }\n")
    assert code_of(["run", str(file)], capsys) == "program-missing"


@pytest.mark.parametrize(
    ("given", "readers"),
    [
        (("--model", "m"), "--writer agent or --writer lm; this is plan"),
        (("--writer", "lm", "--rounds", "2"), "--writer agent; this is lm"),
        (("--writer", "agent", "--no-search"), "--writer plan; this is agent"),
    ],
)
def test_an_option_that_the_writer_does_not_read_is_refused(
    given: tuple[str, ...], readers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["generate", "task.py", *given]) == 2
    assert readers in capsys.readouterr().err


def test_a_seed_that_is_too_large_is_a_usage_error(
    tmp_path: Path, task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["run", str(tmp_path), "--task", str(task), "--seed", str(1 << 70)]
    assert code_of(args, capsys) == "usage"
