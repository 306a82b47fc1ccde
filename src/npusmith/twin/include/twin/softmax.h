// SoftMax and its relatives: matrices of m rows of k elements, reduced along each row.
#pragma once

#include "twin/splits.h"
#include "twin/tensor.h"

namespace AscendC {

// What the first two numbers of a shape are called: rows and row length, as they lie in UB.
struct LastAxisShapeND {
  std::uint32_t m;
  std::uint32_t k;
};

struct SoftMaxShapeInfo {
  constexpr SoftMaxShapeInfo() = default;
  constexpr SoftMaxShapeInfo(std::uint32_t m, std::uint32_t k, std::uint32_t realM,
                             std::uint32_t realK)
      : srcM(m), srcK(k), oriSrcM(realM), oriSrcK(realK) {}
  std::uint32_t srcM = 0;
  std::uint32_t srcK = 0;
  std::uint32_t oriSrcM = 0;
  std::uint32_t oriSrcK = 0;
};

struct SoftMaxParams {
  std::uint32_t srcM;
  std::uint32_t srcK;
  std::uint32_t oriSrcM;
  std::uint32_t oriSrcK;
  std::uint32_t loopCnt;
  std::uint32_t splitMeanCnt;
  float alpha;
};

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
  bool isCheckTiling = true;
  std::uint32_t oriSrcM = 0;
  std::uint32_t oriSrcK = 0;
  SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};
constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

using tiling::LogSoftMaxTiling;
using tiling::SoftMaxTiling;

}  // namespace AscendC

using AscendC::tiling::LogSoftMaxTiling;
using AscendC::tiling::SoftMaxTiling;

namespace twin {

// ---- what the runtime is asked

struct SoftShape {
  std::int64_t m, k;          // as the data lie in UB
  std::int64_t realM, realK;  // without padding
  bool nz;                    // fractals of 16 columns, each with all rows
  bool basic;                 // the caller promised a basic block
};

// Operands; null where a form has none. Statistics (sum, max...) have one value a row.
struct SoftTensors {
  const View *dst = nullptr, *sum = nullptr, *max = nullptr, *src = nullptr;
  const View *expMax = nullptr, *inSum = nullptr, *inMax = nullptr, *rowMax = nullptr;
  const View *scratch = nullptr;
};

// How the values are held: those of src and dst, those of the statistics, and whether each
// statistic fills a datablock of equal values or stands alone.
struct SoftHold {
  DType type, stat;
  bool alone;
};

void SoftOp(const Call &call, Soft soft, const SoftHold &hold, const SoftTensors &tensors,
            const SoftShape &shape, bool update);
void SoftGradOp(const Call &call, DType type, const View &dst, const View &grad, const View &src,
                const View *scratch, const SoftShape &shape, bool front);
bool SoftAdjustOp(const Call &call, const SoftHold &hold, const View &result, const View &max,
                  std::uint32_t from, float to, const SoftShape &shape);

struct SoftPasa {
  const View *mean, *inMean;
  std::int64_t loops, pieces;
  float alpha;
};
void SoftPasaOp(const Call &call, const SoftTensors &tensors, const SoftPasa &pasa,
                const SoftShape &shape, bool update);

// The shape that a call means: its own, else the tensor's, else the tiling's. Reports a tiling that
// was made for another shape when the call forbids the library to make its own.
struct SoftAsked {
  std::uint32_t srcM, srcK, oriSrcM, oriSrcK;
  std::uint32_t fixedM, fixedK;  // of SoftmaxConfig
  std::uint32_t tilingM, tilingK;
  bool check;
};
SoftShape SoftShapeOf(const Call &call, const SoftAsked &asked, const AscendC::ShapeInfo &info,
                      bool nz, bool basic);

template <typename T, typename Tiling>
SoftShape ShapeFor(const Call &call, const AscendC::LocalTensor<T> &src, const Tiling &tiling,
                   const AscendC::SoftMaxShapeInfo &info, bool nz, bool basic,
                   const AscendC::SoftmaxConfig &config = AscendC::SOFTMAX_DEFAULT_CFG) {
  const SoftAsked asked{info.srcM,      info.srcK,      info.oriSrcM,  info.oriSrcK,
                        config.oriSrcM, config.oriSrcK, tiling.srcM,   tiling.srcK,
                        config.isCheckTiling};
  return SoftShapeOf(call, asked, src.GetShapeInfo(), nz, basic && config.oriSrcM == 0);
}

template <typename T, typename S>
constexpr SoftHold HoldOf(const AscendC::SoftmaxConfig &config = AscendC::SOFTMAX_DEFAULT_CFG) {
  static_assert(kOneOf<T, half, float> && kOneOf<S, half, float>,
                "the SoftMax family on dav-2201 takes half or float");
  return {TagOf<T>(), TagOf<S>(), config.mode == AscendC::SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC};
}

template <const AscendC::SoftmaxConfig &config>
constexpr void CheckSpread() {
  static_assert(config.mode == AscendC::SoftmaxMode::SOFTMAX_NORMAL,
                "SoftmaxMode is for SoftmaxFlashV2 only on dav-2201");
}

}  // namespace twin

