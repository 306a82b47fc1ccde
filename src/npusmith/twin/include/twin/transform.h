// Changes of layout: Pad and UnPad, transposes of matrices and images, TransData.
#pragma once

#include <tuple>

#include "twin/copy.h"
#include "twin/layouts.h"
#include "twin/scratch.h"
#include "twin/shuffle.h"

namespace AscendC {

enum class TransposeType : std::uint8_t {
  TRANSPOSE_TYPE_NONE,
  TRANSPOSE_NZ2ND_0213,
  TRANSPOSE_NZ2NZ_0213,
  TRANSPOSE_NZ2NZ_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITHOUT_N,
  TRANSPOSE_NZ2NZ_012_WITHOUT_N,
  TRANSPOSE_ND2ND_ONLY,
  TRANSPOSE_ND_UB_GM,
  TRANSPOSE_GRAD_ND_UB_GM,
  TRANSPOSE_ND2ND_B16,
  TRANSPOSE_NCHW2NHWC,
  TRANSPOSE_NHWC2NCHW
};

struct TransposeParamsExt {
  std::uint16_t nSize = 0;
  std::uint16_t cSize = 0;
  std::uint16_t hSize = 0;
  std::uint16_t wSize = 0;
  TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;

  TransposeParamsExt() = default;
  TransposeParamsExt(twin::Word n, twin::Word c, twin::Word h, twin::Word w, TransposeType type,
                     twin::Site site = twin::Here())
      : nSize(Cut(n, "nSize", site)),
        cSize(Cut(c, "cSize", site)),
        hSize(Cut(h, "hSize", site)),
        wSize(Cut(w, "wSize", site)),
        transposeType(type) {}
};

struct PadParams {
  std::uint16_t leftPad = 0;
  std::uint16_t rightPad = 0;
  std::int32_t padValue = 0;
};
struct UnPadParams {
  std::uint16_t leftPad = 0;
  std::uint16_t rightPad = 0;
};

}  // namespace AscendC

using AscendC::tiling::ConfusionTransposeTiling;
using AscendC::tiling::PadTiling;
using AscendC::tiling::UnPadTiling;

namespace twin {

struct PadJob {
  std::int64_t height, width, original;  // of the source; `original` columns of it count
  std::int64_t left, right;
};
void PadRows(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             const PadJob &job, const void *value);
void UnPadRows(const Call &call, DType type, const View &dst, const View &src,
               const View *scratch, std::int64_t height, std::int64_t width, std::int64_t right);

struct ImageJob {
  std::int64_t n, c, h, w;
};
void SwapChannels(const Call &call, DType type, const View &dst, const View &src,
                  const View &scratch, const ImageJob &job, bool toNhwc);

// Scenes 1 to 7 of the library's Transpose.
struct SceneJob {
  int scene, host;                  // as the kernel asks, and as the host planned
  std::int64_t hostSize;            // bytes of an element, as the host planned
  std::int64_t b, n, s, h;          // h: columns of one of the n parts; scene 7: b rows, n columns
};
void TransposeScene(const Call &call, DType type, const View &dst, const View &src,
                    const View *scratch, const SceneJob &job);

struct VolumeJob {
  std::int64_t n, c, d, h, w;
  bool fractal;  // FRACTAL_Z_3D, else NDC1HWC0
  bool back;     // to NCDHW
};
void TransVolume(const Call &call, const View &dst, const View &src, const View *scratch,
                 const VolumeJob &job);

template <typename T>
inline constexpr bool kPadType =
    kOneOf<T, std::int16_t, std::uint16_t, half, std::int32_t, std::uint32_t, float>;

inline SceneJob SceneOf(AscendC::TransposeType type, const ConfusionTransposeTiling &tiling) {
  if (type == AscendC::TransposeType::TRANSPOSE_ND2ND_ONLY) {
    return {static_cast<int>(type), static_cast<int>(type), tiling.param0 == 0 ? 0 : 32 / tiling.param0,
            tiling.param1,          tiling.param2,          0,
            0};
  }
  return {static_cast<int>(type), static_cast<int>(tiling.param12), tiling.param13,
          tiling.param14,         tiling.param15,                   tiling.param16,
          tiling.param17};
}

}  // namespace twin

