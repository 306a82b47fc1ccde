"""What four kernels look like on disk; UPDATE_GOLDENS=1 writes the goldens anew."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npusmith.lower import lower, project_files
from npusmith.target.chips import Chip

GOLDENS = Path(__file__).parent / "goldens"
# a plain one, one with scalar reads, one across cores, one with padded rows
CHOSEN = ["add", "softmax_online", "mean_all", "first_columns_rows"]


@pytest.mark.parametrize("name", CHOSEN)
def test_the_files_of_a_kernel_are_what_they_were(name: str, samples: Any, chip: Chip) -> None:
    program = samples.program(name)
    shapes, out_shapes = samples.shapes(name)[0]
    spec = replace(samples.spec(program, shapes, out_shapes), legal=())  # ranks are checked
    for path, text in project_files(lower(program, chip), chip, spec).items():
        if not path.endswith((".cpp", ".h", ".asc")) and name != "add":
            continue  # build files and the like differ in names only: one set of them is enough
        golden = GOLDENS / name / (path.replace("/", "__") + ".txt")
        if os.environ.get("UPDATE_GOLDENS") == "1":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        assert golden.read_text(encoding="utf-8") == text, f"UPDATE_GOLDENS=1 accepts {path}"
