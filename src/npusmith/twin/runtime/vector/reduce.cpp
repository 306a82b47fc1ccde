// Reductions: adjacent-pair trees with rounding at every step, as the chip adds.
#include <algorithm>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/scratch.h"

namespace twin {

namespace {

using AscendC::ReduceOrder;

template <typename T>
using WidenedT = typename Widened<T>::Type;

// Calls f with the element type as the present mode holds it.
template <typename F>
void ForElement(const Core &core, DType type, F f) {
  if (type == DType::kF32) f(float{});
  else if (SaturatesFloat(core)) f(Capped<half>{});
  else f(half{});
}

// A value and where it stood.
template <typename T>
struct Found {
  WidenedT<T> value;
  std::int64_t index;
};

// The sum of n values (a power of two), destroying them.
template <typename T>
WidenedT<T> Tree(WidenedT<T> *values, std::int64_t n) {
  for (; n > 1; n /= 2) {
    for (std::int64_t i = 0; i < n / 2; ++i) {
      values[i] = Widened<T>::Load(Widened<T>::Store(values[2 * i] + values[2 * i + 1]));
    }
  }
  return values[0];
}

// Sum of up to one repeat under a mask; masked-off lanes count as zero.
template <typename T>
WidenedT<T> SumLanes(const T *from, std::int64_t n, std::int64_t lanes, const std::uint64_t *mask) {
  alignas(64) WidenedT<T> values[128];
  for (std::int64_t i = 0; i < n; ++i) values[i] = Widened<T>::Load(from[i]);
  if (mask != nullptr) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = Active(mask, i) ? values[i] : WidenedT<T>(0);
  }
  std::fill(values + n, values + lanes, WidenedT<T>(0));
  return Tree<T>(values, lanes);
}

// NaN wins; ties keep the lowest index.
template <typename T>
bool Better(WidenedT<T> candidate, WidenedT<T> best, bool max) {
  if (best != best) return false;
  if (candidate != candidate) return true;
  return max ? candidate > best : candidate < best;
}

template <typename T>
Found<T> Extreme(const T *from, std::int64_t n, const std::uint64_t *mask, bool max) {
  Found<T> best{WidenedT<T>(0), -1};
  for (std::int64_t i = 0; i < n; ++i) {
    if (mask != nullptr && !Active(mask, i)) continue;
    const WidenedT<T> value = Widened<T>::Load(Widened<T>::Store(Widened<T>::Load(from[i])));
    if (best.index < 0 || Better<T>(value, best.value, max)) best = {value, i};
  }
  return best;
}

template <typename T>
void PutIndex(T *to, std::int64_t index) {
  if constexpr (sizeof(T) == 2) {
    const auto bits = static_cast<std::uint16_t>(index);
    std::memcpy(to, &bits, 2);
  } else {
    const auto bits = static_cast<std::uint32_t>(index);
    std::memcpy(to, &bits, 4);
  }
}

// What every reduction of one plan shares.
struct Job {
  Plan plan;
  Operand src;

