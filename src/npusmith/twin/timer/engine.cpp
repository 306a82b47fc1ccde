// Events of the chip, and how a core goes on after each.
#include "engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace twin {

namespace {

CacheRules RulesOf(const Costs &costs) {
  const auto value = [&](const char *name) { return costs[costs.Find(name)]; };
  CacheRules rules;
  rules.capacity = value("l2.on") > 0 ? value("l2.bytes") : 0;
  rules.pieceBytes = value("gm.piece_bytes");
  rules.bypassBytes = value("gm.bypass_bytes");
  rules.writeBack = value("hbm.write_back");
  rules.earlyBack = value("l2.warm") > 0 || value("l2.full") == 0 ? 0 : value("hbm.early_back");
  rules.window = value("l2.same_window");
  return rules;
}

Rates RatesOf(const Costs &costs) {
  Rates rates;
  rates.hbm = costs[costs.FindRate("hbm.rate")];
  rates.l2 = costs[costs.FindRate("l2.rate")];
  rates.pieces = costs[costs.FindRate("gm.pieces")];
  rates.sameLine = costs[costs.Find("l2.same_line")];
  rates.knee = costs[costs.Find("gm.knee")];
  return rates;
}

}  // namespace

Engine::Engine(const Log &log, Costs &costs, Events *events)
    : log_(log),
      costs_(costs),
      events_(events),
      table_(costs, log),
      cache_(log.regions, RulesOf(costs)),
      share_(RatesOf(costs)),
      cores_(log.cores.size()),
      paths_(log.names.size()) {
  const auto depth = static_cast<std::size_t>(std::max(1.0, costs[table_.depth]));
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    CoreRun &core = cores_[i];
    core.log = log.cores[i];
    core.begin = static_cast<double>(i) * costs[table_.stagger];
    const bool cube = core.log.head->cube != 0;
    const double prologue = costs_[cube ? table_.prologueCube : table_.prologue];
    const double fetch = costs_[table_.warm] > 0 ? 0 : costs_[table_.cold];
    core.now = core.begin + prologue + fetch;
    core.units[kS].busy = prologue;
    core.units[kS].waits[kForMemory] = fetch;
    for (Unit &unit : core.units) {
      unit.busyUntil = core.begin;
      unit.begins.resize(depth);
    }
    if (core.log.head->dropped > 0) FindMiddles(core);
    const std::uint32_t number = core.log.head->number;
    if (number >= byNumber_.size()) byNumber_.resize(number + 1, UINT32_MAX);
    byNumber_[number] = static_cast<std::uint32_t>(i);
  }
}

void Engine::Run() {
  if (costs_[costs_.Find("l2.warm")] > 0) Warm();
  for (CoreRun &core : cores_) Advance(core);
  Wake();
  for (;;) {
    const double ends = share_.Next();
    if (heap_.empty() && ends == std::numeric_limits<double>::infinity()) break;
    if (heap_.empty() || ends <= heap_.top().time) {
      Land(share_.Pop(), ends);
      continue;
    }
    const Event event = heap_.top();
    heap_.pop();
    CoreRun &core = cores_[event.core];
    if (event.streams) {
      Flight &flight = core.units[event.unit].flights.front();
      flight.streams = event.time;
      share_.Add(flight.stream, event.time);
    } else {
      Begin(core, event.unit, event.time);
    }
  }
  for (CoreRun &core : cores_) Finish(core);
}

// The same launch once before, as in a benchmark: what it leaves in L2. The cores take turns.
void Engine::Warm() {
  std::vector<std::uint64_t> at(cores_.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < cores_.size(); ++i) {
      const CoreLog &log = cores_[i].log;
      while (at[i] < log.head->steps) {
        const Step &step = log.steps[at[i]++];
        if (step.kind != StepKind::kCopy || GmRegion(step.copy) == 0) continue;
        cache_.Take(step.copy, step.flags, Writes(step));
        more = true;
        break;
      }
    }
  }
  cache_.Settle();
}

void Engine::Push(double time, const CoreRun &core, std::size_t unit, bool streams) {
  const auto at = static_cast<std::uint32_t>(&core - cores_.data());
  heap_.push({time, orders_++, at, static_cast<std::uint32_t>(unit), streams});
}

