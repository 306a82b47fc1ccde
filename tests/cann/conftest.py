"""A project of npusmith's own, written anew for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusmith.ir.dtypes import DType
from npusmith.ir.nodes import Const
from npusmith.ir.spec import OpSpec, Port
from npusmith.lang import parse
from npusmith.lower import lower, write_project
from npusmith.target.chips import find_chip

TEXT = """
@host
def host(x, y):
    launch(max_pool_2d, 1)
@kernel
def max_pool_2d(x: input(float32), y: output(float32)):
    a = ub(64, float32)
    b = ub(64, float32)
    with copy_in:
        load(a, x, 0)
    with compute:
        exp(b, a, 64)
    with copy_out:
        store(y, b, 64)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    chip = find_chip("910B2")
    port = Port("x", DType.FLOAT32, (64,))
    out = Port("y", DType.FLOAT32, (64,), dims=(Const(64),))
    folder = tmp_path / "a project"
    write_project(lower(parse(TEXT), chip), chip, folder, OpSpec("max_pool_2d", (port,), (out,)))
    return folder
