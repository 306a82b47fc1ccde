// Activation functions: Gelu and its faster forms, gated linear units, Silu, Swish.
// Sigmoid lives with the functions of one source, in library.h.
#pragma once

#include "twin/tensor.h"

namespace twin {

enum class Activation : std::uint8_t {
  kGelu, kFasterGelu, kFasterGeluV2, kSwiGlu, kGeGlu, kReGlu, kSilu, kSwish
};

struct ActivationHow {
  Activation name;
  DType type;
  bool precise;   // half data: floats inside, rounded once
  float scalar;   // beta of Swish
};
// `b`: the gate of a gated unit, or null. `scratch` null: from what is left of UB.
void ActivationOp(const Call &call, const ActivationHow &how, const View &dst, const View &a,
                  const View *b, const View *scratch, std::int64_t count);

template <typename T>
constexpr DType ActivationType() {
  static_assert(kOneOf<T, half, float>, "this activation on dav-2201 takes half or float");
  return TagOf<T>();
}

}  // namespace twin

namespace AscendC {

// ---- Gelu by its tanh form, x * sigmoid(1.702 x), and a piecewise square

#define TWIN_GELU(name)                                                                          \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  void name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                      \
            const LocalTensor<std::uint8_t> &sharedTmpBuffer, const std::uint32_t dataSize,      \
            twin::Site site = twin::Here()) {                                                    \
    twin::ActivationOp(                                                                          \
        {#name, site},                                                                           \
        {twin::Activation::k##name, twin::ActivationType<T>(), highPrecision, 0.0f},             \
        dstLocal.view(), srcLocal.view(), nullptr, &sharedTmpBuffer.view(), dataSize);           \
  }                                                                                              \
  template <typename T, bool highPrecision = false, bool highPerformance = false>                \
  void name(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,                      \
            const std::uint32_t dataSize, twin::Site site = twin::Here()) {                      \
    twin::ActivationOp(                                                                          \
        {#name, site},                                                                           \
        {twin::Activation::k##name, twin::ActivationType<T>(), highPrecision, 0.0f},             \
        dstLocal.view(), srcLocal.view(), nullptr, nullptr, dataSize);                           \
  }
TWIN_GELU(Gelu)
TWIN_GELU(FasterGelu)
TWIN_GELU(FasterGeluV2)
#undef TWIN_GELU

// ---- gated linear units: srcTensor0 times the activation of srcTensor1

template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
            const LocalTensor<T> &srcTensor1, const float &scalarValue,
            const LocalTensor<std::uint8_t> &sharedTmpBuffer, const std::uint32_t calCount,
            twin::Site site = twin::Here()) {
  twin::ActivationOp({"SwiGLU", site},
                     {twin::Activation::kSwiGlu, twin::ActivationType<T>(), true, scalarValue},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(),
                     &sharedTmpBuffer.view(), calCount);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
            const LocalTensor<T> &srcTensor1, const float &scalarValue,
            const LocalTensor<std::uint8_t> &sharedTmpBuffer, twin::Site site = twin::Here()) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, sharedTmpBuffer, srcTensor0.GetSize(),
            site);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
            const LocalTensor<T> &srcTensor1, const float &scalarValue,
            const std::uint32_t calCount, twin::Site site = twin::Here()) {
  twin::ActivationOp({"SwiGLU", site},
                     {twin::Activation::kSwiGlu, twin::ActivationType<T>(), true, scalarValue},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(), nullptr, calCount);
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
            const LocalTensor<T> &srcTensor1, const float &scalarValue,
            twin::Site site = twin::Here()) {
  SwiGLU<T>(dstTensor, srcTensor0, srcTensor1, scalarValue, srcTensor0.GetSize(), site);
}

template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, const LocalTensor<std::uint8_t> &sharedTmpBuffer,
           std::uint32_t calCount, twin::Site site = twin::Here()) {
  twin::ActivationOp({"GeGLU", site},
                     {twin::Activation::kGeGlu, twin::ActivationType<T>(), true, 0.0f},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(),
                     &sharedTmpBuffer.view(), calCount);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, const LocalTensor<std::uint8_t> &sharedTmpBuffer,
           twin::Site site = twin::Here()) {
  GeGLU<T>(dstTensor, srcTensor0, srcTensor1, sharedTmpBuffer, srcTensor0.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, std::uint32_t calCount,
           twin::Site site = twin::Here()) {
  twin::ActivationOp({"GeGLU", site},
                     {twin::Activation::kGeGlu, twin::ActivationType<T>(), true, 0.0f},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(), nullptr, calCount);
}
template <typename T, bool isReuseSource = false>
void GeGLU(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, twin::Site site = twin::Here()) {
  GeGLU<T>(dstTensor, srcTensor0, srcTensor1, srcTensor0.GetSize(), site);
}

template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, const LocalTensor<std::uint8_t> &sharedTmpBuffer,
           const std::uint32_t calCount, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, bfloat16_t, float>,
                "ReGlu on dav-2201 takes half, bfloat16_t or float");
  twin::ActivationOp({"ReGlu", site}, {twin::Activation::kReGlu, twin::TagOf<T>(), true, 0.0f},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(),
                     &sharedTmpBuffer.view(), calCount);
}
template <typename T, bool isReuseSource = false>
void ReGlu(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor0,
           const LocalTensor<T> &srcTensor1, const std::uint32_t calCount,
           twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, bfloat16_t, float>,
                "ReGlu on dav-2201 takes half, bfloat16_t or float");
  twin::ActivationOp({"ReGlu", site}, {twin::Activation::kReGlu, twin::TagOf<T>(), true, 0.0f},
                     dstTensor.view(), srcTensor0.view(), &srcTensor1.view(), nullptr, calCount);
}

// ---- x / (1 + exp(-beta x)), beta 1 for Silu; neither takes scratch

template <typename T, bool isReuseSource = false>
void Silu(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, std::uint32_t dataSize,
          twin::Site site = twin::Here()) {
  twin::ActivationOp({"Silu", site},
                     {twin::Activation::kSilu, twin::ActivationType<T>(), true, 1.0f},
                     dstLocal.view(), srcLocal.view(), nullptr, nullptr, dataSize);
}
template <typename T, bool isReuseSource = false>
void Swish(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, std::uint32_t dataSize,
           const T scalarValue, twin::Site site = twin::Here()) {
  twin::ActivationOp({"Swish", site},
                     {twin::Activation::kSwish, twin::ActivationType<T>(), true,
                      static_cast<float>(scalarValue)},
                     dstLocal.view(), srcLocal.view(), nullptr, nullptr, dataSize);
}

}  // namespace AscendC
