// SoftMax and its relatives, in the documented order of steps: floats inside (half inputs are
// widened and results rounded once), sums over 64 lanes and then a tree.
#include "log/record.h"
#include "vector/ub_matrix.h"
#include "twin/softmax.h"

namespace twin {

namespace {

constexpr std::int64_t kFractal = 16;  // columns of a piece of NZ data

bool CheckShape(const Call &call, const SoftShape &shape, DType type) {
  const std::int64_t size = SizeOf(type);
  if (!InRange(call, "srcM", shape.m, 1, kUbBytes) ||
      !InRange(call, "srcK", shape.k, 1, kUbBytes) ||
      !InRange(call, "oriSrcM", shape.realM, 1, shape.m) ||
      !InRange(call, "oriSrcK", shape.realK, 1, shape.k)) {
    return false;
  }
  if (shape.k * size % kBlock != 0) {
    Report(call, "param-range",
           Text("rows of %s have %lld B, not a multiple of 32", call.api, Ll(shape.k * size)),
           Text("srcK = %lld", Ll(shape.k)), "srcK * sizeof(T) % 32 == 0",
           "pad the rows, and pass their true length as oriSrcK");
    return false;
  }
  if (shape.nz && (shape.m % kFractal != 0 || shape.k % kFractal != 0)) {
    Report(call, "param-range",
           Text("NZ data of %s are %lld x %lld", call.api, Ll(shape.m), Ll(shape.k)), "",
           "multiples of 16");
    return false;
  }
  const bool block = shape.k % 64 == 0 && shape.k >= kRepeat / size && shape.k < 2048 &&
                     shape.m % 8 == 0;
  if (shape.basic && !block) {
    Report(call, "param-range",
           Text("isBasicBlock of %s is set for %lld x %lld", call.api, Ll(shape.m), Ll(shape.k)),
           "",
           Text("rows a multiple of 8, row length a multiple of 64 in %lld..2047",
                Ll(kRepeat / size)));
    return false;
  }
  return true;
}

// What is read of a matrix: without the padding of its rows, whose values do not matter.
Spread RealRows(const SoftShape &shape, DType type) {
  if (shape.nz || shape.realK == shape.k) return {};
  return {shape.realK * SizeOf(type), shape.k * SizeOf(type)};
}

UbMatrix UbMatrixOf(const SoftShape &shape, DType type) {
  return {nullptr, type, shape.m, shape.k, shape.nz};
}

void Minus(float *x, float value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] -= value;
}
void Over(float *x, float value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] /= value;
}
void ExpRow(float *x, std::int64_t n) {
  MathLoop(Op::kExp, DType::kF32)(x, x, nullptr, nullptr, n);
}

struct Job {
  Soft soft;
  bool update;
  SoftShape shape;
  UbMatrix src, dst;
  Column sum, max, expMax, inSum, inMax, rowMax;

  void Row(std::int64_t r, float *x) const;
};

void Job::Row(std::int64_t r, float *x) const {
  const std::int64_t k = shape.k, real = shape.realK;
  src.Load(r, x);
  if (soft == Soft::kSimple) {
    Minus(x, inMax.Get(r), k);
    ExpRow(x, k);
    Over(x, inSum.Get(r), k);
    return dst.Store(r, x);
  }
  float most = MaxFloats(x, real), before = 0.0f;
  if (rowMax.base != nullptr && update) rowMax.Put(r, most);
  if (update) {
    const float old = inMax.Get(r);
    most = old > most || old != old ? old : most;
    before = OneFloat(Op::kExp, old - most);
  }
  Minus(x, most, k);
  ExpRow(x, k);
  float total = SumFloats(x, real);
  if (update) {
    const float old = before * inSum.Get(r);
    total = old + total;
    if (soft == Soft::kFlash) before = old / total;
    expMax.Put(r, before);
  }
  if (max.base != nullptr) max.Put(r, most);
  if (sum.base != nullptr) sum.Put(r, total);
  if (soft != Soft::kFlash2) Over(x, total, k);
  if (soft == Soft::kLog) MathLoop(Op::kLog10, DType::kF32)(x, x, nullptr, nullptr, k);
  dst.Store(r, x);
}

}  // namespace

