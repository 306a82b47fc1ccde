// Host side of sorting, reducing, reordering, filtering and quantising: how much scratch the functions
// take, and the tiling structs that some of them want. Where the vendor publishes no formula, which
// is nearly everywhere, the sizes are ours: the least is what the kernel side checks.
#pragma once

#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/shape.h"
#include "tiling/softmax.h"
#include "twin/blocks.h"
#include "twin/layouts.h"
#include "twin/scratch.h"

TWIN_TILING_CLASS(TopkTiling, TWIN_TOPK_FIELDS)
TWIN_TILING_CLASS(PadTiling, TWIN_PAD_FIELDS)
TWIN_TILING_CLASS(UnPadTiling, TWIN_UNPAD_FIELDS)
TWIN_TILING_CLASS(ConfusionTransposeTiling, TWIN_TRANSPOSE_FIELDS)

namespace twin {

// Between one repeat and, for speed, one float for each element.
inline void PlainScratch(const ge::Shape &shape, std::uint32_t &most, std::uint32_t &least) {
  const std::int64_t all = RoundUp(4 * static_cast<std::int64_t>(ElementsOf(shape)), 32);
  least = static_cast<std::uint32_t>(LeastScratch());
  most = static_cast<std::uint32_t>(std::max<std::int64_t>(all, LeastScratch()));
}

inline AscendC::tiling::TopkTiling PlanTopK(std::int32_t inner, std::int32_t outter,
                                            std::int32_t k) {
  AscendC::tiling::TopkTiling tiling{};
  tiling.tmpLocalSize = static_cast<std::int32_t>(TopKScratch(inner));
  tiling.allDataSize = inner * outter;
  tiling.innerDataSize = inner;
  tiling.sortRepeat = static_cast<std::uint32_t>(inner / 32);
  tiling.kAlignFourBytes = static_cast<std::int32_t>(RoundUp(k, 8));
  tiling.kAlignTwoBytes = static_cast<std::int32_t>(RoundUp(k, 16));
  return tiling;
}

inline constexpr std::uint32_t kMatrixScene = 7;  // of the library's Transpose

inline AscendC::tiling::ConfusionTransposeTiling PlanTranspose(const ge::Shape &shape,
                                                               std::uint32_t typeSize,
                                                               std::uint32_t scene) {
  AscendC::tiling::ConfusionTransposeTiling plan{};
  const std::uint32_t sizes[] = {SizeOfDim(shape, 0), SizeOfDim(shape, 1), SizeOfDim(shape, 2),
                                 SizeOfDim(shape, 3)};
  if (scene == kMatrixScene && typeSize > 0) {
    plan.param0 = 32 / typeSize;
    plan.param1 = sizes[0];
    plan.param2 = sizes[1];
    plan.param3 = sizes[0] / 16;
    plan.param4 = sizes[0];
    plan.param5 = sizes[1] / plan.param0;
  }
  plan.param12 = scene;
  plan.param13 = typeSize;
  plan.param14 = sizes[0];
  plan.param15 = sizes[1];
  plan.param16 = sizes[2];
  plan.param17 = sizes[3];
  return plan;
}

}  // namespace twin

namespace AscendC {

// ---- reductions and running sums

inline void GetCumSumMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t, const bool,
                                   const bool, std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetReduceXorSumMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t,
                                         const bool, std::uint32_t &maxValue,
                                         std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetSumMaxMinTmpSize(const std::uint32_t n, const std::uint32_t typeSize, const bool,
                                std::uint32_t &maxSize, std::uint32_t &minSize) {
  maxSize = minSize = static_cast<std::uint32_t>(twin::SumScratch(n, typeSize));
}
inline void GetMeanMaxMinTmpSize(const std::uint32_t n, const std::uint32_t srcTypeSize,
                                 const std::uint32_t accTypeSize, const bool,
                                 std::uint32_t &maxSize, std::uint32_t &minSize) {
  const std::int64_t wide = accTypeSize > srcTypeSize ? twin::RoundUp(n * accTypeSize, 32) : 0;
  maxSize = minSize = static_cast<std::uint32_t>(twin::SumScratch(n, accTypeSize) + wide);
}
#define TWIN_AXIS_SIZES(name)                                                                     \
  inline void Get##name##MaxMinTmpSize(const TensorShape &srcShape, const TensorDataType,         \
                                       ReducePattern, bool, bool, std::uint32_t &maxValue,        \
                                       std::uint32_t &minValue) {                                 \
    twin::PlainScratch(srcShape, maxValue, minValue);                                             \
    maxValue = minValue; /* doc: the two are the same */                                          \
  }
