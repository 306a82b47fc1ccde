// Filters by a mask: the library's Select and DropOut.
#include "twin/filter.h"

#include <algorithm>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/scratch.h"

namespace twin {

namespace {

// Reports rows that do not begin at a block.
bool WholeBlocks(const Call &call, const char *what, std::int64_t columns, std::int64_t size,
                 std::int64_t unit = 1) {
  if (columns * size % kBlock == 0 && columns % unit == 0) return true;
  Report(call, "param-range", Text("rows of %s of %s have %lld B", what, call.api,
                                   Ll(columns * size)),
         Text("%lld elements", Ll(columns)),
         unit == 1 ? "a multiple of 32 B" : Text("a multiple of 32 B and of %lld", Ll(unit)));
  return false;
}

bool CheckSelect(const Call &call, const SelectJob &job, std::int64_t size,
                 std::int64_t maskSize) {
  constexpr std::int64_t kMaskUnit = 16;  // doc: elements of a mask's row
  if (!WholeBlocks(call, "the source", job.columns, size)) return false;
  if (!WholeBlocks(call, "the mask", job.maskColumns, maskSize, kMaskUnit)) return false;
  if (job.maskColumns >= job.columns) return true;
  Report(call, "param-range", Text("%s has a mask that is shorter than its source", call.api),
         Text("maskLastAxis %lld, srcLastAxis %lld", Ll(job.maskColumns), Ll(job.columns)),
         "maskLastAxis >= srcLastAxis");
  return false;
}

}  // namespace

void SelectBytes(const Call &call, DType type, int maskSize, const View &dst, const View &src,
                 const void *scalar, const View &mask, const View &scratch, const SelectJob &job) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), bytes = job.rows * job.columns * size;
  if (!CheckSelect(call, job, size, maskSize) || bytes == 0) return;
  if (!HasScratch(core, call, &scratch, kBlock)) return;
  UseReserve(core, call);
  // doc: a mask with more columns than the source may be overwritten when it may be reused
  const bool spoils = !job.keepMask && job.maskColumns != job.columns;
  const std::int64_t maskBytes = ((job.rows - 1) * job.maskColumns + job.columns) * maskSize;
  const Spread rows{job.columns * maskSize, job.maskColumns * maskSize};
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  const std::uint8_t *bits = Usable(
      core, call, {"mask", &mask, maskBytes, kBlock, spoils ? Use::kUpdate : Use::kRead, rows});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (from == nullptr || bits == nullptr || to == nullptr) return;
  if (dst.addr != src.addr && !Disjoint(call, "dst", dst, bytes, "src", src, bytes)) return;
  if (!Disjoint(call, "dst", dst, bytes, "mask", mask, maskBytes)) return;
  Disjoint(call, "sharedTmpBuffer", scratch, kBlock, "src", src, bytes);
  RecordLibrary(call.api, type, job.rows * job.columns);
  if (Dry()) return;
  const auto *fill = static_cast<const std::uint8_t *>(scalar);
  for (std::int64_t i = 0; i < job.rows * job.columns; ++i) {
    const std::int64_t at = i / job.columns * job.maskColumns + i % job.columns;
    const std::uint8_t *entry = bits + at * maskSize;
    const bool set = std::any_of(entry, entry + maskSize, [](std::uint8_t b) { return b != 0; });
    // mask 0 takes src0, anything else src1
    const bool tensor = set != job.tensorFirst;
    std::memmove(to + i * size, tensor ? from + i * size : fill, static_cast<std::size_t>(size));
  }
}

namespace {

// How the mask is laid out, once mode 0 is decided.
struct DropMask {
  bool bits;
  std::int64_t pitch;  // bytes of a row
};

// guess: how mode 0 decides; the page says "by the shapes"
DropMask MaskOf(const DropJob &job) {
  int mode = job.mode;
  if (mode == 0) {
    const bool bytes = job.maskColumns >= job.columns;
    mode = bytes ? 1 : 4;
  }
  return {mode >= 3, job.maskColumns};
}

bool Keeps(const std::uint8_t *mask, const DropMask &how, std::int64_t row, std::int64_t column) {
  const std::uint8_t *line = mask + row * how.pitch;
  if (!how.bits) return line[column] != 0;
  // Bits are taken as Select takes them, lowest first. The page's picture writes them the other
  // way.
  return (line[column / 8] >> (column % 8)) & 1;
}

template <typename T>
void DropAs(T *to, const T *from, const std::uint8_t *mask, const DropMask &how,
            const DropJob &job) {
  const auto scale = Widened<T>::Load(Widened<T>::Store(1.0f / job.keep));
  for (std::int64_t i = 0; i < job.rows * job.columns; ++i) {
    const bool kept = Keeps(mask, how, i / job.columns, i % job.columns);
    const auto value = kept ? Widened<T>::Load(from[i]) : 0.0f;
    to[i] = Widened<T>::Store(value * scale);
  }
}

}  // namespace

void DropOutOp(const Call &call, DType type, const View &dst, const View &src, const View &mask,
               const View *scratch, const DropJob &job) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type), bytes = job.rows * job.columns * size;
  if (!(job.keep > 0.0f && job.keep < 1.0f)) {
    Report(call, "param-range",
           Text("keepProb of %s is %g", call.api, static_cast<double>(job.keep)), "",
           "more than 0, less than 1");
    return;
  }
  if (!InRange(call, "maskLastAxis", job.maskColumns, 1, 0x7FFFFFFF)) return;
  const DropMask how = MaskOf(job);
  const std::int64_t run = how.bits ? (job.columns + 7) / 8 : job.columns;
  // doc: rows begin at blocks when the mask has bytes to skip, else the whole source does
  const bool skips = how.pitch != run;
  if (!WholeBlocks(call, "the source", skips ? job.columns : job.rows * job.columns, size)) return;
  if (bytes == 0) return;
  if (!InRange(call, "maskLastAxis", job.maskColumns, run, 0x7FFFFFFF)) return;
  if (!HasScratch(core, call, scratch, kBlock)) return;
  UseReserve(core, call);
  const std::int64_t maskBytes = (job.rows - 1) * how.pitch + run;
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes});
  const std::uint8_t *keep = Usable(core, call, {"mask", &mask, maskBytes, kBlock,
                                                 skips ? Use::kUpdate : Use::kRead,
                                                 {run, how.pitch}});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (from == nullptr || keep == nullptr || to == nullptr) return;
  if (dst.addr != src.addr && !Disjoint(call, "dst", dst, bytes, "src", src, bytes)) return;
  RecordLibrary(call.api, type, job.rows * job.columns);
  if (Dry()) return;
  if (type == DType::kF32) {
    DropAs(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), keep, how, job);
  } else {
    DropAs(reinterpret_cast<half *>(to), reinterpret_cast<const half *>(from), keep, how, job);
  }
}

}  // namespace twin
