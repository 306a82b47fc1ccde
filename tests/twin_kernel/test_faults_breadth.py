"""Pairs of kernels for pools, the stack buffer, dequantisation and interpolation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from native import Kernels, Runtime, build_kernels

from npusmith.errors import CODES

TEXT = (Path(__file__).parent / "faults_breadth.cpp").read_text()
NAMES = re.findall(r"^BOTH\((\w+)\)", TEXT, re.MULTILINE)


def _code(name: str) -> str:
    words = name.replace("_", "-")
    return max((code for code in CODES if words.startswith(code)), key=len)


def _line(name: str) -> int:
    start = TEXT.index(f"BOTH({name})")
    return TEXT[: TEXT.index("// caught", start)].count("\n") + 1


@pytest.fixture(scope="module")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, TEXT, "faults_breadth")


@pytest.mark.parametrize("name", NAMES)
def test_the_faulty_kernel_is_caught(kernels: Kernels, name: str) -> None:
    outcome = kernels.launch(f"bad_{name}", [])
    assert {item.code for item in outcome.findings} == {_code(name)}
    assert outcome.findings[0].line == _line(name)


@pytest.mark.parametrize("name", NAMES)
def test_its_near_twin_passes(kernels: Kernels, name: str) -> None:
    outcome = kernels.launch(f"good_{name}", [])
    assert outcome.findings == ()
    assert outcome.finished