  std::int64_t repeats() const { return plan.repeats + (plan.tail > 0); }
  std::int64_t lanesOf(std::int64_t r) const {
    return r < plan.repeats ? plan.last + 1 : plan.tail;
  }
  const std::uint64_t *maskOf(std::int64_t r) const {
    return r < plan.repeats && !plan.full ? plan.mask : nullptr;
  }
};

bool MakeJob(Core &core, const Call &call, DType type, const Lane &src, const Walk &walk,
             Job &job) {
  if (!MakePlan(core, call, walk, kRepeat / SizeOf(type), job.plan)) return false;
  job.src = {"src", src, type};
  return CheckOperands(core, call, job.plan, &job.src, 1) && !job.plan.empty();
}

constexpr const char *kFoldAll[] = {"reduce_sum", "reduce_max", "reduce_min"};
constexpr const char *kFoldRepeat[] = {"whole_reduce_sum", "whole_reduce_max", "whole_reduce_min"};
constexpr const char *kFoldBlock[] = {"block_reduce_sum", "block_reduce_max", "block_reduce_min"};

const char *NameOf(const char *const *names, Fold fold) {
  return names[static_cast<std::size_t>(fold)];
}

// `pitch`: bytes between the results of repeats.
void RecordFold(const char *what, const Job &job, const View &dst, std::int64_t pitch,
                const Walk &walk) {
  const Operand operands[] = {{"dst", {dst, 1, pitch / kBlock}, job.src.type}, job.src};
  RecordVector(what, job.plan, operands, 2, SetsMask(walk));
}

template <typename T>
const T *Lanes(const Job &job, std::int64_t r, T *buffer) {
  if (job.src.lane.block == 1) {
    return reinterpret_cast<const T *>(job.src.base + r * job.src.lane.repeat * kBlock);
  }
  GatherRepeat(job.src, r, job.lanesOf(r), buffer);
  return buffer;
}

// Reduces the whole job to one value.
template <typename T>
Found<T> FoldJob(const Job &job, Fold fold) {
  alignas(64) T buffer[128];
  Found<T> total{WidenedT<T>(0), -1};
  for (std::int64_t r = 0; r < job.repeats(); ++r) {
    const T *from = Lanes(job, r, buffer);
    if (fold == Fold::kSum) {
      const WidenedT<T> part = SumLanes(from, job.lanesOf(r), job.plan.lanes, job.maskOf(r));
      total.value = r == 0 ? part : Widened<T>::Load(Widened<T>::Store(total.value + part));
      total.index = 0;
      continue;
    }
    Found<T> part = Extreme(from, job.lanesOf(r), job.maskOf(r), fold == Fold::kMax);
    if (part.index < 0) continue;
    part.index += r * job.plan.lanes;
    if (total.index < 0 || Better<T>(part.value, total.value, fold == Fold::kMax)) total = part;
  }
  return total;
}

// As FoldJob, but the sums of the repeats are themselves added by a tree.
template <typename T>
Found<T> FoldTree(const Job &job) {
  alignas(64) T buffer[128];
  std::vector<WidenedT<T>> parts;
  for (std::int64_t r = 0; r < job.repeats(); ++r) {
    parts.push_back(SumLanes(Lanes(job, r, buffer), job.lanesOf(r), job.plan.lanes, job.maskOf(r)));
  }
  std::size_t width = 1;
  while (width < parts.size()) width *= 2;
  parts.resize(width, WidenedT<T>(0));
  return {Tree<T>(parts.data(), static_cast<std::int64_t>(width)), 0};
}

template <typename T>
void PutFound(Core &core, const Found<T> &found, T *to, bool index) {
  *to = Widened<T>::Store(found.value);
  std::memcpy(&core.foldSum, to, sizeof(T));
  if (!index) return;
  PutIndex(to + 1, found.index);
}

// doc: ReduceMax, ReduceMin: each round leaves a value and an index a repeat, padded to a block.
// Without an index later rounds take the place of the first; with one they lie behind each other,
// and there are as many as it takes to come down to one pair (the page writes out three).
std::int64_t ScratchBytes(Fold fold, std::int64_t repeats, int size, bool index) {
  if (fold == Fold::kSum) return RoundUp(repeats * size, kBlock);
  const std::int64_t perRepeat = kRepeat / size;
  std::int64_t pairs = repeats, bytes = RoundUp(2 * pairs * size, kBlock);
  for (bool more = index; more; more = pairs > 1) {
    pairs = (2 * pairs + perRepeat - 1) / perRepeat;
    bytes += RoundUp(2 * pairs * size, kBlock);
  }
  return bytes;
}

bool CheckFold(Core &core, const Call &call, Fold fold, const View &dst, const View &src,
               const View &scratch, const Job &job, bool index, std::uint8_t *&to) {
  const int size = SizeOf(job.src.type);
  const std::int64_t own = size * (index ? 2 : 1);
  to = Usable(core, call, {"dst", &dst, own, own});  // doc: aligned to itself, not to 32 B
  if (to == nullptr) return false;
  if (fold == Fold::kSum && job.plan.counted) return true;  // the count form leaves scratch alone
  const std::int64_t bytes = ScratchBytes(fold, job.repeats(), size, index);
  if (scratch.bytes < bytes) {
    Report(call, "scratch-size",
           Text("the scratch tensor of %s is too small", call.api),
           Text("%lld B for %lld repeats", Ll(scratch.bytes), Ll(job.repeats())),
           Text("at least %lld B", Ll(bytes)));
    return false;
  }
  const std::int64_t srcBytes = Footprint(job.plan, job.src.lane, size);
  // a repeat is read before its result is written in front of it: the values come out right
  Disjoint(call, "sharedTmpBuffer", scratch, bytes, "src", src, srcBytes);
  return Usable(core, call, {"sharedTmpBuffer", &scratch, bytes}) != nullptr;
}

}  // namespace