namespace AscendC {

// ---- Pad and UnPad

template <typename T>
void Pad(const LocalTensor<T> &dst, const LocalTensor<T> &src, const PadParams &how,
         const LocalTensor<std::uint8_t> &tmp, const PadTiling &tiling,
         twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>, "Pad on dav-2201 takes 16- and 32-bit integers, half or float");
  const T value = static_cast<T>(how.padValue);
  twin::PadRows({"Pad", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                {tiling.srcHeight, tiling.srcWidth, tiling.srcOriWidth, how.leftPad, how.rightPad},
                &value);
}
template <typename T>
void Pad(const LocalTensor<T> &dst, const LocalTensor<T> &src, const PadParams &how,
         const PadTiling &tiling, twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>, "Pad on dav-2201 takes 16- and 32-bit integers, half or float");
  const T value = static_cast<T>(how.padValue);
  twin::PadRows({"Pad", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                {tiling.srcHeight, tiling.srcWidth, tiling.srcOriWidth, how.leftPad, how.rightPad},
                &value);
}
template <typename T>
void UnPad(const LocalTensor<T> &dst, const LocalTensor<T> &src, const UnPadParams &how,
           const LocalTensor<std::uint8_t> &tmp, const UnPadTiling &tiling,
           twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>,
                "UnPad on dav-2201 takes 16- and 32-bit integers, half or float");
  twin::UnPadRows({"UnPad", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                  tiling.srcHeight, tiling.srcWidth, how.rightPad);
}
template <typename T>
void UnPad(const LocalTensor<T> &dst, const LocalTensor<T> &src, const UnPadParams &how,
           const UnPadTiling &tiling, twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>,
                "UnPad on dav-2201 takes 16- and 32-bit integers, half or float");
  twin::UnPadRows({"UnPad", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                  tiling.srcHeight, tiling.srcWidth, how.rightPad);
}

// ---- Transpose

// 16 x 16 elements of 16 bits, or images between NCHW and NHWC.
template <typename T>
void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const LocalTensor<std::uint8_t> &tmp, const TransposeParamsExt &how,
               twin::Site site = twin::Here()) {
  static_assert(sizeof(T) <= 4, "Transpose on dav-2201 takes 8-, 16- and 32-bit types");
  const twin::Call call{"Transpose", site};
  if (how.transposeType == TransposeType::TRANSPOSE_TYPE_NONE) return;
  if (how.transposeType == TransposeType::TRANSPOSE_ND2ND_B16) {
    if constexpr (sizeof(T) == 2) twin::TransposeOp(call, dst.view(), src.view());
    else twin::Fit(call, "bytes of an element of TRANSPOSE_ND2ND_B16", sizeof(T) + 0x10000, 2);
    return;
  }
  const auto kind = static_cast<int>(how.transposeType) -
                    static_cast<int>(TransposeType::TRANSPOSE_NCHW2NHWC);
  twin::SwapChannels(call, twin::TagOf<T>(), dst.view(), src.view(), tmp.view(),
                     {how.nSize, how.cSize, how.hSize, how.wSize},
                     twin::Fit(call, "transposeType - TRANSPOSE_NCHW2NHWC", kind, 1) == 0);
}
// The library's: scenes that the host planned.
template <typename T>
void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const LocalTensor<std::uint8_t> &tmp, TransposeType type,
               const ConfusionTransposeTiling &tiling, twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>,
                "Transpose on dav-2201 takes 16- and 32-bit integers, half or float");
  twin::TransposeScene({"Transpose", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                       twin::SceneOf(type, tiling));
}
template <typename T>
void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType type,
               const ConfusionTransposeTiling &tiling, twin::Site site = twin::Here()) {
  static_assert(twin::kPadType<T>,
                "Transpose on dav-2201 takes 16- and 32-bit integers, half or float");
  twin::TransposeScene({"Transpose", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                       twin::SceneOf(type, tiling));
}
template <typename T>
void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                        const LocalTensor<std::uint8_t> &tmp, TransposeType type,
                        const ConfusionTransposeTiling &tiling, twin::Site site = twin::Here()) {
  Transpose(dst, src, tmp, type, tiling, site);
}
template <typename T>
void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType type,
                        const ConfusionTransposeTiling &tiling, twin::Site site = twin::Here()) {
  Transpose(dst, src, type, tiling, site);
}

// ---- TransData

