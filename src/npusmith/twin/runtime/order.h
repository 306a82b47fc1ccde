// Who has seen whose work: vector clocks over the pipes of a core, and over cores.
#pragma once

#include <cstdint>
#include <vector>

#include "twin/runtime.h"

namespace twin {

struct Core;
struct Region;
enum class Memory : std::uint8_t;

// What one core's pipes have seen. Starts again with each block.
struct Clocks {};

// What was done when a flag was set: whoever waits for it has seen that.
struct Stamp {};

// An instruction starts on a pipe.
void OrderIssue(Core &core, pipe_t unit);
// The instruction of the present call touches on-chip bytes: `run` bytes at every `pitch` from addr
// on, up to addr + bytes (run 0: all of them).
void OrderTouch(Core &core, const Call &call, Memory memory, std::int64_t addr, std::int64_t bytes,
                std::int64_t run, std::int64_t pitch, bool write);
// The same for global memory; `scalar`: through the data cache of the scalar unit.
void OrderTouchGm(Core &core, const Call &call, const Region &region, const std::uint8_t *base,
                  std::int64_t bytes, std::int64_t run, std::int64_t pitch, bool write,
                  bool scalar);
// Events inside a core.
void OrderSet(Core &core, AscendC::HardEvent event, int id);
void OrderWait(Core &core, AscendC::HardEvent event, int id);
void OrderBarrier(Core &core, pipe_t pipe);
// What a queue does by itself: EnQue and FreeTensor leave a stamp, DeQue and AllocTensor take it.
Stamp OrderStamp(Core &core, pipe_t from);
void OrderTake(Core &core, const Stamp &stamp, pipe_t to);
// Between cores: a flag published after the work of a pipe (PIPE_ALL: of all pipes), and taken by a
// core that waited for it with all its pipes.
void OrderJoin(Core &core, const Stamp &stamp);
// A core begins, a launch begins.
void OrderBegin(Core &core);
void OrderLaunch();

}  // namespace twin