namespace AscendC {

// Every function exists with a scratch tensor (TMP) and with the library's own scratch (OWN).
#define TWIN_PARAM_TMP const LocalTensor<std::uint8_t> &sharedTmpBuffer,
#define TWIN_PARAM_OWN
#define TWIN_VIEW_TMP &sharedTmpBuffer.view()
#define TWIN_VIEW_OWN nullptr
#define TWIN_BOTH(DEFINE) DEFINE(TMP) DEFINE(OWN)
// T, S: element types of data and statistics.
#define TWIN_OUTPUTS(T, S)                                                                       \
  const LocalTensor<T> &dstTensor, const LocalTensor<S> &sumTensor, const LocalTensor<S> &maxTensor
#define TWIN_SOFT_CONFIG                                                                         \
  bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,            \
       const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG

// ---- SoftMax

#define TWIN_SOFTMAX(D, S, SCRATCH)                                                              \
  template <typename T, TWIN_SOFT_CONFIG>                                                        \
  void SoftMax(TWIN_OUTPUTS(D, S), const LocalTensor<D> &srcTensor, TWIN_PARAM_##SCRATCH         \
               const SoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {},       \
               twin::Site site = twin::Here()) {                                                 \
    twin::CheckSpread<config>();                                                                 \
    const twin::Call call{"SoftMax", site};                                                      \
    twin::SoftTensors all;                                                                       \
    all.dst = &dstTensor.view(), all.sum = &sumTensor.view(), all.max = &maxTensor.view();       \
    all.src = &srcTensor.view(), all.scratch = TWIN_VIEW_##SCRATCH;                              \
    twin::SoftOp(call, twin::Soft::kPlain, twin::HoldOf<D, S>(), all,                            \
                 twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, isDataFormatNZ,       \
                                isBasicBlock, config),                                           \
                 false);                                                                         \
  }
#define TWIN_SOFTMAX_SAME(SCRATCH) TWIN_SOFTMAX(T, T, SCRATCH)
#define TWIN_SOFTMAX_MIXED(SCRATCH) TWIN_SOFTMAX(half, float, SCRATCH)
TWIN_BOTH(TWIN_SOFTMAX_SAME)
TWIN_BOTH(TWIN_SOFTMAX_MIXED)

#define TWIN_SOFTMAX_BARE(SCRATCH)                                                               \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false,                   \
            const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>                                   \
  void SoftMax(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,                 \
                      TWIN_PARAM_##SCRATCH                                                       \
               const SoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {},       \
               twin::Site site = twin::Here()) {                                                 \
    twin::CheckSpread<config>();                                                                 \
    const twin::Call call{"SoftMax", site};                                                      \
    twin::SoftTensors all;                                                                       \
    all.dst = &dstTensor.view(), all.src = &srcTensor.view(), all.scratch = TWIN_VIEW_##SCRATCH; \
    twin::SoftOp(call, twin::Soft::kPlain, twin::HoldOf<T, T>(), all,                            \
                 twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, false, isBasicBlock,  \
                                config),                                                         \
                 false);                                                                         \
  }
TWIN_BOTH(TWIN_SOFTMAX_BARE)

// ---- SimpleSoftMax: with sum and max from before

#define TWIN_SIMPLE(D, S, SCRATCH)                                                               \
  template <typename T, TWIN_SOFT_CONFIG>                                                        \
  void SimpleSoftMax(const LocalTensor<D> &dstTensor, const LocalTensor<S> &inSumTensor,         \
                     const LocalTensor<S> &inMaxTensor, const LocalTensor<D> &srcTensor,         \
                      TWIN_PARAM_##SCRATCH                                                       \
                     const SoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {}, \
                     twin::Site site = twin::Here()) {                                           \
    twin::CheckSpread<config>();                                                                 \
    const twin::Call call{"SimpleSoftMax", site};                                                \
    twin::SoftTensors all;                                                                       \
    all.dst = &dstTensor.view(), all.inSum = &inSumTensor.view();                                \
    all.inMax = &inMaxTensor.view(), all.src = &srcTensor.view(), all.scratch =                  \
                  TWIN_VIEW_##SCRATCH;                                                           \
    twin::SoftOp(call, twin::Soft::kSimple, twin::HoldOf<D, S>(), all,                           \
                 twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, isDataFormatNZ,       \
                                isBasicBlock, config),                                           \
                 false);                                                                         \
  }
