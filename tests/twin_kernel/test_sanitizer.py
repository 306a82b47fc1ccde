"""Order and contents of memory: for each check a kernel that is caught, a near twin that passes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

from npusmith.errors import CODES, Level

HERE = Path(__file__).parent
TEXTS = {name: (HERE / f"faults_{name}.cpp").read_text() for name in ("order", "shadow")}
PAIRS = [
    (group, name)
    for group, text in TEXTS.items()
    for name in re.findall(r"^BOTH\((\w+)\)", text, re.MULTILINE)
]
NOT_AS_NAMED = {"hazard_barrier_of_the_pipe_is_no_event": "hazard"}


def _code(name: str) -> str:
    """The code of the table that a pair's name begins with."""
    words = name.removeprefix("manual_").replace("_", "-")
    longest = max((code for code in CODES if words.startswith(code)), key=len)
    return NOT_AS_NAMED.get(name, longest)


def _line(group: str, name: str) -> int:
    text = TEXTS[group]
    start = text.index(f"BOTH({name})")
    return text[: text.index("// caught", start)].count("\n") + 1


@pytest.fixture(scope="session")
def groups(runtime: Runtime) -> dict[str, Kernels]:
    header = f'#include "{HERE / "faults.h"}"'
    return {
        group: build_kernels(runtime, text.replace('#include "faults.h"', header), f"faults_{group}")
        for group, text in TEXTS.items()
    }


def _launch(kernels: Kernels, entry: str, *, blocks: int = 1, **options: bool) -> Outcome:
    def floats() -> np.ndarray:
        return np.zeros(4096, np.float32)

    tensors = [
        Tensor(np.ones(4096, np.float32), "x", writable=False),
        Tensor(floats(), "y"),
        Tensor(floats(), "workspace", blank=True, scratch=True),
        Tensor(floats(), "z", blank=True),
    ]
    return kernels.launch(entry, tensors, blocks=blocks, **options)


def _run(groups: dict[str, Kernels], group: str, kind: str, name: str) -> Outcome:
    blocks = 2 if name.startswith("gm_") else 1
    note = CODES[_code(name)].level is Level.NOTE
    manual = name.startswith("manual_")
    return _launch(
        groups[group], f"{kind}_{name}", blocks=blocks, notes=note, auto_sync=not manual
    )


@pytest.mark.parametrize(("group", "name"), PAIRS)
def test_the_faulty_kernel_is_caught_on_its_line(
    groups: dict[str, Kernels], group: str, name: str
) -> None:
    outcome = _run(groups, group, "bad", name)
    assert {item.code for item in outcome.findings} == {_code(name)}
    finding = outcome.findings[0]
    assert finding.line == _line(group, name)
    assert finding.level is CODES[finding.code].level
    assert finding.message in finding.render()


@pytest.mark.parametrize(("group", "name"), PAIRS)
def test_its_near_twin_passes(groups: dict[str, Kernels], group: str, name: str) -> None:
    outcome = _run(groups, group, "good", name)
    assert outcome.findings == ()
    assert outcome.finished
