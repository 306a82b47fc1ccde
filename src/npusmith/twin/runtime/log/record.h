// Keeps what the timing model needs while a kernel runs; nothing of it changes a value. Every call
// is cheap and does nothing when the launch is not recorded.
#pragma once

#include <atomic>

#include "log/log.h"
#include "order/order.h"
#include "vector/walk.h"

namespace twin {

// Is this launch recorded? Are its values left out (LaunchSpec::dry)?
struct RecordMode {
  std::atomic<bool> on{false}, dry{false};
};
// Asked at every call of the API, so not one for each thread as the rest of a launch's state: a
// launch that is recorded, or dry, must be the only one of its process.
extern RecordMode recordMode;
inline bool Recording() { return recordMode.on.load(std::memory_order_relaxed); }
inline bool Dry() { return recordMode.dry.load(std::memory_order_relaxed); }

// One step begins whenever a unit's clock ticks (Enter, MoveTo): unit and place are known. What it
// is comes from the functions below, which speak of the step that was begun last, on whatever core;
// a step of which nothing is said is scalar work named "call" (on a unit other than S: no work).
void RecordBegin(Core &core, pipe_t unit);
// `what` is a literal, in all of these.
void RecordScalar(const char *what, std::uint8_t flags = 0);
// The present scalar step has changed who holds which piece of UB.
void RecordHeld(const Core &core);
inline bool SetsMask(const Walk &walk) { return walk.kind != Walk::Kind::kRegister; }
void RecordVector(const char *what, const Plan &plan, const Operand *operands, int count,
                  bool setsMask);
// Vector work without a plan: `repeats` of 256 B each over contiguous operands at byte addresses
// (-1: no such operand).
void RecordVectorRaw(const char *what, DType type, std::int64_t repeats, std::int64_t elements,
                     std::int64_t dst, std::int64_t src0, std::int64_t src1, bool setsMask);
// A library function: `elements` of input, in the type of the data. Its name may be the API's.
void RecordLibrary(const char *what, DType type, std::int64_t elements);
// Transfers. gm is null when no global memory is touched.
void RecordCopy(const char *path, DType type, std::int64_t rows, std::int64_t bytes,
                const std::uint8_t *gm, std::int64_t gmPitch, std::int64_t local,
                std::uint8_t flags = 0);
// What the hints of a GlobalTensor say of a read (CacheRwMode 1) or write (2).
inline std::uint8_t CacheFlag(const Gm &gm, AscendC::CacheRwMode kind) {
  const bool off = (gm.uncached & static_cast<std::uint8_t>(kind)) != 0;
  return static_cast<std::uint8_t>(off ? kNoL2 : 0);
}
void RecordMmad(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulates,
                bool hf32);
// A whole further step on a unit that no Enter has begun: what an object of the library (Matmul)
// makes of one call. It advances that unit's clock, so that later waits count it.
void RecordExtra(Core &core, pipe_t unit);
// The core's last step waits for all that `unit` has been given so far, or for one tick of it.
void RecordAfter(Core &core, pipe_t unit);
void RecordWaitTick(Core &core, pipe_t unit, std::uint32_t tick);
// What `unit` has seen since its last step is no wait of the hardware: after a hazard was reported
// the pipes count as ordered (order.cpp), but nothing makes them so.
void RecordKeep(Core &core, pipe_t unit);
void RecordForget(Core &core, pipe_t unit);
// The core's last step waits for another core: `own` ticks of core `number`. Gives the number of
// the wait among the core's, kNoJoin when none was kept.
constexpr std::uint32_t kNoJoin = ~0u;
std::uint32_t RecordJoin(Core &core, const char *what, int number, const Ticks &own);
// What that wait of core `number` was for, when it is known only later.
void RecordJoinLate(int number, std::uint32_t join, const Ticks &ticks);

void RecordCoreBegin(Core &core);
void RecordResume(Core &core);  // it goes on: its last step is the last one again
void RecordCoreEnd(Core &core, bool ended);
void RecordLaunch();                 // opens the log where LaunchSpec::log asks for one
void RecordFinish(bool completed);   // closes it

}  // namespace twin
