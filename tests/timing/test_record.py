"""What the log of a launch says: steps, what they wait for, and what a cut or dry run leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from readlog import ATOMIC, BARRIER, NO_L2, SETS_MASK, Core, Log, Step, read_log

from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip
from npusmith.twin import build, launch, read_project, run
from npusmith.twin.direct import DirectBuild, build_direct, build_program, run_direct, run_program
from npusmith.twin.launch import LaunchOptions

PROJECTS = Path(__file__).parents[1] / "projects"
F32 = DType.FLOAT32
BLOCKS, COUNT = 3, 4096

HEADER = """
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t kTile = 256;
#define BUFFERS                                            \\
  TPipe pipe;                                              \\
  TBuf<TPosition::VECCALC> bufs[4];                        \\
  for (auto &buf : bufs) pipe.InitBuffer(buf, kTile * 4);  \\
  auto a = bufs[0].Get<float>(), b = bufs[1].Get<float>(); \\
  auto c = bufs[2].Get<float>();                           \\
  auto h = bufs[3].Get<half>();                            \\
  GlobalTensor<float> in, out;                             \\
  in.SetGlobalBuffer((__gm__ float *)x, 4096);             \\
  out.SetGlobalBuffer((__gm__ float *)z + 1024 * GetBlockIdx(), 1024)
"""

# In the order of their launches.
KERNELS = {
    "queues": """
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> from;
  TQue<QuePosition::VECOUT, 1> to;
  pipe.InitBuffer(from, 1, kTile * 4);
  pipe.InitBuffer(to, 1, kTile * 4);
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float *)x, 4096);
  out.SetGlobalBuffer((__gm__ float *)z + 1024 * GetBlockIdx(), 1024);
  for (int32_t i = 0; i < 2; ++i) {
    auto a = from.AllocTensor<float>();
    DataCopy(a, in[i * kTile], kTile);
    from.EnQue(a);
    a = from.DeQue<float>();
    auto b = to.AllocTensor<float>();
    Adds(b, a, 1.0f, kTile);
    from.FreeTensor(a);
    to.EnQue(b);
    b = to.DeQue<float>();
    DataCopy(out[i * kTile], b, kTile);
    to.FreeTensor(b);
  }
""",
    "flags": """
  BUFFERS;
  DataCopy(a, in, kTile);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  DataCopy(b, in[kTile], kTile);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Adds(c, a, 1.0f, kTile);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(out, c, kTile);
""",
    "hidden": """
  BUFFERS;
  Duplicate(a, 1.0f, kTile);
  Duplicate(b, 2.0f, kTile);
  Adds(c, a, 1.0f, kTile);
  out.SetValue(0, c.GetValue(0));
""",
    "barriers": """
  BUFFERS;
  Duplicate(a, 1.0f, kTile);
  PipeBarrier<PIPE_V>();
  Duplicate(b, 1.0f, kTile);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, a, kTile);
""",
    "hazard": """
  BUFFERS;
  Duplicate(a, 1.0f, kTile);
  DataCopy(out, a, kTile);
""",
    "meeting": """
  BUFFERS;
  Duplicate(a, 1.0f, kTile);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, a, kTile);
  SyncAll();
  DataCopy(b, in, kTile);
""",
    "scalars": """
  BUFFERS;
  Duplicate(a, 1.0f, kTile);
  float sum = 0;
  for (int32_t i = 0; i < 100; ++i) sum += a.GetValue(i);
  a.SetValue(0, sum);
""",
    "copies": """
  BUFFERS;
  out.SetL2CacheHint<CacheRwMode::WRITE>(CacheMode::CACHE_MODE_DISABLE);
  DataCopy(a, in[64], DataCopyParams(3, 2, 4, 1));
  DataCopyPad(b, in[7], DataCopyExtParams(2, 20, 100, 0, 0), DataCopyPadExtParams<float>());
  PipeBarrier<PIPE_ALL>();
  SetAtomicAdd<float>();
  DataCopy(out[8], a, kTile);
  SetAtomicNone();
  DataCopy(b, a, 64);
