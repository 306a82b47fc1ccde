"""What the log tells of cube cores: hand-written pipelines, and the steps of Matmul objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from readlog import ATOMIC, ND2NZ, Core, Log, Step, read_log

import npusmith
from npusmith.ir.dtypes import DType
from npusmith.target.chips import find_chip
from npusmith.twin.direct import DirectBuild, build_direct, run_direct
from npusmith.twin.launch import LaunchOptions

FIELDS = re.findall(
    r"X\((\w+)\)",
    (Path(npusmith.__file__).parent / "twin/include/twin/matmulfields.h").read_text(),
)
WORKSPACE = 20 << 20

# Four steps of k through two buffers at each level.
PIPELINE = """
#include "kernel_operator.h"
using namespace AscendC;
constexpr int kM = 32, kN = 48, kK = 64, kSteps = 4;

template <typename T>
__aicore__ inline void ToL1(const LocalTensor<T> &to, const GlobalTensor<T> &from, int rows) {
  Nd2NzParams how(1, rows, kK, 0, kK * kSteps, rows, 1, 0);
  DataCopy(to, from, how);
}

__global__ __cube__ void pipeline(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
  GlobalTensor<half> left, right;
  GlobalTensor<float> out;
  left.SetGlobalBuffer((__gm__ half *)a);
  right.SetGlobalBuffer((__gm__ half *)b);
  out.SetGlobalBuffer((__gm__ float *)c);
  LocalTensor<float> sum(TPosition::CO1, 0, kM * kN);
  for (int p = 0; p < 2; ++p) {
    SetFlag<HardEvent::MTE1_MTE2>(p);
    SetFlag<HardEvent::M_MTE1>(p);
  }
  for (int i = 0; i < kSteps; ++i) {
    const int p = i % 2;
    const int at = p * 16384;
    LocalTensor<half> a1(TPosition::A1, at, kM * kK), b1(TPosition::B1, 65536 + at, kN * kK);
    LocalTensor<half> a2(TPosition::A2, at, kM * kK), b2(TPosition::B2, at, kN * kK);
    WaitFlag<HardEvent::MTE1_MTE2>(p);
    ToL1(a1, left[i * kK], kM);
    ToL1(b1, right[i * kK], kN);
    SetFlag<HardEvent::MTE2_MTE1>(p);
    WaitFlag<HardEvent::MTE2_MTE1>(p);
    WaitFlag<HardEvent::M_MTE1>(p);
    const LoadData2DParams step(0, kK / 16, kM / 16, 0, 0, false, 0);
    for (int row = 0; row < kM / 16; ++row) LoadData(a2[row * 16 * kK], a1[row * 256], step);
    LoadData(b2, b1, LoadData2DParams(0, kN / 16 * (kK / 16), 1, 0, 0, false, 0));
    SetFlag<HardEvent::MTE1_MTE2>(p);
    SetFlag<HardEvent::MTE1_M>(p);
    WaitFlag<HardEvent::MTE1_M>(p);
    MmadParams how;
    how.m = kM;
    how.n = kN;
    how.k = kK;
    how.cmatrixInitVal = i == 0;
    Mmad(sum, a2, b2, how);
    SetFlag<HardEvent::M_MTE1>(p);
    PipeBarrier<PIPE_M>();
  }
  for (int p = 0; p < 2; ++p) {
    WaitFlag<HardEvent::MTE1_MTE2>(p);
    WaitFlag<HardEvent::M_MTE1>(p);
  }
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
  Fixpipe(out, sum, FixpipeParamsV220(kN, kM, kM, kN, false));
  PipeBarrier<PIPE_FIX>();
  SetAtomicAdd<float>();
  Fixpipe(out, sum, FixpipeParamsV220(kN, kM, kM, kN, false));
  SetAtomicNone();
}
extern "C" void pipeline_do(uint32_t blocks, void *stream, uint8_t *a, uint8_t *b, uint8_t *c) {
  pipeline<<<blocks, nullptr, stream>>>(a, b, c);
}
"""

CUBE = """
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using In = MatmulType<TPosition::GM, CubeFormat::ND, half, true>;
using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;

