// Compound instructions that change the type on the way, dequantisation, int4, interpolation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/compound.h"

namespace twin {

namespace {

float RoundEven(float x) {
  const float magic = std::copysign(0x1p23f, x);
  return std::fabs(x) < 0x1p23f ? (x + magic) - magic : x;
}

// To an integer: to nearest even, stopped at the limits, NaN becomes 0.
template <typename To>
To Near(float x) {
  constexpr auto kLow = static_cast<float>(std::numeric_limits<To>::min());
  constexpr auto kHigh = static_cast<float>(std::numeric_limits<To>::max());
  const float whole = x != x ? 0.0f : RoundEven(x);
  return static_cast<To>(static_cast<std::int32_t>(std::clamp(whole, kLow, kHigh)));
}

template <typename To>
struct Narrower {
  static To Of(float x) { return Near<To>(x); }
  static To Of(std::int64_t x) {
    return static_cast<To>(std::clamp<std::int64_t>(x, std::numeric_limits<To>::min(),
                                                    std::numeric_limits<To>::max()));
  }
};
template <>
struct Narrower<half> {
  static half Of(float x) { return Widened<half>::Store(x); }
};

// Sums of int16_t are exact here; what the chip does with those that leave 16 bits is not told.
template <typename T>
using Summed = std::conditional_t<std::is_integral_v<T>, std::int64_t, float>;

// relu comes before the cast, and NaN ends as 0 (doc: boundary values of AddReluCast).
template <typename D, typename S, bool minus>
void SumReluCast(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<D *>(d);
  const auto *x = static_cast<const S *>(a);
  const auto *y = static_cast<const S *>(b);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto u = static_cast<Summed<S>>(Widened<S>::Load(x[i]));
    const auto v = static_cast<Summed<S>>(Widened<S>::Load(y[i]));
    auto sum = minus ? u - v : u + v;
    if constexpr (std::is_same_v<S, half>) sum = Widened<half>::Load(Widened<half>::Store(sum));
    to[i] = Narrower<D>::Of(sum > 0 ? sum : Summed<S>(0));
  }
}

template <typename D>
void MulCast(void *d, const void *a, const void *b, const void *, std::int64_t n) {
  auto *to = static_cast<D *>(d);
  const auto *x = static_cast<const half *>(a);
  const auto *y = static_cast<const half *>(b);
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = Near<D>(static_cast<float>(x[i] * y[i]));  // the product is rounded to half first
  }
}

// (a + b) / 2**17 * scale * 2**17, then relu (doc: AddDeqRelu); the powers of two are exact.
void DeqRelu(void *d, const void *a, const void *b, const void *scalar, std::int64_t n) {
  auto *to = static_cast<half *>(d);
  const auto *x = static_cast<const std::int32_t *>(a);
  const auto *y = static_cast<const std::int32_t *>(b);
  const auto scale = static_cast<double>(*static_cast<const float *>(scalar));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(x[i]) +
                                               static_cast<std::uint32_t>(y[i]));
    const auto scaled = static_cast<float>(static_cast<double>(sum) * scale);
    to[i] = half(scaled > 0 ? scaled : 0.0f);
  }
}

Loop FindLoop(Compound op, DType dst, DType src) {
  const bool minus = op == Compound::kSubReluCast;
  if (op == Compound::kAddDeqRelu) return DeqRelu;
  if (op == Compound::kMulCast) {
    return dst == DType::kI8 ? MulCast<std::int8_t> : MulCast<std::uint8_t>;
  }
  if (src == DType::kF32) {
    return minus ? SumReluCast<half, float, true> : SumReluCast<half, float, false>;
  }
  if (src == DType::kF16) {
    return minus ? SumReluCast<std::int8_t, half, true> : SumReluCast<std::int8_t, half, false>;
  }
  return minus ? SumReluCast<std::int8_t, std::int16_t, true>
               : SumReluCast<std::int8_t, std::int16_t, false>;
}

}  // namespace

namespace {

const char *NameOf(Compound op) {
  constexpr const char *kNames[] = {"add_relu_cast", "sub_relu_cast", "mul_cast", "add_deq_relu"};
  return kNames[static_cast<std::size_t>(op)];
}

}  // namespace

