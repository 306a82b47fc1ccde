// Cast, scalar conversions and the dequantisation scale.
#pragma once

#include "twin/vector.h"

namespace twin {

// Source: Ascend C API reference, Cast; the rounding modes of a pair are checked when it runs.
template <typename To, typename From>
constexpr bool CanCast() {
  using namespace std;
  if constexpr (is_same_v<From, float>) {
    return kOneOf<To, half, bfloat16_t, int16_t, int32_t, int64_t, float>;
  } else if constexpr (is_same_v<From, half>) {
    return kOneOf<To, float, int8_t, uint8_t, int16_t, int32_t, int4b_t>;
  } else if constexpr (is_same_v<From, bfloat16_t>) {
    return kOneOf<To, float, int32_t>;
  } else if constexpr (kOneOf<From, int8_t, uint8_t, int4b_t>) {
    return is_same_v<To, half>;
  } else if constexpr (is_same_v<From, int16_t>) {
    return kOneOf<To, half, float>;
  } else if constexpr (is_same_v<From, int32_t>) {
    return kOneOf<To, float, int16_t, int64_t, half>;
  } else {
    return is_same_v<From, int64_t> && kOneOf<To, int32_t, float>;
  }
}

// int4b_t is half a byte: a conversion of its own.
void CastInt4(const Call &call, bool toInt4, AscendC::RoundMode mode, const Lane &dst,
              const Lane &src, const Walk &walk);

template <typename To, typename From>
void CastAny(const Call &call, AscendC::RoundMode mode, const Lane &dst, const Lane &src,
             const Walk &walk) {
  static_assert(CanCast<To, From>(), "Cast on dav-2201 has no such pair of types; go via float");
  if constexpr (kOneOf<int4b_t, To, From>) {
    CastInt4(call, std::is_same_v<To, int4b_t>, mode, dst, src, walk);
  } else {
    CastOp(call, TagOf<To>(), TagOf<From>(), mode, dst, src, walk);
  }
}

}  // namespace twin

namespace AscendC {

template <typename T, typename U>
void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, RoundMode mode,
          std::int64_t count, twin::Site site = twin::Here()) {
  twin::CastAny<T, U>({"Cast", site}, mode, {dst.view()}, {src.view()}, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, RoundMode mode, Mask mask,
          twin::Byte repeatTime, const UnaryRepeatParams &how, twin::Site site = twin::Here()) {
  twin::CastAny<T, U>({"Cast", site}, mode, twin::DstOf(dst.view(), how),
                      twin::SrcOf(src.view(), how),
                      twin::Masked(isSetMask, mask, repeatTime.value));
}

// The scale that Cast from int32_t to half multiplies with.
inline void SetDeqScale(half scale, twin::Site site = twin::Here()) {
  twin::SetDeq({"SetDeqScale", site}, static_cast<float>(scale));
}

inline float Cast(const bfloat16_t &value) { return static_cast<float>(value); }
inline float ToFloat(bfloat16_t value) { return static_cast<float>(value); }
inline bfloat16_t ToBfloat16(float value) { return bfloat16_t(value); }

}  // namespace AscendC
