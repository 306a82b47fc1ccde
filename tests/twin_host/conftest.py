"""Projects to build and run, and copies of them with one thing changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip, find_chip
from npusmith.twin import Build, build, read_project

PROJECTS = Path(__file__).parents[1] / "projects"
F32 = DType.FLOAT32

Edit = Callable[..., Path]


@pytest.fixture(scope="session")
def chip() -> Chip:
    return find_chip("910B2")


@pytest.fixture
def edited(tmp_path: Path) -> Edit:
    """edited("add", {"op_kernel/add_custom.cpp": [("old", "new")]}) -> a changed copy's root."""

    def copy(name: str, changes: dict[str, list[tuple[str, str]]] | None = None) -> Path:
        root = tmp_path / name
        shutil.copytree(PROJECTS / name, root)
        for file, pairs in (changes or {}).items():
            text = (root / file).read_text()
            for old, new in pairs:
                assert old in text, old
                text = text.replace(old, new)
            (root / file).write_text(text)
        return root

    return copy


@pytest.fixture(scope="session")
def add(chip: Chip) -> Build:
    return build(read_project(PROJECTS / "add"), chip, (F32, F32, F32))
