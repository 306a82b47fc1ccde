// Host tiling of the SoftMax family. The sizes are ours: the vendor publishes no formula.
#pragma once

#include "register/tilingdata_base.h"
#include "tiling/shape.h"
#include "twin/splits.h"

#define TWIN_SET_FIELD(type, name) to.set_##name(from.name);
#define TWIN_GET_FIELD(type, name) to.name = from.get_##name();
// A tiling class of host code, and its values as the plain struct and back.
#define TWIN_TILING_CLASS(name, FIELDS)                                         \
  namespace optiling {                                                          \
  BEGIN_TILING_DATA_DEF(name)                                                   \
  FIELDS(TILING_DATA_FIELD_DEF)                                                 \
  END_TILING_DATA_DEF;                                                          \
  }                                                                             \
  namespace twin {                                                              \
  inline void Give(const AscendC::tiling::name &from, optiling::name &to) {     \
    FIELDS(TWIN_SET_FIELD)                                                      \
  }                                                                             \
  inline void Give(const AscendC::tiling::name &from, AscendC::tiling::name &to) { to = from; } \
  inline AscendC::tiling::name Plain(optiling::name &from) {                    \
    AscendC::tiling::name to;                                                   \
    FIELDS(TWIN_GET_FIELD)                                                      \
    return to;                                                                  \
  }                                                                             \
  }

TWIN_TILING_CLASS(SoftMaxTiling, TWIN_SOFTMAX_FIELDS)
TWIN_TILING_CLASS(LogSoftMaxTiling, TWIN_SOFTMAX_FIELDS)

namespace twin {

inline std::uint32_t LeastSoft(Soft soft, const ge::Shape &shape, std::uint32_t size,
                               bool update = false) {
  return SoftRowBytes(soft, Padded(LastOf(shape), 16), size, update);
}
inline std::uint32_t MostSoft(Soft soft, const ge::Shape &shape, std::uint32_t size,
                              bool update = false) {
  return LeastSoft(soft, shape, size, update) * std::max(RowsOf(shape), 1u);
}
inline bool BasicSoft(const AscendC::tiling::SoftMaxTiling &tiling, std::uint32_t size) {
  return tiling.srcK % 64 == 0 && tiling.srcK < 2048 && tiling.srcK * size >= 256 &&
         tiling.splitM % 8 == 0 && tiling.srcM % 8 == 0 && tiling.srcM > 0 && tiling.splitM > 0;
}

}  // namespace twin

