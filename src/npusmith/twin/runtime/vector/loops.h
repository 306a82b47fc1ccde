// Contiguous loops, one per operation and element type: the only place where values are computed.
#pragma once

#include <limits>

#include "vector/walk.h"

#if defined(__clang__)
#define TWIN_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TWIN_LOOP _Pragma("GCC ivdep")  // operands are the same piece of UB or disjoint
#endif

namespace twin {

// How an element is held while computing: half in float, everything else as itself.
template <typename T>
struct Widened {
  using Type = T;
  static Type Load(T value) { return value; }
  static T Store(Type value) { return value; }
};
template <>
struct Widened<half> {
  using Type = float;
  static float Load(half value) { return HalfToFloat(value.bits); }
  static half Store(float value) {
    half result;
    result.bits = FloatToHalf(value);
    return result;
  }
};

// An element in saturating mode (doc: boundary values): what leaves the range stays at its end, NaN
// is 0. Integers are exact until they are stored.
template <typename T>
struct Capped {
  T raw;
};
template <>
struct Widened<Capped<half>> {
  using Type = float;
  static float Load(Capped<half> value) { return HalfToFloat(value.raw.bits); }
  static Capped<half> Store(float value) {
    const std::uint16_t bits = FloatToHalf(value);
    const unsigned body = bits & 0x7FFFu;
    const unsigned inside = body == 0x7C00u ? (bits & 0x8000u) | 0x7BFFu : bits;
    Capped<half> result;
    result.raw.bits = static_cast<std::uint16_t>(body > 0x7C00u ? 0 : inside);
    return result;
  }
};
template <typename T>
struct WidenedInteger {
  using Type = std::int64_t;
  static Type Load(Capped<T> value) { return value.raw; }
  static Capped<T> Store(Type value) {
    constexpr Type kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    return {static_cast<T>(value < kLow ? kLow : value > kHigh ? kHigh : value)};
  }
};
template <>
struct Widened<Capped<std::int16_t>> : WidenedInteger<std::int16_t> {};
template <>
struct Widened<Capped<std::int32_t>> : WidenedInteger<std::int32_t> {};

// Loops by operation; null when the operation does not take that type.
Loop ArithmeticLoop(Op op, DType type);
Loop ScalarLoop(Op op, DType dst, DType src);
Loop MixedLoop(Op op);  // half sources, float destination
// The same in saturating mode; null when the mode changes nothing before the result is stored.
Loop CappedLoop(Op op, DType type);
// Caps 16-bit floats in place; null for other types.
Loop CapLoop(DType type);
Loop MathLoop(Op op, DType type);
Loop CastLoop(DType dst, DType src, AscendC::RoundMode mode);
Loop MoveLoop(int size);
Loop FillLoop(int size);

}  // namespace twin