SoftShape SoftShapeOf(const Call &call, const SoftAsked &asked, const AscendC::ShapeInfo &info,
                      bool nz, bool basic) {
  SoftShape shape{asked.srcM, asked.srcK, asked.oriSrcM, asked.oriSrcK, nz, basic};
  const auto fold = [](const std::uint32_t *dims, std::int64_t count, std::int64_t &m,
                       std::int64_t &k) {
    m = 1;
    for (std::int64_t i = 0; i + 1 < count; ++i) m *= dims[i];
    k = dims[count - 1];
  };
  const bool said = shape.m > 0 && shape.k > 0;
  if (!said && info.shapeDim > 0 && info.shapeDim <= 8) {
    fold(info.shape, info.shapeDim, shape.m, shape.k);
    shape.realM = shape.m, shape.realK = shape.k;
    if (info.originalShapeDim > 0 && info.originalShapeDim <= 8) {
      fold(info.originalShape, info.originalShapeDim, shape.realM, shape.realK);
    }
  } else if (!said) {
    shape.m = shape.realM = asked.tilingM;
    shape.k = shape.realK = asked.tilingK;
  }
  if (asked.fixedM != 0) shape.realM = asked.fixedM;
  if (asked.fixedK != 0) shape.realK = asked.fixedK;
  if (shape.realM == 0) shape.realM = shape.m;
  if (shape.realK == 0) shape.realK = shape.k;
  const bool made = asked.tilingM == shape.m && asked.tilingK == shape.k;
  if (!asked.check && !made) {
    Report(call, "param-range",
           Text("tiling of %s is for another shape, and isCheckTiling is false", call.api),
           Text("tiling for %u x %u, data %lld x %lld", asked.tilingM, asked.tilingK, Ll(shape.m),
                Ll(shape.k)),
           "the shape of the data", "make the tiling for this shape, or set isCheckTiling");
  }
  return shape;
}

void SoftOp(const Call &call, Soft soft, const SoftHold &hold, const SoftTensors &all,
            const SoftShape &shape, bool update) {
  Core &core = Enter(call);
  if (!CheckShape(call, shape, hold.type)) return;
  if (all.rowMax != nullptr && !hold.alone) {
    Report(call, "param-range", Text("%s with outReduceMax does nothing in this mode", call.api),
           "SOFTMAX_NORMAL", "SOFTMAX_OUTPUT_WITHOUT_BRC");
    return;
  }
  Job job{soft, update, shape, UbMatrixOf(shape, hold.type), UbMatrixOf(shape, hold.type),
          {}, {}, {}, {}, {}, {}};
  const Column stat{nullptr, hold.stat, !hold.alone};
  job.sum = job.max = job.inSum = job.inMax = job.rowMax = stat;
  job.expMax = {nullptr, hold.type, !hold.alone};
  const std::int64_t bytes = stat.bytes(shape.m);
  const bool given = soft == Soft::kSimple || update;
  Operands operands(core, call);
  operands.Add("srcTensor", all.src, job.src.bytes(), Use::kRead, &job.src.base,
               RealRows(shape, hold.type));
  operands.Add("inSumTensor", given ? all.inSum : nullptr, bytes, Use::kRead, &job.inSum.base);
  operands.Add("inMaxTensor", given ? all.inMax : nullptr, bytes, Use::kRead, &job.inMax.base);
  operands.Add("dstTensor", all.dst, job.dst.bytes(), Use::kWrite, &job.dst.base);
  operands.Add("sumTensor", all.sum, bytes, Use::kWrite, &job.sum.base);
  operands.Add("maxTensor", all.max, bytes, Use::kWrite, &job.max.base);
  operands.Add("outReduceMax", update ? all.rowMax : nullptr, bytes, Use::kWrite,
               &job.rowMax.base);
  operands.Add("expMaxTensor", update ? all.expMax : nullptr, job.expMax.bytes(shape.m),
               Use::kWrite, &job.expMax.base);
  if (soft != Soft::kLog) operands.MayShare(all.src, all.dst);
  operands.MayShare(all.sum, all.inSum);
  operands.MayShare(all.max, all.inMax);
  operands.Scratch(all.scratch, SoftRowBytes(soft, static_cast<std::uint32_t>(shape.k),
                                             SizeOf(hold.type), update));
  if (!operands.Good()) return;
  RecordLibrary(call.api, hold.type, shape.m * shape.k);
  if (Dry()) return;
  std::vector<float> x(static_cast<std::size_t>(shape.k));
  for (std::int64_t r = 0; r < shape.m; ++r) job.Row(r, x.data());
}

namespace {

// The worst that is known of the elements of one row.
Known RowKnown(Core &core, std::int64_t at, std::int64_t count, int size) {
  if (ShadowClean(core, Memory::kUb, at, at + count * size)) return Known::kData;
  Known worst = Known::kData;
  for (std::int64_t i = 0; i < count; ++i) {
    worst = std::max(worst, ShadowOf(core, Memory::kUb, at + i * size, at + (i + 1) * size));
  }
  return worst;
}

// A row of the result is unknown where an element of the same row of an operand was never written.
void TaintRows(Core &core, const View &dst, std::int64_t pitch, const std::vector<bool> &bad) {
  if (std::find(bad.begin(), bad.end(), true) == bad.end()) return;
  ShadowDone(core);
  for (std::size_t r = 0; r < bad.size(); ++r) {
    const std::int64_t at = dst.addr + static_cast<std::int64_t>(r) * pitch;
    ShadowSet(core, Memory::kUb, at, at + pitch, bad[r] ? Known::kTainted : Known::kData);
  }
}

}  // namespace

