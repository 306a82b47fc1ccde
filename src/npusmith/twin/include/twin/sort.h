// Sorting: merges of sorted lists, the library's Sort, Concat, Extract and TopK.
#pragma once

#include "twin/layouts.h"
#include "twin/scratch.h"
#include "twin/shuffle.h"

namespace twin {

// Up to four lists to be merged, as the hardware is told.
struct MergeJob {
  const View *lists;
  const std::uint16_t *counts;
  std::int64_t validBit;
  std::int64_t repeats;
  bool suspend;  // stop when one list is used up
};
void MergeSorted(const Call &call, DType type, const View &dst, const MergeJob &job);
// How many items of each list the last merge took.
void ReadMerged(const Call &call, std::uint16_t *counts);

void SortAll(const Call &call, DType type, const View &dst, const View &src, const View &index,
             const View &scratch, std::int64_t repeats, bool full);
void SplitSorted(const Call &call, DType type, const View &values, const View &indices,
                 const View &sorted, std::int64_t repeats);

// guess where noted in sort.cpp: the page says what, not in which order
struct TopKJob {
  std::int64_t k, outter, inner, n;
  std::int64_t tiled, tiledInner;  // what the host computed tiling for
  bool ownIndex, hasFinish, small, largest;
};
void TopKOp(const Call &call, DType type, const View &values, const View &indices, const View &src,
            const View &srcIndex, const View &finish, const View *scratch, const TopKJob &job);

// What Atlas 310P has instead: eight numbers an item, x1 y1 x2 y2 score label and two unused.
enum class Proposal : std::uint8_t { kConcat, kExtract, kSort };
void ProposalOp(const Call &call, Proposal what, DType type, const View &dst, const View &src,
                std::int64_t repeats, std::int64_t mode);
void MergeProposals(const Call &call, DType type, const View &dst, const MergeJob &job);

}  // namespace twin

namespace AscendC {

struct MrgSort4Info {
  std::uint16_t elementLengths[4] = {0, 0, 0, 0};
  bool ifExhaustedSuspension = false;
  std::uint16_t validBit = 0;
  std::uint16_t repeatTimes = 1;

  MrgSort4Info() = default;
  MrgSort4Info(const std::uint16_t lengths[4], bool suspend, twin::Word valid, twin::Word repeats,
               twin::Site site = twin::Here())
      : ifExhaustedSuspension(suspend),
        validBit(Cut(valid, "validBit", site)),
        repeatTimes(Cut(repeats, "repeatTimes", site)) {
    for (int i = 0; i < 4; ++i) elementLengths[i] = lengths[i];
  }
};

template <typename T>
struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;

  MrgSortSrcList() = default;
  MrgSortSrcList(const LocalTensor<T> &first, const LocalTensor<T> &second,
                 const LocalTensor<T> &third, const LocalTensor<T> &fourth)
      : src1(first), src2(second), src3(third), src4(fourth) {}
};

// Up to four descending lists of score and index become one.
template <typename T>
void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src, const MrgSort4Info &how,
             twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "MrgSort on dav-2201 takes half or float");
  const twin::View lists[] = {src.src1.view(), src.src2.view(), src.src3.view(), src.src4.view()};
  twin::MergeSorted({"MrgSort", site}, twin::TagOf<T>(), dst.view(),
                    {lists, how.elementLengths, how.validBit, how.repeatTimes,
                     how.ifExhaustedSuspension});
}
inline void GetMrgSortResult(std::uint16_t &list1, std::uint16_t &list2, std::uint16_t &list3,
                             std::uint16_t &list4, twin::Site site = twin::Here()) {
  std::uint16_t counts[4];
  twin::ReadMerged({"GetMrgSortResult", site}, counts);
  list1 = counts[0], list2 = counts[1], list3 = counts[2], list4 = counts[3];
}
// The library's form; sortedNum is written when a list that is used up stops the merge.
template <typename T, bool isExhaustedSuspension = false>
void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src,
             const std::uint16_t elementCountList[4], std::uint32_t sortedNum[4],
             twin::Word validBit, std::int64_t repeatTime, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "MrgSort on dav-2201 takes half or float");
  const twin::View lists[] = {src.src1.view(), src.src2.view(), src.src3.view(), src.src4.view()};
  twin::MergeSorted({"MrgSort", site}, twin::TagOf<T>(), dst.view(),
                    {lists, elementCountList, validBit.value, repeatTime, isExhaustedSuspension});
  if constexpr (isExhaustedSuspension) {
    std::uint16_t counts[4];
    twin::ReadMerged({"MrgSort", site}, counts);
    for (int i = 0; i < 4; ++i) sortedNum[i] = counts[i];
  }
}

