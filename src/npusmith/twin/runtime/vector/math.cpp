// Transcendental functions: computed in double, rounded once (Sigmoid of half: step by step). Exp,
// Ln, Tanh and Sigmoid are plain polynomials, so that they vectorise and give the same bits on
// every machine.
#include <cmath>

#include "vector/loops.h"

namespace twin {

namespace {

inline std::uint64_t Bits(double value) { return __builtin_bit_cast(std::uint64_t, value); }
inline double FromBits(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }

// e**x for |x| <= 708, relative error below 1e-12; NaN stays NaN.
inline double ExpOf(double given) {
  double x = given > 708.0 ? 708.0 : given;
  x = x < -708.0 ? -708.0 : x;
  constexpr double kMagic = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = x * 0x1.71547652b82fep+0 + kMagic;
  const double n = shifted - kMagic;
  const double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
  double p = 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const double scale = FromBits((Bits(shifted) + 1023) << 52);
  return p * scale;
}

// Natural logarithm of a float or half value held in double.
inline double LnOf(double x) {
  const std::uint64_t bits = Bits(x);
  const std::uint64_t exponent = bits >> 52;
  const double m = FromBits((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);  // [1, 2)
  const bool high = m > 0x1.6a09e667f3bcdp+0;
  const double f = high ? m * 0.5 : m;  // [sqrt(1/2), sqrt(2)]
  // the exponent as a double, without a 64-bit conversion
  const double e =
      FromBits(exponent | 0x4330000000000000ull) - (0x1p52 + 1023.0) + (high ? 1.0 : 0.0);
  const double s = (f - 1.0) / (f + 1.0);
  const double z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  const double tail = s * z * p;
  double result = e * 0x1.62e42fefa39efp-1 + 2.0 * (s + tail);
  result = x == 0.0 ? -HUGE_VAL : result;
  result = x == HUGE_VAL ? x : result;
  result = x < 0.0 ? std::nan("") : result;
  return x != x ? x : result;
}

inline double TanhOf(double x) {
  const double z = x * x;
  double p = -1382.0 / 155925.0;
  p = p * z + 62.0 / 2835.0;
  p = p * z - 17.0 / 315.0;
  p = p * z + 2.0 / 15.0;
  p = p * z - 1.0 / 3.0;
  const double small = x + x * z * p;
  const double wide = 1.0 - 2.0 / (ExpOf(2.0 * x) + 1.0);
  return z < 0.01 ? small : wide;
}

inline double SigmoidOf(double x) { return 1.0 / (1.0 + ExpOf(-x)); }

// Round to nearest even without a library call; exact below 2**52, beyond that x is an integer.
inline double NearestOf(double x) {
  const double magic = std::copysign(0x1p52, x);
  const double near = (x + magic) - magic;
  return std::fabs(x) < 0x1p52 ? std::copysign(near, x) : x;
}
inline double FloorOf(double x) {
  const double near = NearestOf(x);
  return near > x ? near - 1.0 : near;
}
inline double CeilOf(double x) {
  const double near = NearestOf(x);
  return near < x ? std::copysign(near + 1.0, x) : near;
}
inline double TruncOf(double x) { return x < 0.0 ? CeilOf(x) : FloorOf(x); }
inline double SignOf(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (x == 0.0 ? 0.0 : x)); }

double DigammaOf(double x) {
  if (x <= 0.0 && x == std::floor(x)) return std::nan("");
  if (x < 0.0) return DigammaOf(1.0 - x) - M_PI / std::tan(M_PI * x);
  double shift = 0.0;
  for (; x < 10.0; x += 1.0) shift -= 1.0 / x;
  const double z = 1.0 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
  return shift + std::log(x) - 0.5 / x - series;
}

// Rounds a double to half once: first to odd in float, whose extra digits then decide correctly.
inline half ToHalf(double value) {
  const auto near = static_cast<float>(value);
  std::uint32_t bits = FloatBits(near);
  const bool inexact = static_cast<double>(near) != value && (bits & 1u) == 0;
  const bool beyond = std::fabs(static_cast<double>(near)) > std::fabs(value);
  bits += inexact ? (beyond ? ~0u : 1u) : 0u;
  half result;
  result.bits = FloatToHalf(BitsFloat(bits));
  return result;
}

template <typename T>
T Rounded(double value) {
  if constexpr (std::is_same_v<T, half>) return ToHalf(value);
  else return static_cast<T>(value);
}

template <typename T>
double Wide(T value) { return static_cast<double>(static_cast<float>(value)); }

template <typename T, double (*f)(double)>
void One(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Rounded<T>(f(Wide(x[i])));
}

template <typename T, double (*f)(double, double)>
void Two(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const auto *y = static_cast<const T *>(b);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Rounded<T>(f(Wide(x[i]), Wide(y[i])));
}

template <typename T, double (*f)(double, double)>
void WithScalar(void *d, const void *a, const void *, const void *scalar,
                          std::int64_t n) {
  auto *to = static_cast<T *>(d);
  const auto *x = static_cast<const T *>(a);
  const double s = Wide(*static_cast<const T *>(scalar));
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) to[i] = Rounded<T>(f(Wide(x[i]), s));
}

template <double (*f)(double)>
Loop Pick(DType type) {
  if (type == DType::kF32) return One<float, f>;
  return type == DType::kF16 ? One<half, f> : nullptr;
}

template <double (*f)(double, double)>
Loop PickTwo(DType type) {
  if (type == DType::kF32) return Two<float, f>;
  return type == DType::kF16 ? Two<half, f> : nullptr;
}

template <double (*f)(double, double)>
Loop PickScalar(DType type) {
  if (type == DType::kF32) return WithScalar<float, f>;
  return type == DType::kF16 ? WithScalar<half, f> : nullptr;
}

// Half data is rounded after each step, as in the other activation functions, whose pages give
// outputs; exp's range is that of half before and after.
void SigmoidHalf(void *d, const void *a, const void *, const void *, std::int64_t n) {
  auto *to = static_cast<half *>(d);
  const auto *x = static_cast<const half *>(a);
  TWIN_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    const half power = ToHalf(ExpOf(-Wide(x[i])));
    const half sum = ToHalf(1.0 + Wide(power));
    to[i] = ToHalf(1.0 / Wide(sum));
  }
}

