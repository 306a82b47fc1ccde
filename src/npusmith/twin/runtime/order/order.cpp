// Hazards between the pipes of a core, by vector clocks.
#include "order/order.h"

#include <iterator>

#include "order/marks.h"
#include "log/record.h"
#include "text.h"
#include "log/inefficiency.h"

namespace twin {

namespace {

enum Unit : std::size_t { kS, kV, kM, kMte1, kMte2, kMte3, kFix };

struct Pair {
  Unit from, to;
};

// In the order of HardEvent.
constexpr Pair kPairs[] = {
    {kMte2, kMte1}, {kMte1, kMte2}, {kMte1, kM},    {kM, kMte1},    {kMte2, kV},   {kV, kMte2},
    {kMte3, kV},    {kV, kMte3},    {kM, kV},       {kV, kM},       {kV, kV},      {kMte3, kMte1},
    {kMte1, kMte3}, {kMte1, kV},    {kMte2, kM},    {kM, kMte2},    {kV, kMte1},   {kM, kFix},
    {kFix, kM},     {kMte3, kMte2}, {kMte2, kMte3}, {kS, kV},       {kV, kS},      {kS, kMte2},
    {kMte2, kS},    {kS, kMte3},    {kMte3, kS},    {kMte2, kFix},  {kFix, kMte2}, {kFix, kS},
    {kM, kS},       {kFix, kMte3},  {kMte1, kFix},  {kFix, kMte1},  {kFix, kFix},  {kFix, kV},
    {kV, kFix},     {kS, kFix},     {kS, kM}};
static_assert(std::size(kPairs) == kHardEvents);

bool HasEvent(std::size_t from, std::size_t to) {
  for (const Pair &pair : kPairs) {
    if (pair.from == from && pair.to == to) return true;
  }
  return false;
}

// What is certainly over when a pipe comes to its present place.
Ticks DoneOn(const Core &core, std::size_t unit) {
  Ticks done = core.clocks.seen[unit];
  done[unit] = core.clocks.now[unit];
  return done;
}

struct Places {
  std::vector<Call> calls;
  struct Slot {
    Call call{"", {}};
    std::uint32_t number = 0;
  };
  std::array<Slot, 256> recent;
};

Places &AllPlaces() {
  static thread_local Places places;
  return places;
}

bool Same(const Call &a, const Call &b) {
  return a.site.line == b.site.line && a.site.file == b.site.file && a.api == b.api;
}

}  // namespace

std::size_t UnitOf(pipe_t pipe) {
  return pipe == PIPE_FIX ? static_cast<std::size_t>(kFix) : static_cast<std::size_t>(pipe);
}

const char *UnitName(std::size_t unit) {
  constexpr const char *kNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
  return kNames[unit];
}

std::uint32_t PlaceNumber(const Call &call) {
  Places &places = AllPlaces();
  auto &slot = places.recent[static_cast<std::size_t>(call.site.line) % places.recent.size()];
  if (slot.number < places.calls.size() && Same(slot.call, call)) return slot.number;
  for (std::size_t i = 0; i < places.calls.size(); ++i) {
    if (!Same(places.calls[i], call)) continue;
    slot = {call, static_cast<std::uint32_t>(i)};
    return slot.number;
  }
  places.calls.push_back(call);
  slot = {call, static_cast<std::uint32_t>(places.calls.size() - 1)};
  return slot.number;
}

const Call &PlaceAt(std::uint32_t number) { return AllPlaces().calls[number]; }

std::uint32_t PlaceCount() { return static_cast<std::uint32_t>(AllPlaces().calls.size()); }

// Cube and vector cores count their blocks apart.
int OrderNumber(const Core &core) { return 2 * core.block + (core.seat.kind == Kind::kCube); }

std::string OrderName(int number) {
  Seat seat;
  seat.kind = number % 2 == 0 ? Kind::kVector : Kind::kCube;
  seat.block = number / 2;
  return NameOf(seat);
}

void OrderPlacesReset() { AllPlaces() = Places(); }

void OrderIssue(Core &core, pipe_t unit) {
  OrderSettle();
  ShadowIssue(core);
  Clocks &clocks = core.clocks;
  const std::size_t at = UnitOf(unit);
  if (at >= kUnits) return;
  clocks.now[at] += 1;
  // the scalar unit issues in order: what it waited for is over before anything that follows
  if (at != kS) Advance(clocks.seen[at], clocks.seen[kS]);
}

void OrderSet(Core &core, AscendC::HardEvent event, int id) {
  const Pair &pair = kPairs[static_cast<std::size_t>(event)];
  core.clocks.marks->flags[static_cast<std::size_t>(event)][static_cast<std::size_t>(id)] =
      DoneOn(core, pair.from);
}

void OrderWait(Core &core, AscendC::HardEvent event, int id) {
  const Pair &pair = kPairs[static_cast<std::size_t>(event)];
  Advance(core.clocks.seen[pair.to],
          core.clocks.marks->flags[static_cast<std::size_t>(event)][static_cast<std::size_t>(id)]);
}

void OrderBarrier(Core &core, pipe_t pipe) {
  Clocks &clocks = core.clocks;
  if (pipe == PIPE_ALL) {
    CountInefficiency(core, Inefficiency::kBarrier);
    for (Ticks &seen : clocks.seen) seen = clocks.now;
    return;
  }
  const std::size_t unit = UnitOf(pipe);
  if (unit < kUnits) clocks.seen[unit][unit] = clocks.now[unit];
}

Stamp OrderStamp(Core &core, pipe_t from) {
  Stamp stamp;
  stamp.core = OrderNumber(core);
  stamp.own = from == PIPE_ALL ? core.clocks.now : DoneOn(core, UnitOf(from));
  stamp.issued = stamp.own[kBegun] = core.clocks.now[kS];
  stamp.others = core.clocks.others;
  return stamp;
}

void OrderTake(Core &core, const Stamp &stamp, pipe_t to) {
  if (stamp.core < 0) return;
  if (to != PIPE_ALL) return Advance(core.clocks.seen[UnitOf(to)], stamp.own);
  for (Ticks &seen : core.clocks.seen) Advance(seen, stamp.own);
}

namespace {

void Learn(Others &others, int core, const Ticks &times) {
  if (core < 0) return;
  const auto at = static_cast<std::size_t>(core);
  if (others.size() <= at) others.resize(at + 1);
  Advance(others[at], times);
}

Others Together(const Stamp &stamp) {
  Others all = stamp.others == nullptr ? Others() : *stamp.others;
  Learn(all, stamp.core, stamp.own);
  return all;
}

}  // namespace

void OrderMerge(Stamp &into, const Stamp &from) {
  if (from.core < 0 && from.others == nullptr) return;
  Others all = Together(into);
  const Others more = Together(from);
  for (std::size_t i = 0; i < more.size(); ++i) Learn(all, static_cast<int>(i), more[i]);
  into = {-1, {}, 0, std::make_shared<const Others>(std::move(all))};
}

void OrderJoin(Core &core, const Stamp &stamp) {
  const Others more = Together(stamp);
  if (more.empty()) return;
  Others all = core.clocks.others == nullptr ? Others() : *core.clocks.others;
  for (std::size_t i = 0; i < more.size(); ++i) Learn(all, static_cast<int>(i), more[i]);
  const auto own = static_cast<std::size_t>(OrderNumber(core));
  if (own < all.size()) {  // what came back about this core itself
    for (Ticks &seen : core.clocks.seen) Advance(seen, all[own]);
  }
  core.clocks.others = std::make_shared<Others>(std::move(all));
}

void OrderLearn(Core &core, int number, const Ticks &ticks) {
  Others all = core.clocks.others == nullptr ? Others() : *core.clocks.others;
  Learn(all, number, ticks);
  core.clocks.others = std::make_shared<Others>(std::move(all));
}

bool OrderKnows(const Core &reader, std::size_t unit, int core, std::size_t by,
                std::uint32_t time) {
  if (core == OrderNumber(reader)) return reader.clocks.seen[unit][by] >= time;
  const auto &others = reader.clocks.others;
  const auto at = static_cast<std::size_t>(core);
  return others != nullptr && at < others->size() && (*others)[at][by] >= time;
}

void OrderBegin(Core &core) { core.clocks.marks = std::make_shared<Marks>(); }

namespace {

const char *DoingOf(Clash clash) {
  return clash == Clash::kWriteAfterRead ? "may still be reading" : "may still be writing";
}

// The compiler adds nothing on cube cores.
bool AutoSync(const Core &core) {
  const LaunchSpec *spec = ThisLaunch().spec;
  if (core.seat.kind == Kind::kCube) return false;
  return spec == nullptr || spec->autoSync;
}

std::string HintFor(std::size_t earlier, std::size_t later, const Trace &trace) {
  const std::string place = PlaceOf(PlaceAt(trace.place).site);
  if (earlier == later) {
    return Text("PipeBarrier<PIPE_%s>() after %s", UnitName(later), place.c_str());
  }
  if (!HasEvent(earlier, later)) return Text("PipeBarrier<PIPE_ALL>() after %s", place.c_str());
  const std::string event = Text("%s_%s", UnitName(earlier), UnitName(later));
  return Text("SetFlag<HardEvent::%s>(id) after %s and WaitFlag<HardEvent::%s>(id) before this, "
              "or hand the tensor over through a queue",
              event.c_str(), place.c_str(), event.c_str());
}

void ReportAs(const Core &core, const Call &call, const char *code, Level level,
              const std::string &where, Clash clash, std::size_t earlier, const Trace &trace) {
  if (Again(call, code)) return;
  const Call &first = PlaceAt(trace.place);
  const std::size_t later = UnitOf(core.unit);
  Report(call, code,
         Text("%s on %s %s %s that %s on %s %s", call.api, UnitName(later),
              clash == Clash::kReadAfterWrite ? "reads" : "writes", where.c_str(), first.api,
              UnitName(earlier), DoingOf(clash)),
         Text("%s at %s; nothing makes %s wait for it", first.api, PlaceOf(first.site).c_str(),
              UnitName(later)),
         "", HintFor(earlier, later, trace), level);
}

}  // namespace

void ReportHazard(Core &core, const Call &call, const std::string &where, Clash clash,
                  std::size_t earlier, const Trace &trace) {
  const std::size_t later = UnitOf(core.unit);
  const bool vector = earlier == kV && later == kV;
  const bool scalar = earlier == kS || later == kS;
  const bool hidden = (vector || scalar) && AutoSync(core);
  if (hidden) {
    ReportAs(core, call, "hazard-auto-sync", Level::kNote, where, clash, earlier, trace);
  } else if (earlier == later) {
    ReportAs(core, call, "hazard-barrier", Level::kWarning, where, clash, earlier, trace);
  } else {
    ReportAs(core, call, "hazard", Level::kError, where, clash, earlier, trace);
  }
  Ticks done = DoneOn(core, earlier);
  if (earlier == later) done[later] -= 1;  // the present instruction itself is not over
  if (!hidden) RecordKeep(core, core.unit);
  Advance(core.clocks.seen[later], done);
  if (!hidden) RecordForget(core, core.unit);
}

namespace {

// Accumulations into L0C of so few fractals must be kept apart by hand (doc: Mmad).
constexpr std::int64_t kSmallMatrix = 10 * 16 * 16 * 4;

struct Toucher {
  Core &core;
  const Call &call;
  Memory memory;
  std::size_t unit;
  Trace trace;
  std::int64_t bytes;  // of the whole footprint

