// Sorting: merges of sorted lists, and what the library builds on them.
#include "twin/sort.h"

#include <algorithm>
#include <numeric>

#include "check.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

constexpr std::int64_t kRun = 32;  // items that one repeat of Sort32 puts in order
constexpr std::int64_t kMostCount = 4095;
constexpr int kLists = 4;

float ScoreAt(const std::uint8_t *from, DType type) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return HalfToFloat(bits);
}

// NaN stands before everything (doc: TopK), and a tie keeps its order.
bool Before(float a, float b) {
  if (b != b) return false;
  return a != a || a > b;
}

// How an item of a list lies in memory: (score, index) or a region proposal.
struct Format {
  DType type;
  std::int64_t bytes;  // of an item
  std::int64_t score;  // byte of the score in it
  std::int64_t align;  // of a list's start
  std::int64_t least;  // smallest validBit
  const char *what;

  float Score(const std::uint8_t *items, std::int64_t i) const {
    return ScoreAt(items + i * bytes + score, type);
  }
};

Format PairFormat(DType type) { return {type, kSortItem, 0, kSortItem, 3, "(score, index)"}; }

// One list on its way through a merge.
struct Feed {
  const std::uint8_t *items = nullptr;
  std::int64_t count = 0, taken = 0;
};

int CountLists(const Call &call, std::int64_t validBit, std::int64_t least) {
  for (int lists = 1; lists <= kLists; ++lists) {
    if (validBit == (1 << lists) - 1 && validBit >= least) return lists;
  }
  Report(call, "param-range", Text("validBit of %s is %lld", call.api, Ll(validBit)),
         Text("%lld", Ll(validBit)), "3, 7 or 15: the first two, three or four lists");
  return 0;
}

// doc: more than one repeat needs four lists of one length that lie one behind the other.
std::int64_t RepeatsOf(const Call &call, const MergeJob &job, int lists, std::int64_t itemBytes) {
  if (job.repeats == 1) return 1;
  bool together = lists == kLists && !job.suspend;
  for (int i = 1; i < lists; ++i) {
    together = together && job.counts[i] == job.counts[0] &&
               job.lists[i].addr == job.lists[0].addr + i * job.counts[0] * itemBytes;
  }
  if (together) return job.repeats;
  Report(call, "param-range",
         Text("repeatTimes of %s is %lld, which this call cannot have", call.api, Ll(job.repeats)),
         Text("%lld", Ll(job.repeats)),
         "1, or four lists of equal length that lie one behind the other, without "
         "ifExhaustedSuspension");
  return 1;
}

void CheckOrder(const Call &call, const Format &format, const Feed &queue, int list) {
  for (std::int64_t i = 1; i < queue.count; ++i) {
    const float earlier = format.Score(queue.items, i - 1), later = format.Score(queue.items, i);
    if (!Before(later, earlier)) continue;
    Report(call, "sort-unsorted",
           Text("list %d of %s is not in descending order", list + 1, call.api),
           Text("score %g at item %lld stands before %g", static_cast<double>(earlier), Ll(i - 1),
                static_cast<double>(later)),
           "lists that Sort32, Sort or a merge has put in order");
    return;
  }
}

// Takes the best head until the lists are used up; of equal heads that of the first list.
void MergeQueues(const Format &format, Feed *queues, int lists, bool suspend,
                 std::vector<std::uint8_t> &out) {
  const auto used = [](const Feed &queue) { return queue.taken == queue.count; };
  while (true) {
    int best = -1;
    for (int i = 0; i < lists; ++i) {
      if (used(queues[i])) {
        if (suspend) return;
        continue;
      }
      const auto head = [&](int list) {
        return format.Score(queues[list].items, queues[list].taken);
      };
      if (best < 0 || Before(head(i), head(best))) best = i;
    }
    if (best < 0) return;
    const std::uint8_t *item = queues[best].items + queues[best].taken++ * format.bytes;
    out.insert(out.end(), item, item + format.bytes);
  }
}

