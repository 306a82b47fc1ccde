"""The host's matmul tiling: legal by the documented rules, complete, the same in both forms."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import npusmith
from npusmith.ir.dtypes import DType
from npusmith.target.chips import Chip, find_chip
from npusmith.target.header import chip_header
from npusmith.twin import build, read_project, run

TWIN = Path(npusmith.__file__).parent / "twin"
FIELDS = re.findall(r"X\((\w+)\)", (TWIN / "include/twin/matmulfields.h").read_text())
L0, L0C, L1 = 65536, 131072, 524288
SIZES: dict[int, float] = {0: 4, 1: 2, 2: 1, 27: 2, 29: 0.5}  # bytes by ge::DataType

DRIVER = """
#include <cstring>
#include "tiling/tiling_api.h"
using namespace matmul_tiling;

template <typename T>
int Make(T &tiling, const int *ask, int *out) {
  const auto type = static_cast<DataType>(ask[3]);
  tiling.SetAType(TPosition::GM, CubeFormat::ND, type, ask[4]);
  tiling.SetBType(TPosition::GM, CubeFormat::ND, type, ask[5]);
  tiling.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  tiling.SetBiasType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  tiling.SetOrgShape(ask[0], ask[1], ask[2]);
  tiling.SetShape(ask[0], ask[1], ask[2]);
  tiling.EnableBias(ask[6]);
  if (tiling.SetFixSplit(ask[8], ask[9], ask[10]) != 0) return -2;
  if (tiling.SetBufferSpace(ask[11], -1, -1) != 0) return -3;
  if (ask[12]) tiling.SetTraverse(MatrixTraverse::FIRSTN);
  if (ask[13]) tiling.SetBatchInfoForNormal(ask[13], ask[13], ask[0], ask[1], ask[2]);
  optiling::TCubeTiling first;
  AscendC::tiling::TCubeTiling second;
  if (tiling.GetTiling(first) != 0 || tiling.GetTiling(second) != 0) return -1;
  if (first.GetDataSize() != sizeof second) return -4;
  first.SaveToBuffer(out, sizeof second);
  return std::memcmp(out, &second, sizeof second) == 0 ? 0 : -5;
}

extern "C" int ask_tiling(const int *ask, int *out) {
  if (ask[7] == 0 && ask[13] != 0) {
    BatchMatmulTiling tiling;
    return Make(tiling, ask, out);
  }
  if (ask[7] == 0) {
    MatmulApiTiling tiling;
    return Make(tiling, ask, out);
  }
  MultiCoreMatmulTiling tiling;
  tiling.SetDim(ask[7]);
  tiling.EnableMultiCoreSplitK(ask[14]);
  const int done = Make(tiling, ask, out);
  int cores, down, across, m, n, k;
  tiling.GetCoreNum(cores, down, across);
  tiling.GetSingleShape(m, n, k);
  if (done == 0 && (cores != out[0] || m != out[5] || n != out[6] || k != out[7])) return -6;
  return done;
}

// A is in L1 as a whole: usedCoreNum, singleCoreM, N, K.
extern "C" int ask_tscm(int cores, int *out) {
  MultiCoreMatmulTiling tiling;
  tiling.SetDim(cores);
  tiling.SetAType(TPosition::TSCM, CubeFormat::NZ, DataType::DT_FLOAT16);
  tiling.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  tiling.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  tiling.SetShape(64, 64, 64);
  tiling.SetOrgShape(64, 64, 64);
  optiling::TCubeTiling made;
  if (tiling.GetTiling(made) != 0) return -1;
  out[0] = made.get_usedCoreNum(), out[1] = made.get_singleCoreM();
  out[2] = made.get_singleCoreN(), out[3] = made.get_singleCoreK();
  return 0;
}

