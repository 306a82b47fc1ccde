// Control registers of the vector core that vector instructions look at.
#pragma once

#include <cstdint>
#include <vector>

#include "twin/types.h"

namespace twin {

struct Core;

constexpr int kFloatBit = 48;  // of CTRL; 1: infinities and NaN stay (doc: SetCtrlSpr)
constexpr int kCastBit = 59;   // of CTRL; 1: casts to integers keep the low bits

// A piece of a memory that TBufPool divides.
struct Pool {
  AscendC::TPosition position;
  std::int64_t addr, bytes;
  std::int64_t used;     // of it, by its own buffers and pools
  std::int64_t outside;  // where the pipe itself stood while the pool's InitBuffer runs
};

constexpr int kStackQueue = -2;  // the queue of a tensor that PopStackBuffer made

struct Control {
  std::uint64_t ctrl = 0;
  bool floatChosen = false;  // by the kernel; else the launch says how floats saturate
  std::uint64_t deq = 0;     // DEQSCALE
  std::int64_t deqTable = -1;  // UB address of 16 such words, -1 without
  std::vector<Pool> pools;
  int stack = -1;  // the buffer that PopStackBuffer gave out last
  std::uint64_t rows[8][8] = {};  // VA0 .. VA7: UB addresses for scatter_vnchwconv
};

// half arithmetic, and casts to half and bfloat16_t, turn infinities into the largest number and
// NaN into 0; integer arithmetic stops at its limits.
bool SaturatesFloat(const Core &core);
// Casts to integers stop at the limits of the type.
bool SaturatesCast(const Core &core);

}  // namespace twin