TWIN_AXIS_SIZES(ReduceSum)
TWIN_AXIS_SIZES(ReduceMean)
TWIN_AXIS_SIZES(ReduceMax)
TWIN_AXIS_SIZES(ReduceMin)
TWIN_AXIS_SIZES(ReduceProd)
TWIN_AXIS_SIZES(ReduceAny)
TWIN_AXIS_SIZES(ReduceAll)
#undef TWIN_AXIS_SIZES

// ---- sorting

inline std::uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC &, const std::uint32_t, const std::uint32_t) {
  return 0;  // nothing is moved on this chip
}
inline std::uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC &, const std::uint32_t elemCount,
                                    const std::uint32_t) {
  return static_cast<std::uint32_t>(twin::SortScratch(elemCount));
}
// guess: no page has a formula; so much suffices for a Sort of that many elements
inline void GetSortMaxMinTmpSize(const TensorShape &srcShape, TensorDataType, TensorDataType,
                                 const bool, const SortConfig &, std::uint32_t &maxValue,
                                 std::uint32_t &minValue) {
  const auto count = static_cast<std::int64_t>(twin::ElementsOf(srcShape));
  maxValue = minValue = static_cast<std::uint32_t>(twin::SortScratch(count));
}
inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const std::int32_t inner, const std::int32_t,
                                 const bool, const bool, enum TopKMode, const bool,
                                 const std::uint32_t, std::uint32_t &maxValue,
                                 std::uint32_t &minValue) {
  maxValue = minValue = static_cast<std::uint32_t>(twin::TopKScratch(inner));
  return inner > 0 && inner % 32 == 0;
}
#define TWIN_TOPK_TILING(SPACE)                                                                   \
  inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC &, const std::int32_t inner,                          \
                             const std::int32_t outter, const std::int32_t k,                     \
                             const std::uint32_t, const bool, enum TopKMode, const bool,          \
                             SPACE::TopkTiling &topKTiling) {                                     \
    twin::Give(twin::PlanTopK(inner, outter, k), topKTiling);                                     \
    return inner > 0 && inner % 32 == 0 && k > 0 && k <= inner;                                   \
  }
TWIN_TOPK_TILING(optiling)
TWIN_TOPK_TILING(tiling)
#undef TWIN_TOPK_TILING

// ---- layouts

inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const TensorShape &,
                                      const TensorShape &dstShape, std::uint32_t, const bool,
                                      std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(dstShape, maxValue, minValue);
}
inline void GetPadMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t,
                                std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const TensorShape &srcShape,
                                  const std::uint32_t, std::uint32_t &maxValue,
                                  std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetTransposeMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t,
                                      const std::uint32_t, std::uint32_t &maxValue,
                                      std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetConfusionTransposeMaxMinTmpSize(const TensorShape &srcShape,
                                               const std::uint32_t typeSize,
                                               const std::uint32_t transposeTypeIn,
                                               std::uint32_t &maxValue, std::uint32_t &minValue) {
  GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, maxValue, minValue);
}
inline bool GetTransDataMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const TensorShape &srcShape,
                                      const TensorShape &, const TensorDataType,
                                      const TransDataConfig &, std::uint32_t &maxValue,
                                      std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
  return true;
}
#define TWIN_LAYOUT_TILING(SPACE)                                                                 \
  inline void PadTilingFunc(const TensorShape srcShape, const TensorShape oriSrcShape,            \
                            const std::uint32_t stackBufferSize, const std::uint32_t,             \
                            SPACE::PadTiling &tiling) {                                           \
    twin::Give(AscendC::tiling::PadTiling{twin::SizeOfDim(srcShape, 0),                           \
                                          twin::SizeOfDim(srcShape, 1),                           \
                                          twin::SizeOfDim(oriSrcShape, 1), stackBufferSize},      \
               tiling);                                                                           \
  }                                                                                               \
  inline void UnPadTilingFunc(const TensorShape srcShape, const std::uint32_t stackBufferSize,    \
                              const std::uint32_t, SPACE::UnPadTiling &tiling) {                  \
    twin::Give(AscendC::tiling::UnPadTiling{twin::SizeOfDim(srcShape, 0),                         \
                                            twin::SizeOfDim(srcShape, 1), stackBufferSize},       \
               tiling);                                                                           \
  }                                                                                               \
  inline void GetTransposeTilingInfo(const TensorShape &srcShape, const std::uint32_t,            \
                                     const std::uint32_t typeSize,                                \
                                     const std::uint32_t transposeTypeIn,                         \
                                     SPACE::ConfusionTransposeTiling &tiling) {                   \
    twin::Give(twin::PlanTranspose(srcShape, typeSize, transposeTypeIn), tiling);                 \
  }                                                                                               \
  inline void GetConfusionTransposeTilingInfo(                                                    \
      const TensorShape &srcShape, const std::uint32_t stackBufferSize,                           \
      const std::uint32_t typeSize, const std::uint32_t transposeTypeIn,                          \
      SPACE::ConfusionTransposeTiling &tiling) {                                                  \
    GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, transposeTypeIn, tiling);         \
  }                                                                                               \
  inline void GetConfusionTransposeOnlyTilingInfo(const TensorShape &srcShape,                    \
                                                  const std::uint32_t stackBufferSize,            \
                                                  const std::uint32_t typeSize,                   \
                                                  SPACE::ConfusionTransposeTiling &tiling) {      \
    GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, 7, tiling);                       \
  }