// Sizes of a tensor by axis.
template <std::size_t dims>
struct Axes {
  std::int64_t size[dims == 0 ? 1 : dims] = {};
  static constexpr std::size_t kDims = dims;
};
template <typename... Sizes>
constexpr Axes<sizeof...(Sizes)> MakeShape(const Sizes &...sizes) {
  return {{static_cast<std::int64_t>(sizes)...}};
}
template <typename... Sizes>
constexpr Axes<sizeof...(Sizes)> MakeStride(const Sizes &...sizes) {
  return {{static_cast<std::int64_t>(sizes)...}};
}
// Where an element stands, an index for each axis.
template <typename... Ts>
using Coord = std::tuple<Ts...>;
template <typename... Ts>
constexpr Coord<Ts...> MakeCoord(const Ts &...indices) {
  return Coord<Ts...>(indices...);
}
template <std::size_t index, typename... Ts>
constexpr const auto &Get(const std::tuple<Ts...> &values) {
  return std::get<index>(values);
}
template <typename... Ts, typename ShapeType, typename StrideType>
constexpr std::int64_t Crd2Idx(const Coord<Ts...> &coord, const ShapeType &,
                               const StrideType &stride) {
  static_assert(sizeof...(Ts) == StrideType::kDims, "Crd2Idx takes an index for each axis");
  std::size_t axis = 0;
  std::int64_t index = 0;
  std::apply([&](const auto &...at) { ((index += at * stride.size[axis++]), ...); }, coord);
  return index;
}
template <typename ShapeType, typename StrideType>
struct Layout {
  ShapeType shape;
  StrideType stride;

  constexpr Layout() = default;
  constexpr Layout(const ShapeType &sizes, const StrideType &strides)
      : shape(sizes), stride(strides) {}
  template <typename... Ts>
  constexpr std::int64_t operator()(const Coord<Ts...> &coord) const {
    return Crd2Idx(coord, shape, stride);
  }
};
template <typename... Ts, typename ShapeType, typename StrideType>
constexpr std::int64_t Crd2Idx(const Coord<Ts...> &coord,
                               const Layout<ShapeType, StrideType> &layout) {
  return layout(coord);
}
template <typename ShapeType, typename StrideType>
constexpr Layout<ShapeType, StrideType> MakeLayout(const ShapeType &shape,
                                                   const StrideType &stride) {
  return {shape, stride};
}
template <typename T, typename U>
struct TransDataParams {
  T srcLayout;
  U dstLayout;
};

}  // namespace AscendC

namespace twin {

// The five sizes that both layouts of a TransData share.
template <const AscendC::TransDataConfig &config, typename T, typename U, typename S>
VolumeJob VolumeOf(const AscendC::TransDataParams<U, S> &params) {
  using AscendC::DataFormat;
  constexpr DataFormat kFrom = config.srcFormat, kTo = config.dstFormat;
  constexpr bool kBack = kTo == DataFormat::NCDHW;
  constexpr DataFormat kOther = kBack ? kFrom : kTo;
  static_assert(kOneOf<T, std::int16_t, std::uint16_t, half, bfloat16_t>,
                "TransData on dav-2201 takes int16_t, uint16_t, half or bfloat16_t");
  static_assert((kBack || kFrom == DataFormat::NCDHW) &&
                    (kOther == DataFormat::NDC1HWC0 || kOther == DataFormat::FRACTAL_Z_3D),
                "TransData goes between NCDHW and NDC1HWC0 or FRACTAL_Z_3D");
  const std::int64_t *flat = nullptr;
  if constexpr (kBack) {
    static_assert(decltype(S::shape)::kDims == 5, "an NCDHW layout has five axes");
    flat = params.dstLayout.shape.size;
  } else {
    static_assert(decltype(U::shape)::kDims == 5, "an NCDHW layout has five axes");
    flat = params.srcLayout.shape.size;
  }
  return {flat[0], flat[1], flat[2], flat[3], flat[4], kOther == DataFormat::FRACTAL_Z_3D, kBack};
}

}  // namespace twin

namespace AscendC {

template <const TransDataConfig &config, typename T, typename U, typename S>
void TransData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const LocalTensor<std::uint8_t> &tmp, const TransDataParams<U, S> &params,
               twin::Site site = twin::Here()) {
  twin::TransVolume({"TransData", site}, dst.view(), src.view(), &tmp.view(),
                    twin::VolumeOf<config, T>(params));
}
template <const TransDataConfig &config, typename T, typename U, typename S>
void TransData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const TransDataParams<U, S> &params, twin::Site site = twin::Here()) {
  twin::TransVolume({"TransData", site}, dst.view(), src.view(), nullptr,
                    twin::VolumeOf<config, T>(params));
}

}  // namespace AscendC
