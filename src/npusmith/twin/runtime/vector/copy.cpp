// Moves between global memory and UB, and inside UB.
#include <algorithm>

#include "vector/loops.h"
#include "vector/put.h"
#include "log/record.h"
#include "text.h"
#include "twin/cube.h"

namespace twin {

namespace {

constexpr std::int64_t kMostBlocks = 4095;       // doc: DataCopyParams
constexpr std::int64_t kMostPadBytes = 2097151;  // doc: DataCopyExtParams

// Rounds a byte length down to blocks as the hardware does, and says so.
std::int64_t WholeBlocks(const Call &call, std::int64_t count, int size) {
  const std::int64_t bytes = count * size;
  if (bytes % kBlock == 0) return bytes;
  const std::int64_t padded = (bytes + kBlock - 1) / kBlock * kBlock;
  Report(call, "copy-length", Text("%s of %lld B is not a multiple of %lld B", call.api, Ll(bytes),
                                   Ll(kBlock)),
         Text("%lld elements of %d B; the hardware moves %lld B", Ll(count), size,
              Ll(bytes / kBlock * kBlock)),
         "", Text("%lld elements, or DataCopyPad", Ll(padded / size)));
  return bytes / kBlock * kBlock;
}

Op AtomicOp(Atomic mode) {
  if (mode == Atomic::kAdd) return Op::kAdd;
  return mode == Atomic::kMax ? Op::kMax : Op::kMin;
}

template <typename T>
void CombineBytes(std::uint8_t *to, const std::uint8_t *from, std::int64_t n, Atomic mode) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T a = static_cast<T>(to[i]), b = static_cast<T>(from[i]);
    const T best = mode == Atomic::kMax ? std::max(a, b) : std::min(a, b);
    to[i] = static_cast<std::uint8_t>(mode == Atomic::kAdd ? static_cast<T>(a + b) : best);
  }
}

// bfloat16 has no vector arithmetic, but copies may accumulate it: in float, rounded once.
void CombineBf16(std::uint8_t *to, const std::uint8_t *from, std::int64_t n, Atomic mode) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t x, y;
    std::memcpy(&x, to + 2 * i, 2);
    std::memcpy(&y, from + 2 * i, 2);
    float a = Bf16ToFloat(x), b = Bf16ToFloat(y), result;
    ArithmeticLoop(AtomicOp(mode), DType::kF32)(&result, &a, &b, nullptr, 1);
    x = FloatToBf16(result);
    std::memcpy(to + 2 * i, &x, 2);
  }
}

// Writes bytes to global memory under the core's atomic mode.
void Put(const Core &core, std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes) {
  if (core.atomic == Atomic::kNone) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const std::int64_t n = bytes / SizeOf(core.atomicType);
  if (core.atomicType == DType::kI8) return CombineBytes<std::int8_t>(to, from, n, core.atomic);
  if (core.atomicType == DType::kU8) return CombineBytes<std::uint8_t>(to, from, n, core.atomic);
  if (core.atomicType == DType::kBF16) return CombineBf16(to, from, n, core.atomic);
  ArithmeticLoop(AtomicOp(core.atomic), core.atomicType)(to, to, from, nullptr, n);
}

void CheckAtomicType(const Core &core, const Call &call, DType type) {
  if (core.atomic == Atomic::kNone || core.atomicType == type) return;
  Report(call, "atomic-type",
         Text("the atomic mode was set for %s, the copy moves %s", NameOf(core.atomicType),
              NameOf(type)),
         Text("set at %s", PlaceOf(core.atomicSite).c_str()));
}

bool CheckGmAlignment(const Call &call, const Gm &gm, int size) {
  const auto address = reinterpret_cast<std::uintptr_t>(gm.base);
  if (address % static_cast<std::uintptr_t>(size) == 0) return true;
  Report(call, "gm-align", Text("%s of elements of %d B at an address that is no multiple of it",
                                call.api, size));
  return false;
}

// What the sanitizer learns of a row of bytes that a copy moves.
void Loaded(Core &core, const View &dst, std::int64_t at, const std::uint8_t *from,
            std::int64_t bytes) {
  ShadowDone(core);
  ShadowLoad(core, MemoryOf(dst.position), dst.addr + at, from, bytes);
}

