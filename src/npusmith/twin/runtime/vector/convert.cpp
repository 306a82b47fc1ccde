// Cast: every legal pair and rounding mode of dav-2201.
#include <cmath>
#include <limits>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

using AscendC::RoundMode;

// To an integral value held in double; exact for everything that comes from 32 bits or fewer.
template <RoundMode mode>
inline double Integral(double x) {
  const double magic = std::copysign(0x1p52, x);
  const double near = std::fabs(x) < 0x1p52 ? (x + magic) - magic : x;
  if constexpr (mode == RoundMode::CAST_FLOOR) return near > x ? near - 1.0 : near;
  if constexpr (mode == RoundMode::CAST_CEIL) return near < x ? near + 1.0 : near;
  if constexpr (mode == RoundMode::CAST_TRUNC) {
    const double outward = std::fabs(near) > std::fabs(x) ? 1.0 : 0.0;
    return near - std::copysign(outward, x);
  }
  if constexpr (mode == RoundMode::CAST_ROUND) {
    // a tie that went to the even neighbour towards zero moves away from zero
    const double step = std::fabs(x) - std::fabs(near) == 0.5 ? 1.0 : 0.0;
    return near + std::copysign(step, x);
  }
  return near;
}

template <typename T>
inline double Wide(T value) {
  if constexpr (std::is_same_v<T, half>) {
    return static_cast<double>(HalfToFloat(value.bits));
  } else if constexpr (std::is_same_v<T, bfloat16_t>) {
    return static_cast<double>(Bf16ToFloat(value.bits));
  } else {
    return static_cast<double>(value);
  }
}

// Saturates; NaN becomes 0.
template <typename To>
inline To Clamped(double x) {
  using Limit = std::numeric_limits<To>;
  if constexpr (sizeof(To) == 8) {
    if (x >= 0x1p63) return Limit::max();
    if (x < -0x1p63) return Limit::min();
    return x != x ? 0 : static_cast<To>(x);
  } else {
    constexpr auto kLow = static_cast<double>(Limit::min());
    constexpr auto kHigh = static_cast<double>(Limit::max());
    double inside = x != x ? 0.0 : x;
    inside = inside > kHigh ? kHigh : inside;
    inside = inside < kLow ? kLow : inside;
    return static_cast<To>(static_cast<std::int32_t>(inside));
  }
}

template <typename To, typename From, RoundMode mode>
void ToInteger(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<To *>(d);
  const auto *x = static_cast<const From *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Clamped<To>(Integral<mode>(Wide(x[i])));
}

template <typename To, typename From>
Loop IntegerLoop(RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return ToInteger<To, From, RoundMode::CAST_FLOOR>;
    case RoundMode::CAST_CEIL: return ToInteger<To, From, RoundMode::CAST_CEIL>;
    case RoundMode::CAST_ROUND: return ToInteger<To, From, RoundMode::CAST_ROUND>;
    case RoundMode::CAST_TRUNC: return ToInteger<To, From, RoundMode::CAST_TRUNC>;
    default: return ToInteger<To, From, RoundMode::CAST_RINT>;
  }
}

template <RoundMode mode>
void Flatten(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<float *>(d);
  const auto *x = static_cast<const float *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    // -0 becomes +0 (doc: boundary values of Cast)
    to[i] = static_cast<float>(Integral<mode>(static_cast<double>(x[i])) + 0.0);
  }
}

Loop FlattenLoop(RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return Flatten<RoundMode::CAST_FLOOR>;
    case RoundMode::CAST_CEIL: return Flatten<RoundMode::CAST_CEIL>;
    case RoundMode::CAST_ROUND: return Flatten<RoundMode::CAST_ROUND>;
    case RoundMode::CAST_TRUNC: return Flatten<RoundMode::CAST_TRUNC>;
    default: return Flatten<RoundMode::CAST_RINT>;
  }
}

// float to a 16-bit format in a given direction; overflow becomes infinity where it rounds there.
template <typename To>
inline std::uint16_t Near(float x) {
  return std::is_same_v<To, half> ? FloatToHalf(x) : FloatToBf16(x);
}
template <typename To>
inline float Back(std::uint16_t bits) {
  return std::is_same_v<To, half> ? HalfToFloat(bits) : Bf16ToFloat(bits);
}

