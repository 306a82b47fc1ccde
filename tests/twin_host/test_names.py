"""Names of the documented interface that published libraries use, and those that the twin lacks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from npusmith.target.absent import ABSENT, explain, unmodelled
from npusmith.target.chips import Chip
from npusmith.twin.toolchain import INCLUDE, LIBRARY, find_toolchain

KERNEL = """
using namespace AscendC;
static_assert(Ceil(7, 2u) == 4 && CeilDiv(7, 2) == 4 && AlignUp(33, 32) == 64);
static_assert(GetDataBlockSizeInBytes() == 32 && TOTAL_UB_SIZE == 192 * 1024);
static_assert(std::is_same_v<TBuf<>, TBuf<TPosition::VECCALC>>);
static_assert(TrueType::value && DEFAULT_DATA_COPY_STRIDE == 0 && NCHW_CONV_ADDR_LIST_SIZE == 16);
static_assert(ReduceType::SUM != ReduceType::MAX && std::is_same_v<__bf16, bfloat16_t>);
static_assert(DROPOUT_MODE_BIT_MISALIGN == 4 && SYNC_AIC_FLAG == 11);
static_assert(B32_DATA_NUM_PER_BLOCK == 8 && B16_DATA_NUM_PER_REPEAT == 128 && B64_BYTE_SIZE == 8);
static_assert(ONE_REPEAT_FLOAT_SIZE == 64 && TWO == 2 && PI > 3.14f);
static_assert(std::is_same_v<decltype(LocalTensor<float>().GetPhyAddr()), uint64_t>);
#pragma bisheng auto_sync parallel
struct Kernel {
  TPipe pipe;
  TSCM<TPosition::VECIN, 1> scm;
  void Take(TPipe byValue) { pipe = byValue; }
  TQueSync<PIPE_MTE2, PIPE_V> sync;
  void Run(TPipe &other, LocalTensor<float> x, LocalTensor<uint16_t> bits,
           __kfc_workspace__ GM_ADDR) {
    pipe = other;
    PRELOAD(4);
    sync.SetFlag(EVENT_ID0);
    sync.WaitFlag(EVENT_ID0);
    Compare(bits, x, x, CMPMODE::EQ, 64);
    ReduceMax(x, x, x, 64, 1, 8);
    SetMMLayoutTransform(true);
    float wide = Cast(bfloat16_t(1.0f));
    int64_t at = CountLeadingZero(8) + GetSFFValue<1>(8);
    Barrier();
    WaitPreTaskEnd();
    SetNextTaskStart();
  }
};
"""
HOST = """
#include "acl/acl_base.h"
#include "platform/platform_info.h"
#include "log/log.h"
static_assert(AscendC::ONE_BLK_SIZE == 32 && AscendC::BLOCK_CUBE == 16);
ge::graphStatus Refuse(int n) {
  aclAppLog(ACL_ERROR, __FILE__, __FUNCTION__, __LINE__, "n %d", n);
  return ge::GRAPH_NULL_PTR;
}
void Zero(ops::OpParamDef &y) {
  y.InitValue({{ops::ScalarType::FLOAT32, 0}, {ops::ScalarType::FLOAT16, 0}}).InitValue(0);
}
void Say(gert::TilingContext *context) {
  const int64_t n = 1;
  if (CheckLogLevel(static_cast<int>(OP), DLOG_DEBUG) != 0) OP_LOGD(context, "n %" PRId64, n);
  OpLogSub(OP, DLOG_ERROR, context->GetNodeName(), "n %d", 1);
  OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(context, "n", 3, "too small");
}
void Sizes(gert::TilingContext *context, const platform_ascendc::PlatformAscendC &chip) {
  uint32_t most = 0, least = 0;
  const ge::Shape shape({8, 128});
  AscendC::GetTanhMaxMinTmpSize(shape, 4, false, most, least);
  AscendC::GetSinMaxMinTmpSize(chip, shape, 4, false, most, least);
  AscendC::GetCosTmpBufferFactorSize(4, most, least);
  AscendC::GetPowerMaxMinTmpSize(shape, shape, false, 4, false, most, least);
  context->SetSimdNumBlocks(chip.GetCurNpuArch() == NpuArch::DAV_2201 ? 1 : 2);
  fe::PlatformInfo info;
  fe::OptionalInfo more;
  fe::PlatformInfoManager::Instance().GetPlatformInfoWithOutSocVersion(info, more);
  string name = info.str_info.short_soc_version;
  if (chip.GetSocVersion() == platform_ascendc::SocVersion::ASCEND950) context->InputIsView(0);
}
"""


@pytest.mark.parametrize(("side", "text"), [("kernel", KERNEL), ("host", HOST)])
def test_names_that_libraries_use_compile(side: str, text: str, chip: Chip, tmp_path: Path) -> None:
    chain = find_toolchain(chip)
    command = chain.kernel_command() if side == "kernel" else chain.host_command()
    source = tmp_path / "names.cpp"
    source.write_text(text)
    done = subprocess.run(
        [*command, f"-I{LIBRARY}", "-fsyntax-only", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize(
    "message",
    [
        "'GroupBarrier' is not a member of 'AscendC'",
        "'GroupBarrier' was not declared in this scope",
        "'class AscendC::LocalTensor<float>' has no member named 'ToFile'",
    ],
)
def test_a_documented_name_that_the_twin_lacks_says_so(message: str) -> None:
    assert "is documented for Atlas A2; the twin does not model this yet" in explain(message)


def test_a_name_of_nobodys_stays_as_the_compiler_said_it() -> None:
    said = "'class Mine' has no member named 'ToFile'"
    assert explain(said) == said
    assert explain("'nobody' was not declared in this scope").endswith("scope")


def test_names_told_as_lacking_are_not_in_the_headers() -> None:
    words = {row.name for row in ABSENT}
    for file in INCLUDE.rglob("*.h"):
        words.update(re.findall(r"\w+", file.read_text()))
    assert len(unmodelled()) > 50
    assert not unmodelled() & words
