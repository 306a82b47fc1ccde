// What is known of each byte on a core: written, padding, or never written.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "twin/runtime.h"

namespace twin {

struct Core;
struct Plan;
struct Operand;
enum class Memory : std::uint8_t;

// In order of badness: what is made of two bytes is as bad as the worse one.
enum class Known : std::uint8_t {
  kData,
  kPadding,  // filler of DataCopyPad that the user did not choose
  kTainted,  // computed from what was never written
  kNever     // never written
};

// The state of every byte of one memory. A chunk of one state is kept as that state alone.
struct Film {
  static constexpr std::int64_t kChunk = 256;
  std::vector<std::uint8_t> chunks;  // a Known, or kMixed: look at the bytes
  std::vector<std::uint8_t> bytes;
};

// Starts again with each block.
struct Shadow {
  std::array<std::shared_ptr<Film>, 7> films;  // by Memory
  struct Written {
    Memory memory;
    std::int64_t low, high;
  };
  // What the present call writes; it counts as data when the next call begins, unless the
  // operation has said better.
  std::vector<Written> pending;
};

// The present call writes these bytes.
void ShadowWrites(Core &core, Memory memory, std::int64_t low, std::int64_t high);
// The present operation has set the state of all that it wrote.
void ShadowDone(Core &core);
// A call begins.
void ShadowIssue(Core &core);

void ShadowSet(Core &core, Memory memory, std::int64_t low, std::int64_t high, Known known);
bool ShadowClean(Core &core, Memory memory, std::int64_t low, std::int64_t high);
// The worst of the bytes.
Known ShadowOf(Core &core, Memory memory, std::int64_t low, std::int64_t high);
// Did anybody write one of the bytes?
bool ShadowTouched(Core &core, Memory memory, std::int64_t low, std::int64_t high);
// UB bytes behind a raw pointer: what happens there is not seen, so they count as data.
void ShadowForget(Core &core, Memory memory, std::int64_t addr);

// A move inside one memory.
void ShadowMove(Core &core, Memory memory, std::int64_t to, std::int64_t from, std::int64_t bytes);
// From and to global memory; `gm` lies in a region of the launch.
void ShadowLoad(Core &core, Memory memory, std::int64_t to, const std::uint8_t *gm,
                std::int64_t bytes);
void ShadowStore(Core &core, Memory memory, std::int64_t from, const std::uint8_t *gm,
                 std::int64_t bytes);
// Elements that are taken one by one from other places of UB, as by Gather: what each destination
// byte then is goes to the list, which ShadowGive puts down when all have been taken.
using Taken = std::vector<std::pair<std::int64_t, Known>>;  // address of a byte, state
void ShadowTake(Core &core, Taken &taken, std::int64_t to, std::int64_t from, std::int64_t bytes);
void ShadowGive(Core &core, const Taken &taken);
// The present call takes these bytes as offsets: false after reporting what was never written.
bool ShadowReadIndex(Core &core, const Call &call, const char *role, std::int64_t addr,
                     std::int64_t bytes);
// An element-wise instruction: operands[0] is the destination.
void ShadowLanes(Core &core, const Plan &plan, const Operand *operands, int count);
// Select: each lane is as the source that its bit takes, 1 the first; with one source the other
// is a scalar. `reuse`: every repeat takes the bits of the first.
void ShadowSelect(Core &core, const Plan &plan, const Operand *operands, int count,
                  const std::uint8_t *bits, bool reuse);

// A reduction: every `group` active lanes of a repeat (0: everything) give `bytes` at
// dst + repeat * pitch + group number * bytes.
struct Folded {
  std::int64_t dst, bytes, pitch, group;
};
void ShadowFold(Core &core, const Call &call, const Plan &plan, const Operand &src,
                const Folded &folded);

// The scalar unit reads an element: reports what must not be read.
void ShadowReadScalar(Core &core, const Call &call, Memory memory, std::int64_t addr,
                      std::int64_t bytes);

// Do the bytes still hold what memory begins with? If not, somebody wrote them by a raw pointer.
bool StillPoison(const std::uint8_t *at, std::int64_t bytes);

}  // namespace twin