template <typename To>
std::uint16_t RoundAway(float x, std::uint16_t down, std::uint16_t near) {
  const auto up = static_cast<std::uint16_t>(down + 1);
  const double high = std::fabs(static_cast<double>(Back<To>(up)));
  if (!std::isfinite(high)) return near;
  const double exact = std::fabs(static_cast<double>(x));
  const double low = std::fabs(static_cast<double>(Back<To>(down)));
  return exact - low >= high - exact ? up : down;
}

template <typename To>
std::uint16_t Directed(float x, RoundMode mode) {
  const std::uint16_t near = Near<To>(x);
  const float back = Back<To>(near);
  if (!std::isfinite(x) || back == x) return near;
  const bool away = std::fabs(back) > std::fabs(x);
  const auto down = static_cast<std::uint16_t>(away ? near - 1 : near);
  const auto up = static_cast<std::uint16_t>(away ? near : near + 1);
  const bool negative = std::signbit(x);
  switch (mode) {
    case RoundMode::CAST_TRUNC: return down;
    case RoundMode::CAST_FLOOR: return negative ? up : down;
    case RoundMode::CAST_CEIL: return negative ? down : up;
    case RoundMode::CAST_ODD: return (down & 1u) != 0 ? down : up;
    default: return RoundAway<To>(x, down, near);
  }
}

template <typename To, typename From, RoundMode mode>
void Narrowed(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<std::uint16_t *>(d);
  const auto *x = static_cast<const From *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(x[i]);
    to[i] = mode == RoundMode::CAST_RINT ? Near<To>(value) : Directed<To>(value, mode);
  }
}

template <typename To, typename From>
Loop NarrowLoop(RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return Narrowed<To, From, RoundMode::CAST_FLOOR>;
    case RoundMode::CAST_CEIL: return Narrowed<To, From, RoundMode::CAST_CEIL>;
    case RoundMode::CAST_ROUND: return Narrowed<To, From, RoundMode::CAST_ROUND>;
    case RoundMode::CAST_TRUNC: return Narrowed<To, From, RoundMode::CAST_TRUNC>;
    case RoundMode::CAST_ODD: return Narrowed<To, From, RoundMode::CAST_ODD>;
    default: return Narrowed<To, From, RoundMode::CAST_RINT>;
  }
}

template <typename From>
void Widened(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<float *>(d);
  const auto *x = static_cast<const From *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<From, half>) to[i] = HalfToFloat(x[i].bits);
    else if constexpr (std::is_same_v<From, bfloat16_t>) to[i] = Bf16ToFloat(x[i].bits);
    else to[i] = static_cast<float>(x[i]);
  }
}

// An integer to float in a given direction, by comparing with the neighbours.
template <typename From>
float DirectedFloat(From value, RoundMode mode) {
  const auto near = static_cast<float>(value);
  const auto exact = static_cast<long double>(value), back = static_cast<long double>(near);
  if (back == exact) return near;
  const float lower = back > exact ? std::nextafter(near, -HUGE_VALF) : near;
  const float upper = back < exact ? std::nextafter(near, HUGE_VALF) : near;
  const long double below = exact - static_cast<long double>(lower);
  const long double above = static_cast<long double>(upper) - exact;
  switch (mode) {
    case RoundMode::CAST_FLOOR: return lower;
    case RoundMode::CAST_CEIL: return upper;
    case RoundMode::CAST_TRUNC: return value >= 0 ? lower : upper;
    default: return (value >= 0 ? below >= above : below > above) ? upper : lower;
  }
}

template <typename From, RoundMode mode>
void ToFloat(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<float *>(d);
  const auto *x = static_cast<const From *>(a);
  for (std::int64_t i = 0; i < n; ++i) to[i] = DirectedFloat(x[i], mode);
}

template <typename From>
Loop FloatLoop(RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return ToFloat<From, RoundMode::CAST_FLOOR>;
    case RoundMode::CAST_CEIL: return ToFloat<From, RoundMode::CAST_CEIL>;
    case RoundMode::CAST_ROUND: return ToFloat<From, RoundMode::CAST_ROUND>;
    case RoundMode::CAST_TRUNC: return ToFloat<From, RoundMode::CAST_TRUNC>;
    default: return Widened<From>;
  }
}