void Padded(Core &core, const View &dst, std::int64_t at, std::int64_t bytes, Known known) {
  ShadowSet(core, MemoryOf(dst.position), dst.addr + at, dst.addr + at + bytes, known);
}

void Stored(Core &core, const View &src, std::int64_t at, const std::uint8_t *to,
            std::int64_t bytes) {
  ShadowStore(core, MemoryOf(src.position), src.addr + at, to, bytes);
}

void Moved(Core &core, const View &dst, std::int64_t to, const View &src, std::int64_t from,
           std::int64_t bytes) {
  ShadowDone(core);
  ShadowMove(core, Memory::kUb, dst.addr + to, src.addr + from, bytes);
}

bool FromL1(const View &view) {
  return view.position != AscendC::TPosition::MAX && view.position != AscendC::TPosition::GM &&
         MemoryOf(view.position) == Memory::kL1;
}

// The paths between global memory and a core, for the log.
const char *PathIn(const View &dst) { return FromL1(dst) ? "gm_l1" : "gm_ub"; }
const char *PathOut(const View &src) { return FromL1(src) ? "l1_gm" : "ub_gm"; }

std::uint8_t FlagsIn(const Gm &src) { return CacheFlag(src, AscendC::CacheRwMode::READ); }

std::uint8_t FlagsOut(const Core &core, const Gm &dst) {
  const int atomic = core.atomic == Atomic::kNone ? 0 : kAtomic;
  return static_cast<std::uint8_t>(CacheFlag(dst, AscendC::CacheRwMode::WRITE) | atomic);
}

// An operand of a copy from or to global memory: L1 of a cube core, UB of any other.
std::uint8_t *UsableEnd(Core &core, const Call &call, const Need &need) {
  return UsableIn(core, call, need, FromL1(*need.view) ? Memory::kL1 : Memory::kUb);
}

}  // namespace

void PutAtomic(const Core &core, std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes) {
  Put(core, to, from, bytes);
}

void CheckAtomic(const Core &core, const Call &call, DType type) {
  CheckAtomicType(core, call, type);
}

void CopyIn(const Call &call, DType type, const View &dst, const Gm &src, std::int64_t count) {
  Core &core = Enter(call, PIPE_MTE2);
  if (!InRange(call, "count", count, 0, 0xFFFFFFFFll)) return;
  const std::int64_t bytes = WholeBlocks(call, count, SizeOf(type));
  std::uint8_t *to = UsableEnd(core, call, {"dst", &dst, bytes});
  if (bytes == 0 || to == nullptr || !CheckGmAlignment(call, src, SizeOf(type))) return;
  const std::uint8_t *from = UsableGm(call, "src", src, bytes, false);
  if (from == nullptr) return;
  RecordCopy(PathIn(dst), type, 1, bytes, from, bytes, dst.addr, FlagsIn(src));
  if (Dry()) return;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  Loaded(core, dst, 0, from, bytes);
}

void CopyOut(const Call &call, DType type, const Gm &dst, const View &src, std::int64_t count) {
  Core &core = Enter(call, PIPE_MTE3);
  if (!InRange(call, "count", count, 0, 0xFFFFFFFFll)) return;
  const std::int64_t bytes = WholeBlocks(call, count, SizeOf(type));
  const std::uint8_t *from = UsableEnd(core, call, {"src", &src, bytes});
  if (bytes == 0 || from == nullptr || !CheckGmAlignment(call, dst, SizeOf(type))) return;
  std::uint8_t *to = UsableGm(call, "dst", dst, bytes, true);
  if (to == nullptr) return;
  CheckAtomicType(core, call, type);
  RecordCopy(PathOut(src), type, 1, bytes, to, bytes, src.addr, FlagsOut(core, dst));
  if (Dry()) return;
  Put(core, to, from, bytes);
  Stored(core, src, 0, to, bytes);
}

