"""Files that nobody means to check, and places that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.pipeline import check, generate
from npusmith.store.record import RESULT, read_result
from npusmith.target.chips import find_chip

CHIP = find_chip("910B2")


class Silent:
    def step(self, name: str, detail: str = "") -> None:
        pass


@pytest.mark.parametrize("name", ["pipe.py", "pipe.cpp", "binary.py", "binary.cpp", "large.py"])
def test_a_file_that_is_no_source_is_a_failed_verdict(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name.startswith("pipe"):
        os.mkfifo(file)
    else:
        file.write_bytes(b"\xf5\0" if name.startswith("binary") else b"#" * (2 << 20))
    verdict = check(file, CHIP)
    codes = {item.code for item in verdict.findings} | {(verdict.error or {}).get("code")}
    assert verdict.verdict == "fail"
    assert codes & {"file-unusable", "project-unreadable"}


def test_a_folder_called_like_a_program_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").mkdir()
    assert check(tmp_path / "kernels.py", CHIP).findings[0].code == "project-no-kernel"


def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"\xff\xfe")
    with pytest.raises(NpusmithError) as caught:
        generate(tmp_path / "task.py", out, CHIP, "strict", Silent())
    assert caught.value.code == "file-unusable"
    assert not list(tmp_path.iterdir())
    json.dumps(caught.value.record()).encode()


def test_a_hostile_result_is_nobody_s_result(tmp_path: Path) -> None:
    (tmp_path / RESULT).write_text("[" * 100_000)
    assert read_result(tmp_path) is None
    (tmp_path / RESULT).unlink()
    os.mkfifo(tmp_path / RESULT)
    assert read_result(tmp_path) is None
