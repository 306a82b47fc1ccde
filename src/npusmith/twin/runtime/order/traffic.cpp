// Global memory: races between cores, order between a core's pipes, the data cache.
#include <cstring>
#include <deque>

#include "order/marks.h"
#include "text.h"
#include "log/inefficiency.h"
#include "order/traffic.h"

namespace twin {

namespace {

constexpr std::int64_t kLine = 64;  // of the data cache
constexpr std::size_t kS = 0;

struct Access {
  std::uint32_t time = 0;  // 0: none
  std::uint32_t place = 0;
  std::uint64_t count = 0;  // of accesses of the launch
  int core = -1;
  std::uint8_t unit = 0;
  bool scalar = false, cached = false, atomic = false;  // cached: through the scalar unit's cache
  bool operator==(const Access &o) const {
    return time == o.time && place == o.place && count == o.count && core == o.core &&
           unit == o.unit && scalar == o.scalar && cached == o.cached && atomic == o.atomic;
  }
};

struct GmCell {
  Access write;
  Access plain;     // the last write that was not atomic, where atomic ones came after it
  Access reads[2];  // the last two cores, or pipes, that read
  Known known = Known::kData;
  bool operator==(const GmCell &o) const {
    return write == o.write && plain == o.plain && reads[0] == o.reads[0] && reads[1] == o.reads[1] &&
           known == o.known;
  }
};

// What is remembered of one region; given up when it would take more than half the region.
struct Tracked {
  const Region *region = nullptr;
  Ranges<GmCell> cells;
  bool lost = false;

  bool Full() {
    lost = lost || cells.pieces() * sizeof(GmCell) > region->bytes / 2 + (1u << 20);
    return lost;
  }
};

// A core wrote what another one wrote or read: whether that matters is known when its write is done.
struct Pending {
  Call call;
  bool again;  // the other one wrote, too
  std::string message, seen;
  const std::uint8_t *at;
  std::vector<std::uint8_t> old;
};

struct Traffic {
  std::deque<Tracked> regions;
  std::vector<Pending> pending;
  std::uint64_t count = 0;
};

Traffic &All() {
  static thread_local Traffic traffic;
  return traffic;
}

Tracked *TrackedOf(const Region &region) {
  if (!region.writable) return nullptr;
  for (Tracked &tracked : All().regions) {
    if (tracked.region == &region) return tracked.Full() ? nullptr : &tracked;
  }
  GmCell blank;
  if (region.blank) blank.known = Known::kNever;
  All().regions.push_back(
      {&region, Ranges<GmCell>(static_cast<std::int64_t>(region.bytes), blank), false});
  return &All().regions.back();
}

struct Visitor {
  Core &core;
  const Call &call;
  const Region &region;
  Access access;

  std::string Where(std::int64_t low, std::int64_t high) const {
    return Text("bytes %lld..%lld of %s", Ll(low), Ll(high - 1), region.name.c_str());
  }

  bool Knows(const Access &other) const {
    return other.time == 0 ||
           OrderKnows(core, access.unit, other.core, other.unit, other.time);
  }

  void Race(const Access &other, Clash clash, std::int64_t low, std::int64_t high) const {
    if (access.scalar && other.scalar && clash != Clash::kWriteAfterWrite) return;  // gm-cache
    const Call &first = PlaceAt(other.place);
    const bool write = clash != Clash::kReadAfterWrite;
    const std::string message =
        Text("%s on %s %s %s, which %s %s", call.api, OrderName(access.core).c_str(),
             write ? "writes" : "reads", Where(low, high).c_str(), OrderName(other.core).c_str(),
             clash == Clash::kWriteAfterRead ? "reads" : "writes");
    const std::string seen = Text("%s at %s; no SyncAll or flag between the two", first.api,
                                  PlaceOf(first.site).c_str());
    if (clash == Clash::kReadAfterWrite) {
      if (!Again(call, "gm-race")) Report(call, "gm-race", message, seen);
      return;
    }
    const std::uint8_t *at = region.base + low;
    const bool again = clash == Clash::kWriteAfterWrite;
    All().pending.push_back({call, again, message, seen, at, {at, at + (high - low)}});
  }

