// Normalisations, in the documented order of steps: floats inside (half inputs are widened and
// results rounded once), sums over 64 lanes and then a tree.
#include "log/record.h"
#include "vector/ub_matrix.h"
#include "twin/norm.h"

namespace twin {

namespace {

std::size_t Count(std::int64_t n) { return static_cast<std::size_t>(n); }

bool CheckRows(const Call &call, const NormShape &shape, DType type, std::int64_t most = kUbBytes) {
  if (!InRange(call, "rows", shape.rows, 1, kUbBytes) ||
      !InRange(call, "row length", shape.width, 1, most) ||
      !InRange(call, "original row length", shape.real, 1, shape.width)) {
    return false;
  }
  if (shape.width * SizeOf(type) % kBlock == 0) return true;
  Report(call, "param-range",
         Text("rows of %s have %lld B, not a multiple of 32", call.api,
              Ll(shape.width * SizeOf(type))),
         "", "row length * sizeof(T) % 32 == 0", "pad the rows with zeros");
  return false;
}

bool CheckBasic(const Call &call, bool basic, std::int64_t rows, std::int64_t width,
                std::int64_t most) {
  if (!basic || (rows % 8 == 0 && width % 64 == 0 && width <= most)) return true;
  Report(call, "param-range",
         Text("isBasicBlock of %s is set for %lld x %lld", call.api, Ll(rows), Ll(width)), "",
         Text("rows a multiple of 8, row length a multiple of 64 up to %lld", Ll(most)));
  return false;
}

Spread RealRows(const NormShape &shape, DType type) {
  if (shape.real == shape.width) return {};
  return {shape.real * SizeOf(type), shape.width * SizeOf(type)};
}

std::vector<float> Floats(DType type, const std::uint8_t *from, std::int64_t n) {
  std::vector<float> values(Count(n));
  if (from != nullptr) UbMatrix::LoadFloats(type, from, values.data(), n);
  return values;
}

struct Moments {
  float mean, variance;
};

// Sum of x * (1 / n), then sum of (x - mean)**2 * (1 / n), as the pages say.
Moments MomentsOf(const float *x, std::int64_t n, float *work) {
  const float part = 1.0f / static_cast<float>(n);
  for (std::int64_t i = 0; i < n; ++i) work[i] = x[i] * part;
  const float mean = SumFloats(work, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const float away = x[i] - mean;
    work[i] = away * away * part;
  }
  return {mean, SumFloats(work, n)};
}

float RstdOf(float variance, float epsilon, bool byLog) {
  const float sum = variance + epsilon;
  return byLog ? OneFloat(Op::kExp, OneFloat(Op::kLn, sum) * -0.5f) : OneFloat(Op::kRsqrt, sum);
}

// gamma and beta: one a column; null when there are none.
void Scale(float *x, std::int64_t n, float mean, float rstd, const float *gamma,
           const float *beta) {
  for (std::int64_t i = 0; i < n; ++i) {
    float value = (x[i] - mean) * rstd;
    if (gamma != nullptr) value *= gamma[i];
    if (beta != nullptr) value += beta[i];
    x[i] = value;
  }
}

}  // namespace

void NormOp(const Call &call, const NormHold &hold, const NormTensors &all, const NormShape &shape,
            const NormHow &how) {
  Core &core = Enter(call);
  const bool deep = all.addend != nullptr;
  if (!CheckRows(call, shape, hold.data, deep ? 2040 : kUbBytes)) return;
  if (!CheckBasic(call, how.basic, shape.rows, shape.width, 2040)) return;
  UbMatrix src{nullptr, hold.data, shape.rows, shape.width}, dst = src, addend = src;
  Column mean{nullptr, hold.stat, false}, second = mean, inMean = mean, inVariance = mean;
  std::uint8_t *gamma = nullptr, *beta = nullptr;
  const std::int64_t weights = shape.real * SizeOf(hold.weight), stats = mean.bytes(shape.rows);
  const Spread rows = RealRows(shape, hold.data);
  Operands operands(core, call);
  operands.Add("inputX", all.src, src.bytes(), Use::kRead, &src.base, rows);
  operands.Add("gxLocal", all.addend, src.bytes(), Use::kRead, &addend.base, rows);
  operands.Add("gamma", all.gamma, weights, Use::kRead, &gamma);
  operands.Add("beta", all.beta, weights, Use::kRead, &beta);
  operands.Add("inputMean", all.inMean, stats, Use::kRead, &inMean.base);
  operands.Add("inputVariance", all.inVariance, stats, Use::kRead, &inVariance.base);
  operands.Add("output", all.dst, dst.bytes(), Use::kWrite, &dst.base);
  operands.Add("outputMean", all.mean, stats, Use::kWrite, &mean.base);
  operands.Add(how.rstd ? "outputRstd" : "outputVariance", all.second, stats, Use::kWrite,
               &second.base);
  if (how.inPlace) operands.MayShare(all.src, all.dst);
  operands.Scratch(all.scratch,
                   NormRowBytes(static_cast<std::uint32_t>(shape.width), how.reuse));
  if (!operands.Good()) return;
  if (all.inMean == nullptr && !deep) UseReserve(core, call);  // doc: LayerNorm
  RecordLibrary(call.api, hold.data, shape.rows * shape.width);
  if (Dry()) return;
  std::vector<float> x(Count(shape.width)), more(x), work(x);
  std::vector<float> g = Floats(hold.weight, gamma, shape.real);
  std::vector<float> b = Floats(hold.weight, beta, shape.real);
  g.resize(x.size());
  b.resize(x.size());
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    src.Load(r, x.data());
    if (deep) {
      addend.Load(r, more.data());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * how.alpha + more[i];
    }
    const Moments found = inMean.base != nullptr ? Moments{inMean.Get(r), inVariance.Get(r)}
                                                 : MomentsOf(x.data(), shape.real, work.data());
    const float rstd = RstdOf(found.variance, how.epsilon, how.byLog);
    if (mean.base != nullptr) mean.Put(r, found.mean);
    second.Put(r, how.rstd ? rstd : found.variance);
    Scale(x.data(), shape.width, found.mean, rstd, gamma == nullptr ? nullptr : g.data(),
          beta == nullptr ? nullptr : b.data());
    dst.Store(r, x.data());
  }
}

