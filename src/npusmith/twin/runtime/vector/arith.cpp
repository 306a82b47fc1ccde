// Arithmetic, comparisons of magnitude, bit operations: rounded once per operation.
#include <cmath>

#include "vector/loops.h"

namespace twin {

namespace {

template <typename T>
constexpr bool kFloat = std::is_floating_point_v<T>;
// Integer arithmetic wraps: it is done unsigned.
template <typename T>
using Wrap = std::make_unsigned_t<T>;

struct Plus {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kFloat<T>) return a + b;
    else return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
};
struct Minus {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kFloat<T>) return a - b;
    else return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
struct Times {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kFloat<T>) return a * b;
    else if constexpr (sizeof(T) == 8) return a * b;  // saturating mode: exact before it is cut
    // 16-bit operands promote to int, whose overflow would be undefined
    else return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  }
};
struct Over {
  template <typename T>
  static T Of(T a, T b) { return a / b; }
};
struct Larger {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (!kFloat<T>) return a > b ? a : b;
    // equal zeros of different sign: the positive one (doc: boundary values of Max)
    else if (a == b) return BitsFloat(FloatBits(a) & FloatBits(b));
    else return (a > b || a != a) ? a : b;
  }
};
struct Smaller {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (!kFloat<T>) return a < b ? a : b;
    else if (a == b) return BitsFloat(FloatBits(a) | FloatBits(b));
    else return (a < b || a != a) ? a : b;
  }
};
struct Relu {
  template <typename T>
  static T Of(T a) { return a > 0 ? a : (a != a ? a : T(0)); }
};
struct PlusRelu {
  template <typename T>
  static T Of(T a, T b) { return Relu::Of(Plus::Of(a, b)); }
};
struct MinusRelu {
  template <typename T>
  static T Of(T a, T b) { return Relu::Of(Minus::Of(a, b)); }
};
struct Both {
  template <typename T>
  static T Of(T a, T b) { return static_cast<T>(a & b); }
};
struct Either {
  template <typename T>
  static T Of(T a, T b) { return static_cast<T>(a | b); }
};
struct OneOf {
  template <typename T>
  static T Of(T a, T b) { return static_cast<T>(a ^ b); }
};
struct Leaky {
  template <typename T>
  static T Of(T a, T s) { return a > 0 ? a : a * s; }
};
struct Invert {
  template <typename T>
  static T Of(T a) { return static_cast<T>(~a); }
};
struct Magnitude {
  template <typename T>
  static T Of(T a) { return std::fabs(a); }
};

template <typename T, typename F>
void Two(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto *y = static_cast<const T *>(b);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = Widened<T>::Store(F::Of(Widened<T>::Load(x[i]), Widened<T>::Load(y[i])));
  }
}

template <typename T, typename F>
void One(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Widened<T>::Store(F::Of(Widened<T>::Load(x[i])));
}

template <typename T, typename F>
void WithScalar(void *d, const void *a, const void *, const void *scalar,
                          std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto s = Widened<T>::Load(*static_cast<const T *>(scalar));
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Widened<T>::Store(F::Of(Widened<T>::Load(x[i]), s));
}

// The product is rounded to the element type before it is added (doc: boundary values).
template <typename T>
auto Product(typename Widened<T>::Type a, typename Widened<T>::Type b) {
  return Widened<T>::Load(Widened<T>::Store(a * b));
}

enum class Order { kAddToDst, kTimesDst, kTimesDstRelu };

template <typename T, Order order>
void Three(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto *y = static_cast<const T *>(b);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    const auto old = Widened<T>::Load(to[i]), u = Widened<T>::Load(x[i]),
               v = Widened<T>::Load(y[i]);
    if constexpr (order == Order::kAddToDst) {
      to[i] = Widened<T>::Store(old + Product<T>(u, v));
    } else {
      const auto sum = Product<T>(u, old) + v;
      to[i] = Widened<T>::Store(order == Order::kTimesDst ? sum : Relu::Of(sum));
    }
  }
}

template <typename T>
void Axpy(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto s = Widened<T>::Load(*static_cast<const T *>(scalar));
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = Widened<T>::Store(Widened<T>::Load(to[i]) + Product<T>(Widened<T>::Load(x[i]), s));
  }
}