void FoldAll(const Call &call, Fold fold, DType type, const View &dst, const View &src,
             const View &scratch, std::int64_t count, bool index) {
  Core &core = Enter(call);
  Job job;
  std::uint8_t *to = nullptr;
  if (!MakeJob(core, call, type, {src}, Counted(count), job)) return;
  if (!CheckFold(core, call, fold, dst, src, scratch, job, index, to)) return;
  RecordFold(NameOf(kFoldAll, fold), job, dst, 0, Counted(count));
  if (Dry()) return;
  ShadowFold(core, call, job.plan, job.src, {dst.addr, SizeOf(type) * (index ? 2 : 1), 0, 0});
  ForElement(core, type, [&](auto kind) {
    using T = decltype(kind);
    PutFound(core, FoldJob<T>(job, fold), reinterpret_cast<T *>(to), index);
  });
}

void FoldRepeats(const Call &call, Fold fold, DType type, const View &dst, const View &src,
                 const View &scratch, const Walk &walk, std::int64_t repeatStride, bool index) {
  Core &core = Enter(call);
  Job job;
  std::uint8_t *to = nullptr;
  Walk once = walk;
  once.repeats = std::min<std::int64_t>(walk.repeats, 255);  // these take a 32-bit repeatTime
  if (!InRange(call, "repeatTime", walk.repeats, 0, 0x7FFFFFFF)) return;
  if (!MakePlan(core, call, once, kRepeat / SizeOf(type), job.plan)) return;
  if (!core.counter) job.plan.repeats = walk.repeats;
  job.src = {"src", {src, 1, repeatStride}, type};
  if (!CheckOperands(core, call, job.plan, &job.src, 1) || job.plan.empty()) return;
  if (!CheckFold(core, call, fold, dst, src, scratch, job, index, to)) return;
  RecordFold(NameOf(kFoldAll, fold), job, dst, 0, walk);
  if (Dry()) return;
  ShadowFold(core, call, job.plan, job.src, {dst.addr, SizeOf(type) * (index ? 2 : 1), 0, 0});
  const bool sum = fold == Fold::kSum;
  ForElement(core, type, [&](auto kind) {
    using T = decltype(kind);
    PutFound(core, sum ? FoldTree<T>(job) : FoldJob<T>(job, fold), reinterpret_cast<T *>(to),
             index);
  });
}

