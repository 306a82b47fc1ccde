// Exp of the library: the whole part by the instruction, the rest by the first terms of its series.
#include "twin/math.h"

#include <cmath>

#include "vector/loops.h"
#include "log/record.h"
#include "twin/scratch.h"

namespace twin {

namespace {

// guess: computed exactly and rounded once; the page gives the formula, not the rounding of steps
double SeriesOf(double x, int level) {
  if (!std::isfinite(x)) return std::exp(x);
  const double whole = std::floor(x), rest = x - whole;
  double sum = 0.0;
  for (int i = level; i >= 0; --i) sum = i == level ? 1.0 : sum * rest / (i + 1) + 1.0;
  return std::exp(whole) * sum;
}

}  // namespace

void SeriesExp(const Call &call, DType type, const View &dst, const View &src,
               const View *scratch, int level, bool reuse, std::int64_t count) {
  Core &core = Enter(call);
  const std::int64_t bytes = count * SizeOf(type);
  if (!HasScratch(core, call, scratch, kBlock) || count == 0) return;
  const std::uint8_t *from =
      Usable(core, call, {"src", &src, bytes, kBlock, reuse ? Use::kUpdate : Use::kRead});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (from == nullptr || to == nullptr) return;
  if (!Disjoint(call, "dst", dst, bytes, "src", src, bytes)) return;
  RecordLibrary(call.api, type, count);
  if (Dry()) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = [&](double x) { return level == 0 ? std::exp(x) : SeriesOf(x, level); };
    if (type == DType::kF32) {
      float x;
      std::memcpy(&x, from + 4 * i, 4);
      x = static_cast<float>(value(static_cast<double>(x)));
      std::memcpy(to + 4 * i, &x, 4);
      continue;
    }
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    bits = FloatToHalf(static_cast<float>(value(static_cast<double>(HalfToFloat(bits)))));
    std::memcpy(to + 2 * i, &bits, 2);
  }
}

}  // namespace twin
