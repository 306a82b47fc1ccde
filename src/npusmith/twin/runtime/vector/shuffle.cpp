// Moves that reorder elements inside UB.
#include <algorithm>
#include <numeric>
#include <vector>

#include "check.h"
#include "log/record.h"
#include "text.h"
#include "vector/walk.h"

namespace twin {

void BrcbOp(const Call &call, DType type, const View &dst, const View &src, std::int64_t repeats,
            std::int64_t block, std::int64_t repeat) {
  constexpr std::int64_t kPerRepeat = 8;  // elements in, blocks out
  Core &core = Enter(call);
  const int size = SizeOf(type);
  if (!InRange(call, "repeatTime", repeats, 0, 255)) return;
  if (!InRange(call, "dstBlkStride", block, 1, 65535) || repeats == 0) return;
  const std::int64_t bytes = ((repeats - 1) * repeat + (kPerRepeat - 1) * block + 1) * kBlock;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  const std::uint8_t *from = Usable(core, call, {"src", &src, repeats * kPerRepeat * size});
  if (to == nullptr || from == nullptr) return;
  Disjoint(call, "dst", dst, bytes, "src", src, repeats * kPerRepeat * size);
  RecordVectorRaw("brcb", type, repeats, repeats * kPerRepeat * kBlock / size, dst.addr, src.addr,
                  -1, false);
  if (Dry()) return;
  Taken taken;
  for (std::int64_t i = 0; i < repeats * kPerRepeat; ++i) {
    std::uint8_t element[4];
    std::memcpy(element, from + i * size, static_cast<std::size_t>(size));
    const std::int64_t row = (i / kPerRepeat * repeat + i % kPerRepeat * block) * kBlock;
    for (std::int64_t at = 0; at < kBlock; at += size) {
      std::memcpy(to + row + at, element, static_cast<std::size_t>(size));
      ShadowTake(core, taken, dst.addr + row + at, src.addr + i * size, size);
    }
  }
  ShadowGive(core, taken);
}

namespace {

bool OffsetFits(const Call &call, const View &src, std::int64_t offset, std::int64_t bytes,
                std::int64_t index) {
  if (offset >= 0 && offset % bytes == 0 && offset + bytes <= src.bytes) return true;
  Report(call, "gather-offset", Text("offset %lld of %s is byte %lld", Ll(index), call.api,
                                     Ll(offset)),
         Text("the source has %lld B, one item has %lld B", Ll(src.bytes), Ll(bytes)));
  return false;
}

// The bytes of the source from the first to the last item that offsets name; those that do not fit
// are reported later, one by one.
class Reach {
 public:
  Reach(const View &src, std::int64_t item) : src_(src), item_(item), low_(src.bytes) {}
  void Take(std::int64_t offset) {
    if (offset < 0 || offset % item_ != 0 || offset + item_ > src_.bytes) return;
    low_ = std::min(low_, offset);
    high_ = std::max(high_, offset + item_);
  }
  // Nothing but these bytes is read: a source may be a larger piece of UB than its items.
  void Read(Core &core, const Call &call, const char *role, const View &dst,
            std::int64_t dstBytes) const {
    if (high_ <= low_) return;
    View first = src_, last = src_;
    first.addr += low_, last.addr += high_ - item_;
    first.bytes -= low_, last.bytes -= high_ - item_;
    Disjoint(call, "dst", dst, dstBytes, role, first, high_ - low_);  // then as repeats go
    Usable(core, call, {role, &first, item_, item_, Use::kRead});
    Usable(core, call, {role, &last, item_, item_, Use::kRead});
  }