void Merge(Core &core, const Call &call, const Format &format, const View &dst,
           const MergeJob &job) {
  const int lists = CountLists(call, job.validBit, format.least);
  if (lists == 0 || !InRange(call, "repeatTimes", job.repeats, 1, 255)) return;
  const std::int64_t repeats = RepeatsOf(call, job, lists, format.bytes);
  const std::uint8_t *starts[kLists] = {};
  std::int64_t pitch = 0;
  for (int i = 0; i < lists; ++i) {
    if (!InRange(call, "elementLengths", job.counts[i], 0, kMostCount)) return;
    pitch += job.counts[i] * format.bytes;
  }
  for (int i = 0; i < lists; ++i) {
    const std::int64_t own = job.counts[i] * format.bytes;
    const std::int64_t bytes = (repeats - 1) * pitch + own;
    static constexpr const char *kRoles[kLists] = {"src1", "src2", "src3", "src4"};
    Need need{kRoles[i], &job.lists[i], bytes, format.align};
    if (repeats > 1) need.rows = {own, pitch};
    starts[i] = Usable(core, call, need);
    if (starts[i] == nullptr) return;
  }
  RecordVectorRaw("mrg_sort", format.type, (repeats * pitch + kRepeat - 1) / kRepeat,
                  repeats * pitch / format.bytes, dst.addr, job.lists[0].addr, job.lists[1].addr,
                  false);
  std::vector<std::uint8_t> out;
  Feed queues[kLists];
  if (Dry()) {  // as if all were taken
    for (int i = 0; i < lists; ++i) queues[i].taken = job.counts[i];
    out.resize(static_cast<std::size_t>(repeats * pitch));
  }
  for (std::int64_t r = 0; !Dry() && r < repeats; ++r) {
    for (int i = 0; i < lists; ++i) {
      queues[i] = {starts[i] + r * pitch, job.counts[i], 0};
      CheckOrder(call, format, queues[i], i);
    }
    MergeQueues(format, queues, lists, job.suspend, out);
  }
  for (int i = 0; i < kLists; ++i) {
    core.merged[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(queues[i].taken);
  }
  auto bytes = static_cast<std::int64_t>(out.size());
  const std::int64_t align = std::max(format.align, format.bytes == kSortItem ? kBlock : 0);
  if (bytes > dst.bytes) {  // said here; what fits is written, as the hardware writes it
    Usable(core, call, {"dst", &dst, bytes, align, Use::kLook});
    bytes = std::max<std::int64_t>(dst.bytes / format.bytes * format.bytes, 0);
  }
  std::uint8_t *to = bytes == 0 ? nullptr : Usable(core, call, {"dst", &dst, bytes, align});
  if (to == nullptr) return;
  for (int i = 0; i < lists; ++i) {
    const std::int64_t own = (repeats - 1) * pitch + job.counts[i] * format.bytes;
    if (!Disjoint(call, "dst", dst, bytes, "src", job.lists[i], own)) return;
  }
  std::copy_n(out.begin(), bytes, to);
}

}  // namespace

void MergeSorted(const Call &call, DType type, const View &dst, const MergeJob &job) {
  Core &core = Enter(call);
  Merge(core, call, PairFormat(type), dst, job);
}

void ReadMerged(const Call &call, std::uint16_t *counts) {
  const Core &core = Enter(call, PIPE_S);
  std::copy(core.merged.begin(), core.merged.end(), counts);
}

namespace {

// The order in which n scores would be sorted.
std::vector<std::int32_t> OrderOf(const std::uint8_t *scores, DType type, std::int64_t n,
                                  float sign) {
  std::vector<float> keys(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    keys[static_cast<std::size_t>(i)] = sign * ScoreAt(scores + i * SizeOf(type), type);
  }
  std::vector<std::int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return Before(keys[static_cast<std::size_t>(a)], keys[static_cast<std::size_t>(b)]);
  });
  return order;
}

void PutItem(std::uint8_t *item, const std::uint8_t *score, int size, const std::uint8_t *index) {
  std::fill(item, item + kSortItem, std::uint8_t{0});
  std::copy_n(score, size, item);
  std::copy_n(index, 4, item + 4);
}

}  // namespace