namespace {

// Bytes of one result of a repeat.
std::int64_t ResultBytes(Fold fold, ReduceOrder order, int size) {
  if (fold == Fold::kSum || order == ReduceOrder::ORDER_ONLY_VALUE) return size;
  return order == ReduceOrder::ORDER_ONLY_INDEX ? 4 : 2 * size;
}

template <typename T>
void PutOrdered(const Found<T> &found, ReduceOrder order, std::uint8_t *raw) {
  auto *to = reinterpret_cast<T *>(raw);
  switch (order) {
    case ReduceOrder::ORDER_VALUE_INDEX:
      to[0] = Widened<T>::Store(found.value);
      PutIndex(to + 1, found.index);
      break;
    case ReduceOrder::ORDER_INDEX_VALUE:
      PutIndex(to, found.index);
      to[1] = Widened<T>::Store(found.value);
      break;
    case ReduceOrder::ORDER_ONLY_VALUE: to[0] = Widened<T>::Store(found.value); break;
    case ReduceOrder::ORDER_ONLY_INDEX: {
      const auto index = static_cast<std::uint32_t>(found.index);
      std::memcpy(raw, &index, 4);
    }
  }
}

template <typename T>
void FoldRepeatAs(Core &core, const Job &job, Fold fold, std::uint8_t *to, std::int64_t pitch,
                  ReduceOrder order) {
  alignas(64) T buffer[128];
  Found<T> all{};
  all.index = -1;
  for (std::int64_t r = 0; r < job.repeats(); ++r) {
    const T *from = Lanes(job, r, buffer);
    if (fold == Fold::kSum) {
      const T sum =
          Widened<T>::Store(SumLanes(from, job.lanesOf(r), job.plan.lanes, job.maskOf(r)));
      std::memcpy(to + r * pitch, &sum, sizeof sum);
      std::memcpy(&core.foldSum, &sum, sizeof sum);
      continue;
    }
    const Found<T> best = Extreme(from, job.lanesOf(r), job.maskOf(r), fold == Fold::kMax);
    if (best.index < 0) continue;
    PutOrdered(best, order, to + r * pitch);
    const bool better = fold == Fold::kMax ? best.value > all.value : best.value < all.value;
    if (all.index < 0 || better) all = {best.value, r * job.plan.lanes + best.index};
  }
  if (fold == Fold::kSum || all.index < 0) return;
  // doc: GetReduceMaxMinCount gives what ReduceMax would, over all repeats of the instruction
  const T value = Widened<T>::Store(all.value);
  core.foldValue = core.foldIndex = 0;
  std::memcpy(&core.foldValue, &value, sizeof value);
  core.foldIndex = static_cast<std::uint64_t>(all.index);
}

}  // namespace

void FoldRepeat(const Call &call, Fold fold, DType type, const View &dst, const View &src,
                const Walk &walk, const FoldStrides &strides, ReduceOrder order) {
  Core &core = Enter(call);
  Job job;
  if (!MakeJob(core, call, type, {src, strides.block, strides.repeat}, walk, job)) return;
  const std::int64_t unit = ResultBytes(fold, order, SizeOf(type));
  const std::int64_t pitch = strides.dst * unit;
  std::uint8_t *to =
      Usable(core, call, {"dst", &dst, (job.repeats() - 1) * pitch + unit, unit});
  if (to == nullptr) return;
  RecordFold(NameOf(kFoldRepeat, fold), job, dst, pitch, walk);
  if (Dry()) return;
  ShadowFold(core, call, job.plan, job.src, {dst.addr, unit, pitch, job.plan.lanes});
  ForElement(core, type, [&](auto kind) {
    FoldRepeatAs<decltype(kind)>(core, job, fold, to, pitch, order);
  });
}

namespace {

template <typename T>
void FoldBlockAs(const Job &job, Fold fold, T *to, std::int64_t pitch) {
  constexpr std::int64_t kPerBlock = kBlock / static_cast<std::int64_t>(sizeof(T));
  alignas(64) T buffer[128];
  for (std::int64_t r = 0; r < job.repeats(); ++r) {
    const T *from = Lanes(job, r, buffer);
    const std::int64_t lanes = job.lanesOf(r);
    for (std::int64_t b = 0; b * kPerBlock < lanes; ++b) {
      const std::int64_t n = std::min(kPerBlock, lanes - b * kPerBlock);
      std::uint64_t bits = ~0ull;  // active lanes of this block
      if (const std::uint64_t *mask = job.maskOf(r)) {
        bits = mask[b * kPerBlock / 64] >> (b * kPerBlock % 64);
      }
      bits &= (1ull << n) - 1;
      if (bits == 0) continue;  // a block without active lanes leaves the old value
      const std::uint64_t own[2] = {bits, 0};
      T &target = to[r * pitch + b];
      const T *block = from + b * kPerBlock;
      target = Widened<T>::Store(fold == Fold::kSum
                                  ? SumLanes(block, n, kPerBlock, own)
                                  : Extreme(block, n, own, fold == Fold::kMax).value);
    }
  }
}

}  // namespace

