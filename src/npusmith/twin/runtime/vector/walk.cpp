// How a vector instruction walks over its operands: repeats, blocks, masks.
#include "vector/walk.h"

#include <algorithm>
#include <vector>

#include "text.h"

namespace twin {

namespace {

void SetLanes(Plan &plan, std::int64_t active) {
  const auto word = [active](std::int64_t from) -> std::uint64_t {
    const std::int64_t bits = std::clamp<std::int64_t>(active - from, 0, 64);
    return bits == 64 ? ~0ull : (1ull << bits) - 1;
  };
  plan.mask[0] = word(0);
  plan.mask[1] = word(64);
}

void Finish(Plan &plan) {
  if (plan.lanes < 128) plan.mask[1] = 0;
  if (plan.lanes < 64) plan.mask[0] &= (1ull << plan.lanes) - 1;
  plan.last = -1;
  std::int64_t active = 0;
  for (int half = 0; half < 2; ++half) {
    if (plan.mask[half] == 0) continue;
    plan.last = half * 64 + 63 - __builtin_clzll(plan.mask[half]);
    active += __builtin_popcountll(plan.mask[half]);
  }
  plan.full = active == plan.lanes;
}

void TakeTotal(Plan &plan, std::int64_t total) {
  plan.repeats = total / plan.lanes;
  plan.tail = total % plan.lanes;
  SetLanes(plan, plan.lanes);
}

bool PlanCount(Core &core, const Call &call, const Walk &walk, Plan &plan) {
  if (!InRange(call, "count", walk.count, 0, 0x7FFFFFFF)) return false;
  TakeTotal(plan, walk.count);
  if (core.maskTouched && !core.maskUsed) {
    Report(call, "mask-lost",
           Text("%s resets the mask that SetVectorMask set and nothing has used", call.api),
           Text("set at %s", PlaceOf(core.maskSite).c_str()), "", "", Level::kWarning);
  }
  // a count form switches to counter mode, runs, and leaves normal mode and a full mask behind
  core.counter = false;
  core.mask[0] = core.mask[1] = ~0ull;
  core.maskTouched = false;
  return true;
}

bool PlanMask(const Call &call, const Walk &walk, Plan &plan) {
  if (!InRange(call, "mask", walk.count, 0, plan.lanes)) {
    SetLanes(plan, std::clamp<std::int64_t>(walk.count, 0, plan.lanes));
    return true;  // the hardware clamps to one repeat
  }
  SetLanes(plan, walk.count);
  return true;
}

bool PlanRegister(Core &core, Plan &plan) {
  core.maskUsed = true;
  plan.mask[0] = core.mask[0];
  plan.mask[1] = core.mask[1];
  return true;
}

}  // namespace

bool MakePlan(Core &core, const Call &call, const Walk &walk, std::int64_t lanes, Plan &plan) {
  plan = Plan{lanes, walk.repeats, {0, 0}, -1, 0, false, walk.kind == Walk::Kind::kCount};
  bool good = true;
  if (walk.kind == Walk::Kind::kCount) {
    good = PlanCount(core, call, walk, plan);
  } else if (core.counter) {
    core.maskUsed = true;
    // the mask register holds the number of elements; repeatTime is ignored
    const std::int64_t total = walk.kind == Walk::Kind::kMask ? walk.count
                               : walk.kind == Walk::Kind::kBits
                                   ? static_cast<std::int64_t>(walk.bits[0] & 0xFFFFFFFFu)
                                   : static_cast<std::int64_t>(core.mask[0] & 0xFFFFFFFFu);
    TakeTotal(plan, total);
  } else {
    if (!InRange(call, "repeatTime", walk.repeats, 0, 255)) plan.repeats = walk.repeats & 255;
    if (walk.kind == Walk::Kind::kMask) good = PlanMask(call, walk, plan);
    if (walk.kind == Walk::Kind::kRegister) good = PlanRegister(core, plan);
    if (walk.kind == Walk::Kind::kBits) std::copy_n(walk.bits, 2, plan.mask);
    if (walk.kind != Walk::Kind::kRegister) std::copy_n(plan.mask, 2, core.mask);
  }
  Finish(plan);
  return good;
}

namespace {

std::int64_t EndOf(const Lane &lane, int size, std::int64_t repeat, std::int64_t lastLane) {
  const std::int64_t perBlock = kBlock / size;
  return (repeat * lane.repeat + lastLane / perBlock * lane.block) * kBlock +
         (lastLane % perBlock + 1) * size;
}

}  // namespace

std::int64_t Footprint(const Plan &plan, const Lane &lane, int size) {
  std::int64_t end = 0;
  if (plan.repeats > 0 && plan.last >= 0) end = EndOf(lane, size, plan.repeats - 1, plan.last);
  if (plan.tail > 0) end = std::max(end, EndOf(lane, size, plan.repeats, plan.tail - 1));
  return end;
}

namespace {

// The bytes that a strided walk leaves out; none when blocks and repeats are both strided.
Spread RowsOf(const Plan &plan, const Operand &operand) {
  const std::int64_t size = SizeOf(operand.type),
                     lanes = plan.repeats > 0 ? plan.last + 1 : plan.tail;
  const bool oneBlock = lanes * size <= kBlock;
  if (operand.lane.block == 1 || oneBlock) return {lanes * size, operand.lane.repeat * kBlock};
  const bool oneRepeat = plan.repeats + (plan.tail > 0) <= 1;
  return oneRepeat ? Spread{kBlock, operand.lane.block * kBlock} : Spread{};
}

}  // namespace

bool CheckOperands(Core &core, const Call &call, const Plan &plan, Operand *operands, int count) {
  bool good = true;
  // sources first: the sanitizer must see them read before an instruction in place writes them
  for (int i = count - 1; i >= 0; --i) {
    Operand &operand = operands[i];
    if (plan.counted) operand.lane.repeat = plan.lanes * SizeOf(operand.type) / kBlock;
    const std::int64_t bytes = Footprint(plan, operand.lane, SizeOf(operand.type));
    const Use use = operand.updates ? Use::kUpdate : Use::kByRole;
    operand.base = Usable(core, call, {operand.role, &operand.lane.view, bytes, operand.align, use,
                                   RowsOf(plan, operand)});
    good = good && operand.base != nullptr;
  }
  return good;
}

namespace {

std::int64_t BlocksOf(std::int64_t elements, int size) {
  return (elements * size + kBlock - 1) / kBlock;
}

// Where block `block` of repeat `repeat` lies, in UB blocks.
std::int64_t BlockAt(const Lane &lane, std::int64_t repeat, std::int64_t block) {
  return lane.view.addr / kBlock + repeat * lane.repeat + block * lane.block;
}

bool SameWalk(const Operand &a, const Operand &b, const Plan &plan) {
  const bool one = plan.repeats + (plan.tail > 0) <= 1;
  return a.lane.view.addr == b.lane.view.addr && a.lane.block == b.lane.block &&
         (one || a.lane.repeat == b.lane.repeat) && SizeOf(a.type) == SizeOf(b.type);
}

// The upper half of a buffer is widened into the whole of it: only the last repeat writes where it
// reads. The documentation forbids it; a repeat reads before it writes, and published operators
// rely on that.
bool WidensUpwards(const Plan &plan, const Operand &dst, const Operand &src) {
  const std::int64_t to = SizeOf(dst.type), from = SizeOf(src.type);
  const std::int64_t end = dst.lane.view.addr + Footprint(plan, dst.lane, SizeOf(dst.type));
  const bool dense = dst.lane.block == 1 && src.lane.block == 1 &&
                     dst.lane.repeat * from == src.lane.repeat * to;
  return dense && to > from &&
         src.lane.view.addr + Footprint(plan, src.lane, SizeOf(src.type)) >= end;
}

// First violation found: the repeat whose read or write clashes, or -1.
std::int64_t FindClash(const Plan &plan, const Operand &dst, const Operand &src, bool accumulates) {
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  std::vector<std::int32_t> writer(kUbBytes / kBlock, -1);
  const auto lastLane = [&plan](std::int64_t r) {
    return r < plan.repeats ? plan.last : plan.tail - 1;
  };
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t reads = BlocksOf(lastLane(r) + 1, SizeOf(src.type));
    const std::int64_t writes = BlocksOf(lastLane(r) + 1, SizeOf(dst.type));
    for (std::int64_t b = 0; b < reads; ++b) {
      const std::int32_t by = writer[static_cast<std::size_t>(BlockAt(src.lane, r, b))];
      const bool inPlace = accumulates && dst.lane.view.addr == src.lane.view.addr &&
                           dst.lane.repeat == 0 && src.lane.repeat == 0;
      if (by >= 0 && !inPlace) return r;
    }
    for (std::int64_t b = 0; b < writes; ++b) {
      const std::int64_t target = BlockAt(dst.lane, r, b);
      for (std::int64_t c = 0; c < reads; ++c) {
        const bool same = c == b && SizeOf(dst.type) == SizeOf(src.type);
        const bool narrowing = SizeOf(dst.type) < SizeOf(src.type) && c >= b;
        if (BlockAt(src.lane, r, c) == target && !same && !narrowing) return r;
      }
    }
    for (std::int64_t b = 0; b < writes; ++b) {
      writer[static_cast<std::size_t>(BlockAt(dst.lane, r, b))] = static_cast<std::int32_t>(r);
    }
  }
  return -1;
}

}  // namespace