 private:
  View src_;
  std::int64_t item_, low_, high_ = 0;
};

}  // namespace

void GatherOp(const Call &call, DType type, const Lane &dst, const View &src, const View &offsets,
              std::int64_t base, const Walk &walk) {
  Core &core = Enter(call);
  if (SizeOf(type) == 1) {
    Report(call, "param-range", Text("Gather of %s", NameOf(type)), "", "16- and 32-bit types");
    return;
  }
  const int size = SizeOf(type);
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / size, plan)) return;
  Operand operand{"dst", dst, type};
  if (!CheckOperands(core, call, plan, &operand, 1) || plan.empty()) return;
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  const std::int64_t lastLanes = plan.tail > 0 ? plan.tail : plan.last + 1;
  const std::int64_t indices = (repeats - 1) * plan.lanes + lastLanes;
  const std::uint8_t *table = Usable(core, call, {"srcOffset", &offsets, indices * 4});
  const std::uint8_t *from = Usable(core, call, {"src", &src, size, kBlock, Use::kLook});
  if (table == nullptr || from == nullptr) return;
  const Operand operands[] = {operand, {"src", {src}, type}, {"srcOffset", {offsets}, DType::kU32}};
  RecordVector("gather", plan, operands, 3, SetsMask(walk));
  if (Dry()) return;
  const auto lanes = [&](std::int64_t r) { return r < plan.repeats ? plan.last + 1 : plan.tail; };
  const auto maskOf = [&](std::int64_t r) {
    return r < plan.repeats && !plan.full ? plan.mask : nullptr;
  };
  const auto offsetAt = [&](std::int64_t entry) {
    std::uint32_t offset;
    std::memcpy(&offset, table + entry, 4);
    return base + offset;
  };
  Reach reach(src, size);
  for (std::int64_t r = 0; r < repeats; ++r) {
    for (std::int64_t i = 0; i < lanes(r); ++i) {
      if (maskOf(r) != nullptr && !Active(maskOf(r), i)) continue;
      reach.Take(offsetAt((r * plan.lanes + i) * 4));
    }
  }
  reach.Read(core, call, "src", dst.view, Footprint(plan, operand.lane, size));
  alignas(64) std::uint8_t row[kRepeat];
  Taken taken;
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t n = lanes(r);
    const std::uint64_t *mask = maskOf(r);
    for (std::int64_t i = 0; i < n; ++i) {
      if (mask != nullptr && !Active(mask, i)) continue;
      const std::int64_t entry = (r * plan.lanes + i) * 4;
      if (!ShadowReadIndex(core, call, "offsets", offsets.addr + entry, 4)) return;
      const std::int64_t at = offsetAt(entry);
      if (!OffsetFits(call, src, at, size, r * plan.lanes + i)) return;
      std::memcpy(row + i * size, from + at, static_cast<std::size_t>(size));
      ShadowTake(core, taken, LaneAddress(operand, r, i), src.addr + at, size);
    }
    ScatterRepeat(operand, r, n, mask, row);
  }
  ShadowGive(core, taken);
}

void GatherBlocks(const Call &call, DType type, const View &dst, const View &src,
                  const View &offsets, std::int64_t repeats, std::int64_t block,
                  std::int64_t repeat) {
  constexpr std::int64_t kPerRepeat = 8;
  Core &core = Enter(call);
  if (!InRange(call, "repeatTime", repeats, 0, 255) || repeats == 0) return;
  const std::int64_t step = std::max<std::int64_t>(block, 1);  // 0 counts as 1 (doc)
  const std::int64_t bytes = ((repeats - 1) * repeat + (kPerRepeat - 1) * step + 1) * kBlock;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  const std::uint8_t *table = Usable(core, call, {"offset", &offsets, repeats * kPerRepeat * 4});
  const std::uint8_t *from = Usable(core, call, {"src0", &src, kBlock, kBlock, Use::kLook});
  if (to == nullptr || table == nullptr || from == nullptr) return;
  RecordVectorRaw("gatherb", type, repeats, repeats * kPerRepeat * kBlock / SizeOf(type), dst.addr,
                  src.addr, offsets.addr, false);
  if (Dry()) return;
  Reach reach(src, kBlock);
  for (std::int64_t i = 0; i < repeats * kPerRepeat; ++i) {
    std::uint32_t offset;
    std::memcpy(&offset, table + i * 4, 4);
    reach.Take(offset);
  }
  reach.Read(core, call, "src0", dst, bytes);
  Taken taken;
  for (std::int64_t i = 0; i < repeats * kPerRepeat; ++i) {
    if (!ShadowReadIndex(core, call, "offsets", offsets.addr + i * 4, 4)) return;
    std::uint32_t offset;
    std::memcpy(&offset, table + i * 4, 4);
    if (!OffsetFits(call, src, offset, kBlock, i)) return;
    const std::int64_t at = (i / kPerRepeat * repeat + i % kPerRepeat * step) * kBlock;
    std::memcpy(to + at, from + offset, kBlock);
    for (std::int64_t byte = 0; byte < kBlock; byte += 2) {
      ShadowTake(core, taken, dst.addr + at + byte, src.addr + offset + byte, 2);
    }
  }
  ShadowGive(core, taken);
}