void SoftGradOp(const Call &call, DType type, const View &dst, const View &grad, const View &src,
                const View *scratch, const SoftShape &shape, bool front) {
  Core &core = Enter(call);
  if (!CheckShape(call, shape, type)) return;
  UbMatrix x = UbMatrixOf(shape, type), y = x, out = x;
  Column sums{nullptr, type, true};
  Operands operands(core, call);
  operands.Add("gradTensor", &grad, x.bytes(), Use::kRead, &x.base, RealRows(shape, type));
  operands.Add("srcTensor", &src, y.bytes(), Use::kRead, &y.base, RealRows(shape, type));
  operands.Add("dstTensor", &dst, front ? sums.bytes(shape.m) : out.bytes(), Use::kWrite,
               front ? &sums.base : &out.base);
  if (!front) operands.MayShare(&dst, &src);
  if (!front) operands.MayShare(&dst, &grad);  // inferred: the steps allow it
  operands.Scratch(scratch, SoftRowBytes(Soft::kGrad, static_cast<std::uint32_t>(shape.k),
                                         SizeOf(type), false));
  if (!operands.Good()) return;
  RecordLibrary(call.api, type, shape.m * shape.k);
  if (Dry()) return;
  const auto k = static_cast<std::size_t>(shape.k);
  std::vector<float> g(k), s(k), product(k);
  const int size = SizeOf(type);
  std::vector<bool> bad(static_cast<std::size_t>(front || shape.nz ? 0 : shape.m));
  for (std::size_t r = 0; r < bad.size(); ++r) {
    const std::int64_t row = static_cast<std::int64_t>(r) * shape.k * size;
    bad[r] = RowKnown(core, grad.addr + row, shape.realK, size) >= Known::kTainted ||
             RowKnown(core, src.addr + row, shape.realK, size) >= Known::kTainted;
  }
  TaintRows(core, dst, shape.k * size, bad);
  for (std::int64_t r = 0; r < shape.m; ++r) {
    x.Load(r, g.data());
    y.Load(r, s.data());
    for (std::size_t i = 0; i < k; ++i) product[i] = g[i] * s[i];
    const float total = SumFloats(product.data(), shape.realK);
    if (front) {
      sums.Put(r, total);
      continue;
    }
    for (std::size_t i = 0; i < k; ++i) product[i] = (g[i] - total) * s[i];
    out.Store(r, product.data());
  }
}

bool SoftAdjustOp(const Call &call, const SoftHold &hold, const View &result, const View &max,
                  std::uint32_t from, float to, const SoftShape &shape) {
  Core &core = Enter(call);
  if (!CheckShape(call, shape, hold.type)) return false;
  UbMatrix sheet = UbMatrixOf(shape, hold.type);
  Column stat{nullptr, hold.stat, !hold.alone};
  Operands operands(core, call);
  operands.Add("maxTensor", &max, stat.bytes(shape.m), Use::kRead, &stat.base);
  operands.Add("softMaxRes", &result, sheet.bytes(), Use::kWrite, &sheet.base);
  if (!operands.Good()) return false;
  RecordLibrary(call.api, hold.type, shape.m * shape.k);
  if (Dry()) return false;
  const std::vector<float> row(static_cast<std::size_t>(shape.k), to);
  bool found = false;
  for (std::int64_t r = 0; r < shape.m; ++r) {
    std::uint32_t bits = 0;
    const int size = SizeOf(hold.stat);
    const std::uint8_t *place = stat.base + r * (hold.alone ? size : kBlock);
    std::memcpy(&bits, place, static_cast<std::size_t>(size));
    if (bits != from) continue;
    found = true;
    sheet.Store(r, row.data());
  }
  return found;
}

namespace {

bool CheckPasa(const Call &call, const SoftPasa &pasa, const SoftShape &shape) {
  const bool whole = shape.realM == shape.m && shape.realK == shape.k;
  if (!whole || shape.k < 512 || shape.k % 64 != 0 || shape.m % 8 != 0) {
    Report(call, "param-range",
           Text("%s of %lld x %lld (without padding %lld x %lld)", call.api, Ll(shape.m),
                Ll(shape.k), Ll(shape.realM), Ll(shape.realK)),
           "", "no padding, rows a multiple of 8, row length a multiple of 64 from 512 on");
    return false;
  }
  return InRange(call, "splitMeanCnt", pasa.pieces, 8, 8) &&
         InRange(call, "loopCnt", pasa.loops, 1, INT32_MAX);
}

struct PasaJob {
  SoftShape shape;
  SoftPasa pasa;
  UbMatrix src, dst;
  Column mean, sum, max, expMax, inMean, inSum, inMax;