template <const auto &config>
__aicore__ inline void Product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR w,
                               const TCubeTiling &t, int trans) {
  Matmul<In, In, Out, Out, config> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, w, mm, &t);
  GlobalTensor<half> left, right;
  GlobalTensor<float> row, out;
  left.SetGlobalBuffer((__gm__ half *)a);
  right.SetGlobalBuffer((__gm__ half *)b);
  row.SetGlobalBuffer((__gm__ float *)bias);
  out.SetGlobalBuffer((__gm__ float *)c);
  mm.SetTensorA(left, (trans & 1) != 0);
  mm.SetTensorB(right, (trans & 2) != 0);
  if (t.isBias) mm.SetBias(row);
  mm.IterateAll(out);
  mm.End();
}
__global__ __cube__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR w,
                                 TCubeTiling t, int way, int trans) {
  if (way == 0) Product<CFG_NORM>(a, b, bias, c, w, t, trans);
  if (way == 1) Product<CFG_MDL>(a, b, bias, c, w, t, trans);
}
extern "C" void product_do(uint32_t blocks, void *stream, uint8_t *a, uint8_t *b, uint8_t *bias,
                           uint8_t *c, uint8_t *w, TCubeTiling t, int32_t way, int32_t trans) {
  product<<<blocks, nullptr, stream>>>(a, b, bias, c, w, t, way, trans);
}
"""

# Each vector core multiplies its own rows: `way` says how.
MIXED = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using Ub = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;

template <typename C>
__aicore__ inline void Product(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR w, const TCubeTiling &t,
                               int way) {
  Matmul<In, In, C> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, w, mm, &t);
  TBuf<TPosition::VECIN> room;
  pipe.InitBuffer(room, 32768);
  const int core = GetBlockIdx(), size = t.singleCoreM * t.singleCoreN;
  GlobalTensor<half> left, right;
  GlobalTensor<float> out;
  left.SetGlobalBuffer((__gm__ half *)a + core * t.singleCoreM * t.Ka);
  right.SetGlobalBuffer((__gm__ half *)b);
  out.SetGlobalBuffer((__gm__ float *)c + core * size);
  const int rounds = way == 1 ? 2 - core : 2;
  if (way == 1 && core == 1) SyncAll();
  for (int i = 0; i < rounds; ++i) {
    mm.SetTensorA(left);
    mm.SetTensorB(right);
    if constexpr (C::pos != TPosition::GM) {
      auto local = room.Get<float>();
      while (mm.Iterate()) mm.GetTensorC(local);
      SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
      WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
      DataCopy(out, local, size);
    } else if (way == 2) {
      mm.template IterateAll<false>(out, 0, false, true);
      room.Get<float>().SetValue(0, 1.0f);
      mm.WaitIterateAll();
    } else {
      mm.IterateAll(out);
    }
  }
  if (way == 1 && core == 0) SyncAll();
  if (way == 4 && core == 0) CrossCoreWaitFlag(5);  // which nobody sets
  mm.End();
}
__global__ __mix__(1, 2) void product(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR w, TCubeTiling t,
                                      int way) {
  if (way == 3) Product<Ub>(a, b, c, w, t, 0);
  else Product<Out>(a, b, c, w, t, way);
}
extern "C" void product_do(uint32_t blocks, void *stream, uint8_t *a, uint8_t *b, uint8_t *c,
                           uint8_t *w, TCubeTiling t, int32_t way) {
  product<<<blocks, nullptr, stream>>>(a, b, c, w, t, way);
}
"""


def tiling(m: int, n: int, k: int, base: tuple[int, int, int], **more: int) -> dict[str, int]:
    """A TCubeTiling of one core, without double buffers unless asked for."""
    rows = dict.fromkeys(FIELDS, 0)
    rows |= {"usedCoreNum": 1, "M": m, "N": n, "Ka": k, "Kb": k}
    rows |= {"singleCoreM": m, "singleCoreN": n, "singleCoreK": k}
    rows |= dict(zip(("baseM", "baseN", "baseK"), base, strict=True))
    rows |= dict.fromkeys(("depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb"), 1)
    rows |= dict.fromkeys(("dbL0A", "dbL0B", "dbL0C"), 1)
    return rows | more


def words(rows: dict[str, int]) -> bytes:
    return np.array([rows[name] for name in FIELDS], np.int32).tobytes()


def number(value: int) -> bytes:
    return np.int32(value).tobytes()


