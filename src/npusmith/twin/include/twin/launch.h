// Running a kernel: what the runner hands to the runtime and what comes back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace twin {

// A piece of global memory that the kernel may touch. `writable` is false for inputs and tiling.
struct Region {
  std::uint8_t *base;
  std::uint64_t bytes;
  std::string name;
  bool writable;
  std::uint64_t pad = 0;  // bytes behind it that belong to its allocation
  bool blank = false;    // holds poison: reading it before writing is an error
  bool scratch = false;  // nobody looks at it after the launch
  bool table = false;    // tiling data and lists of tensors: kernels read them through pointers
  bool unnamed = false;  // a program's own memory: nobody says which of its bytes are results
};

enum class KernelType { kAivOnly, kAicOnly, kMixAiv10, kMixAic10, kMixAic11, kMixAic12 };

struct LaunchSpec {
  void (*entry)(void **args);  // calls the user's kernel with its pointer arguments
  void **args;
  std::size_t argCount = 0;
  std::uint32_t blocks;
  std::uint64_t tilingKey;
  std::vector<Region> regions;
  bool saturate = false;  // how CTRL[48] starts: the documents give both (aclrtSetDeviceSatMode)
  std::uint32_t maxFindings = 64;  // distinct (code, file, line)
  bool autoSync = true;            // the compiler's --cce-auto-sync, on by default as in CANN
  bool notes = false;              // also report what costs time, and what auto-sync hides
  std::uint32_t shuffle = 0;       // seed of another order of the blocks; 0: their own
  KernelType type = KernelType::kAivOnly;
  void (*cube)(void **args) = nullptr;  // the entry as compiled for cube cores
  std::string log;                      // file for the timing model (runtime/log.h); empty: none
  std::uint64_t mostSteps = 4000000;    // of the log, for each core; more are counted only
  bool dry = false;  // values are neither moved nor computed nor checked; all the rest happens
  void (*ready)() = nullptr;  // called when the files of the launch are open, before its code runs
  std::uint32_t ends = 0;  // only so many blocks at either end run; 0: all of them
};

// One violation; repetitions of the same code, file and line raise `count`.
struct FindingRecord {
  std::string code;     // a key of npusmith.errors.CODES
  std::string level;    // "error", "warning" or "note"
  std::string message;  // e.g. "DataCopy of 100 B is not a multiple of 32 B"
  std::string file;
  int line = 0;
  int core = -1;
  long step = -1;  // how often that line had run on that core
  std::uint64_t count = 1;
  std::string seen, legal, hint;
};

// Runs every block to its end (or to a deadlock), each as a fibre, in block order, on one thread.
// Returns false when the kernel could not finish (deadlock, or a core stopped by a fatal finding).
bool Launch(const LaunchSpec &spec);

// Findings of all launches so far, in order of first occurrence; the list is emptied.
std::vector<FindingRecord> TakeFindings();

// What a kernel printed with one call, in the order of the calls.
struct PrintRecord {
  int core = -1;
  std::string api;  // printf, PRINTF, DumpTensor, DumpAccChkPoint
  std::string file;
  int line = 0;
  std::string text;
};

// What all launches so far have printed, up to 1 MB; the list is emptied.
std::vector<PrintRecord> TakePrints();

// Names of the APIs that all launches so far have called, sorted; the list is emptied.
std::vector<std::string> TakeApis();

// Instructions that the cores of all launches so far began, of those that ended; starts again at 0.
std::uint64_t TakeInstructions();

// The spot that runs right now, for the crash handler ("" when no kernel runs).
struct Spot {
  const char *file;
  int line;
  int core;
  const char *api;
};
Spot CurrentSpot();

}  // namespace twin