  void Row(std::int64_t r, float *x, bool update) const;
};

// The means that are taken off the eight pieces of a row, by the documentation's pseudo code: sums
// of blocks of 8, then of 8 such sums. What lies beyond the first 512 elements is added in steps of
// 64 before the last of these sums, so a mean is that of its piece in rows of 512 alone.
void PieceMeans(const float *x, std::int64_t k, std::int64_t pieces, float *means) {
  float sums[64];
  for (std::int64_t block = 0; block < 64; ++block) sums[block] = SumFloats(x + block * 8, 8);
  for (std::int64_t at = 512; at < k; ++at) sums[at % 64] += x[at];
  for (std::int64_t p = 0; p < pieces; ++p) {
    means[p] = SumFloats(sums + p * 8, 8) / static_cast<float>(k / pieces);
  }
}

// Step by step as in the pseudo code of the documentation (SoftmaxFlashV3).
void PasaJob::Row(std::int64_t r, float *x, bool update) const {
  const float scalar = pasa.alpha / (1.0f - pasa.alpha);
  const std::int64_t k = shape.k, piece = k / pasa.pieces;
  src.Load(r, x);
  float means[8];  // CheckPasa takes no other number of pieces
  PieceMeans(x, k, pasa.pieces, means);
  const float all = SumFloats(means, pasa.pieces) / static_cast<float>(pasa.pieces);
  for (std::int64_t p = 0; p < pasa.pieces; ++p) {
    Minus(x + p * piece, (all - means[p]) * scalar, piece);
  }
  const auto loops = static_cast<float>(pasa.loops);
  const float old = update ? inMean.Get(r) : 0.0f;
  const float average = update ? (all + old * (loops - 1.0f)) / loops : all;
  const float shift = (all - average) * scalar, before = (old - average) * scalar;
  float most = shift + MaxFloats(x, k), factor = 0.0f;
  if (update) {
    const float last = inMax.Get(r);
    most = std::max(most, before + last);
    factor = OneFloat(Op::kExp, last - most + before);
    expMax.Put(r, factor);
  }
  Minus(x, most - shift, k);
  ExpRow(x, k);
  const float total = SumFloats(x, k);
  mean.Put(r, average);
  max.Put(r, most);
  sum.Put(r, update ? factor * inSum.Get(r) + total : total);
  dst.Store(r, x);
}

}  // namespace

void SoftPasaOp(const Call &call, const SoftTensors &all, const SoftPasa &pasa,
                const SoftShape &shape, bool update) {
  Core &core = Enter(call);
  if (!CheckShape(call, shape, DType::kF16) || !CheckPasa(call, pasa, shape)) return;
  const Column stat{nullptr, DType::kF32, true};
  PasaJob job{shape, pasa, UbMatrixOf(shape, DType::kF16), UbMatrixOf(shape, DType::kF16),
              stat,  stat, stat, {nullptr, DType::kF16, true}, stat, stat, stat};
  const std::int64_t bytes = stat.bytes(shape.m);
  Operands operands(core, call);
  operands.Add("srcTensor", all.src, job.src.bytes(), Use::kRead, &job.src.base);
  if (update) {
    operands.Add("inMeanTensor", pasa.inMean, bytes, Use::kRead, &job.inMean.base);
    operands.Add("inExpSumTensor", all.inSum, bytes, Use::kRead, &job.inSum.base);
    operands.Add("inMaxTensor", all.inMax, bytes, Use::kRead, &job.inMax.base);
    operands.Add("expMaxTensor", all.expMax, bytes, Use::kWrite, &job.expMax.base);
  }
  operands.Add("dstTensor", all.dst, job.dst.bytes(), Use::kWrite, &job.dst.base);
  operands.Add("meanTensor", pasa.mean, bytes, Use::kWrite, &job.mean.base);
  operands.Add("expSumTensor", all.sum, bytes, Use::kWrite, &job.sum.base);
  operands.Add("maxTensor", all.max, bytes, Use::kWrite, &job.max.base);
  operands.MayShare(all.src, all.dst);
  operands.MayShare(pasa.mean, pasa.inMean);
  operands.MayShare(all.sum, all.inSum);
  operands.MayShare(all.max, all.inMax);
  operands.Scratch(all.scratch, SoftRowBytes(Soft::kFlash3, static_cast<std::uint32_t>(shape.k), 2,
                                             update));
  if (!operands.Good()) return;
  RecordLibrary(call.api, DType::kF16, shape.m * shape.k);
  if (Dry()) return;
  std::vector<float> x(static_cast<std::size_t>(shape.k));
  for (std::int64_t r = 0; r < shape.m; ++r) job.Row(r, x.data(), update);
}

}  // namespace twin
