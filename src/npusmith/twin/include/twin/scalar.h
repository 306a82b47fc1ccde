// Scalar bit operations and conversions.
#pragma once

#include "twin/cast.h"

namespace twin {

// The neighbour towards zero with its last bit set, unless the value is exact (doc: CAST_ODD).
template <typename To>
To ToOdd(float value) {
  To near(value);
  const auto back = static_cast<float>(near);
  if (back == value || value != value) return near;
  const bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  if (away) near.bits = static_cast<std::uint16_t>(near.bits - 1);
  near.bits = static_cast<std::uint16_t>(near.bits | 1u);
  return near;
}

}  // namespace twin

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

inline std::int64_t CountLeadingZero(std::uint64_t value) { return ScalarCountLeadingZero(value); }
template <int countValue>
std::int64_t GetSFFValue(std::uint64_t value) {
  return ScalarGetSFFValue<countValue>(value);
}

// A float to half or bfloat16_t (rounded to odd) or to int32_t in a given direction.
template <typename From, typename To, RoundMode mode>
To ScalarCast(From value) {
  static_assert(std::is_same_v<From, float> && twin::kOneOf<To, half, bfloat16_t, std::int32_t>,
                "ScalarCast on dav-2201 takes float to half, bfloat16_t or int32_t");
  constexpr bool kWhole = std::is_same_v<To, std::int32_t>;
  static_assert(kWhole == (mode != RoundMode::CAST_ODD && mode != RoundMode::CAST_NONE) ||
                    (!kWhole && mode != RoundMode::CAST_TRUNC),
                "ScalarCast rounds to int32_t by ROUND, CEIL, FLOOR or RINT, to half by ODD");
  if constexpr (!kWhole) {
    return mode == RoundMode::CAST_ODD ? twin::ToOdd<To>(value) : To(value);
  } else {
    const double exact = static_cast<double>(value);
    double whole = __builtin_nearbyint(exact);
    if (mode == RoundMode::CAST_FLOOR) whole = __builtin_floor(exact);
    if (mode == RoundMode::CAST_CEIL) whole = __builtin_ceil(exact);
    if (mode == RoundMode::CAST_TRUNC) whole = __builtin_trunc(exact);
    if (mode == RoundMode::CAST_ROUND) whole = __builtin_round(exact);
    if (whole != whole) return 0;
    return whole >= 2147483647.0 ? 2147483647 : whole <= -2147483648.0 ? -2147483647 - 1
                                                                       : static_cast<To>(whole);
  }
}
// The same under its present name.
template <typename From, typename To, RoundMode mode>
To Cast(const From &value) {
  return ScalarCast<From, To, mode>(value);
}

// Global memory past the scalar unit's cache.
template <typename T>
void WriteGmByPassDCache(__gm__ T *addr, T value, twin::Site site = twin::Here()) {
  static_assert(std::is_integral_v<T>, "WriteGmByPassDCache takes integers of 8 to 64 bits");
  twin::WriteGm({"WriteGmByPassDCache", site},
                {reinterpret_cast<std::uint8_t *>(const_cast<std::remove_cv_t<T> *>(addr)), -1, 0, true}, 0,
                sizeof(T), &value);
}
template <typename T>
T ReadGmByPassDCache(__gm__ T *addr, twin::Site site = twin::Here()) {
  static_assert(std::is_integral_v<T>, "ReadGmByPassDCache takes integers of 8 to 64 bits");
  std::remove_cv_t<T> value;
  twin::ReadGm({"ReadGmByPassDCache", site},
               {reinterpret_cast<std::uint8_t *>(const_cast<std::remove_cv_t<T> *>(addr)), -1, 0, true}, 0,
               sizeof(T), &value);
  return value;
}

// ---- what the core is, and where it is

inline void GetArchVersion(std::uint32_t &coreVersion) { coreVersion = 0x220; }
// No addresses of instructions on the twin: a number that grows with the work done.
inline std::int64_t GetProgramCounter() { return twin::Cycles(); }
inline std::int64_t GetICachePreloadStatus() { return 0; }

// A range of UB that somebody is not to touch; the hardware would raise an exception.
struct CheckLocalMemoryIAParam {
  std::uint8_t enableBit = 0;
  std::uint32_t startAddr = 0, endAddr = 0;
  bool isScalarRead = false, isScalarWrite = false;
  bool isVectorRead = false, isVectorWrite = false;
  bool isMteRead = false, isMteWrite = false;
  bool isEnable = false;

  CheckLocalMemoryIAParam() = default;
  CheckLocalMemoryIAParam(std::uint8_t bit, std::uint32_t start, std::uint32_t end,
                          bool scalarRead, bool scalarWrite, bool vectorRead, bool vectorWrite,
                          bool mteRead, bool mteWrite, bool enable)
      : enableBit(bit), startAddr(start), endAddr(end), isScalarRead(scalarRead),
        isScalarWrite(scalarWrite), isVectorRead(vectorRead), isVectorWrite(vectorWrite),
        isMteRead(mteRead), isMteWrite(mteWrite), isEnable(enable) {}
};
// Taken, and not watched: the twin checks every access against its tensor anyway.
inline void CheckLocalMemoryIA(const CheckLocalMemoryIAParam &) {}

}  // namespace AscendC
