// Reductions: over everything, over repeats, over 32-byte blocks, over pairs.
#pragma once

#include "twin/vector.h"

namespace AscendC {

#define TWIN_FOLD_ALL(name, fold)                                                               \
  template <typename T>                                                                         \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,    \
            std::int64_t count, bool calIndex = false, twin::Site site = twin::Here()) {        \
    static_assert(twin::kOneOf<T, half, float>, #name " on dav-2201 takes half or float");      \
    twin::FoldAll({#name, site}, fold, twin::TagOf<T>(), dst.view(), src.view(), tmp.view(),    \
                  count, calIndex);                                                             \
  }                                                                                             \
  template <typename T, typename Mask>                                                          \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,    \
            Mask mask, std::int64_t repeatTime, std::int64_t srcRepStride,                     \
            bool calIndex = false, twin::Site site = twin::Here()) {                                                   \
    static_assert(twin::kOneOf<T, half, float>, #name " on dav-2201 takes half or float");      \
    twin::FoldRepeats({#name, site}, fold, twin::TagOf<T>(), dst.view(), src.view(),            \
                      tmp.view(), twin::Masked(true, mask, repeatTime), srcRepStride, calIndex); \
  }

TWIN_FOLD_ALL(ReduceMax, twin::Fold::kMax)
TWIN_FOLD_ALL(ReduceMin, twin::Fold::kMin)
#undef TWIN_FOLD_ALL

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,
               std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "ReduceSum on dav-2201 takes half or float");
  twin::FoldAll({"ReduceSum", site}, twin::Fold::kSum, twin::TagOf<T>(), dst.view(), src.view(),
                tmp.view(), count, false);
}
template <typename T, typename Mask>
void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,
               Mask mask, std::int64_t repeatTime, std::int64_t srcRepStride,
               twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "ReduceSum on dav-2201 takes half or float");
  twin::FoldRepeats({"ReduceSum", site}, twin::Fold::kSum, twin::TagOf<T>(), dst.view(),
                    src.view(), tmp.view(), twin::Masked(true, mask, repeatTime), srcRepStride,
                    false);
}

// ---- one result a repeat

template <typename T, bool isSetMask = true, typename Mask = std::int32_t>
void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, Mask mask,
                    std::int64_t repeatTime, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                    std::int64_t srcRepStride, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "WholeReduceSum on dav-2201 takes half or float");
  twin::FoldRepeat({"WholeReduceSum", site}, twin::Fold::kSum, twin::TagOf<T>(), dst.view(),
                   src.view(), twin::Masked(isSetMask, mask, repeatTime),
                   {dstRepStride, srcBlkStride, srcRepStride}, ReduceOrder::ORDER_ONLY_VALUE);
}

#define TWIN_WHOLE(name, fold)                                                                   \
  template <typename T, bool isSetMask = true, typename Mask = std::int32_t>                     \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, Mask mask,                     \
            std::int64_t repeatTime, std::int64_t dstRepStride, std::int64_t srcBlkStride,       \
            std::int64_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,       \
            twin::Site site = twin::Here()) {                                                    \
    static_assert(twin::kOneOf<T, half, float>, #name " on dav-2201 takes half or float");       \
    twin::FoldRepeat({#name, site}, fold, twin::TagOf<T>(), dst.view(), src.view(),              \
                     twin::Masked(isSetMask, mask, repeatTime),                                  \
                     {dstRepStride, srcBlkStride, srcRepStride}, order);                         \
  }
TWIN_WHOLE(WholeReduceMax, twin::Fold::kMax)
TWIN_WHOLE(WholeReduceMin, twin::Fold::kMin)
#undef TWIN_WHOLE

template <typename T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t repeatTime,
                     std::int64_t elementsInRepeat, std::int64_t, std::int64_t srcBlkStride,
                     std::int64_t dstRepStride, std::int64_t srcRepStride,
                     twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "RepeatReduceSum on dav-2201 takes half or float");
  twin::FoldRepeat({"RepeatReduceSum", site}, twin::Fold::kSum, twin::TagOf<T>(), dst.view(),
                   src.view(),
                   twin::Masked(isSetMask, static_cast<std::uint64_t>(elementsInRepeat),
                                repeatTime),
                   {dstRepStride, srcBlkStride, srcRepStride}, ReduceOrder::ORDER_ONLY_VALUE);
}

// ---- one result a block of 32 bytes

#define TWIN_BLOCK(name, fold)                                                                  \
  template <typename T, bool isSetMask = true, typename Mask = std::int32_t>                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t repeatTime,      \
            Mask mask, std::int64_t dstRepStride, std::int64_t srcBlkStride,                    \
            std::int64_t srcRepStride, twin::Site site = twin::Here()) {                        \
    static_assert(twin::kOneOf<T, half, float>, #name " on dav-2201 takes half or float");      \
    twin::FoldBlock({#name, site}, fold, twin::TagOf<T>(), dst.view(), src.view(),              \
                    twin::Masked(isSetMask, mask, repeatTime),                                  \
                    {dstRepStride, srcBlkStride, srcRepStride});                                \
  }
TWIN_BLOCK(BlockReduceSum, twin::Fold::kSum)
TWIN_BLOCK(BlockReduceMax, twin::Fold::kMax)
TWIN_BLOCK(BlockReduceMin, twin::Fold::kMin)
#undef TWIN_BLOCK

template <typename T, bool isSetMask = true, typename Mask = std::int32_t>
void PairReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t repeatTime,
                   Mask mask, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                   std::int64_t srcRepStride, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "PairReduceSum on dav-2201 takes half or float");
  twin::FoldPair({"PairReduceSum", site}, twin::TagOf<T>(), dst.view(), src.view(),
                 twin::Masked(isSetMask, mask, repeatTime),
                 {dstRepStride, srcBlkStride, srcRepStride});
}