void FoldBlock(const Call &call, Fold fold, DType type, const View &dst, const View &src,
               const Walk &walk, const FoldStrides &strides) {
  Core &core = Enter(call);
  Job job;
  if (!MakeJob(core, call, type, {src, strides.block, strides.repeat}, walk, job)) return;
  const std::int64_t size = SizeOf(type), unit = 8 * size;  // eight results a repeat
  const std::int64_t blocks = (job.lanesOf(job.repeats() - 1) * size + kBlock - 1) / kBlock;
  const std::int64_t bytes = (job.repeats() - 1) * strides.dst * unit + blocks * size;
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes, unit});
  if (to == nullptr) return;
  RecordFold(NameOf(kFoldBlock, fold), job, dst, strides.dst * unit, walk);
  if (Dry()) return;
  ShadowFold(core, call, job.plan, job.src,
             {dst.addr, size, strides.dst * unit, kBlock / size});
  ForElement(core, type, [&](auto kind) {
    FoldBlockAs(job, fold, reinterpret_cast<decltype(kind) *>(to), strides.dst * 8);
  });
}

namespace {

template <typename T>
void FoldPairAs(const Job &job, T *to, std::int64_t pitch) {
  alignas(64) T buffer[128];
  for (std::int64_t r = 0; r < job.repeats(); ++r) {
    const T *from = Lanes(job, r, buffer);
    const std::uint64_t *mask = job.maskOf(r);
    const auto load = [&](std::int64_t i) {
      const bool on = i < job.lanesOf(r) && (mask == nullptr || Active(mask, i));
      return on ? Widened<T>::Load(from[i]) : WidenedT<T>(0);
    };
    for (std::int64_t i = 0; 2 * i < job.lanesOf(r); ++i) {
      to[r * pitch + i] = Widened<T>::Store(load(2 * i) + load(2 * i + 1));
    }
  }
}

}  // namespace

void FoldPair(const Call &call, DType type, const View &dst, const View &src, const Walk &walk,
              const FoldStrides &strides) {
  Core &core = Enter(call);
  Job job;
  if (!MakeJob(core, call, type, {src, strides.block, strides.repeat}, walk, job)) return;
  const std::int64_t size = SizeOf(type), unit = kRepeat / 2;
  const std::int64_t last = (job.lanesOf(job.repeats() - 1) + 1) / 2 * size;
  std::uint8_t *to =
      Usable(core, call, {"dst", &dst, (job.repeats() - 1) * strides.dst * unit + last});
  if (to == nullptr) return;
  RecordFold("pair_reduce_sum", job, dst, strides.dst * unit, walk);
  if (Dry()) return;
  ShadowFold(core, call, job.plan, job.src, {dst.addr, size, strides.dst * unit, 2});
  const std::int64_t pitch = strides.dst * unit / size;
  ForElement(core, type, [&](auto kind) {
    FoldPairAs(job, reinterpret_cast<decltype(kind) *>(to), pitch);
  });
}

void FoldToRegister(const Call &call, DType type, const View &src, const Walk &walk,
                    const FoldStrides &strides) {
  Core &core = Enter(call);
  Job job;
  if (!MakeJob(core, call, type, {src, strides.block, strides.repeat}, walk, job)) return;
  RecordVector("repeat_reduce_sum", job.plan, &job.src, 1, SetsMask(walk));
  if (Dry()) return;
  core.foldSum = 0;
  ForElement(core, type, [&](auto kind) {
    using T = decltype(kind);
    const T sum = Widened<T>::Store(FoldJob<T>(job, Fold::kSum).value);
    std::memcpy(&core.foldSum, &sum, sizeof sum);
  });
}

void ReadFold(const Call &call, bool sum, int size, void *value, void *index) {
  const Core &core = Enter(call);
  std::memcpy(value, sum ? &core.foldSum : &core.foldValue, static_cast<std::size_t>(size));
  if (index != nullptr) std::memcpy(index, &core.foldIndex, static_cast<std::size_t>(size));
}