void CopyOver(const Call &call, DType type, const View &dst, const View &src, std::int64_t count) {
  if (FromL1(src)) return CopyToTable(call, type, type, dst, src, nullptr, count);
  Core &core = Enter(call, PIPE_V);
  if (!InRange(call, "count", count, 0, 0xFFFFFFFFll)) return;
  const std::int64_t bytes = WholeBlocks(call, count, SizeOf(type));
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  if (to == nullptr || from == nullptr || bytes == 0) return;
  if (to != from) Disjoint(call, "dst", dst, bytes, "src", src, bytes);
  RecordCopy("ub_ub", type, 1, bytes, nullptr, 0, dst.addr);
  if (Dry()) return;
  Moved(core, dst, 0, src, 0, bytes);
  std::memmove(to, from, static_cast<std::size_t>(bytes));
}

namespace {

// Block copies, reduced to rows of bytes.
struct Rows {
  std::int64_t count, bytes, fromPitch, toPitch;

  std::int64_t FromEnd() const { return count == 0 ? 0 : (count - 1) * fromPitch + bytes; }
  Spread From() const { return {bytes, fromPitch}; }
  Spread To() const { return {bytes, toPitch}; }
  std::int64_t ToEnd() const { return count == 0 ? 0 : (count - 1) * toPitch + bytes; }
};

bool MakeRows(const Call &call, const Blocks &how, Rows &rows) {
  const bool good = InRange(call, "blockCount", how.count, 0, kMostBlocks) &&
                    InRange(call, "blockLen", how.length, 0, 65535) &&
                    InRange(call, "srcStride", how.source, 0, 65535) &&
                    InRange(call, "dstStride", how.target, 0, 65535);
  rows = {how.length == 0 ? 0 : how.count, how.length * kBlock,
          (how.length + how.source) * kBlock, (how.length + how.target) * kBlock};
  return good;
}

}  // namespace

void CopyInBlocks(const Call &call, DType type, const View &dst, const Gm &src,
                  const Blocks &how) {
  Core &core = Enter(call, PIPE_MTE2);
  Rows rows;
  if (!MakeRows(call, how, rows)) return;
  std::uint8_t *to =
      UsableEnd(core, call, {"dst", &dst, rows.ToEnd(), kBlock, Use::kByRole, rows.To()});
  if (to == nullptr || rows.count == 0 || !CheckGmAlignment(call, src, SizeOf(type))) return;
  const std::uint8_t *from = UsableGm(call, "src", src, rows.FromEnd(), false, rows.From());
  if (from == nullptr) return;
  RecordCopy(PathIn(dst), type, rows.count, rows.bytes, from, rows.fromPitch, dst.addr,
             FlagsIn(src));
  if (Dry()) return;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    std::memcpy(to + i * rows.toPitch, from + i * rows.fromPitch,
                static_cast<std::size_t>(rows.bytes));
    Loaded(core, dst, i * rows.toPitch, from + i * rows.fromPitch, rows.bytes);
  }
}

void CopyOutBlocks(const Call &call, DType type, const Gm &dst, const View &src,
                   const Blocks &how) {
  Core &core = Enter(call, PIPE_MTE3);
  Rows rows;
  if (!MakeRows(call, how, rows)) return;
  const std::uint8_t *from =
      UsableEnd(core, call, {"src", &src, rows.FromEnd(), kBlock, Use::kByRole, rows.From()});
  if (from == nullptr || rows.count == 0 || !CheckGmAlignment(call, dst, SizeOf(type))) return;
  std::uint8_t *to = UsableGm(call, "dst", dst, rows.ToEnd(), true, rows.To());
  if (to == nullptr) return;
  CheckAtomicType(core, call, type);
  RecordCopy(PathOut(src), type, rows.count, rows.bytes, to, rows.toPitch, src.addr,
             FlagsOut(core, dst));
  if (Dry()) return;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    Put(core, to + i * rows.toPitch, from + i * rows.fromPitch, rows.bytes);
    Stored(core, src, i * rows.fromPitch, to + i * rows.toPitch, rows.bytes);
  }
}

