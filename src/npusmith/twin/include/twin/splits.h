// Tiling structs of SoftMax and the normalisations: fields as documented, once for host and kernel.
#pragma once

#include <cstdint>

#define TWIN_SOFTMAX_FIELDS(FIELD)                                                                \
  FIELD(uint32_t, srcM) FIELD(uint32_t, srcK) FIELD(uint32_t, srcSize) FIELD(uint32_t, outMaxM)   \
  FIELD(uint32_t, outMaxK) FIELD(uint32_t, outMaxSize) FIELD(uint32_t, splitM)                    \
  FIELD(uint32_t, splitK) FIELD(uint32_t, splitSize) FIELD(uint32_t, reduceM)                     \
  FIELD(uint32_t, reduceK) FIELD(uint32_t, reduceSize) FIELD(uint32_t, rangeM)                    \
  FIELD(uint32_t, tailM) FIELD(uint32_t, tailSplitSize) FIELD(uint32_t, tailReduceSize)

#define TWIN_LAYER_NORM_FIELDS(FIELD)                                                             \
  FIELD(uint32_t, bLength) FIELD(uint32_t, sLength) FIELD(uint32_t, hLength)                      \
  FIELD(uint32_t, originalHLength) FIELD(uint32_t, inputXSize) FIELD(uint32_t, meanVarSize)       \
  FIELD(uint32_t, numberOfTmpBuf) FIELD(uint32_t, meanTmpTensorPos)                               \
  FIELD(uint32_t, meanTmpTensorSize) FIELD(uint32_t, varianceTmpTensorPos)                        \
  FIELD(uint32_t, varianceTmpTensorSize) FIELD(uint32_t, tmpBufSize) FIELD(uint32_t, oneTmpSize)  \
  FIELD(uint32_t, firstTmpStartPos) FIELD(uint32_t, secondTmpStartPos)                            \
  FIELD(uint32_t, thirdTmpStartPos) FIELD(uint32_t, loopRound) FIELD(uint32_t, inputRoundSize)    \
  FIELD(uint32_t, inputTailSize) FIELD(uint32_t, inputTailPos) FIELD(uint32_t, meanVarRoundSize)  \
  FIELD(uint32_t, meanVarTailSize) FIELD(uint32_t, meanVarTailPos) FIELD(uint32_t, bshCurLength)  \
  FIELD(uint32_t, bsCurLength) FIELD(float, lastDimValueBack)

#define TWIN_LAYER_NORM_SEPARATE_FIELDS(FIELD)                                                    \
  FIELD(uint32_t, aLength) FIELD(uint32_t, rLength) FIELD(uint32_t, halfAddRepeatTimes)           \
  FIELD(uint32_t, rHeadLength) FIELD(float, k2Rec) FIELD(float, k2RRec)                           \
  FIELD(uint32_t, inputXSize) FIELD(uint32_t, meanVarSize) FIELD(uint32_t, numberOfTmpBuf)        \
  FIELD(uint32_t, varianceTmpTensorPos) FIELD(uint32_t, varianceTmpTensorSize)                    \
  FIELD(uint32_t, tmpBufSize) FIELD(uint32_t, oneTmpSize) FIELD(uint32_t, firstTmpStartPos)       \
  FIELD(uint32_t, secondTmpStartPos) FIELD(uint32_t, thirdTmpStartPos)                            \
  FIELD(uint32_t, loopRound) FIELD(uint32_t, inputRoundSize) FIELD(uint32_t, inputTailSize)       \
  FIELD(uint32_t, inputTailPos) FIELD(uint32_t, meanVarRoundSize)                                 \
  FIELD(uint32_t, meanVarTailSize) FIELD(uint32_t, meanVarTailPos) FIELD(uint32_t, arCurLength)   \
  FIELD(uint32_t, aCurLength) FIELD(float, rValueBack)

#define TWIN_LAYER_NORM_GRAD_FIELDS(FIELD)                                                        \
  FIELD(uint32_t, stackBufferSize) FIELD(uint32_t, bLength) FIELD(uint32_t, sLength)              \
  FIELD(uint32_t, hLength) FIELD(uint32_t, originalHLength) FIELD(uint32_t, oneCalSize)           \
  FIELD(uint32_t, nohCalSize) FIELD(uint32_t, loopNum) FIELD(uint32_t, tailSize)                  \
  FIELD(uint32_t, nohTailSize) FIELD(uint32_t, tmpTensorBSHPos)                                   \
  FIELD(uint32_t, tmpTensorBSHSize) FIELD(uint32_t, pdVarTensorPos)                               \
  FIELD(uint32_t, pdVarTensorSize) FIELD(uint32_t, pdMeanTensorPos)                               \
  FIELD(uint32_t, pdMeanTensorSize) FIELD(uint32_t, x1TensorPos) FIELD(uint32_t, x1TensorSize)    \
  FIELD(uint32_t, x2TensorPos) FIELD(uint32_t, x2TensorSize) FIELD(uint32_t, x3TensorPos)         \
  FIELD(uint32_t, x3TensorSize) FIELD(uint32_t, tmpTensorPos) FIELD(uint32_t, tmpTensorSize)      \
  FIELD(uint32_t, tmpTensor1Pos) FIELD(uint32_t, tmpTensor1Size) FIELD(uint32_t, tmpTensor2Pos)   \
  FIELD(uint32_t, tmpTensor2Size) FIELD(uint32_t, lastDimValueBack)                               \
  FIELD(uint32_t, lastDimValueBackMulTwo)