namespace {

// Does a built-in pattern take element i? 1, 2: every other; 3..6: one of four; 7: all.
bool Builtin(int pattern, std::int64_t i) {
  if (pattern <= 2) return i % 2 == pattern - 1;
  return pattern == 7 || i % 4 == pattern - 3;
}

}  // namespace

std::uint64_t GatherMaskOp(const Call &call, DType type, const View &dst, const View &src,
                           const View *pattern, int builtin, const MaskGather &how) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), perBlock = kBlock / size;
  const std::int64_t lanes = how.counted ? how.lanes : kRepeat / size;
  core.counter = false;
  if (pattern == nullptr && !InRange(call, "src1Pattern", builtin, 1, 7)) return 0;
  if (how.repeats == 0 || lanes == 0) return 0;
  const std::int64_t lastBlock = (lanes - 1) / perBlock;
  const std::int64_t srcBytes = ((how.repeats - 1) * how.repeat + lastBlock * how.block) * kBlock +
                                ((lanes - 1) % perBlock + 1) * size;
  const std::uint8_t *from = Usable(core, call, {"src0", &src, srcBytes});
  const std::uint8_t *bits = nullptr;
  if (pattern != nullptr) {
    const std::int64_t bytes = (how.repeats - 1) * how.patternRepeat * kBlock + (lanes + 7) / 8;
    bits = Usable(core, call, {"src1Pattern", pattern, bytes});
    if (bits == nullptr) return 0;
  }
  if (from == nullptr || Usable(core, call, {"dst", &dst, size}) == nullptr) return 0;
  const Plan plan{lanes, how.repeats, {~0ull, ~0ull}, lanes - 1, 0, true, false};
  const Operand operands[] = {{"dst", {dst}, type}, {"src0", {src, how.block, how.repeat}, type}};
  RecordVector("gather_mask", plan, operands, 2, how.counted);
  std::vector<std::uint8_t> kept;
  Taken taken;
  for (std::int64_t r = 0; r < how.repeats; ++r) {
    for (std::int64_t i = 0; i < lanes; ++i) {
      const std::uint8_t *row = bits + r * how.patternRepeat * kBlock;
      const bool take = bits != nullptr ? (row[i / 8] >> (i % 8)) & 1 : Builtin(builtin, i);
      if (!take) continue;
      const std::int64_t byte =
          (r * how.repeat + i / perBlock * how.block) * kBlock + i % perBlock * size;
      ShadowTake(core, taken, dst.addr + static_cast<std::int64_t>(kept.size()), src.addr + byte,
                 size);
      kept.insert(kept.end(), from + byte, from + byte + size);
    }
  }
  const auto bytes = static_cast<std::int64_t>(kept.size());
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (to == nullptr) return 0;
  if (dst.addr != src.addr) Disjoint(call, "dst", dst, bytes, "src0", src, srcBytes);
  std::copy(kept.begin(), kept.end(), to);
  ShadowGive(core, taken);
  return static_cast<std::uint64_t>(bytes / size);
}

