// The scalar unit: takes a core's steps in order, does its own and gives the others to their units.
#include <algorithm>

#include "engine.h"

namespace twin {

namespace {

// A step is given to its unit: its ticks are known from now on, its end is not.
void AddTicks(Unit &unit, std::uint32_t count) {
  if (count != 1 && unit.ticks.empty()) {
    for (std::uint64_t tick = 1; tick <= unit.finish.size(); ++tick) unit.ticks.push_back(tick);
    unit.many = true;
  }
  unit.lastTick += count;
  unit.finish.push_back(kUnknown);
  if (unit.many) unit.ticks.push_back(unit.lastTick);
  unit.steps += 1;
}

}  // namespace

// A core's own steps wait for earlier ones: anything else is not what a runtime recorded.
void Engine::CheckDeps(const CoreRun &core, const Step &step) {
  for (std::uint64_t i = core.dep; i < core.dep + step.deps; ++i) {
    const StepDep &on = core.log.deps[i];
    if (on.tick > core.units[on.unit].lastTick) {
      throw BadLog{"a step waits for one that comes after it"};
    }
  }
}

bool Engine::Issue(CoreRun &core) {
  if (core.at == core.log.head->steps || core.joins) return false;
  const Step &step = core.log.steps[core.at];
  CheckDeps(core, step);
  if (!(step.unit == kS ? DoScalar(core, step) : GiveStep(core, step))) return false;
  core.at += 1;
  core.dep += step.deps;
  if (step.kind == StepKind::kJoin) core.join += step.other.joins;
  return true;
}

// The scalar unit is busy for the cycles of one constant.
void Engine::Spend(CoreRun &core, Cost cost) {
  core.now += costs_[cost];
  core.units[kS].busy += costs_[cost];
  costs_.Charge(cost, costs_[cost]);
}

// A full queue lets the next step in when its oldest one begins.
bool Engine::GiveStep(CoreRun &core, const Step &step) {
  Unit &unit = core.units[step.unit];
  Unit &scalar = core.units[kS];
  const std::uint64_t depth = unit.begins.size(), index = unit.finish.size();
  if (index >= depth) {
    if (unit.begun <= index - depth) return false;
    const double room = unit.begins[index % depth];
    if (room > core.now) {
      scalar.waits[kForQueue] += room - core.now;
      costs_.Charge(table_.depth, room - core.now);
      core.now = room;
    }
  }
  if (step.kind != StepKind::kScalar) {
    Spend(core, table_.issue);
    if (core.fresh) Spend(core, table_.readUse);
    core.fresh = false;
  }
  AddTicks(unit, step.count);
  unit.queue.push_back({core.at, core.dep, core.now});
  return true;
}

bool Engine::DoScalar(CoreRun &core, const Step &step) {
  const When deps = DepTime(core, step, core.dep);
  if (deps.time == kUnknown) return false;
  const When others = step.kind == StepKind::kJoin ? JoinTime(core, step) : When();
  if (others.time == kUnknown) return false;
  Unit &unit = core.units[kS];
  const double began = core.now;
  int reason = kNoReason;
  if (deps.time > core.now) {
    reason = static_cast<int>(deps.unit);
    unit.waits[deps.unit] += deps.time - core.now;
    core.now = deps.time;
  }
  if (others.time > core.now) {
    reason = kForCores;
    unit.waits[kForCores] += others.time - core.now;
    core.now = others.time;
  }
  const double start = core.now;
  const bool join = step.kind == StepKind::kJoin;
  const Cost cost = join ? table_.Join(step.what) : table_.Scalar(step.what);
  if (cost == table_.read || cost == table_.write) core.fresh = cost == table_.read;
  const double cycles = costs_[cost] * (join ? 1 : std::max(step.count, step.other.times));
  costs_.Charge(cost, cycles);
  if (join)
    unit.waits[kForCores] += cycles;
  else
    unit.busy += cycles;
  core.now += cycles;
  AddTicks(unit, step.count);
  unit.finish.back() = core.now;
  unit.begun += 1;
  Note(core, step, start, core.now, reason, start - began);
  return true;
}

// When the other cores have come as far as the step wants; else who has not.
When Engine::JoinTime(CoreRun &core, const Step &step) {
  When when;
  for (std::uint64_t i = core.join; i < core.join + step.other.joins; ++i) {
    const StepJoin &join = core.log.joins[i];
    if (join.core >= byNumber_.size() || byNumber_[join.core] == UINT32_MAX) {
      throw BadLog{"a core waits for one that is not there"};
    }
    const std::uint32_t other = byNumber_[join.core];
    for (std::size_t unit = 0; unit < kLogUnits; ++unit) {
      const double time = TickTime(cores_[other], unit, join.ticks[unit]);
      if (time == kUnknown) {
        core.joins = true;
        core.joinCore = other;
        core.joinUnit = unit;
        core.joinTick = join.ticks[unit];
        joining_.push_back(static_cast<std::uint32_t>(&core - cores_.data()));
        return {kUnknown, unit};
      }
      if (time > when.time) when = {time, unit};
    }
  }
  return when;
}

}  // namespace twin
