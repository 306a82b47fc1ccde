// Normalisations: rows of h elements brought to mean 0 and variance 1, then scaled and moved.
#pragma once

#include "twin/layouts.h"
#include "twin/splits.h"
#include "twin/tensor.h"

namespace AscendC {

using tiling::BatchNormTiling;
using tiling::DeepNormTiling;
using tiling::GroupNormTiling;
using tiling::LayerNormGradBetaTiling;
using tiling::LayerNormGradTiling;
using tiling::LayerNormSeparateTiling;
using tiling::LayerNormTiling;
using tiling::RmsNormTiling;

}  // namespace AscendC

using AscendC::tiling::BatchNormTiling;
using AscendC::tiling::DeepNormTiling;
using AscendC::tiling::GroupNormTiling;
using AscendC::tiling::LayerNormGradBetaTiling;
using AscendC::tiling::LayerNormGradTiling;
using AscendC::tiling::LayerNormSeparateTiling;
using AscendC::tiling::LayerNormTiling;
using AscendC::tiling::RmsNormTiling;

namespace AscendC {

struct LayerNormConfig {
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
  bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {};

struct LayerNormPara {
  std::uint32_t aLength;
  std::uint32_t rLength;
  std::uint32_t rLengthWithPadding;
};

struct NormalizeConfig {
  ReducePattern reducePattern = ReducePattern::AR;
  std::int32_t aLength = -1;
  bool isNoBeta = false;
  bool isNoGamma = false;
  bool isOnlyOutput = false;
};
constexpr NormalizeConfig NLCFG_NORM = {};

struct NormalizePara {
  std::uint32_t aLength;
  std::uint32_t rLength;
  std::uint32_t rLengthWithPadding;
};

struct LayerNormGradShapeInfo {
  DataFormat dataFormat = DataFormat::ND;
};

struct WelfordUpdateConfig {
  bool isInplace = false;
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};

struct WelfordUpdateParam {
  std::uint32_t rnLength;
  std::uint32_t abLength;
  std::uint32_t abComputeLength;
  float nRec;
};

struct WelfordFinalizePara {
  std::uint32_t rnLength;
  std::uint32_t abLength;
  std::uint32_t headCount;
  std::uint32_t headCountLength;
  std::uint32_t tailCount;
  std::uint32_t tailCountLength;
  float abRec;
  float rRec;
  float rRecWithCorrection;
};

}  // namespace AscendC

namespace twin {

// ---- what the runtime is asked

// Rows of `width` elements in UB, `real` of them data.
struct NormShape {
  std::int64_t rows, width, real;
};
// Types of data, of scale and shift, of the numbers per row.
struct NormHold {
  DType data, weight, stat;
};
// Null: the form has no such operand. `second` is the variance or the reciprocal of its root.
struct NormTensors {
  const View *dst = nullptr, *mean = nullptr, *second = nullptr, *src = nullptr;
  const View *gamma = nullptr, *beta = nullptr, *addend = nullptr;
  const View *inMean = nullptr, *inVariance = nullptr, *scratch = nullptr;
};
struct NormHow {
  float epsilon;
  float alpha;    // factor of src when there is an addend
  bool rstd;      // `second` is the reciprocal of the standard deviation
  bool byLog;     // that reciprocal by Ln, Muls, Exp instead of Rsqrt
  bool inPlace;   // src and dst may be the same memory
  bool reuse;     // src may be spoiled
  bool basic;     // the caller promised a basic block
};
void NormOp(const Call &call, const NormHold &hold, const NormTensors &tensors,
            const NormShape &shape, const NormHow &how);
void RmsNormOp(const Call &call, DType type, const NormTensors &tensors, const NormShape &shape,
               float epsilon, bool basic);

// [B, S * H]: every column normalised over B; scale and shift per B.
void BatchNormOp(const Call &call, DType type, const NormTensors &tensors, std::int64_t realB,
                 std::int64_t columns, float epsilon, bool basic);

// [N, C, H * W] in groups of C / groups channels.
struct GroupShape {
  std::int64_t n, channels, area, groups;
};
void GroupNormOp(const Call &call, DType type, const NormTensors &tensors, const GroupShape &shape,
                 float epsilon, bool reuse);

struct NormGradTensors {
  const View *pdX, *forGamma, *dy, *x, *variance, *mean, *gamma, *scratch;
};
void NormGradOp(const Call &call, DType type, const NormGradTensors &tensors,
                const NormShape &shape, float epsilon, bool reuse);
void NormGradBetaOp(const Call &call, DType type, const View &pdGamma, const View &pdBeta,
                    const View &forGamma, const View &dy, const View *scratch,
                    const NormShape &shape);

struct WelfordTensors {
  const View *outMean, *outVariance, *inMean, *inVariance, *src, *scratch;
};
void WelfordUpdateOp(const Call &call, DType type, const WelfordTensors &tensors,
                     const AscendC::WelfordUpdateParam &para, bool inPlace);
void WelfordFinalizeOp(const Call &call, const WelfordTensors &tensors, const View *counts,
                       const AscendC::WelfordFinalizePara &para);

template <typename T>
constexpr DType NormType() {
  static_assert(kOneOf<T, half, float>, "normalisations on dav-2201 take half or float");
  return TagOf<T>();
}

template <typename Tiling>
NormShape ShapeOfTiling(const Tiling &tiling) {
  return {static_cast<std::int64_t>(tiling.bLength) * tiling.sLength, tiling.hLength,
          tiling.originalHLength};
}

}  // namespace twin

namespace AscendC {

// Every function exists with a scratch tensor (TMP) and with the library's own scratch (OWN).
#define TWIN_PARAM_TMP const LocalTensor<std::uint8_t> &sharedTmpBuffer,
#define TWIN_PARAM_OWN
#define TWIN_VIEW_TMP &sharedTmpBuffer.view()
#define TWIN_VIEW_OWN nullptr
#define TWIN_BOTH(DEFINE) DEFINE(TMP) DEFINE(OWN)

// ---- LayerNorm of [B, S, H]: mean and variance

#define TWIN_LAYER_NORM(SCRATCH)                                                                 \
  template <typename T, bool isReuseSource = false>                                              \
  void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                 \
                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,             \
                 const LocalTensor<T> &gamma, const LocalTensor<T> &beta,                        \
                 TWIN_PARAM_##SCRATCH const T epsilon, LayerNormTiling &tiling,                  \
                 twin::Site site = twin::Here()) {                                               \
    constexpr twin::DType type = twin::NormType<T>();                                            \
    twin::NormTensors all;                                                                       \
    all.dst = &output.view(), all.mean = &outputMean.view();                                     \
    all.second = &outputVariance.view(), all.src = &inputX.view();                               \
    all.gamma = &gamma.view(), all.beta = &beta.view(), all.scratch = TWIN_VIEW_##SCRATCH;       \
    twin::NormOp({"LayerNorm", site}, {type, type, type}, all, twin::ShapeOfTiling(tiling),      \
                 {static_cast<float>(epsilon), 1.0f, false, true, true, isReuseSource, false});  \
  }
TWIN_BOTH(TWIN_LAYER_NORM)

// ---- LayerNorm of [A, R]: mean and reciprocal standard deviation, in float

#define TWIN_LAYER_NORM_RSTD(SCRATCH)                                                            \
  template <typename U, typename T, bool isReuseSource = false,                                  \
            const LayerNormConfig &config = LNCFG_NORM>                                          \
  void LayerNorm(const LocalTensor<T> &output, const LocalTensor<float> &outputMean,             \
                 const LocalTensor<float> &outputRstd, const LocalTensor<T> &inputX,             \
                 const LocalTensor<U> &gamma, const LocalTensor<U> &beta, const float epsilon,   \
                 TWIN_PARAM_##SCRATCH const LayerNormPara &para,                                 \
                 const LayerNormSeparateTiling &tiling, twin::Site site = twin::Here()) {        \
    static_assert(!config.isOnlyOutput && config.isOutputRstd,                                   \
                  "LayerNorm on dav-2201 gives the output, the mean and rstd");                  \
    static_assert(sizeof(U) >= sizeof(T), "gamma and beta are at least as precise as inputX");   \
    twin::NormTensors all;                                                                       \
    all.dst = &output.view(), all.mean = &outputMean.view(), all.second = &outputRstd.view();    \
    all.src = &inputX.view(), all.gamma = config.isNoGamma ? nullptr : &gamma.view();            \
    all.beta = config.isNoBeta ? nullptr : &beta.view(), all.scratch = TWIN_VIEW_##SCRATCH;      \
    twin::NormOp({"LayerNorm", site}, {twin::NormType<T>(), twin::NormType<U>(),                 \
                                       twin::DType::kF32},                                       \
                 all, {para.aLength, para.rLengthWithPadding, para.rLength},                     \
                 {epsilon, 1.0f, true, false, false, isReuseSource, false});                     \
  }
TWIN_BOTH(TWIN_LAYER_NORM_RSTD)

// ---- Normalize: LayerNorm with mean and variance from before

#define TWIN_NORMALIZE(SCRATCH)                                                                  \
  template <typename U, typename T, bool isReuseSource = false,                                  \
            const NormalizeConfig &config = NLCFG_NORM>                                          \
  void Normalize(const LocalTensor<T> &output, const LocalTensor<float> &outputRstd,             \
                 const LocalTensor<float> &inputMean, const LocalTensor<float> &inputVariance,   \
                 const LocalTensor<T> &inputX, const LocalTensor<U> &gamma,                      \
                 const LocalTensor<U> &beta, TWIN_PARAM_##SCRATCH const float epsilon,           \
                 const NormalizePara &para, twin::Site site = twin::Here()) {                    \
    static_assert(config.reducePattern == ReducePattern::AR && !config.isOnlyOutput,             \
                  "Normalize on dav-2201 takes the pattern AR and gives the output and rstd");   \
    static_assert(sizeof(U) >= sizeof(T), "gamma and beta are at least as precise as inputX");   \
    twin::NormTensors all;                                                                       \
    all.dst = &output.view(), all.second = &outputRstd.view(), all.src = &inputX.view();         \
    all.inMean = &inputMean.view(), all.inVariance = &inputVariance.view();                      \
    all.gamma = config.isNoGamma ? nullptr : &gamma.view();                                      \
    all.beta = config.isNoBeta ? nullptr : &beta.view(), all.scratch = TWIN_VIEW_##SCRATCH;      \
    twin::NormOp({"Normalize", site}, {twin::NormType<T>(), twin::NormType<U>(),                 \
                                       twin::DType::kF32},                                       \
                 all, {para.aLength, para.rLengthWithPadding, para.rLength},                     \
                 {epsilon, 1.0f, true, false, false, isReuseSource, false});                     \
  }
TWIN_BOTH(TWIN_NORMALIZE)

// ---- DeepNorm: LayerNorm of alpha * src + gx. What its page calls rstdLocal is the variance in the
// example that the same page prints.

#define TWIN_DEEP_NORM(SCRATCH)                                                                  \
  template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>                      \
  void DeepNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &meanLocal,                 \
                const LocalTensor<T> &rstdLocal, const LocalTensor<T> &srcLocal,                 \
                const LocalTensor<T> &gxLocal, const LocalTensor<T> &betaLocal,                  \
                const LocalTensor<T> &gammaLocal, TWIN_PARAM_##SCRATCH const T alpha,            \
                const T epsilon, DeepNormTiling &tiling, twin::Site site = twin::Here()) {       \
    constexpr twin::DType type = twin::NormType<T>();                                            \
    twin::NormTensors all;                                                                       \
    all.dst = &dstLocal.view(), all.mean = &meanLocal.view(), all.second = &rstdLocal.view();    \
    all.src = &srcLocal.view(), all.addend = &gxLocal.view(), all.gamma = &gammaLocal.view();    \
    all.beta = &betaLocal.view(), all.scratch = TWIN_VIEW_##SCRATCH;                             \
    twin::NormOp({"DeepNorm", site}, {type, type, type}, all, twin::ShapeOfTiling(tiling),       \
                 {static_cast<float>(epsilon), static_cast<float>(alpha), false, true,           \
                  isReuseSrc, isReuseSrc, isBasicBlock});                                        \
  }