// What one core computes is given for M alone: usedCoreNum, singleCoreM, N, K.
extern "C" int ask_single(int cores, int m, int *out) {
  MultiCoreMatmulTiling tiling;
  tiling.SetDim(cores);
  tiling.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  tiling.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  tiling.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  tiling.SetShape(200, 96, 64);
  tiling.SetOrgShape(200, 96, 64);
  tiling.SetSingleShape(m, -1, -1);
  optiling::TCubeTiling made;
  if (tiling.GetTiling(made) != 0) return -1;
  out[0] = made.get_usedCoreNum(), out[1] = made.get_singleCoreM();
  out[2] = made.get_singleCoreN(), out[3] = made.get_singleCoreK();
  return 0;
}

// A tiling class that holds one, after a field that leaves it unaligned.
namespace optiling {
BEGIN_TILING_DATA_DEF(Holder)
TILING_DATA_FIELD_DEF(uint32_t, first);
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, cube);
END_TILING_DATA_DEF;
}
struct KernelHolder { std::uint32_t first; AscendC::tiling::TCubeTiling cube; };
extern "C" int nested() {
  optiling::Holder host;
  host.cube.set_BatchNum(77);
  KernelHolder kernel;
  if (host.GetDataSize() != sizeof kernel) return 0;
  host.SaveToBuffer(&kernel, sizeof kernel);
  return kernel.cube.BatchNum;
}
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("tiling")
    (folder / "twin").mkdir()
    (folder / "twin" / "chip.h").write_text(chip_header(find_chip("910B2")))
    (folder / "driver.cpp").write_text(DRIVER)
    host = TWIN / "runtime" / "host"
    sources = [folder / "driver.cpp", host / "matmul.cpp", host / "tilingdata.cpp"]
    command = ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", f"-I{folder}"]
    command += [f"-I{TWIN / 'include'}", f"-I{TWIN / 'runtime'}", "-o", str(folder / "driver.so")]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "driver.so"))


def ask(library: ctypes.CDLL, *words: int) -> dict[str, int] | int:
    """m n k type transA transB bias cores | baseM baseN baseK l1 firstN batch splitK"""
    given = (ctypes.c_int * 15)(
        *words, *(0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0)[len(words) :]
    )
    out = (ctypes.c_int * len(FIELDS))()
    done = library.ask_tiling(given, out)
    return dict(zip(FIELDS, out, strict=True)) if done == 0 else int(done)


