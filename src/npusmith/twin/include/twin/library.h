// High-level functions. Each may be told its scratch tensor, its count, both or neither.
#pragma once

#include "twin/cast.h"
#include "twin/compare.h"
#include "twin/reduce.h"
#include "twin/shuffle.h"

namespace twin {

template <typename T>
constexpr void CheckPowerType() {
  static_assert(kOneOf<T, half, float, std::int32_t>,
                "Power on dav-2201 takes half, float or int32_t");
}

template <typename T>
constexpr void CheckLibraryType() {
  static_assert(kOneOf<T, half, float>, "this library function on dav-2201 takes half or float");
}

template <typename T, typename Acc>
constexpr void CheckMeanTypes() {
  static_assert(kOneOf<T, half, float> && kOneOf<Acc, T, float>,
                "Mean on dav-2201 takes half or float, and adds in that type or in float");
}

// `scratch` null: from what is left of UB.
template <typename T>
void Library(const Call &call, Op op, const AscendC::LocalTensor<T> &dst,
             const AscendC::LocalTensor<T> &src, const View *scratch, std::int64_t count) {
  CheckLibraryType<T>();
  LibraryOp(call, op, TagOf<T>(), dst.view(), src.view(), nullptr, scratch, nullptr, count);
}

}  // namespace twin

namespace AscendC {

#define TWIN_LIBRARY(name, op)                                                                   \
  template <typename T, bool isReuseSource = false>                                              \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::uint32_t count,           \
            twin::Site site = twin::Here()) {                                                    \
    twin::Library<T>({#name, site}, op, dst, src, nullptr, count);                               \
  }                                                                                              \
  template <typename T, bool isReuseSource = false>                                              \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
            twin::Site site = twin::Here()) {                                                    \
    twin::Library<T>({#name, site}, op, dst, src, nullptr, src.GetSize());                       \
  }                                                                                              \
  template <typename T, bool isReuseSource = false>                                              \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
            const LocalTensor<std::uint8_t> &tmp, std::uint32_t count,                           \
            twin::Site site = twin::Here()) {                                                    \
    twin::Library<T>({#name, site}, op, dst, src, &tmp.view(), count);                           \
  }                                                                                              \
  template <typename T, bool isReuseSource = false>                                              \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
            const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {              \
    twin::Library<T>({#name, site}, op, dst, src, &tmp.view(), src.GetSize());                   \
  }                                                                                              \
  template <typename Tensor, twin::IfTensor<Tensor> = 0>                                          \
  void name(const Tensor &dst, const Tensor &src, std::uint32_t count) {                          \
    name(dst, src, count, twin::LastSite());                                                      \
  }                                                                                               \
  template <typename T, bool isReuseSource = false, typename Tensor, twin::IfTensor<Tensor> = 0>  \
  void name(const Tensor &dst, const Tensor &src, std::uint32_t count) {                          \
    name<T>(dst, src, count, twin::LastSite());                                                   \
  }

TWIN_LIBRARY(Tanh, twin::Op::kTanh)
TWIN_LIBRARY(Sigmoid, twin::Op::kSigmoid)
TWIN_LIBRARY(Erf, twin::Op::kErf)
TWIN_LIBRARY(Erfc, twin::Op::kErfc)
TWIN_LIBRARY(Sin, twin::Op::kSin)
TWIN_LIBRARY(Cos, twin::Op::kCos)
TWIN_LIBRARY(Tan, twin::Op::kTan)
TWIN_LIBRARY(Asin, twin::Op::kAsin)
TWIN_LIBRARY(Acos, twin::Op::kAcos)
TWIN_LIBRARY(Atan, twin::Op::kAtan)
TWIN_LIBRARY(Sinh, twin::Op::kSinh)
TWIN_LIBRARY(Cosh, twin::Op::kCosh)
TWIN_LIBRARY(Asinh, twin::Op::kAsinh)
TWIN_LIBRARY(Acosh, twin::Op::kAcosh)
TWIN_LIBRARY(Atanh, twin::Op::kAtanh)
TWIN_LIBRARY(Log, twin::Op::kLn)
TWIN_LIBRARY(Log2, twin::Op::kLog2)
TWIN_LIBRARY(Log10, twin::Op::kLog10)
TWIN_LIBRARY(Floor, twin::Op::kFloor)
TWIN_LIBRARY(Ceil, twin::Op::kCeil)
TWIN_LIBRARY(Round, twin::Op::kRound)
TWIN_LIBRARY(Trunc, twin::Op::kTrunc)
TWIN_LIBRARY(Frac, twin::Op::kFrac)
TWIN_LIBRARY(Sign, twin::Op::kSign)
TWIN_LIBRARY(Lgamma, twin::Op::kLgamma)
TWIN_LIBRARY(Digamma, twin::Op::kDigamma)
#undef TWIN_LIBRARY

// ---- Power: tensor ** tensor, tensor ** scalar, scalar ** tensor

template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
           std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPower, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), nullptr, nullptr, count);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
           twin::Site site = twin::Here()) {
  Power<T>(dst, src0, src1, src0.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
           const LocalTensor<std::uint8_t> &tmp, std::int64_t count,
           twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPower, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), &tmp.view(), nullptr, count);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &exponent,
           std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPowers, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, nullptr, &exponent, count);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &exponent,
           const LocalTensor<std::uint8_t> &tmp, std::int64_t count,
           twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPowers, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, &tmp.view(), &exponent, count);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &src,
           std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPowerOf, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, nullptr, &base, count);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &src,
           const LocalTensor<std::uint8_t> &tmp, std::int64_t count,
           twin::Site site = twin::Here()) {
  twin::CheckPowerType<T>();
  twin::LibraryOp({"Power", site}, twin::Op::kPowerOf, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, &tmp.view(), &base, count);
}