#define TWIN_SIMPLE_SAME(SCRATCH) TWIN_SIMPLE(T, T, SCRATCH)
#define TWIN_SIMPLE_MIXED(SCRATCH) TWIN_SIMPLE(half, float, SCRATCH)
TWIN_BOTH(TWIN_SIMPLE_SAME)
TWIN_BOTH(TWIN_SIMPLE_MIXED)

// ---- SoftmaxFlash: continues from the sum and max of earlier columns

#define TWIN_FLASH(D, S, SCRATCH)                                                                \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false>                   \
  void SoftmaxFlash(TWIN_OUTPUTS(D, S), const LocalTensor<D> &srcTensor,                         \
                    const LocalTensor<D> &expMaxTensor, const LocalTensor<S> &inSumTensor,       \
                    const LocalTensor<S> &inMaxTensor,                                           \
                      TWIN_PARAM_##SCRATCH const SoftMaxTiling &tiling,                          \
                    bool isUpdate = false, const SoftMaxShapeInfo &softmaxShapeInfo = {},        \
                    twin::Site site = twin::Here()) {                                            \
    const twin::Call call{"SoftmaxFlash", site};                                                 \
    const twin::SoftTensors all{&dstTensor.view(),   &sumTensor.view(),    &maxTensor.view(),    \
                                &srcTensor.view(),   &expMaxTensor.view(), &inSumTensor.view(),  \
                                &inMaxTensor.view(), nullptr,              TWIN_VIEW_##SCRATCH}; \
    twin::SoftOp(call, twin::Soft::kFlash, twin::HoldOf<D, S>(), all,                            \
                 twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, false, isBasicBlock), \
                 isUpdate);                                                                      \
  }
#define TWIN_FLASH_SAME(SCRATCH) TWIN_FLASH(T, T, SCRATCH)
#define TWIN_FLASH_MIXED(SCRATCH) TWIN_FLASH(half, float, SCRATCH)
TWIN_BOTH(TWIN_FLASH_SAME)
TWIN_BOTH(TWIN_FLASH_MIXED)

// ---- SoftmaxFlashV2: the same without the division

#define TWIN_FLASH2(D, S, FORM, SCRATCH)                                                         \
  template <typename T, bool isUpdate = false, TWIN_SOFT_CONFIG>                                 \
  void SoftmaxFlashV2(const LocalTensor<D> &dstTensor,                                           \
                      TWIN_PARAM_##FORM const LocalTensor<S> &expSumTensor,                      \
                      const LocalTensor<S> &maxTensor, const LocalTensor<D> &srcTensor,          \
                      const LocalTensor<D> &expMaxTensor, const LocalTensor<S> &inExpSumTensor,  \
                      const LocalTensor<S> &inMaxTensor,                                         \
                      TWIN_PARAM_##SCRATCH const SoftMaxTiling &tiling,                          \
                      const SoftMaxShapeInfo &softmaxShapeInfo = {},                             \
                      twin::Site site = twin::Here()) {                                          \
    const twin::Call call{"SoftmaxFlashV2", site};                                               \
    const twin::SoftTensors all{                                                                 \
        &dstTensor.view(),      &expSumTensor.view(), &maxTensor.view(), &srcTensor.view(),      \
        &expMaxTensor.view(),   &inExpSumTensor.view(),                                          \
        &inMaxTensor.view(), TWIN_VIEW_##FORM, TWIN_VIEW_##SCRATCH};                             \
    twin::SoftOp(call, twin::Soft::kFlash2, twin::HoldOf<D, S>(config), all,                     \
                 twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, isDataFormatNZ,       \
                                isBasicBlock, config),                                           \
                 isUpdate);                                                                      \
  }
