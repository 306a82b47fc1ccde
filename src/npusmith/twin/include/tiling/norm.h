// Host tiling of the normalisations. The sizes are ours: the vendor publishes no formula.
#pragma once

#include "tiling/softmax.h"

TWIN_TILING_CLASS(LayerNormTiling, TWIN_LAYER_NORM_FIELDS)
TWIN_TILING_CLASS(LayerNormSeparateTiling, TWIN_LAYER_NORM_SEPARATE_FIELDS)
TWIN_TILING_CLASS(LayerNormGradTiling, TWIN_LAYER_NORM_GRAD_FIELDS)
TWIN_TILING_CLASS(LayerNormGradBetaTiling, TWIN_LAYER_NORM_GRAD_BETA_FIELDS)
TWIN_TILING_CLASS(RmsNormTiling, TWIN_RMS_NORM_FIELDS)
TWIN_TILING_CLASS(BatchNormTiling, TWIN_BATCH_NORM_FIELDS)
TWIN_TILING_CLASS(DeepNormTiling, TWIN_DEEP_NORM_FIELDS)
TWIN_TILING_CLASS(GroupNormTiling, TWIN_GROUP_NORM_FIELDS)

namespace twin {

inline std::uint32_t WidthOf(std::uint32_t columns) { return Padded(columns, 16); }

// Rows that go through the scratch at once, and what is left for the last round.
struct Rounds {
  std::uint32_t rows, whole, tail, tailPos;
  Rounds(std::uint32_t total, std::uint32_t width, std::uint32_t scratch, std::uint32_t rowBytes)
      : rows(std::min(std::max(rowBytes == 0 ? 0 : scratch / rowBytes, 1u), std::max(total, 1u))),
        whole(total / rows), tail(total % rows), tailPos((total - tail) * width) {}
};

// Fields that several structs have in common.
template <typename Tiling>
void FillRounds(Tiling &tiling, const Rounds &rounds, std::uint32_t width, std::uint32_t scratch) {
  tiling.tmpBufSize = scratch / 4;
  tiling.oneTmpSize = rounds.rows * width;
  tiling.firstTmpStartPos = 0;
  tiling.secondTmpStartPos = tiling.oneTmpSize;
  tiling.thirdTmpStartPos = 2 * tiling.oneTmpSize;
  tiling.loopRound = rounds.whole;
  tiling.inputTailSize = rounds.tail * width;
  tiling.inputTailPos = rounds.tailPos;
  tiling.meanVarTailSize = rounds.tail;
  tiling.meanVarTailPos = rounds.whole * rounds.rows;
}
template <typename Tiling>
void FillSizes(Tiling &tiling, const Rounds &rounds, std::uint32_t rows, std::uint32_t width) {
  tiling.inputXSize = rows * width;
  tiling.meanVarSize = rows;
  tiling.numberOfTmpBuf = 2;
  tiling.varianceTmpTensorSize = rounds.rows;
  tiling.inputRoundSize = rounds.rows * width;
  tiling.meanVarRoundSize = rounds.rows;
}

// [b, s, h] of which `real` columns are data: LayerNorm and DeepNorm.
template <typename Tiling>
Tiling SplitNorm(std::uint32_t b, std::uint32_t s, std::uint32_t h, std::uint32_t real,
                 std::uint32_t scratch, bool reuse) {
  Tiling tiling{};
  const Rounds rounds(b * s, h, scratch, NormRowBytes(h, reuse));
  FillRounds(tiling, rounds, h, scratch);
  FillSizes(tiling, rounds, b * s, h);
  tiling.bLength = b;
  tiling.sLength = s;
  tiling.hLength = h;
  tiling.originalHLength = real;
  tiling.meanTmpTensorSize = rounds.rows;
  tiling.bshCurLength = rounds.rows * h;
  tiling.bsCurLength = rounds.rows;
  tiling.lastDimValueBack = real == 0 ? 0.0f : 1.0f / static_cast<float>(real);
  return tiling;
}

inline AscendC::tiling::LayerNormSeparateTiling SplitSeparate(std::uint32_t a, std::uint32_t r,
                                                              std::uint32_t scratch, bool reuse) {
  AscendC::tiling::LayerNormSeparateTiling tiling{};
  const std::uint32_t width = WidthOf(r);
  const Rounds rounds(a, width, scratch, NormRowBytes(width, reuse));
  FillRounds(tiling, rounds, width, scratch);
  FillSizes(tiling, rounds, a, width);
  tiling.aLength = a;
  tiling.rLength = r;
  std::uint32_t power = 1;  // the largest power of two that r holds (doc: head and tail of a row)
  while (power * 2 <= r) power *= 2;
  tiling.rHeadLength = power;
  tiling.k2Rec = 1.0f / static_cast<float>(power);
  tiling.k2RRec = static_cast<float>(power) / static_cast<float>(std::max(r, 1u));
  tiling.arCurLength = rounds.rows * width;
  tiling.aCurLength = rounds.rows;
  tiling.rValueBack = 1.0f / static_cast<float>(std::max(r, 1u));
  return tiling;
}

// `scratch` in elements of `size` bytes, as GetLayerNormGradNDTilingInfo is given it.
template <typename Tiling>
Tiling SplitGrad(const ge::Shape &shape, std::uint32_t scratch, std::uint32_t size, bool reuse,
                 std::uint32_t &rows) {
  Tiling tiling{};
  const std::uint32_t h = SizeOfDim(shape, 2), total = SizeOfDim(shape, 0) * SizeOfDim(shape, 1);
  rows = Rounds(total, h, scratch * size, NormGradRowBytes(h, reuse)).rows;
  tiling.stackBufferSize = scratch;
  tiling.bLength = SizeOfDim(shape, 0);
  tiling.sLength = SizeOfDim(shape, 1);
  tiling.hLength = h;
  tiling.originalHLength = shape.GetDimNum() > 3 ? SizeOfDim(shape, 3) : h;
  tiling.oneCalSize = rows * h;
  return tiling;
}

inline AscendC::tiling::LayerNormGradTiling SplitNormGrad(const ge::Shape &shape,
                                                          std::uint32_t scratch,
                                                          std::uint32_t size, bool reuse) {
  std::uint32_t rows = 0;
  auto tiling = SplitGrad<AscendC::tiling::LayerNormGradTiling>(shape, scratch, size, reuse, rows);
  const std::uint32_t total = tiling.bLength * tiling.sLength;
  tiling.nohCalSize = rows;
  tiling.loopNum = total / rows;
  tiling.tailSize = total % rows * tiling.hLength;
  tiling.nohTailSize = total % rows;
  return tiling;
}

inline AscendC::tiling::LayerNormGradBetaTiling SplitNormGradBeta(const ge::Shape &shape,
                                                                  std::uint32_t scratch,
                                                                  std::uint32_t size, bool reuse) {
  std::uint32_t rows = 0;
  auto tiling =
      SplitGrad<AscendC::tiling::LayerNormGradBetaTiling>(shape, scratch, size, reuse, rows);
  tiling.bsLength = tiling.bLength * tiling.sLength;
  tiling.bshLength = tiling.bsLength * tiling.hLength;
  tiling.numberOfTmpBuf = 2;
  tiling.loopRound = tiling.bsLength / rows;
  tiling.bsTailSize = tiling.bsLength % rows;
  tiling.inputTailSize = tiling.bsTailSize * tiling.hLength;
  tiling.inputTailPos = tiling.bshLength - tiling.inputTailSize;
  tiling.bshCurLength = rows * tiling.hLength;
  tiling.bsCurLength = rows;
  return tiling;
}

// False when the shape or the scratch does not allow it.
inline bool SplitRms(const ge::Shape &shape, const ge::Shape &real, std::uint32_t scratch,
                     bool basic, AscendC::tiling::RmsNormTiling &tiling) {
  const std::uint32_t b = SizeOfDim(shape, 0), s = SizeOfDim(shape, 1), h = SizeOfDim(shape, 2);
  const bool block = h % 64 == 0 && h < 2048 && b * s % 8 == 0;
  if (b * s * h == 0 || scratch < RmsRowBytes(h) || (basic && !block)) return false;
  const Rounds rounds(b * s, h, scratch, RmsRowBytes(h));
  tiling.bLength = b;
  tiling.sLength = s;
  tiling.hLength = h;
  tiling.originalHLength = SizeOfDim(real, 2);
  tiling.reciprocalOfHLength = 1.0f / static_cast<float>(std::max(tiling.originalHLength, 1u));
  tiling.mainBshLength = rounds.rows * h;
  tiling.mainBsLength = rounds.rows;
  tiling.mainBsLengthAlign = Padded(rounds.rows, 8);
  tiling.loopRound = rounds.whole;
  tiling.inputTailPos = rounds.tailPos;
  tiling.tailBshLength = rounds.tail * h;
  tiling.tailBsLength = rounds.tail;
  return true;
}

inline bool SplitBatch(const ge::Shape &shape, const ge::Shape &real, std::uint32_t scratch,
                       AscendC::tiling::BatchNormTiling &tiling) {
  const std::uint32_t b = SizeOfDim(real, 0), width = SizeOfDim(shape, 1) * SizeOfDim(shape, 2);
  if (b == 0 || width == 0 || scratch < NormRowBytes(width, false)) return false;
  const Rounds rounds(b, width, scratch, NormRowBytes(width, false));
  FillRounds(tiling, rounds, width, scratch);
  tiling.originalBLength = b;
  tiling.meanVarSize = width;
  tiling.bshCurLength = rounds.rows * width;
  tiling.shCurLength = width;
  tiling.firstDimValueBack = 1.0f / static_cast<float>(b);
  return true;
}

inline AscendC::tiling::GroupNormTiling SplitGroup(const ge::Shape &shape, std::uint32_t scratch,
                                                   std::uint32_t size, bool reuse,
                                                   std::uint32_t groups) {
  AscendC::tiling::GroupNormTiling tiling{};
  tiling.n = SizeOfDim(shape, 0);
  tiling.c = SizeOfDim(shape, 1);
  tiling.hw = SizeOfDim(shape, 2) * SizeOfDim(shape, 3);
  tiling.g = groups;
  tiling.d = groups == 0 ? 0 : tiling.c / groups;
  const std::uint32_t width = tiling.d * tiling.hw, rows = tiling.n * groups;
  tiling.hwAlignSize = Padded(tiling.hw, 32 / size);
  tiling.dhwAlignSize = Padded(width, 32 / size);
  const Rounds rounds(rows, width, scratch, NormRowBytes(width, reuse));
  FillRounds(tiling, rounds, width, scratch);
  FillSizes(tiling, rounds, rows, width);
  tiling.meanTmpTensorSize = rounds.rows;
  tiling.bshCurLength = rounds.rows * width;
  tiling.bsCurLength = rounds.rows;
  tiling.factor = width == 0 ? 0.0f : 1.0f / static_cast<float>(width);
  tiling.smallShape = tiling.hw * size < 32;
  return tiling;
}

}  // namespace twin

