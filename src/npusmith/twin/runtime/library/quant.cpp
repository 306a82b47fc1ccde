// Quantisation: to int8_t and back, rounded at every step as the pages draw the steps.
#include "twin/quant.h"

#include <algorithm>
#include <cmath>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/scratch.h"

namespace twin {

namespace {

float ToHalf(float value) { return HalfToFloat(FloatToHalf(value)); }
float ToBf16(float value) { return Bf16ToFloat(FloatToBf16(value)); }

float NumberAt(const void *from, DType type, std::int64_t i) {
  switch (type) {
    case DType::kF16: return HalfToFloat(static_cast<const std::uint16_t *>(from)[i]);
    case DType::kBF16: return Bf16ToFloat(static_cast<const std::uint16_t *>(from)[i]);
    case DType::kU64: {  // doc: the low 32 bits are a float, the high ones do not matter here
      const auto bits = static_cast<std::uint32_t>(static_cast<const std::uint64_t *>(from)[i]);
      return BitsFloat(bits);
    }
    default: return static_cast<const float *>(from)[i];
  }
}

void PutNumber(void *to, DType type, std::int64_t i, float value) {
  switch (type) {
    case DType::kF16: static_cast<std::uint16_t *>(to)[i] = FloatToHalf(value); break;
    case DType::kBF16: static_cast<std::uint16_t *>(to)[i] = FloatToBf16(value); break;
    default: static_cast<float *>(to)[i] = value;
  }
}

std::int8_t ToInt8(float value) {
  if (value != value) return 0;
  const float near = std::nearbyint(value);  // ties to even
  return static_cast<std::int8_t>(std::clamp(near, -128.0f, 127.0f));
}

// A knob whose memory has been looked up.
struct Dial {
  const void *from;
  DType type;
  bool single;
  float operator()(std::int64_t i) const { return NumberAt(from, type, single ? 0 : i); }
};

bool Open(Core &core, const Call &call, const char *role, const Knob &knob, std::int64_t count,
          Dial &dial) {
  dial = {knob.scalar, knob.type, knob.tensor == nullptr};
  if (dial.single) return true;
  dial.from = Usable(core, call, {role, knob.tensor, count * SizeOf(knob.type)});
  return dial.from != nullptr;
}

bool CheckChannels(const Call &call, const Knob &scale, const Knob &offset, std::int64_t count) {
  constexpr std::int64_t kUnit = 32;  // doc: scaleCount
  if (scale.tensor == nullptr) return true;
  const bool whole = scale.columns > 0 && scale.columns % kUnit == 0;
  const bool same = offset.tensor == nullptr || offset.columns == scale.columns;
  if (whole && same && count % scale.columns == 0) return true;
  Report(call, "param-range", Text("counts of %s do not fit each other", call.api),
         Text("scaleCount %lld, offsetCount %lld, calCount %lld", Ll(scale.columns),
              Ll(offset.tensor == nullptr ? 0 : offset.columns), Ll(count)),
         "scaleCount a multiple of 32, offsetCount the same, calCount a multiple of it");
  return false;
}

}  // namespace

void QuantOp(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             const Knob &scale, const Knob &offset, std::int64_t count) {
  Core &core = Enter(call);
  if (count == 0 || !CheckChannels(call, scale, offset, count)) return;
  if (count % kBlock != 0) {
    Report(call, "param-range", Text("calCount of %s is %lld", call.api, Ll(count)),
           Text("%lld B of results", Ll(count)), "results of a multiple of 32 B");
    return;
  }
  if (!HasScratch(core, call, scratch, kBlock)) return;
  const std::int64_t bytes = count * SizeOf(type);
  Dial factor, addend;
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  if (from == nullptr || !Open(core, call, "scale", scale, scale.columns, factor)) return;
  if (!Open(core, call, "offset", offset, offset.columns, addend)) return;
  auto *to = reinterpret_cast<std::int8_t *>(Usable(core, call, {"dst", &dst, count}));
  if (to == nullptr) return;
  if (dst.addr != src.addr && !Disjoint(call, "dst", dst, count, "src", src, bytes)) return;
  RecordLibrary(call.api, type, count);
  if (Dry()) return;
  const std::int64_t period = scale.tensor == nullptr ? count : scale.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    // everything becomes half first
    const float x = ToHalf(NumberAt(from, type, i)), s = ToHalf(factor(i % period));
    to[i] = ToInt8(ToHalf(ToHalf(x * s) + ToHalf(addend(i % period))));
  }
}

