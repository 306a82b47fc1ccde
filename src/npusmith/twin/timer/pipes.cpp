// The units behind the scalar unit: each takes the steps of its queue in order.
#include <algorithm>
#include <cmath>

#include "engine.h"

namespace twin {

// The first step of the queue, if it is known when it can begin. False: not yet.
bool Engine::Start(CoreRun &core, std::size_t at) {
  Unit &unit = core.units[at];
  if (unit.queue.empty() || unit.scheduled) return false;
  const Waiting waiting = unit.queue.front();
  const Step &step = core.log.steps[waiting.step];
  When ready = DepTime(core, step, waiting.dep);
  if (ready.time == kUnknown) return false;
  if (step.kind == StepKind::kCopy && at != kV) return DoCopy(core, at, step, waiting, ready);
  if (!unit.flights.empty()) return false;  // it ends after them, whenever that is
  switch (step.kind) {
    case StepKind::kVector:
      DoVector(core, unit, step, waiting, ready);
      break;
    case StepKind::kLibrary:
      DoLibrary(core, unit, step, waiting, ready);
      break;
    case StepKind::kMmad:
      DoMmad(core, unit, step, waiting, ready);
      break;
    case StepKind::kCopy:
      DoMove(core, unit, step, waiting, ready);
      break;
    default:
      Mark(core, unit, step, waiting, ready);
  }
  return true;
}

// Counts the time since the step before as waiting. What it waited for last is its reason.
void Engine::Wait(Unit &unit, const Waiting &waiting, const When &ready, double begin) {
  unit.pending = {kNoReason, 0};
  if (!unit.flights.empty() || begin <= unit.busyUntil) return;
  const double given = std::clamp(waiting.issued, unit.busyUntil, begin);
  unit.waits[kForIssue] += given - unit.busyUntil;
  if (given > unit.busyUntil) unit.pending.reason = kForIssue;
  if (begin > given) {
    const std::size_t reason = ready.unit < kLogUnits ? ready.unit : std::size_t{kForIssue};
    unit.waits[reason] += begin - given;
    unit.pending.reason = static_cast<int>(reason);
  }
  unit.pending.wait = begin - unit.busyUntil;
  unit.busyUntil = begin;
}

// A step of which all is known: its start-up overlaps the work of the one before, unless that one
// has to be over first (a mask is written, a barrier, a dependence).
void Engine::Resolve(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                     const When &ready, const Effort &effort) {
  double begin = std::max({waiting.issued, ready.time, unit.free});
  if ((step.flags & (kSetsMask | kBarrier)) != 0) begin = std::max(begin, unit.last);
  if (effort.head > 0 && begin >= unit.last && step.unit == kV) {
    totals_.heads += effort.head;
    costs_.Charge(table_.head, effort.head);
  }
  Wait(unit, waiting, ready, begin);
  const double end = std::max(unit.last, begin + effort.head + effort.work);
  unit.free = begin + effort.work + effort.gap;
  Leave(core, unit, step, begin, end);
}

// No work of its own: over with what came before it, and nothing waits for that to be over.
void Engine::Mark(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                  const When &ready) {
  const double turn = std::max({waiting.issued, ready.time, unit.free});
  const double end = std::max(unit.last, turn);
  Wait(unit, waiting, ready, end);
  unit.free = turn;
  Leave(core, unit, step, end, end);
}

// The first step of the queue is known to its end.
void Engine::Leave(CoreRun &core, Unit &unit, const Step &step, double begin, double end) {
  unit.busy += std::max(0.0, end - unit.busyUntil);
  unit.busyUntil = std::max(unit.busyUntil, end);
  unit.last = end;
  unit.finish[unit.begun] = end;
  unit.begins[unit.begun % unit.begins.size()] = begin;
  unit.begun += 1;
  unit.queue.pop_front();
  Note(core, step, begin, end, unit.pending.reason, unit.pending.wait);
}

void Engine::DoVector(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                      const When &ready) {
  const VectorStep &vector = step.vector;
  const VectorCosts &costs = table_.Vector(step.what);
  const std::size_t wide = std::max(BytesOf(step.type), BytesOf(vector.srcType)) > 2 ? 1 : 0;
  const double base = vector.repeats * costs_[costs.repeat[wide]];
  const BankCost &banks = banks_.Of(vector, step.type, costs.use);
  double conflicts =
      banks.slots * costs_[costs.conflict[wide]] + banks.partial * costs_[table_.partial];
  if (costs_[costs.repeat[wide]] < 2) conflicts += banks.readWrite * costs_[table_.readWrite];
  costs_.Charge(costs.repeat[wide], base);
  costs_.Charge(costs.conflict[wide], banks.slots * costs_[costs.conflict[wide]]);
  totals_.conflicts += conflicts;
  totals_.repeats += vector.repeats;
  totals_.elements += vector.elements;
  const double more = costs.head == kNoCost ? 0 : costs_[costs.head];
  const double work = std::max(costs_[table_.floor], base + conflicts);
  Resolve(core, unit, step, waiting, ready, {work, costs_[table_.head] + more, 0});
  Hold(core, unit.last - work, unit.last);
}

// The vector unit has the banks of UB first: transfers from and to it wait meanwhile. Those that
// begin later than it is known when the instruction runs do not.
void Engine::Hold(CoreRun &core, double from, double to) {
  const double part = costs_[table_.hold];
  if (part <= 0) return;
  const auto at = static_cast<std::uint32_t>(&core - cores_.data());
  for (const std::uint32_t unit : {kMte2, kMte3}) {
    Unit &mover = core.units[unit];
    if (mover.flights.empty()) continue;
    Flight &flight = mover.flights.front();
    if (flight.streams != kUnknown) {
      share_.Hold(at, unit, from, to, part);
      continue;
    }
    const double streams = std::max(flight.ready, mover.last + flight.gap);
    flight.stream.held += part * std::max(0.0, to - std::max(from, streams));
  }
}

// So many vector instructions over all of its data.
void Engine::DoLibrary(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                       const When &ready) {
  const double repeats = std::ceil(step.vector.elements * BytesOf(step.type) / 256);
  const Cost steps = table_.Library(step.what);
  const double one = std::max(costs_[table_.floor], repeats * costs_[table_.libraryRepeat]);
  const double work = costs_[steps] * (one + costs_[table_.head]);
  costs_.Charge(steps, work);
  totals_.repeats += static_cast<std::uint64_t>(repeats);
  totals_.elements += step.vector.elements;
  Resolve(core, unit, step, waiting, ready, {work, costs_[table_.head], 0});
}

// UB to UB: an instruction of the vector unit.
void Engine::DoMove(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                    const When &ready) {
  const PathCosts &path = table_.Path(step.what);
  CountPath(step, Demand());
  const double work = std::max(costs_[table_.floor], Alone(step, Inside(step)));
  paths_[step.what].busy += work;
  Resolve(core, unit, step, waiting, ready, {work, costs_[path.start], 0});
}

// Steps of 16 x 16 x (32 B); without HF32 a step of float takes twice as long.
void Engine::DoMmad(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                    const When &ready) {
  const MmadStep &mmad = step.mmad;
  const auto blocks = [](double count, double size) { return std::ceil(count / size); };
  const double tiles =
      blocks(mmad.m, 16) * blocks(mmad.n, 16) * blocks(mmad.k * BytesOf(step.type), 32);
  const bool slow = BytesOf(step.type) > 2 && mmad.hf32 == 0;
  const double work = tiles * costs_[table_.cubeTile] * (slow ? costs_[table_.cubeFloat] : 1);
  costs_.Charge(table_.cubeTile, work);
  costs_.Charge(table_.cubeGap, costs_[table_.cubeGap]);
  totals_.tiles += static_cast<std::uint64_t>(tiles);
  Resolve(core, unit, step, waiting, ready,
          {work, costs_[table_.cubeHead], costs_[table_.cubeGap]});
}

// Transfers of a unit overlap their latency; their bytes come one transfer after the other.
bool Engine::DoCopy(CoreRun &core, std::size_t at, const Step &step, const Waiting &waiting,
                    const When &ready) {
  Unit &unit = core.units[at];
  double begin = std::max({waiting.issued, ready.time, unit.free});
  const auto most = static_cast<std::uint64_t>(std::max(1.0, costs_[table_.outstanding]));
  if (unit.begun >= most) {
    const double room = unit.finish[unit.begun - most];
    if (room == kUnknown) return false;
    begin = std::max(begin, room);
  }
  if (GmRegion(step.copy) != 0) {
    Wait(unit, waiting, ready, begin);
    unit.scheduled = true;
    Push(begin, core, at, false);
    return false;
  }
  if (!unit.flights.empty()) return false;
  Local(core, unit, step, waiting, ready, begin);
  return true;
}

void Engine::Local(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                   const When &ready, double begin) {
  const PathCosts &path = table_.Path(step.what);
  Wait(unit, waiting, ready, begin);
  const double work = Alone(step, Inside(step));
  const double end = std::max(begin + costs_[path.start], unit.last + costs_[path.gap]) + work;
  const double used = end - std::max(unit.busyUntil, begin);
  costs_.Charge(path.start, costs_[path.start]);
  costs_.Charge(path.gap, costs_[path.gap]);
  CountPath(step, Demand());
  paths_[step.what].busy += used;
  unit.free = begin + costs_[path.issue];
  Leave(core, unit, step, begin, end);
}

// What a transfer inside the core asks for.
Demand Engine::Inside(const Step &step) {
  Demand demand;
  demand.bytes = static_cast<double>(step.copy.rows) * static_cast<double>(step.copy.bytes);
  return demand;
}

// Cycles that the bytes of a transfer take when nobody else is there.
double Engine::Alone(const Step &step, const Demand &demand) {
  const PathCosts &path = table_.Path(step.what);
  const bool nz = (step.flags & kNd2Nz) != 0;
  const Cost row = nz ? path.nzRow : path.row;
  const Cost slow = path.miss == kNoCost ? path.rate : path.miss;
  // FIX reads floats out of L0C, whatever it makes of them (8192^3 ladder: 64 B/cycle of halves).
  const double wide = path.fromL0c ? 4 / BytesOf(step.type) : 1;
  const double fast = (demand.bytes - demand.missed) * wide / costs_[path.rate];
  const double fetched = demand.missed / costs_[slow];
  const double times = (step.flags & kAtomic) != 0 ? costs_[table_.atomic] : 1;
  const double rows = step.copy.rows * costs_[row];
  const double requests = demand.requests * costs_[path.request];
  const double cycles = (fast + fetched) * times + requests;
  if (cycles >= rows) {
    costs_.Charge(path.rate, fast);
    costs_.Charge(slow, fetched);
    costs_.Charge(path.request, requests);
    return cycles;
  }
  costs_.Charge(row, rows);
  return rows;
}

}  // namespace twin
