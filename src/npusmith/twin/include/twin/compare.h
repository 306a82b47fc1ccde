// Compare, Compares and Select.
#pragma once

#include "twin/vector.h"

namespace twin {

template <typename T, typename U>
constexpr void CheckCompareTypes() {
  static_assert(kOneOf<T, half, float, std::int32_t>,
                "Compare on dav-2201 takes half or float (int32_t for EQ only)");
  // uint16_t: not documented, published operators for Atlas A2 (ops-nn) compile with it
  static_assert(kOneOf<U, std::uint8_t, std::int8_t, std::uint16_t>,
                "Compare writes its bits to uint8_t, int8_t or uint16_t");
}

}  // namespace twin

namespace AscendC {

template <typename T, typename U>
void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
             CMPMODE mode, std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckCompareTypes<T, U>();
  const twin::Lane b{src1.view()};
  twin::CompareOp({"Compare", site}, twin::TagOf<T>(), mode, dst.view(), {src0.view()}, &b,
                  nullptr, twin::Counted(count));
}
// dst = a < b on whole tensors
#define TWIN_SYMBOL(symbol, mode)                                                              \
  template <typename T>                                                                        \
  twin::WholeCompare<T> operator symbol(const LocalTensor<T> &a, const LocalTensor<T> &b) {    \
    twin::CheckCompareTypes<T, std::uint8_t>();                                                \
    return {CMPMODE::mode, a.view(), b.view(), #symbol};                                       \
  }
TWIN_SYMBOL(<, LT)
TWIN_SYMBOL(>, GT)
TWIN_SYMBOL(<=, LE)
TWIN_SYMBOL(>=, GE)
TWIN_SYMBOL(==, EQ)
TWIN_SYMBOL(!=, NE)
#undef TWIN_SYMBOL
// On dav-2201 the mask is ignored: whole repeats are compared.
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
             CMPMODE mode, Mask mask, twin::Byte repeatTime, const BinaryRepeatParams &how,
             twin::Site site = twin::Here()) {
  twin::CheckCompareTypes<T, U>();
  const twin::Lane b = twin::Src1Of(src1.view(), how);
  twin::CompareOp({"Compare", site}, twin::TagOf<T>(), mode, dst.view(),
                  twin::Src0Of(src0.view(), how), &b, nullptr,
                  twin::Masked(true, mask, repeatTime.value));
}
// Into the CMPMASK register: one repeat.
template <typename T, bool isSetMask = true, typename Mask = std::uint64_t>
void Compare(const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode, Mask mask,
             const BinaryRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Compare to CMPMASK takes half or float");
  twin::CompareToRegister({"Compare", site}, twin::TagOf<T>(), mode,
                          twin::Src0Of(src0.view(), how), twin::Src1Of(src1.view(), how),
                          twin::Masked(isSetMask, mask, 1));
}

template <typename T, typename U>
void CompareScalar(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar,
                   CMPMODE mode, std::int64_t count, twin::Site site = twin::Here()) {
  twin::CheckCompareTypes<T, U>();
  twin::CompareOp({"CompareScalar", site}, twin::TagOf<T>(), mode, dst.view(), {src.view()},
                  nullptr, &scalar, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void CompareScalar(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar,
                   CMPMODE mode, Mask mask, twin::Byte repeatTime, const UnaryRepeatParams &how,
                   twin::Site site = twin::Here()) {
  twin::CheckCompareTypes<T, U>();
  twin::CompareOp({"CompareScalar", site}, twin::TagOf<T>(), mode, dst.view(),
                  twin::SrcOf(src.view(), how), nullptr, &scalar,
                  twin::Masked(true, mask, repeatTime.value));
}
template <typename T, typename U>
void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar, CMPMODE mode,
              std::int64_t count, twin::Site site = twin::Here()) {
  CompareScalar(dst, src, scalar, mode, count, site);
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src, const T scalar, CMPMODE mode,
              Mask mask, twin::Byte repeatTime, const UnaryRepeatParams &how,
              twin::Site site = twin::Here()) {
  CompareScalar(dst, src, scalar, mode, mask, repeatTime, how, site);
}

template <typename T>
void GetCmpMask(const LocalTensor<T> &dst, twin::Site site = twin::Here()) {
  twin::MoveCompareMask({"GetCmpMask", site}, dst.view(), true);
}
template <typename T>
void SetCmpMask(const LocalTensor<T> &src, twin::Site site = twin::Here()) {
  twin::MoveCompareMask({"SetCmpMask", site}, src.view(), false);
}

// ---- Select: bit 1 picks src0

template <typename T, typename U>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
            const LocalTensor<T> &src1, SELMODE mode, std::int64_t count,
            twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  const twin::Lane b{src1.view()};
  twin::SelectOp({"Select", site}, twin::TagOf<T>(), mode, {dst.view()}, &mask.view(),
                 {src0.view()}, &b, nullptr, twin::Counted(count));
}
template <typename T, typename U>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
            T src1, SELMODE mode, std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  twin::SelectOp({"Select", site}, twin::TagOf<T>(), mode, {dst.view()}, &mask.view(),
                 {src0.view()}, nullptr, &src1, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
            const LocalTensor<T> &src1, SELMODE mode, Mask lanes, twin::Byte repeatTime,
            const BinaryRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  const twin::Lane b = twin::Src1Of(src1.view(), how);
  twin::SelectOp({"Select", site}, twin::TagOf<T>(), mode, twin::DstOf(dst.view(), how),
                 &mask.view(), twin::Src0Of(src0.view(), how), &b, nullptr,
                 twin::Masked(true, lanes, repeatTime.value));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &mask, const LocalTensor<T> &src0,
            T src1, SELMODE mode, Mask lanes, twin::Byte repeatTime, const BinaryRepeatParams &how,
            twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  twin::SelectOp({"Select", site}, twin::TagOf<T>(), mode, twin::DstOf(dst.view(), how),
                 &mask.view(), twin::Src0Of(src0.view(), how), nullptr, &src1,
                 twin::Masked(true, lanes, repeatTime.value));
}
// By the CMPMASK register.
template <typename T, SELMODE mode>
void Select(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
            twin::Byte repeatTime, const BinaryRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  static_assert(mode == SELMODE::VSEL_CMPMASK_SPR, "this form of Select uses CMPMASK");
  const twin::Lane b = twin::Src1Of(src1.view(), how);
  twin::SelectOp({"Select", site}, twin::TagOf<T>(), mode, twin::DstOf(dst.view(), how), nullptr,
                 twin::Src0Of(src0.view(), how), &b, nullptr,
                 twin::Masked(false, std::uint64_t{0}, repeatTime.value));
}

}  // namespace AscendC
