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
    texts = {group: text.replace('#include "faults.h"', header) for group, text in TEXTS.items()}
    return {group: build_kernels(runtime, text, f"faults_{group}") for group, text in texts.items()}


def _launch(kernels: Kernels, entry: str, *, blocks: int = 1, **options: bool) -> Outcome:
    def floats() -> np.ndarray:
        return np.zeros(4096, np.float32)

    tensors = [
        Tensor(np.ones(4096, np.float32), "x", writable=False),
        Tensor(floats(), "y"),
        Tensor(floats(), "workspace", blank=True, scratch=True),
        Tensor(floats(), "z", blank=True),
        Tensor(floats(), "w", writable=False, pad=64),
    ]
    return kernels.launch(entry, tensors, blocks=blocks, **options)


def _run(groups: dict[str, Kernels], group: str, kind: str, name: str) -> Outcome:
    blocks = 2 if name.startswith(("gm_race", "gm_line", "gm_cache")) else 1
    note = CODES[_code(name)].level is Level.NOTE
    manual = name.startswith("manual_")
    return _launch(groups[group], f"{kind}_{name}", blocks=blocks, notes=note, auto_sync=not manual)


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


def test_auto_sync_hides_nothing_between_other_pipes(groups: dict[str, Kernels]) -> None:
    outcome = _launch(groups["order"], "bad_hazard_load_then_compute", auto_sync=True)
    assert [item.level for item in outcome.findings] == [Level.ERROR]


def test_a_hazard_names_both_places_and_the_event_that_is_missing(
    groups: dict[str, Kernels],
) -> None:
    finding = _launch(groups["order"], "bad_hazard_load_then_compute").findings[0]
    assert "Adds on V reads UB bytes 0.." in finding.message
    assert "DataCopy on MTE2 may still be writing" in finding.message
    assert f":{_line('order', 'hazard_load_then_compute') - 2}" in finding.seen
    assert "SetFlag<HardEvent::MTE2_V>" in finding.hint


LAST_ONE_WINS = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" void entry(void **args) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]));
  gm.SetValue(0, static_cast<float>(GetBlockIdx()));
}"""


def test_another_order_of_the_blocks_shows_what_depends_on_it(runtime: Runtime) -> None:
    kernels = build_kernels(runtime, LAST_ONE_WINS, "order_dependent")
    seen = set()
    for seed in range(6):
        y = np.zeros(16, np.float32)
        outcome = kernels.launch("entry", [Tensor(y, "y")], blocks=8, shuffle=seed)
        assert "gm-line" in outcome.codes
        seen.add(float(y[0]))
    assert len(seen) > 1 and 7.0 in seen