namespace AscendC {

// ---- scratch

inline void GetLayerNormMaxMinTmpSize(const TensorShape &srcShape,
                                      [[maybe_unused]] const std::uint32_t typeSize,
                                      const bool isReuseSource, std::uint32_t &maxValue,
                                      std::uint32_t &minValue) {
  const std::uint32_t width = twin::WidthOf(twin::SizeOfDim(srcShape, 2));
  minValue = twin::NormRowBytes(width, isReuseSource);
  maxValue = minValue * twin::SizeOfDim(srcShape, 0) * twin::SizeOfDim(srcShape, 1);
}
inline void GetLayerNormMaxMinTmpSize(const TensorShape &srcShape,
                                      [[maybe_unused]] const std::uint32_t typeSize,
                                      const bool isReuseSource,
                                      [[maybe_unused]] const bool isComputeRstd,
                                      [[maybe_unused]] const bool isOnlyOutput,
                                      std::uint32_t &maxValue, std::uint32_t &minValue) {
  minValue = twin::NormRowBytes(twin::WidthOf(twin::LastOf(srcShape)), isReuseSource);
  maxValue = minValue * twin::RowsOf(srcShape);
}
inline void GetNormalizeMaxMinTmpSize(const TensorShape &srcShape,
                                      [[maybe_unused]] const std::uint32_t typeSizeU,
                                      const std::uint32_t typeSizeT, const bool isReuseSource,
                                      const bool isComputeRstd, const bool isOnlyOutput,
                                      std::uint32_t &maxValue, std::uint32_t &minValue) {
  GetLayerNormMaxMinTmpSize(srcShape, typeSizeT, isReuseSource, isComputeRstd, isOnlyOutput,
                            maxValue, minValue);
}
inline void GetLayerNormGradMaxMinTmpSize(const TensorShape &srcShape,
                                          [[maybe_unused]] const std::uint32_t typeSize,
                                          const bool isReuseSource, std::uint32_t &maxValue,
                                          std::uint32_t &minValue) {
  minValue = twin::NormGradRowBytes(twin::SizeOfDim(srcShape, 2), isReuseSource);
  maxValue = minValue * twin::SizeOfDim(srcShape, 0) * twin::SizeOfDim(srcShape, 1);
}
inline void GetLayerNormGradBetaMaxMinTmpSize(const TensorShape &srcShape,
                                              const std::uint32_t typeSize,
                                              const bool isReuseSource, std::uint32_t &maxValue,
                                              std::uint32_t &minValue) {
  GetLayerNormGradMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline bool GetRmsNormMaxMinTmpSize(const TensorShape &srcShape,
                                    [[maybe_unused]] const std::uint32_t typeSize,
                                    std::uint32_t &maxValue, std::uint32_t &minValue,
                                    [[maybe_unused]] const bool isBasicBlock = false) {
  minValue = twin::RmsRowBytes(twin::WidthOf(twin::LastOf(srcShape)));
  maxValue = minValue * twin::RowsOf(srcShape);
  return maxValue > 0;
}
inline bool GetBatchNormMaxMinTmpSize(const TensorShape &srcShape,
                                      const TensorShape &originSrcShape,
                                      [[maybe_unused]] const std::uint32_t typeSize,
                                      [[maybe_unused]] const bool isReuseSource,
                                      std::uint32_t &maxValue, std::uint32_t &minValue,
                                      [[maybe_unused]] const bool isBasicBlock = false) {
  minValue = twin::NormRowBytes(
      twin::WidthOf(twin::SizeOfDim(srcShape, 1) * twin::SizeOfDim(srcShape, 2)), false);
  maxValue = minValue * twin::SizeOfDim(originSrcShape, 0);
  return maxValue > 0;
}
inline bool GetDeepNormMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,
                                     const bool isReuseSource,
                                     [[maybe_unused]] const bool isBasicBlock,
                                     std::uint32_t &maxValue, std::uint32_t &minValue) {
  GetLayerNormMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
  return maxValue > 0;
}
inline void GetGroupNormMaxMinTmpSize(const TensorShape &srcShape,
                                      [[maybe_unused]] const std::uint32_t typeSize,
                                      const bool isReuseSource, const std::uint32_t groupNum,
                                      std::uint32_t &maxValue, std::uint32_t &minValue) {
  const std::uint32_t groups = std::max(groupNum, 1u);
  const std::uint32_t width = twin::SizeOfDim(srcShape, 1) / groups * twin::SizeOfDim(srcShape, 2) *
                              twin::SizeOfDim(srcShape, 3);
  minValue = twin::NormRowBytes(twin::WidthOf(width), isReuseSource);
  maxValue = minValue * twin::SizeOfDim(srcShape, 0) * groups;
}
inline void GetWelfordUpdateMaxMinTmpSize(const TensorShape &srcShape,
                                          const std::uint32_t typeSizeT,
                                          [[maybe_unused]] const std::uint32_t typeSizeU,
                                          [[maybe_unused]] const bool isReuseSource,
                                          [[maybe_unused]] const bool isInplace,
                                          std::uint32_t &maxValue, std::uint32_t &minValue) {
  minValue = (typeSizeT == 2 ? 3 : 2) * 256;
  maxValue = std::max(minValue, (typeSizeT == 2 ? 3 : 2) * 4 * twin::LastOf(srcShape));
}
inline void GetWelfordFinalizeMaxMinTmpSize(const TensorShape &srcShape,
                                            const std::uint32_t typeSize,
                                            [[maybe_unused]] const bool isReuseSource,
                                            std::uint32_t &maxValue, std::uint32_t &minValue) {
  minValue = maxValue = 2 * twin::LastOf(srcShape) * typeSize;
}

// ---- tiling, into either kind of struct

#define TWIN_NORM_TILING(SPACE)                                                                  \
  inline void GetLayerNormNDTilingInfo(const TensorShape &srcShape,                              \
                                       const std::uint32_t stackBufferSize,                      \
                                       [[maybe_unused]] const std::uint32_t typeSize,            \
                                       const bool isReuseSource,                                 \
                                       SPACE::LayerNormTiling &tiling) {                         \
    const std::uint32_t h = twin::SizeOfDim(srcShape, 2);                                        \
    const std::uint32_t real = srcShape.GetDimNum() > 3 ? twin::SizeOfDim(srcShape, 3) : h;      \
    twin::Give(twin::SplitNorm<AscendC::tiling::LayerNormTiling>(                                \
                   twin::SizeOfDim(srcShape, 0), twin::SizeOfDim(srcShape, 1), h, real,          \
                   stackBufferSize, isReuseSource),                                              \
               tiling);                                                                          \
  }                                                                                              \
  inline void GetLayerNormNDTilingInfo(const TensorShape &srcShape,                              \
                                       const std::uint32_t stackBufferSize,                      \
                                       [[maybe_unused]] const std::uint32_t typeSize,            \
                                       const bool isReuseSource,                                 \
                                       [[maybe_unused]] const bool isComputeRstd,                \
                                       SPACE::LayerNormSeparateTiling &tiling) {                 \
    twin::Give(twin::SplitSeparate(twin::RowsOf(srcShape), twin::LastOf(srcShape),               \
                                   stackBufferSize, isReuseSource),                              \
               tiling);                                                                          \
  }                                                                                              \
  inline void GetLayerNormGradNDTilingInfo(const TensorShape srcShape,                           \
                                           const std::uint32_t stackBufferSize,                  \
                                           const std::uint32_t typeSize,                         \
                                           const bool isReuseSource,                             \
                                           SPACE::LayerNormGradTiling &tiling) {                 \
    twin::Give(twin::SplitNormGrad(srcShape, stackBufferSize, typeSize, isReuseSource), tiling); \
  }                                                                                              \
  inline void GetLayerNormGradBetaNDTilingInfo(const TensorShape srcShape,                       \
                                               const std::uint32_t stackBufferSize,              \
                                               const std::uint32_t typeSize,                     \
                                               const bool isReuseSource,                         \
                                               SPACE::LayerNormGradBetaTiling &tiling) {         \
    twin::Give(twin::SplitNormGradBeta(srcShape, stackBufferSize, typeSize, isReuseSource),      \
               tiling);                                                                          \
  }                                                                                              \
  inline bool GetRmsNormTilingInfo(const TensorShape &srcShape,                                  \
                                   const TensorShape &originSrcShape,                            \
                                   const std::uint32_t stackBufferByteSize,                      \
                                   [[maybe_unused]] const std::uint32_t typeSize,                \
                                   SPACE::RmsNormTiling &tiling,                                 \
                                   const bool isBasicBlock = false) {                            \
    AscendC::tiling::RmsNormTiling made;                                                         \
    const bool good =                                                                            \
        twin::SplitRms(srcShape, originSrcShape, stackBufferByteSize, isBasicBlock, made);       \
    if (good) twin::Give(made, tiling);                                                          \
    return good;                                                                                 \
  }                                                                                              \
  inline bool GetBatchNormNDTilingInfo(const TensorShape &srcShape,                              \
                                       const TensorShape &originSrcShape,                        \
                                       const std::uint32_t stackBufferByteSize,                  \
                                       [[maybe_unused]] const std::uint32_t typeSize,            \
                                       [[maybe_unused]] const bool isReuseSource,                \
                                       SPACE::BatchNormTiling &tilling,                          \
                                       [[maybe_unused]] const bool isBasicBlock = false) {       \
    AscendC::tiling::BatchNormTiling made;                                                       \
    const bool good = twin::SplitBatch(srcShape, originSrcShape, stackBufferByteSize, made);     \
    if (good) twin::Give(made, tilling);                                                         \
    return good;                                                                                 \
  }                                                                                              \
  inline bool GetDeepNormTilingInfo(const TensorShape &srcShape,                                 \
                                    const TensorShape &originSrcShape,                           \
                                    const std::uint32_t stackBufferSize,                         \
                                    [[maybe_unused]] const std::uint32_t typeSize,               \
                                    const bool isReuseSource,                                    \
                                    [[maybe_unused]] const bool isBasicBlock,                    \
                                    SPACE::DeepNormTiling &tiling) {                             \
    const std::uint32_t h = twin::SizeOfDim(srcShape, 2);                                        \
    if (h == 0 || stackBufferSize < twin::NormRowBytes(h, isReuseSource)) return false;          \
    twin::Give(twin::SplitNorm<AscendC::tiling::DeepNormTiling>(                                 \
                   twin::SizeOfDim(srcShape, 0), twin::SizeOfDim(srcShape, 1), h,                \
                   twin::SizeOfDim(originSrcShape, 2), stackBufferSize, isReuseSource),          \
               tiling);                                                                          \
    return true;                                                                                 \
  }                                                                                              \
  inline void GetGroupNormNDTilingInfo(const TensorShape &srcShape,                              \
                                       const std::uint32_t stackBufferSize,                      \
                                       const std::uint32_t typeSize, const bool isReuseSource,   \
                                       const std::uint32_t groupNum,                             \
                                       SPACE::GroupNormTiling &tiling) {                         \
    twin::Give(twin::SplitGroup(srcShape, stackBufferSize, typeSize, isReuseSource, groupNum),   \
               tiling);                                                                          \
  }
TWIN_NORM_TILING(optiling)
TWIN_NORM_TILING(AscendC::tiling)
#undef TWIN_NORM_TILING

// The former spelling.
inline void GetLayerNormNDTillingInfo(const TensorShape &srcShape,
                                      const std::uint32_t stackBufferSize,
                                      const std::uint32_t typeSize, const bool isReuseSource,
                                      optiling::LayerNormTiling &tilling) {
  GetLayerNormNDTilingInfo(srcShape, stackBufferSize, typeSize, isReuseSource, tilling);
}

}  // namespace AscendC