void SortAll(const Call &call, DType type, const View &dst, const View &src, const View &index,
             const View &scratch, std::int64_t repeats, bool full) {
  Core &core = Enter(call);
  const int size = SizeOf(type);
  if (!InRange(call, "repeatTime", repeats, 0, 255) || repeats == 0) return;
  const std::int64_t n = repeats * kRun, bytes = n * kSortItem;
  if (full && repeats > 1) {
    if (scratch.bytes < SortScratch(n)) {
      Report(call, "scratch-size", Text("the scratch tensor of %s is too small", call.api),
             Text("%lld B for %lld items", Ll(scratch.bytes), Ll(n)),
             Text("at least %lld B", Ll(SortScratch(n))));
      return;
    }
    const Need tmp{"tmp", &scratch, SortScratch(n), kBlock, Use::kWrite};
    if (Usable(core, call, tmp) == nullptr) return;
    if (!Disjoint(call, "tmp", scratch, SortScratch(n), "dst", dst, bytes)) return;
    if (!Disjoint(call, "tmp", scratch, SortScratch(n), "concat", src, n * size)) return;
  }
  const std::uint8_t *scores = Usable(core, call, {"concat", &src, n * size});
  const std::uint8_t *names = Usable(core, call, {"index", &index, n * 4});
  std::uint8_t *to = Usable(core, call, {"dst", &dst, bytes});
  if (to == nullptr || scores == nullptr || names == nullptr) return;
  if (!Disjoint(call, "dst", dst, bytes, "concat", src, n * size)) return;
  if (!Disjoint(call, "dst", dst, bytes, "index", index, n * 4)) return;
  RecordLibrary(call.api, type, n);
  if (Dry()) return;
  const std::int64_t group = full ? n : kRun;
  for (std::int64_t start = 0; start < n; start += group) {
    const auto order = OrderOf(scores + start * size, type, group, 1.0f);
    for (std::int64_t i = 0; i < group; ++i) {
      const std::int64_t from = start + order[static_cast<std::size_t>(i)];
      PutItem(to + (start + i) * kSortItem, scores + from * size, size, names + from * 4);
    }
  }
}

void SplitSorted(const Call &call, DType type, const View &values, const View &indices,
                 const View &sorted, std::int64_t repeats) {
  Core &core = Enter(call);
  const int size = SizeOf(type);
  if (!InRange(call, "repeatTime", repeats, 0, 255) || repeats == 0) return;
  const std::int64_t n = repeats * kRun;  // a repeat takes 256 B of sorted items
  const std::uint8_t *items = Usable(core, call, {"sorted", &sorted, n * kSortItem});
  std::uint8_t *value = Usable(core, call, {"dstValue", &values, n * size});
  std::uint8_t *name = Usable(core, call, {"dstIndex", &indices, n * 4});
  if (items == nullptr || value == nullptr || name == nullptr) return;
  if (!Disjoint(call, "dstValue", values, n * size, "sorted", sorted, n * kSortItem)) return;
  if (!Disjoint(call, "dstIndex", indices, n * 4, "sorted", sorted, n * kSortItem)) return;
  RecordLibrary(call.api, type, n);
  if (Dry()) return;
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(items + i * kSortItem, size, value + i * size);
    std::copy_n(items + i * kSortItem + 4, 4, name + i * 4);
  }
}

