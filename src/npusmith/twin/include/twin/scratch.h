// How much scratch the library functions of sorting, reducing and reordering need: one place for
// the host's GetXxxTmpSize and for the kernel's check. Bytes.
#pragma once

#include <cstdint>

#include "twin/chip.h"

namespace twin {

constexpr std::int64_t kSortItem = 8;  // a score and its index (doc: Sort32)

constexpr std::int64_t RoundUp(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Sorted runs wait in scratch while they are merged into the destination.
constexpr std::int64_t SortScratch(std::int64_t count) { return count * kSortItem; }

// guess: one row as sorted items, twice, because a merge needs another place than its sources
constexpr std::int64_t TopKScratch(std::int64_t inner) { return 2 * inner * kSortItem; }

// doc: GetSumMaxMinTmpSize follows ReduceSum: one value a repeat, padded to a block
constexpr std::int64_t SumScratch(std::int64_t count, std::int64_t size) {
  const std::int64_t perRepeat = TWIN_REPEAT_BYTES / size;
  return RoundUp((count + perRepeat - 1) / perRepeat * size, TWIN_BLOCK_BYTES);
}

// guess: what one repeat needs; the vendor publishes no formula
constexpr std::int64_t LeastScratch() { return TWIN_REPEAT_BYTES; }

// doc: table of sharedTmpBuffer sizes of the basic Transpose
constexpr std::int64_t NchwScratch(std::int64_t channels, std::int64_t size, bool toNhwc) {
  const std::int64_t square = (size == 1 ? 32 : 16) * TWIN_BLOCK_BYTES;
  return (toNhwc ? channels + 2 : 2 * channels + 1) * square;
}

}  // namespace twin