// A transfer leaves the queue of its unit and asks for its first bytes.
void Engine::Begin(CoreRun &core, std::size_t at, double time) {
  Unit &unit = core.units[at];
  const Waiting waiting = unit.queue.front();
  const Step &step = core.log.steps[waiting.step];
  const PathCosts &path = table_.Path(step.what);
  const bool write = Writes(step);
  const Demand demand = cache_.Take(step.copy, step.flags, write);
  double latency = costs_[path.start];
  costs_.Charge(path.start, latency);
  if (demand.missed > 0) {
    latency += costs_[table_.missLatency];
    costs_.Charge(table_.missLatency, costs_[table_.missLatency]);
  }
  Flight flight{};
  flight.step = waiting.step;
  flight.index = unit.begun;
  flight.begin = time;
  flight.ready = time + latency;
  flight.streams = kUnknown;
  flight.why = unit.pending;
  flight.stream.core = static_cast<std::uint32_t>(&core - cores_.data());
  flight.stream.unit = static_cast<std::uint32_t>(at);
  flight.stream.alone = Alone(step, demand);
  flight.stream.hbm = demand.hbm + Overhead(demand);
  flight.stream.bytes = demand.bytes;
  flight.stream.requests = demand.requests;
  flight.stream.pieces = demand.pieces;
  flight.stream.line = demand.line;
  flight.gap = costs_[path.gap];
  if (unit.flights.empty()) Push(std::max(flight.ready, unit.last + flight.gap), core, at, true);
  unit.flights.push_back(flight);
  CountPath(step, demand);
  unit.queue.pop_front();
  unit.begins[unit.begun % unit.begins.size()] = time;
  unit.begun += 1;
  unit.free = time + costs_[path.issue];
  costs_.Charge(path.issue, costs_[path.issue]);
  unit.scheduled = false;
  Advance(core);
  Wake();
}

// What HBM could have moved while it turned to this transfer.
double Engine::Overhead(const Demand &demand) const {
  if (demand.hbm <= 0) return 0;
  const double most = costs_[table_.hbmShare] * demand.hbm;
  return std::min(most, costs_[table_.hbmTransfer] * std::min(1.0, demand.hbm / demand.bytes));
}

// The last byte of a transfer is there.
void Engine::Land(const Stream &ended, double time) {
  CoreRun &core = cores_[ended.core];
  Unit &unit = core.units[ended.unit];
  const Flight flight = unit.flights.front();
  unit.flights.pop_front();
  const Step &step = core.log.steps[flight.step];
  // Given while others were under way, which were over before it began.
  unit.waits[kForIssue] += std::max(0.0, flight.begin - unit.busyUntil);
  const double used = time - std::max(unit.busyUntil, flight.begin);
  const double excess = std::clamp(time - flight.streams - ended.alone, 0.0, used);
  unit.busy += used - excess;
  unit.waits[kForMemory] += excess;
  costs_.Charge(table_.hbm, excess);
  unit.busyUntil = unit.last = time;
  unit.finish[flight.index] = time;
  paths_[step.what].busy += used;
  Note(core, step, flight.begin, time, flight.why.reason, flight.why.wait);
  if (!unit.flights.empty()) {
    const Flight &next = unit.flights.front();
    Push(std::max(next.ready, time + next.gap), core, ended.unit, true);
  }
  Advance(core);
  Wake();
}

void Engine::Advance(CoreRun &core) {
  for (bool more = true; more;) {
    more = false;
    while (Issue(core)) more = true;
    for (std::size_t unit = 1; unit < kLogUnits; ++unit) {
      while (Start(core, unit)) more = true;
    }
  }
}

// Scalar units that waited for what is known now go on, and perhaps let others go on.
void Engine::Wake() {
  for (std::size_t i = 0; i < joining_.size();) {
    CoreRun &core = cores_[joining_[i]];
    if (TickTime(cores_[core.joinCore], core.joinUnit, core.joinTick) == kUnknown) {
      ++i;
      continue;
    }
    core.joins = false;
    joining_.erase(joining_.begin() + static_cast<std::ptrdiff_t>(i));
    Advance(core);
    i = 0;
  }
}

// When a unit finishes a tick; kUnknown as long as nobody can tell.
double Engine::TickTime(const CoreRun &core, std::size_t at, std::uint64_t tick) const {
  const Unit &unit = core.units[at];
  if (tick == 0) return 0;
  if (tick <= unit.lastTick) {
    const std::uint64_t index =
        unit.ticks.empty() ? tick - 1
                           : static_cast<std::uint64_t>(
                                 std::lower_bound(unit.ticks.begin(), unit.ticks.end(), tick) -
                                 unit.ticks.begin());
    return unit.finish[index];
  }
  // what was not recorded is taken to be over with what was
  return core.log.head->dropped > 0 && Idle(core) ? LastOf(core) : kUnknown;
}

When Engine::DepTime(const CoreRun &core, const Step &step, std::uint64_t dep) const {
  When when;
  for (std::uint64_t i = dep; i < dep + step.deps; ++i) {
    const StepDep &on = core.log.deps[i];
    const double time = TickTime(core, on.unit, on.tick);
    if (time == kUnknown) return {kUnknown, on.unit};
    if (time > when.time) when = {time, on.unit};
  }
  return when;
}

bool Engine::Idle(const CoreRun &core) {
  if (core.at < core.log.head->steps) return false;
  return std::all_of(core.units.begin(), core.units.end(),
                     [](const Unit &unit) { return unit.queue.empty() && unit.flights.empty(); });
}

