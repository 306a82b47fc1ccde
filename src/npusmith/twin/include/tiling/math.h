// Scratch of the mathematical functions, as host tiling asks for it. No formula is published: one
// tile of the function's own type at most, and what the twin checks for at least.
#pragma once

#include "tiling/activation.h"
#include "tiling/platform/platform_ascendc.h"

namespace twin {
constexpr LiveNodes kLiveMath{1, 2};
}

namespace AscendC {

// Each also with the platform in front, as pages of some functions have it.
#define TWIN_MATH_SIZES(name)                                                                      \
  inline void Get##name##MaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,  \
                                       const bool, std::uint32_t &maxValue,                        \
                                       std::uint32_t &minValue) {                                  \
    twin::ScratchOf(srcShape, typeSize, twin::kLiveMath, maxValue, minValue);                      \
  }                                                                                                \
  inline void Get##name##MaxMinTmpSize(const platform_ascendc::PlatformAscendC &,                  \
                                       const TensorShape &srcShape, const std::uint32_t typeSize,  \
                                       const bool isReuseSource, std::uint32_t &maxValue,          \
                                       std::uint32_t &minValue) {                                  \
    Get##name##MaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);               \
  }                                                                                                \
  inline void Get##name##TmpBufferFactorSize(const std::uint32_t typeSize,                         \
                                             std::uint32_t &maxLiveNodeCount,                      \
                                             std::uint32_t &extraBuf) {                            \
    twin::FactorOf(typeSize, twin::kLiveMath, maxLiveNodeCount, extraBuf);                         \
  }                                                                                                \
  inline void Get##name##TmpBufferFactorSize(const platform_ascendc::PlatformAscendC &,            \
                                             const std::uint32_t typeSize,                         \
                                             std::uint32_t &maxLiveNodeCount,                      \
                                             std::uint32_t &extraBuf) {                            \
    Get##name##TmpBufferFactorSize(typeSize, maxLiveNodeCount, extraBuf);                          \
  }

TWIN_MATH_SIZES(Acos)
TWIN_MATH_SIZES(Acosh)
TWIN_MATH_SIZES(Asin)
TWIN_MATH_SIZES(Asinh)
TWIN_MATH_SIZES(Atan)
TWIN_MATH_SIZES(Atanh)
TWIN_MATH_SIZES(Axpy)
TWIN_MATH_SIZES(Ceil)
TWIN_MATH_SIZES(Cos)
TWIN_MATH_SIZES(Cosh)
TWIN_MATH_SIZES(Digamma)
TWIN_MATH_SIZES(Erf)
TWIN_MATH_SIZES(Erfc)
TWIN_MATH_SIZES(Exp)
TWIN_MATH_SIZES(Floor)
TWIN_MATH_SIZES(Fmod)
TWIN_MATH_SIZES(Frac)
TWIN_MATH_SIZES(Lgamma)
TWIN_MATH_SIZES(Log)
TWIN_MATH_SIZES(Log2)
TWIN_MATH_SIZES(Log10)
TWIN_MATH_SIZES(Sign)
TWIN_MATH_SIZES(Sin)
TWIN_MATH_SIZES(Sinh)
TWIN_MATH_SIZES(Tan)
TWIN_MATH_SIZES(Tanh)
TWIN_MATH_SIZES(Trunc)
TWIN_MATH_SIZES(Xor)

#undef TWIN_MATH_SIZES

inline void GetPowerMaxMinTmpSize(const TensorShape &srcShape1, const TensorShape &, const bool,
                                  const std::uint32_t typeSize, const bool,
                                  std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::ScratchOf(srcShape1, typeSize, twin::kLiveMath, maxValue, minValue);
}
inline void GetAscendQuantTmpBufferFactorSize(const TensorShape &, std::uint32_t &maxLiveNodeCount,
                                              std::uint32_t &extraBuf) {
  twin::FactorOf(4, twin::kLiveMath, maxLiveNodeCount, extraBuf);
}
inline void GetAscendDequantTmpBufferFactorSize(const TensorShape &,
                                                std::uint32_t &maxLiveNodeCount,
                                                std::uint32_t &extraBuf) {
  twin::FactorOf(4, twin::kLiveMath, maxLiveNodeCount, extraBuf);
}

}  // namespace AscendC