// Elements of type T that n sorted items take, and where the n-th one begins.
template <typename T>
std::uint32_t GetSortOffset(const std::uint32_t elemOffset) {
  static_assert(twin::kOneOf<T, half, float>, "GetSortOffset on dav-2201 takes half or float");
  return elemOffset * static_cast<std::uint32_t>(twin::kSortItem / sizeof(T));
}
template <typename T>
std::uint32_t GetSortLen(const std::uint32_t elemCount) {
  static_assert(twin::kOneOf<T, half, float>, "GetSortLen on dav-2201 takes half or float");
  return GetSortOffset<T>(elemCount);
}

// Nothing to prepare on this chip: the scores are sorted where they lie.
template <typename T>
void Concat(LocalTensor<T> &concat, const LocalTensor<T> &src, const LocalTensor<T> &,
            const std::int32_t, twin::Site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Concat on dav-2201 takes half or float");
  concat = src;
}
template <typename T, bool isFullSort>
void Sort(const LocalTensor<T> &dst, const LocalTensor<T> &concat,
          const LocalTensor<std::uint32_t> &index, const LocalTensor<T> &tmp,
          const std::int32_t repeatTime, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Sort on dav-2201 takes half or float");
  twin::SortAll({"Sort", site}, twin::TagOf<T>(), dst.view(), concat.view(), index.view(),
                tmp.view(), repeatTime, isFullSort);
}
template <typename T>
void Extract(const LocalTensor<T> &dstValue, const LocalTensor<std::uint32_t> &dstIndex,
             const LocalTensor<T> &sorted, const std::int32_t repeatTime,
             twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Extract on dav-2201 takes half or float");
  twin::SplitSorted({"Extract", site}, twin::TagOf<T>(), dstValue.view(), dstIndex.view(),
                    sorted.view(), repeatTime);
}

// ---- TopK

struct TopKInfo {
  std::int32_t outter = 1;
  std::int32_t inner = 0;  // a multiple of 32
  std::int32_t n = 0;      // elements of a row that count
};

}  // namespace AscendC

using AscendC::tiling::TopkTiling;

namespace twin {

template <typename T, bool ownIndex, bool hasFinish, AscendC::TopKMode mode>
TopKJob TopKJobOf(std::int32_t k, const TopkTiling &tiling, const AscendC::TopKInfo &info,
                  bool largest) {
  constexpr bool kSmall = mode == AscendC::TopKMode::TOPK_NSMALL;
  static_assert(kOneOf<T, half, float>, "TopK on dav-2201 takes half or float");
  return {k,        info.outter, info.inner, info.n, tiling.allDataSize, tiling.innerDataSize,
          ownIndex, hasFinish,   kSmall,     largest};
}

}  // namespace twin

namespace AscendC {

// The k largest (or smallest) of each row, in order, and where they stood.
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
void TopK(const LocalTensor<T> &dstValue, const LocalTensor<std::int32_t> &dstIndex,
          const LocalTensor<T> &src, const LocalTensor<std::int32_t> &srcIndex,
          const LocalTensor<bool> &finish, const std::int32_t k, const TopkTiling &tiling,
          const TopKInfo &info, const bool isLargest = true, twin::Site site = twin::Here()) {
  twin::TopKOp({"TopK", site}, twin::TagOf<T>(), dstValue.view(), dstIndex.view(), src.view(),
               srcIndex.view(), finish.view(), nullptr,
               twin::TopKJobOf<T, isInitIndex, isHasfinish, topkMode>(k, tiling, info, isLargest));
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
void TopK(const LocalTensor<T> &dstValue, const LocalTensor<std::int32_t> &dstIndex,
          const LocalTensor<T> &src, const LocalTensor<std::int32_t> &srcIndex,
          const LocalTensor<bool> &finish, const LocalTensor<std::uint8_t> &tmp,
          const std::int32_t k, const TopkTiling &tiling, const TopKInfo &info,
          const bool isLargest = true, twin::Site site = twin::Here()) {
  twin::TopKOp({"TopK", site}, twin::TagOf<T>(), dstValue.view(), dstIndex.view(), src.view(),
               srcIndex.view(), finish.view(), &tmp.view(),
               twin::TopKJobOf<T, isInitIndex, isHasfinish, topkMode>(k, tiling, info, isLargest));
}

}  // namespace AscendC
