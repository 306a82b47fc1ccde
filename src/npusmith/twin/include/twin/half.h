// half and bfloat16_t: 16-bit storage; every arithmetic operation rounds to nearest even.
#pragma once

#include <cstdint>
#include <type_traits>

namespace twin {

inline constexpr std::uint32_t FloatBits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
inline constexpr float BitsFloat(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Branch-free in its selects so that loops over it vectorise.
inline constexpr float HalfToFloat(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t body = bits & 0x7FFFu;
  // 2**112 moves the exponent bias from 15 to 127 and normalises subnormals, exactly
  const std::uint32_t finite = FloatBits(BitsFloat(body << 13) * 0x1p112f);
  const std::uint32_t special = (body << 13) | 0x7F800000u;
  return BitsFloat((body >= 0x7C00u ? special : finite) | sign);
}

inline constexpr std::uint16_t FloatToHalf(float value) {
  const std::uint32_t bits = FloatBits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t body = bits & 0x7FFFFFFFu;
  // adding 0.5 to a value below 2**-14 lets the float adder round it to a multiple of 2**-24
  const float lifted = BitsFloat(body < 0x38800000u ? body : 0) + 0.5f;
  const std::uint32_t tiny = FloatBits(lifted) - 0x3F000000u;
  const std::uint32_t normal = (body - 0x38000000u + 0xFFFu + ((body >> 13) & 1u)) >> 13;
  const std::uint32_t over = body > 0x7F800000u ? 0x7E00u : 0x7C00u;
  const std::uint32_t inside = body < 0x38800000u ? tiny : normal;
  return static_cast<std::uint16_t>((body >= 0x47800000u ? over : inside) | sign);
}

inline constexpr float Bf16ToFloat(std::uint16_t bits) {
  return BitsFloat(static_cast<std::uint32_t>(bits) << 16);
}

inline constexpr std::uint16_t FloatToBf16(float value) {
  const std::uint32_t bits = FloatBits(value);
  const std::uint32_t near = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : near);
}

}  // namespace twin

// A 16-bit float. Converts to and from arithmetic types as a built-in type does.
struct half {
  std::uint16_t bits;

  half() = default;
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  constexpr half(T value) : bits(twin::FloatToHalf(static_cast<float>(value))) {}
  constexpr operator float() const { return twin::HalfToFloat(bits); }

  static constexpr half FromBits(std::uint16_t raw) {
    half result(0);
    result.bits = raw;
    return result;
  }
  constexpr half operator-() const { return FromBits(bits ^ 0x8000u); }
  constexpr half operator+() const { return *this; }
  template <typename T>
  constexpr half &operator+=(T value) {
    return *this = half(static_cast<float>(*this) + static_cast<float>(value));
  }
  template <typename T>
  constexpr half &operator-=(T value) {
    return *this = half(static_cast<float>(*this) - static_cast<float>(value));
  }
  template <typename T>
  constexpr half &operator*=(T value) {
    return *this = half(static_cast<float>(*this) * static_cast<float>(value));
  }
  template <typename T>
  constexpr half &operator/=(T value) {
    return *this = half(static_cast<float>(*this) / static_cast<float>(value));
  }
};

namespace twin {

// half with half or an integer stays half; half with float or double becomes the wider type.
template <typename T>
using WithHalf = std::conditional_t<std::is_floating_point_v<T>, T, half>;
template <typename T>
using IfNumber = std::enable_if_t<std::is_arithmetic_v<T>, int>;

}  // namespace twin

// float has more than twice the digits of half, so computing in float and rounding is exact.
#define TWIN_HALF_ARITHMETIC(op)                                                              \
  constexpr half operator op(half a, half b) {                                                \
    return half(static_cast<float>(a) op static_cast<float>(b));                              \
  }                                                                                           \
  template <typename T, twin::IfNumber<T> = 0>                                                \
  constexpr twin::WithHalf<T> operator op(half a, T b) {                                      \
    return twin::WithHalf<T>(static_cast<float>(a) op static_cast<twin::WithHalf<T>>(b));     \
  }                                                                                           \
  template <typename T, twin::IfNumber<T> = 0>                                                \
  constexpr twin::WithHalf<T> operator op(T a, half b) {                                      \
    return twin::WithHalf<T>(static_cast<twin::WithHalf<T>>(a) op static_cast<float>(b));     \
  }
#define TWIN_HALF_COMPARISON(op)                                                              \
  constexpr bool operator op(half a, half b) {                                                \
    return static_cast<float>(a) op static_cast<float>(b);                                    \
  }                                                                                           \
  template <typename T, twin::IfNumber<T> = 0>                                                \
  constexpr bool operator op(half a, T b) {                                                   \
    return static_cast<double>(static_cast<float>(a)) op static_cast<double>(b);              \
  }                                                                                           \
  template <typename T, twin::IfNumber<T> = 0>                                                \
  constexpr bool operator op(T a, half b) {                                                   \
    return static_cast<double>(a) op static_cast<double>(static_cast<float>(b));              \
  }

TWIN_HALF_ARITHMETIC(+)
TWIN_HALF_ARITHMETIC(-)
TWIN_HALF_ARITHMETIC(*)
TWIN_HALF_ARITHMETIC(/)
TWIN_HALF_COMPARISON(<)
TWIN_HALF_COMPARISON(>)
TWIN_HALF_COMPARISON(<=)
TWIN_HALF_COMPARISON(>=)
TWIN_HALF_COMPARISON(==)
TWIN_HALF_COMPARISON(!=)
#undef TWIN_HALF_ARITHMETIC
#undef TWIN_HALF_COMPARISON

// Storage and conversion only: dav-2201 has no bfloat16 arithmetic.
#define __bf16 bfloat16_t  // as the device compiler calls it
struct bfloat16_t {
  std::uint16_t bits;

  bfloat16_t() = default;
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  constexpr bfloat16_t(T value) : bits(twin::FloatToBf16(static_cast<float>(value))) {}
  constexpr explicit bfloat16_t(half value)
      : bits(twin::FloatToBf16(static_cast<float>(value))) {}
  constexpr operator float() const { return twin::Bf16ToFloat(bits); }
};

bfloat16_t operator+(bfloat16_t, bfloat16_t) = delete;
bfloat16_t operator-(bfloat16_t, bfloat16_t) = delete;
bfloat16_t operator*(bfloat16_t, bfloat16_t) = delete;
bfloat16_t operator/(bfloat16_t, bfloat16_t) = delete;