void RmsNormOp(const Call &call, DType type, const NormTensors &all, const NormShape &shape,
               float epsilon, bool basic) {
  Core &core = Enter(call);
  if (!CheckRows(call, shape, type)) return;
  if (!CheckBasic(call, basic, shape.rows, shape.width, 2047)) return;
  UbMatrix src{nullptr, type, shape.rows, shape.width}, dst = src;
  std::uint8_t *gamma = nullptr;
  Operands operands(core, call);
  operands.Add("srcLocal", all.src, src.bytes(), Use::kRead, &src.base, RealRows(shape, type));
  operands.Add("gammaLocal", all.gamma, shape.real * SizeOf(type), Use::kRead, &gamma);
  operands.Add("dstLocal", all.dst, dst.bytes(), Use::kWrite, &dst.base);
  operands.MayShare(all.src, all.dst);
  operands.Scratch(all.scratch, RmsRowBytes(static_cast<std::uint32_t>(shape.width)));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, shape.rows * shape.width);
  if (Dry()) return;
  std::vector<float> x(Count(shape.width)), work(x), g = Floats(type, gamma, shape.real);
  g.resize(x.size());
  const float part = 1.0f / static_cast<float>(shape.real);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    src.Load(r, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) work[i] = x[i] * x[i] * part;
    const float root = OneFloat(Op::kSqrt, SumFloats(work.data(), shape.real) + epsilon);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] / root * g[i];
    dst.Store(r, x.data());
  }
}