void TransposeOp(const Call &call, const View &dst, const View &src) {
  constexpr std::int64_t kSide = 16, kBytes = kSide * kSide * 2;
  Core &core = Enter(call);
  auto *to = reinterpret_cast<std::uint16_t *>(Usable(core, call, {"dst", &dst, kBytes}));
  const auto *from =
      reinterpret_cast<const std::uint16_t *>(Usable(core, call, {"src", &src, kBytes}));
  if (to == nullptr || from == nullptr) return;
  RecordVectorRaw("transpose", DType::kU16, kBytes / kRepeat, kSide * kSide, dst.addr, src.addr, -1,
                  false);
  if (Dry()) return;
  std::uint16_t rows[kSide * kSide];
  std::copy_n(from, kSide * kSide, rows);
  for (std::int64_t i = 0; i < kSide * kSide; ++i) to[i % kSide * kSide + i / kSide] = rows[i];
}

namespace {

constexpr int kRows = 16;

// Where element (row i, column j) of the 16 source blocks goes: block and byte of the destination.
struct Target {
  int block;
  std::int64_t byte;
};

Target TargetOf(int size, int i, int j, bool dstHigh) {
  if (size == 1) return {j, (dstHigh ? 16 : 0) + i};
  if (size == 2) return {j, 2 * i};
  return {2 * j + i / 8, 4 * (i % 8)};  // a column of 16 words fills two blocks
}

void TransOnce(std::uint8_t *const *to, const std::uint8_t *const *from, int size, bool dstHigh,
               bool srcHigh) {
  std::uint8_t rows[kRows][kBlock];
  for (int i = 0; i < kRows; ++i) std::copy_n(from[i], kBlock, rows[i]);
  const int columns = size == 4 ? 8 : 16;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int column = size == 1 && srcHigh ? j + 16 : j;
      const Target target = TargetOf(size, i, j, dstHigh);
      std::copy_n(rows[i] + column * size, size, to[target.block] + target.byte);
    }
  }
}

}  // namespace

void Trans5HD(const Call &call, DType type, const View *dst, const View *src, bool dstHigh,
              bool srcHigh, std::int64_t repeats, std::int64_t dstRepeat, std::int64_t srcRepeat) {
  Core &core = Enter(call);
  if (repeats == 0) return;
  if (repeats == 1 && (dstRepeat != 0 || srcRepeat != 0)) {
    Report(call, "param-range",
           Text("%s with one repeat applies its strides to the start", call.api),
           Text("dstRepStride %lld, srcRepStride %lld", Ll(dstRepeat), Ll(srcRepeat)),
           "strides 0 when repeatTimes is 1");
    return;
  }
  std::uint8_t *to[kRows];
  const std::uint8_t *from[kRows];
  for (int i = 0; i < kRows; ++i) {
    to[i] = Usable(core, call, {"dst", &dst[i], ((repeats - 1) * dstRepeat + 1) * kBlock});
    from[i] = Usable(core, call, {"src", &src[i], ((repeats - 1) * srcRepeat + 1) * kBlock});
    if (to[i] == nullptr || from[i] == nullptr) return;
  }
  RecordVectorRaw("transpose5hd", type, repeats, repeats * kRows * kBlock / SizeOf(type),
                  dst[0].addr, src[0].addr, -1, false);
  if (Dry()) return;
  for (std::int64_t r = 0; r < repeats; ++r) {
    TransOnce(to, from, SizeOf(type), dstHigh, srcHigh);
    for (int i = 0; i < kRows; ++i) {
      to[i] += dstRepeat * kBlock;
      from[i] += srcRepeat * kBlock;
    }
  }
}