def legal(t: dict[str, int], size: float) -> None:
    """The rules of the TCubeTiling page."""
    a, b = t["baseM"] * t["baseK"] * size, t["baseN"] * t["baseK"] * size
    c, bias = t["baseM"] * t["baseN"] * 4, t["isBias"] * t["baseN"] * 4
    assert t["baseM"] % 16 == 0
    assert t["baseN"] % 16 == 0
    assert t["baseK"] % max(16, 32 // size) == 0
    assert min(t["baseM"], t["baseN"], t["baseK"]) > 0
    assert a * t["dbL0A"] <= L0
    assert b * t["dbL0B"] <= L0
    assert c * t["dbL0C"] <= L0C
    assert bias <= 1024
    assert t["depthA1"] in (t["stepM"] * t["stepKa"], 2 * t["stepM"] * t["stepKa"])
    assert t["depthB1"] in (t["stepN"] * t["stepKb"], 2 * t["stepN"] * t["stepKb"])
    assert t["depthA1"] * a + t["depthB1"] * b + bias <= L1
    assert t["baseM"] <= -(-t["singleCoreM"] // 16) * 16


def test_every_tiling_is_legal_and_covers_the_product(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(3)
    shapes = [tuple(int(x) for x in row) for row in (2 ** random.uniform(0, 13, (60, 3)))]
    shapes += [(1, 1, 1), (16, 16, 16), (8192, 8192, 8192), (1, 65535, 1), (100000, 16, 3)]
    for at, (m, n, k) in enumerate(shapes):
        for kind, size in SIZES.items():
            cores = (0, 1, 2, 20, 24, 48)[at % 6]
            t = ask(library, m, n, k, kind, at % 2, at // 2 % 2, at // 4 % 2, cores)
            assert isinstance(t, dict)
            legal(t, size)
            down, across = -(-m // t["singleCoreM"]), -(-n // t["singleCoreN"])
            assert t["singleCoreK"] == k
            assert (t["M"], t["N"], t["Ka"], t["Kb"]) == (m, n, k, k)
            assert t["usedCoreNum"] == down * across <= max(cores, 1)
            assert down == 1 or t["singleCoreM"] % 16 == 0
            assert across == 1 or t["singleCoreN"] % 16 == 0


def test_a_large_half_product_gets_the_block_that_performs_well(library: ctypes.CDLL) -> None:
    t = ask(library, 4096, 4096, 4096, 1, 0, 0, 0, 24)
    assert isinstance(t, dict)
    assert (t["baseM"], t["baseN"], t["baseK"]) == (128, 256, 64)
    assert t["dbL0A"] == t["dbL0B"] == 2
    assert t["usedCoreNum"] == 24


def test_a_narrow_block_is_as_deep_as_l0_allows(library: ctypes.CDLL) -> None:
    t = ask(library, 128, 128, 512, 1, 0, 0, 0, 1)
    assert isinstance(t, dict)
    assert (t["baseM"], t["baseN"], t["baseK"]) == (128, 128, 128)


def test_rows_of_a_matrix_in_l1_are_not_cut(library: ctypes.CDLL) -> None:
    out = (ctypes.c_int * 4)()
    assert library.ask_tscm(24, out) == 0
    cores, m, n, k = out
    assert (m, k) == (64, 64)
    assert cores == 64 // n


def test_a_given_single_shape_is_kept_and_all_cores_count(library: ctypes.CDLL) -> None:
    out = (ctypes.c_int * 4)()
    assert library.ask_single(8, 48, out) == 0
    assert list(out) == [8, 48, 96, 64]


def test_cores_keep_long_rows_of_global_memory(library: ctypes.CDLL) -> None:
    t = ask(library, 256, 512, 192, 1, 0, 0, 0, 24)
    assert isinstance(t, dict)
    assert t["singleCoreN"] in (256, 512)
    t = ask(library, 16, 512, 192, 1, 0, 1, 0, 24)  # rows of a transposed B run along K
    assert isinstance(t, dict)
    assert t["singleCoreN"] < 256


def test_a_product_of_short_rows_is_cut_along_n(library: ctypes.CDLL) -> None:
    t = ask(library, 512, 128, 128, 1, 0, 0, 1, 2, 128, 64, 128)  # as a published example says
    assert isinstance(t, dict)
    assert (t["singleCoreM"], t["singleCoreN"]) == (512, 64)


def test_k_is_cut_only_when_asked(library: ctypes.CDLL) -> None:
    t = ask(library, 64, 64, 65536, 1, 0, 0, 0, 8, -1, -1, -1, -1, 0, 0, 1)
    assert isinstance(t, dict)
    assert t["singleCoreK"] < 65536
    assert t["usedCoreNum"] == 8


def test_fixed_blocks_are_kept_or_refused(library: ctypes.CDLL) -> None:
    t = ask(library, 512, 512, 512, 0, 0, 0, 1, 2, 128, 128, -1)
    assert isinstance(t, dict)
    assert (t["baseM"], t["baseN"]) == (128, 128)
    legal(t, 4)
    assert ask(library, 512, 512, 512, 0, 0, 0, 1, 2, 100, 128, -1) == -2  # not whole fractals
    assert ask(library, 12, 512, 512, 1, 0, 0, 0, 0, 32, 16, -1) == -1  # more than the product
    assert ask(library, 512, 512, 512, 1, 0, 0, 0, 0, 256, 256, -1) == -1  # more than L0C
    assert ask(library, 512, 512, 512, 1, 0, 0, 0, 0, -1, -1, -1, L1 + 1) == -3


def test_impossible_shapes_are_refused(library: ctypes.CDLL) -> None:
    assert ask(library, 0, 16, 16, 1) == -1
    assert ask(library, 16, -5, 16, 1) == -1


def test_layouts_and_batches_reach_the_kernel(library: ctypes.CDLL) -> None:
    t = ask(library, 32, 48, 64, 1, 0, 0, 0, 0, -1, -1, -1, -1, 1, 5)
    assert isinstance(t, dict)
    assert [t[name] for name in ("BatchNum", "ALayoutInfoB", "ALayoutInfoS")] == [5, 5, 32]
    assert [t[name] for name in ("CLayoutInfoS1", "CLayoutInfoS2", "iterateOrder")] == [32, 48, 1]


def test_a_nested_tiling_lies_where_the_kernel_reads_it(library: ctypes.CDLL) -> None:
    assert library.nested() == 77


HOST = """#include "register/op_def_registry.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(ProductTiling)
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, cube);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ProductCustom, ProductTiling)
static ge::graphStatus Tile(gert::TilingContext *context) {
  auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  auto a = context->GetInputShape(0)->GetStorageShape();
  auto b = context->GetInputShape(1)->GetStorageShape();
  matmul_tiling::MultiCoreMatmulTiling cube(platform);
  using namespace matmul_tiling;
  cube.SetDim(4);
  cube.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  cube.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  cube.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  cube.SetOrgShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
  cube.SetShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
  cube.SetBufferSpace(-1, -1, -1);
  ProductTiling tiling;
  if (cube.GetTiling(tiling.cube) == -1) return ge::GRAPH_FAILED;
  context->SetBlockDim(2);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class ProductCustom : public OpDef {
 public:
  explicit ProductCustom(const char *name) : OpDef(name) {
    Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    AICore().SetTiling(optiling::Tile).AddConfig("ascend910b");
  }
};
OP_ADD(ProductCustom);
}
"""
KERNEL = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void product_custom(GM_ADDR a, GM_ADDR b, GM_ADDR c,
                                                     GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  Matmul<In, In, MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &data.cube);
  const TCubeTiling &t = data.cube;
  const int down = DivCeil(t.M, t.singleCoreM), cores = GetBlockNum() * GetTaskRation();
  for (int core = GetBlockIdx(); core < t.usedCoreNum; core += cores) {
    const int row = core % down * t.singleCoreM, col = core / down * t.singleCoreN;
    GlobalTensor<half> left, right;
    GlobalTensor<float> out;
    left.SetGlobalBuffer((__gm__ half *)a + row * t.Ka);
    right.SetGlobalBuffer((__gm__ half *)b + col);
    out.SetGlobalBuffer((__gm__ float *)c + row * t.N + col);
    mm.SetTensorA(left);
    mm.SetTensorB(right);
    const int rows = t.M - row, cols = t.N - col;
    mm.SetTail(rows < t.singleCoreM ? rows : t.singleCoreM,
               cols < t.singleCoreN ? cols : t.singleCoreN);
    mm.IterateAll(out);
    mm.End();
  }
}
"""


CUBE = KERNEL.replace(
    '#include "kernel_operator.h"', '#define ASCENDC_CUBE_ONLY\n#include "kernel_operator.h"'
).replace(
    "GET_TILING_DATA(data, tiling);",
    "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);\n  GET_TILING_DATA(data, tiling);",
)


@pytest.mark.parametrize("kernel", [KERNEL, CUBE], ids=["mixed", "cube"])
def test_a_project_with_a_matmul_object_runs(tmp_path: Path, chip: Chip, kernel: str) -> None:
    for name, text in (("op_host", HOST), ("op_kernel", kernel)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "product_custom.cpp").write_text(text)
    made = build(read_project(tmp_path), chip, (DType.FLOAT16, DType.FLOAT16, DType.FLOAT32))
    random = np.random.default_rng(1)
    for m, n, k in ((100, 90, 70), (16, 16, 16), (257, 130, 33)):
        a = random.integers(-3, 4, (m, k)).astype(np.float16)
        b = random.integers(-3, 4, (k, n)).astype(np.float16)
        done = run(made, [a, b], [((m, n), DType.FLOAT32)])
        assert done.findings == []
        np.testing.assert_array_equal(done.outputs[0], a.astype(np.float32) @ b.astype(np.float32))
