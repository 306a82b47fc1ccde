"""What the writer and the lowering make of five frozen graphs; UPDATE_GOLDENS=1 accepts others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from npusmith.ir.text import show
from npusmith.lower import lower, project_files
from npusmith.plan import write
from npusmith.target.chips import find_chip

GOLDENS = Path(__file__).parent / "golden"
CHOSEN = {
    "softmax": "activation/softmax@true",
    "new_gelu": "activation/min_gpt_new_gelu@true",
    "layer_norm": "normalization/layer_norm@true",
    "average_pooling": "pooling/average_pooling_2d@true",
    "embedding": "index/embedding@true",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_program_and_the_kernel_are_what_they_were(name: str, frozen: Any) -> None:
    chip = find_chip("910B2")
    plan = write(frozen[0][CHOSEN[name]].graph, f"{name}_custom", chip)
    files = project_files(lower(plan.program, chip), chip, plan.spec)
    texts = {
        f"{name}.tile.txt": show(plan.program),
        f"{name}.cpp.txt": files[f"op_kernel/{name}_custom.cpp"],
    }
    for file, text in texts.items():
        golden = GOLDENS / file
        if os.environ.get("UPDATE_GOLDENS") == "1":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        assert golden.read_text(encoding="utf-8") == text, f"UPDATE_GOLDENS=1 accepts {file}"