void BatchNormOp(const Call &call, DType type, const NormTensors &all, std::int64_t realB,
                 std::int64_t columns, float epsilon, bool basic) {
  Core &core = Enter(call);
  const NormShape shape{realB, columns, columns};
  if (!CheckRows(call, shape, type) || !CheckBasic(call, basic, realB, columns, 2047)) return;
  UbMatrix src{nullptr, type, realB, columns}, dst = src;
  std::uint8_t *gamma = nullptr, *beta = nullptr;
  UbMatrix mean{nullptr, type, 1, columns}, variance = mean;
  Operands operands(core, call);
  operands.Add("inputX", all.src, src.bytes(), Use::kRead, &src.base);
  operands.Add("gamm", all.gamma, realB * SizeOf(type), Use::kRead, &gamma);
  operands.Add("beta", all.beta, realB * SizeOf(type), Use::kRead, &beta);
  operands.Add("output", all.dst, dst.bytes(), Use::kWrite, &dst.base);
  operands.Add("outputMean", all.mean, mean.bytes(), Use::kWrite, &mean.base);
  operands.Add("outputVariance", all.second, mean.bytes(), Use::kWrite, &variance.base);
  operands.MayShare(all.src, all.dst);
  operands.Scratch(all.scratch, NormRowBytes(static_cast<std::uint32_t>(columns), false));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, realB * columns);
  if (Dry()) return;
  std::vector<float> x(Count(columns)), m(x), v(x);
  const float part = 1.0f / static_cast<float>(realB);
  for (std::int64_t b = 0; b < realB; ++b) {
    src.Load(b, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) m[i] += x[i] * part;
  }
  for (std::int64_t b = 0; b < realB; ++b) {
    src.Load(b, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) v[i] += (x[i] - m[i]) * (x[i] - m[i]) * part;
  }
  mean.Store(0, m.data());
  variance.Store(0, v.data());
  for (float &one : v) one = RstdOf(one, epsilon, true);
  const std::vector<float> g = Floats(type, gamma, realB), s = Floats(type, beta, realB);
  for (std::int64_t b = 0; b < realB; ++b) {
    src.Load(b, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = (x[i] - m[i]) * v[i] * g[Count(b)] + s[Count(b)];
    }
    dst.Store(b, x.data());
  }
}

void GroupNormOp(const Call &call, DType type, const NormTensors &all, const GroupShape &shape,
                 float epsilon, bool reuse) {
  Core &core = Enter(call);
  if (!InRange(call, "n", shape.n, 1, kUbBytes) ||
      !InRange(call, "c", shape.channels, 1, kUbBytes) ||
      !InRange(call, "hw", shape.area, 1, kUbBytes) ||
      !InRange(call, "groupNum", shape.groups, 1, shape.channels)) {
    return;
  }
  const std::int64_t each = shape.channels / shape.groups, rows = shape.n * shape.groups;
  if (each * shape.groups != shape.channels) {
    Report(call, "param-range",
           Text("%lld channels do not fall into %lld groups", Ll(shape.channels), Ll(shape.groups)),
           "", "C % groupNum == 0");
    return;
  }
  UbMatrix src{nullptr, type, rows, each * shape.area}, dst = src;
  Column mean{nullptr, type, false}, variance = mean;
  std::uint8_t *gamma = nullptr, *beta = nullptr;
  Operands operands(core, call);
  operands.Add("inputX", all.src, src.bytes(), Use::kRead, &src.base);
  operands.Add("gamma", all.gamma, shape.channels * SizeOf(type), Use::kRead, &gamma);
  operands.Add("beta", all.beta, shape.channels * SizeOf(type), Use::kRead, &beta);
  operands.Add("output", all.dst, dst.bytes(), Use::kWrite, &dst.base);
  operands.Add("outputMean", all.mean, mean.bytes(rows), Use::kWrite, &mean.base);
  operands.Add("outputVariance", all.second, mean.bytes(rows), Use::kWrite, &variance.base);
  operands.MayShare(all.src, all.dst);  // inferred
  operands.Scratch(all.scratch, NormRowBytes(static_cast<std::uint32_t>(src.columns), reuse));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, rows * src.columns);
  if (Dry()) return;
  const std::vector<float> g = Floats(type, gamma, shape.channels);
  const std::vector<float> b = Floats(type, beta, shape.channels);
  std::vector<float> x(Count(src.columns)), work(x);
  for (std::int64_t r = 0; r < rows; ++r) {
    src.Load(r, x.data());
    const Moments found = MomentsOf(x.data(), src.columns, work.data());
    mean.Put(r, found.mean);
    variance.Put(r, found.variance);
    Scale(x.data(), src.columns, found.mean, RstdOf(found.variance, epsilon, true), nullptr,
          nullptr);
    const std::int64_t first = r % shape.groups * each;
    for (std::int64_t i = 0; i < src.columns; ++i) {
      const std::size_t channel = Count(first + i / shape.area);
      x[Count(i)] = x[Count(i)] * g[channel] + b[channel];
    }
    dst.Store(r, x.data());
  }
}

