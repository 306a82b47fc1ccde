"""What a writer can change moves the time in the known direction, by about the known amount.

The kernel is the Add of the asc-devkit ladder (z = x + y, half), mostly smaller; the constants are
those of the table, before fitting.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from writelog import BARRIER, F16, NO_L2, SETS_MASK, Arm, Core, Tick, write_log

from npusmith.target.chips import find_chip
from npusmith.target.costs import COSTS, values
from npusmith.timing.model import Timing
from npusmith.timing.simulate import simulate
from npusmith.twin.toolchain import find_toolchain

CHIP = find_chip("910B1")
_OF_CHIP = ("hbm.rate", "l2.rate", "l2.bytes")
TABLE = {name: row.value for name, row in COSTS.items() if name not in _OF_CHIP} | {"l2.warm": 1.0}
# What is compared with published times: the constants in use, and a first launch as there.
USED = {name: value for name, value in values(CHIP).items() if name not in _OF_CHIP}
BYTES = 16 << 20  # of each of the three tensors
Add = Callable[..., Timing]


@pytest.fixture
def add(tmp_path: Path) -> Add:
    chain = find_toolchain(find_chip("910B2"))  # the timer is the same for every chip

    def given(
        cores: int = 48, tile: int = 16384, buffers: int = 1, rows: int = 1, pitch: int = 0,
        barrier: bool = False, bypass: bool = False, apart: bool = False, bytes: int = BYTES,
        published: bool = False, **costs: float,
    ) -> Timing:  # fmt: skip
        tiles = bytes // tile
        made = [Core(2 * i) for i in range(cores)]
        for i, core in enumerate(made):
            first, last = i * tiles // cores, (i + 1) * tiles // cores
            _add(core, range(first, last), tile, buffers, rows, pitch, barrier, bypass, apart)
        size = tiles * rows * (pitch or tile // rows)
        log = write_log(tmp_path / "log", made, (size,) * 3)
        first = {"l2.warm": 0.0, "l2.full": 0.0, "launch.warm": 0.0}
        base = USED | first if published else TABLE
        changed = base | {name.replace("__", "."): value for name, value in costs.items()}
        return simulate(log, chain, CHIP, changed)

    return given


def _add(
    core: Core, tiles: range, tile: int, buffers: int, rows: int, pitch: int, barrier: bool,
    bypass: bool, apart: bool,
) -> None:  # fmt: skip
    added: list[list[Tick]] = [[] for _ in range(buffers)]
    stored: list[list[Tick]] = [[] for _ in range(buffers)]
    flags = NO_L2 if bypass else 0
    for i in tiles:
        slot = i % buffers
        at = i * rows * (pitch or tile // rows)
        like = {"rows": rows, "at": at, "pitch": pitch}
        core.copy("gm_ub", tile // rows, region=1, after=added[slot], flags=flags, **like)
        loaded = core.copy("gm_ub", tile // rows, region=2, flags=flags, **like)
        x = slot * 3 * tile
        y, z = x + tile + (256 if apart else 0), x + 2 * tile + (512 if apart else 0)
        done = core.vector(
            "add", tile // 256, Arm(z % 2**17), Arm(x % 2**17), Arm(y % 2**17),
            [loaded, *stored[slot]], F16, SETS_MASK,
        )  # fmt: skip
        added[slot] = [done]
        stored[slot] = [
            core.copy("ub_gm", tile // rows, region=3, unit="MTE3", after=[done], **like)
        ]
        if barrier:
            everything = [(unit, tick) for unit, tick in core.ticks.items() if tick]
            core.step(0, "S", "barrier", bytes(32), everything, flags=BARRIER)


def test_double_buffering_hides_the_add_and_the_start_of_the_read(add: Add) -> None:
    single, double = (add(cores=1, buffers=n, bytes=1 << 20) for n in (1, 2))
    hidden = (single.cycles - double.cycles) / 64
    per_add = single.cores[0].units["V"].busy / 64
    assert per_add < hidden <= per_add + 192
    assert double.cycles / 64 >= 2 * 16384 / 126  # the read itself is not hidden


def test_when_memory_is_the_limit_double_buffering_gains_little(add: Add) -> None:
    # ladder: 268.5 to 264.0 us
    assert add(buffers=2, bytes=1 << 27, tile=32768).cycles == pytest.approx(
        add(buffers=1, bytes=1 << 27, tile=32768).cycles, rel=0.05
    )


def test_smaller_tiles_pay_their_start_more_often(add: Add) -> None:
    small, large = add(cores=1, tile=2048, bytes=1 << 20), add(cores=1, bytes=1 << 20)
    more = (small.cycles - large.cycles) / (512 - 64)
    # the start of the reads and a head; the write goes on beside the next read
    assert 192 + 22 <= more < 192 + 22 + 40


def test_rows_that_break_512_bytes_cost_a_quarter_more(add: Add) -> None:
    # data_copy of asc-devkit: 259 against 203 us of MTE2 for rows of 2 KB
    even = add(tile=65536, rows=32, pitch=24576, bytes=1 << 27, l2__warm=0)
    odd = add(tile=65536, rows=32, pitch=24574, bytes=1 << 27, l2__warm=0)
    assert odd.paths["gm_ub"].unaligned > 0 == even.paths["gm_ub"].unaligned
    assert 1.1 < odd.cycles / even.cycles < 1.4


def test_a_barrier_in_the_loop_undoes_double_buffering(add: Add) -> None:
    plain = add(cores=1, buffers=2, bytes=1 << 20)
    barrier = add(cores=1, buffers=2, bytes=1 << 20, barrier=True)
    single = add(cores=1, buffers=1, bytes=1 << 20)
    assert plain.cycles < single.cycles < barrier.cycles
    # the write is not hidden either
    more = (barrier.cycles - single.cycles) / 64
    assert more == pytest.approx(167 + 16384 / 64 + 20, rel=0.1)
    assert barrier.cores[0].units["S"].waits["MTE3"] > 0


def test_twice_the_cores_take_half_the_time_until_memory_is_the_limit(add: Add) -> None:
    one, two, many, all_ = (add(cores=n, bytes=1 << 25) for n in (1, 2, 24, 48))
    fixed = 1200
    assert (one.cycles - fixed) / (two.cycles - fixed) == pytest.approx(2, rel=0.02)
    assert 1 <= many.cycles / all_.cycles < 2
    big = [add(cores=n, bytes=1 << 27, published=True) for n in (24, 48)]
    assert big[0].cycles / big[1].cycles < 1.3


def test_48_cores_do_not_each_get_the_rate_of_one(add: Add) -> None:
    timing = add(bytes=1 << 27, tile=32768, published=True)
    rate = 3 * (1 << 27) / (timing.kernel_us * 1e-6)
    assert 1.3e12 < rate < 1.6e12
    assert timing.cores[0].units["MTE2"].waits["memory"] > 0.2 * timing.cycles


def test_what_fits_l2_is_faster_with_it(add: Add) -> None:
    with_l2, without = add(buffers=2), add(buffers=2, l2__on=0)
    assert with_l2.paths["gm_ub"].miss_bytes == 0
    assert without.paths["gm_ub"].miss_bytes == 2 * BYTES
    assert 1.3 < without.cycles / with_l2.cycles < 4


def test_reading_past_l2_keeps_the_result_there(add: Add) -> None:
    # ladder: 264.0 to 187.7 us
    through = add(buffers=2, tile=32768, bytes=1 << 27, published=True)
    past = add(buffers=2, tile=32768, bytes=1 << 27, bypass=True, published=True)
    assert past.cycles / through.cycles == pytest.approx(187.7 / 264.0, rel=0.06)


def test_operands_in_other_bank_groups_halve_the_vector_time(add: Add) -> None:
    # ladder: 12.85 to 6.95 us
    together, apart = add(tile=32768), add(tile=32768, apart=True)
    assert apart.conflict_cycles < 0.01 * together.conflict_cycles
    busy = [t.cores[0].units["V"].busy for t in (apart, together)]
    assert busy[0] / busy[1] == pytest.approx(6.95 / 12.85, rel=0.02)


@pytest.mark.parametrize(
    ("cores", "tile", "buffers", "bypass", "us"),
    [(48, 8192, 1, False, 306.6), (48, 32768, 1, False, 268.5), (48, 32768, 2, False, 264.0),
     (48, 32768, 2, True, 187.7)],
)  # fmt: skip
def test_the_add_ladder_is_met_within_a_tenth(
    add: Add, cores: int, tile: int, buffers: int, bypass: bool, us: float
) -> None:
    timing = add(cores, tile, buffers, bypass=bypass, bytes=1 << 27, published=True)
    assert timing.task_us == pytest.approx(us, rel=0.1)
