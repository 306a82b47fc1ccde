// One core of a log as it runs: what its units were given, have begun and have finished.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "read.h"
#include "share.h"

namespace twin {

constexpr std::size_t kS = 0, kV = 1;
constexpr std::uint32_t kMte2 = 4, kMte3 = 5;
constexpr double kUnknown = -1;  // a time that is not known yet

// Why a unit stood still: a unit that it waited for (0..6), or one of these.
enum Reason : std::uint8_t { kForIssue = kLogUnits, kForQueue, kForMemory, kForCores, kForEnd };
constexpr std::size_t kReasons = kForEnd + 1;
constexpr int kNoReason = -1;

// A step that waits in the queue of its unit.
struct Waiting {
  std::uint64_t step, dep;  // indices among those of the core
  double issued;
};

// When something can be: `time` is kUnknown while it depends on what has not ended; `unit` is the
// one that was last.
struct When {
  double time = 0;
  std::size_t unit = kReasons;
};

// Why the step that a unit takes next did not come earlier, and for how long the unit stood still.
struct Pending {
  int reason = kNoReason;
  double wait = 0;
};

// A transfer from or to global memory between its begin and its end.
struct Flight {
  std::uint64_t step, index;  // of the core; of its unit
  double begin, ready;        // ready: the first byte can come
  double gap;                 // so many cycles after the last byte of the one before
  double streams;             // since when bytes come
  Pending why;
  Stream stream;
};

struct Unit {
  std::deque<Waiting> queue;
  std::deque<Flight> flights;
  std::vector<double> finish;        // of each step; kUnknown while it waits or runs
  bool many = false;                 // a step stood for several ticks, or none:
  std::vector<std::uint64_t> ticks;  // then the last tick of each
  std::uint64_t lastTick = 0;
  std::vector<double> begins;  // of the last `depth` steps, in a ring
  std::uint64_t begun = 0;
  double free = 0;         // when the next may begin
  double last = 0;         // when the one before ended
  double busyUntil = 0;    // up to here `busy` and `waits` account for the time
  bool scheduled = false;  // the begin of the next transfer is an event
  Pending pending;

  std::uint64_t steps = 0;
  double busy = 0;
  std::uint64_t over = 0;  // steps that have ended
  // When this step of the unit was over, and `busy` then: the middle, where steps were dropped.
  std::uint64_t middle = UINT64_MAX, late = UINT64_MAX;  // late: three quarters
  double half = kUnknown, halfBusy = 0, lateTime = kUnknown;
  std::array<double, kReasons> waits{};
};

struct CoreRun {
  CoreLog log;
  std::array<Unit, kLogUnits> units;
  std::uint64_t at = 0, dep = 0, join = 0;  // where the scalar unit is
  double begin = 0, now = 0, end = 0;       // now: of the scalar unit
  bool fresh = false;                       // it has read a value that no instruction used yet
  bool joins = false;                       // the scalar unit waits for a tick of another core:
  std::size_t joinCore = 0, joinUnit = 0;
  std::uint64_t joinTick = 0;
};

}  // namespace twin
