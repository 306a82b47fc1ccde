// Compound instructions that change the type on the way: AddReluCast, MulCast, CastDequant and kin.
#pragma once

#include "twin/cast.h"
#include "twin/control.h"

namespace twin {

enum class Compound : std::uint8_t { kAddReluCast, kSubReluCast, kMulCast, kAddDeqRelu };
void CompoundOp(const Call &call, Compound op, DType dstType, DType srcType, const Lane &dst,
                const Lane &a, const Lane &b, const Walk &walk);
void DequantOp(const Call &call, bool isSigned, bool table, bool lowerHalf, const Lane &dst,
               const Lane &src, const Walk &walk);

struct Interpolation {
  std::int64_t horizontal, vertical;  // iterations
  bool each;                          // a weight for each block, not for each iteration
  std::int64_t block, pitch;          // of dst: in blocks, and in elements between vertical steps
};
void Interpolate(const Call &call, const View &dst, const View &src, const View &offsets,
                 const View &weights, const View &scratch, const Walk &walk,
                 const Interpolation &how);

template <typename To, typename From>
inline constexpr bool kCanReluCast =
    (std::is_same_v<To, half> && std::is_same_v<From, float>) ||
    (std::is_same_v<To, std::int8_t> && kOneOf<From, half, std::int16_t>);

template <typename T, typename U>
constexpr void CheckDequant() {
  static_assert((std::is_same_v<U, std::int16_t> && kOneOf<T, std::int8_t, std::uint8_t>) ||
                    (std::is_same_v<U, std::int32_t> && std::is_same_v<T, half>),
                "CastDequant on dav-2201 takes int16_t to int8_t or uint8_t, or int32_t to half");
}

}  // namespace twin