namespace {

// One row of LayerNormGrad, named as in the documentation.
void GradRow(float *x, float *dy, const float *gamma, std::int64_t real, Moments given,
             float epsilon, float *work) {
  const float rstd = 1.0f / OneFloat(Op::kSqrt, given.variance + epsilon);
  const float cube = rstd * rstd * rstd, part = 1.0f / static_cast<float>(real);
  for (std::int64_t i = 0; i < real; ++i) {
    dy[i] *= gamma[i];  // pd_xl
    x[i] -= given.mean;
    work[i] = -0.5f * dy[i] * x[i] * cube;
  }
  const float pdVar = SumFloats(work, real);
  for (std::int64_t i = 0; i < real; ++i) work[i] = -1.0f * dy[i] * rstd;
  const float first = SumFloats(work, real);
  for (std::int64_t i = 0; i < real; ++i) work[i] = -2.0f * x[i];
  const float pdMean = first + pdVar * part * SumFloats(work, real);
  for (std::int64_t i = 0; i < real; ++i) {
    dy[i] = dy[i] * rstd + pdVar * (2.0f * part) * x[i] + pdMean * part;  // pd_x
    x[i] *= rstd;                                                         // res_for_gamma
  }
}

}  // namespace

void NormGradOp(const Call &call, DType type, const NormGradTensors &all, const NormShape &shape,
                float epsilon, bool reuse) {
  Core &core = Enter(call);
  if (!CheckRows(call, shape, type)) return;
  UbMatrix x{nullptr, type, shape.rows, shape.width}, dy = x, pdX = x, forGamma = x;
  Column variance{nullptr, type, false}, mean = variance;
  std::uint8_t *gamma = nullptr;
  const std::int64_t stats = mean.bytes(shape.rows);
  Operands operands(core, call);
  operands.Add("inputDy", all.dy, dy.bytes(), Use::kRead, &dy.base, RealRows(shape, type));
  operands.Add("inputX", all.x, x.bytes(), Use::kRead, &x.base, RealRows(shape, type));
  operands.Add("inputVariance", all.variance, stats, Use::kRead, &variance.base);
  operands.Add("inputMean", all.mean, stats, Use::kRead, &mean.base);
  operands.Add("inputGamma", all.gamma, shape.real * SizeOf(type), Use::kRead, &gamma);
  operands.Add("outputPdX", all.pdX, pdX.bytes(), Use::kWrite, &pdX.base);
  operands.Add("resForGamma", all.forGamma, pdX.bytes(), Use::kWrite, &forGamma.base);
  for (const View *source : {all.dy, all.x}) {
    operands.MayShare(source, all.pdX);
    operands.MayShare(source, all.forGamma);
  }
  operands.Scratch(all.scratch, NormGradRowBytes(static_cast<std::uint32_t>(shape.width), reuse));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, shape.rows * shape.width);
  if (Dry()) return;
  std::vector<float> a(Count(shape.width)), d(a), work(a);
  const std::vector<float> g = Floats(type, gamma, shape.real);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    x.Load(r, a.data());
    dy.Load(r, d.data());
    GradRow(a.data(), d.data(), g.data(), shape.real, {mean.Get(r), variance.Get(r)}, epsilon,
            work.data());
    pdX.Store(r, d.data());
    forGamma.Store(r, a.data());
  }
}