double Engine::LastOf(const CoreRun &core) {
  double last = core.now;
  for (const Unit &unit : core.units) last = std::max(last, unit.last);
  return last;
}

bool Engine::Writes(const Step &step) const {
  return table_.Writes(step.what);
}

// What a step that is over leaves behind.
void Engine::Note(CoreRun &core, const Step &step, double begin, double end, int reason,
                  double wait) {
  totals_.steps += step.count;
  Unit &unit = core.units[step.unit];
  unit.over += 1;
  if (unit.over == unit.middle) {
    unit.half = end;
    unit.halfBusy = unit.busy;
  }
  if (unit.over == unit.late) unit.lateTime = end;
  if (events_ == nullptr) return;
  const bool copy = step.kind == StepKind::kCopy;
  const std::uint64_t held = step.kind == StepKind::kScalar ? step.other.held : 0;
  const std::uint64_t bytes = copy ? std::uint64_t{step.copy.rows} * step.copy.bytes : held;
  events_->Add(core, step, begin, end, reason, wait, bytes);
}

void Engine::CountPath(const Step &step, const Demand &demand) {
  constexpr std::uint64_t kLimits[] = {512, 2048, 8192, 16384, 65536};
  PathStats &stats = paths_[step.what];
  const std::uint64_t bytes = std::uint64_t{step.copy.rows} * step.copy.bytes;
  std::size_t size = 0;
  while (size < std::size(kLimits) && bytes >= kLimits[size]) ++size;
  stats.transfers += 1;
  stats.bytes += bytes;
  stats.missed += demand.missed;
  stats.unaligned += demand.unaligned ? 1 : 0;
  stats.sizes[size] += 1;
}

// The end of a core, and what its units did until then.
void Engine::Finish(CoreRun &core) {
  core.end = LastOf(core);
  if (core.at == core.log.head->steps)
    core.end += costs_[table_.epilogue];
  else if (log_.head().finished != 0)
    throw BadLog{"a core waits for work that is not there"};
  costs_.Charge(table_.epilogue, costs_[table_.epilogue]);
  costs_.Charge(table_.prologue, costs_[table_.prologue]);
  core.units[kS].busyUntil = core.now;
  for (Unit &unit : core.units) {
    unit.waits[kForEnd] += std::max(0.0, core.end - unit.busyUntil);
  }
  if (core.log.head->dropped > 0) Extrapolate(core);
}

void Engine::FindMiddles(CoreRun &core) {
  std::array<std::uint64_t, kLogUnits> steps{};
  for (std::uint64_t i = 0; i < core.log.head->steps; ++i) steps[core.log.steps[i].unit] += 1;
  for (std::size_t i = 0; i < kLogUnits; ++i) {
    core.units[i].middle = std::max(steps[i] / 2, 1ul);
    core.units[i].late = std::max(steps[i] * 3 / 4, 1ul);
  }
}

namespace {

// How far the third and the last quarter of a unit's steps were from taking as long as each other.
double Drift(const Unit &unit) {
  if (unit.half == kUnknown || unit.lateTime == kUnknown) return 1;
  const double third = unit.lateTime - unit.half, last = unit.busyUntil - unit.lateTime;
  return third + last > 0 ? std::abs(last - third) / (third + last) : 1;
}

}  // namespace

// The steps that were not recorded go on as those of the second half: each unit at its own pace,
// the core at that of the slowest.
void Engine::Extrapolate(CoreRun &core) {
  const CoreHead &head = *core.log.head;
  totals_.sampled = true;
  totals_.steps += head.dropped;
  totals_.repeats += head.droppedRepeats;
  totals_.tiles += head.droppedCube;
  std::uint64_t known = 0;  // ticks of the second half: what is dropped is counted by the call too
  for (std::uint64_t i = head.steps / 2; i < head.steps; ++i) known += core.log.steps[i].count;
  if (known == 0) return;
  const double more = static_cast<double>(head.dropped) / static_cast<double>(known);
  double time = 0, drift = 0;
  for (const Unit &unit : core.units) {
    const double own = unit.half == kUnknown ? 0 : (unit.busyUntil - unit.half) * more;
    if (own <= time) continue;
    time = own;
    drift = Drift(unit);
  }
  totals_.sampleError =
      std::max(totals_.sampleError, drift * time / (core.end - core.begin + time));
  const double whole = std::max(core.end - core.begin, 1.0);
  for (Unit &unit : core.units) {
    const double second = unit.half == kUnknown ? 0 : unit.busy - unit.halfBusy;
    const double busy = std::min(second * more, time);
    const double idle = std::max(whole - unit.busy, 1e-9);
    for (double &wait : unit.waits) wait += (time - busy) * wait / idle;
    unit.busy += busy;
  }
  core.end += time;
}

}  // namespace twin