namespace AscendC {

#define TWIN_COMPOUND(name, op, test, legal)                                                      \
  template <typename T, typename U, bool isSetMask = true>                                        \
  void name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,    \
            std::int64_t count, twin::Site site = twin::Here()) {                                 \
    static_assert(test, #name " on dav-2201 takes " legal);                                       \
    twin::CompoundOp({#name, site}, op, twin::TagOf<T>(), twin::TagOf<U>(), {dst.view()},         \
                     {src0.view()}, {src1.view()}, twin::Counted(count));                         \
  }                                                                                               \
  template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>         \
  void name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,    \
            Mask mask, twin::Byte repeatTime, const BinaryRepeatParams &how,                      \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(test, #name " on dav-2201 takes " legal);                                       \
    twin::CompoundOp({#name, site}, op, twin::TagOf<T>(), twin::TagOf<U>(),                       \
                     twin::DstOf(dst.view(), how), twin::Src0Of(src0.view(), how),                \
                     twin::Src1Of(src1.view(), how),                                              \
                     twin::Masked(isSetMask, mask, repeatTime.value));                            \
  }

TWIN_COMPOUND(AddReluCast, twin::Compound::kAddReluCast, (twin::kCanReluCast<T, U>),
              "float to half, half to int8_t or int16_t to int8_t")
TWIN_COMPOUND(SubReluCast, twin::Compound::kSubReluCast, (twin::kCanReluCast<T, U>),
              "float to half, half to int8_t or int16_t to int8_t")
TWIN_COMPOUND(MulCast, twin::Compound::kMulCast,
              (twin::kOneOf<T, std::int8_t, std::uint8_t> && std::is_same_v<U, half>),
              "half to int8_t or uint8_t")
TWIN_COMPOUND(AddDeqRelu, twin::Compound::kAddDeqRelu,
              (std::is_same_v<T, half> && std::is_same_v<U, std::int32_t>), "int32_t to half")
#undef TWIN_COMPOUND

// ---- CastDequant, once called CastDeq

#define TWIN_DEQUANT(name)                                                                        \
  template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>                  \
  void name(const LocalTensor<T> &dst, const LocalTensor<U> &src, std::uint32_t count,            \
            twin::Site site = twin::Here()) {                                                     \
    twin::CheckDequant<T, U>();                                                                   \
    if constexpr (std::is_same_v<T, half>) {                                                      \
      twin::CastOp({#name, site}, twin::TagOf<T>(), twin::TagOf<U>(), RoundMode::CAST_NONE,       \
                   {dst.view()}, {src.view()}, twin::Counted(count));                             \
    } else {                                                                                      \
      twin::DequantOp({#name, site}, std::is_signed_v<T>, isVecDeq, halfBlock, {dst.view()},      \
                      {src.view()}, twin::Counted(count));                                        \
    }                                                                                             \
  }                                                                                               \
  template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true,                  \
            bool halfBlock = true, typename Mask = std::int32_t>                                  \
  void name(const LocalTensor<T> &dst, const LocalTensor<U> &src, Mask mask,                      \
            twin::Byte repeatTime, const UnaryRepeatParams &how,                                  \
            twin::Site site = twin::Here()) {                                                     \
    twin::CheckDequant<T, U>();                                                                   \
    if constexpr (std::is_same_v<T, half>) {                                                      \
      twin::CastOp({#name, site}, twin::TagOf<T>(), twin::TagOf<U>(), RoundMode::CAST_NONE,       \
                   twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how),                    \
                   twin::Masked(isSetMask, mask, repeatTime.value));                           \
    } else {                                                                                      \
      twin::DequantOp({#name, site}, std::is_signed_v<T>, isVecDeq, halfBlock,                    \
                      twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how),                 \
                      twin::Masked(isSetMask, mask, repeatTime.value));                        \
    }                                                                                             \
  }

TWIN_DEQUANT(CastDequant)
TWIN_DEQUANT(CastDeq)
#undef TWIN_DEQUANT

// ---- what SetDeqScale says to CastDequant

struct VdeqInfo {
  float vdeqScale[16] = {};
  std::int16_t vdeqOffset[16] = {};
  bool vdeqSignMode[16] = {};

  VdeqInfo() = default;
  VdeqInfo(const float scales[16], const std::int16_t offsets[16], const bool signs[16]) {
    for (int i = 0; i < 16; ++i) {
      vdeqScale[i] = scales[i];
      vdeqOffset[i] = offsets[i];
      vdeqSignMode[i] = signs[i];
    }
  }
};

}  // namespace AscendC

namespace twin {

inline std::uint64_t DeqWord(float scale, std::int16_t offset, bool sign) {
  return FloatBits(scale) | (static_cast<std::uint64_t>(offset) & 0x1FFu) << 37 |
         static_cast<std::uint64_t>(sign) << 46;
}

}  // namespace twin

namespace AscendC {

inline void SetDeqScale(float scale, std::int16_t offset, bool signMode,
                        twin::Site site = twin::Here()) {
  twin::SetDeqWord({"SetDeqScale", site}, twin::DeqWord(scale, offset, signMode));
}
template <typename T>
void SetDeqScale(const LocalTensor<T> &vdeq, const VdeqInfo &info,
                 twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, std::uint64_t>, "SetDeqScale takes a tensor of uint64_t");
  std::uint64_t words[16];
  for (int i = 0; i < 16; ++i) {
    words[i] = twin::DeqWord(info.vdeqScale[i], info.vdeqOffset[i], info.vdeqSignMode[i]);
  }
  twin::SetDeqTable({"SetDeqScale", site}, vdeq.view(), words);
}

// ---- BilinearInterpolation: weighted sums of blocks

template <typename T, typename Mask>
void BilinearInterpolation(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                           const LocalTensor<std::uint32_t> &src0Offset,
                           const LocalTensor<T> &src1, Mask mask, twin::Byte hRepeat,
                           bool repeatMode, twin::Word dstBlkStride, twin::Word vROffset,
                           twin::Byte vRepeat, const LocalTensor<std::uint8_t> &sharedTmpBuffer,
                           twin::Site site = twin::Here()) {
  static_assert(std::is_same_v<T, half>, "BilinearInterpolation on dav-2201 takes half");
  twin::Interpolate({"BilinearInterpolation", site}, dst.view(), src0.view(), src0Offset.view(),
                    src1.view(), sharedTmpBuffer.view(), twin::Masked(true, mask, 1),
                    {hRepeat.value, vRepeat.value, repeatMode, dstBlkStride.value,
                     vROffset.value});
}

}  // namespace AscendC