LARGE = tiling(512, 512, 512, (128, 256, 64), stepKa=4, stepKb=4, depthA1=8, depthB1=8,
               dbL0A=2, dbL0B=2)  # fmt: skip

Make = Callable[[str], DirectBuild]


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A source text -> its build, once."""
    builds: dict[str, DirectBuild] = {}

    def one(text: str) -> DirectBuild:
        if text not in builds:
            file = tmp_path_factory.mktemp("direct") / "product.asc"
            file.write_text(text)
            builds[text] = build_direct(file, find_chip("910B2"))
        return builds[text]

    return one


def operands(rows: dict[str, int], cores: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    a = random.integers(-3, 4, (rows["M"] * cores, rows["Ka"])).astype(np.float16)
    return a, random.integers(-3, 4, (rows["Kb"], rows["N"])).astype(np.float16)


def cube_log(
    make: Make, folder: Path, rows: dict[str, int], way: int, *, trans: int = 0, dry: bool = False
) -> Log:
    a, b = operands(rows)
    bias = np.arange(rows["N"], dtype=np.float32)
    exact = a.astype(np.float32) @ b.astype(np.float32) + bias * rows["isBias"]
    stored = [np.ascontiguousarray(x.T if trans >> i & 1 else x) for i, x in enumerate((a, b))]
    done = run_direct(
        make(CUBE),
        1,
        [*stored, bias],
        [(exact.shape, DType.FLOAT32)],
        [WORKSPACE, words(rows), number(way), number(trans)],
        options=LaunchOptions(record=folder / "log", dry=dry),
    )
    assert done.findings == []
    if not dry:
        np.testing.assert_array_equal(done.outputs[0], exact)
    return read_log(folder / "log")


def mixed_log(make: Make, folder: Path, rows: dict[str, int], way: int, blocks: int = 1) -> Log:
    a, b = operands(rows, 2 * blocks)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    done = run_direct(
        make(MIXED),
        blocks,
        [a, b],
        [(exact.shape, DType.FLOAT32)],
        [WORKSPACE, words(rows), number(way)],
        options=LaunchOptions(record=folder / "log"),
    )
    assert done.findings == []
    np.testing.assert_array_equal(done.outputs[0], exact)
    return read_log(folder / "log")


def total(steps: list[Step]) -> int:
    return sum(step.rows * step.bytes for step in steps)


def tick_of(step: Step, unit: str) -> int:
    """The tick of that unit for which the step waits, 0 for none."""
    return max((tick for by, tick in step.deps if by == unit), default=0)


def tiles(core: Core) -> int:
    """Of 16 x 16 x 16."""
    steps = core.find("mmad", "M")
    return sum(-(-s.m // 16) * -(-s.n // 16) * -(-s.k // 16) for s in steps)


@pytest.fixture(scope="module")
def pipeline(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Core:
    a = np.ones((32, 256), np.float16)
    b = np.ones((48, 256), np.float16)
    log = tmp_path_factory.mktemp("log") / "log"
    done = run_direct(
        make(PIPELINE), 1, [a, b], [((32, 48), DType.FLOAT32)], options=LaunchOptions(record=log)
    )
    assert done.findings == []
    assert (done.outputs[0] == 512).all()
    return read_log(log).core(1)


def test_cube_instructions_are_told_with_their_sizes(pipeline: Core) -> None:
    loads = pipeline.find("gm_l1", "MTE2")
    assert [(s.rows, s.bytes, s.pitch, s.flags) for s in loads] == [
        (32, 128, 512, ND2NZ), (48, 128, 512, ND2NZ)] * 4  # fmt: skip
    assert [s.offset for s in loads[::2]] == [0, 128, 256, 384]
    assert [(s.rows, s.bytes) for s in pipeline.find("l1_l0a", "MTE1")] == [(4, 512)] * 8
    assert [(s.rows, s.bytes) for s in pipeline.find("l1_l0b", "MTE1")] == [(12, 512)] * 4
    products = pipeline.find("mmad", "M")
    assert [(s.m, s.n, s.k, s.accumulates) for s in products] == [
        (32, 48, 64, i > 0) for i in range(4)
    ]
    out = pipeline.find("l0c_gm", "FIX")
    assert [(s.rows, s.bytes, s.pitch, s.flags) for s in out] == [
        (32, 192, 192, 0), (32, 192, 192, ATOMIC)]  # fmt: skip


def test_a_load_waits_for_the_reader_of_its_buffer_two_uses_ago(pipeline: Core) -> None:
    loads, products = pipeline.find("gm_l1", "MTE2")[::2], pipeline.find("mmad", "M")
    lefts, rights = pipeline.find("l1_l0a", "MTE1")[::2], pipeline.find("l1_l0b", "MTE1")
    waits = [tick_of(step, "MTE1") for step in loads]
    assert waits == [0, 0, rights[0].tick, rights[1].tick]
    assert [tick_of(step, "M") for step in lefts] == [0, 0, products[0].tick, products[1].tick]
    arrived = pipeline.find("gm_l1", "MTE2")[1::2]
    assert [tick_of(step, "MTE2") for step in lefts] == [step.tick for step in arrived]
    assert [tick_of(step, "MTE1") for step in products] == [step.tick for step in rights]
    assert tick_of(pipeline.find("l0c_gm", "FIX")[0], "M") == products[-1].tick


@pytest.mark.parametrize(("way", "loads"), [(0, (64, 16)), (1, (16, 4))], ids=["norm", "mdl"])
def test_a_matmul_object_loads_what_its_tiling_asks_for(
    make: Make, tmp_path: Path, way: int, loads: tuple[int, int]
) -> None:
    """4 x 2 base blocks: A's rows come again for each of 2 columns, a column of B stays in L1."""
    core = cube_log(make, tmp_path, LARGE, way).core(1)
    moves = core.find("gm_l1", "MTE2")
    left = [step for step in moves if step.region == moves[0].region]
    right = [step for step in moves if step.region != moves[0].region]
    assert (len(left), len(right)) == loads
    assert all(step.flags == ND2NZ and step.pitch == 1024 for step in moves)
    assert total(left) == 2 * 512 * 512 * 2
    assert total(right) == 512 * 512 * 2
    assert total(core.find("l1_l0a", "MTE1")) == 2 * 512 * 512 * 2
    assert total(core.find("l1_l0b", "MTE1")) == 4 * 512 * 512 * 2
    assert len(core.find("mmad", "M")) == 64
    assert tiles(core) == (512 // 16) ** 3
    out = core.find("l0c_gm", "FIX")
    assert [(s.rows, s.bytes, s.pitch) for s in out] == [(128, 1024, 2048)] * 8
    assert [s.offset for s in out[:5]] == [0, 128 * 2048, 256 * 2048, 384 * 2048, 1024]
    scalar = {what: sum(s.times for s in core.find(what, "S")) for what in ("mm_load", "mm_step")}
    assert scalar == {"mm_load": sum(loads), "mm_step": 64}


def test_two_buffers_in_l1_let_a_panel_wait_for_the_last_but_one(
    make: Make, tmp_path: Path
) -> None:
    core = cube_log(make, tmp_path, LARGE, 1).core(1)
    moves, products = core.find("gm_l1", "MTE2"), core.find("mmad", "M")
    lefts, rights = core.find("l1_l0a", "MTE1"), core.find("l1_l0b", "MTE1")
    left = [step for step in moves if step.region == moves[0].region]
    # a panel of A is read in four steps of k; the third panel takes the place of the first
    waits = [tick_of(step, "MTE1") for step in left]
    assert waits == [0, 0, *(rights[4 * i + 3].tick for i in range(14))]
    # the first panel of each column comes together with one of B
    arrived = [tick_of(lefts[4 * i], "MTE2") for i in range(16)]
    together = {0: 1, 1: 1, 8: 1, 9: 1}
    assert arrived == [step.tick + together.get(i, 0) for i, step in enumerate(left)]
    assert [tick_of(step, "M") for step in lefts] == [0, 0, *(s.tick for s in products[:-2])]


@pytest.mark.parametrize("way", [0, 1], ids=["norm", "mdl"])
def test_one_buffer_in_l1_makes_loads_wait_for_both_reads(
    make: Make, tmp_path: Path, way: int
) -> None:
    one = dict.fromkeys(("stepKa", "stepKb", "depthA1", "depthB1"), 1)
    core = cube_log(make, tmp_path, LARGE | one, way).core(1)
    moves = core.find("gm_l1", "MTE2")
    lefts, rights = core.find("l1_l0a", "MTE1"), core.find("l1_l0b", "MTE1")
    left, right = moves[::2], moves[1::2]
    read = [0, *(step.tick for step in rights[:-1])]
    assert [tick_of(step, "MTE1") for step in left] == read
    assert [tick_of(step, "MTE1") for step in right] == read
    assert [tick_of(step, "MTE2") for step in lefts] == [step.tick for step in right]
    assert total(right) == 4 * 512 * 512 * 2  # nothing of B stays


def test_l0c_is_free_when_its_block_has_left(make: Make, tmp_path: Path) -> None:
    def waits(rows: dict[str, int], way: int) -> tuple[list[int], list[Step]]:
        core = cube_log(make, tmp_path, rows, way).core(1)
        firsts = [step for step in core.find("mmad", "M") if not step.accumulates]
        return [tick_of(step, "FIX") for step in firsts], core.find("l0c_gm", "FIX")

    small = tiling(64, 64, 32, (32, 32, 16))
    one, out = waits(small, 1)
    assert one == [0, *(step.tick for step in out[:3])]
    two, out = waits(small | {"dbL0C": 2}, 1)
    assert two == [0, 0, *(step.tick for step in out[:2])]
    flag, out = waits(small, 0)  # Norm has the unit flag on: as good as one more buffer
    assert flag == [0, 0, *(step.tick for step in out[:2])]


def test_transposed_operands_are_read_along_their_stored_rows(make: Make, tmp_path: Path) -> None:
    rows = tiling(48, 80, 96, (16, 32, 32), stepKa=3, stepKb=3, depthA1=3, depthB1=3)
    core = cube_log(make, tmp_path, rows, 1, trans=3).core(1)
    moves = core.find("gm_l1", "MTE2")
    left = [step for step in moves if step.region == moves[0].region]
    right = [step for step in moves if step.region != moves[0].region]
    assert {(s.rows, s.bytes, s.pitch) for s in left} == {(96, 32, 96)}
    assert [(s.rows, s.bytes, s.offset) for s in right] == [
        (32, 192, 0), (32, 192, 32 * 192), (16, 192, 64 * 192)]  # fmt: skip


def test_bias_reaches_its_table_before_the_first_product(make: Make, tmp_path: Path) -> None:
    rows = tiling(32, 64, 64, (32, 32, 32), isBias=1)
    core = cube_log(make, tmp_path, rows, 1).core(1)
    tables = core.find("l1_bt", "MTE1")
    assert [(s.rows, s.bytes) for s in tables] == [(1, 128)] * 2
    products = core.find("mmad", "M")
    assert all(step.accumulates for step in products)  # on the bias
    assert tick_of(products[0], "MTE1") > tables[0].tick
    assert tick_of(tables[1], "M") == products[0].tick


@pytest.mark.parametrize("way", [0, 1])
def test_a_dry_run_leaves_the_log_of_a_full_one(make: Make, tmp_path: Path, way: int) -> None:
    rows = tiling(96, 80, 70, (32, 48, 32), dbL0A=2, isBias=1)
    cube_log(make, tmp_path, rows, way)
    full = (tmp_path / "log").read_bytes()
    cube_log(make, tmp_path, rows, way, dry=True)
    assert (tmp_path / "log").read_bytes() == full


def test_a_dry_run_of_a_pipeline_leaves_the_same_log_and_no_values(
    make: Make, tmp_path: Path
) -> None:
    a, b = np.ones((32, 256), np.float16), np.ones((48, 256), np.float16)
    logs = []
    for dry in (False, True):
        log = tmp_path / str(dry)
        output = ((32, 48), DType.FLOAT32)
        done = run_direct(
            make(PIPELINE), 1, [a, b], [output], options=LaunchOptions(record=log, dry=dry)
        )
        assert done.findings == []
        assert [bool((values == 512).all()) for values in done.outputs] == ([] if dry else [True])
        logs.append(log.read_bytes())
    assert logs[0] == logs[1]


SMALL = tiling(32, 64, 64, (32, 32, 32))


def requests(log: Log) -> list[int]:
    """Which vector cores the first cube core has served, in order."""
    return [step.joins[0].core for step in log.core(1).find("matmul_request", "S")]


def test_the_cube_core_does_what_its_vector_cores_ask_for_in_turn(
    make: Make, tmp_path: Path
) -> None:
    log = mixed_log(make, tmp_path, SMALL, 0)
    assert requests(log) == [0, 2, 0, 2]
    cube = log.core(1)
    assert tiles(cube) == 4 * (2 * 4 * 4)
    out = cube.find("l0c_gm", "FIX")
    assert len(out) == 4 * 2
    for sub in (0, 1):
        core = log.core(2 * sub)
        assert not core.find("mmad")
        waits = core.find("matmul_wait", "S")
        # its own requests are number sub and sub + 2, of two blocks each
        last = [out[2 * (sub + 2 * i) + 1].tick for i in range(2)]
        assert [step.joins[0].core for step in waits] == [1, 1]
        assert [step.joins[0].ticks["FIX"] for step in waits] == last


def test_the_cube_core_waits_for_the_call_itself(make: Make, tmp_path: Path) -> None:
    log = mixed_log(make, tmp_path, SMALL, 0)
    for step in log.core(1).find("matmul_request", "S"):
        client = log.core(step.joins[0].core)
        asked = [s.tick for s in client.steps if s.unit == "S" and s.place[2] == "IterateAll"]
        assert set(step.joins[0].ticks) == {"S"}
        assert step.joins[0].ticks["S"] in asked


def test_who_has_heard_of_a_request_is_served_after_it(make: Make, tmp_path: Path) -> None:
    """The second core asks behind a barrier that the first reaches after two requests."""
    assert requests(mixed_log(make, tmp_path, SMALL, 1)) == [0, 0, 2]


def test_a_core_goes_on_until_it_waits_for_an_asynchronous_product(
    make: Make, tmp_path: Path
) -> None:
    scalar = [
        step for step in mixed_log(make, tmp_path, SMALL, 2).core(0).steps if step.unit == "S"
    ]
    waits = [at for at, step in enumerate(scalar) if step.what == "matmul_wait"]
    assert len(waits) == 2
    for at in waits:
        assert scalar[at - 1].place[2] == "WaitIterateAll"
        apis = [step.place[2] for step in scalar[:at]]
        asked = len(apis) - 1 - apis[::-1].index("IterateAll")
        assert "SetValue" in apis[asked:]


def test_results_for_ub_come_through_the_workspace(make: Make, tmp_path: Path) -> None:
    log = mixed_log(make, tmp_path, tiling(32, 32, 64, (32, 32, 32)), 3)
    core, cube = log.core(0), log.core(1)
    came, left = core.find("gm_ub", "MTE2"), cube.find("l0c_gm", "FIX")
    assert [total([step]) for step in (*came, *left)] == [32 * 32 * 4] * (2 + 4)
    for step in came:
        assert core.steps[core.steps.index(step) - 1].what == "matmul_wait"
    assert requests(log) == [0, 2] * 4  # Iterate and GetTensorC are a request each


def test_blocks_keep_their_requests_apart(make: Make, tmp_path: Path) -> None:
    log = mixed_log(make, tmp_path, SMALL, 0, blocks=2)
    assert requests(log) == [0, 2, 0, 2]
    joins = log.core(3).find("matmul_request", "S")
    assert [step.joins[0].core for step in joins] == [4, 6, 4, 6]
    assert all(core.ended for core in log.cores)
    assert len(log.cores) == 6


def test_what_was_asked_for_before_a_deadlock_is_told(make: Make, tmp_path: Path) -> None:
    a, b = operands(SMALL, 2)
    rest = [WORKSPACE, words(SMALL), number(4)]
    output = ((64, 64), DType.FLOAT32)
    plain = run_direct(make(MIXED), 1, [a, b], [output], rest)
    done = run_direct(
        make(MIXED), 1, [a, b], [output], rest, options=LaunchOptions(record=tmp_path / "log")
    )
    assert [finding.code for finding in done.findings] == ["deadlock"]
    assert done.findings == plain.findings
    log = read_log(tmp_path / "log")
    assert not log.finished
    assert requests(log) == [0, 2, 0, 2]
    assert [log.core(at).ended for at in (0, 1, 2)] == [False, True, True]