""",
    "names": """
  BUFFERS;
  auto m = bufs[3].Get<uint8_t>();
  Duplicate(a, 1.0f, kTile);
  Duplicate(b, 2.0f, kTile);
  Exp(c, a, kTile);
  Add(c, a, b, uint64_t(32), 4, {1, 1, 1, 8, 8, 8});
  SetVectorMask<float, MaskMode::NORMAL>(0, ~0ull);
  Mul<float, false>(c, a, b, MASK_PLACEHOLDER, 2, {2, 1, 1, 16, 8, 0});
  ResetMask();
  WholeReduceSum(c, a, 64, 4, 1, 1, 8);
  Compare(m, a, b, CMPMODE::LT, kTile);
  Select(c, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, kTile);
  Cast(h, a, RoundMode::CAST_NONE, 65);
  Tanh(c, a, kTile);
""",
}


def _source() -> str:
    kernels = "".join(
        f"__global__ __aicore__ void {name}(GM_ADDR x, GM_ADDR z) {{{body}}}\n"
        for name, body in KERNELS.items()
    )
    launches = "".join(f"  {name}<<<blocks, nullptr, stream>>>(x, z);\n" for name in KERNELS)
    return (
        f"{HEADER}{kernels}\n"
        f"void all_do(uint32_t blocks, void *stream, uint8_t *x, uint8_t *z) {{\n{launches}}}\n"
    )


@dataclass(frozen=True)
class Kernels:
    direct: DirectBuild

    def run(self, record: Path, dry: bool = False, most_steps: int = launch.MOST_STEPS) -> dict:
        """All kernels, one launch each; the paths of their logs by name."""
        x = np.arange(COUNT, dtype=np.float32)
        done = run_direct(
            self.direct,
            BLOCKS,
            [x],
            [((COUNT,), F32)],
            options=LaunchOptions(record=record, dry=dry, most_steps=most_steps),
        )
        assert done.completed
        return dict(zip(KERNELS, done.logs, strict=True))


@pytest.fixture(scope="module")
def kernels(chip: Chip, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    source = tmp_path_factory.mktemp("record") / "all.cpp"
    source.write_text(_source())
    return Kernels(build_direct(source, chip))


@pytest.fixture(scope="module")
def paths(kernels: Kernels, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return kernels.run(tmp_path_factory.mktemp("logs") / "log")


@pytest.fixture(scope="module")
def logs(paths: dict[str, Path]) -> dict[str, Log]:
    return {name: read_log(path) for name, path in paths.items()}


def _first(core: Core, what: str, unit: str = "") -> Step:
    return core.find(what, unit)[0]


def test_every_launch_of_a_run_leaves_a_log_of_its_own(paths: dict[str, Path]) -> None:
    assert [path.name for path in paths.values()] == [
        "log",
        *(f"log.{at}" for at in range(1, len(KERNELS))),
    ]


def test_a_log_names_cores_regions_and_places(logs: dict[str, Log]) -> None:
    log = logs["flags"]
    assert (log.blocks, log.cubes, log.vectors, log.finished) == (BLOCKS, 0, BLOCKS, True)
    assert [core.number for core in log.cores] == [0, 2, 4]
    assert all(core.ended and not core.cube and core.dropped == 0 for core in log.cores)
    assert [(region.bytes, region.writable) for region in log.regions] == [
        (4 * COUNT, False),
        (4 * COUNT, True),
    ]
    file, line, api = _first(log.cores[0], "adds").place
    assert file.endswith("all.cpp") and line > 0 and api == "Adds"


def test_copies_say_rows_pitch_and_offset(logs: dict[str, Log]) -> None:
    core = logs["copies"].cores[1]
    blocks, padded = core.find("gm_ub")
    assert (blocks.unit, blocks.rows, blocks.bytes, blocks.pitch) == ("MTE2", 3, 64, 192)
    assert (blocks.region, blocks.offset, blocks.local, blocks.flags) == (1, 256, 0, 0)
    assert (padded.rows, padded.bytes, padded.pitch, padded.offset) == (2, 20, 120, 28)
    out = _first(core, "ub_gm")
    assert (out.unit, out.rows, out.bytes, out.region) == ("MTE3", 1, 1024, 2)
    assert out.offset == 4096 + 32 and out.flags == ATOMIC | NO_L2
    inside = _first(core, "ub_ub")
    assert (inside.unit, inside.bytes, inside.region, inside.local) == ("V", 256, 0, 1024)


def test_vector_steps_say_repeats_strides_and_masks(logs: dict[str, Log]) -> None:
    core = logs["names"].cores[0]
    exp = _first(core, "exp")
    assert (exp.kind, exp.repeats, exp.elements, exp.flags) == ("vector", 4, 256, SETS_MASK)
    add = _first(core, "add")
    assert (add.repeats, add.elements, add.flags) == (4, 128, SETS_MASK)
    mul = _first(core, "mul")
    assert (mul.repeats, mul.elements, mul.flags) == (2, 128, 0)
    assert mul.dst is not None and mul.src0 is not None and mul.src1 is not None
    assert (mul.dst.addr, mul.dst.repeat, mul.dst.block) == (64, 16, 2)
    assert (mul.src0.addr, mul.src1.addr, mul.src1.repeat) == (0, 32, 0)
    cast = _first(core, "cast")  # 64 lanes a repeat: of the wider type
    assert (cast.repeats, cast.elements, cast.type, cast.src_type) == (2, 65, 1, 0)
    assert (_first(core, "compare").repeats, _first(core, "select").repeats) == (4, 4)
    assert _first(core, "whole_reduce_sum").flags == SETS_MASK
    tanh = _first(core, "tanh")
    assert (tanh.kind, tanh.unit, tanh.elements) == ("library", "V", 256)


def test_a_queue_hands_over_from_pipe_to_pipe(logs: dict[str, Log]) -> None:
    core = logs["queues"].cores[0]
    loads, sums, stores = (core.find(what) for what in ("gm_ub", "adds", "ub_gm"))
    assert loads[0].deps == ()
    assert ("MTE2", 1) in sums[0].deps
    assert ("V", 1) in stores[0].deps
    assert ("V", 1) in loads[1].deps  # the one buffer has to be free again
    assert ("MTE2", 2) in sums[1].deps and ("MTE3", 1) in sums[1].deps
    assert ("V", 2) in stores[1].deps


def test_a_flag_waits_for_what_was_before_it_and_no_more(logs: dict[str, Log]) -> None:
    core = logs["flags"].cores[0]
    assert _first(core, "adds").deps == (("MTE2", 1),)  # not the copy behind SetFlag
    assert ("V", 1) in _first(core, "ub_gm").deps
    assert [step.what for step in core.steps if step.what.endswith("_flag")] == [
        "set_flag",
        "wait_flag",
    ] * 2


def test_auto_sync_is_a_wait_of_the_vector_and_the_scalar_unit(logs: dict[str, Log]) -> None:
    core = logs["hidden"].cores[0]
    first, second = core.find("duplicate")
    assert (first.tick, second.tick) == (1, 2)
    assert second.deps == ()
    assert _first(core, "adds").deps == (("V", 2),)  # what the compiler adds is a barrier
    assert _first(core, "read").deps == (("V", 3),)


def test_barriers_of_one_pipe_and_of_all(logs: dict[str, Log]) -> None:
    core = logs["barriers"].cores[0]
    one, everything = core.find("barrier")[:2]
    assert (one.flags, one.deps) == (0, ())
    assert core.find("duplicate")[1].deps == (("V", 1),)
    assert (everything.flags, everything.deps) == (BARRIER, (("V", 2),))
    assert _first(core, "ub_gm").deps == ()  # the scalar unit has waited


def test_a_hazard_that_nothing_prevents_is_no_wait(logs: dict[str, Log]) -> None:
    assert _first(logs["hazard"].cores[0], "ub_gm").deps == ()


def test_sync_all_joins_every_other_core(logs: dict[str, Log]) -> None:
    log = logs["meeting"]
    for core in log.cores:
        meet = _first(core, "sync_all")
        assert meet.kind == "join" and meet.unit == "S"
        assert {join.core for join in meet.joins} == {0, 2, 4} - {core.number}
        for join in meet.joins:
            assert join.ticks["MTE3"] == 1 and join.ticks["V"] == 1
            # up to the other's own sync_all, not with it: that one waits for this core
            assert join.ticks["S"] == _first(log.core(join.core), "sync_all").tick - 1


def test_scalar_work_in_a_loop_is_one_step(logs: dict[str, Log]) -> None:
    core = logs["scalars"].cores[0]
    [reads] = core.find("read")
    assert (reads.count, reads.times) == (100, 100)
    assert reads.deps == (("V", 1),)  # the first of them; the others wait for nothing more
    assert _first(core, "write").tick == reads.tick + 1


def test_two_runs_leave_the_same_bytes(
    kernels: Kernels, paths: dict[str, Path], tmp_path: Path
) -> None:
    again = kernels.run(tmp_path / "log")
    assert all(again[name].read_bytes() == path.read_bytes() for name, path in paths.items())


def test_a_dry_run_leaves_the_same_log(
    kernels: Kernels, paths: dict[str, Path], tmp_path: Path
) -> None:
    dry = kernels.run(tmp_path / "log", dry=True)
    assert all(dry[name].read_bytes() == path.read_bytes() for name, path in paths.items())


def test_what_comes_after_the_cap_is_counted(
    kernels: Kernels, logs: dict[str, Log], tmp_path: Path
) -> None:
    most = 6
    short = {
        name: read_log(path)
        for name, path in kernels.run(tmp_path / "log", most_steps=most).items()
    }
    core, whole = short["copies"].cores[0], logs["copies"].cores[0]
    assert core.steps == whole.steps[:most]
    assert core.dropped == len(whole.steps) - most
    lost = whole.steps[most:]
    assert core.dropped_bytes == sum(step.rows * step.bytes for step in lost if step.region)
    core, whole = short["names"].cores[0], logs["names"].cores[0]
    assert core.dropped_repeats == sum(step.repeats for step in whole.steps[most:])


def test_nothing_is_recorded_unasked(kernels: Kernels, tmp_path: Path) -> None:
    x = np.zeros(COUNT, np.float32)
    done = run_direct(kernels.direct, BLOCKS, [x], [((COUNT,), F32)])
    assert done.logs == ()


DEADLOCK = """
#include "kernel_operator.h"
using namespace AscendC;
__global__ __aicore__ void half_way(GM_ADDR z) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, 1024);
  auto a = buf.Get<float>();
  Duplicate(a, 1.0f, 256);
  if (GetBlockIdx() == 0) return;
  SyncAll();
  Duplicate(a, 2.0f, 256);
}
int main() {
  uint8_t *z = nullptr;
  half_way<<<2, nullptr, nullptr>>>(z);
  return 0;
}
"""


def test_a_deadlock_leaves_what_was_done_before_it(chip: Chip, tmp_path: Path) -> None:
    source = tmp_path / "stuck.cpp"
    source.write_text(DEADLOCK)
    done = run_program(build_program(source, chip), options=LaunchOptions(record=tmp_path / "log"))
    assert not done.completed
    log = read_log(done.logs[0])
    assert not log.finished
    assert [core.ended for core in log.cores] == [True, False]
    stuck = log.core(2)
    assert stuck.steps[-1].what == "sync_all" and len(stuck.find("duplicate")) == 1


def test_an_operator_is_recorded_too(chip: Chip, tmp_path: Path) -> None:
    add = build(read_project(PROJECTS / "add"), chip, (F32, F32, F32))
    x = np.ones((8, 2048), np.float32)
    record = tmp_path / "log"
    record.write_text("of an earlier run")
    done = run(add, [x, x], [((8, 2048), F32)], options=LaunchOptions(record=record))
    assert done.completed and done.logs == (record,)
    assert np.array_equal(done.outputs[0], x + x)
    log = read_log(record)
    assert log.blocks == done.blocks == len(log.cores)
    names = [region.name for region in log.regions]
    assert names == ["input x", "input y", "output z", "workspace", "tiling"]
    moved = sum(step.rows * step.bytes for core in log.cores for step in core.find("gm_ub"))
    assert moved == 2 * x.nbytes


def test_a_log_that_is_no_plain_file_is_not_taken(tmp_path: Path) -> None:
    folder, record = tmp_path / "run", tmp_path / "log"
    folder.mkdir()
    record.write_text("of an earlier run")
    secret = tmp_path / "secret"
    secret.write_text("not the candidate's")
    (folder / "log").symlink_to(secret)
    assert launch._take_logs(folder, record) == ()
    assert not record.exists()