#define TWIN_PARAM_ROWMAX const LocalTensor<T> &outReduceMax,
#define TWIN_VIEW_ROWMAX &outReduceMax.view()
#define TWIN_PARAM_NONE
#define TWIN_VIEW_NONE nullptr
#define TWIN_FLASH2_SAME(SCRATCH) TWIN_FLASH2(T, T, NONE, SCRATCH)
#define TWIN_FLASH2_MIXED(SCRATCH)                                                               \
  TWIN_FLASH2(half, float, NONE, SCRATCH)
#define TWIN_FLASH2_ROWMAX(SCRATCH)                                                              \
  TWIN_FLASH2(T, T, ROWMAX, SCRATCH)
TWIN_BOTH(TWIN_FLASH2_SAME)
TWIN_BOTH(TWIN_FLASH2_MIXED)
TWIN_BOTH(TWIN_FLASH2_ROWMAX)

// ---- SoftmaxFlashV3: subtracts part of each piece's mean first (PASA)

#define TWIN_FLASH3(SCRATCH)                                                                     \
  template <typename T, typename U, bool isUpdate = false, TWIN_SOFT_CONFIG>                     \
  void SoftmaxFlashV3(const LocalTensor<T> &dstTensor, const LocalTensor<U> &meanTensor,         \
                      const LocalTensor<U> &expSumTensor, const LocalTensor<U> &maxTensor,       \
                      const LocalTensor<T> &srcTensor, const LocalTensor<T> &expMaxTensor,       \
                      const LocalTensor<U> &inMeanTensor, const LocalTensor<U> &inExpSumTensor,  \
                      const LocalTensor<U> &inMaxTensor,                                         \
                      TWIN_PARAM_##SCRATCH const SoftMaxTiling &tiling,                          \
                      const SoftMaxParams &params, twin::Site site = twin::Here()) {             \
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, float>,                           \
                  "SoftmaxFlashV3 on dav-2201 takes half data and float statistics");            \
    const twin::Call call{"SoftmaxFlashV3", site};                                               \
    const twin::SoftTensors all{                                                                 \
        &dstTensor.view(),      &expSumTensor.view(), &maxTensor.view(), &srcTensor.view(),      \
        &expMaxTensor.view(),   &inExpSumTensor.view(),                                          \
        &inMaxTensor.view(), nullptr, TWIN_VIEW_##SCRATCH};                                      \
    const SoftMaxShapeInfo shape(params.srcM, params.srcK, params.oriSrcM, params.oriSrcK);      \
    twin::SoftPasaOp(call, all,                                                                  \
                     {&meanTensor.view(), &inMeanTensor.view(), params.loopCnt,                  \
                      params.splitMeanCnt, params.alpha},                                        \
                     twin::ShapeFor(call, srcTensor, tiling, shape, false, false), isUpdate);    \
  }
TWIN_BOTH(TWIN_FLASH3)

// ---- gradients

#define TWIN_SOFT_GRAD(SCRATCH)                                                                  \
  template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>                 \
  void SoftmaxGrad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &gradTensor,            \
                   const LocalTensor<T> &srcTensor,                                              \
                      TWIN_PARAM_##SCRATCH const SoftMaxTiling &tiling,                          \
                   bool isFront = false, const SoftMaxShapeInfo &softmaxShapeInfo = {},          \
                   twin::Site site = twin::Here()) {                                             \
    const twin::Call call{"SoftmaxGrad", site};                                                  \
    twin::SoftGradOp(call, twin::HoldOf<T, T>().type, dstTensor.view(), gradTensor.view(),       \
                     srcTensor.view(), TWIN_VIEW_##SCRATCH,                                      \
                     twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, isDataFormatNZ,   \
                                    false),                                                      \
                     isFront);                                                                   \
  }                                                                                              \
  template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>                  \
  void SoftmaxGradFront(const LocalTensor<T> &dstTensor, const LocalTensor<T> &gradTensor,       \
                        const LocalTensor<T> &srcTensor,                                         \
                      TWIN_PARAM_##SCRATCH const SoftMaxTiling &tiling,                          \
                        const SoftMaxShapeInfo &softmaxShapeInfo = {},                           \
                        twin::Site site = twin::Here()) {                                        \
    const twin::Call call{"SoftmaxGradFront", site};                                             \
    twin::SoftGradOp(call, twin::HoldOf<T, T>().type, dstTensor.view(), gradTensor.view(),       \
                     srcTensor.view(), TWIN_VIEW_##SCRATCH,                                      \
                     twin::ShapeFor(call, srcTensor, tiling, softmaxShapeInfo, isDataFormatNZ,   \
                                    isBasicBlock),                                               \
                     true);                                                                      \
  }
TWIN_BOTH(TWIN_SOFT_GRAD)

