// DataCopy, DataCopyPad, Copy: moves between global memory and UB, and inside UB.
#pragma once

#include <cstring>

#include "twin/tensor.h"

namespace twin {

template <typename T>
std::uint64_t ElementBits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

inline Blocks BlocksOf(const AscendC::DataCopyParams &how) {
  return {how.blockCount, how.blockLen, how.srcStride, how.dstStride};
}

template <typename Params>
PadBlocks PadOf(const Params &how) {
  return {how.blockCount, how.blockLen, how.srcStride, how.dstStride, false, 0, 0, 0};
}

template <typename Params, typename Pad>
PadBlocks PadOf(const Params &how, const Pad &pad, std::uint64_t value) {
  return {how.blockCount,   how.blockLen,    how.srcStride, how.dstStride,
          pad.isPad,        pad.leftPadding, pad.rightPadding, value};
}

}  // namespace twin

namespace AscendC {

// ---- count form: `count` elements, a whole number of 32-byte blocks

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, std::int64_t count,
              twin::Site site = twin::Here()) {
  twin::CopyIn({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.gm(),
               count / twin::kPacked<T>);
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t count,
              twin::Site site = twin::Here()) {
  twin::CopyOut({"DataCopy", site}, twin::TagOf<T>(), dst.gm(), src.view(),
                count / twin::kPacked<T>);
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::int64_t count,
              twin::Site site = twin::Here()) {
  twin::CopyOver({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.view(),
                 count / twin::kPacked<T>);
}

// ---- block form: lengths and gaps in 32-byte blocks

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &how,
              twin::Site site = twin::Here()) {
  twin::CopyInBlocks({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                     twin::BlocksOf(how));
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &how,
              twin::Site site = twin::Here()) {
  twin::CopyOutBlocks({"DataCopy", site}, twin::TagOf<T>(), dst.gm(), src.view(),
                      twin::BlocksOf(how));
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &how,
              twin::Site site = twin::Here()) {
  twin::CopyOverBlocks({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.view(),
                       twin::BlocksOf(how));
}

// ---- slice form

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const SliceInfo dstSlices[],
              const SliceInfo srcSlices[], std::uint32_t dims = 1, twin::Site site = twin::Here()) {
  twin::CopyInSlices({"DataCopy", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                     &dstSlices->startIndex, &srcSlices->startIndex, static_cast<int>(dims));
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const SliceInfo dstSlices[],
              const SliceInfo srcSlices[], std::uint32_t dims = 1, twin::Site site = twin::Here()) {
  twin::CopyOutSlices({"DataCopy", site}, twin::TagOf<T>(), dst.gm(), src.view(),
                      &dstSlices->startIndex, &srcSlices->startIndex, static_cast<int>(dims));
}

// ---- fractals to rows: one padded copy for each column of fractals

template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const Nz2NdParamsFull &how,
              twin::Site site = twin::Here()) {
  static_assert(sizeof(T) <= 4, "DataCopy from NZ to ND takes 8-, 16- and 32-bit types");
  constexpr std::uint32_t kWide = sizeof(T) == 1 ? 32 : 16, kMost = 4095;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  for (std::uint32_t matrix = 0; matrix < how.ndNum; ++matrix) {
    for (std::uint32_t column = 0; column < how.dValue; column += kWide) {
      for (std::uint32_t row = 0; row < how.nValue; row += kMost) {
        const std::uint32_t rows = how.nValue - row < kMost ? how.nValue - row : kMost;
        const std::uint32_t wide = how.dValue - column < kWide ? how.dValue - column : kWide;
        const auto from = src[matrix * how.srcNdMatrixStride * 256u +
                              column / kWide * how.srcNStride * 16u + row * kWide];
        const auto to = dst[std::uint64_t{matrix} * how.dstNdMatrixStride +
                            std::uint64_t{row} * how.dstDStride + column];
        twin::CopyOutPadded({"DataCopy", site}, twin::TagOf<T>(), to.gm(), from.view(),
                            {rows, wide * kBytes, (kWide - wide) * kBytes / ONE_BLK_SIZE,
                             (how.dstDStride - std::int64_t{wide}) * kBytes, false, 0, 0, 0});
      }
    }
  }
}

// ---- padded copies: lengths in bytes

template <typename T>
void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                 const DataCopyExtParams &how, const DataCopyPadExtParams<T> &pad,
                 twin::Site site = twin::Here()) {
  twin::CopyInPadded({"DataCopyPad", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                     twin::PadOf(how, pad, twin::ElementBits(pad.paddingValue)));
}
template <typename T>
void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &how,
                 const DataCopyPadParams &pad, twin::Site site = twin::Here()) {
  twin::CopyInPadded({"DataCopyPad", site}, twin::TagOf<T>(), dst.view(), src.gm(),
                     twin::PadOf(how, pad, pad.paddingValue));
}
template <typename T>
void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                 const DataCopyExtParams &how, twin::Site site = twin::Here()) {
  twin::CopyOutPadded({"DataCopyPad", site}, twin::TagOf<T>(), dst.gm(), src.view(),
                      twin::PadOf(how));
}
template <typename T>
void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &how,
                 twin::Site site = twin::Here()) {
  twin::CopyOutPadded({"DataCopyPad", site}, twin::TagOf<T>(), dst.gm(), src.view(),
                      twin::PadOf(how));
}
// What the dummy lanes of later padded copies hold.
template <typename T, TPosition = TPosition::MAX>
void SetPadValue(T value, twin::Site site = twin::Here()) {
  twin::SetPad({"SetPadValue", site}, twin::ElementBits(value));
}

// ---- Copy: UB to UB on the vector pipe, under a mask

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::uint64_t mask,
          twin::Byte repeatTime, const CopyRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy on dav-2201 moves 16- and 32-bit types");
  twin::VectorOp({"Copy", site}, twin::Op::kCopy, twin::TagOf<T>(),
                 twin::LaneOf(dst, how.dstStride, how.dstRepeatSize),
                 twin::LaneOf(src, how.srcStride, how.srcRepeatSize),
                 twin::Masked(isSetMask, mask, repeatTime.value));
}
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::uint64_t mask[],
          twin::Byte repeatTime, const CopyRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy on dav-2201 moves 16- and 32-bit types");
  twin::VectorOp({"Copy", site}, twin::Op::kCopy, twin::TagOf<T>(),
                 twin::LaneOf(dst, how.dstStride, how.dstRepeatSize),
                 twin::LaneOf(src, how.srcStride, how.srcRepeatSize),
                 twin::Masked(isSetMask, mask, repeatTime.value));
}

// Writes `size` elements of one value to global memory.
template <typename T>
void InitOutput(const GlobalTensor<T> &dst, std::int64_t size, T value = T(0),
                twin::Site site = twin::Here()) {
  twin::FillGm({"InitOutput", site}, twin::TagOf<T>(), dst.gm(), size, &value);
}
template <typename T>
void InitGlobalMemory(const GlobalTensor<T> &dst, std::int64_t size, T value,
                      twin::Site site = twin::Here()) {
  InitOutput(dst, size, value, site);
}
template <typename T>
void Fill(const GlobalTensor<T> &dst, std::int64_t size, T value, twin::Site site = twin::Here()) {
  InitOutput(dst, size, value, site);
}

}  // namespace AscendC