template <typename To, typename From>
void Saturated(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<To *>(d);
  const auto *x = static_cast<const From *>(a);
  using Limit = std::numeric_limits<To>;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto wide = static_cast<std::int64_t>(x[i]);
    const auto low = static_cast<std::int64_t>(Limit::min());
    const auto high = static_cast<std::int64_t>(Limit::max());
    to[i] = static_cast<To>(wide < low ? low : wide > high ? high : wide);
  }
}

// int32 to half goes through the scale of SetDeqScale; rounded once.
void Dequantised(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<half *>(d);
  const auto *x = static_cast<const std::int32_t *>(a);
  const auto scale = static_cast<double>(*static_cast<const float *>(scalar));
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = half(static_cast<float>(static_cast<double>(x[i]) * scale));
  }
}

constexpr unsigned Bit(RoundMode mode) { return 1u << static_cast<unsigned>(mode); }
constexpr unsigned kNone = Bit(RoundMode::CAST_NONE), kOdd = Bit(RoundMode::CAST_ODD);
constexpr unsigned kFive = Bit(RoundMode::CAST_RINT) | Bit(RoundMode::CAST_FLOOR) |
                           Bit(RoundMode::CAST_CEIL) | Bit(RoundMode::CAST_ROUND) |
                           Bit(RoundMode::CAST_TRUNC);

struct Pair {
  DType src, dst;
  unsigned modes;
  Loop (*loop)(RoundMode);
};

template <Loop loop>
Loop Always(RoundMode) { return loop; }

// Source: Ascend C API reference, Cast.
constexpr Pair kPairs[] = {
    {DType::kI8, DType::kF16, kNone, NarrowLoop<half, std::int8_t>},
    {DType::kU8, DType::kF16, kNone, NarrowLoop<half, std::uint8_t>},
    {DType::kI16, DType::kF16, kNone | kFive, NarrowLoop<half, std::int16_t>},
    {DType::kI16, DType::kF32, kNone, Always<Widened<std::int16_t>>},
    {DType::kF16, DType::kI8, kNone | kFive, IntegerLoop<std::int8_t, half>},
    {DType::kF16, DType::kU8, kNone | kFive, IntegerLoop<std::uint8_t, half>},
    {DType::kF16, DType::kI16, kFive, IntegerLoop<std::int16_t, half>},
    {DType::kF16, DType::kI32, kFive, IntegerLoop<std::int32_t, half>},
    {DType::kF16, DType::kF32, kNone, Always<Widened<half>>},
    {DType::kBF16, DType::kF32, kNone, Always<Widened<bfloat16_t>>},
    {DType::kBF16, DType::kI32, kFive, IntegerLoop<std::int32_t, bfloat16_t>},
    {DType::kI32, DType::kF32, kNone | kFive, FloatLoop<std::int32_t>},
    {DType::kI32, DType::kI16, kNone, Always<Saturated<std::int16_t, std::int32_t>>},
    {DType::kI32, DType::kI64, kNone, Always<Saturated<std::int64_t, std::int32_t>>},
    {DType::kI32, DType::kF16, kNone, Always<Dequantised>},
    {DType::kF32, DType::kF16, kNone | kFive | kOdd, NarrowLoop<half, float>},
    {DType::kF32, DType::kBF16, kFive, NarrowLoop<bfloat16_t, float>},
    {DType::kF32, DType::kI16, kFive, IntegerLoop<std::int16_t, float>},
    {DType::kF32, DType::kI32, kFive, IntegerLoop<std::int32_t, float>},
    {DType::kF32, DType::kI64, kFive, IntegerLoop<std::int64_t, float>},
    {DType::kF32, DType::kF32, kFive, FlattenLoop},
    {DType::kI64, DType::kI32, kNone, Always<Saturated<std::int32_t, std::int64_t>>},
    {DType::kI64, DType::kF32, kFive, FloatLoop<std::int64_t>},
};