void CompoundOp(const Call &call, Compound op, DType dstType, DType srcType, const Lane &dst,
                const Lane &a, const Lane &b, const Walk &walk) {
  Core &core = Enter(call);
  if (op == Compound::kAddDeqRelu) UseReserve(core, call);
  Operand operands[] = {{"dst", dst, dstType}, {"src0", a, srcType}, {"src1", b, srcType}};
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / SizeOf(srcType), plan)) return;
  if (!CheckOperands(core, call, plan, operands, 3) || plan.empty()) return;
  for (int i = 1; i < 3; ++i) CheckOverlap(call, plan, operands[0], operands[i], false);
  RecordVector(NameOf(op), plan, operands, 3, SetsMask(walk));
  if (Dry()) return;
  Execute(plan, operands, 3, FindLoop(op, dstType, srcType), &core.deqScale);
  const Loop cap = SaturatesFloat(core) ? CapLoop(dstType) : nullptr;
  if (cap == nullptr) return;
  operands[0].updates = true;
  Execute(plan, operands, 1, cap, nullptr);
}

namespace {

// One word of DEQSCALE: a float of 10 mantissa bits, a 9-bit offset, the sign of the result.
struct Dequantiser {
  float scale;
  float offset;
  bool isSigned;

  explicit Dequantiser(std::uint64_t word)
      : scale(BitsFloat(static_cast<std::uint32_t>(word) & 0xFFFFE000u)),
        offset(
            static_cast<float>((static_cast<std::int32_t>(word >> 37 & 0x1FFu) ^ 0x100) - 0x100)),
        isSigned((word >> 46 & 1u) != 0) {}
  std::uint8_t Of(std::int16_t x) const {
    const float value = static_cast<float>(x) * scale + offset;
    return isSigned ? static_cast<std::uint8_t>(Near<std::int8_t>(value))
                    : Near<std::uint8_t>(value);
  }
};

constexpr std::int64_t kGroups = 16;  // dequantisers of a table, one for each lane of a block

bool ReadTable(Core &core, const Call &call, bool table, std::vector<Dequantiser> &all) {
  all.assign(kGroups, Dequantiser(core.control.deq));
  if (!table) return true;
  View view;
  view.addr = core.control.deqTable;
  view.bytes = kGroups * 8;
  view.position = AscendC::TPosition::VECCALC;
  if (core.control.deqTable < 0) {
    Report(call, "param-range", Text("%s takes 16 scales, SetDeqScale has not set them", call.api),
           "", "SetDeqScale(tensor, VdeqInfo) before");
    return false;
  }
  const std::uint8_t *words = Usable(core, call, {"vdeq", &view, view.bytes, kBlock, Use::kRead});
  for (std::int64_t i = 0; words != nullptr && i < kGroups; ++i) {
    std::uint64_t word;
    std::memcpy(&word, words + 8 * i, 8);
    all[static_cast<std::size_t>(i)] = Dequantiser(word);
  }
  return words != nullptr;
}

}  // namespace

// A block of 16 numbers becomes half a block of the destination; the other half stays.
void DequantOp(const Call &call, bool isSigned, bool table, bool lowerHalf, const Lane &dst,
               const Lane &src, const Walk &walk) {
  Core &core = Enter(call);
  std::vector<Dequantiser> how;
  if (!ReadTable(core, call, table, how)) return;
  if (how[0].isSigned != isSigned) {
    Report(call, "param-range",
           Text("%s writes %s, SetDeqScale said %s", call.api, isSigned ? "int8_t" : "uint8_t",
                how[0].isSigned ? "signed" : "unsigned"),
           "", "signMode true for int8_t, false for uint8_t");
  }
  // in the destination a number takes the place of 16 bits, of which one byte is written
  Operand operands[] = {{"dst", dst, DType::kI16}, {"src", src, DType::kI16}};
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / 2, plan)) return;
  if (!CheckOperands(core, call, plan, operands, 2) || plan.empty()) return;
  CheckOverlap(call, plan, operands[0], operands[1], false);
  RecordVector("cast_deq", plan, operands, 2, SetsMask(walk));
  if (Dry()) return;
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  std::int16_t lanes[kRepeat / 2];
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t n = r < plan.repeats ? plan.last + 1 : plan.tail;
    GatherRepeat(operands[1], r, n, lanes);
    for (std::int64_t i = 0; i < n; ++i) {
      if (r < plan.repeats && !Active(plan.mask, i)) continue;
      const std::int64_t block = i / kGroups, lane = i % kGroups;
      const std::int64_t at =
          (r * operands[0].lane.repeat + block * operands[0].lane.block) * kBlock;
      operands[0].base[at + (lowerHalf ? kBlock / 2 : 0) + lane] =
          how[static_cast<std::size_t>(lane)].Of(lanes[i]);
    }
  }
}

