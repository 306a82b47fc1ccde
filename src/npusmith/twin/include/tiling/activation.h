// Scratch of activation functions. The vendor publishes no formula: these keep `live` copies of
// what one round works on (guess).
#pragma once

#include "tiling/shape.h"

namespace twin {

// Copies of the data that live at once, by type; half is widened to float first.
struct LiveNodes {
  std::uint32_t wide, narrow;
  std::uint32_t of(std::uint32_t typeSize) const { return typeSize == 2 ? narrow : wide; }
};
// At least one repeat of 256 bytes for each copy.
inline void ScratchOf(const ge::Shape &shape, std::uint32_t typeSize, LiveNodes live,
                      std::uint32_t &maxValue, std::uint32_t &minValue) {
  minValue = live.of(typeSize) * 256;
  maxValue = std::max(minValue, live.of(typeSize) * Padded(ElementsOf(shape) * typeSize, 32));
}
inline void FactorOf(std::uint32_t typeSize, LiveNodes live, std::uint32_t &maxLiveNodeCount,
                     std::uint32_t &extraBuffer) {
  maxLiveNodeCount = live.of(typeSize);
  extraBuffer = 0;
}

constexpr LiveNodes kLiveGelu{2, 4};
constexpr LiveNodes kLiveGate{3, 6};

}  // namespace twin

namespace AscendC {

// ---- Gelu, FasterGelu, FasterGeluV2

inline void GetGeluMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,
                                 std::uint32_t &maxValue, std::uint32_t &minValue) {
  twin::ScratchOf(srcShape, typeSize, twin::kLiveGelu, maxValue, minValue);
}
inline std::uint32_t GetGeluMaxTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize) {
  std::uint32_t most = 0, least = 0;
  GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
  return most;
}
inline std::uint32_t GetGeluMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize) {
  std::uint32_t most = 0, least = 0;
  GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
  return least;
}

// ---- gated units

inline void GetSwiGLUMaxMinTmpSize(const TensorShape &srcShape, const std::uint32_t typeSize,
                                   std::uint32_t &maxValue, std::uint32_t &minValue,
                                   [[maybe_unused]] const bool isReuseSource) {
  twin::ScratchOf(srcShape, typeSize, twin::kLiveGate, maxValue, minValue);
}
inline void GetSwiGLUTmpBufferFactorSize(const std::uint32_t typeSize,
                                         std::uint32_t &maxLiveNodeCount,
                                         std::uint32_t &extraBuffer) {
  twin::FactorOf(typeSize, twin::kLiveGate, maxLiveNodeCount, extraBuffer);
}
inline void GetGeGLUTmpBufferFactorSize(const std::uint32_t typeSize,
                                        std::uint32_t &maxLiveNodeCount, std::uint32_t &extraBuf) {
  twin::FactorOf(typeSize, twin::kLiveGate, maxLiveNodeCount, extraBuf);
}

// ---- names whose sizes take shape, type size and isReuseSource

#define TWIN_TMP_SIZE(function, wide, narrow)                                                   \
  inline void function(const TensorShape &srcShape, const std::uint32_t typeSize,               \
                       [[maybe_unused]] const bool isReuseSource, std::uint32_t &maxValue,      \
                       std::uint32_t &minValue) {                                               \
    twin::ScratchOf(srcShape, typeSize, {wide, narrow}, maxValue, minValue);                    \
  }
TWIN_TMP_SIZE(GetClampMaxMinTmpSize, 1, 1)
TWIN_TMP_SIZE(GetGeGLUMaxMinTmpSize, 3, 6)
TWIN_TMP_SIZE(GetReGluMaxMinTmpSize, 1, 4)
TWIN_TMP_SIZE(GetSigmoidMaxMinTmpSize, 1, 1)
TWIN_TMP_SIZE(GetSiluTmpSize, 1, 1)
TWIN_TMP_SIZE(GetSwishTmpSize, 1, 1)

#undef TWIN_TMP_SIZE

// ---- math functions whose sizes have parameters of their own; the others are in library.h

template <typename Platform>
void GetRoundMaxMinTmpSize([[maybe_unused]] const Platform &ascendcPlatform,
                           const TensorShape &srcShape, const std::uint32_t typeSize,
                           [[maybe_unused]] const bool isReuseSource, std::uint32_t &maxValue,
                           std::uint32_t &minValue) {
  twin::ScratchOf(srcShape, typeSize, {1, 2}, maxValue, minValue);
}
template <typename Platform>
void GetRoundTmpBufferFactorSize([[maybe_unused]] const Platform &ascendcPlatform,
                                 const std::uint32_t typeSize, std::uint32_t &maxLiveNodeCount,
                                 std::uint32_t &extraBuf) {
  twin::FactorOf(typeSize, {1, 2}, maxLiveNodeCount, extraBuf);
}
inline void GetPowerTmpBufferFactorSize([[maybe_unused]] const bool baseIsTensor,
                                        [[maybe_unused]] const bool expIsTensor,
                                        const bool typeIsInt, const std::uint32_t typeSize,
                                        std::uint32_t &maxLiveNodeCount,
                                        std::uint32_t &extraBuffer) {
  const std::uint32_t wide = typeIsInt ? 4 : 6;
  twin::FactorOf(typeSize, {wide, 14}, maxLiveNodeCount, extraBuffer);
}
inline void GetMeanTmpBufferFactorSize(const std::uint32_t typeSize,
                                       std::uint32_t &maxLiveNodeCount,
                                       std::uint32_t &extraBuffer) {
  twin::FactorOf(typeSize, {1, 2}, maxLiveNodeCount, extraBuffer);
}

}  // namespace AscendC