namespace {

float Score(const std::uint8_t *from, DType type, std::int64_t i) {
  if (type == DType::kF16) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    return HalfToFloat(bits);
  }
  float value;
  std::memcpy(&value, from + 4 * i, 4);
  return value;
}

}  // namespace

void Sort32Op(const Call &call, DType type, const View &dst, const View &src, const View &index,
              std::int64_t repeats) {
  constexpr std::int64_t kItems = 32, kItemBytes = 8;
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  if (!InRange(call, "repeatTime", repeats, 0, 255) || repeats == 0) return;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, repeats * kItems * kItemBytes});
  const std::uint8_t *from = Usable(core, call, {"src0", &src, repeats * kItems * size});
  const std::uint8_t *names = Usable(core, call, {"src1", &index, repeats * kItems * 4});
  if (to == nullptr || from == nullptr || names == nullptr) return;
  RecordVectorRaw("sort32", type, repeats, repeats * kItems, dst.addr, src.addr, index.addr, false);
  if (Dry()) return;
  for (std::int64_t r = 0; r < repeats; ++r, from += kItems * size) {
    std::int64_t order[kItems];
    std::iota(order, order + kItems, 0);
    std::stable_sort(order, order + kItems, [&](std::int64_t a, std::int64_t b) {
      const float x = Score(from, type, a), y = Score(from, type, b);
      return y == y && (x != x || x > y);  // NaN first (doc: TopK)
    });
    for (std::int64_t i = 0; i < kItems; ++i) {
      std::uint8_t *item = to + (r * kItems + i) * kItemBytes;
      std::fill(item, item + kItemBytes, std::uint8_t{0});
      std::copy_n(from + order[i] * size, size, item);
      std::copy_n(names + (r * kItems + order[i]) * 4, 4, item + 4);
    }
  }
}

void BroadcastOp(const Call &call, DType type, const View &dst, const View &src,
                 const View *scratch, const std::uint32_t *dstShape, const std::uint32_t *srcShape,
                 int dims) {
  Core &core = Enter(call);
  const int size = SizeOf(type);
  const std::int64_t rows = dims == 2 ? dstShape[0] : 1, columns = dstShape[dims - 1];
  const std::int64_t srcRows = dims == 2 ? srcShape[0] : 1, srcColumns = srcShape[dims - 1];
  const bool fits = (srcRows == rows || srcRows == 1) && (srcColumns == columns || srcColumns == 1);
  // doc: only growing the first axis copies whole rows, which then are multiples of 32 B
  const bool ragged = dims == 2 && srcRows != rows && columns * size % kBlock != 0;
  if (!fits || ragged) {
    Report(call, "param-range",
           Text("%s from %lld x %lld to %lld x %lld", call.api, Ll(srcRows), Ll(srcColumns),
                Ll(rows), Ll(columns)),
           "", "one axis of length 1 grows; rows are multiples of 32 B when the first axis grows");
    return;
  }
  if (!HasScratch(core, call, scratch, kRepeat)) return;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, rows * columns * size});
  const std::uint8_t *from = Usable(core, call, {"src", &src, srcRows * srcColumns * size});
  if (to == nullptr || from == nullptr) return;
  const std::int64_t bytes = rows * columns * size, srcBytes = srcRows * srcColumns * size;
  // The documentation forbids it; but rows are copied one by one, the first onto itself, and
  // published operators rely on that.
  const bool firstRow = dst.addr == src.addr && srcColumns == columns;
  Disjoint(call, "dst", dst, bytes, "src", src, srcBytes,
           firstRow ? Level::kWarning : Level::kError);
  RecordLibrary(call.api, type, rows * columns);
  if (Dry()) return;
  const std::vector<std::uint8_t> taken(from, from + srcBytes);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t row = srcRows == 1 ? 0 : i / columns;
    const std::int64_t column = srcColumns == 1 ? 0 : i % columns;
    std::copy_n(taken.data() + (row * srcColumns + column) * size, size, to + i * size);
  }
}

}  // namespace twin