void CheckOverlap(const Call &call, const Plan &plan, const Operand &dst, const Operand &src,
                  bool accumulates) {
  if (Me().outside) return;
  const View &d = dst.lane.view, &s = src.lane.view;
  const std::int64_t dBytes = Footprint(plan, dst.lane, SizeOf(dst.type));
  const std::int64_t sBytes = Footprint(plan, src.lane, SizeOf(src.type));
  if (d.addr + dBytes <= s.addr || s.addr + sBytes <= d.addr) return;
  const bool overlappingRepeats = dst.lane.repeat < 8 && plan.repeats > 1;
  if (SameWalk(dst, src, plan) && !overlappingRepeats) return;
  const std::int64_t at = FindClash(plan, dst, src, accumulates);
  if (at < 0) return;
  Report(call, "overlap", Text("dst and %s of %s overlap", src.role, call.api),
         Text("UB bytes %lld..%lld and %lld..%lld, first clash in repeat %lld", Ll(d.addr),
              Ll(d.addr + dBytes), Ll(s.addr), Ll(s.addr + sBytes), Ll(at)),
         "", "", WidensUpwards(plan, dst, src) ? Level::kWarning : Level::kError);
}

void GatherRepeat(const Operand &operand, std::int64_t repeat, std::int64_t elements, void *out) {
  auto *to = static_cast<std::uint8_t *>(out);
  std::int64_t left = elements * SizeOf(operand.type);
  for (std::int64_t block = 0; left > 0; ++block, left -= kBlock) {
    const std::int64_t at = (repeat * operand.lane.repeat + block * operand.lane.block) * kBlock;
    const std::uint8_t *from = operand.base + at;
    std::memcpy(to + block * kBlock, from, static_cast<std::size_t>(std::min(left, kBlock)));
  }
}

