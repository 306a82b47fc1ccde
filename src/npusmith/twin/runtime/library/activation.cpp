// Activation functions, step by step as the chip's instructions would be issued: half data are
// rounded after each step unless the call asks for floats inside. With this order of steps the
// outputs printed on the pages of Gelu and FasterGelu come out bit for bit.
#include <cmath>

#include "log/record.h"
#include "vector/ub_matrix.h"
#include "twin/activation.h"

namespace twin {

namespace {

// A row of values under a precision: each step works on all of them and rounds.
class Steps {
 public:
  Steps(float *x, std::int64_t n, bool narrow) : x_(x), n_(n), narrow_(narrow) {}

  template <typename F>
  Steps &Each(F step) {
    for (std::int64_t i = 0; i < n_; ++i) x_[i] = step(x_[i], i);
    return Round();
  }
  // A scalar operand is as narrow as the data.
  Steps &Muls(float by) {
    by = Fit(by);
    return Each([by](float v, std::int64_t) { return v * by; });
  }
  Steps &Adds(float by) {
    by = Fit(by);
    return Each([by](float v, std::int64_t) { return v + by; });
  }
  Steps &Mins(float by) {
    by = Fit(by);
    return Each([by](float v, std::int64_t) { return v < by ? v : by; });
  }
  Steps &Abs() {
    return Each([](float v, std::int64_t) { return std::fabs(v); });
  }
  Steps &Add(const float *y) {
    return Each([y](float v, std::int64_t i) { return v + y[i]; });
  }
  Steps &Mul(const float *y) {
    return Each([y](float v, std::int64_t i) { return v * y[i]; });
  }
  Steps &Square() {
    return Each([](float v, std::int64_t) { return v * v; });
  }
  Steps &Exp() {
    MathLoop(Op::kExp, DType::kF32)(x_, x_, nullptr, nullptr, n_);
    return Round();
  }
  // y over this
  Steps &Under(const float *y) {
    return Each([y](float v, std::int64_t i) { return y[i] / v; });
  }

 private:
  float Fit(float value) const {
    return narrow_ ? HalfToFloat(FloatToHalf(value)) : value;
  }
  Steps &Round() {
    for (std::int64_t i = 0; narrow_ && i < n_; ++i) x_[i] = HalfToFloat(FloatToHalf(x_[i]));
    return *this;
  }

  float *x_;
  std::int64_t n_;
  bool narrow_;
};

// x / (1 + exp(-sqrt(8 / pi) * (x + 0.044715 * x**3)))
void GeluRow(Steps t, const float *x) {
  t.Square().Mul(x).Muls(0.044715f).Add(x).Muls(-1.5957691216057308f).Exp().Adds(1.0f).Under(x);
}

// x / (1 + exp(-beta * x))
void SwishRow(Steps t, const float *x, float beta) {
  t.Muls(-beta).Exp().Adds(1.0f).Under(x);
}

// x * (sgn(x) * (-0.1444 * (min(|x / sqrt(2)|, 1.769) - 1.769)**2 + 0.5) + 0.5)
void PieceRow(Steps t, const float *x) {
  t.Muls(0.70710678f).Abs().Mins(1.769f).Adds(-1.769f).Square().Muls(-0.1444f).Adds(0.5f);
  t.Each([x](float v, std::int64_t i) { return x[i] < 0.0f ? -v : v; });
  t.Adds(0.5f).Mul(x);
}

// out: a copy of the activation's operand x; other: the other source of a gated unit.
void ActivationRow(const ActivationHow &how, float *out, const float *x, const float *other,
                   std::int64_t n) {
  Steps t(out, n, how.type == DType::kF16 && !how.precise);
  switch (how.name) {
    case Activation::kGelu:
    case Activation::kGeGlu: GeluRow(t, x); break;
    case Activation::kFasterGelu: SwishRow(t, x, 1.702f); break;
    case Activation::kFasterGeluV2: PieceRow(t, x); break;
    case Activation::kReGlu:
      t.Each([](float v, std::int64_t) { return v > 0.0f || v != v ? v : 0.0f; });
      break;
    case Activation::kSwiGlu:
    case Activation::kSilu:
    case Activation::kSwish: SwishRow(t, x, how.scalar); break;
  }
  if (other != nullptr) t.Mul(other);
}

bool MayOverwrite(Activation name) {
  return name == Activation::kGelu || name == Activation::kFasterGelu ||
         name == Activation::kFasterGeluV2;
}

}  // namespace

void ActivationOp(const Call &call, const ActivationHow &how, const View &dst, const View &a,
                  const View *b, const View *scratch, std::int64_t count) {
  Core &core = Enter(call);
  if (count == 0) return;
  std::uint8_t *to = nullptr, *from = nullptr, *gate = nullptr;
  const std::int64_t bytes = count * SizeOf(how.type);
  Operands operands(core, call);
  operands.Add("srcTensor0", &a, bytes, Use::kRead, &from);
  operands.Add("srcTensor1", b, bytes, Use::kRead, &gate);
  operands.Add("dstTensor", &dst, bytes, Use::kWrite, &to);
  if (MayOverwrite(how.name)) operands.MayShare(&a, &dst);
  const bool bare = how.name == Activation::kSilu || how.name == Activation::kSwish;
  operands.Scratch(scratch, bare ? 0 : kRepeat);  // guess: one repeat
  if (!operands.Good()) return;
  RecordLibrary(call.api, how.type, count);
  if (Dry()) return;
  const auto n = static_cast<std::size_t>(count);
  std::vector<float> x(n), y(b != nullptr ? n : 0);
  UbMatrix::LoadFloats(how.type, b != nullptr ? gate : from, x.data(), count);
  if (b != nullptr) UbMatrix::LoadFloats(how.type, from, y.data(), count);
  std::vector<float> out = x;
  ActivationRow(how, out.data(), x.data(), b != nullptr ? y.data() : nullptr, count);
  UbMatrix::StoreFloats(how.type, out.data(), to, count);
}

}  // namespace twin