// half sources, float accumulator: products of two halves are exact in float.
void MixedAxpy(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<float *>(d);
  const auto *x = static_cast<const half *>(a);
  const float s = Widened<half>::Load(*static_cast<const half *>(scalar));
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] + Widened<half>::Load(x[i]) * s;
}

void MixedMulAdd(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<float *>(d);
  const auto *x = static_cast<const half *>(a);
  const auto *y = static_cast<const half *>(b);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = to[i] + Widened<half>::Load(x[i]) * Widened<half>::Load(y[i]);
  }
}

template <typename T, bool left, bool rounds>
void Shift(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto s = static_cast<std::int64_t>(*static_cast<const T *>(scalar));
  const std::int64_t half = rounds && s > 0 ? std::int64_t{1} << (s - 1) : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto wide = static_cast<std::int64_t>(x[i]);
    to[i] = static_cast<T>(left ? static_cast<std::int64_t>(static_cast<std::uint64_t>(wide) << s)
                                : (wide + half) >> s);
  }
}

template <typename F>
Loop ForArith(DType type) {
  switch (type) {
    case DType::kF32: return Two<float, F>;
    case DType::kF16: return Two<half, F>;
    case DType::kI16: return Two<std::int16_t, F>;
    case DType::kI32: return Two<std::int32_t, F>;
    default: return nullptr;
  }
}

template <typename F>
Loop ForBits(DType type) {
  if (type == DType::kI16) return Two<std::int16_t, F>;
  return type == DType::kU16 ? Two<std::uint16_t, F> : nullptr;
}

template <typename F>
Loop ForFloats(DType type) {
  if (type == DType::kF32) return Two<float, F>;
  return type == DType::kF16 ? Two<half, F> : nullptr;
}

template <typename F>
Loop ForScalar(DType type) {
  switch (type) {
    case DType::kF32: return WithScalar<float, F>;
    case DType::kF16: return WithScalar<half, F>;
    case DType::kI16: return WithScalar<std::int16_t, F>;
    case DType::kI32: return WithScalar<std::int32_t, F>;
    default: return nullptr;
  }
}

template <bool left, bool rounds>
Loop ForShift(DType type) {
  switch (type) {
    case DType::kI16: return Shift<std::int16_t, left, rounds>;
    case DType::kU16: return Shift<std::uint16_t, left, rounds>;
    case DType::kI32: return Shift<std::int32_t, left, rounds>;
    case DType::kU32: return Shift<std::uint32_t, left, rounds>;
    default: return nullptr;
  }
}

template <Order order>
Loop ForThree(DType type) {
  if (type == DType::kF32) return Three<float, order>;
  return type == DType::kF16 ? Three<half, order> : nullptr;
}

}  // namespace

Loop ArithmeticLoop(Op op, DType type) {
  const bool single = type == DType::kF32;
  switch (op) {
    case Op::kAdd: return ForArith<Plus>(type);
    case Op::kSub: return ForArith<Minus>(type);
    case Op::kMul: return ForArith<Times>(type);
    case Op::kDiv: return ForFloats<Over>(type);
    case Op::kMax: return ForArith<Larger>(type);
    case Op::kMin: return ForArith<Smaller>(type);
    case Op::kAnd: return ForBits<Both>(type);
    case Op::kOr: return ForBits<Either>(type);
    case Op::kXor: return ForBits<OneOf>(type);
    case Op::kAddRelu: return ForArith<PlusRelu>(type);
    case Op::kSubRelu: return ForArith<MinusRelu>(type);
    case Op::kMulAddDst: return ForThree<Order::kAddToDst>(type);
    case Op::kFusedMulAdd: return ForThree<Order::kTimesDst>(type);
    case Op::kFusedMulAddRelu: return ForThree<Order::kTimesDstRelu>(type);
    case Op::kNot:
      return type == DType::kI16 ? One<std::int16_t, Invert> : One<std::uint16_t, Invert>;
    case Op::kAbs: return single ? One<float, Magnitude> : One<half, Magnitude>;
    case Op::kRelu:
      if (type == DType::kI32) return One<std::int32_t, Relu>;
      return single ? One<float, Relu> : One<half, Relu>;
    case Op::kCopy: return MoveLoop(SizeOf(type));
    default: return MathLoop(op, type);
  }
}

