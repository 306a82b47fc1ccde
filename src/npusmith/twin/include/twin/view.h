// What the runtime is told about a tensor: never trusted, checked at every use.
#pragma once

#include <cstdint>

#include "twin/types.h"

namespace twin {

constexpr std::int32_t kNoBuffer = -1;

// A piece of on-chip memory.
struct View {
  std::int64_t addr = 0;   // bytes from the start of its memory
  std::int64_t bytes = 0;  // from addr to the end of the tensor
  std::int32_t buffer = kNoBuffer;  // which InitBuffer piece it was cut from
  std::uint32_t generation = 0;     // of that buffer, raised by FreeTensor
  AscendC::TPosition position = AscendC::TPosition::MAX;
};

// A piece of global memory; `bytes` is negative when SetGlobalBuffer was given no size.
struct Gm {
  std::uint8_t *base = nullptr;
  std::int64_t bytes = -1;
  std::uint8_t uncached = 0;  // a CacheRwMode: transfers of these kinds leave nothing in L2
  bool bypass = false;        // scalar accesses go past the core's data cache
};

// An operand of a vector instruction: strides in 32-byte blocks, inside and between repeats.
struct Lane {
  View view;
  std::int64_t block = 1;
  std::int64_t repeat = 8;
};

// Which elements a vector instruction touches.
struct Walk {
  enum class Kind : std::uint8_t { kCount, kMask, kBits, kRegister };
  Kind kind;
  std::int64_t count;    // kCount: elements; kMask: lanes per repeat
  std::uint64_t bits[2];  // kBits: lanes per repeat, low word first
  std::int64_t repeats;
};

inline Walk Counted(std::int64_t count) { return {Walk::Kind::kCount, count, {0, 0}, 0}; }

inline Walk Masked(bool set, std::uint64_t mask, std::int64_t repeats) {
  const auto kind = set ? Walk::Kind::kMask : Walk::Kind::kRegister;
  return {kind, static_cast<std::int64_t>(mask), {0, 0}, repeats};
}

inline Walk Masked(bool set, const std::uint64_t *mask, std::int64_t repeats) {
  if (!set) return {Walk::Kind::kRegister, 0, {0, 0}, repeats};
  return {Walk::Kind::kBits, 0, {mask[0], mask[1]}, repeats};
}

}  // namespace twin