namespace {

// Where element i of repeat r lies; int4: two to a byte, the low four bits first.
std::int64_t HalfAt(const Lane &lane, std::int64_t r, std::int64_t i) {
  return (r * lane.repeat + i / 16 * lane.block) * kBlock + i % 16 * 2;
}
std::int64_t NibbleAt(const Lane &lane, std::int64_t r, std::int64_t i) {
  return (r * lane.repeat + i / 64 * lane.block) * kBlock + i % 64 / 2;
}

void WriteNibble(std::uint8_t *at, std::int64_t i, int value) {
  const int bits = value & 15;
  *at = static_cast<std::uint8_t>((i & 1) != 0 ? (*at & 0x0F) | bits << 4 : (*at & 0xF0) | bits);
}

int RoundNibble(half value, AscendC::RoundMode mode) {
  using AscendC::RoundMode;
  const auto x = static_cast<float>(value);
  if (x != x) return 0;
  float whole = RoundEven(x);
  if (mode == RoundMode::CAST_FLOOR) whole = std::floor(x);
  if (mode == RoundMode::CAST_CEIL) whole = std::ceil(x);
  if (mode == RoundMode::CAST_TRUNC) whole = std::trunc(x);
  if (mode == RoundMode::CAST_ROUND) whole = std::round(x);
  return static_cast<int>(std::clamp(whole, -8.0f, 7.0f));
}

}  // namespace

void CastInt4(const Call &call, bool toInt4, AscendC::RoundMode mode, const Lane &dst,
              const Lane &src, const Walk &walk) {
  Core &core = Enter(call);
  using AscendC::RoundMode;
  if ((!toInt4 && mode != RoundMode::CAST_NONE) || mode == RoundMode::CAST_ODD) {
    Report(call, "cast-mode", Text("Cast %s int4b_t", toInt4 ? "from half to" : "to half from"), "",
           toInt4 ? "any mode but CAST_ODD" : "CAST_NONE");
    return;
  }
  constexpr std::int64_t kLanes = kRepeat / 2;
  Plan plan;
  if (!MakePlan(core, call, walk, kLanes, plan)) return;
  Lane wide = toInt4 ? src : dst, narrow = toInt4 ? dst : src;
  if (plan.counted) {
    wide.repeat = kLanes * 2 / kBlock;
    narrow.repeat = kLanes / 2 / kBlock;
  }
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  if (plan.empty()) return;
  const std::int64_t last = plan.tail > 0 ? plan.tail - 1 : plan.last;
  if ((plan.tail | (plan.last + 1)) % 2 != 0) {
    Report(call, "param-range", "an odd number of int4b_t elements", "", "an even mask or count");
    return;
  }
  const std::int64_t wideBytes = std::max(HalfAt(wide, repeats - 1, last) + 2,
                                          Footprint(plan, wide, 2));
  const std::int64_t narrowBytes = NibbleAt(narrow, repeats - 1, last) + 1;
  std::uint8_t *halves = Usable(core, call, {toInt4 ? "src" : "dst", &wide.view, wideBytes});
  std::uint8_t *nibbles = Usable(core, call, {toInt4 ? "dst" : "src", &narrow.view, narrowBytes});
  if (halves == nullptr || nibbles == nullptr) return;
  if (!toInt4 && !Disjoint(call, "dst", wide.view, wideBytes, "src", narrow.view, narrowBytes)) {
    return;
  }
  const Operand operands[] = {{"dst", toInt4 ? narrow : wide, toInt4 ? DType::kI4 : DType::kF16},
                      {"src", toInt4 ? wide : narrow, toInt4 ? DType::kF16 : DType::kI4}};
  RecordVector("cast", plan, operands, 2, SetsMask(walk));
  if (Dry()) return;
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t n = r < plan.repeats ? plan.last + 1 : plan.tail;
    for (std::int64_t i = 0; i < n; ++i) {
      if (r < plan.repeats && !Active(plan.mask, i)) continue;
      auto *number = reinterpret_cast<half *>(halves + HalfAt(wide, r, i));
      std::uint8_t *pair = nibbles + NibbleAt(narrow, r, i);
      if (toInt4) WriteNibble(pair, i, RoundNibble(*number, mode));
      else *number = half(Int4At(pair, i % 2));
    }
  }
}

