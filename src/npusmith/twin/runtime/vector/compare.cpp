// Compare to bits, and Select by bits.
#include <algorithm>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

using AscendC::CMPMODE;
using AscendC::SELMODE;

template <typename T>
bool IsNan(T value) { return value != value; }

// NE with a NaN on either side is false on the chip (doc: boundary values of Compare).
template <typename T, CMPMODE mode>
bool Holds(T a, T b) {
  switch (mode) {
    case CMPMODE::LT: return a < b;
    case CMPMODE::GT: return a > b;
    case CMPMODE::EQ: return a == b;
    case CMPMODE::LE: return a <= b;
    case CMPMODE::GE: return a >= b;
    default: return a != b && !IsNan(a) && !IsNan(b);
  }
}

using BitLoop = void (*)(std::uint8_t *bits, const void *a, const void *b, bool scalar,
                         std::int64_t n);

// n is a multiple of 8.
template <typename T, CMPMODE mode>
void CompareLoop(std::uint8_t *bits, const void *a, const void *b, bool scalar, std::int64_t n) {
  const auto *x = static_cast<const T *>(a);
  const auto *y = static_cast<const T *>(b);
  for (std::int64_t i = 0; i < n; i += 8) {
    unsigned byte = 0;
    for (std::int64_t j = 0; j < 8; ++j) {
      const auto left = Widened<T>::Load(x[i + j]), right = Widened<T>::Load(y[scalar ? 0 : i + j]);
      byte |= static_cast<unsigned>(Holds<typename Widened<T>::Type, mode>(left, right)) << j;
    }
    bits[i / 8] = static_cast<std::uint8_t>(byte);
  }
}

template <typename T>
BitLoop ForMode(CMPMODE mode) {
  switch (mode) {
    case CMPMODE::LT: return CompareLoop<T, CMPMODE::LT>;
    case CMPMODE::GT: return CompareLoop<T, CMPMODE::GT>;
    case CMPMODE::EQ: return CompareLoop<T, CMPMODE::EQ>;
    case CMPMODE::LE: return CompareLoop<T, CMPMODE::LE>;
    case CMPMODE::GE: return CompareLoop<T, CMPMODE::GE>;
    default: return CompareLoop<T, CMPMODE::NE>;
  }
}

BitLoop FindLoop(DType type, CMPMODE mode) {
  if (type == DType::kF32) return ForMode<float>(mode);
  return type == DType::kF16 ? ForMode<half>(mode) : ForMode<std::int32_t>(mode);
}

// Compare works on whole repeats: a count form must be a multiple, other forms ignore the mask.
bool WholeRepeats(const Call &call, const Walk &walk, std::int64_t lanes, Plan &plan) {
  plan = Plan{lanes, walk.repeats, {~0ull, ~0ull}, lanes - 1, 0, true, false};
  if (walk.kind != Walk::Kind::kCount) {
    if (!InRange(call, "repeatTime", walk.repeats, 0, 255)) plan.repeats = walk.repeats & 255;
    return true;
  }
  if (!InRange(call, "count", walk.count, 0, 0x7FFFFFFF)) return false;
  plan.counted = true;
  plan.repeats = walk.count / lanes;
  if (walk.count % lanes == 0) return true;
  Report(call, "compare-length",
         Text("%s of %lld elements does not fill whole 256-byte repeats", call.api,
              Ll(walk.count)),
         Text("the last %lld elements are not compared", Ll(walk.count % lanes)),
         Text("a multiple of %lld elements", Ll(lanes)));
  return true;
}

}  // namespace

void CompareOp(const Call &call, DType type, CMPMODE mode, const View &dst, const Lane &a,
               const Lane *b, const void *scalar, const Walk &walk) {
  Core &core = Enter(call);
  const std::int64_t lanes = kRepeat / SizeOf(type);
  if (type == DType::kI32 && mode != CMPMODE::EQ) {
    Report(call, "param-range", Text("%s of int32_t has no other mode than EQ", call.api),
           Text("mode %d", static_cast<int>(mode)), "CMPMODE::EQ, or half and float");
    return;
  }
  Plan plan;
  if (!WholeRepeats(call, walk, lanes, plan)) return;
  Operand operands[] = {{"src0", a, type}, {"src1", b != nullptr ? *b : a, type}};
  const bool good = CheckOperands(core, call, plan, operands, b != nullptr ? 2 : 1);
  const std::int64_t bytes = lanes / 8;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, plan.repeats * bytes});
  if (!good || to == nullptr) return;
  for (int i = 0; i < (b != nullptr ? 2 : 1); ++i) {
    const std::int64_t source = Footprint(plan, operands[i].lane, SizeOf(type));
    if (dst.addr != operands[i].lane.view.addr) {
      Disjoint(call, "dst", dst, plan.repeats * bytes, operands[i].role, operands[i].lane.view,
               source);
    }
  }
  const Operand out{"dst", {dst, 1, 1}, DType::kU8};  // a repeat gives less than a block of bits
  const Operand all[] = {out, operands[0], operands[1]};
  RecordVector(b != nullptr ? "compare" : "compares", plan, all, b != nullptr ? 3 : 2,
               plan.counted);
  const BitLoop loop = FindLoop(type, mode);
  alignas(64) std::uint8_t x[kRepeat], y[kRepeat];
  for (std::int64_t r = 0; !Dry() && r < plan.repeats; ++r) {
    GatherRepeat(operands[0], r, lanes, x);
    if (b != nullptr) GatherRepeat(operands[1], r, lanes, y);
    loop(to + r * bytes, x, b != nullptr ? y : scalar, b == nullptr, lanes);
  }
  if (walk.kind == Walk::Kind::kCount) {
    core.counter = false;
    core.mask[0] = core.mask[1] = ~0ull;
    core.maskTouched = false;
  }
}

