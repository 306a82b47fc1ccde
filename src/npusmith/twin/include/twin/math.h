// Library forms of arithmetic that library.h does not have: Exp by a series, Axpy, and the remaining
// combinations of scratch and count.
#pragma once

#include "twin/library.h"

namespace twin {

// e ** x as e ** floor(x) times the first `level` + 1 terms of the series of the rest.
void SeriesExp(const Call &call, DType type, const View &dst, const View &src,
               const View *scratch, int level, bool reuse, std::int64_t count);

// A number of terms: any integer, but not the bool that other forms of Exp take there.
template <typename Level>
using IfLevel = std::enable_if_t<!std::is_same_v<Level, bool>, int>;

}  // namespace twin

namespace AscendC {

template <typename T, auto taylorExpandLevel, bool isReuseSource = false,
          twin::IfLevel<decltype(taylorExpandLevel)> = 0>
void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src,
         const LocalTensor<std::uint8_t> &tmp, const std::uint32_t calCount,
         twin::Site site = twin::Here()) {
  static_assert(taylorExpandLevel >= 0 && taylorExpandLevel <= 255, "0 to 255 terms");
  twin::CheckLibraryType<T>();
  twin::SeriesExp({"Exp", site}, twin::TagOf<T>(), dst.view(), src.view(), &tmp.view(),
                  taylorExpandLevel, isReuseSource && sizeof(T) == 4, calCount);
}
template <typename T, auto taylorExpandLevel, bool isReuseSource = false,
          twin::IfLevel<decltype(taylorExpandLevel)> = 0>
void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::uint32_t calCount,
         twin::Site site = twin::Here()) {
  static_assert(taylorExpandLevel >= 0 && taylorExpandLevel <= 255, "0 to 255 terms");
  twin::CheckLibraryType<T>();
  twin::SeriesExp({"Exp", site}, twin::TagOf<T>(), dst.view(), src.view(), nullptr,
                  taylorExpandLevel, isReuseSource && sizeof(T) == 4, calCount);
}

// dst += src * scalar by Muls and Add.
template <typename T, typename U, bool isReuseSource = false>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U scalar,
          const LocalTensor<std::uint8_t> &tmp, const std::uint32_t calCount,
          twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float> && twin::kOneOf<U, half, T>,
                "Axpy on dav-2201 takes half or float, or half sources with a float dst");
  (void)tmp;
  twin::ScalarOp({"Axpy", site}, twin::Op::kAxpy, twin::TagOf<T>(), twin::TagOf<U>(),
                 {dst.view()}, {src.view()}, &scalar, twin::Counted(calCount));
}

// ---- the whole of the source, with scratch

template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
           const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  Power<T, isReuseSource>(dst, src0, src1, tmp, src0.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &exponent,
           const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  Power<T, isReuseSource>(dst, src, exponent, tmp, src.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &exponent,
           twin::Site site = twin::Here()) {
  Power<T, isReuseSource>(dst, src, exponent, src.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &src,
           const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  Power<T, isReuseSource>(dst, base, src, tmp, src.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &src,
           twin::Site site = twin::Here()) {
  Power<T, isReuseSource>(dst, base, src, src.GetSize(), site);
}

template <typename T, bool isReuseSource = false>
void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
          const LocalTensor<std::uint8_t> &tmp, std::int64_t count,
          twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"Fmod", site}, twin::Op::kFmod, twin::TagOf<T>(), dst.view(), src0.view(),
                  &src1.view(), &tmp.view(), nullptr, count);
}
template <typename T, bool isReuseSource = false>
void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
          const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  Fmod<T, isReuseSource>(dst, src0, src1, tmp, src0.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
          twin::Site site = twin::Here()) {
  Fmod<T, isReuseSource>(dst, src0, src1, src0.GetSize(), site);
}

template <typename T, bool isReuseSource = false>
void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
         const LocalTensor<std::uint8_t> &tmp, twin::Site site = twin::Here()) {
  Xor<T, isReuseSource>(dst, src0, src1, tmp, src0.GetSize(), site);
}
template <typename T, bool isReuseSource = false>
void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
         twin::Site site = twin::Here()) {
  Xor<T, isReuseSource>(dst, src0, src1, src0.GetSize(), site);
}

template <typename T, bool isReuseSource = false>
void ClampMax(const LocalTensor<T> &dst, const LocalTensor<T> &src,
              const LocalTensor<std::uint8_t> &tmp, const T scalar, std::int64_t count,
              twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"ClampMax", site}, twin::Op::kMins, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, &tmp.view(), &scalar, count);
}
template <typename T, bool isReuseSource = false>
void ClampMin(const LocalTensor<T> &dst, const LocalTensor<T> &src,
              const LocalTensor<std::uint8_t> &tmp, const T scalar, std::int64_t count,
              twin::Site site = twin::Here()) {
  twin::CheckLibraryType<T>();
  twin::LibraryOp({"ClampMin", site}, twin::Op::kMaxs, twin::TagOf<T>(), dst.view(), src.view(),
                  nullptr, &tmp.view(), &scalar, count);
}

}  // namespace AscendC