namespace {

constexpr std::int64_t kBlocks = kRepeat / kBlock;  // of one repeat
constexpr std::int64_t kHalves = kBlock / 2;        // numbers of a block

// The blocks of one iteration times their weights, added to `sums`, rounded at each step.
void AddBlocks(half *sums, const std::uint8_t *data, const std::uint32_t *offsets,
               const half *weights, bool each, bool first) {
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    const auto *block = reinterpret_cast<const half *>(data + offsets[b]);
    const half weight = weights[each ? b : 0];
    for (std::int64_t i = 0; i < kHalves; ++i) {
      half &sum = sums[b * kHalves + i];
      const half product = block[i] * weight;
      sum = first ? product : sum + product;
    }
  }
}

}  // namespace

void Interpolate(const Call &call, const View &dst, const View &src, const View &offsets,
                 const View &weights, const View &scratch, const Walk &walk,
                 const Interpolation &how) {
  Core &core = Enter(call);
  Plan plan;
  const bool good = InRange(call, "hRepeat", how.horizontal, 1, 255) &&
                    InRange(call, "vRepeat", how.vertical, 1, 255) &&
                    InRange(call, "vROffset", how.pitch, 128, 65534) &&
                    MakePlan(core, call, walk, kRepeat / 2, plan);
  if (!good || plan.last < 0) return;
  const std::int64_t rounds = how.horizontal * how.vertical;
  const std::int64_t used = rounds * (how.each ? kBlocks : 1);  // weights
  const std::int64_t dstBytes =
      (how.vertical - 1) * how.pitch * 2 + Footprint(plan, {dst, how.block, kBlocks}, 2);
  std::uint8_t *to = Usable(core, call, {"dst", &dst, dstBytes});
  const auto *at = reinterpret_cast<const std::uint32_t *>(
      Usable(core, call, {"src0Offset", &offsets, rounds * kBlocks * 4, kBlock, Use::kRead}));
  const auto *by =
      reinterpret_cast<const half *>(Usable(core, call, {"src1", &weights, used * 2}));
  // guess: what the documented steps need, gathered blocks and broadcast weights
  const std::int64_t need = rounds * kRepeat + (used + 7) / 8 * kRepeat;
  if (to == nullptr || at == nullptr || by == nullptr) return;
  if (!HasScratch(core, call, &scratch, need)) return;
  RecordLibrary(call.api, DType::kF16, rounds * kBlocks * kHalves);
  if (Dry()) return;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < rounds * kBlocks; ++i) {
    if (at[i] % kBlock != 0) {
      Report(call, "gather-offset",
             Text("offset %lld of %s is no multiple of 32 B", Ll(i), call.api), Text("%u", at[i]));
      return;
    }
    end = std::max<std::int64_t>(end, at[i] + kBlock);
  }
  const std::uint8_t *from = Usable(core, call, {"src0", &src, end});
  if (from == nullptr) return;
  for (std::int64_t v = 0; v < how.vertical; ++v) {
    half sums[kRepeat / 2];
    for (std::int64_t h = 0; h < how.horizontal; ++h) {
      const std::int64_t round = v * how.horizontal + h;
      AddBlocks(sums, from, at + round * kBlocks, by + round * (how.each ? kBlocks : 1), how.each,
                h == 0);
    }
    for (std::int64_t i = 0; i <= plan.last; ++i) {
      if (!Active(plan.mask, i)) continue;
      const std::int64_t byte =
          v * how.pitch * 2 + i / kHalves * how.block * kBlock + i % kHalves * 2;
      std::memcpy(to + byte, &sums[i], 2);
    }
  }
}

}  // namespace twin
