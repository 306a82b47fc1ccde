// Filters: DropOut, and the library's Select by a mask of whole elements.
#pragma once

#include "twin/compare.h"

namespace AscendC {

struct SelectWithBytesMaskShapeInfo {
  std::uint32_t firstAxis = 0;
  std::uint32_t srcLastAxis = 0;
  std::uint32_t maskLastAxis = 0;  // what is beyond srcLastAxis is not read
};

struct DropOutShapeInfo {
  std::uint32_t firstAxis = 0;
  std::uint32_t srcLastAxis = 0;
  std::uint32_t maskLastAxis = 0;  // elements of the mask tensor, bytes
};

}  // namespace AscendC

namespace twin {

struct SelectJob {
  bool tensorFirst;  // src0 is the tensor: mask 0 takes it, anything else the scalar
  bool keepMask;     // isReuseMask = false
  std::int64_t rows, columns, maskColumns;
};
void SelectBytes(const Call &call, DType type, int maskSize, const View &dst, const View &src,
                 const void *scalar, const View &mask, const View &scratch, const SelectJob &job);

struct DropJob {
  int mode;
  float keep;
  std::int64_t rows, columns, maskColumns;
};
void DropOutOp(const Call &call, DType type, const View &dst, const View &src, const View &mask,
               const View *scratch, const DropJob &job);

template <typename T, typename U>
constexpr void CheckSelectTypes() {
  static_assert(kOneOf<T, half, float>, "Select on dav-2201 takes half or float");
  static_assert(kOneOf<U, bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                       std::int32_t, std::uint32_t>,
                "the mask of this Select is bool or an integer of 8, 16 or 32 bits");
}

// The scalar's parameter takes no part in deducing T, so that a literal may be passed.
template <typename T>
struct Same {
  using Type = T;
};

}  // namespace twin

namespace AscendC {

template <typename T, typename U, bool isReuseMask = true>
void SelectWithBytesMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                         typename twin::Same<T>::Type src1, const LocalTensor<U> &mask,
                         const LocalTensor<std::uint8_t> &tmp,
                         const SelectWithBytesMaskShapeInfo &info,
                         twin::Site site = twin::Here()) {
  twin::CheckSelectTypes<T, U>();
  twin::SelectBytes({"SelectWithBytesMask", site}, twin::TagOf<T>(), sizeof(U), dst.view(), src0.view(), &src1,
                    mask.view(), tmp.view(),
                    {true, !isReuseMask, info.firstAxis, info.srcLastAxis, info.maskLastAxis});
}
template <typename T, typename U, bool isReuseMask = true>
void SelectWithBytesMask(const LocalTensor<T> &dst, typename twin::Same<T>::Type src0,
                         const LocalTensor<T> &src1, const LocalTensor<U> &mask,
                         const LocalTensor<std::uint8_t> &tmp,
                         const SelectWithBytesMaskShapeInfo &info,
                         twin::Site site = twin::Here()) {
  twin::CheckSelectTypes<T, U>();
  twin::SelectBytes({"SelectWithBytesMask", site}, twin::TagOf<T>(), sizeof(U), dst.view(), src1.view(), &src0,
                    mask.view(), tmp.view(),
                    {false, !isReuseMask, info.firstAxis, info.srcLastAxis, info.maskLastAxis});
}
template <typename T, typename U, bool isReuseMask = true>
void Select(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
            typename twin::Same<T>::Type src1, const LocalTensor<U> &mask,
            const LocalTensor<std::uint8_t> &tmp, const SelectWithBytesMaskShapeInfo &info,
            twin::Site site = twin::Here()) {
  SelectWithBytesMask<T, U, isReuseMask>(dst, src0, src1, mask, tmp, info, site);
}
template <typename T, typename U, bool isReuseMask = true>
void Select(const LocalTensor<T> &dst, typename twin::Same<T>::Type src0,
            const LocalTensor<T> &src1, const LocalTensor<U> &mask,
            const LocalTensor<std::uint8_t> &tmp, const SelectWithBytesMaskShapeInfo &info,
            twin::Site site = twin::Here()) {
  SelectWithBytesMask<T, U, isReuseMask>(dst, src0, src1, mask, tmp, info, site);
}

// Keeps what the mask keeps, divided by keepProb; the rest is 0. dropOutMode: 0 by the shapes,
// 1 and 2 a byte an element (with and without bytes to skip), 3 and 4 a bit an element.
template <typename T, bool isInitBitMode = false, std::uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T> &dst, const LocalTensor<T> &src,
             const LocalTensor<std::uint8_t> &mask, const float keepProb,
             const DropOutShapeInfo &info, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "DropOut on dav-2201 takes half or float");
  static_assert(dropOutMode <= 4, "dropOutMode is 0 to 4");
  twin::DropOutOp({"DropOut", site}, twin::TagOf<T>(), dst.view(), src.view(), mask.view(),
                  nullptr,
                  {dropOutMode, keepProb, info.firstAxis, info.srcLastAxis, info.maskLastAxis});
}
template <typename T, bool isInitBitMode = false, std::uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T> &dst, const LocalTensor<T> &src,
             const LocalTensor<std::uint8_t> &mask, const LocalTensor<std::uint8_t> &tmp,
             const float keepProb, const DropOutShapeInfo &info,
             twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "DropOut on dav-2201 takes half or float");
  static_assert(dropOutMode <= 4, "dropOutMode is 0 to 4");
  twin::DropOutOp({"DropOut", site}, twin::TagOf<T>(), dst.view(), src.view(), mask.view(),
                  &tmp.view(),
                  {dropOutMode, keepProb, info.firstAxis, info.srcLastAxis, info.maskLastAxis});
}

}  // namespace AscendC