void CopyOverBlocks(const Call &call, DType type, const View &dst, const View &src,
                    const Blocks &how) {
  if (FromL1(src)) return CopyToTable(call, type, type, dst, src, &how, 0);
  Core &core = Enter(call, PIPE_V);
  Rows rows;
  if (!MakeRows(call, how, rows)) return;
  std::uint8_t *to =
      Usable(core, call, {"dst", &dst, rows.ToEnd(), kBlock, Use::kByRole, rows.To()});
  const std::uint8_t *from =
      Usable(core, call, {"src", &src, rows.FromEnd(), kBlock, Use::kByRole, rows.From()});
  if (to == nullptr || from == nullptr) return;
  RecordCopy("ub_ub", type, rows.count, rows.bytes, nullptr, 0, dst.addr);
  if (Dry()) return;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    Moved(core, dst, i * rows.toPitch, src, i * rows.fromPitch, rows.bytes);
    std::memmove(to + i * rows.toPitch, from + i * rows.fromPitch,
                 static_cast<std::size_t>(rows.bytes));
  }
}

namespace {

bool CheckPad(const Call &call, DType type, const PadBlocks &how, bool in) {
  const int size = SizeOf(type);
  bool good = InRange(call, "blockCount", how.count, 1, kMostBlocks) &&
              InRange(call, "blockLen", how.length, 0, kMostPadBytes);
  const auto complain = [&](const std::string &message, const char *legal) {
    Report(call, "copy-pad", message, "", legal);
    good = false;
  };
  if (how.length % size != 0) {
    complain(Text("blockLen %lld B is no multiple of the element's %d B", Ll(how.length), size),
             "blockLen in bytes, a multiple of the element size");
  }
  if (!in) return good;
  if (std::max(how.left, how.right) * size > kBlock) {
    complain(Text("padding of %lld and %lld elements exceeds one block", Ll(how.left),
                  Ll(how.right)),
             "leftPadding and rightPadding of at most 32 B each");
  }
  if (how.pad && size == 8 && how.value != 0) {
    complain("64-bit elements can only be padded with 0", "paddingValue 0");
  }
  return good;
}

void FillElements(std::uint8_t *to, std::int64_t bytes, const void *element, int size) {
  for (std::int64_t at = 0; at + size <= bytes; at += size) {
    std::memcpy(to + at, element, static_cast<std::size_t>(size));
  }
}

// What the padding lanes of a row hold.
struct Filler {
  std::uint64_t pad;    // left and right padding
  bool repeatFirst;     // dummy lanes repeat the row's first element
};

void CopyRowIn(std::uint8_t *to, const std::uint8_t *from, const PadBlocks &how, int size,
               const Filler &filler) {
  const std::int64_t left = how.left * size, right = how.right * size;
  const std::int64_t body = left + how.length + right;
  const std::int64_t row = (body + kBlock - 1) / kBlock * kBlock;
  FillElements(to, left, &filler.pad, size);
  std::memcpy(to + left, from, static_cast<std::size_t>(how.length));
  FillElements(to + left + how.length, right, &filler.pad, size);
  std::uint64_t first = 0;
  std::memcpy(&first, from, static_cast<std::size_t>(std::min<std::int64_t>(size, how.length)));
  FillElements(to + body, row - body, filler.repeatFirst ? &first : &filler.pad, size);
}

}  // namespace

void CopyInPadded(const Call &call, DType type, const View &dst, const Gm &src,
                  const PadBlocks &how) {
  Core &core = Enter(call, PIPE_MTE2);
  const int size = SizeOf(type);
  if (!CheckPad(call, type, how, true) || how.length == 0) return;
  if (!how.pad && !core.padSet && (how.left != 0 || how.right != 0)) {
    Report(call, "copy-pad",
           "padding without isPad or SetPadValue: what the padding holds is undefined", "",
           "isPad = true, or SetPadValue before it");
  }
  const std::int64_t body = (how.left + how.right) * size + how.length;
  const std::int64_t row = (body + kBlock - 1) / kBlock * kBlock;
  const std::int64_t toPitch = row + how.target * kBlock;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, (how.count - 1) * toPitch + row, kBlock,
                                         Use::kByRole, {row, toPitch}});
  const std::int64_t fromPitch = how.length + how.source;
  const std::int64_t fromBytes = (how.count - 1) * fromPitch + how.length;
  const std::uint8_t *from = UsableGm(call, "src", src, fromBytes, false,
                                      {how.length, fromPitch});
  if (to == nullptr || from == nullptr) return;
  RecordCopy("gm_ub", type, how.count, how.length, from, fromPitch, dst.addr, FlagsIn(src));
  if (Dry()) return;
  // doc: with no padding on either side the dummy lanes repeat the first element, isPad or not
  const bool none = how.left == 0 && how.right == 0;
  Filler filler{how.value, none && (how.pad || !core.padSet)};
  const bool unset = filler.repeatFirst || (!how.pad && !core.padSet);  // a value nobody chose
  if (!how.pad) filler.pad = core.padSet ? core.padBits : ~0ull;  // undefined: NaN bits show it
  for (std::int64_t i = 0; i < how.count; ++i) {
    CopyRowIn(to + i * toPitch, from + i * fromPitch, how, size, filler);
    const std::int64_t start = i * toPitch + how.left * size;
    Padded(core, dst, i * toPitch, row, unset ? Known::kPadding : Known::kData);
    Loaded(core, dst, start, from + i * fromPitch, how.length);
  }
}