namespace {

void ScatterBlocks(const Operand &operand, std::int64_t repeat, std::int64_t bytes,
                   const std::uint8_t *from) {
  for (std::int64_t block = 0; block * kBlock < bytes; ++block) {
    std::uint8_t *to =
        operand.base + (repeat * operand.lane.repeat + block * operand.lane.block) * kBlock;
    const std::int64_t left = std::min(bytes - block * kBlock, kBlock);
    std::memcpy(to, from + block * kBlock, static_cast<std::size_t>(left));
  }
}

}  // namespace

void ScatterRepeat(const Operand &operand, std::int64_t repeat, std::int64_t elements,
                   const std::uint64_t *mask, const std::uint8_t *from) {
  const int size = SizeOf(operand.type);
  if (mask == nullptr) {
    ScatterBlocks(operand, repeat, elements * size, from);
    return;
  }
  const std::int64_t perBlock = kBlock / size;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (!Active(mask, i)) continue;
    const std::int64_t at =
        (repeat * operand.lane.repeat + i / perBlock * operand.lane.block) * kBlock +
        i % perBlock * size;
    std::memcpy(operand.base + at, from + i * size, static_cast<std::size_t>(size));
  }
}

namespace {

// Do dst and a source overlap at different places? Then each repeat must read before it writes.
bool Shifted(const Plan &plan, const Operand *operands, int count) {
  const std::uint8_t *low = operands[0].base;
  const std::uint8_t *high = low + Footprint(plan, operands[0].lane, SizeOf(operands[0].type));
  return std::any_of(operands + 1, operands + count, [&](const Operand &operand) {
    const bool same = operand.base == low && SizeOf(operand.type) == SizeOf(operands[0].type);
    const std::int64_t bytes = Footprint(plan, operand.lane, SizeOf(operand.type));
    return !same && operand.base < high && low < operand.base + bytes;
  });
}

bool Contiguous(const Plan &plan, const Operand &operand) {
  const std::int64_t blocks = plan.lanes * SizeOf(operand.type) / kBlock;
  const bool single = plan.repeats + (plan.tail > 0) <= 1;
  const bool oneBlock = blocks <= 1;
  return (operand.lane.block == 1 || oneBlock) && (operand.lane.repeat == blocks || single);
}

void RunRepeat(const Operand *operands, int count, std::int64_t repeat, std::int64_t elements,
               const std::uint64_t *mask, Loop loop, const void *scalar) {
  // 256 bytes hold a repeat of the widest type; narrower types need less
  alignas(64) std::uint8_t lanes[3][2 * kRepeat];
  for (int i = 0; i < count; ++i) GatherRepeat(operands[i], repeat, elements, lanes[i]);
  loop(lanes[0], lanes[1], lanes[2], scalar, elements);
  ScatterRepeat(operands[0], repeat, elements, mask, lanes[0]);
}

}  // namespace

void Execute(const Plan &plan, const Operand *operands, int count, Loop loop, const void *scalar) {
  ShadowLanes(Me(), plan, operands, count);
  bool straight = (plan.full || plan.repeats == 0) && !Shifted(plan, operands, count);
  for (int i = 0; i < count; ++i) straight = straight && Contiguous(plan, operands[i]);
  if (straight) {
    const std::uint8_t *a = count > 1 ? operands[1].base : nullptr;
    const std::uint8_t *b = count > 2 ? operands[2].base : nullptr;
    loop(operands[0].base, a, b, scalar, plan.repeats * plan.lanes + plan.tail);
    return;
  }
  for (std::int64_t r = 0; r < plan.repeats && plan.last >= 0; ++r) {
    RunRepeat(operands, count, r, plan.last + 1, plan.full ? nullptr : plan.mask, loop, scalar);
  }
  if (plan.tail > 0) RunRepeat(operands, count, plan.repeats, plan.tail, nullptr, loop, scalar);
}

}  // namespace twin