TWIN_LAYOUT_TILING(optiling)
TWIN_LAYOUT_TILING(tiling)
#undef TWIN_LAYOUT_TILING

// ---- quantisation, filters, index

inline void GetAscendQuantMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t,
                                        std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetAscendDequantMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t,
                                          std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline void GetAscendAntiQuantMaxMinTmpSize(const TensorShape &srcShape, const TensorShape &, bool,
                                            TensorDataType, TensorDataType,
                                            std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline std::uint32_t GetAscendAntiQuantMaxTmpSize(const TensorShape &srcShape,
                                                  const TensorShape &scaleShape, bool isTranspose,
                                                  TensorDataType from, TensorDataType to) {
  std::uint32_t most = 0, least = 0;
  GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, from, to, most, least);
  return most;
}
inline std::uint32_t GetAscendAntiQuantMinTmpSize(const TensorShape &srcShape,
                                                  const TensorShape &scaleShape, bool isTranspose,
                                                  TensorDataType from, TensorDataType to) {
  std::uint32_t most = 0, least = 0;
  GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, from, to, most, least);
  return least;
}

#define TWIN_SELECT_SIZES(name)                                                                   \
  inline void Get##name##MaxMinTmpSize(const TensorShape &, const TensorShape &,                  \
                                       const std::uint32_t, const TensorShape &maskShape,         \
                                       const std::uint32_t, const bool, std::uint32_t &maxValue,  \
                                       std::uint32_t &minValue) {                                 \
    twin::PlainScratch(maskShape, maxValue, minValue);                                            \
  }                                                                                               \
  inline std::uint32_t Get##name##MaxTmpSize(                                                     \
      const TensorShape &src0, const TensorShape &src1, const std::uint32_t srcTypeSize,          \
      const TensorShape &mask, const std::uint32_t maskTypeSize, const bool isReuseMask) {        \
    std::uint32_t most = 0, least = 0;                                                            \
    Get##name##MaxMinTmpSize(src0, src1, srcTypeSize, mask, maskTypeSize, isReuseMask, most,      \
                             least);                                                              \
    return most;                                                                                  \
  }                                                                                               \
  inline std::uint32_t Get##name##MinTmpSize(                                                     \
      const TensorShape &src0, const TensorShape &src1, const std::uint32_t srcTypeSize,          \
      const TensorShape &mask, const std::uint32_t maskTypeSize, const bool isReuseMask) {        \
    std::uint32_t most = 0, least = 0;                                                            \
    Get##name##MaxMinTmpSize(src0, src1, srcTypeSize, mask, maskTypeSize, isReuseMask, most,      \
                             least);                                                              \
    return least;                                                                                 \
  }
TWIN_SELECT_SIZES(Select)
TWIN_SELECT_SIZES(SelectWithBytesMask)
#undef TWIN_SELECT_SIZES

inline void GetDropOutMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t, const bool,
                                    std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::PlainScratch(srcShape, maxValue, minValue);
}
inline std::uint32_t GetDropOutMaxTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,
                                          const bool isReuseSource) {
  std::uint32_t most = 0, least = 0;
  GetDropOutMaxMinTmpSize(srcShape, typeSize, isReuseSource, most, least);
  return most;
}
inline std::uint32_t GetDropOutMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,
                                          const bool isReuseSource) {
  std::uint32_t most = 0, least = 0;
  GetDropOutMaxMinTmpSize(srcShape, typeSize, isReuseSource, most, least);
  return least;
}
// doc: Arange takes none
inline void GetArangeMaxMinTmpSize(std::uint32_t &maxValue, std::uint32_t &minValue) {
  maxValue = minValue = 0;
}
inline void GetArithProgressionMaxMinTmpSize(std::uint32_t &maxValue, std::uint32_t &minValue) {
  maxValue = minValue = 0;
}

}  // namespace AscendC