namespace {

bool CheckTopK(const Call &call, const TopKJob &job) {
  constexpr std::int64_t kMostInner = 4096;  // doc: normal mode
  const bool shape = InRange(call, "topKInfo.outter", job.outter, 1, 0x7FFFFFFF) &&
                     InRange(call, "topKInfo.inner", job.inner, kRun,
                             job.small ? kRun : kMostInner) &&
                     InRange(call, "topKInfo.n", job.n, 1, job.inner) &&
                     InRange(call, "k", job.k, 1, job.n);
  if (!shape) return false;
  if (job.small && job.hasFinish) {
    Report(call, "param-range", Text("isHasfinish of %s in small mode", call.api), "true", "false");
    return false;
  }
  if (job.inner % kRun != 0) {
    Report(call, "param-range", Text("rows of %s have %lld elements", call.api, Ll(job.inner)),
           Text("topKInfo.inner = %lld", Ll(job.inner)), "a multiple of 32");
    return false;
  }
  if (job.tiled == job.outter * job.inner && job.tiledInner == job.inner) return true;
  Report(call, "tiling-shape",
         Text("%s got tiling that was not computed for its shape", call.api),
         Text("tiling for %lld elements in rows of %lld, topKInfo says %lld in rows of %lld",
              Ll(job.tiled), Ll(job.tiledInner), Ll(job.outter * job.inner), Ll(job.inner)),
         "tiling from TopKTilingFunc with the same inner and outter");
  return false;
}

// Where TopK finds and puts a row.
struct TopKRows {
  const std::uint8_t *src, *index, *finish;
  std::uint8_t *values, *indices;
  std::int64_t valuePitch, indexPitch;  // bytes
};

bool FindTopK(Core &core, const Call &call, DType type, const View &values, const View &indices,
              const View &src, const View &srcIndex, const View &finish, const TopKJob &job,
              TopKRows &rows) {
  const std::int64_t size = SizeOf(type), valueRun = job.k * size, indexRun = job.k * 4;
  // doc: rows of the result begin at blocks in normal mode, and follow each other in small mode
  rows.valuePitch = job.small ? valueRun : RoundUp(valueRun, kBlock);
  rows.indexPitch = job.small ? indexRun : RoundUp(indexRun, kBlock);
  const std::int64_t srcBytes = job.outter * job.inner * size;
  const std::int64_t valueBytes = (job.outter - 1) * rows.valuePitch + valueRun;
  const std::int64_t indexBytes = (job.outter - 1) * rows.indexPitch + indexRun;
  rows.src = Usable(core, call, {"src", &src, srcBytes});
  if (rows.src == nullptr) return false;
  rows.index = rows.finish = nullptr;
  if (job.ownIndex) {
    const std::int64_t bytes = (job.small ? job.outter : 1) * job.inner * 4;
    rows.index = Usable(core, call, {"srcIndex", &srcIndex, bytes});
    if (rows.index == nullptr) return false;
  }
  if (job.hasFinish) {
    rows.finish = Usable(core, call, {"finish", &finish, job.outter});
    if (rows.finish == nullptr) return false;
  }
  rows.values = Usable(core, call, {"dstValue", &values, valueBytes, kBlock, Use::kByRole,
                                    {valueRun, rows.valuePitch}});
  rows.indices = Usable(core, call, {"dstIndex", &indices, indexBytes, kBlock, Use::kByRole,
                                     {indexRun, rows.indexPitch}});
  return rows.values != nullptr && rows.indices != nullptr &&
         Disjoint(call, "dstValue", values, valueBytes, "src", src, srcBytes) &&
         Disjoint(call, "dstIndex", indices, indexBytes, "src", src, srcBytes);
}

void PutTopK(DType type, const TopKJob &job, const TopKRows &rows, std::int64_t row) {
  const int size = SizeOf(type);
  const std::uint8_t *from = rows.src + row * job.inner * size;
  const std::uint8_t *names =
      rows.index == nullptr ? nullptr : rows.index + (job.small ? row * job.inner * 4 : 0);
  const auto order = OrderOf(from, type, job.inner, job.largest ? 1.0f : -1.0f);
  const bool finished = rows.finish != nullptr && rows.finish[row] != 0;
  for (std::int64_t i = 0; i < job.k; ++i) {
    const std::int32_t at = order[static_cast<std::size_t>(i)];
    std::copy_n(from + at * size, size, rows.values + row * rows.valuePitch + i * size);
    std::int32_t name = at;
    if (names != nullptr) std::memcpy(&name, names + at * 4, 4);
    if (finished) name = static_cast<std::int32_t>(job.n);
    std::memcpy(rows.indices + row * rows.indexPitch + i * 4, &name, 4);
  }
}

}  // namespace

