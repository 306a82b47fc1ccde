// Moves that reorder elements inside UB: Brcb, Gather, GatherMask, transposes, Sort32.
#pragma once

#include "twin/vector.h"

namespace AscendC {

template <typename T>
void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, twin::Byte repeatTime,
          const BrcbRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Brcb on dav-2201 takes 16- and 32-bit types");
  twin::BrcbOp({"Brcb", site}, twin::TagOf<T>(), dst.view(), src.view(), repeatTime.value,
               how.dstBlkStride, how.dstRepStride);
}

// dst[i] = the element at byte offsets[i] + base of src. Bytes compile, for branches that a library's
// kernel never runs (as published ones for Atlas A2 have), and are refused when they run.
template <typename T>
void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src,
            const LocalTensor<std::uint32_t> &offsets, std::uint32_t base, std::int64_t count,
            twin::Site site = twin::Here()) {
  static_assert(sizeof(T) <= 4, "Gather on dav-2201 takes 16- and 32-bit types");
  twin::GatherOp({"Gather", site}, twin::TagOf<T>(), {dst.view()}, src.view(), offsets.view(),
                 base, twin::Counted(count));
}
template <typename T, typename Mask = std::uint64_t>
void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src,
            const LocalTensor<std::uint32_t> &offsets, std::uint32_t base, Mask mask,
            twin::Byte repeatTime, twin::Word dstRepStride, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) <= 4, "Gather on dav-2201 takes 16- and 32-bit types");
  twin::GatherOp({"Gather", site}, twin::TagOf<T>(),
                 {dst.view(), 1, Cut(dstRepStride, "dstRepStride", site)}, src.view(),
                 offsets.view(), base, twin::Masked(true, mask, repeatTime.value));
}
// One byte offset a 32-byte block.
template <typename T>
void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src,
             const LocalTensor<std::uint32_t> &offsets, twin::Byte repeatTime,
             const GatherRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::uint16_t, std::uint32_t>,
                "Gatherb on dav-2201 takes uint16_t or uint32_t");
  twin::GatherBlocks({"Gatherb", site}, twin::TagOf<T>(), dst.view(), src.view(), offsets.view(),
                     repeatTime.value, how.dstBlkStride, how.dstRepStride);
}

// Collects the elements whose bit is set; rsvdCnt is how many there were.
template <typename T, typename U>
void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                const LocalTensor<U> &pattern, bool reduceMode, std::uint32_t mask,
                const GatherMaskParams &how, std::uint64_t &rsvdCnt,
                twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == sizeof(U) && twin::kOneOf<U, std::uint16_t, std::uint32_t>,
                "GatherMask takes uint16_t bits for 16-bit data, uint32_t bits for 32-bit data");
  rsvdCnt = twin::GatherMaskOp({"GatherMask", site}, twin::TagOf<T>(), dst.view(), src.view(),
                               &pattern.view(), 0,
                               {reduceMode, mask, how.src0BlockStride, how.repeatTimes,
                                how.src0RepeatStride, how.src1RepeatStride});
}
template <typename T>
void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src, twin::Byte pattern,
                bool reduceMode, std::uint32_t mask, const GatherMaskParams &how,
                std::uint64_t &rsvdCnt, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4,
                "GatherMask on dav-2201 takes 16- and 32-bit types");
  rsvdCnt = twin::GatherMaskOp({"GatherMask", site}, twin::TagOf<T>(), dst.view(), src.view(),
                               nullptr, static_cast<int>(pattern.value),
                               {reduceMode, mask, how.src0BlockStride, how.repeatTimes,
                                how.src0RepeatStride, how.src1RepeatStride});
}

// 16 x 16 elements of 16 bits.
template <typename T>
void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
               twin::Site site = twin::Here()) {
  static_assert(sizeof(T) == 2, "Transpose on dav-2201 takes 16-bit types");
  twin::TransposeOp({"Transpose", site}, dst.view(), src.view());
}

template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dst)[16], const LocalTensor<T> (&src)[16],
                    const TransDataTo5HDParams &how, twin::Site site = twin::Here()) {
  static_assert(sizeof(T) <= 4, "TransDataTo5HD on dav-2201 takes 8-, 16- and 32-bit types");
  twin::View to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = dst[i].view();
    from[i] = src[i].view();
  }
  twin::Trans5HD({"TransDataTo5HD", site}, twin::TagOf<T>(), to, from, how.dstHighHalf,
                 how.srcHighHalf, how.repeatTimes, how.dstRepStride, how.srcRepStride);
}
// The same with UB addresses instead of tensors.
template <typename T>
void TransDataTo5HD(std::uint64_t dst[16], std::uint64_t src[16], const TransDataTo5HDParams &how,
                    twin::Site site = twin::Here()) {
  twin::View to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = twin::RawView(reinterpret_cast<const void *>(dst[i]));
    from[i] = twin::RawView(reinterpret_cast<const void *>(src[i]));
  }
  twin::Trans5HD({"TransDataTo5HD", site}, twin::TagOf<T>(), to, from, how.dstHighHalf,
                 how.srcHighHalf, how.repeatTimes, how.dstRepStride, how.srcRepStride);
}

// The same with pointers into UB.
template <typename T>
void TransDataTo5HDImpl(__ubuf__ T *dst[16], __ubuf__ T *src[16], const TransDataTo5HDParams &how,
                        twin::Site site = twin::Here()) {
  twin::View to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = twin::RawView(dst[i]);
    from[i] = twin::RawView(src[i]);
  }
  twin::Trans5HD({"TransDataTo5HD", site}, twin::TagOf<T>(), to, from, how.dstHighHalf,
                 how.srcHighHalf, how.repeatTimes, how.dstRepStride, how.srcRepStride);
}

// 32 scores a repeat, descending, as pairs of score and index.
template <typename T>
void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src,
            const LocalTensor<std::uint32_t> &index, std::int64_t repeatTime,
            twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float>, "Sort32 on dav-2201 takes half or float");
  twin::Sort32Op({"Sort32", site}, twin::TagOf<T>(), dst.view(), src.view(), index.view(),
                 repeatTime);
}

}  // namespace AscendC