double RsqrtOf(double x) { return 1.0 / std::sqrt(x); }
double ReciprocalOf(double x) { return 1.0 / x; }
double SqrtOf(double x) { return std::sqrt(x); }
double FracOf(double x) { return x - TruncOf(x); }
double ErfOf(double x) { return std::erf(x); }
double ErfcOf(double x) { return std::erfc(x); }
double SinOf(double x) { return std::sin(x); }
double CosOf(double x) { return std::cos(x); }
double TanOf(double x) { return std::tan(x); }
double AsinOf(double x) { return std::asin(x); }
double AcosOf(double x) { return std::acos(x); }
double AtanOf(double x) { return std::atan(x); }
double SinhOf(double x) { return std::sinh(x); }
double CoshOf(double x) { return std::cosh(x); }
double AsinhOf(double x) { return std::asinh(x); }
double AcoshOf(double x) { return std::acosh(x); }
double AtanhOf(double x) { return std::atanh(x); }
double Log2Of(double x) { return std::log2(x); }
double Log10Of(double x) { return std::log10(x); }
double LgammaOf(double x) { return std::lgamma(x); }
double PowOf(double x, double y) { return std::pow(x, y); }
double PowFlipped(double x, double base) { return std::pow(base, x); }
// Integer powers wrap; a negative exponent leaves 0 but for bases 1 and -1.
std::int32_t IntegerPower(std::int32_t base, std::int32_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint32_t result = 1, factor = static_cast<std::uint32_t>(base);
  for (auto left = static_cast<std::uint32_t>(exponent); left > 0; left /= 2) {
    if (left % 2 == 1) result *= factor;
    factor *= factor;
  }
  return static_cast<std::int32_t>(result);
}

void PowerInt(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<std::int32_t *>(d);
  const auto *x = static_cast<const std::int32_t *>(a);
  const auto *y = static_cast<const std::int32_t *>(b);
  for (std::int64_t i = 0; i < n; ++i) to[i] = IntegerPower(x[i], y[i]);
}

template <bool flipped>
void PowerIntScalar(void *d, const void *a, const void *, const void *scalar, std::int64_t n) {
  auto *to = static_cast<std::int32_t *>(d);
  const auto *x = static_cast<const std::int32_t *>(a);
  const std::int32_t s = *static_cast<const std::int32_t *>(scalar);
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = flipped ? IntegerPower(s, x[i]) : IntegerPower(x[i], s);
  }
}

double FmodOf(double x, double y) { return std::fmod(x, y); }

}  // namespace

Loop MathLoop(Op op, DType type) {
  if (type == DType::kI32 && op == Op::kPower) return PowerInt;
  if (type == DType::kI32 && op == Op::kPowers) return PowerIntScalar<false>;
  if (type == DType::kI32 && op == Op::kPowerOf) return PowerIntScalar<true>;
  switch (op) {
    case Op::kExp: return Pick<ExpOf>(type);
    case Op::kLn: return Pick<LnOf>(type);
    case Op::kReciprocal: return Pick<ReciprocalOf>(type);
    case Op::kRsqrt: return Pick<RsqrtOf>(type);
    case Op::kSqrt: return Pick<SqrtOf>(type);
    case Op::kTanh: return Pick<TanhOf>(type);
    case Op::kSigmoid: return type == DType::kF16 ? SigmoidHalf : Pick<SigmoidOf>(type);
    case Op::kErf: return Pick<ErfOf>(type);
    case Op::kErfc: return Pick<ErfcOf>(type);
    case Op::kSin: return Pick<SinOf>(type);
    case Op::kCos: return Pick<CosOf>(type);
    case Op::kTan: return Pick<TanOf>(type);
    case Op::kAsin: return Pick<AsinOf>(type);
    case Op::kAcos: return Pick<AcosOf>(type);
    case Op::kAtan: return Pick<AtanOf>(type);
    case Op::kSinh: return Pick<SinhOf>(type);
    case Op::kCosh: return Pick<CoshOf>(type);
    case Op::kAsinh: return Pick<AsinhOf>(type);
    case Op::kAcosh: return Pick<AcoshOf>(type);
    case Op::kAtanh: return Pick<AtanhOf>(type);
    case Op::kLog2: return Pick<Log2Of>(type);
    case Op::kLog10: return Pick<Log10Of>(type);
    case Op::kFloor: return Pick<FloorOf>(type);
    case Op::kCeil: return Pick<CeilOf>(type);
    case Op::kRound: return Pick<NearestOf>(type);
    case Op::kTrunc: return Pick<TruncOf>(type);
    case Op::kFrac: return Pick<FracOf>(type);
    case Op::kSign: return Pick<SignOf>(type);
    case Op::kLgamma: return Pick<LgammaOf>(type);
    case Op::kDigamma: return Pick<DigammaOf>(type);
    case Op::kPower: return PickTwo<PowOf>(type);
    case Op::kFmod: return PickTwo<FmodOf>(type);
    case Op::kPowers: return PickScalar<PowOf>(type);
    case Op::kPowerOf: return PickScalar<PowFlipped>(type);
    default: return nullptr;
  }
}

}  // namespace twin
