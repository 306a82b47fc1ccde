"""What the library functions check: one kernel that must be caught, a near twin that must pass."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

from npusmith.errors import CODES

HERE = Path(__file__).parent
# what the unit of a project that is also configured for Atlas 310P begins with
PROPOSALS = (
    "namespace twin { template <int> struct RegionProposals;"
    " template <> struct RegionProposals<0> {}; }\n"
)
FAULTS = (HERE / "faults_library.cpp").read_text()
PRELUDE = PROPOSALS + (HERE / "library.h").read_text()
NAMES = re.findall(r"^BOTH\((\w+)\)", FAULTS, re.MULTILINE)


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, PRELUDE + FAULTS, "faults_library")


def _code(name: str) -> str:
    words = name.replace("_", "-")
    return max((code for code in CODES if words.startswith(code)), key=len)


def _line(name: str) -> int:
    start = FAULTS.index(f"BOTH({name})")
    before = PRELUDE + FAULTS[: FAULTS.index("// caught", start)]
    return before.count("\n") + 1


def _launch(kernels: Kernels, entry: str) -> Outcome:
    items = np.zeros(256, [("score", np.float32), ("index", np.float32)])
    items["score"] = np.arange(256)[::-1]
    return kernels.launch(entry, [Tensor(items, "items", writable=False)])


@pytest.mark.parametrize("name", NAMES)
def test_the_faulty_kernel_is_caught_on_its_line(kernels: Kernels, name: str) -> None:
    outcome = _launch(kernels, f"bad_{name}")
    assert {item.code for item in outcome.findings} == {_code(name)}
    assert outcome.findings[0].line == _line(name)


@pytest.mark.parametrize("name", NAMES)
def test_its_near_twin_passes(kernels: Kernels, name: str) -> None:
    outcome = _launch(kernels, f"good_{name}")
    assert outcome.findings == ()
    assert outcome.finished