TWIN_BOTH(TWIN_DEEP_NORM)

// ---- RmsNorm: divided by the root mean square

#define TWIN_RMS_NORM(SCRATCH)                                                                   \
  template <typename T, bool isBasicBlock = false>                                               \
  void RmsNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                   \
               const LocalTensor<T> &gammaLocal, TWIN_PARAM_##SCRATCH const T epsilon,           \
               const RmsNormTiling &tiling, twin::Site site = twin::Here()) {                    \
    twin::NormTensors all;                                                                       \
    all.dst = &dstLocal.view(), all.src = &srcLocal.view(), all.gamma = &gammaLocal.view();      \
    all.scratch = TWIN_VIEW_##SCRATCH;                                                           \
    twin::RmsNormOp({"RmsNorm", site}, twin::NormType<T>(), all, twin::ShapeOfTiling(tiling),    \
                    static_cast<float>(epsilon), isBasicBlock);                                  \
  }
TWIN_BOTH(TWIN_RMS_NORM)

// ---- BatchNorm and GroupNorm

#define TWIN_BATCH_NORM(SCRATCH)                                                                 \
  template <typename T, bool isReuseSource = false, bool isBasicBlock = false>                   \
  void BatchNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                 \
                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,             \
                 const LocalTensor<T> &gamm, const LocalTensor<T> &beta,                         \
                 TWIN_PARAM_##SCRATCH const T epsilon, BatchNormTiling &tiling,                  \
                 twin::Site site = twin::Here()) {                                               \
    twin::NormTensors all;                                                                       \
    all.dst = &output.view(), all.mean = &outputMean.view();                                     \
    all.second = &outputVariance.view(), all.src = &inputX.view(), all.gamma = &gamm.view();     \
    all.beta = &beta.view(), all.scratch = TWIN_VIEW_##SCRATCH;                                  \
    twin::BatchNormOp({"BatchNorm", site}, twin::NormType<T>(), all, tiling.originalBLength,     \
                      tiling.meanVarSize, static_cast<float>(epsilon), isBasicBlock);            \
  }
