// What hazards are found with: who touched which bytes last. Private to the order of a core.
#pragma once

#include <optional>
#include <unordered_map>

#include "core.h"
#include "order/ranges.h"

namespace twin {

// One access: the instruction's number on its pipe, and the place of its call.
struct Trace {
  std::uint32_t time = 0;  // 0: none
  std::uint32_t place = 0;
  bool operator==(const Trace &o) const { return time == o.time && place == o.place; }
};

// Bytes of an on-chip memory: the last write, and each pipe's last read since.
struct Cell {
  Trace write;
  std::size_t writer = 0;
  std::array<Trace, kUnits> reads{};
  bool operator==(const Cell &o) const {
    return write == o.write && writer == o.writer && reads == o.reads;
  }
};

struct Marks {
  std::array<std::optional<Ranges<Cell>>, kMemories> memories;
  std::array<std::array<Ticks, kEvents>, kHardEvents> flags{};
  // the data cache: lines that the scalar unit has read, with the launch's access count then
  std::unordered_map<const std::uint8_t *, std::uint64_t> lines;
  std::uint32_t cleaned = 0;  // scalar writes up to this instruction have left the cache
};

// How an access clashes with an earlier one.
enum class Clash : std::uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };

// Reports a hazard inside a core, or counts it where the compiler's auto-sync hides it; after that
// the pipes count as ordered, so that one missing event is told once. `where`: "UB bytes 0..63".
void ReportHazard(Core &core, const Call &call, const std::string &where, Clash clash,
                  std::size_t earlier, const Trace &trace);

// Each row of a strided footprint: act(low, high) with offsets from its start.
template <typename Act>
void OverRows(std::int64_t bytes, std::int64_t run, std::int64_t pitch, Act act) {
  if (run <= 0 || pitch <= run || run >= bytes) return act(std::int64_t{0}, bytes);
  for (std::int64_t at = 0; at < bytes; at += pitch) act(at, std::min(at + run, bytes));
}

}  // namespace twin
