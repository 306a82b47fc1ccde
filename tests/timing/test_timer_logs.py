"""Logs that are damaged, empty, cut short or deadlocked, and what does not go into a log."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from writelog import SETS_MASK, Core, write_log

from npusmith.errors import NpusmithError
from npusmith.target.chips import find_chip
from npusmith.target.costs import COSTS, values
from npusmith.timing.model import UNITS, Timing
from npusmith.timing.simulate import simulate
from npusmith.twin.toolchain import Toolchain, find_toolchain

CHIP = find_chip("910B2")
Time = Callable[..., Timing]


@pytest.fixture(scope="module")
def chain() -> Toolchain:
    return find_toolchain(CHIP)


@pytest.fixture
def time(chain: Toolchain, tmp_path: Path) -> Time:
    def given(*cores: Core, finished: bool = True, **costs: float) -> Timing:
        log = write_log(tmp_path / "log", cores, (1 << 24,), finished)
        return simulate(log, chain, CHIP, {name.replace("__", "."): v for name, v in costs.items()})

    return given


def _work(number: int = 0, steps: int = 50) -> Core:
    core = Core(number)
    for i in range(steps):
        loaded = core.copy("gm_ub", 4096, at=(i + steps * number) * 4096 % (1 << 23))
        done = core.vector("exp", 16, after=[loaded], flags=SETS_MASK)
        core.copy("ub_gm", 4096, at=(1 << 23) + i * 4096, unit="MTE3", after=[done])
        core.scalar("call", count=3)
    return core


def _code(chain: Toolchain, log: Path, **costs: float) -> str:
    with pytest.raises(NpusmithError) as caught:
        simulate(log, chain, CHIP, {name.replace("__", "."): v for name, v in costs.items()})
    return caught.value.code


def test_the_same_log_gives_the_same_bytes_every_time(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work(2 * i) for i in range(8)])
    found = set()
    for i in range(3):
        events = tmp_path / f"events{i}"
        found.add((simulate(log, chain, CHIP, events=events).model_dump_json(), events.read_text()))
    assert len(found) == 1


def test_busy_and_waits_of_every_unit_add_up_to_its_core(time: Time) -> None:
    timing = time(*[_work(2 * i) for i in range(48)])
    for core in timing.cores:
        for name in UNITS:
            unit = core.units[name]
            total = unit.busy + sum(unit.waits.values())
            assert total == pytest.approx(core.end - core.begin, abs=0.1), name


def test_every_step_is_counted_once(time: Time) -> None:
    timing = time(*[_work(2 * i) for i in range(4)])
    assert timing.steps == 4 * 50 * 6
    assert timing.paths["gm_ub"].transfers == 200
    assert timing.paths["ub_gm"].bytes == 200 * 4096
    assert timing.vector_repeats == 4 * 50 * 16


def test_a_kernel_without_steps_takes_only_its_launch(time: Time) -> None:
    timing = time(Core(0), Core(2), launch__prologue=100, launch__epilogue=10, launch__stagger=5)
    assert timing.cycles == 115
    assert timing.paths == {}


def test_a_launch_without_cores_takes_no_time(time: Time) -> None:
    timing = time()
    assert (timing.cycles, timing.cores, timing.steps) == (0, [], 0)


def test_a_kernel_without_global_memory_has_a_time(time: Time) -> None:
    core = Core()
    core.vector("add", 64)
    assert time(core).paths == {}
    assert time(core).cycles > 86


def test_vector_steps_without_repeats_and_transfers_of_no_rows_are_legal(time: Time) -> None:
    core = Core()
    core.vector("add", 0)
    core.copy("gm_ub", 0)
    core.copy("gm_ub", 32, rows=0, unit="MTE2")
    core.mmad(0, 0, 0)
    core.library("tanh", 0)
    timing = time(core)
    assert timing.paths["gm_ub"].bytes == 0
    assert timing.finished


def test_a_deadlocked_kernel_has_a_timeline_up_to_there(time: Time) -> None:
    stuck, other = _work(0), _work(2, steps=5)
    stuck.join([(2, {"S": 10_000})], "cross_wait")
    stuck.vector("add", 64)
    stuck.ended = False
    timing = time(stuck, other, finished=False)
    assert not timing.finished
    assert timing.steps == (50 + 5) * 6
    assert timing.cores[0].end > timing.cores[1].end


def test_a_core_that_waits_for_nothing_recorded_is_damage_when_the_launch_ended(
    chain: Toolchain, tmp_path: Path
) -> None:
    stuck, other = Core(0), Core(2)
    stuck.join([(2, {"S": 10})])
    assert _code(chain, write_log(tmp_path / "log", [stuck, other])) == "timing-damaged"


def test_dropped_steps_take_as_long_as_the_second_half(time: Time) -> None:
    whole, part = _work(steps=200), _work(steps=100)
    part.dropped = 100 * 6
    full, sampled = time(whole), time(part)
    assert sampled.sampled and not full.sampled
    assert sampled.cycles == pytest.approx(full.cycles, rel=0.05)
    assert sampled.cores[0].units["V"].busy == pytest.approx(
        full.cores[0].units["V"].busy, rel=0.05
    )


def test_a_core_may_wait_for_what_another_one_did_not_record(time: Time) -> None:
    part, other = _work(0), Core(2)
    part.dropped = 100
    other.join([(0, {"S": 10_000})])
    timing = time(part, other)
    assert timing.cores[1].end > 1000


# --- damage ---------------------------------------------------------------------------------------


def test_a_missing_log_is_refused(chain: Toolchain, tmp_path: Path) -> None:
    assert _code(chain, tmp_path / "nothing") == "timing-log"


@pytest.mark.parametrize("content", [b"", b"NPULOG01", b"\0" * 4096, b"hello" * 1000])
def test_garbage_is_refused(chain: Toolchain, tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    assert _code(chain, log) == "timing-damaged"


def test_a_log_cut_anywhere_is_refused(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work(steps=3)])
    data = log.read_bytes()
    for length in range(0, len(data), 37):
        log.write_bytes(data[:length])
        assert _code(chain, log) == "timing-damaged", length


def test_a_launch_that_was_killed_is_refused(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work(steps=3)])
    data = bytearray(log.read_bytes())
    data[8:16] = struct.pack("<Q", 0)  # LogHead::tables
    log.write_bytes(data)
    assert _code(chain, log) == "timing-damaged"


def test_flipped_bytes_are_refused_or_timed_never_more(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work(steps=3), _work(2, steps=3)], (1 << 24,))
    data = log.read_bytes()
    for at in range(16, len(data), 29):
        log.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            timing = simulate(log, chain, CHIP)
        except NpusmithError as error:
            assert error.code == "timing-damaged", at
        else:
            assert timing.cycles >= 0


def test_a_step_that_waits_for_a_later_one_is_refused(chain: Toolchain, tmp_path: Path) -> None:
    core = Core()
    core.vector("add", 1, after=[("MTE2", 1)])
    core.copy("gm_ub", 512)
    assert _code(chain, write_log(tmp_path / "log", [core])) == "timing-damaged"


def test_the_same_core_twice_is_refused(chain: Toolchain, tmp_path: Path) -> None:
    assert _code(chain, write_log(tmp_path / "log", [Core(2), Core(2)])) == "timing-damaged"


# --- constants ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("no.such", 1.0), ("vector.head", -1.0), ("vector.head", float("nan")),
     ("hbm.rate", float("inf")), ("path.gm_ub.rate", 0.0)],
)  # fmt: skip
def test_constants_that_cannot_be_are_refused(
    chain: Toolchain, tmp_path: Path, name: str, value: float
) -> None:
    log = write_log(tmp_path / "log", [_work(steps=2)])
    assert _code(chain, log, **{name: value}) == "timing-costs"


def test_every_constant_has_a_unit_and_a_source_or_is_a_guess() -> None:
    for row in COSTS.values():
        assert row.unit, row
        assert row.source or row.basis == "guess", row


def test_the_chip_gives_bandwidth_and_l2() -> None:
    b1, b4 = values(find_chip("910B1")), values(find_chip("910B4"))
    assert b1["l2.bytes"] == 192 << 20
    assert b4["l2.bytes"] == 96 << 20
    assert b1["hbm.rate"] == pytest.approx(1490e9 / 1850e6 * b1["hbm.efficiency"])


def test_hinges_name_what_a_memory_bound_kernel_depends_on(
    chain: Toolchain, tmp_path: Path
) -> None:
    cores = [Core(2 * i) for i in range(48)]
    for i, core in enumerate(cores):
        for j in range(20):
            core.copy("gm_ub", 65536, at=(i * 20 + j) * 65536)
    log = write_log(tmp_path / "log", cores, (1 << 26,))
    plain = {name: row.value for name, row in COSTS.items()}  # before any fit
    costs = {**plain, "gm.knee": 0}
    timing = simulate(log, chain, CHIP, costs, hinges=True)
    assert len(timing.hinges) <= 12
    assert timing.hinges[0].name == "hbm.rate"
    assert timing.hinges[0].share == pytest.approx(-0.95, abs=0.1)
    assert simulate(log, chain, CHIP).hinges == []


# --- events ---------------------------------------------------------------------------------------


def test_events_past_the_cap_are_counted(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work()])
    timing = simulate(log, chain, CHIP, events=tmp_path / "events", most_events=7)
    lines = (tmp_path / "events").read_text().splitlines()
    assert len(lines) == timing.events == 7
    assert timing.events_dropped == 200 - 7
    assert all(len(line.split()) == 9 for line in lines)


def test_events_that_cannot_be_written_are_an_error(chain: Toolchain, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [_work()])
    with pytest.raises(NpusmithError) as caught:
        simulate(log, chain, CHIP, events=tmp_path / "no" / "events")
    assert caught.value.code == "timing-failed"