void NormGradBetaOp(const Call &call, DType type, const View &pdGamma, const View &pdBeta,
                    const View &forGamma, const View &dy, const View *scratch,
                    const NormShape &shape) {
  Core &core = Enter(call);
  if (!CheckRows(call, shape, type)) return;
  UbMatrix r{nullptr, type, shape.rows, shape.width}, d = r;
  UbMatrix toGamma{nullptr, type, 1, shape.width}, toBeta = toGamma;
  Operands operands(core, call);
  operands.Add("resForGamma", &forGamma, r.bytes(), Use::kRead, &r.base, RealRows(shape, type));
  operands.Add("inputDy", &dy, d.bytes(), Use::kRead, &d.base, RealRows(shape, type));
  operands.Add("outputPdGamma", &pdGamma, toGamma.bytes(), Use::kWrite, &toGamma.base);
  operands.Add("outputPdBeta", &pdBeta, toBeta.bytes(), Use::kWrite, &toBeta.base);
  operands.MayShare(&forGamma, &pdGamma);
  operands.MayShare(&dy, &pdBeta);
  operands.Scratch(scratch, NormRowBytes(static_cast<std::uint32_t>(shape.width), false));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, shape.rows * shape.width);
  if (Dry()) return;
  std::vector<float> a(Count(shape.width)), b(a), gamma(a), beta(a);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    r.Load(row, a.data());
    d.Load(row, b.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      gamma[i] += a[i] * b[i];
      beta[i] += b[i];
    }
  }
  toGamma.Store(0, gamma.data());
  toBeta.Store(0, beta.data());
}

void WelfordUpdateOp(const Call &call, DType type, const WelfordTensors &all,
                     const AscendC::WelfordUpdateParam &para, bool inPlace) {
  Core &core = Enter(call);
  const std::int64_t n = para.abLength, active = para.abComputeLength;
  if (!InRange(call, "rnLength", para.rnLength, 1, 1) ||
      !InRange(call, "abLength", n, 1, kUbBytes) ||
      !InRange(call, "abComputeLength", active, 1, n)) {
    return;
  }
  if (n * SizeOf(type) % kBlock != 0) {
    Report(call, "param-range", Text("abLength of %s is %lld", call.api, Ll(n)), "",
           Text("a multiple of %d", static_cast<int>(kBlock / SizeOf(type))));
    return;
  }
  const std::int64_t reach = (inPlace ? n : active) * 4;
  std::uint8_t *x = nullptr, *inMean = nullptr, *inVariance = nullptr, *mean = nullptr,
               *variance = nullptr;
  Operands operands(core, call);
  operands.Add("inputX", all.src, active * SizeOf(type), Use::kRead, &x);
  operands.Add("inputMean", all.inMean, reach, Use::kRead, &inMean);
  operands.Add("inputVariance", all.inVariance, reach, Use::kRead, &inVariance);
  operands.Add("outputMean", all.outMean, reach, Use::kWrite, &mean);
  operands.Add("outputVariance", all.outVariance, reach, Use::kWrite, &variance);
  // the page forbids it, the library's own users do it: each element is read before it is written
  operands.MayShare(all.inMean, all.outMean);
  operands.MayShare(all.inVariance, all.outVariance);
  operands.Scratch(all.scratch, type == DType::kF16 ? 3 * kRepeat : 2 * kRepeat);  // guess
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, n);
  if (Dry()) return;
  const std::vector<float> v = Floats(type, x, active);
  const auto *m0 = reinterpret_cast<const float *>(inMean);
  const auto *s0 = reinterpret_cast<const float *>(inVariance);
  auto *m1 = reinterpret_cast<float *>(mean);
  auto *s1 = reinterpret_cast<float *>(variance);
  for (std::int64_t i = 0; i < reach / 4; ++i) {
    const bool in = i < active;
    const float away = in ? v[Count(i)] - m0[i] : 0.0f;
    const float next = in ? m0[i] + away * para.nRec : m0[i];
    s1[i] = in ? s0[i] + away * (v[Count(i)] - next) : s0[i];
    m1[i] = next;
  }
}