namespace {

template <typename T>
WidenedT<T> SumRow(const T *from, std::int64_t n) {
  constexpr std::int64_t kLanes = kRepeat / static_cast<std::int64_t>(sizeof(T));
  WidenedT<T> total(0);
  for (std::int64_t at = 0; at < n; at += kLanes) {
    const WidenedT<T> part = SumLanes(from + at, std::min(kLanes, n - at), kLanes, nullptr);
    total = at == 0 ? part : Widened<T>::Load(Widened<T>::Store(total + part));
  }
  return total;
}

template <typename T>
void SumRowsAs(T *to, const T *from, std::int64_t rows, std::int64_t inner, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    to[row] = Widened<T>::Store(SumRow(from + row * inner, n));
  }
}

// The sum times 1 / n, both in Acc. guess: the page says "divides"
template <typename T, typename Acc>
void MeanRowsAs(T *to, const T *from, std::int64_t rows, std::int64_t inner, std::int64_t n) {
  const WidenedT<Acc> scale =
      Widened<Acc>::Load(Widened<Acc>::Store(WidenedT<Acc>(1) / static_cast<WidenedT<Acc>>(n)));
  std::vector<Acc> row(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      row[static_cast<std::size_t>(j)] = Widened<Acc>::Store(Widened<T>::Load(from[i * inner + j]));
    }
    const Acc mean = Widened<Acc>::Store(SumRow(row.data(), n) * scale);
    to[i] = Widened<T>::Store(Widened<Acc>::Load(mean));
  }
}

// Where the rows lie, after all checks; null after reporting.
struct RowSums {
  std::uint8_t *to = nullptr;
  const std::uint8_t *from = nullptr;
};

RowSums FindRows(Core &core, const Call &call, std::int64_t size, std::int64_t accSize,
                 const View &dst, const View &src, const View *scratch, std::int64_t rows,
                 std::int64_t inner, std::int64_t n) {
  const bool good = InRange(call, "outter", rows, 1, 0xFFFFFFFFll) &&
                    InRange(call, "n", n, 1, inner) &&
                    HasScratch(core, call, scratch, SumScratch(n, accSize));
  if (!good) return {};
  if (inner * size % kBlock != 0) {
    Report(call, "param-range", Text("rows of %s have %lld B", call.api, Ll(inner * size)),
           Text("inner = %lld", Ll(inner)), "inner a multiple of 32 B");
    return {};
  }
  const std::int64_t bytes = ((rows - 1) * inner + n) * size;  // what pads a row is not read
  std::uint8_t *to = Usable(core, call, {"dst", &dst, rows * size});
  const std::uint8_t *from = Usable(core, call, {"src", &src, bytes, kBlock, Use::kRead,
                                                 {n * size, inner * size}});
  if (to == nullptr || from == nullptr) return {};
  return {to, from};
}

}  // namespace

void SumRows(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             std::int64_t rows, std::int64_t inner, std::int64_t n) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  const RowSums at = FindRows(core, call, size, size, dst, src, scratch, rows, inner, n);
  if (at.to == nullptr) return;
  RecordLibrary(call.api, type, rows * n);
  if (Dry()) return;
  ForElement(core, type, [&](auto kind) {
    using T = decltype(kind);
    SumRowsAs(reinterpret_cast<T *>(at.to), reinterpret_cast<const T *>(at.from), rows, inner, n);
  });
}

void MeanRows(const Call &call, DType type, bool wide, const View &dst, const View &src,
              const View *scratch, std::int64_t rows, std::int64_t inner, std::int64_t n) {
  Core &core = Enter(call);
  const std::int64_t size = SizeOf(type);
  const RowSums at =
      FindRows(core, call, size, wide ? 4 : size, dst, src, scratch, rows, inner, n);
  if (at.to == nullptr) return;
  RecordLibrary(call.api, type, rows * n);
  if (Dry()) return;
  ForElement(core, type, [&](auto kind) {
    using T = decltype(kind);
    auto *to = reinterpret_cast<T *>(at.to);
    const auto *from = reinterpret_cast<const T *>(at.from);
    if (wide) MeanRowsAs<T, float>(to, from, rows, inner, n);
    else MeanRowsAs<T, T>(to, from, rows, inner, n);
  });
}

}  // namespace twin
