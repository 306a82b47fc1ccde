"""Operands that overlap: reported, and then computed as the chip's instructions would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native import Kernels, Outcome, Runtime, Tensor, build_kernels

from npusmith.twin.finding import Finding

HERE = Path(__file__).parent
PRELUDE = (HERE / "library.h").read_text()
TEXT = (HERE / "overlaps.cpp").read_text()
DATA = np.linspace(-4, 4, 512, dtype=np.float32)


@pytest.fixture(scope="session")
def kernels(runtime: Runtime) -> Kernels:
    return build_kernels(runtime, PRELUDE + TEXT, "overlaps")


def _line(name: str) -> int:
    start = TEXT.index(f"ENTRY({name})")
    return (PRELUDE + TEXT[: TEXT.index("// caught", start)]).count("\n") + 1


def launch(kernels: Kernels, name: str, data: np.ndarray) -> tuple[np.ndarray, Outcome]:
    out = np.zeros(512, np.float32)
    given = np.ascontiguousarray(data).view(np.float32)
    outcome = kernels.launch(
        name, [Tensor(given, "x", writable=False), Tensor(out, "z", blank=True)]
    )
    assert outcome.finished
    return out, outcome


def found(outcome: Outcome, name: str) -> Finding:
    assert len(outcome.findings) == 1 and outcome.findings[0].line == _line(name)
    return outcome.findings[0]


def test_the_upper_half_of_a_buffer_is_widened_into_all_of_it_with_a_warning(
    kernels: Kernels,
) -> None:
    halves = np.linspace(-4, 4, 1024, dtype=np.float16)
    out, outcome = launch(kernels, "widens_upwards", halves)
    assert np.array_equal(out, halves[512:].astype(np.float32))
    finding = found(outcome, "widens_upwards")
    assert (finding.code, finding.level) == ("overlap", "warning")


def test_widening_the_lower_half_reads_what_earlier_repeats_wrote(kernels: Kernels) -> None:
    halves = np.linspace(-4, 4, 1024, dtype=np.float16)
    out, outcome = launch(kernels, "widens_downwards", halves)
    memory = halves.copy()
    for repeat in range(8):  # each reads 64 halves, then writes 64 floats
        wide = memory[64 * repeat : 64 * repeat + 64].astype(np.float32)
        memory[128 * repeat : 128 * repeat + 128] = wide.view(np.float16)
    assert out.tobytes() == memory.tobytes()
    assert found(outcome, "widens_downwards").level == "error"


def test_a_repeat_reads_before_it_writes(kernels: Kernels) -> None:
    out, outcome = launch(kernels, "shifts_by_a_block", DATA)
    memory = DATA.copy()
    for start in (0, 64):
        memory[start + 8 : start + 72] = memory[start : start + 64] + np.float32(1)
    assert np.array_equal(out, memory)
    assert found(outcome, "shifts_by_a_block").level == "error"


def test_a_row_may_be_broadcast_onto_itself_with_a_warning(kernels: Kernels) -> None:
    out, outcome = launch(kernels, "broadcasts_a_row_onto_itself", DATA)
    assert np.array_equal(out.reshape(8, 64), np.tile(DATA[:64], (8, 1)))
    finding = found(outcome, "broadcasts_a_row_onto_itself")
    assert (finding.code, finding.level) == ("overlap", "warning")


def test_a_column_may_not(kernels: Kernels) -> None:
    out, outcome = launch(kernels, "broadcasts_a_column_onto_itself", DATA)
    assert np.array_equal(out.reshape(8, 64), np.repeat(DATA[:8, None], 64, axis=1))
    assert found(outcome, "broadcasts_a_column_onto_itself").level == "error"


def test_a_library_function_takes_its_source_into_scratch_first(kernels: Kernels) -> None:
    out, outcome = launch(kernels, "sigmoid_of_a_shifted_source", DATA)
    wanted = 1 / (1 + np.exp(-DATA[:384].astype(np.float64)))
    assert np.abs(out[128:] - wanted).max() < 1e-6
    assert np.array_equal(out[:128], DATA[:128])
    assert found(outcome, "sigmoid_of_a_shifted_source").level == "error"


def test_a_line_that_warned_is_an_error_once_it_breaks_the_rule(kernels: Kernels) -> None:
    halves = np.linspace(-4, 4, 1024, dtype=np.float16)
    _, outcome = launch(kernels, "warns_before_it_breaks_the_rule", halves)
    finding = found(outcome, "warns_before_it_breaks_the_rule")
    assert (finding.code, finding.level, finding.count) == ("overlap", "error", 2)


def test_power_spoils_the_first_repeat_of_the_reserve_only(kernels: Kernels) -> None:
    # the buffers: 1 KB into the reserve, then the operands
    out, outcome = launch(kernels, "power_in_the_reserve", DATA)
    assert np.allclose(out[:256], DATA[256:] ** 2, rtol=1e-5)
    assert found(outcome, "power_in_the_reserve").code == "ub-reserved"