void DequantOp(const Call &call, DType dstType, const View &dst, const View &src,
               const View *scratch, const Knob &scale, const DequantJob &job) {
  Core &core = Enter(call);
  constexpr std::int64_t kWord = 4;
  const std::int64_t size = SizeOf(dstType), perBlock = kBlock / size;
  if (!InRange(call, "DequantParams.m", job.rows, 1, 0x7FFFFFFF)) return;
  if (!InRange(call, "DequantParams.calCount", job.used, 1, job.columns)) return;
  if (job.columns * kWord % kBlock != 0) {
    Report(call, "param-range", Text("rows of %s have %lld B", call.api, Ll(job.columns * kWord)),
           Text("n = %lld", Ll(job.columns)), "n a multiple of 8");
    return;
  }
  // doc: {1, n, calCount} counts as {n / calCount, calCount, calCount}
  const bool split = job.splitRow && job.rows == 1 && job.used % perBlock == 0 &&
                     job.columns % job.used == 0;
  const std::int64_t rows = split ? job.columns / job.used : job.rows;
  const std::int64_t columns = split ? job.used : job.columns;
  const std::int64_t pitch = RoundUp(columns, perBlock);
  const std::int64_t srcBytes = ((rows - 1) * columns + job.used) * kWord;
  const std::int64_t dstBytes = ((rows - 1) * pitch + job.used) * size;
  if (!HasScratch(core, call, scratch, kBlock)) return;
  Dial factor;
  const auto *from = reinterpret_cast<const std::int32_t *>(
      Usable(core, call, {"src", &src, srcBytes, kBlock, Use::kByRole,
                          {job.used * kWord, columns * kWord}}));
  if (from == nullptr || !Open(core, call, "deqScale", scale, job.used, factor)) return;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes, kBlock, Use::kByRole,
                                         {job.used * size, pitch * size}});
  if (to == nullptr || !Disjoint(call, "dst", dst, dstBytes, "src", src, srcBytes)) return;
  RecordLibrary(call.api, DType::kI32, rows * job.used);
  if (Dry()) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < job.used; ++i) {
      PutNumber(to, dstType, row * pitch + i,
                static_cast<float>(from[row * columns + i]) * factor(i));
    }
  }
}

namespace {

// How often a row (or column) of the plate serves before the next one takes over.
bool CheckPlate(const Call &call, const char *what, const Knob &knob, const AntiQuantJob &job,
                std::int64_t n) {
  if (knob.tensor == nullptr) return true;
  const std::int64_t along = job.transposed ? knob.columns : knob.rows;
  const std::int64_t across = job.transposed ? knob.rows : knob.columns;
  if (along > 0 && job.k % along == 0 && across == n) return true;
  Report(call, "param-range",
         Text("the shape of %s does not fit the source of %s", what, call.api),
         Text("%lld x %lld for a source of k %lld and n %lld", Ll(knob.rows), Ll(knob.columns),
              Ll(job.k), Ll(n)),
         job.transposed ? "[N, K / groupSize]" : "[K / groupSize, N]",
         "pass AntiQuantShapeInfo or SetShapeInfo");
  return false;
}

int Nibble(const std::int8_t *from, std::int64_t i) {
  const int byte = from[i / 2];
  const int bits = (i % 2 == 0 ? byte : byte >> 4) & 0xF;
  return bits < 8 ? bits : bits - 16;
}

std::int64_t PlateAt(const Knob &knob, const AntiQuantJob &job, std::int64_t row,
                     std::int64_t column) {
  if (knob.tensor == nullptr) return 0;
  if (job.transposed) return row * knob.columns + column / (job.k / knob.columns);
  return row / (job.k / knob.rows) * knob.columns + column;
}

}  // namespace

void AntiQuantOp(const Call &call, DType dstType, const View &dst, const View &src,
                 const View *scratch, const Knob &givenScale, const Knob *givenOffset,
                 const AntiQuantJob &job) {
  Core &core = Enter(call);
  Knob scale = givenScale, ownOffset = givenOffset == nullptr ? scale : *givenOffset;
  const Knob *offset = givenOffset == nullptr ? nullptr : &ownOffset;
  // Both have one shape; the vendor's example sets that of the offset alone.
  const auto share = [](Knob &to, const Knob &from) {
    if (to.tensor == nullptr || to.rows * to.columns > 0) return;
    to.rows = from.rows, to.columns = from.columns;
  };
  share(scale, ownOffset);
  share(ownOffset, scale);
  const std::int64_t size = SizeOf(dstType), bytes = src.bytes;  // the whole source tensor
  const std::int64_t count = job.packed ? 2 * bytes : bytes;
  if (!InRange(call, "k", job.k, 1, count) || !HasScratch(core, call, scratch, kBlock)) return;
  if (count % job.k != 0 || count % kBlock != 0 || (job.transposed && job.k % kBlock != 0)) {
    Report(call, "param-range", Text("the source of %s does not fit k", call.api),
           Text("%lld elements, k %lld", Ll(count), Ll(job.k)),
           "a multiple of 32 and of k; k a multiple of 32 when transposed");
    return;
  }
  const std::int64_t n = count / job.k, columns = job.transposed ? job.k : n;
  if (!CheckPlate(call, "scale", scale, job, n)) return;
  if (offset != nullptr && !CheckPlate(call, "offset", *offset, job, n)) return;
  Dial factor, addend{};
  const auto *from =
      reinterpret_cast<const std::int8_t *>(Usable(core, call, {"src", &src, bytes}));
  if (from == nullptr || !Open(core, call, "scale", scale, scale.rows * scale.columns, factor)) {
    return;
  }
  if (offset != nullptr &&
      !Open(core, call, "offset", *offset, offset->rows * offset->columns, addend)) {
    return;
  }
  std::uint8_t *to = Usable(core, call, {"dst", &dst, count * size});
  if (to == nullptr || !Disjoint(call, "dst", dst, count * size, "src", src, bytes)) return;
  RecordLibrary(call.api, DType::kI8, count);
  if (Dry()) return;
  const auto step = [&](float value) { return dstType == DType::kF16 ? ToHalf(value) : value; };
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    float value = static_cast<float>(job.packed ? Nibble(from, i) : from[i]);
    if (offset != nullptr) value = step(value + addend(PlateAt(*offset, job, row, column)));
    PutNumber(to, dstType, i, value * factor(PlateAt(scale, job, row, column)));
  }
}

}  // namespace twin