#define TWIN_LAYER_NORM_GRAD_BETA_FIELDS(FIELD)                                                   \
  FIELD(uint32_t, stackBufferSize) FIELD(uint32_t, bLength) FIELD(uint32_t, sLength)              \
  FIELD(uint32_t, hLength) FIELD(uint32_t, originalHLength) FIELD(uint32_t, bshLength)            \
  FIELD(uint32_t, bsLength) FIELD(uint32_t, oneCalSize) FIELD(uint32_t, numberOfTmpBuf)           \
  FIELD(uint32_t, loopRound) FIELD(uint32_t, inputTailSize) FIELD(uint32_t, inputTailPos)         \
  FIELD(uint32_t, bsTailSize) FIELD(uint32_t, bshCurLength) FIELD(uint32_t, bsCurLength)          \
  FIELD(uint32_t, gammaTempTensorPos) FIELD(uint32_t, betaTempTensorPos)                          \
  FIELD(uint32_t, inputDyTmpTensorPos) FIELD(uint32_t, resForGammaTmpTensorPos)                   \
  FIELD(uint32_t, reserved)

#define TWIN_RMS_NORM_FIELDS(FIELD)                                                               \
  FIELD(uint32_t, bLength) FIELD(uint32_t, sLength) FIELD(uint32_t, hLength)                      \
  FIELD(uint32_t, originalHLength) FIELD(float, reciprocalOfHLength)                              \
  FIELD(uint32_t, mainBshLength) FIELD(uint32_t, mainBsLength)                                    \
  FIELD(uint32_t, mainBsLengthAlign) FIELD(uint32_t, loopRound) FIELD(uint32_t, inputTailPos)     \
  FIELD(uint32_t, tailBshLength) FIELD(uint32_t, tailBsLength)

#define TWIN_BATCH_NORM_FIELDS(FIELD)                                                             \
  FIELD(uint32_t, originalBLength) FIELD(uint32_t, meanVarSize)                                   \
  FIELD(uint32_t, meanTmpTensorPos) FIELD(uint32_t, varianceTmpTensorPos)                         \
  FIELD(uint32_t, tmpBufSize) FIELD(uint32_t, oneTmpSize) FIELD(uint32_t, firstTmpStartPos)       \
  FIELD(uint32_t, secondTmpStartPos) FIELD(uint32_t, thirdTmpStartPos)                            \
  FIELD(uint32_t, loopRound) FIELD(uint32_t, inputTailSize) FIELD(uint32_t, inputTailPos)         \
  FIELD(uint32_t, meanVarTailSize) FIELD(uint32_t, meanVarTailPos) FIELD(uint32_t, bshCurLength)  \
  FIELD(uint32_t, shCurLength) FIELD(float, firstDimValueBack)                                    \
  FIELD(uint32_t, castHalfRepStride) FIELD(uint32_t, shCurLengthBlockNum)                         \
  FIELD(uint32_t, castHalfOutRepStride)

// DeepNorm is LayerNorm of a sum, and is split as it is.
#define TWIN_DEEP_NORM_FIELDS(FIELD) TWIN_LAYER_NORM_FIELDS(FIELD)

#define TWIN_GROUP_NORM_FIELDS(FIELD)                                                             \
  FIELD(uint32_t, n) FIELD(uint32_t, c) FIELD(uint32_t, hw) FIELD(uint32_t, g)                    \
  FIELD(uint32_t, d) FIELD(uint32_t, hwAlignSize) FIELD(uint32_t, dhwAlignSize)                   \
  FIELD(uint32_t, inputXSize) FIELD(uint32_t, meanVarSize) FIELD(uint32_t, numberOfTmpBuf)        \
  FIELD(uint32_t, meanTmpTensorPos) FIELD(uint32_t, meanTmpTensorSize)                            \
  FIELD(uint32_t, varianceTmpTensorPos) FIELD(uint32_t, varianceTmpTensorSize)                    \
  FIELD(uint32_t, tmpBufSize) FIELD(uint32_t, oneTmpSize) FIELD(uint32_t, firstTmpStartPos)       \
  FIELD(uint32_t, secondTmpStartPos) FIELD(uint32_t, thirdTmpStartPos)                            \
  FIELD(uint32_t, loopRound) FIELD(uint32_t, inputRoundSize) FIELD(uint32_t, inputTailSize)       \
  FIELD(uint32_t, inputTailPos) FIELD(uint32_t, meanVarRoundSize)                                 \
  FIELD(uint32_t, meanVarTailSize) FIELD(uint32_t, meanVarTailPos) FIELD(uint32_t, bshCurLength)  \
  FIELD(uint32_t, bsCurLength) FIELD(float, factor) FIELD(bool, smallShape)