  void Check(const Access &other, Clash clash, std::int64_t low, std::int64_t high) const {
    if (other.time == 0 || Knows(other) || (access.atomic && other.atomic)) return;
    if (other.core != OrderNumber(core)) return Race(other, clash, low, high);
    const bool same = other.unit == access.unit;
    if (same && (clash != Clash::kWriteAfterWrite || access.unit == kS)) return;
    if (same && other.time == access.time) return;
    if (other.scalar && clash == Clash::kWriteAfterRead) return;
    if (other.scalar || access.scalar) return;  // the cache matters more: see CheckCache
    ReportHazard(core, call, Where(low, high), clash, other.unit,
                 {other.time, other.place});
  }
};

// ---- the data cache

void WarnCache(const Visitor &by, std::int64_t low, std::int64_t high, const Access &other,
               const char *what) {
  if (Again(by.call, "gm-cache")) return;
  const Call &first = PlaceAt(other.place);
  Report(
      by.call, "gm-cache", Text("%s reads %s, %s", by.call.api, by.Where(low, high).c_str(), what),
      Text("%s at %s, %s", first.api, PlaceOf(first.site).c_str(), OrderName(other.core).c_str()),
      "",
      "DataCacheCleanAndInvalid after scalar writes and before scalar reads of what others wrote",
      Level::kWarning);
}

// A scalar write stays in its core's cache until it is cleaned.
bool InCache(const Visitor &by, const Access &write) {
  if (!write.cached || write.time == 0) return false;
  if (write.core != OrderNumber(by.core)) return true;  // cleaning drops `cached`
  return !by.access.cached && write.time > by.core.clocks.marks->cleaned;
}

const std::uint8_t *LineOf(const std::uint8_t *at) {
  return reinterpret_cast<const std::uint8_t *>(reinterpret_cast<std::uintptr_t>(at) /
                                                static_cast<std::uintptr_t>(kLine) *
                                                static_cast<std::uintptr_t>(kLine));
}

void CheckCache(const Visitor &by, const GmCell &cell, std::int64_t low, std::int64_t high) {
  const Access &write = cell.write;
  if (InCache(by, write)) {
    return WarnCache(by, low, high, write, "which a scalar write left in the data cache");
  }
  if (!by.access.cached || write.time == 0) return;
  const auto &lines = by.core.clocks.marks->lines;
  const auto line = lines.find(LineOf(by.region.base + low));
  const bool foreign = !write.cached || write.core != OrderNumber(by.core);
  if (line == lines.end() || !foreign || write.count <= line->second) return;
  WarnCache(by, low, high, write, "whose line is in the data cache since before it was written");
}

// Two cores that write scalars into one line overwrite each other.
void CheckSharing(const Tracked &tracked, const Visitor &by, std::int64_t low, std::int64_t high) {
  const auto base = reinterpret_cast<std::uintptr_t>(by.region.base) % kLine;
  const std::int64_t shift = static_cast<std::int64_t>(base);
  const std::int64_t from = std::max<std::int64_t>((low + shift) / kLine * kLine - shift, 0);
  const std::int64_t to = std::min((high - 1 + shift) / kLine * kLine + kLine - shift,
                                   static_cast<std::int64_t>(by.region.bytes));
  tracked.cells.Look(from, to, [&](std::int64_t, std::int64_t, const GmCell &cell) {
    const Access &other = cell.write;
    const bool foreign = other.time != 0 && other.cached && other.core != OrderNumber(by.core);
    if (!foreign || by.Knows(other) || Again(by.call, "gm-line")) return;
    const Call &first = PlaceAt(other.place);
    Report(by.call, "gm-line",
           Text("%s writes %s, in a %lld-byte line that %s writes too", by.call.api,
                by.Where(low, high).c_str(), Ll(kLine), OrderName(other.core).c_str()),
           Text("%s at %s", first.api, PlaceOf(first.site).c_str()), "", "", Level::kWarning);
  });
}

// ---- the touches

void KeepRead(GmCell &cell, const Visitor &by) {
  const auto same = [&](const Access &other) {
    return other.core == by.access.core && other.unit == by.access.unit;
  };
  Access *slot = &cell.reads[0];
  if (!same(cell.reads[0]) && (same(cell.reads[1]) || by.Knows(cell.reads[1]))) {
    slot = &cell.reads[1];
  }
  *slot = by.access;
}

void TouchRead(Tracked &tracked, const Visitor &by, std::int64_t low, std::int64_t high) {
  tracked.cells.Each(low, high, [&](std::int64_t from, std::int64_t to, GmCell &cell) {
    CheckCache(by, cell, from, to);
    by.Check(cell.write, Clash::kReadAfterWrite, from, to);
    KeepRead(cell, by);
  });
}

void CheckAccumulate(const Visitor &by, const GmCell &cell, std::int64_t low, std::int64_t high) {
  if (!by.access.atomic || cell.known != Known::kNever) return;
  if (!StillPoison(by.region.base + low, high - low) || Again(by.call, "atomic-uninit")) return;
  Report(by.call, "atomic-uninit",
         Text("%s accumulates onto %s, which nobody has written", by.call.api,
              by.Where(low, high).c_str()));
}

void TouchWrite(Tracked &tracked, const Visitor &by, std::int64_t low, std::int64_t high) {
  if (by.access.cached) CheckSharing(tracked, by, low, high);
  tracked.cells.Look(low, high, [&](std::int64_t from, std::int64_t to, const GmCell &cell) {
    by.Check(cell.write, Clash::kWriteAfterWrite, from, to);
    if (cell.plain.core != by.access.core) by.Check(cell.plain, Clash::kWriteAfterWrite, from, to);
    for (const Access &read : cell.reads) by.Check(read, Clash::kWriteAfterRead, from, to);
    CheckAccumulate(by, cell, from, to);
  });
  GmCell fresh;
  fresh.write = by.access;
  if (!by.access.atomic) return tracked.cells.Fill(low, high, fresh);
  // who clears memory and adds to it himself has still to be waited for by the others that add
  tracked.cells.Each(low, high, [&](std::int64_t, std::int64_t, GmCell &cell) {
    const Access plain = cell.write.atomic ? cell.plain : cell.write;
    cell = fresh;
    cell.plain = plain;
  });
}

}  // namespace

void OrderTouchGm(Core &core, const Call &call, const Region &region, const std::uint8_t *base,
                  std::int64_t bytes, std::int64_t run, std::int64_t pitch, bool write, Way way) {
  const bool scalar = way != Way::kPipe;
  const std::int64_t rows = run > 0 && pitch > run ? (bytes + pitch - 1) / pitch : 1;
  CountInefficiency(core, scalar ? Inefficiency::kScalar : Inefficiency::kCopy,
                    rows > 1 ? rows * run : bytes);
  Tracked *tracked = core.clocks.marks == nullptr ? nullptr : TrackedOf(region);
  const std::size_t unit = UnitOf(core.unit);
  if (tracked == nullptr || unit >= kUnits || bytes <= 0) return;
  Access access;
  access.time = core.clocks.now[unit];
  access.place = PlaceNumber(call);
  access.count = ++All().count;
  access.core = OrderNumber(core);
  access.unit = static_cast<std::uint8_t>(unit);
  access.scalar = scalar;
  access.cached = way == Way::kCache;
  access.atomic = write && !scalar && core.atomic != Atomic::kNone;
  const Visitor by{core, call, region, access};
  const std::int64_t start = base - region.base;
  OverRows(bytes, run, pitch, [&](std::int64_t low, std::int64_t high) {
    if (write) TouchWrite(*tracked, by, start + low, start + high);
    else TouchRead(*tracked, by, start + low, start + high);
  });
  if (access.cached && !write) core.clocks.marks->lines.emplace(LineOf(base), access.count);
}

void OrderClean(Core &core, const std::uint8_t *base) {
  if (core.clocks.marks == nullptr) return;
  Marks &marks = *core.clocks.marks;
  if (base == nullptr) marks.lines.clear();
  else marks.lines.erase(LineOf(base));
  for (Tracked &tracked : All().regions) {
    const Region &region = *tracked.region;
    const std::int64_t size = static_cast<std::int64_t>(region.bytes);
    const std::int64_t low = base == nullptr ? 0 : LineOf(base) - region.base;
    const std::int64_t high = base == nullptr ? size : low + kLine;
    if (high <= 0 || low >= size) continue;
    tracked.cells.Each(std::max<std::int64_t>(low, 0), std::min(high, size),
                       [&](std::int64_t, std::int64_t, GmCell &cell) {
                         if (cell.write.core != OrderNumber(core)) return;
                         cell.write.scalar = cell.write.cached = false;
                       });
  }
}

void OrderSettle() {
  std::vector<Pending> &pending = All().pending;
  if (pending.empty()) return;
  std::vector<Pending> ripe;
  ripe.swap(pending);
  for (const Pending &race : ripe) {
    const bool equal = std::equal(race.old.begin(), race.old.end(), race.at);
    if (Again(race.call, "gm-race")) continue;
    Report(race.call, "gm-race",
           race.message + (race.again ? " too" : "") + (equal ? ", with the same values" : ""),
           race.seen, "", "", equal ? Level::kWarning : Level::kError);
  }
}

void OrderLaunch() {
  All() = Traffic();
  ForgetInefficiencies();
  OrderPlacesReset();
}

// ---- what is known of the bytes

namespace {

Tracked *Holding(const std::uint8_t *gm) {
  for (Tracked &tracked : All().regions) {
    const Region &region = *tracked.region;
    if (gm >= region.base && gm < region.base + region.bytes) {
      return tracked.lost ? nullptr : &tracked;
    }
  }
  return nullptr;
}

}  // namespace

void GmLook(const std::uint8_t *gm, std::int64_t bytes,
            const std::function<void(std::int64_t, std::int64_t, Known)> &look) {
  const Tracked *tracked = Holding(gm);
  if (tracked == nullptr) return;
  const std::int64_t start = gm - tracked->region->base;
  tracked->cells.Look(start, start + bytes,
                      [&](std::int64_t low, std::int64_t high, const GmCell &cell) {
                        if (cell.known == Known::kData) return;
                        look(low - start, high - start, cell.known);
                      });
}

void GmMark(const std::uint8_t *gm, std::int64_t bytes, Known known) {
  Tracked *tracked = Holding(gm);
  if (tracked == nullptr) return;
  const std::int64_t start = gm - tracked->region->base;
  tracked->cells.Each(start, start + bytes,
                      [&](std::int64_t, std::int64_t, GmCell &cell) { cell.known = known; });
}

namespace {

// The rest of a block whose beginning is data, in memory of which nobody says what counts: a store
// moves whole blocks, and what lies behind the last element need not be a result.
bool RestOfBlock(const Tracked &tracked, std::int64_t low, std::int64_t high, Known known) {
  if (!tracked.region->unnamed || known != Known::kNever) return false;
  constexpr std::int64_t kBlock = 32;
  const std::int64_t start = low / kBlock * kBlock;
  if (start == low || high > start + kBlock) return false;
  bool data = true;
  tracked.cells.Look(start, low, [&](std::int64_t, std::int64_t, const GmCell &cell) {
    data = data && cell.known == Known::kData && cell.write.time != 0;
  });
  return data;
}

// A result that was copied out and never computed; told at the copy.
void ReportLeft(const Tracked &tracked, std::int64_t low, std::int64_t high, const GmCell &cell) {
  const Region &region = *tracked.region;
  const Call &call = PlaceAt(cell.write.place);
  const bool padding = cell.known == Known::kPadding;
  const char *code = padding ? "padding-read" : "uninit-read";
  if (Again(call, code)) return;
  Report(call, code,
         Text("%s leaves bytes %lld..%lld of %s with %s", call.api, Ll(low), Ll(high - 1),
              region.name.c_str(),
              padding ? "padding that no paddingValue was given for"
                      : "what was never computed from data"),
         Text("written by %s", OrderName(cell.write.core).c_str()), "", "",
         padding || RestOfBlock(tracked, low, high, cell.known) ? Level::kWarning : Level::kError);
}

}  // namespace

void OrderFinish() {
  OrderSettle();
  ReportInefficiencies();
  for (const Tracked &tracked : All().regions) {
    const Region &region = *tracked.region;
    if (region.scratch || tracked.lost || Skipped()) continue;
    tracked.cells.Look(0, static_cast<std::int64_t>(region.bytes),
                       [&](std::int64_t low, std::int64_t high, const GmCell &cell) {
                         const bool left = cell.known != Known::kData && cell.write.time != 0;
                         if (left) ReportLeft(tracked, low, high, cell);
                       });
  }
}

}  // namespace twin