namespace AscendC {

// ---- SoftMax and SimpleSoftMax

inline std::uint32_t GetSoftMaxMaxTmpSize(const TensorShape &srcShape,
                                          const std::uint32_t dataTypeSize,
                                          [[maybe_unused]] const bool isReuseSource) {
  return twin::MostSoft(twin::Soft::kPlain, srcShape, dataTypeSize);
}
inline std::uint32_t GetSoftMaxMinTmpSize(const TensorShape &srcShape,
                                          const std::uint32_t dataTypeSize,
                                          [[maybe_unused]] const bool isReuseSource) {
  return twin::LeastSoft(twin::Soft::kPlain, srcShape, dataTypeSize);
}

// ---- SoftmaxFlash

inline std::uint32_t GetSoftMaxFlashMaxTmpSize(const TensorShape &srcShape,
                                               const std::uint32_t dataTypeSize,
                                               const bool isUpdate,
                                               [[maybe_unused]] const bool isReuseSource) {
  return twin::MostSoft(twin::Soft::kFlash, srcShape, dataTypeSize, isUpdate);
}
inline std::uint32_t GetSoftMaxFlashMinTmpSize(const TensorShape &srcShape,
                                               const std::uint32_t dataTypeSize,
                                               const bool isUpdate,
                                               [[maybe_unused]] const bool isReuseSource) {
  return twin::LeastSoft(twin::Soft::kFlash, srcShape, dataTypeSize, isUpdate);
}

// ---- SoftmaxFlashV2 and V3

inline std::uint32_t GetSoftMaxFlashV2MaxTmpSize(
    const TensorShape &srcShape, const std::uint32_t dataTypeSize1,
    [[maybe_unused]] const std::uint32_t dataTypeSize2, const bool isUpdate,
    [[maybe_unused]] const bool isBasicBlock = false,
    [[maybe_unused]] const bool isFlashOutputBrc = false) {
  return twin::MostSoft(twin::Soft::kFlash2, srcShape, dataTypeSize1, isUpdate);
}
inline std::uint32_t GetSoftMaxFlashV2MinTmpSize(
    const TensorShape &srcShape, const std::uint32_t dataTypeSize1,
    [[maybe_unused]] const std::uint32_t dataTypeSize2, const bool isUpdate,
    [[maybe_unused]] const bool isBasicBlock = false,
    [[maybe_unused]] const bool isFlashOutputBrc = false) {
  return twin::LeastSoft(twin::Soft::kFlash2, srcShape, dataTypeSize1, isUpdate);
}
inline void GetSoftMaxFlashV3MaxMinTmpSize(
    const TensorShape &srcShape, const std::uint32_t dataTypeSize1,
    [[maybe_unused]] const std::uint32_t dataTypeSize2, std::uint32_t &maxValue,
    std::uint32_t &minValue, const bool isUpdate,
    [[maybe_unused]] const bool isBasicBlock = false) {
  maxValue = twin::MostSoft(twin::Soft::kFlash3, srcShape, dataTypeSize1, isUpdate);
  minValue = twin::LeastSoft(twin::Soft::kFlash3, srcShape, dataTypeSize1, isUpdate);
}

// ---- SoftmaxGrad

inline std::uint32_t GetSoftMaxGradMaxTmpSize(const TensorShape &srcShape,
                                              const std::uint32_t dataTypeSize,
                                              [[maybe_unused]] const bool isFront,
                                              [[maybe_unused]] const bool isReuseSource) {
  return twin::MostSoft(twin::Soft::kGrad, srcShape, dataTypeSize);
}
inline std::uint32_t GetSoftMaxGradMinTmpSize(const TensorShape &srcShape,
                                              const std::uint32_t dataTypeSize,
                                              [[maybe_unused]] const bool isFront,
                                              [[maybe_unused]] const bool isReuseSource) {
  return twin::LeastSoft(twin::Soft::kGrad, srcShape, dataTypeSize);
}

// ---- LogSoftMax

inline std::uint32_t GetLogSoftMaxMaxTmpSize(const TensorShape srcShape,
                                             const std::uint32_t dataTypeSize,
                                             [[maybe_unused]] const bool isReuseSource) {
  return twin::MostSoft(twin::Soft::kLog, srcShape, dataTypeSize);
}
inline std::uint32_t GetLogSoftMaxMinTmpSize(const TensorShape srcShape,
                                             const std::uint32_t dataTypeSize,
                                             [[maybe_unused]] const bool isReuseSource) {
  return twin::LeastSoft(twin::Soft::kLog, srcShape, dataTypeSize);
}

// ---- tiling, into either kind of struct

#define TWIN_SOFT_TILING(SPACE)                                                                  \
  inline void SoftMaxTilingFunc(const TensorShape &srcShape, const std::uint32_t dataTypeSize,   \
                                const std::uint32_t localWorkSpaceSize,                          \
                                SPACE::SoftMaxTiling &softmaxTiling) {                           \
    twin::Give(twin::SplitSoft(twin::Soft::kPlain, twin::RowsOf(srcShape),                       \
                               twin::LastOf(srcShape), dataTypeSize, dataTypeSize,               \
                               localWorkSpaceSize, false),                                       \
               softmaxTiling);                                                                   \
  }                                                                                              \
  inline void SoftMaxFlashTilingFunc(                                                            \
      const TensorShape &srcShape, const std::uint32_t dataTypeSize,                             \
      const std::uint32_t localWorkSpaceSize, SPACE::SoftMaxTiling &softmaxFlashTiling,          \
      const bool isUpdate = false) {                                                             \
    twin::Give(twin::SplitSoft(twin::Soft::kFlash, twin::RowsOf(srcShape),                       \
                               twin::LastOf(srcShape), dataTypeSize, dataTypeSize,               \
                               localWorkSpaceSize, isUpdate),                                    \
               softmaxFlashTiling);                                                              \
  }                                                                                              \
  inline void SoftMaxFlashV2TilingFunc(                                                          \
      const TensorShape &srcShape, const std::uint32_t dataTypeSize1,                            \
      const std::uint32_t dataTypeSize2, const std::uint32_t localWorkSpaceSize,                 \
      SPACE::SoftMaxTiling &softmaxFlashTiling, const bool isUpdate,                             \
      const bool isBasicBlock = false, const bool isFlashOutputBrc = false) {                    \
    twin::Give(twin::SplitSoft(twin::Soft::kFlash2, twin::RowsOf(srcShape),                      \
                               twin::LastOf(srcShape), dataTypeSize1, dataTypeSize2,             \
                               localWorkSpaceSize, isUpdate, isBasicBlock, isFlashOutputBrc),    \
               softmaxFlashTiling);                                                              \
  }                                                                                              \
  inline void SoftMaxFlashV3TilingFunc(                                                          \
      const TensorShape &srcShape, const std::uint32_t dataTypeSize1,                            \
      const std::uint32_t dataTypeSize2, const std::uint32_t localWorkSpaceSize,                 \
      SPACE::SoftMaxTiling &softmaxFlashV3Tiling, const bool isUpdate,                           \
      const bool isBasicBlock = false) {                                                         \
    twin::Give(twin::SplitSoft(twin::Soft::kFlash3, twin::RowsOf(srcShape),                      \
                               twin::LastOf(srcShape), dataTypeSize1, dataTypeSize2,             \
                               localWorkSpaceSize, isUpdate, isBasicBlock),                      \
               softmaxFlashV3Tiling);                                                            \
  }                                                                                              \
  inline void SoftMaxGradTilingFunc(                                                             \
      const TensorShape &srcShape, const std::uint32_t dataTypeSize,                             \
      const std::uint32_t localWorkSpaceSize, SPACE::SoftMaxTiling &softmaxGradTiling,           \
      [[maybe_unused]] const bool isFront = false) {                                             \
    twin::Give(twin::SplitSoft(twin::Soft::kGrad, twin::RowsOf(srcShape),                        \
                               twin::LastOf(srcShape), dataTypeSize, dataTypeSize,               \
                               localWorkSpaceSize, false),                                       \
               softmaxGradTiling);                                                               \
  }                                                                                              \
  inline void LogSoftMaxTilingFunc(const TensorShape srcShape, const std::uint32_t dataTypeSize, \
                                   const std::uint32_t localWorkSpaceSize,                       \
                                   SPACE::LogSoftMaxTiling &softmaxTiling) {                     \
    twin::Give(twin::SplitSoft<tiling::LogSoftMaxTiling>(                                        \
                   twin::Soft::kLog, twin::RowsOf(srcShape), twin::LastOf(srcShape),             \
                   dataTypeSize, dataTypeSize, localWorkSpaceSize, false),                       \
               softmaxTiling);                                                                   \
  }
TWIN_SOFT_TILING(optiling)
TWIN_SOFT_TILING(tiling)
#undef TWIN_SOFT_TILING

inline bool IsBasicBlockInSoftMax(optiling::SoftMaxTiling &tiling,
                                  const std::uint32_t dataTypeSize = 2) {
  return twin::BasicSoft(twin::Plain(tiling), dataTypeSize);
}
inline bool IsBasicBlockInSoftMax(tiling::SoftMaxTiling &tiling,
                                  const std::uint32_t dataTypeSize = 2) {
  return twin::BasicSoft(tiling, dataTypeSize);
}

}  // namespace AscendC