#define TWIN_TILING_FIELD(type, name) type name = 0;
// Host classes nest at multiples of 8 bytes, so the kernel's structs do too.
#define TWIN_TILING_STRUCT(name, FIELDS) \
  struct alignas(8) name {               \
    FIELDS(TWIN_TILING_FIELD)            \
  };

namespace AscendC {
namespace tiling {

TWIN_TILING_STRUCT(SoftMaxTiling, TWIN_SOFTMAX_FIELDS)
TWIN_TILING_STRUCT(LogSoftMaxTiling, TWIN_SOFTMAX_FIELDS)
TWIN_TILING_STRUCT(LayerNormTiling, TWIN_LAYER_NORM_FIELDS)
TWIN_TILING_STRUCT(LayerNormSeparateTiling, TWIN_LAYER_NORM_SEPARATE_FIELDS)
TWIN_TILING_STRUCT(LayerNormGradTiling, TWIN_LAYER_NORM_GRAD_FIELDS)
TWIN_TILING_STRUCT(LayerNormGradBetaTiling, TWIN_LAYER_NORM_GRAD_BETA_FIELDS)
TWIN_TILING_STRUCT(RmsNormTiling, TWIN_RMS_NORM_FIELDS)
TWIN_TILING_STRUCT(BatchNormTiling, TWIN_BATCH_NORM_FIELDS)
TWIN_TILING_STRUCT(DeepNormTiling, TWIN_DEEP_NORM_FIELDS)
TWIN_TILING_STRUCT(GroupNormTiling, TWIN_GROUP_NORM_FIELDS)

}  // namespace tiling
}  // namespace AscendC

namespace twin {

// Scratch of one row of `columns` elements: `wide` rows of floats and `blocks` datablocks. What the
// chip's library takes is not published; these are what its documented steps keep at once (guess).
constexpr std::uint32_t RowBytes(std::uint32_t columns, std::uint32_t wide, std::uint32_t blocks) {
  return columns * wide * 4 + blocks * 32;
}

// Which function of the SoftMax family a scratch or a split is for.
enum class Soft : std::uint8_t { kPlain, kSimple, kFlash, kFlash2, kFlash3, kGrad, kLog };

constexpr std::uint32_t SoftRowBytes(Soft soft, std::uint32_t columns, std::uint32_t typeSize,
                                     bool update) {
  const std::uint32_t casts = typeSize == 2 ? 2 : 0;
  switch (soft) {
    case Soft::kGrad: return RowBytes(columns, 1 + casts, 1);
    case Soft::kFlash3: return RowBytes(columns, 2, update ? 8 : 5);
    case Soft::kFlash:
    case Soft::kFlash2: return RowBytes(columns, 1, update ? 4 : 2);
    default: return RowBytes(columns, 1, 2);
  }
}

// A split of m x k into parts of as many rows as `scratch` bytes hold.
template <typename Tiling = AscendC::tiling::SoftMaxTiling>
constexpr Tiling SplitSoft(Soft soft, std::uint32_t m, std::uint32_t k, std::uint32_t typeSize,
                           std::uint32_t statSize, std::uint32_t scratch, bool update,
                           bool basic = false, bool narrow = false) {
  Tiling tiling{};
  const std::uint32_t row = SoftRowBytes(soft, k, typeSize, update);
  if (m == 0 || k == 0 || statSize == 0 || scratch < row) return tiling;
  std::uint32_t rows = scratch / row < m ? scratch / row : m;
  if (basic && rows >= 8) rows = rows / 8 * 8;
  tiling.srcM = m;
  tiling.srcK = k;
  tiling.srcSize = m * k;
  tiling.outMaxM = m;
  tiling.outMaxK = narrow ? 1 : 32 / statSize;
  tiling.outMaxSize = m * tiling.outMaxK;
  tiling.splitM = rows;
  tiling.splitK = k;
  tiling.splitSize = rows * k;
  tiling.reduceM = rows;
  tiling.reduceK = 8;
  tiling.reduceSize = rows * 8;
  tiling.rangeM = m / rows;
  tiling.tailM = m % rows;
  tiling.tailSplitSize = tiling.tailM * k;
  tiling.tailReduceSize = tiling.tailM * 8;
  return tiling;
}

// Scratch of the normalisations, for one row of `columns` elements (guess, as above).
constexpr std::uint32_t NormRowBytes(std::uint32_t columns, bool reuse) {
  return RowBytes(columns, reuse ? 1 : 2, 2);
}
constexpr std::uint32_t NormGradRowBytes(std::uint32_t columns, bool reuse) {
  return RowBytes(columns, reuse ? 3 : 4, 3);
}
constexpr std::uint32_t RmsRowBytes(std::uint32_t columns) { return RowBytes(columns, 1, 1); }

}  // namespace twin