  bool Seen(std::size_t by, const Trace &other) const {
    return other.time == 0 || core.clocks.seen[unit][by] >= other.time;
  }
  // Does the order of issue on one pipe not suffice?
  bool NeedsBarrier(Clash clash) const {
    if (unit == kV) return clash == Clash::kReadAfterWrite;
    if (unit == kMte1 || unit == kMte2 || unit == kMte3) return clash == Clash::kWriteAfterWrite;
    return unit == kM && memory == Memory::kL0c && bytes < kSmallMatrix &&
           clash == Clash::kReadAfterWrite;
  }
  void Check(std::size_t by, const Trace &other, Clash clash, std::int64_t low,
             std::int64_t high) const {
    if (Seen(by, other)) return;
    if (by == unit && (other.time == trace.time || !NeedsBarrier(clash))) return;
    // a scalar load is over before the next instruction is issued
    if (by == kS && clash == Clash::kWriteAfterRead) return;
    ReportHazard(core, call,
                 Text("%s bytes %lld..%lld", NameOf(memory), Ll(low), Ll(high - 1)), clash, by,
                 other);
  }
};

void TouchRead(Ranges<Cell> &ranges, const Toucher &by, std::int64_t low, std::int64_t high) {
  ranges.Each(low, high, [&](std::int64_t from, std::int64_t to, Cell &cell) {
    by.Check(cell.writer, cell.write, Clash::kReadAfterWrite, from, to);
    cell.reads[by.unit] = by.trace;
  });
}

void TouchWrite(Ranges<Cell> &ranges, const Toucher &by, std::int64_t low, std::int64_t high) {
  ranges.Look(low, high, [&](std::int64_t from, std::int64_t to, const Cell &cell) {
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      by.Check(unit, cell.reads[unit], Clash::kWriteAfterRead, from, to);
    }
    by.Check(cell.writer, cell.write, Clash::kWriteAfterWrite, from, to);
  });
  Cell fresh;
  fresh.write = by.trace;
  fresh.writer = by.unit;
  ranges.Fill(low, high, fresh);
}

}  // namespace

void OrderTouch(Core &core, const Call &call, Memory memory, std::int64_t addr, std::int64_t bytes,
                std::int64_t run, std::int64_t pitch, bool write) {
  const std::size_t unit = UnitOf(core.unit);
  if (unit >= kUnits || core.clocks.marks == nullptr || bytes <= 0) return;
  auto &ranges = core.clocks.marks->memories[static_cast<std::size_t>(memory)];
  if (!ranges) ranges.emplace(BytesOf(memory));
  const Toucher by{core, call, memory, unit, {core.clocks.now[unit], PlaceNumber(call)}, bytes};
  OverRows(bytes, run, pitch, [&](std::int64_t low, std::int64_t high) {
    if (write) TouchWrite(*ranges, by, addr + low, addr + high);
    else TouchRead(*ranges, by, addr + low, addr + high);
  });
}

}  // namespace twin