TWIN_BOTH(TWIN_BATCH_NORM)

#define TWIN_GROUP_NORM(SCRATCH)                                                                 \
  template <typename T, bool isReuseSource = false>                                              \
  void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                 \
                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,             \
                 const LocalTensor<T> &gamma, const LocalTensor<T> &beta,                        \
                 TWIN_PARAM_##SCRATCH const T epsilon, GroupNormTiling &tiling,                  \
                 twin::Site site = twin::Here()) {                                               \
    twin::NormTensors all;                                                                       \
    all.dst = &output.view(), all.mean = &outputMean.view();                                     \
    all.second = &outputVariance.view(), all.src = &inputX.view(), all.gamma = &gamma.view();    \
    all.beta = &beta.view(), all.scratch = TWIN_VIEW_##SCRATCH;                                  \
    twin::GroupNormOp({"GroupNorm", site}, twin::NormType<T>(), all,                             \
                      {tiling.n, tiling.c, tiling.hw, tiling.g}, static_cast<float>(epsilon),    \
                      isReuseSource);                                                            \
  }
TWIN_BOTH(TWIN_GROUP_NORM)

// ---- gradients of LayerNorm

#define TWIN_NORM_GRAD(SCRATCH)                                                                  \
  template <typename T, bool isReuseSource = false>                                              \
  void LayerNormGrad(const LocalTensor<T> &outputPdX, const LocalTensor<T> &resForGamma,         \
                     const LocalTensor<T> &inputDy, const LocalTensor<T> &inputX,                \
                     const LocalTensor<T> &inputVariance, const LocalTensor<T> &inputMean,       \
                     const LocalTensor<T> &inputGamma, TWIN_PARAM_##SCRATCH T epsilon,           \
                     LayerNormGradTiling &tiling, const LayerNormGradShapeInfo &shapeInfo = {},  \
                     twin::Site site = twin::Here()) {                                           \
    twin::NormGradOp({"LayerNormGrad", site}, twin::NormType<T>(),                               \
                     {&outputPdX.view(), &resForGamma.view(), &inputDy.view(), &inputX.view(),   \
                      &inputVariance.view(), &inputMean.view(), &inputGamma.view(),              \
                      TWIN_VIEW_##SCRATCH},                                                      \
                     twin::ShapeOfTiling(tiling), static_cast<float>(epsilon), isReuseSource);   \
    (void)shapeInfo;                                                                             \
  }                                                                                              \
  template <typename T, bool isReuseSource = false>                                              \
  void LayerNormGradBeta(const LocalTensor<T> &outputPdGamma, const LocalTensor<T> &outputPdBeta,\
                         const LocalTensor<T> &resForGamma, const LocalTensor<T> &inputDy,       \
                         TWIN_PARAM_##SCRATCH const LayerNormGradBetaTiling &tiling,             \
                         twin::Site site = twin::Here()) {                                       \
    twin::NormGradBetaOp({"LayerNormGradBeta", site}, twin::NormType<T>(), outputPdGamma.view(), \
                         outputPdBeta.view(), resForGamma.view(), inputDy.view(),                \
                         TWIN_VIEW_##SCRATCH, twin::ShapeOfTiling(tiling));                      \
  }
TWIN_BOTH(TWIN_NORM_GRAD)

// ---- Welford: mean and variance while the data pass by

#define TWIN_WELFORD(SCRATCH)                                                                    \
  template <typename T, typename U, bool isReuseSource = false,                                  \
            const WelfordUpdateConfig &config = WFUPDATE_DEFAULT_CFG>                            \
  void WelfordUpdate(const LocalTensor<U> &outputMean, const LocalTensor<U> &outputVariance,     \
                     const LocalTensor<U> &inputMean, const LocalTensor<U> &inputVariance,       \
                     const LocalTensor<T> &inputX,                                               \
                     TWIN_PARAM_##SCRATCH const WelfordUpdateParam &para,                        \
                     twin::Site site = twin::Here()) {                                           \
    static_assert(std::is_same_v<U, float>, "WelfordUpdate keeps its mean and variance in float");\
    twin::WelfordUpdateOp({"WelfordUpdate", site}, twin::NormType<T>(),                          \
                          {&outputMean.view(), &outputVariance.view(), &inputMean.view(),        \
                           &inputVariance.view(), &inputX.view(), TWIN_VIEW_##SCRATCH},          \
                          para, config.isInplace);                                               \
  }                                                                                              \
  template <bool isReuseSource = false>                                                          \
  void WelfordFinalize(const LocalTensor<float> &outputMean,                                     \
                       const LocalTensor<float> &outputVariance,                                 \
                       const LocalTensor<float> &inputMean,                                      \
                       const LocalTensor<float> &inputVariance,                                  \
                       TWIN_PARAM_##SCRATCH const WelfordFinalizePara &para,                     \
                       twin::Site site = twin::Here()) {                                         \
    twin::WelfordFinalizeOp({"WelfordFinalize", site},                                           \
                            {&outputMean.view(), &outputVariance.view(), &inputMean.view(),      \
                             &inputVariance.view(), nullptr, TWIN_VIEW_##SCRATCH},               \
                            nullptr, para);                                                      \
  }                                                                                              \
  template <bool isReuseSource = false>                                                          \
  void WelfordFinalize(const LocalTensor<float> &outputMean,                                     \
                       const LocalTensor<float> &outputVariance,                                 \
                       const LocalTensor<float> &inputMean,                                      \
                       const LocalTensor<float> &inputVariance,                                  \
                       const LocalTensor<std::int32_t> &counts,                                  \
                       TWIN_PARAM_##SCRATCH const WelfordFinalizePara &para,                     \
                       twin::Site site = twin::Here()) {                                         \
    twin::WelfordFinalizeOp({"WelfordFinalize", site},                                           \
                            {&outputMean.view(), &outputVariance.view(), &inputMean.view(),      \
                             &inputVariance.view(), nullptr, TWIN_VIEW_##SCRATCH},               \
                            &counts.view(), para);                                               \
  }
TWIN_BOTH(TWIN_WELFORD)

#undef TWIN_LAYER_NORM
#undef TWIN_LAYER_NORM_RSTD
#undef TWIN_NORMALIZE
#undef TWIN_DEEP_NORM
#undef TWIN_RMS_NORM
#undef TWIN_BATCH_NORM
#undef TWIN_GROUP_NORM
#undef TWIN_NORM_GRAD
#undef TWIN_WELFORD
#undef TWIN_BOTH
#undef TWIN_PARAM_TMP
#undef TWIN_PARAM_OWN
#undef TWIN_VIEW_TMP
#undef TWIN_VIEW_OWN

}  // namespace AscendC
