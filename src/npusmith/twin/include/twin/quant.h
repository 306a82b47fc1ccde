// Quantisation of the library: AscendQuant, AscendDequant, AscendAntiQuant.
#pragma once

#include "twin/cast.h"

namespace AscendC {

struct AscendQuantConfig {
  std::uint32_t calcCount = 0;
  std::uint32_t offsetCount = 0;
  std::uint32_t scaleCount = 0;
  std::uint32_t workLocalSize = 0;
};
constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

enum class DeQuantMode { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

struct DequantParams {
  std::uint32_t m = 0;         // rows of the source
  std::uint32_t n = 0;         // columns, a multiple of 32 bytes
  std::uint32_t calCount = 0;  // columns that count
};

struct AntiQuantShapeInfo {
  std::uint32_t offsetHeight{0};
  std::uint32_t offsetWidth{0};
  std::uint32_t scaleHeight{0};
  std::uint32_t scaleWidth{0};
};

}  // namespace AscendC

namespace twin {

// A factor or an addend: one number, or a tensor.
struct Knob {
  const View *tensor;
  DType type;
  const void *scalar;
  std::int64_t rows = 1, columns = 0;  // of the tensor; columns 0: as many as it has
};

void QuantOp(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             const Knob &scale, const Knob &offset, std::int64_t count);

struct DequantJob {
  std::int64_t rows, columns, used;
  bool splitRow;  // a single row may stand for several
};
void DequantOp(const Call &call, DType dstType, const View &dst, const View &src,
               const View *scratch, const Knob &scale, const DequantJob &job);

struct AntiQuantJob {
  bool packed;  // int4b_t: two elements a byte, the lower half first
  bool transposed;
  std::int64_t k;
};
void AntiQuantOp(const Call &call, DType dstType, const View &dst, const View &src,
                 const View *scratch, const Knob &scale, const Knob *offset,
                 const AntiQuantJob &job);

template <typename T>
constexpr void CheckQuantType() {
  static_assert(kOneOf<T, half, float>, "AscendQuant on dav-2201 takes half or float");
}
template <typename D, typename S, bool tensor>
constexpr void CheckDequantTypes() {
  constexpr bool kWide = kOneOf<D, float, bfloat16_t> && kOneOf<S, float, bfloat16_t>;
  constexpr bool kHalf = tensor && kOneOf<D, half> && kOneOf<S, std::uint64_t>;
  static_assert(kWide || kHalf,
                "AscendDequant on dav-2201 gives half from a uint64_t scale tensor, or float or "
                "bfloat16_t from a float or bfloat16_t scale");
}
template <typename In, typename Out>
constexpr void CheckAntiQuantTypes() {
  static_assert(kOneOf<In, std::int8_t, int4b_t> && kOneOf<Out, half, bfloat16_t>,
                "AscendAntiQuant on dav-2201 takes int8_t or int4b_t and gives half or bfloat16_t");
}

template <typename T>
Knob KnobOf(const AscendC::LocalTensor<T> &tensor, std::int64_t count = 0) {
  return {&tensor.view(), TagOf<T>(), nullptr, 1, count};
}
template <typename T>
Knob NumberOf(const T &number) {
  return {nullptr, TagOf<T>(), &number};
}

// What both arguments of one call share with the constants of its config.
inline std::int64_t CountOf(std::uint32_t fixed, std::int64_t given) {
  return fixed != 0 ? fixed : given;
}

}  // namespace twin

namespace AscendC {

// ---- AscendQuant: int8_t(round(src * scale + offset))

template <typename T, bool isReuseSource = false,
          const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src,
                 const LocalTensor<std::uint8_t> &tmp, const float scale, const float offset,
                 const std::uint32_t calCount, twin::Site site = twin::Here()) {
  twin::CheckQuantType<T>();
  twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                twin::NumberOf(scale), twin::NumberOf(offset),
                twin::CountOf(config.calcCount, calCount));
}
template <typename T, bool isReuseSource = false,
          const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src,
                 const LocalTensor<std::uint8_t> &tmp, const float scale, const float offset,
                 twin::Site site = twin::Here()) {
  AscendQuant<T, isReuseSource, config>(dst, src, tmp, scale, offset, src.GetSize(), site);
}
template <typename T, bool isReuseSource = false,
          const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src,
                 const float scale, const float offset, const std::uint32_t calCount,
                 twin::Site site = twin::Here()) {
  twin::CheckQuantType<T>();
  twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                twin::NumberOf(scale), twin::NumberOf(offset),
                twin::CountOf(config.calcCount, calCount));
}
template <typename T, bool isReuseSource = false,
          const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src,
                 const float scale, const float offset, twin::Site site = twin::Here()) {
  AscendQuant<T, isReuseSource, config>(dst, src, scale, offset, src.GetSize(), site);
}