void CopyOutPadded(const Call &call, DType type, const Gm &dst, const View &src,
                   const PadBlocks &how) {
  Core &core = Enter(call, PIPE_MTE3);
  if (!CheckPad(call, type, how, false) || how.length == 0) return;
  const std::int64_t row = (how.length + kBlock - 1) / kBlock * kBlock;
  const std::int64_t fromPitch = row + how.source * kBlock;
  const std::uint8_t *from =
      Usable(core, call, {"src", &src, (how.count - 1) * fromPitch + how.length, kBlock,
                          Use::kByRole, {how.length, fromPitch}});
  const std::int64_t toPitch = how.length + how.target;
  std::uint8_t *to =
      UsableGm(call, "dst", dst, (how.count - 1) * toPitch + how.length, true,
               {how.length, toPitch});
  if (from == nullptr || to == nullptr) return;
  CheckAtomicType(core, call, type);
  RecordCopy("ub_gm", type, how.count, how.length, to, toPitch, src.addr, FlagsOut(core, dst));
  if (Dry()) return;
  for (std::int64_t i = 0; i < how.count; ++i) {
    Put(core, to + i * toPitch, from + i * fromPitch, how.length);
    Stored(core, src, i * fromPitch, to + i * toPitch, how.length);
  }
}

namespace {

struct Slice {
  std::int64_t start, end, stride, burst, shape;
};

constexpr int kMostDims = 8;

// Byte offsets of every burst of a slice copy, in order; false after reporting.
bool Bursts(const Call &call, const std::uint32_t *raw, int dims, int size,
            std::vector<std::int64_t> &offsets) {
  if (!InRange(call, "dimValue", dims, 1, kMostDims)) return false;
  Slice slices[kMostDims];
  for (int d = 0; d < dims; ++d) {
    const std::uint32_t *five = raw + 5 * d;
    slices[d] = {five[0], five[1], five[2], five[3], five[4]};
    const std::int64_t unit = d == 0 ? slices[d].burst * kBlock / size : 1;
    const std::int64_t span = slices[d].end - slices[d].start + 1;
    if (unit <= 0 || span < unit || (span + slices[d].stride) % (unit + slices[d].stride) != 0) {
      Report(call, "param-range",
             Text("slice %d: %lld elements do not hold whole bursts of %lld with gaps of %lld", d,
                  Ll(span), Ll(unit), Ll(slices[d].stride)),
             "", "endIndex - startIndex + 1 == (n - 1) * stride + n * burst");
      return false;
    }
  }
  offsets = {0};
  std::int64_t pitch = 1;
  std::vector<std::int64_t> all;
  for (int d = 0; d < dims; ++d) {
    const std::int64_t unit = d == 0 ? slices[0].burst * kBlock / size : 1;
    all.clear();
    const std::int64_t step = unit + slices[d].stride;
    for (std::int64_t i = slices[d].start; i + unit - 1 <= slices[d].end; i += step) {
      for (std::int64_t inner : offsets) all.push_back(inner + i * pitch * size);
    }
    offsets = all;
    pitch *= slices[d].shape > 0 ? slices[d].shape : slices[d].end + 1;
  }
  return true;
}

struct SlicePlan {
  std::vector<std::int64_t> to, from;
  std::int64_t bytes = 0, toEnd = 0, fromEnd = 0;
};

bool PlanSlices(const Call &call, DType type, const std::uint32_t *dstSlices,
                const std::uint32_t *srcSlices, int dims, SlicePlan &plan) {
  const int size = SizeOf(type);
  if (!Bursts(call, dstSlices, dims, size, plan.to)) return false;
  if (!Bursts(call, srcSlices, dims, size, plan.from)) return false;
  if (plan.to.size() != plan.from.size() || dstSlices[3] != srcSlices[3]) {
    Report(call, "param-range", "source and destination slices hold different numbers of bursts",
           Text("%zu and %zu", plan.from.size(), plan.to.size()));
    return false;
  }
  plan.bytes = dstSlices[3] * kBlock;
  plan.toEnd = *std::max_element(plan.to.begin(), plan.to.end()) + plan.bytes;
  plan.fromEnd = *std::max_element(plan.from.begin(), plan.from.end()) + plan.bytes;
  return true;
}

}  // namespace

