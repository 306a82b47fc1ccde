// Every function of the host that says how much scratch a library call takes, and those that fill a
// tiling struct: called once as documented. What they say must make sense, and the kernel side has
// tests of its own.
#include <cstdio>

#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

namespace {

int failures = 0;
void Check(bool good, const char *what) {
  if (good) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

}  // namespace

#define EXPECT(condition) Check(condition, #condition)
// least may be 0 only where the page says that nothing is taken
#define SIZES(call)                                          \
  do {                                                       \
    uint32_t most = 0, least = 99;                           \
    call;                                                    \
    Check(least > 0 && least <= most, #call);                \
  } while (false)
#define FACTOR(call)                                         \
  do {                                                       \
    uint32_t live = 0, extra = 99;                           \
    call;                                                    \
    Check(live > 0 && extra == 0, #call);                    \
  } while (false)
#define NOTHING(call)                                        \
  do {                                                       \
    uint32_t most = 99, least = 99;                          \
    call;                                                    \
    Check(most == 0 && least == 0, #call);                   \
  } while (false)

namespace {

using namespace AscendC;

const ge::Shape kMatrix({40, 64}), kCube({2, 5, 48}), kPadded({2, 5, 45}), kImage({2, 8, 4, 2});
const platform_ascendc::PlatformAscendC &Chip() {
  return *platform_ascendc::PlatformAscendCManager::GetInstance();
}

void Activations() {
  SIZES(GetGeluMaxMinTmpSize(kMatrix, 4, most, least));
  EXPECT(GetGeluMinTmpSize(kMatrix, 4) <= GetGeluMaxTmpSize(kMatrix, 4));
  SIZES(GetSwiGLUMaxMinTmpSize(kMatrix, 4, most, least, false));
  FACTOR(GetSwiGLUTmpBufferFactorSize(4, live, extra));
  SIZES(GetClampMaxMinTmpSize(kMatrix, 4, false, most, least));
  SIZES(GetGeGLUMaxMinTmpSize(kMatrix, 4, false, most, least));
  FACTOR(GetGeGLUTmpBufferFactorSize(2, live, extra));
  SIZES(GetReGluMaxMinTmpSize(kMatrix, 2, false, most, least));
  SIZES(GetSigmoidMaxMinTmpSize(kMatrix, 2, false, most, least));
  SIZES(GetSiluTmpSize(kMatrix, 4, false, most, least));
  SIZES(GetSwishTmpSize(kMatrix, 4, false, most, least));
  SIZES(GetRoundMaxMinTmpSize(Chip(), kMatrix, 4, false, most, least));
  FACTOR(GetRoundTmpBufferFactorSize(Chip(), 2, live, extra));
  FACTOR(GetPowerTmpBufferFactorSize(true, true, false, 4, live, extra));
  FACTOR(GetMeanTmpBufferFactorSize(2, live, extra));
}

void Softmax() {
  EXPECT(GetSoftMaxFlashMinTmpSize(kMatrix, 4, true, false) <=
         GetSoftMaxFlashMaxTmpSize(kMatrix, 4, true, false));
  EXPECT(GetSoftMaxFlashV2MinTmpSize(kMatrix, 2, 4, true) <=
         GetSoftMaxFlashV2MaxTmpSize(kMatrix, 2, 4, true));
  SIZES(GetSoftMaxFlashV3MaxMinTmpSize(kMatrix, 2, 4, most, least, true));
  EXPECT(GetSoftMaxGradMinTmpSize(kMatrix, 4, false, false) <=
         GetSoftMaxGradMaxTmpSize(kMatrix, 4, false, false));
  EXPECT(GetLogSoftMaxMinTmpSize(kMatrix, 4, false) <= GetLogSoftMaxMaxTmpSize(kMatrix, 4, false));
  tiling::SoftMaxTiling plain;
  optiling::SoftMaxTiling made;
  SoftMaxFlashTilingFunc(kMatrix, 4, 1 << 16, plain, true);
  EXPECT(plain.srcM == 40 && plain.srcK == 64 && plain.splitM > 0);
  SoftMaxFlashV3TilingFunc(kMatrix, 2, 4, 1 << 16, plain, true);
  EXPECT(plain.srcM == 40 && plain.splitM > 0);
  SoftMaxGradTilingFunc(kMatrix, 4, 1 << 16, made, false);
  EXPECT(made.get_srcM() == 40 && made.get_splitM() > 0);
  optiling::LogSoftMaxTiling logs;
  LogSoftMaxTilingFunc(kMatrix, 4, 1 << 16, logs);
  EXPECT(logs.get_srcK() == 64);
}

void Norms() {
  SIZES(GetLayerNormMaxMinTmpSize(kCube, 4, false, most, least));
  SIZES(GetLayerNormGradMaxMinTmpSize(kCube, 4, false, most, least));
  SIZES(GetLayerNormGradBetaMaxMinTmpSize(kCube, 4, false, most, least));
  SIZES(EXPECT(GetBatchNormMaxMinTmpSize(kCube, kCube, 4, false, most, least)));
  SIZES(EXPECT(GetDeepNormMaxMinTmpSize(kCube, 4, false, false, most, least)));
  SIZES(GetGroupNormMaxMinTmpSize(kImage, 4, false, 4, most, least));
  SIZES(GetNormalizeMaxMinTmpSize(kMatrix, 4, 4, false, true, false, most, least));
  SIZES(GetWelfordUpdateMaxMinTmpSize(kMatrix, 2, 4, false, true, most, least));
  SIZES(GetWelfordFinalizeMaxMinTmpSize(kMatrix, 4, false, most, least));
  optiling::DeepNormTiling deep;
  EXPECT(GetDeepNormTilingInfo(kCube, kPadded, 1 << 14, 4, false, false, deep));
  EXPECT(!GetDeepNormTilingInfo(kCube, kPadded, 16, 4, false, false, deep));
  EXPECT(deep.get_hLength() == 48 && deep.get_originalHLength() == 45);
  optiling::LayerNormGradTiling grad;
  GetLayerNormGradNDTilingInfo(ge::Shape({2, 5, 48, 40}), 1 << 14, 4, false, grad);
  EXPECT(grad.get_hLength() == 48 && grad.get_originalHLength() == 40);
  optiling::LayerNormGradBetaTiling beta;
  GetLayerNormGradBetaNDTilingInfo(ge::Shape({2, 5, 48, 40}), 1 << 14, 4, false, beta);
  EXPECT(beta.get_hLength() == 48 && beta.get_originalHLength() == 40);
}

void Folds() {
  SIZES(GetSumMaxMinTmpSize(64, 4, false, most, least));
  SIZES(GetMeanMaxMinTmpSize(64, 2, 4, false, most, least));
  SIZES(GetCumSumMaxMinTmpSize(kMatrix, 4, true, false, most, least));
  SIZES(GetReduceXorSumMaxMinTmpSize(kMatrix, 2, false, most, least));
#define AXIS(name)                                                                             \
  SIZES(Get##name##MaxMinTmpSize(kMatrix, ge::DT_FLOAT, ReducePattern::AR, true, false, most,  \
                                 least))
  AXIS(ReduceSum);  // GetReduceSumMaxMinTmpSize
  AXIS(ReduceMean);  // GetReduceMeanMaxMinTmpSize
  AXIS(ReduceMax);  // GetReduceMaxMaxMinTmpSize
  AXIS(ReduceMin);  // GetReduceMinMaxMinTmpSize
  AXIS(ReduceProd);  // GetReduceProdMaxMinTmpSize
  AXIS(ReduceAny);  // GetReduceAnyMaxMinTmpSize
  AXIS(ReduceAll);  // GetReduceAllMaxMinTmpSize
#undef AXIS
}

void Sorts() {
  EXPECT(GetConcatTmpSize(Chip(), 128, 2) == 0);
  EXPECT(GetSortTmpSize(Chip(), 128, 4) > 0);
  SIZES(EXPECT(GetTopKMaxMinTmpSize(Chip(), 64, 4, false, true, TopKMode::TOPK_NORMAL, true, 4,
                                    most, least)));
  optiling::TopkTiling top;
  EXPECT(TopKTilingFunc(Chip(), 64, 4, 8, 4, true, TopKMode::TOPK_NORMAL, true, top));
  EXPECT(!TopKTilingFunc(Chip(), 65, 4, 8, 4, true, TopKMode::TOPK_NORMAL, true, top));
}

void Layouts() {
  SIZES(GetSortMaxMinTmpSize(kMatrix, TensorDataType::DT_FLOAT, TensorDataType::DT_UINT32, false,
                             SortConfig(), most, least));
  SIZES(GetBroadCastMaxMinTmpSize(Chip(), ge::Shape({40, 1}), kMatrix, 4, false, most, least));
  SIZES(GetPadMaxMinTmpSize(kMatrix, 4, most, least));
  SIZES(GetUnPadMaxMinTmpSize(Chip(), kMatrix, 4, most, least));
  SIZES(GetTransposeMaxMinTmpSize(kMatrix, 4, 7, most, least));
  SIZES(EXPECT(GetTransDataMaxMinTmpSize(Chip(), kImage, kImage, ge::DT_FLOAT16, {}, most, least)));
  optiling::PadTiling pad;
  PadTilingFunc(kMatrix, ge::Shape({40, 60}), 1 << 14, 4, pad);
  EXPECT(pad.get_srcWidth() == 64 && pad.get_srcOriWidth() == 60);
  optiling::UnPadTiling unpad;
  UnPadTilingFunc(kMatrix, 1 << 14, 4, unpad);
  EXPECT(unpad.get_srcHeight() == 40);
  optiling::ConfusionTransposeTiling turn;
  GetTransposeTilingInfo(ge::Shape({32, 64}), 1 << 14, 2, 7, turn);
  EXPECT(turn.GetDataSize() > 0);
}

void Filters() {
  SIZES(GetAscendQuantMaxMinTmpSize(kMatrix, 2, most, least));
  SIZES(GetAscendDequantMaxMinTmpSize(kMatrix, 4, most, least));
  const ge::Shape scale({1, 64});
  SIZES(GetAscendAntiQuantMaxMinTmpSize(kMatrix, scale, false, ge::DT_INT8, ge::DT_FLOAT16, most,
                                        least));
  EXPECT(GetAscendAntiQuantMinTmpSize(kMatrix, scale, false, ge::DT_INT8, ge::DT_FLOAT16) <=
         GetAscendAntiQuantMaxTmpSize(kMatrix, scale, false, ge::DT_INT8, ge::DT_FLOAT16));
  const ge::Shape one({1});
  SIZES(GetSelectMaxMinTmpSize(kMatrix, one, 2, kMatrix, 1, false, most, least));
  EXPECT(GetSelectMinTmpSize(kMatrix, one, 2, kMatrix, 1, false) <=
         GetSelectMaxTmpSize(kMatrix, one, 2, kMatrix, 1, false));
  SIZES(GetDropOutMaxMinTmpSize(kMatrix, 4, false, most, least));
  EXPECT(GetDropOutMinTmpSize(kMatrix, 4, false) <= GetDropOutMaxTmpSize(kMatrix, 4, false));
  NOTHING(GetArangeMaxMinTmpSize(most, least));
}

}  // namespace

int main() {
  Activations();
  Softmax();
  Norms();
  Folds();
  Sorts();
  Layouts();
  Filters();
  return failures == 0 ? std::puts("good"), 0 : 1;
}