// A scale (and an offset) for each column.
#define TWIN_QUANT_CHANNELS(parameter, pass)                                                      \
  template <typename T, bool isReuseSource = false,                                               \
            const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>                           \
  void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src parameter,      \
                   const LocalTensor<T> &scale, const T offset, const std::uint32_t scaleCount,   \
                   const std::uint32_t calCount, twin::Site site = twin::Here()) {                \
    twin::CheckQuantType<T>();                                                                    \
    twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), pass,          \
                  twin::KnobOf(scale, twin::CountOf(config.scaleCount, scaleCount)),              \
                  twin::NumberOf(offset), twin::CountOf(config.calcCount, calCount));             \
  }                                                                                               \
  template <typename T, bool isReuseSource = false,                                               \
            const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>                           \
  void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src parameter,      \
                   const LocalTensor<T> &scale, const LocalTensor<T> &offset,                     \
                   const std::uint32_t scaleCount, const std::uint32_t offsetCount,               \
                   const std::uint32_t calCount, twin::Site site = twin::Here()) {                \
    twin::CheckQuantType<T>();                                                                    \
    twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), pass,          \
                  twin::KnobOf(scale, twin::CountOf(config.scaleCount, scaleCount)),              \
                  twin::KnobOf(offset, twin::CountOf(config.offsetCount, offsetCount)),           \
                  twin::CountOf(config.calcCount, calCount));                                     \
  }                                                                                               \
  template <typename T, bool isReuseSource = false,                                               \
            const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>                           \
  void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src parameter,      \
                   const LocalTensor<T> &scale, const T offset, twin::Site site = twin::Here()) { \
    twin::CheckQuantType<T>();                                                                    \
    twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), pass,          \
                  twin::KnobOf(scale, scale.GetSize()), twin::NumberOf(offset), src.GetSize());   \
  }                                                                                               \
  template <typename T, bool isReuseSource = false,                                               \
            const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>                           \
  void AscendQuant(const LocalTensor<std::int8_t> &dst, const LocalTensor<T> &src parameter,      \
                   const LocalTensor<T> &scale, const LocalTensor<T> &offset,                     \
                   twin::Site site = twin::Here()) {                                              \
    twin::CheckQuantType<T>();                                                                    \
    twin::QuantOp({"AscendQuant", site}, twin::TagOf<T>(), dst.view(), src.view(), pass,          \
                  twin::KnobOf(scale, scale.GetSize()), twin::KnobOf(offset, offset.GetSize()),   \
                  src.GetSize());                                                                 \
  }
#define TWIN_QUANT_TMP , const LocalTensor<std::uint8_t> &tmp
#define TWIN_QUANT_NO_TMP
TWIN_QUANT_CHANNELS(TWIN_QUANT_TMP, &tmp.view())
TWIN_QUANT_CHANNELS(TWIN_QUANT_NO_TMP, nullptr)
#undef TWIN_QUANT_CHANNELS

// ---- AscendDequant: dstT(float(src) * float(scale))

#define TWIN_DEQUANT(parameter, pass)                                                            \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<std::int32_t> &src,         \
                     const LocalTensor<scaleT> &scale parameter, DequantParams how,              \
                     twin::Site site = twin::Here()) {                                           \
    twin::CheckDequantTypes<dstT, scaleT, true>();                                               \
    twin::DequantOp({"AscendDequant", site}, twin::TagOf<dstT>(), dst.view(), src.view(), pass,  \
                    twin::KnobOf(scale), {how.m, how.n, how.calCount,                            \
                                          mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW});        \
  }                                                                                              \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<std::int32_t> &src,         \
                     const scaleT scale parameter, DequantParams how,                            \
                     twin::Site site = twin::Here()) {                                           \
    twin::CheckDequantTypes<dstT, scaleT, false>();                                              \
    twin::DequantOp({"AscendDequant", site}, twin::TagOf<dstT>(), dst.view(), src.view(), pass,  \
                    twin::NumberOf(scale), {how.m, how.n, how.calCount,                          \
                                            mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW});      \
  }                                                                                              \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<std::int32_t> &src,         \
                     const LocalTensor<scaleT> &scale parameter, const std::uint32_t calCount,   \
                     twin::Site site = twin::Here()) {                                           \
    twin::CheckDequantTypes<dstT, scaleT, true>();                                               \
    const std::uint32_t used = scale.GetSize() < calCount ? scale.GetSize() : calCount;          \
    twin::DequantOp({"AscendDequant", site}, twin::TagOf<dstT>(), dst.view(), src.view(), pass,  \
                    twin::KnobOf(scale), {1, calCount, used,                                     \
                                          mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW});        \
  }                                                                                              \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<std::int32_t> &src,         \
                     const LocalTensor<scaleT> &scale parameter,                                 \
                     twin::Site site = twin::Here()) {                                           \
    twin::CheckDequantTypes<dstT, scaleT, true>();                                               \
    const std::uint32_t count = src.GetSize();                                                   \
    const std::uint32_t used = scale.GetSize() < count ? scale.GetSize() : count;                \
    twin::DequantOp({"AscendDequant", site}, twin::TagOf<dstT>(), dst.view(), src.view(), pass,  \
                    twin::KnobOf(scale), {1, count, used,                                        \
                                          mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW});        \
  }