void WelfordFinalizeOp(const Call &call, const WelfordTensors &all, const View *counts,
                       const AscendC::WelfordFinalizePara &para) {
  Core &core = Enter(call);
  const std::int64_t n = para.abLength;
  if (!InRange(call, "abLength", n, 1, kUbBytes)) return;
  const bool whole = static_cast<std::int64_t>(para.headCountLength) + para.tailCountLength == n;
  if (n % 8 != 0 || (counts == nullptr && !whole) ||
      (para.tailCount == 0 && para.tailCountLength != 0)) {
    Report(call, "param-range", Text("lengths of %s do not fit together", call.api),
           Text("abLength %lld, head %u x %u, tail %u x %u", Ll(n), para.headCountLength,
                para.headCount, para.tailCountLength, para.tailCount),
           "abLength % 8 == 0, head + tail length == abLength, no tail length when tailCount is 0");
    return;
  }
  std::uint8_t *inMean = nullptr, *inVariance = nullptr, *mean = nullptr, *variance = nullptr,
               *count = nullptr;
  Operands operands(core, call);
  operands.Add("inputMean", all.inMean, n * 4, Use::kRead, &inMean);
  operands.Add("inputVariance", all.inVariance, n * 4, Use::kRead, &inVariance);
  operands.Add("counts", counts, n * 4, Use::kRead, &count);
  operands.Add("outputMean", all.outMean, kBlock, Use::kWrite, &mean);
  operands.Add("outputVariance", all.outVariance, kBlock, Use::kWrite, &variance);
  operands.Scratch(all.scratch, 2 * n * 4);  // guess: two rows
  if (!operands.Good()) return;
  UseReserve(core, call);  // doc: WelfordFinalize
  RecordLibrary(call.api, DType::kF32, n);
  if (Dry()) return;
  const auto *m = reinterpret_cast<const float *>(inMean);
  const auto *s = reinterpret_cast<const float *>(inVariance);
  const auto *c = reinterpret_cast<const std::int32_t *>(count);
  const bool tail = counts != nullptr || para.tailCount != 0;
  std::vector<float> weight(Count(n), static_cast<float>(para.rnLength)), work(weight);
  for (std::int64_t i = 0; tail && i < n; ++i) {
    weight[Count(i)] = c != nullptr               ? static_cast<float>(c[i])
                       : i < para.headCountLength ? static_cast<float>(para.headCount)
                                                  : static_cast<float>(para.tailCount);
  }
  for (std::int64_t i = 0; i < n; ++i) work[Count(i)] = tail ? m[i] * weight[Count(i)] : m[i];
  const float center = SumFloats(work.data(), n) * (tail ? para.rRec : para.abRec);
  for (std::int64_t i = 0; i < n; ++i) {
    work[Count(i)] = (m[i] - center) * (m[i] - center) * weight[Count(i)] + s[i];
  }
  float block[8] = {center};  // the rest of the datablock becomes zero, as in the page's example
  std::memcpy(mean, block, sizeof block);
  block[0] = SumFloats(work.data(), n) * para.rRec;
  std::memcpy(variance, block, sizeof block);
}

}  // namespace twin