namespace {

// From one burst to the next; those of outer dimensions may be further apart.
std::int64_t PitchOf(const std::vector<std::int64_t> &offsets) {
  return offsets.size() > 1 ? offsets[1] - offsets[0] : 0;
}

}  // namespace

void CopyInSlices(const Call &call, DType type, const View &dst, const Gm &src,
                  const std::uint32_t *dstSlices, const std::uint32_t *srcSlices, int dims) {
  Core &core = Enter(call, PIPE_MTE2);
  SlicePlan plan;
  if (!PlanSlices(call, type, dstSlices, srcSlices, dims, plan)) return;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, plan.toEnd});
  const std::uint8_t *from = UsableGm(call, "src", src, plan.fromEnd, false);
  if (to == nullptr || from == nullptr) return;
  RecordCopy("gm_ub", type, Ll(plan.to.size()), plan.bytes, from + plan.from[0],
             PitchOf(plan.from), dst.addr + plan.to[0], FlagsIn(src));
  if (Dry()) return;
  for (std::size_t i = 0; i < plan.to.size(); ++i) {
    std::memcpy(to + plan.to[i], from + plan.from[i], static_cast<std::size_t>(plan.bytes));
    Loaded(core, dst, plan.to[i], from + plan.from[i], plan.bytes);
  }
}

void CopyOutSlices(const Call &call, DType type, const Gm &dst, const View &src,
                   const std::uint32_t *dstSlices, const std::uint32_t *srcSlices, int dims) {
  Core &core = Enter(call, PIPE_MTE3);
  SlicePlan plan;
  if (!PlanSlices(call, type, dstSlices, srcSlices, dims, plan)) return;
  const std::uint8_t *from = Usable(core, call, {"src", &src, plan.fromEnd});
  std::uint8_t *to = UsableGm(call, "dst", dst, plan.toEnd, true);
  if (to == nullptr || from == nullptr) return;
  CheckAtomicType(core, call, type);
  RecordCopy("ub_gm", type, Ll(plan.to.size()), plan.bytes, to + plan.to[0], PitchOf(plan.to),
             src.addr + plan.from[0], FlagsOut(core, dst));
  if (Dry()) return;
  for (std::size_t i = 0; i < plan.to.size(); ++i) {
    Put(core, to + plan.to[i], from + plan.from[i], plan.bytes);
    Stored(core, src, plan.from[i], to + plan.to[i], plan.bytes);
  }
}

void FillGm(const Call &call, DType type, const Gm &dst, std::int64_t count, const void *value) {
  Core &core = Enter(call, PIPE_MTE3);
  if (!InRange(call, "size", count, 0, 0xFFFFFFFFll)) return;
  std::uint8_t *to = UsableGm(call, "dst", dst, count * SizeOf(type), true);
  if (to == nullptr || count == 0) return;
  const std::int64_t bytes = count * SizeOf(type);
  RecordCopy("ub_gm", type, 1, bytes, to, bytes, 0, FlagsOut(core, dst));
  if (Dry()) return;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(count * SizeOf(type)));
  FillLoop(SizeOf(type))(row.data(), nullptr, nullptr, value, count);
  Put(core, to, row.data(), count * SizeOf(type));
}

}  // namespace twin