TWIN_DEQUANT(TWIN_QUANT_TMP, &tmp.view())
TWIN_DEQUANT(TWIN_QUANT_NO_TMP, nullptr)
#undef TWIN_DEQUANT

}  // namespace AscendC

namespace twin {

// Shape from the call, else from the tensor's ShapeInfo (doc: AscendAntiQuant).
template <typename T>
Knob PlateOf(const AscendC::LocalTensor<T> &tensor, std::uint32_t height, std::uint32_t width) {
  Knob knob = KnobOf(tensor);
  const AscendC::ShapeInfo shape = tensor.GetShapeInfo();
  const bool told = height != 0 && width != 0;
  knob.rows = told ? height : shape.shape[0];
  knob.columns = told ? width : shape.shape[1];
  return knob;
}

}  // namespace twin

namespace AscendC {

// ---- AscendAntiQuant: scale * (src + offset)

#define TWIN_ANTIQUANT(parameter, pass)                                                          \
  template <typename InputDataType, typename OutputDataType, bool isTranspose>                   \
  void AscendAntiQuant(const LocalTensor<OutputDataType> &dst,                                   \
                       const LocalTensor<InputDataType> &src,                                    \
                       const LocalTensor<OutputDataType> &offset,                                \
                       const LocalTensor<OutputDataType> &scale parameter,                       \
                       const std::uint32_t k, const AntiQuantShapeInfo &shape = {},              \
                       twin::Site site = twin::Here()) {                                         \
    twin::CheckAntiQuantTypes<InputDataType, OutputDataType>();                                  \
    const twin::Knob add = twin::PlateOf(offset, shape.offsetHeight, shape.offsetWidth);         \
    twin::AntiQuantOp({"AscendAntiQuant", site}, twin::TagOf<OutputDataType>(), dst.view(),      \
                      src.view(), pass,                                                          \
                      twin::PlateOf(scale, shape.scaleHeight, shape.scaleWidth), &add,           \
                      {twin::kOneOf<InputDataType, int4b_t>, isTranspose, k});                                                         \
  }                                                                                              \
  template <typename InputDataType, typename OutputDataType, bool isTranspose>                   \
  void AscendAntiQuant(const LocalTensor<OutputDataType> &dst,                                   \
                       const LocalTensor<InputDataType> &src, const OutputDataType offset,       \
                       const OutputDataType scale parameter, const std::uint32_t k,              \
                       const AntiQuantShapeInfo & = {}, twin::Site site = twin::Here()) {        \
    twin::CheckAntiQuantTypes<InputDataType, OutputDataType>();                                  \
    const twin::Knob add = twin::NumberOf(offset);                                               \
    twin::AntiQuantOp({"AscendAntiQuant", site}, twin::TagOf<OutputDataType>(), dst.view(),      \
                      src.view(), pass, twin::NumberOf(scale), &add, {twin::kOneOf<InputDataType, int4b_t>, isTranspose, k});          \
  }
TWIN_ANTIQUANT(TWIN_QUANT_TMP, &tmp.view())
TWIN_ANTIQUANT(TWIN_QUANT_NO_TMP, nullptr)
#undef TWIN_ANTIQUANT
#undef TWIN_QUANT_TMP
#undef TWIN_QUANT_NO_TMP

template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                     const LocalTensor<OutputDataType> &scale,
                     const LocalTensor<std::uint8_t> &tmp, const std::uint32_t k,
                     const AntiQuantShapeInfo &shape = {}, twin::Site site = twin::Here()) {
  twin::CheckAntiQuantTypes<InputDataType, OutputDataType>();
  twin::AntiQuantOp({"AscendAntiQuant", site}, twin::TagOf<OutputDataType>(), dst.view(),
                    src.view(), &tmp.view(),
                    twin::PlateOf(scale, shape.scaleHeight, shape.scaleWidth), nullptr,
                    {twin::kOneOf<InputDataType, int4b_t>, isTranspose, k});
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                     const OutputDataType scale, const LocalTensor<std::uint8_t> &tmp,
                     const std::uint32_t k, const AntiQuantShapeInfo & = {},
                     twin::Site site = twin::Here()) {
  twin::CheckAntiQuantTypes<InputDataType, OutputDataType>();
  twin::AntiQuantOp({"AscendAntiQuant", site}, twin::TagOf<OutputDataType>(), dst.view(),
                    src.view(), &tmp.view(), twin::NumberOf(scale), nullptr, {twin::kOneOf<InputDataType, int4b_t>, isTranspose, k});
}

}  // namespace AscendC
