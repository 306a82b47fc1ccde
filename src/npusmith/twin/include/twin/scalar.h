// Scalar bit operations and conversions.
#pragma once

#include "twin/cast.h"

namespace AscendC {

// Bits of `value` that equal countValue (0 or 1).
template <int countValue>
std::int64_t ScalarGetCountOfValue(std::uint64_t value) {
  static_assert(countValue == 0 || countValue == 1, "bits are 0 or 1");
  return __builtin_popcountll(countValue == 1 ? value : ~value);
}
template <int countValue>
std::int64_t GetBitCount(std::uint64_t value) {
  return ScalarGetCountOfValue<countValue>(value);
}
inline std::int64_t ScalarCountLeadingZero(std::uint64_t value) {
  return value == 0 ? 64 : __builtin_clzll(value);
}
// Bits after the sign that repeat it.
inline std::int64_t CountBitsCntSameAsSignBit(std::int64_t value) {
  return ScalarCountLeadingZero(static_cast<std::uint64_t>(value < 0 ? ~value : value)) - 1;
}
// Position of the first bit that equals countValue; -1 when there is none.
template <int countValue>
std::int64_t ScalarGetSFFValue(std::uint64_t value) {
  static_assert(countValue == 0 || countValue == 1, "bits are 0 or 1");
  const std::uint64_t bits = countValue == 1 ? value : ~value;
  return bits == 0 ? -1 : __builtin_ctzll(bits);
}

// A float to half or int32_t in a given direction.
template <typename From, typename To, RoundMode mode>
To ScalarCast(From value) {
  static_assert(std::is_same_v<From, float> && twin::kOneOf<To, half, std::int32_t>,
                "ScalarCast takes float to half or int32_t");
  if constexpr (std::is_same_v<To, half>) {
    static_assert(mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT,
                  "ScalarCast to half rounds to nearest even");
    return half(value);
  } else {
    const double exact = static_cast<double>(value);
    const double down = __builtin_floor(exact), up = __builtin_ceil(exact);
    if (mode == RoundMode::CAST_FLOOR) return static_cast<To>(down);
    if (mode == RoundMode::CAST_CEIL) return static_cast<To>(up);
    if (mode == RoundMode::CAST_TRUNC) return static_cast<To>(exact < 0 ? up : down);
    if (mode == RoundMode::CAST_ROUND) {
      return static_cast<To>(exact < 0 ? -__builtin_floor(0.5 - exact)
                                       : __builtin_floor(exact + 0.5));
    }
    return static_cast<To>(__builtin_nearbyint(exact));
  }
}

}  // namespace AscendC