Loop ScalarLoop(Op op, DType dst, DType src) {
  switch (op) {
    case Op::kAdds: return ForScalar<Plus>(dst);
    case Op::kMuls: return ForScalar<Times>(dst);
    case Op::kMaxs: return ForScalar<Larger>(dst);
    case Op::kMins: return ForScalar<Smaller>(dst);
    case Op::kLeakyRelu:
      return dst == DType::kF32 ? WithScalar<float, Leaky> : WithScalar<half, Leaky>;
    case Op::kShiftLeft: return ForShift<true, false>(dst);
    case Op::kShiftRight: return ForShift<false, false>(dst);
    case Op::kShiftRightRound: return ForShift<false, true>(dst);
    case Op::kAxpy:
      if (dst != src) return MixedAxpy;
      return dst == DType::kF32 ? Axpy<float> : Axpy<half>;
    default: return MathLoop(op, dst);
  }
}

namespace {

template <typename F>
Loop ForCapped(DType type) {
  if (type == DType::kI16) return Two<Capped<std::int16_t>, F>;
  return type == DType::kI32 ? Two<Capped<std::int32_t>, F> : nullptr;
}

template <typename F>
Loop ForCappedScalar(DType type) {
  if (type == DType::kI16) return WithScalar<Capped<std::int16_t>, F>;
  return type == DType::kI32 ? WithScalar<Capped<std::int32_t>, F> : nullptr;
}

// bfloat16: the largest number has the bits 0x7F7F.
template <unsigned infinity>
void Cap(void *d, const void *, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<std::uint16_t *>(d);
  for (std::int64_t i = 0; i < n; ++i) {
    const unsigned body = to[i] & 0x7FFFu;
    const unsigned inside = body == infinity ? (to[i] & 0x8000u) | (infinity - 1) : to[i];
    to[i] = static_cast<std::uint16_t>(body > infinity ? 0 : inside);
  }
}

}  // namespace

Loop CappedLoop(Op op, DType type) {
  const bool half16 = type == DType::kF16;
  switch (op) {
    case Op::kAdd: return ForCapped<Plus>(type);
    case Op::kSub: return ForCapped<Minus>(type);
    case Op::kMul: return ForCapped<Times>(type);
    case Op::kAddRelu: return ForCapped<PlusRelu>(type);
    case Op::kSubRelu: return ForCapped<MinusRelu>(type);
    case Op::kAdds: return ForCappedScalar<Plus>(type);
    case Op::kMuls: return ForCappedScalar<Times>(type);
    case Op::kMulAddDst: return half16 ? Three<Capped<half>, Order::kAddToDst> : nullptr;
    case Op::kFusedMulAdd: return half16 ? Three<Capped<half>, Order::kTimesDst> : nullptr;
    case Op::kFusedMulAddRelu:
      return half16 ? Three<Capped<half>, Order::kTimesDstRelu> : nullptr;
    case Op::kAxpy: return half16 ? Axpy<Capped<half>> : nullptr;
    default: return nullptr;
  }
}

Loop CapLoop(DType type) {
  if (type == DType::kF16) return Cap<0x7C00>;
  return type == DType::kBF16 ? Cap<0x7F80> : nullptr;
}

Loop MixedLoop(Op op) { return op == Op::kMulAddDst ? MixedMulAdd : nullptr; }

namespace {

template <typename T>
void Move(void *d, const void *a, const void *, const void *, std::int64_t n) {
  std::memmove(d, a, static_cast<std::size_t>(n) * sizeof(T));
}

template <typename T>
void Fill(void *d, const void *, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  T value;
  std::memcpy(&value, scalar, sizeof value);
  for (std::int64_t i = 0; i < n; ++i) to[i] = value;
}

}  // namespace

Loop MoveLoop(int size) {
  switch (size) {
    case 1: return Move<std::uint8_t>;
    case 2: return Move<std::uint16_t>;
    case 4: return Move<std::uint32_t>;
    default: return Move<std::uint64_t>;
  }
}

Loop FillLoop(int size) {
  switch (size) {
    case 1: return Fill<std::uint8_t>;
    case 2: return Fill<std::uint16_t>;
    case 4: return Fill<std::uint32_t>;
    default: return Fill<std::uint64_t>;
  }
}

}  // namespace twin