const char *NameOf(RoundMode mode) {
  constexpr const char *kNames[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                    "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
  return kNames[static_cast<int>(mode)];
}

std::string ModesOf(unsigned modes) {
  std::string text;
  for (int i = 0; i <= static_cast<int>(RoundMode::CAST_ODD); ++i) {
    if ((modes >> i & 1u) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(NameOf(static_cast<RoundMode>(i)));
  }
  return text;
}

const Pair *FindPair(DType dst, DType src) {
  for (const Pair &pair : kPairs) {
    if (pair.dst == dst && pair.src == src) return &pair;
  }
  return nullptr;
}

}  // namespace

Loop CastLoop(DType dst, DType src, RoundMode mode) {
  const Pair *pair = FindPair(dst, src);
  return pair == nullptr ? nullptr : pair->loop(mode);
}

namespace {

double InMode(double x, RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return Integral<RoundMode::CAST_FLOOR>(x);
    case RoundMode::CAST_CEIL: return Integral<RoundMode::CAST_CEIL>(x);
    case RoundMode::CAST_ROUND: return Integral<RoundMode::CAST_ROUND>(x);
    case RoundMode::CAST_TRUNC: return Integral<RoundMode::CAST_TRUNC>(x);
    default: return Integral<RoundMode::CAST_RINT>(x);
  }
}

struct LowBits {
  DType dst, src;
  RoundMode mode;
};

// With the saturation of casts off, an integer keeps its low bits (doc: SetSaturationFlag).
// guess: what does not fit 64 bits, and NaN, become 0.
std::int64_t WholeOf(const std::uint8_t *from, const LowBits &how, std::int64_t i) {
  double x = 0;
  if (how.src == DType::kI32) return reinterpret_cast<const std::int32_t *>(from)[i];
  if (how.src == DType::kI64) return reinterpret_cast<const std::int64_t *>(from)[i];
  if (how.src == DType::kF32) x = Wide(reinterpret_cast<const float *>(from)[i]);
  if (how.src == DType::kF16) x = Wide(reinterpret_cast<const half *>(from)[i]);
  if (how.src == DType::kBF16) x = Wide(reinterpret_cast<const bfloat16_t *>(from)[i]);
  const double whole = InMode(x, how.mode);
  return std::fabs(whole) < 0x1p63 ? static_cast<std::int64_t>(whole) : 0;
}

void KeepLow(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  const LowBits how = *static_cast<const LowBits *>(scalar);
  const int size = SizeOf(how.dst);
  auto *to = static_cast<std::uint8_t *>(d);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t whole = WholeOf(static_cast<const std::uint8_t *>(a), how, i);
    std::memcpy(to + i * size, &whole, static_cast<std::size_t>(size));  // little endian
  }
}

bool IsWhole(DType type) {
  return type != DType::kF32 && type != DType::kF16 && type != DType::kBF16;
}

}  // namespace

void CastOp(const Call &call, DType dstType, DType srcType, RoundMode mode, const Lane &dst,
            const Lane &src, const Walk &walk) {
  Core &core = Enter(call);
  const Pair *pair = FindPair(dstType, srcType);  // the headers reject other pairs
  if (pair == nullptr || (pair->modes & Bit(mode)) == 0) {
    Report(call, "cast-mode",
           Text("Cast from %s to %s with %s", twin::NameOf(srcType), twin::NameOf(dstType),
                NameOf(mode)),
           NameOf(mode), pair == nullptr ? "" : ModesOf(pair->modes));
    return;
  }
  Operand operands[] = {{"dst", dst, dstType}, {"src", src, srcType}};
  Plan plan;
  const int widest = std::max(SizeOf(dstType), SizeOf(srcType));
  if (!MakePlan(core, call, walk, kRepeat / widest, plan)) return;
  if (!CheckOperands(core, call, plan, operands, 2) || plan.empty()) return;
  CheckOverlap(call, plan, operands[0], operands[1], false);
  RecordVector("cast", plan, operands, 2, SetsMask(walk));
  if (Dry()) return;
  if (IsWhole(dstType) && !SaturatesCast(core)) {
    const LowBits how{dstType, srcType, mode};
    Execute(plan, operands, 2, KeepLow, &how);
    return;
  }
  Execute(plan, operands, 2, pair->loop(mode), &core.deqScale);
  const Loop cap = SaturatesFloat(core) ? CapLoop(dstType) : nullptr;
  if (cap == nullptr) return;
  operands[0].updates = true;
  Execute(plan, operands, 1, cap, nullptr);
}

}  // namespace twin