#undef TWIN_SOFTMAX
#undef TWIN_SOFTMAX_SAME
#undef TWIN_SOFTMAX_MIXED
#undef TWIN_SOFTMAX_BARE
#undef TWIN_SIMPLE
#undef TWIN_SIMPLE_SAME
#undef TWIN_SIMPLE_MIXED
#undef TWIN_FLASH
#undef TWIN_FLASH_SAME
#undef TWIN_FLASH_MIXED
#undef TWIN_FLASH2
#undef TWIN_FLASH2_SAME
#undef TWIN_FLASH2_MIXED
#undef TWIN_FLASH2_ROWMAX
#undef TWIN_PARAM_ROWMAX
#undef TWIN_VIEW_ROWMAX
#undef TWIN_PARAM_NONE
#undef TWIN_VIEW_NONE
#undef TWIN_FLASH3
#undef TWIN_SOFT_GRAD
#undef TWIN_OUTPUTS
#undef TWIN_SOFT_CONFIG
#undef TWIN_BOTH
#undef TWIN_PARAM_TMP
#undef TWIN_PARAM_OWN
#undef TWIN_VIEW_TMP
#undef TWIN_VIEW_OWN

// log10 of SoftMax (doc: LogSoftMax).
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
void LogSoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                const LocalTensor<T> &src, const LocalTensor<std::uint8_t> &sharedTmpBuffer,
                const LogSoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {},
                twin::Site site = twin::Here()) {
  const twin::Call call{"LogSoftMax", site};
  twin::SoftTensors all;
  all.dst = &dst.view(), all.sum = &sum.view(), all.max = &max.view(), all.src = &src.view();
  all.scratch = &sharedTmpBuffer.view();
  twin::SoftOp(call, twin::Soft::kLog, twin::HoldOf<T, T>(), all,
               twin::ShapeFor(call, src, tiling, softmaxShapeInfo, isDataFormatNZ, false), false);
}

// Sets the rows whose maximum has the bits `from` to `to`; true when there was one.
template <typename T1, typename T2, bool isDataFormatNZ = false, std::uint8_t stepSizeMode = 0>
bool AdjustSoftMaxRes(const LocalTensor<T1> &softMaxRes, const LocalTensor<T2> &maxTensor,
                      const std::uint32_t from, const T1 to,
                      const SoftMaxShapeInfo &softmaxShapeInfo, twin::Site site = twin::Here()) {
  const twin::Call call{"AdjustSoftMaxRes", site};
  twin::SoftHold hold = twin::HoldOf<T1, T2>();
  hold.alone = stepSizeMode != 0;
  return twin::SoftAdjustOp(call, hold, softMaxRes.view(), maxTensor.view(), from,
                            static_cast<float>(to),
                            twin::ShapeFor(call, softMaxRes, SoftMaxTiling{}, softmaxShapeInfo,
                                           isDataFormatNZ, false));
}

// ---- tiling made by the kernel itself

constexpr SoftMaxTiling SoftMaxFlashV2TilingFunc(
    const SoftMaxShapeInfo &shapeInfo, const std::uint32_t dataTypeSize1,
    const std::uint32_t dataTypeSize2, const std::uint32_t localWorkSpaceSize,
    const bool isUpdate = false, const bool isBasicBlock = false,
    [[maybe_unused]] const bool isDataFormatNZ = false, const bool isFlashOutputBrc = false) {
  return twin::SplitSoft(twin::Soft::kFlash2, shapeInfo.srcM, shapeInfo.srcK, dataTypeSize1,
                         dataTypeSize2, localWorkSpaceSize, isUpdate, isBasicBlock,
                         isFlashOutputBrc);
}
// The same from the library's inside, which published kernels call: scratch counted in floats.
constexpr SoftMaxTiling SoftMaxFlashV2TilingFuncImpl(
    const std::uint32_t srcM, const std::uint32_t srcK, const std::uint32_t dataTypeSize1,
    const std::uint32_t dataTypeSize2, const std::uint32_t localWorkSpaceSize,
    const bool isUpdate = false, const bool isBasicBlock = false,
    const bool isDataFormatNZ = false, const bool isFlashOutputBrc = false) {
  return SoftMaxFlashV2TilingFunc({srcM, srcK, srcM, srcK}, dataTypeSize1, dataTypeSize2,
                                  localWorkSpaceSize * 4, isUpdate, isBasicBlock, isDataFormatNZ,
                                  isFlashOutputBrc);
}

}  // namespace AscendC
