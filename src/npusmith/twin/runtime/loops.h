// Contiguous loops, one per operation and element type: the only place where values are computed.
#pragma once

#include "walk.h"

#if defined(__clang__)
#define TWIN_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TWIN_LOOP _Pragma("GCC ivdep")  // operands are the same piece of UB or disjoint
#endif

// Loops are compiled twice and the better one is chosen at load time; contraction is off, so both
// give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TWIN_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TWIN_WIDE
#endif

namespace twin {

// How an element is held while computing: half in float, everything else as itself.
template <typename T>
struct Held {
  using Type = T;
  static Type Load(T value) { return value; }
  static T Store(Type value) { return value; }
};
template <>
struct Held<half> {
  using Type = float;
  static float Load(half value) { return HalfToFloat(value.bits); }
  static half Store(float value) {
    half result;
    result.bits = FloatToHalf(value);
    return result;
  }
};

// Loops by operation; null when the operation does not take that type.
Loop ArithmeticLoop(Op op, DType type);
Loop ScalarLoop(Op op, DType dst, DType src);
Loop MixedLoop(Op op);  // half sources, float destination
Loop MathLoop(Op op, DType type);
Loop CastLoop(DType dst, DType src, AscendC::RoundMode mode);
Loop MoveLoop(int size);
Loop FillLoop(int size);

}  // namespace twin
