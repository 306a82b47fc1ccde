// CTRL, DEQSCALE and the other registers that vector instructions look at.
#include "control.h"

#include <algorithm>

#include "check.h"
#include "text.h"
#include "twin/control.h"

namespace twin {

namespace {

bool BitOf(const Core &core, int bit) { return (core.control.ctrl >> bit & 1u) != 0; }

void PutBit(Core &core, int bit, bool on) {
  const std::uint64_t mask = 1ull << bit;
  core.control.ctrl = on ? core.control.ctrl | mask : core.control.ctrl & ~mask;
}

std::uint64_t FieldMask(int first, int last) {
  const int width = last - first + 1;
  return width >= 64 ? ~0ull : (1ull << width) - 1;
}

constexpr int kCounterBit = 56;  // of CTRL; 1: counter mode

// CTRL as a whole, with the bits that live elsewhere.
std::uint64_t Whole(const Core &core) {
  std::uint64_t bits = core.control.ctrl & ~(1ull << kFloatBit | 1ull << kCounterBit);
  if (!SaturatesFloat(core)) bits |= 1ull << kFloatBit;
  return core.counter ? bits | 1ull << kCounterBit : bits;
}

}  // namespace

bool SaturatesFloat(const Core &core) {
  if (core.control.floatChosen) return !BitOf(core, kFloatBit);
  const LaunchSpec *spec = ThisLaunch().spec;
  return spec != nullptr && spec->saturate;
}

bool SaturatesCast(const Core &core) { return !BitOf(core, kCastBit); }

void SetCtrl(const Call &call, int first, int last, std::int64_t value) {
  Core &core = Enter(call, PIPE_S);
  const std::uint64_t field = FieldMask(first, last) << first;
  const std::uint64_t bits = (static_cast<std::uint64_t>(value) << first) & field;
  core.control.ctrl = (Whole(core) & ~field) | bits;
  if ((field >> kFloatBit & 1u) != 0) core.control.floatChosen = true;
  if ((field >> kCounterBit & 1u) != 0) core.counter = BitOf(core, kCounterBit);
}

std::int64_t GetCtrl(const Call &call, int first, int last) {
  const Core &core = Enter(call, PIPE_S);
  return static_cast<std::int64_t>(Whole(core) >> first & FieldMask(first, last));
}

void SetSaturation(const Call &call, bool cast, bool on) {
  Core &core = Enter(call, PIPE_S);
  PutBit(core, cast ? kCastBit : kFloatBit, !on);
  if (!cast) core.control.floatChosen = true;
}

bool GetSaturation(const Call &call, bool cast) {
  const Core &core = Enter(call, PIPE_S);
  return cast ? SaturatesCast(core) : SaturatesFloat(core);
}

void SetAtomicConfig(const Call &call, int type, int op) {
  Core &core = Enter(call, PIPE_S);
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kI16,
                              DType::kI32, DType::kI8,  DType::kBF16};
  constexpr Atomic kOps[] = {Atomic::kAdd, Atomic::kMax, Atomic::kMin};
  if (!InRange(call, "type", type, 0, 6) || !InRange(call, "op", op, 0, 2)) return;
  core.atomic = type == 0 ? Atomic::kNone : kOps[op];
  core.atomicType = kTypes[type];
  core.atomicSite = call.site;
}

void GetAtomicConfig(const Call &call, int *type, int *op) {
  const Core &core = Enter(call, PIPE_S);
  const auto typeOf = [&] {
    switch (core.atomicType) {
      case DType::kF16: return 2;
      case DType::kI16: return 3;
      case DType::kI32: return 4;
      case DType::kI8: return 5;
      case DType::kBF16: return 6;
      default: return 1;
    }
  };
  *type = core.atomic == Atomic::kNone ? 0 : typeOf();
  *op = core.atomic == Atomic::kMax ? 1 : core.atomic == Atomic::kMin ? 2 : 0;
}

void SetAtomicElement(const Call &call, DType type) {
  Core &core = Enter(call, PIPE_S);
  core.atomicType = type;
  core.atomicSite = call.site;
}

void SetAtomicOperation(const Call &call, Atomic mode) {
  Core &core = Enter(call, PIPE_S);
  core.atomic = mode;
  core.atomicSite = call.site;
}

void SetDeqWord(const Call &call, std::uint64_t word) {
  Core &core = Enter(call, PIPE_S);
  core.control.deq = word;
  core.control.deqTable = -1;
  core.deqScale = static_cast<float>(half::FromBits(static_cast<std::uint16_t>(word & 0xFFFFu)));
}

void SetDeqTable(const Call &call, const View &table, const std::uint64_t *words) {
  Core &core = Enter(call, PIPE_S);
  constexpr std::int64_t kWords = 16;
  std::uint8_t *to = Usable(core, call, {"vdeq", &table, kWords * 8, kBlock, Use::kWrite});
  if (to == nullptr) return;
  std::memcpy(to, words, kWords * 8);
  core.control.deqTable = table.addr;
}

void SetAddresses(const Call &call, int index, const std::uint64_t *rows) {
  Core &core = Enter(call, PIPE_S);
  if (!InRange(call, "register", index, 0, 7)) return;
  std::copy_n(rows, 8, core.control.rows[index]);
}

void Scatter5HD(const Call &call, DType type, int dst, int src, bool dstHigh, bool srcHigh,
                std::int64_t repeats, std::int64_t dstStride, std::int64_t srcStride) {
  const Core &core = Me();
  if (!InRange(call, "register", dst, 0, 6) || !InRange(call, "register", src, 0, 6)) return;
  View to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = RawView(reinterpret_cast<const void *>(core.control.rows[dst + i / 8][i % 8]));
    from[i] = RawView(reinterpret_cast<const void *>(core.control.rows[src + i / 8][i % 8]));
  }
  Trans5HD(call, type, to, from, dstHigh, srcHigh, repeats, dstStride, srcStride);
}

}  // namespace twin