void CompareToRegister(const Call &call, DType type, CMPMODE mode, const Lane &a, const Lane &b,
                       const Walk &walk) {
  Core &core = Enter(call);
  const std::int64_t lanes = kRepeat / SizeOf(type);
  Plan plan;
  if (!MakePlan(core, call, walk, lanes, plan)) return;
  Operand operands[] = {{"src0", a, type}, {"src1", b, type}};
  if (!CheckOperands(core, call, plan, operands, 2) || plan.last < 0) return;
  RecordVector("compare", plan, operands, 2, SetsMask(walk));
  if (Dry()) return;
  alignas(64) std::uint8_t x[kRepeat] = {}, y[kRepeat] = {};
  GatherRepeat(operands[0], 0, plan.last + 1, x);
  GatherRepeat(operands[1], 0, plan.last + 1, y);
  std::uint8_t bits[16] = {};
  FindLoop(type, mode)(bits, x, y, false, lanes);
  std::uint64_t fresh[2];
  std::memcpy(fresh, bits, sizeof fresh);
  for (int i = 0; i < 2; ++i) {
    core.compareMask[i] = (core.compareMask[i] & ~plan.mask[i]) | (fresh[i] & plan.mask[i]);
  }
}

void MoveCompareMask(const Call &call, const View &view, bool store) {
  Core &core = Enter(call);
  std::uint8_t *at = Usable(core, call, {store ? "dst" : "src", &view, 16, 16});
  if (at == nullptr) return;
  RecordVectorRaw("move_mask", DType::kU8, 1, 16, store ? view.addr : -1, store ? -1 : view.addr,
                  -1, false);
  if (store) std::memcpy(at, core.compareMask, 16);
  else std::memcpy(core.compareMask, at, 16);
}

namespace {

// Elements of one repeat: bit 1 takes a, bit 0 takes b.
template <typename T>
void Choose(void *to, const void *a, const void *b, bool scalar, std::int64_t n,
            const std::uint8_t *bits) {
  auto *out = static_cast<T *>(to);
  const auto *x = static_cast<const T *>(a);
  const auto *y = static_cast<const T *>(b);
  for (std::int64_t at = 0; at < n; at += 8) {
    const unsigned byte = bits[at / 8];
    const std::int64_t left = std::min<std::int64_t>(n - at, 8);
    for (std::int64_t i = 0; i < left; ++i) {
      const T all = static_cast<T>(-static_cast<T>((byte >> i) & 1u));
      out[at + i] = static_cast<T>((x[at + i] & all) | (y[scalar ? 0 : at + i] & ~all));
    }
  }
}

bool CheckSelect(Core &core, const Call &call, const Plan &plan, Operand *operands, int count,
                 const View *mask, const std::uint8_t *&bits) {
  if (!CheckOperands(core, call, plan, operands, count)) return false;
  bits = reinterpret_cast<const std::uint8_t *>(core.compareMask);
  if (mask == nullptr) return true;
  const std::int64_t used = plan.repeats * plan.lanes + plan.tail;
  bits = Usable(core, call, {"selMask", mask, (used + 7) / 8});
  return bits != nullptr;
}

}  // namespace

void SelectOp(const Call &call, DType type, SELMODE mode, const Lane &dst, const View *mask,
              const Lane &a, const Lane *b, const void *scalar, const Walk &walk) {
  Core &core = Enter(call);
  const int size = SizeOf(type);
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / size, plan)) return;
  Operand operands[] = {
      {"dst", dst, type}, {"src0", a, type}, {"src1", b != nullptr ? *b : a, type}};
  const int count = b != nullptr ? 3 : 2;
  const bool reuse = mode == SELMODE::VSEL_CMPMASK_SPR;  // every repeat takes the same bits
  // published: the mask's address goes into the first repeat of the reserve
  if (!reuse) UseReserve(core, call, kRepeat);
  const std::uint8_t *bits = nullptr;
  Plan masked = plan;
  if (reuse) masked.repeats = std::min<std::int64_t>(plan.repeats, 1);
  if (!CheckSelect(core, call, plan, operands, count, nullptr, bits) ||
      (mask != nullptr && !CheckSelect(core, call, masked, operands, 0, mask, bits))) {
    return;
  }
  for (int i = 1; i < count; ++i) CheckOverlap(call, plan, operands[0], operands[i], false);
  RecordVector(b != nullptr ? "select" : "selects", plan, operands, count, SetsMask(walk));
  if (Dry()) return;
  // the mask may share UB with dst
  const std::int64_t used = masked.repeats * plan.lanes + plan.tail;
  const std::vector<std::uint8_t> frozen(bits, bits + (mask == nullptr ? 16 : (used + 7) / 8));
  ShadowSelect(core, plan, operands, count, frozen.data(), reuse);
  alignas(64) std::uint8_t to[kRepeat], x[kRepeat], y[kRepeat];
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t n = r < plan.repeats ? plan.last + 1 : plan.tail;
    GatherRepeat(operands[1], r, n, x);
    if (b != nullptr) GatherRepeat(operands[2], r, n, y);
    const void *other = b != nullptr ? y : scalar;
    const std::uint8_t *own = frozen.data() + (reuse ? 0 : r * plan.lanes / 8);
    if (size == 2) Choose<std::uint16_t>(to, x, other, b == nullptr, n, own);
    else Choose<std::uint32_t>(to, x, other, b == nullptr, n, own);
    ScatterRepeat(operands[0], r, n, r < plan.repeats && !plan.full ? plan.mask : nullptr, to);
  }
}

}  // namespace twin
