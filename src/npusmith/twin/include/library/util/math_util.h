// Whole-number arithmetic that operator libraries share in host code. A divisor of 0 gives back
// the dividend (inferred: published tiling relies on it to go on).
#pragma once

#include <cstdint>
#include <type_traits>

namespace Ops {
namespace Base {

template <typename T, typename U>
constexpr T FloorDiv(T value, U by) {
  return by == 0 ? value : static_cast<T>(value / static_cast<T>(by));
}

template <typename T, typename U>
constexpr T CeilDiv(T value, U by) {
  if (by == 0) return value;
  const T divisor = static_cast<T>(by);
  const T whole = static_cast<T>(value / divisor);
  return value % divisor != 0 && (value < 0) == (divisor < 0) ? static_cast<T>(whole + 1) : whole;
}

template <typename T, typename U>
constexpr T CeilAlign(T value, U by) {
  return by == 0 ? value : static_cast<T>(CeilDiv(value, by) * static_cast<T>(by));
}

template <typename T, typename U>
constexpr T FloorAlign(T value, U by) {
  return by == 0 ? value : static_cast<T>(FloorDiv(value, by) * static_cast<T>(by));
}

inline bool IsFloatEqual(float one, float other) {
  const float apart = one - other;
  return (apart < 0 ? -apart : apart) <= 1e-6F;  // guess: the library's tolerance is not published
}

}  // namespace Base
}  // namespace Ops
