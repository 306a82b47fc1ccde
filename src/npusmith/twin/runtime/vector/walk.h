// How a vector instruction walks over its operands: repeats, blocks, masks.
#pragma once

#include "check.h"

namespace twin {

// What a loop does with n contiguous elements: d = f(d, a, b, scalar).
using Loop = void (*)(void *d, const void *a, const void *b, const void *scalar, std::int64_t n);

struct Operand {
  const char *role;
  Lane lane;
  DType type;
  std::int64_t align = kBlock;
  std::uint8_t *base = nullptr;
  bool updates = false;  // a destination whose old contents go into the result
};

// A walk as executed: whole repeats under one mask, then perhaps one shorter repeat.
struct Plan {
  std::int64_t lanes;    // elements of a repeat
  std::int64_t repeats;  // under `mask`
  std::uint64_t mask[2];
  std::int64_t last;  // highest active lane of mask, -1 when none
  std::int64_t tail;  // elements of a last, shorter repeat
  bool full;          // every lane of `mask` is active
  bool counted;       // a count form: operands are contiguous

  bool empty() const { return (repeats == 0 || last < 0) && tail == 0; }
};

// Reads mask registers and arguments; false after reporting a parameter out of range.
// Sets the mask registers as the instruction does.
bool MakePlan(Core &core, const Call &call, const Walk &walk, std::int64_t lanes, Plan &plan);

// Bytes from an operand's start to the last byte that the plan touches.
std::int64_t Footprint(const Plan &plan, const Lane &lane, int size);

// Checks all operands; false after reporting. Fills in their addresses.
bool CheckOperands(Core &core, const Call &call, const Plan &plan, Operand *operands, int count);

// Reports a destination that overlaps a source in a way that the hardware does not define.
void CheckOverlap(const Call &call, const Plan &plan, const Operand &dst, const Operand &src,
                  bool accumulates);

// Runs the loop over every active element. operands[0] is the destination.
void Execute(const Plan &plan, const Operand *operands, int count, Loop loop, const void *scalar);

// Copies one repeat of an operand into contiguous memory and back (active lanes only).
void GatherRepeat(const Operand &operand, std::int64_t repeat, std::int64_t elements, void *out);
void ScatterRepeat(const Operand &operand, std::int64_t repeat, std::int64_t elements,
                   const std::uint64_t *mask, const std::uint8_t *from);

// Where lane `lane` of a repeat lies.
inline std::int64_t LaneAddress(const Operand &operand, std::int64_t repeat, std::int64_t lane) {
  const std::int64_t size = SizeOf(operand.type), perBlock = kBlock / size;
  return operand.lane.view.addr +
         (repeat * operand.lane.repeat + lane / perBlock * operand.lane.block) * kBlock +
         lane % perBlock * size;
}

// True when lane i of the mask is active.
inline bool Active(const std::uint64_t *mask, std::int64_t lane) {
  return (mask[lane / 64] >> (lane % 64)) & 1u;
}

}  // namespace twin
