"""One rule of the timer after the other, on logs written by hand; times in cycles.

With `plain` constants everything that is not under test takes no time, so that each rule shows as a
whole number: one cycle earlier would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from writelog import BARRIER, F16, F32, I8, ND2NZ, NO_L2, SETS_MASK, Arm, Core, write_log

from npusmith.target.chips import find_chip
from npusmith.target.costs import COSTS
from npusmith.timing.model import Timing
from npusmith.timing.simulate import simulate
from npusmith.timing.trace import Event, read_events
from npusmith.twin.toolchain import Toolchain, find_toolchain

CHIP = find_chip("910B2")
_OF_CHIP = ("hbm.rate", "l2.rate", "l2.bytes")
# The table before fitting; no launch, no issue, no latency: what is left is the rule.
PLAIN = {
    **{name: row.value for name, row in COSTS.items() if name not in _OF_CHIP},
    **{name: 0.0 for name in COSTS if name.startswith(("launch.", "scalar.", "join.", "head."))},
    "hbm.transfer_bytes": 0.0,
    "hbm.write_back": 1.0,
    "l2.warm": 0.0,
    "l2.full": 0.0,
    "launch.warm": 1.0,
    "gm.knee": 0.0,
    "ub.hold": 0.0,
    "path.gm_l1.request": 0.0,
}
Run = Callable[..., tuple[Timing, list[Event]]]


@pytest.fixture(scope="module")
def chain() -> Toolchain:
    return find_toolchain(CHIP)


@pytest.fixture
def run(chain: Toolchain, tmp_path: Path) -> Run:
    def given(
        *cores: Core, regions: Sequence[int] = (1 << 30,), finished: bool = True, **costs: float
    ) -> tuple[Timing, list[Event]]:
        log = write_log(tmp_path / "log", cores, regions, finished)
        changed = PLAIN | {name.replace("__", "."): value for name, value in costs.items()}
        timing = simulate(log, chain, CHIP, changed, events=tmp_path / "events")
        return timing, list(read_events(tmp_path / "events"))

    return given


def on(events: list[Event], unit: int, core: int = 0) -> list[tuple[float, float]]:
    """Start and end of each step of a unit, in their order."""
    return sorted((e.start, e.end) for e in events if (e.unit, e.core) == (unit, core))


# --- dependences, queues, the scalar unit ---------------------------------------------------------


def test_a_step_begins_when_its_dep_has_ended_and_no_cycle_before(run: Run) -> None:
    core = Core()
    loaded = core.local("ub_l1", 1280, unit="MTE3")
    core.vector("add", 64, after=[loaded])
    _, events = run(core, path__other__start=0)
    assert on(events, 5) == [(0, 10)]
    assert on(events, 1) == [(10, 10 + 22 + 64)]


def test_units_without_a_dep_run_at_the_same_time(run: Run) -> None:
    core = Core()
    core.local("ub_l1", 1280, unit="MTE3")
    core.vector("add", 64)
    _, events = run(core)
    assert on(events, 1)[0][0] == on(events, 5)[0][0] == 0


def test_the_scalar_unit_takes_its_time_for_each_step_it_gives_away(run: Run) -> None:
    core = Core()
    for _ in range(3):
        core.local("l1_l0a", 256)
    _, events = run(core, scalar__issue=40)
    assert [start for start, _ in on(events, 3)] == [40, 80, 120]


def test_like_scalar_steps_in_a_row_cost_each(run: Run) -> None:
    core = Core()
    core.scalar("read", count=100)
    timing, _ = run(core, scalar__read=11)
    assert timing.cycles == 1100
    assert timing.cores[0].units["S"].busy == 1100


def test_a_dep_on_one_of_many_ticks_waits_for_all_that_share_a_step(run: Run) -> None:
    core = Core()
    core.scalar("read", count=10)
    core.scalar("write")
    core.vector("add", 1, after=[("S", 10)])
    _, events = run(core, scalar__read=5, scalar__write=1)
    assert on(events, 1)[0][0] == 51  # issued after the write, in order


def test_the_scalar_unit_waits_for_a_place_in_a_full_queue(run: Run) -> None:
    core = Core()
    for _ in range(33):
        core.vector("add", 100, flags=SETS_MASK)
    core.scalar("read")
    timing, events = run(core, queue__depth=32)
    # the first has begun at once, so that the 33rd finds room; of 34 the last one waits
    assert on(events, 0) == [(0, 0)]
    core = Core()
    for _ in range(34):
        core.vector("add", 100, flags=SETS_MASK)
    core.scalar("read")
    timing, events = run(core, queue__depth=32)
    assert on(events, 0) == [(122, 122)]
    assert timing.cores[0].units["S"].waits["queue"] == 122


def test_a_scalar_step_waits_for_the_pipe_that_it_reads_from(run: Run) -> None:
    core = Core()
    done = core.vector("add", 64)
    core.scalar("read", after=[done])
    timing, events = run(core, scalar__read=11)
    assert on(events, 0) == [(86, 97)]
    assert timing.cores[0].units["S"].waits["V"] == 86


def test_a_mark_takes_no_time_and_is_over_when_what_came_before_it_is(run: Run) -> None:
    core = Core()
    core.vector("add", 64)
    mark = core.mark("V")
    core.local("l1_l0a", 256, after=[mark])
    _, events = run(core, path__l1_l0a__start=0)
    assert on(events, 1)[1] == (86, 86)
    assert on(events, 3) == [(86, 87)]


# --- the vector unit ------------------------------------------------------------------------------


def test_heads_of_independent_instructions_overlap(run: Run) -> None:
    core = Core()
    for _ in range(100):
        core.vector("add", 64)
    timing, _ = run(core)
    assert timing.cycles == 22 + 100 * 64
    assert timing.head_cycles == 22


def test_short_instructions_take_the_floor(run: Run) -> None:
    core = Core()
    for _ in range(100):
        core.vector("add", 1)
    timing, _ = run(core, vector__floor=3)
    assert timing.cycles == 22 + 100 * 3


@pytest.mark.parametrize("flags", [SETS_MASK, BARRIER])
def test_a_mask_write_or_a_barrier_exposes_the_head(run: Run, flags: int) -> None:
    core = Core()
    for _ in range(100):
        core.vector("add", 64, flags=flags)
    timing, _ = run(core)
    assert timing.cycles == 100 * 86


def test_a_dep_on_the_instruction_before_exposes_the_head(run: Run) -> None:
    core = Core()
    last = core.vector("add", 64)
    for _ in range(99):
        last = core.vector("add", 64, after=[last])
    timing, _ = run(core)
    assert timing.cycles == 100 * 86
    assert timing.head_cycles == 2200


def test_an_instruction_adds_its_own_to_the_head(run: Run) -> None:
    core = Core()
    core.vector("exp", 10)
    timing, _ = run(core, head__exp=7)
    assert timing.cycles == 22 + 7 + 10 * 2


@pytest.mark.parametrize(
    ("what", "type", "cycles"),
    [
        ("exp", F32, 2),
        ("exp", F16, 4),
        ("gather", F16, 24),
        ("gather", F32, 12),
        ("never_seen", F32, 1),
    ],
)
def test_cycles_of_a_repeat_go_by_instruction_and_width(
    run: Run, what: str, type: int, cycles: int
) -> None:
    core = Core()
    core.vector(what, 50, type=type)
    timing, _ = run(core)
    assert timing.cycles == 22 + 50 * cycles
    assert timing.vector_repeats == 50


def test_a_library_function_is_several_instructions_over_its_data(run: Run) -> None:
    core = Core()
    core.library("tanh", 6400)  # 100 repeats of float
    timing, _ = run(core, library__tanh=10, library__repeat=1)
    assert timing.cycles == 22 + 10 * (22 + 100)


# asc-devkit, bank_conflict_ub: 1,000 Adds of 64 repeats, mask set each time; a tick is 36 cycles
@pytest.mark.parametrize(
    ("src0", "src1", "dst", "ticks"),
    [
        (Arm(0), Arm(0x10100), Arm(0x20000), 2390),
        (Arm(0), Arm(0x4000), Arm(0x10000), 4167),
        (Arm(0), Arm(0x10000), Arm(0x14100), 4167),
        (Arm(0), Arm(0x10100), Arm(0x4000), 2389),
        (Arm(0), Arm(0x10100), Arm(0x4020), 3751),
        (Arm(0), Arm(0x10100), Arm(0x10100), 2390),
        (Arm(0, repeat=1, block=0), Arm(0x10100), Arm(0x10100), 3584),
        (Arm(0, repeat=8, block=0), Arm(0x10100), Arm(0x10100), 2389),
    ],
)
def test_bank_conflicts_of_the_published_scenarios(
    run: Run, src0: Arm, src1: Arm, dst: Arm, ticks: int
) -> None:
    core = Core()
    for _ in range(1000):
        core.vector("add", 64, dst, src0, src1, flags=SETS_MASK)
    timing, _ = run(core)
    assert timing.cycles == pytest.approx(ticks * 36, rel=0.01)
    assert timing.conflict_cycles == pytest.approx(timing.cycles - 86_000)


@pytest.mark.parametrize(("stride", "cycles"), [(1, 1), (2, 1), (4, 2), (8, 4), (16, 8)])
def test_blocks_of_one_bank_group_are_served_one_a_cycle(
    run: Run, stride: int, cycles: int
) -> None:
    core = Core()
    core.vector("copy", 10, Arm(0, repeat=1, block=stride), type=F16)
    timing, _ = run(core, vector__copy=1, conflict__other=1)
    assert timing.cycles == 22 + 10 * cycles


def test_an_instruction_that_reads_its_destination_has_three_sources(run: Run) -> None:
    core = Core()
    core.vector("mul_add_dst", 10, Arm(0x20000), Arm(0), Arm(0x10000))
    timing, _ = run(core)
    assert timing.cycles == 22 + 10 * 6  # as measured: msKPP VMLA


# --- the cube unit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "hf32", "tiles", "cycles"),
    [(F16, False, 32, 32), (I8, False, 16, 16), (F32, False, 64, 128), (F32, True, 64, 64)],
)
def test_mmad_takes_a_cycle_for_each_step_and_float_two(
    run: Run, type: int, hf32: bool, tiles: int, cycles: int
) -> None:
    core = Core(cube=True)
    core.mmad(32, 64, 64, type, hf32)
    timing, _ = run(core)
    assert timing.cube_tiles == tiles
    assert timing.cycles == 21 + cycles


def test_mmad_back_to_back_hides_its_start_but_not_the_gap(run: Run) -> None:
    core = Core(cube=True)
    for _ in range(10):
        core.mmad(16, 16, 160)
    timing, _ = run(core, cube__gap=2)
    assert timing.cycles == 21 + 10 * 10 + 9 * 2


# --- transfers ------------------------------------------------------------------------------------

_GM = {
    "path__gm_ub__start": 100, "path__gm_ub__rate": 64, "path__gm_ub__miss": 32,
    "path__gm_ub__issue": 20, "path__gm_ub__row": 4, "path__ub_gm__start": 50,
    "path__ub_gm__rate": 64, "path__ub_gm__issue": 20, "path__ub_gm__row": 4,
}  # fmt: skip


def test_a_transfer_takes_its_start_and_its_bytes(run: Run) -> None:
    core = Core()
    core.copy("gm_ub", 3200)
    timing, _ = run(core, **_GM)
    assert timing.cycles == 100 + 100
    assert timing.paths["gm_ub"].miss_bytes == 3200
    assert timing.paths["gm_ub"].sizes == [0, 0, 1, 0, 0, 0]


def test_transfers_of_one_pipe_overlap_their_start(run: Run) -> None:
    core = Core()
    for i in range(10):
        core.copy("gm_ub", 3200, at=i * 3200)
    timing, _ = run(core, **_GM)
    assert timing.cycles == 100 + 10 * 100


def test_small_transfers_are_issued_at_most_so_often(run: Run) -> None:
    core = Core()
    for i in range(10):
        core.copy("gm_ub", 128, at=i * 128)
    timing, _ = run(core, **_GM)
    assert timing.cycles == 9 * 20 + 100 + 4


def test_only_so_many_transfers_are_under_way(run: Run) -> None:
    core = Core()
    for i in range(4):
        core.copy("gm_ub", 128, at=i * 128)
    _, events = run(core, **_GM, queue__outstanding=2)
    assert [start for start, _ in on(events, 4)] == [0, 20, 104, 124]


def test_a_gap_stays_between_the_bytes_of_two_loads(run: Run) -> None:
    core = Core(cube=True)
    for _ in range(5):
        core.local("l1_l0a", 2560)
    timing, _ = run(core, path__l1_l0a__start=28, path__l1_l0a__gap=16)
    assert timing.cycles == 28 + 5 * 10 + 4 * 16


def test_many_short_rows_cost_by_the_row(run: Run) -> None:
    core = Core()
    core.copy("gm_ub", 32, rows=64, pitch=512)
    timing, _ = run(core, **(_GM | {"path__gm_ub__miss": 1000, "path__gm_ub__rate": 1000}))
    assert timing.cycles == 100 + 64 * 4


def test_a_second_read_finds_its_lines_in_l2(run: Run) -> None:
    core = Core()
    first = core.copy("gm_ub", 6400)
    core.copy("gm_ub", 6400, after=[first])
    timing, events = run(core, **_GM)
    assert on(events, 4) == [(0, 300), (300, 500)]
    assert timing.paths["gm_ub"].miss_bytes == 6400


def test_a_warm_l2_holds_what_the_launch_before_left(run: Run) -> None:
    core = Core()
    core.copy("gm_ub", 6400)
    timing, _ = run(core, **_GM, l2__warm=1)
    assert timing.cycles == 200
    assert timing.paths["gm_ub"].miss_bytes == 0


def test_l2_gives_up_the_line_unused_for_longest(run: Run) -> None:
    def misses(lines: int) -> int:
        core = Core()
        for _ in range(2):
            for i in range(lines):
                core.copy("gm_ub", 512, at=i * 512)
        return run(core, l2__bytes=8 * 512)[0].paths["gm_ub"].miss_bytes

    assert misses(8) == 8 * 512
    assert misses(9) == 18 * 512  # each goes just before it is needed again


def test_without_l2_everything_is_fetched(run: Run) -> None:
    core = Core()
    first = core.copy("gm_ub", 6400)
    core.copy("gm_ub", 6400, after=[first])
    timing, _ = run(core, **_GM, l2__on=0)
    assert timing.cycles == 600
    assert timing.paths["gm_ub"].miss_bytes == 12800


def test_a_copy_past_l2_leaves_nothing_there(run: Run) -> None:
    core = Core()
    first = core.copy("gm_ub", 6400, flags=NO_L2)
    core.copy("gm_ub", 6400, after=[first])
    timing, _ = run(core, **_GM)
    assert timing.paths["gm_ub"].miss_bytes == 12800


def test_whoever_takes_the_room_of_a_written_line_pays_for_writing_it_back(run: Run) -> None:
    def time(l2_bytes: int) -> float:
        core = Core()
        written = core.copy("ub_gm", 51200, unit="MTE3")
        core.copy("gm_ub", 51200, at=51200, after=[written])
        return run(core, **_GM, l2__bytes=l2_bytes, hbm__rate=32)[0].cycles

    assert time(1 << 20) == 50 + 800 + 100 + 1600
    assert time(51200) == 50 + 800 + 100 + 3200


def test_a_byte_written_to_hbm_may_take_longer_than_one_read(run: Run) -> None:
    core = Core()
    core.copy("ub_gm", 51200, unit="MTE3")
    timing, _ = run(core, **_GM, l2__on=0, hbm__rate=32, hbm__write_back=2)
    assert timing.cycles == 50 + 2 * 51200 / 32


def test_short_requests_past_l2_cost_hbm_more_than_their_bytes(run: Run) -> None:
    core = Core()
    core.copy("gm_ub", 128, rows=100, pitch=1024, flags=NO_L2)
    timing, _ = run(core, **_GM, hbm__rate=8, gm__bypass_bytes=192)
    assert timing.cycles == pytest.approx(100 + 100 * 192 / 8)
    assert timing.paths["gm_ub"].miss_bytes == 12800


def test_reads_past_l2_are_in_the_way_of_others_in_their_window(run: Run) -> None:
    def time(apart: int) -> float:
        cores = [Core(2 * i) for i in range(8)]
        for i, core in enumerate(cores):
            core.copy("gm_ub", 51200, at=i * apart, flags=NO_L2)
        costs = {"l2__same_window": 131072, "l2__same_line": 3, "gm__bypass_bytes": 0}
        return run(*cores, **_GM, **costs, hbm__rate=10000)[0].cycles

    assert time(131072) == pytest.approx(100 + 1600)
    assert time(16384) == pytest.approx(100 + 100 * 3 * 8)


def test_nd2nz_takes_so_long_for_each_request_and_at_least_for_each_row(run: Run) -> None:
    def time(pitch: int, request: float) -> float:
        core = Core(cube=True)
        core.copy("gm_l1", 128, rows=64, pitch=pitch, flags=ND2NZ)
        costs = {"path.gm_l1.start": 100, "path.gm_l1.nz_row": 2, "path.gm_l1.request": request}
        rates = {"path.gm_l1.rate": 128, "path.gm_l1.miss": 128}
        return run(core, **costs, **rates, hbm__rate=10000)[0].cycles

    assert time(1024, 5) == 100 + 64 + 64 * 5  # strided: a request each
    assert time(128, 5) == 100 + 64 + 16 * 5  # one behind the other: 16 requests
    assert time(128, 4) == 100 + 64 + 16 * 4
    assert time(128, 3) == 100 + 64 * 2


def test_a_load_of_l1_pays_for_its_requests_without_nd2nz_too(run: Run) -> None:
    core = Core(cube=True)
    core.copy("gm_l1", 5120)
    costs = {"path.gm_l1.start": 100, "path.gm_l1.request": 2, "path.gm_l1.rate": 128}
    timing, _ = run(core, **costs, **{"path.gm_l1.miss": 128}, hbm__rate=10000)
    assert timing.cycles == 100 + 40 + 10 * 2


def test_nd2nz_asks_for_each_row_that_does_not_fill_sectors(run: Run) -> None:
    def requests(bytes: int, flags: int) -> float:
        core = Core(cube=True)
        core.copy("gm_l1", bytes, rows=64, pitch=bytes, flags=flags)
        costs = {"path.gm_l1.start": 0, "path.gm_l1.request": 1}
        costs |= {"path.gm_l1.nz_row": 0, "path.gm_l1.row": 0}
        rates = {"path.gm_l1.rate": 1e9, "path.gm_l1.miss": 1e9}
        return run(core, **costs, **rates, hbm__rate=1e9, l2__rate=1e9, gm__pieces=1e9)[0].cycles

    assert requests(160, 0) == pytest.approx(20, abs=0.01)  # lines of 512 B
    assert requests(160, ND2NZ) == pytest.approx(64 + 16, abs=0.01)  # 16 rows cross a line
    assert requests(256, ND2NZ) == pytest.approx(32, abs=0.01)
    assert requests(64, ND2NZ) == pytest.approx(8, abs=0.01)  # two fill a sector


def test_the_chip_serves_so_many_pieces_of_ragged_rows(run: Run) -> None:
    def time(at: int) -> float:
        core = Core()
        core.copy("gm_ub", 256, rows=64, at=at, pitch=1024)
        costs = {"path.gm_ub.row": 0, "gm__pieces": 0.02, "gm__piece_bytes": 0}
        return run(core, **_GM, **costs, l2__warm=1)[0].cycles

    assert time(0) == 100 + 64 * 256 / 64
    assert time(32) == pytest.approx(100 + 64 / 0.02)


def test_fix_reads_floats_out_of_l0c_whatever_it_writes(run: Run) -> None:
    def time(type: int, bytes: int) -> float:
        core = Core(cube=True)
        core.copy("l0c_gm", bytes, rows=16, pitch=4096, unit="FIX", type=type)
        costs = {"path.l0c_gm.start": 50, "path.l0c_gm.rate": 128, "path.l0c_gm.row": 0}
        return run(core, **costs)[0].cycles

    assert time(F32, 1024) == time(F16, 512) == 50 + 128


def test_rows_that_break_the_lines_cost_hbm_whole_lines(run: Run) -> None:
    def time(pitch: int) -> float:
        core = Core()
        core.copy("gm_ub", 512, rows=64, at=1 << 16, pitch=pitch)
        costs = {"path.gm_ub.row": 0, "gm__pieces": 1e9, "gm__piece_bytes": 512}
        timing, _ = run(core, **_GM, **costs, hbm__rate=16)
        assert timing.paths["gm_ub"].unaligned == (pitch % 512 != 0)
        return timing.cycles

    assert time(24576) == 100 + 64 * 512 / 16
    assert time(24574) == pytest.approx(100 + 2 * 64 * 512 / 16, rel=0.03)


def test_what_the_launch_before_wrote_is_in_hbm_by_now(run: Run) -> None:
    core = Core()
    core.copy("gm_ub", 51200, at=51200)  # needs the room of 22 lines that were written
    rates = {"l2__bytes": 65536, "hbm__rate": 32, "hbm__write_back": 4}
    core.copy("ub_gm", 25600, unit="MTE3", after=[("MTE2", 1)])
    back = 49 * 512 * 4 / 32  # of its own 50 lines all but the last, since L2 is full
    assert run(core, **_GM, **rates, l2__warm=1)[0].cycles == 100 + 1600 + 50 + back


# --- bandwidth of the chip ------------------------------------------------------------------------


def _readers(count: int, bytes: int = 32000) -> list[Core]:
    cores = []
    for i in range(count):
        core = Core(number=2 * i)
        core.copy("gm_ub", bytes, at=i * 65536)
        cores.append(core)
    return cores


def test_cores_share_hbm_only_when_it_is_too_little(run: Run) -> None:
    alone = 100 + 32000 / 32
    assert run(*_readers(4), **_GM, hbm__rate=128)[0].cycles == alone
    timing, _ = run(*_readers(8), **_GM, hbm__rate=128)
    assert timing.cycles == pytest.approx(100 + 2000)
    assert timing.cores[0].units["MTE2"].waits["memory"] == pytest.approx(1000)


def test_all_of_a_rate_is_had_only_by_those_who_ask_for_more(run: Run) -> None:
    def slower(count: int) -> float:
        streams = run(*_readers(count), **_GM, hbm__rate=128, gm__knee=2)[0].cycles - 100
        return streams / (1000 * max(1, count / 4))

    assert slower(1) == pytest.approx((1 + 0.25**4) ** 0.25)
    assert slower(4) == pytest.approx(2**0.25)
    assert slower(8) == pytest.approx((1 + 0.5**4) ** 0.25)


def test_a_transfer_stands_still_while_the_vector_unit_of_its_core_works(run: Run) -> None:
    def time(other: int, hold: float) -> float:
        cores = [Core(0), Core(2)]
        for core in cores:
            first = core.copy("gm_ub", 3200)  # over at 200
            core.copy("gm_ub", 32000, at=65536)
            if core is cores[other]:
                core.vector("add", 300, after=[first])
        timing, _ = run(*cores, **_GM, ub__hold=hold, hbm__rate=1000)
        return timing.cores[0].end

    assert time(0, 0) == time(1, 0.5) == 1200
    assert time(0, 0.5) == pytest.approx(1200 + 0.5 * 300)


def test_bandwidth_is_shared_anew_when_a_transfer_ends(run: Run) -> None:
    short, long = _readers(1, 16000)[0], _readers(2)[1]
    _, events = run(short, long, **_GM, hbm__rate=32)
    assert on(events, 4, 0)[0][1] == pytest.approx(100 + 1000)  # at half of the rate
    assert on(events, 4, 2)[0][1] == pytest.approx(1100 + 500)  # the rest at all of it


def test_a_core_that_asks_for_less_leaves_the_rest_to_the_others(run: Run) -> None:
    slow, fast = Core(0), Core(2)
    slow.copy("gm_l1", 8192)
    fast.copy("gm_ub", 32000, at=65536)
    limits = {"path__gm_l1__start": 100, "path__gm_l1__miss": 8, "path__gm_l1__rate": 8}
    _, events = run(slow, fast, **_GM, **limits, hbm__rate=36)
    assert on(events, 4, 0)[0][1] == pytest.approx(1124)
    # 28 of the 36 bytes, until the other one is over: 28 * 1024 bytes; then 32 a cycle
    assert on(events, 4, 2)[0][1] == pytest.approx(1124 + (32000 - 28 * 1024) / 32)


def test_hits_share_the_rate_of_l2(run: Run) -> None:
    timing, _ = run(*_readers(4), **_GM, l2__warm=1, l2__rate=128)
    assert timing.cycles == pytest.approx(100 + 4 * 32000 / 128)


def test_requests_for_the_same_line_are_served_one_after_the_other(run: Run) -> None:
    def time(same: bool) -> float:
        cores = []
        for i in range(8):
            core = Core(number=2 * i)
            core.copy("gm_ub", 51200, at=0 if same else i * 65536)
            cores.append(core)
        return run(*cores, **_GM, l2__warm=1, l2__same_line=3)[0].cycles

    assert time(same=False) == pytest.approx(900)
    assert time(same=True) == pytest.approx(100 + 100 * 3 * 8)


# --- cores together -------------------------------------------------------------------------------


def test_a_core_goes_on_when_the_other_has_come_so_far(run: Run) -> None:
    first, second = Core(0), Core(2)
    done = first.vector("add", 64)
    second.join([(0, {done[0]: done[1]})], "cross_wait")
    second.vector("add", 10)
    timing, events = run(first, second, join__cross_wait=150)
    assert on(events, 1, 2) == [(236, 236 + 32)]
    assert timing.cores[1].units["S"].waits["cores"] == 236


def test_a_core_waits_for_a_transfer_of_another_one(run: Run) -> None:
    first, second = Core(0), Core(2)
    second.join([(0, {"MTE3": 1})], "cross_wait")
    second.scalar("read")
    first.copy("ub_gm", 6400, unit="MTE3")
    _, events = run(first, second, **_GM)
    assert on(events, 0, 2)[-1] == (150, 150)


def test_all_cores_leave_a_sync_with_the_last_one(run: Run) -> None:
    cores = [Core(2 * i) for i in range(4)]
    for i, core in enumerate(cores):
        core.scalar("read", count=100 * (i + 1))
    arrived = [(core.number, {"S": core.ticks["S"]}) for core in cores]
    for core in cores:
        core.join(arrived)
    timing, _ = run(*cores, scalar__read=1, join__sync_all=700)
    assert {core.end for core in timing.cores} == {400 + 700}


def test_cores_start_one_after_the_other_and_the_launch_is_on_top(run: Run) -> None:
    cores = [Core(2 * i) for i in range(3)]
    for core in cores:
        core.scalar("read")
    timing, _ = run(
        *cores, scalar__read=5, launch__stagger=10, launch__prologue=100, launch__epilogue=20,
        launch__task=2, launch__core=0.5,
    )  # fmt: skip
    assert [core.begin for core in timing.cores] == [0, 10, 20]
    assert timing.cycles == 20 + 100 + 5 + 20
    assert timing.kernel_us == pytest.approx(145 / 1800)
    assert timing.task_us == pytest.approx(timing.kernel_us + 2 + 1.5)


def test_a_first_launch_takes_longer_to_come_to_its_first_step(run: Run) -> None:
    core = Core()
    core.scalar("read")
    costs = {
        "scalar__read": 5, "launch__prologue": 100, "launch__first_prologue": 50,
        "launch__cold": 1000, "launch__first": 3, "launch__first_core": 0.5,
    }  # fmt: skip
    again, _ = run(core, **costs)
    assert again.cycles == 105
    assert again.task_us == pytest.approx(again.kernel_us)
    first, _ = run(core, **costs, launch__warm=0)
    assert first.cycles == 1155
    assert first.task_us == pytest.approx(first.kernel_us + 3.5)
    scalar = first.cores[0].units["S"]
    assert (scalar.busy, scalar.waits["memory"]) == (155, 1000)  # caches are filled meanwhile


def test_cube_cores_have_a_start_of_their_own(run: Run) -> None:
    cores = [Core(0), Core(1, cube=True)]
    for core in cores:
        core.scalar("read")
    timing, _ = run(*cores, launch__prologue=100, launch__prologue_cube=300)
    assert [core.end for core in timing.cores] == [100, 300]


def test_an_instruction_waits_for_the_value_that_was_read_for_it(run: Run) -> None:
    costs = {"scalar__read": 5, "scalar__issue": 2, "scalar__read_use": 60, "vector__adds": 1}
    core = Core()
    core.scalar("read")
    core.vector("adds", 1)
    core.vector("adds", 1)  # needs nothing new
    assert run(core, **costs)[0].cores[0].units["S"].busy == 5 + 60 + 2 + 2
    core = Core()
    core.scalar("read")
    core.scalar("write")  # the scalar unit has used it itself: in the cost of both
    core.vector("adds", 1)
    assert run(core, **costs, scalar__write=7)[0].cores[0].units["S"].busy == 5 + 7 + 2


def test_a_full_l2_passes_on_a_part_of_what_is_written(run: Run) -> None:
    core = Core()
    core.copy("ub_gm", 512 * 1024, unit="MTE3")
    slow = {**_GM, "hbm__rate": 16, "hbm__early_back": 0.5}
    kept = run(core, **slow, l2__full=0)[0].cycles
    passed = run(core, **slow, l2__full=1)[0].cycles
    assert run(core, **slow, l2__full=1, l2__warm=1)[0].cycles == kept
    assert passed == pytest.approx(100 + 0.5 * 512 * 1024 / 16, rel=0.05) and passed > 1.5 * kept


def test_a_mixed_kernel_takes_longer_to_launch(run: Run) -> None:
    mixed = [Core(0), Core(1, cube=True)]
    timing, _ = run(*mixed, launch__mix=7)
    assert timing.task_us == pytest.approx(timing.kernel_us + 7)
    timing, _ = run(Core(0), Core(2), launch__mix=7)
    assert timing.task_us == pytest.approx(timing.kernel_us)