// ---- what the last reduction left in its registers

template <typename T>
T GetAccVal(twin::Site site = twin::Here()) {
  T value;
  twin::ReadFold({"GetAccVal", site}, true, sizeof(T), &value, nullptr);
  return value;
}
// The register's bits.
inline std::int64_t GetAccVal(twin::Site site = twin::Here()) {
  std::int64_t bits = 0;
  twin::ReadFold({"GetAccVal", site}, true, sizeof bits, &bits, nullptr);
  return bits;
}
template <typename T>
void GetReduceMaxMinCount(T &value, T &index, twin::Site site = twin::Here()) {
  twin::ReadFold({"GetReduceMaxMinCount", site}, false, sizeof(T), &value, &index);
}
template <typename T>
void GetReduceMaxMinCount(T &value, twin::Site site = twin::Here()) {
  twin::ReadFold({"GetReduceMaxMinCount", site}, false, sizeof(T), &value, nullptr);
}
template <typename T>
T GetReduceRepeatSumSpr(twin::Site site = twin::Here()) {
  return GetAccVal<T>(site);
}
template <typename T>
void GetReduceRepeatMaxMinSpr(T &value, T &index, twin::Site site = twin::Here()) {
  GetReduceMaxMinCount(value, index, site);
}

}  // namespace AscendC

namespace twin {

constexpr AscendC::ReduceMode ModeOf(AscendC::ReduceType type) {
  using AscendC::ReduceMode;
  using AscendC::ReduceType;
  return type == ReduceType::SUM   ? ReduceMode::REDUCE_SUM
         : type == ReduceType::MAX ? ReduceMode::REDUCE_MAX
                                   : ReduceMode::REDUCE_MIN;
}

}  // namespace twin

namespace AscendC {

// ---- the newer names: the kind of reduction is a template argument

template <ReduceMode mode, typename T, bool isSetMask = true, typename Mask = std::int32_t>
void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t repeatTime,
                     Mask mask, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                     std::int64_t srcRepStride, twin::Site site = twin::Here()) {
  constexpr twin::Fold kFold = mode == ReduceMode::REDUCE_SUM   ? twin::Fold::kSum
                               : mode == ReduceMode::REDUCE_MAX ? twin::Fold::kMax
                                                                : twin::Fold::kMin;
  static_assert(twin::kOneOf<T, half, float>, "ReduceDataBlock on dav-2201 takes half or float");
  twin::FoldBlock({"ReduceDataBlock", site}, kFold, twin::TagOf<T>(), dst.view(), src.view(),
                  twin::Masked(isSetMask, mask, repeatTime),
                  {dstRepStride, srcBlkStride, srcRepStride});
}
template <ReduceMode mode, typename T, bool isSetMask = true, typename Mask = std::int32_t>
void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<T> &src, Mask mask,
                  std::int64_t repeatTime, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                  std::int64_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                  twin::Site site = twin::Here()) {
  constexpr twin::Fold kFold = mode == ReduceMode::REDUCE_SUM   ? twin::Fold::kSum
                               : mode == ReduceMode::REDUCE_MAX ? twin::Fold::kMax
                                                                : twin::Fold::kMin;
  static_assert(twin::kOneOf<T, half, float>, "ReduceRepeat on dav-2201 takes half or float");
  twin::FoldRepeat({"ReduceRepeat", site}, kFold, twin::TagOf<T>(), dst.view(), src.view(),
                   twin::Masked(isSetMask, mask, repeatTime),
                   {dstRepStride, srcBlkStride, srcRepStride}, order);
}
template <typename T, bool isSetMask = true, typename Mask = std::int32_t>
void ReducePairElem(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t repeatTime,
                    Mask mask, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                    std::int64_t srcRepStride, twin::Site site = twin::Here()) {
  PairReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride,
                              site);
}

// ---- and the newest: the mask comes before the repeats

template <ReduceType type, typename T, typename U, bool isSetMask = true,
          typename Mask = std::int32_t>
void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<U> &src, Mask mask,
                     std::int64_t repeatTime, std::int64_t dstRepStride,
                     std::int64_t srcBlkStride, std::int64_t srcRepStride,
                     twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, U>, "ReduceDataBlock on dav-2201 has one type");
  ReduceDataBlock<twin::ModeOf(type), T, isSetMask>(dst, src, repeatTime, mask, dstRepStride,
                                                    srcBlkStride, srcRepStride, site);
}
template <ReduceType type, typename T, typename U, bool isSetMask = true,
          typename Mask = std::int32_t>
void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, Mask mask,
                  std::int64_t repeatTime, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                  std::int64_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                  twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, U>, "ReduceRepeat on dav-2201 has one type");
  ReduceRepeat<twin::ModeOf(type), T, isSetMask>(dst, src, mask, repeatTime, dstRepStride,
                                                 srcBlkStride, srcRepStride, order, site);
}
template <ReduceType type, typename T, typename U, bool isSetMask = true,
          typename Mask = std::int32_t>
void ReducePairElem(const LocalTensor<T> &dst, const LocalTensor<U> &src, Mask mask,
                    std::int64_t repeatTime, std::int64_t dstRepStride, std::int64_t srcBlkStride,
                    std::int64_t srcRepStride, twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, U>, "ReducePairElem on dav-2201 has one type");
  static_assert(type == ReduceType::SUM, "ReducePairElem sums");
  PairReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride,
                              site);
}

}  // namespace AscendC
