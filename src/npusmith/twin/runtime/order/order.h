// Who has seen whose work: vector clocks over the pipes of a core, and over cores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "twin/runtime.h"

namespace twin {

struct Core;
struct Region;
enum class Memory : std::uint8_t;

constexpr std::size_t kUnits = 7;  // S, V, M, MTE1, MTE2, MTE3, FIX
std::size_t UnitOf(pipe_t pipe);
const char *UnitName(std::size_t unit);

// How far each pipe of one core is known to have come.
// The last is what its scalar unit had begun, waited for or not: stores of that unit are as good as
// made for whoever hears of the core.
using Ticks = std::array<std::uint32_t, kUnits + 1>;
constexpr std::size_t kBegun = kUnits;
inline void Advance(Ticks &to, const Ticks &from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] > from[i] ? to[i] : from[i];
}

// The same for every core of the launch; empty until cores meet.
using Others = std::vector<Ticks>;

// What was done when a flag was set: whoever waits for it has seen that.
struct Stamp {
  int core = -1;  // who left it; -1: nobody did
  Ticks own{};
  std::uint32_t issued = 0;  // what its scalar unit had begun by then
  std::shared_ptr<const Others> others;  // what that core knew of all cores
};
// Both stamps in one: what a barrier of many cores collects.
void OrderMerge(Stamp &into, const Stamp &from);

// What one core's pipes have seen. Starts again with each block.
struct Marks;  // who touched which on-chip bytes last
struct Clocks {
  Ticks now{};                      // instructions begun on each pipe
  std::array<Ticks, kUnits> seen{};  // of whose work each pipe's next instruction can be sure
  std::shared_ptr<Others> others;
  std::shared_ptr<Marks> marks;
};

// An instruction starts on a pipe.
void OrderIssue(Core &core, pipe_t unit);
// The instruction of the present call touches on-chip bytes: `run` bytes at every `pitch` from addr
// on, up to addr + bytes (run 0: all of them).
void OrderTouch(Core &core, const Call &call, Memory memory, std::int64_t addr, std::int64_t bytes,
                std::int64_t run, std::int64_t pitch, bool write);
// How an access gets to global memory: by a pipe that moves data, or from the scalar unit through
// its data cache or past it (ReadGmByPassDCache and its like).
enum class Way : std::uint8_t { kPipe, kCache, kPastCache };
// The same for global memory.
void OrderTouchGm(Core &core, const Call &call, const Region &region, const std::uint8_t *base,
                  std::int64_t bytes, std::int64_t run, std::int64_t pitch, bool write, Way way);
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
// Something else that whoever has waited for this core knows: kept beside what it knows of cores,
// at a number that is no core's.
void OrderLearn(Core &core, int number, const Ticks &ticks);
// The data cache of the scalar unit is written back and emptied: the line at `base`, or all of it
// (base null).
void OrderClean(Core &core, const std::uint8_t *base);
// The present call is done: what overlapping writes of cores left can be compared.
void OrderSettle();
// A core begins, a launch begins, a launch is over.
void OrderBegin(Core &core);
void OrderLaunch();
void OrderFinish();

// Is what a pipe of `core` did at `time` certain to be over for the present instruction on `unit`?
bool OrderKnows(const Core &reader, std::size_t unit, int core, std::size_t by, std::uint32_t time);

// Every core of the launch has a number of its own.
int OrderNumber(const Core &core);
std::string OrderName(int number);

// Where an access came from: calls by number, so that they can be kept by the thousand.
std::uint32_t PlaceNumber(const Call &call);
const Call &PlaceAt(std::uint32_t number);
std::uint32_t PlaceCount();
void OrderPlacesReset();

}  // namespace twin