template <typename T, bool isReuseSource = false>
void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
          std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"Fmod", site}, twin::Op::kFmod, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), nullptr, nullptr, count);
}
template <typename T, bool isReuseSource = false>
void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
         std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t, std::uint16_t>,
                "Xor on dav-2201 takes int16_t or uint16_t");
  twin::LibraryOp({"Xor", site}, twin::Op::kXor, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), nullptr, nullptr, count);
}
template <typename T, bool isReuseSource = false>
void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
         const LocalTensor<std::uint8_t> &tmp, std::int64_t count,
         twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t, std::uint16_t>,
                "Xor on dav-2201 takes int16_t or uint16_t");
  twin::LibraryOp({"Xor", site}, twin::Op::kXor, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), &tmp.view(), nullptr, count);
}
template <typename T, bool isReuseSource = false>
void ClampMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar,
              std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"ClampMax", site}, twin::Op::kMins, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, nullptr, &scalar, count);
}
template <typename T, bool isReuseSource = false>
void ClampMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar,
              std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"ClampMin", site}, twin::Op::kMaxs, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, nullptr, &scalar, count);
}

// ---- Sum and Mean of rows

template <typename T, std::int32_t reduceDim = -1, bool isReuseSource = false,
          bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SumParams &how,
         twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::SumRows({"Sum", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr, how.outter,
                how.inner, how.n);
}
template <typename T, std::int32_t reduceDim = -1, bool isReuseSource = false,
          bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src,
         const LocalTensor<std::uint8_t> &tmp, const SumParams &how,
         twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::SumRows({"Sum", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(), how.outter,
                how.inner, how.n);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          std::int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const MeanParams &how,
          twin::Site site = twin::Here()) {
  twin::CheckMeanTypes<T, accType>();
  twin::MeanRows({"Mean", site}, twin::TagOf<T>(), sizeof(accType) > sizeof(T), dst.view(),
                 src.view(), nullptr, how.outter, how.inner, how.n);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          std::int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src,
          const LocalTensor<std::uint8_t> &tmp, const MeanParams &how,
          twin::Site site = twin::Here()) {
  twin::CheckMeanTypes<T, accType>();
  twin::MeanRows({"Mean", site}, twin::TagOf<T>(), sizeof(accType) > sizeof(T), dst.view(),
                 src.view(), &tmp.view(), how.outter, how.inner, how.n);
}

// ---- Broadcast of one axis of a 1-D or 2-D shape

}  // namespace AscendC

namespace twin {

// doc: int8_t, uint8_t, half and float; the others as a published kernel for this chip calls it
template <typename T>
inline constexpr bool kBroadcast =
    kOneOf<T, std::int8_t, std::uint8_t, half, float, bfloat16_t, std::int16_t, std::int32_t>;

}  // namespace twin

namespace AscendC {

template <typename T, std::int32_t dim, std::int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const std::uint32_t dstShape[dim], const std::uint32_t srcShape[dim],
               twin::Site site = twin::Here()) {
  static_assert((dim == 1 || dim == 2) && axis < dim, "BroadCast takes 1 or 2 dimensions");
  static_assert(twin::kBroadcast<T>,
                "BroadCast on dav-2201 takes 8-bit types, half, bfloat16_t, int16_t, int32_t, float");
  twin::BroadcastOp({"BroadCast", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                    dstShape, srcShape, dim);
}
template <typename T, std::int32_t dim, std::int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const std::uint32_t dstShape[dim], const std::uint32_t srcShape[dim],
               LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  static_assert((dim == 1 || dim == 2) && axis < dim, "BroadCast takes 1 or 2 dimensions");
  static_assert(twin::kBroadcast<T>,
                "BroadCast on dav-2201 takes 8-bit types, half, bfloat16_t, int16_t, int32_t, float");
  twin::BroadcastOp({"BroadCast", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                    dstShape, srcShape, dim);
}
template <typename T, std::int32_t dim, std::int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const std::uint32_t dstShape[dim], const std::uint32_t srcShape[dim],
               twin::Site site = twin::Here()) {
  BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, site);
}
template <typename T, std::int32_t dim, std::int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               const std::uint32_t dstShape[dim], const std::uint32_t srcShape[dim],
               LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  BroadCast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, tmp, site);
}

// Consecutive values: first, first + difference, ...
template <typename T>
void ArithProgression(const LocalTensor<T> &dst, const T first, const T difference,
                      std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float, std::int16_t, std::int32_t>,
                "Arange on dav-2201 takes half, float, int16_t or int32_t");
  CreateVecIndex(dst, T(0), count, site);
  Muls(dst, dst, difference, count, site);
  Adds(dst, dst, first, count, site);
}
template <typename T>
void Arange(const LocalTensor<T> &dst, const T first, const T difference, std::int64_t count,
            twin::Site site = twin::Here()) {
  ArithProgression(dst, first, difference, count, site);
}

}  // namespace AscendC
