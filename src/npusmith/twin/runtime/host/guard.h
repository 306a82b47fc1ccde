// Runs a step that may crash, abort, overflow its stack or never end, and says how it ended.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>

#include "twin/launch.h"

namespace twin::host {

enum class End { kReturned, kCrashed, kTimedOut, kOutOfMemory };

struct Outcome {
  End end = End::kReturned;
  int signal = 0;
  const void *address = nullptr;  // that was touched, for a memory fault
  bool stackOverflow = false;
  bool stoppedByException = false;
  std::string exception;
  Spot spot{"", 0, -1, ""};  // the last API call that had started
};

// Seconds on the clock for one of processor time: a busy machine changes no verdict, and what
// sleeps ends nevertheless. The sandbox allows as much (twin/launch.py).
constexpr double kPatience = 4;

// To be called once, before the first Guarded: sets the handlers and the time limit, in seconds of
// processor time.
void StartDeadline(double seconds, const std::string &notePath);
// Only one guarded step runs at a time, on the main thread. After anything but kReturned the
// process is good for writing its report and nothing else.
Outcome Guarded(const char *phase, const std::function<void()> &step);

}  // namespace twin::host