void TopKOp(const Call &call, DType type, const View &values, const View &indices, const View &src,
            const View &srcIndex, const View &finish, const View *scratch, const TopKJob &job) {
  Core &core = Enter(call);
  TopKRows rows{};
  if (!CheckTopK(call, job)) return;
  if (!HasScratch(core, call, scratch, TopKScratch(job.inner))) return;
  if (!FindTopK(core, call, type, values, indices, src, srcIndex, finish, job, rows)) return;
  RecordLibrary(call.api, type, job.outter * job.inner);
  if (Dry()) return;
  for (std::int64_t row = 0; row < job.outter; ++row) PutTopK(type, job, rows, row);
}

// ---- region proposals

namespace {

constexpr std::int64_t kFields = 8, kScore = 4, kProposals = 16;

Format ProposalFormat(DType type) {
  const std::int64_t size = SizeOf(type), bytes = kFields * size;
  // the documents name 3, 7 and 15; published kernels also pass 1, which copies the first list
  return {type, bytes, kScore * size, bytes, 1, "region proposal"};
}

void SayMissing(const Call &call) {
  Report(call, "chip-lacks",
         Text("%s is not on this chip: Atlas 310P has it", call.api), "dav-2201",
         "Sort32, MrgSort, or the library's Concat, Sort and Extract");
}

void MoveField(std::uint8_t *items, std::uint8_t *flat, std::int64_t n, std::int64_t size,
               std::int64_t field, bool extract) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t *inside = items + (i * kFields + field) * size;
    if (extract) std::copy_n(inside, size, flat + i * size);
    else std::copy_n(flat + i * size, size, inside);
  }
}

void SortProposals(const Format &format, std::uint8_t *to, const std::uint8_t *from,
                   std::int64_t repeats) {
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::uint8_t *group = from + r * kProposals * format.bytes;
    std::vector<std::uint8_t> items(group, group + kProposals * format.bytes);
    std::array<std::int64_t, kProposals> order;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return Before(format.Score(items.data(), a), format.Score(items.data(), b));
    });
    for (std::int64_t i = 0; i < kProposals; ++i) {
      const std::uint8_t *item = items.data() + order[static_cast<std::size_t>(i)] * format.bytes;
      std::copy_n(item, format.bytes, to + (r * kProposals + i) * format.bytes);
    }
  }
}

}  // namespace

void ProposalOp(const Call &call, Proposal what, DType type, const View &dst, const View &src,
                std::int64_t repeats, std::int64_t mode) {
  Core &core = Enter(call);
  SayMissing(call);
  if (!InRange(call, "repeatTime", repeats, 0, 255) || !InRange(call, "modeNumber", mode, 0, 5)) {
    return;
  }
  if (repeats == 0) return;
  const Format format = ProposalFormat(type);
  const std::int64_t size = SizeOf(type), n = repeats * kProposals;
  const std::int64_t flat = n * size, items = n * format.bytes;
  const bool concat = what == Proposal::kConcat, extract = what == Proposal::kExtract;
  const Spread rows = concat ? Spread{size, format.bytes} : Spread{};
  Need target{"dst", &dst, extract ? flat : items};
  if (concat) {  // the other fields of the items stay as they are
    const View field{dst.addr + mode * size, dst.bytes - mode * size, dst.buffer, dst.generation,
                     dst.position};
    Need part{"dst", &field, items - format.bytes + size, 1, Use::kByRole, rows};
    target.use = Use::kLook;
    if (Usable(core, call, target) == nullptr || Usable(core, call, part) == nullptr) return;
  }
  std::uint8_t *to = Usable(core, call, target);
  std::uint8_t *from = Usable(core, call, {"src", &src, concat ? flat : items});
  if (to == nullptr || from == nullptr) return;
  RecordLibrary(call.api, type, n);
  if (Dry()) return;
  if (concat) MoveField(to, from, n, size, mode, false);
  else if (extract) MoveField(from, to, n, size, mode, true);
  else SortProposals(format, to, from, repeats);
}

void MergeProposals(const Call &call, DType type, const View &dst, const MergeJob &job) {
  Core &core = Enter(call);
  SayMissing(call);
  Merge(core, call, ProposalFormat(type), dst, job);
}

}  // namespace twin
