// The L2 cache of the chip: which lines of global memory it holds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "read.h"

namespace twin {

// What one transfer asks of the memory system.
struct Demand {
  double bytes = 0;        // moved between core and L2
  double missed = 0;       // of those, fetched from HBM
  double hbm = 0;          // bytes over the HBM interface: fetched, bypassed and written back
  double requests = 0;     // pieces of rows, each inside a line
  double pieces = 0;       // of those, the ones of ragged rows
  std::uint64_t line = 0;  // the first one
  bool unaligned = false;  // not every row starts at a multiple of a line
};

struct CacheRules {
  double capacity = 0;     // bytes; 0: there is no cache
  double pieceBytes = 0;   // the least that a piece of a ragged row takes from HBM
  double bypassBytes = 0;  // the least that a request past the cache takes from HBM
  double writeBack = 1;    // a byte written to HBM takes as long as so many read from it
  double earlyBack = 0;    // share of the lines that go back to HBM as they are written
  double window = 512;     // bytes in which reads past the cache are in each other's way
};

// Lines of 512 B with four sectors each, replaced when unused for longest; what was written goes to
// HBM as soon as lines must go, in the order of writing.
class Cache {
 public:
  Cache(const std::vector<std::uint64_t> &regions, const CacheRules &rules);

  // One transfer begins. Lines are taken and given up in the order of its rows.
  Demand Take(const CopyStep &copy, std::uint8_t flags, bool write);
  // Time passes: what was written reaches HBM and stays. Between two launches there is enough of
  // it: a record of the matmul tuner writes 205 MB faster than HBM takes them (bank-0179).
  void Settle();

 private:
  // Links of the list of lines by last use; line 0 is the head of the list.
  struct Node {
    std::uint32_t older = 0, newer = 0;
    std::uint8_t valid = 0, dirty = 0;  // a bit for each sector
  };
  struct Free {
    void operator()(Node *nodes) const;
  };
  std::unique_ptr<Node[], Free> nodes_;
  std::vector<std::uint64_t> first_;  // line of each region
  std::uint64_t lines_ = 1, held_ = 0, most_ = 0;
  std::deque<std::uint32_t> written_;  // lines in the order of their first write; some clean again
  CacheRules rules_;
  bool roomy_ = false;  // there is room for every line: nobody has to go, and no order is kept

  void Row(Demand &demand, std::uint64_t from, std::uint64_t to, std::uint8_t flags, bool write);
  double Whole(std::uint64_t line, std::uint64_t count, bool write);
  double Fetch(std::uint64_t line, std::uint8_t sectors, std::uint8_t flags);
  double Store(std::uint64_t line, std::uint8_t sectors, std::uint8_t flags);
  double Use(std::uint64_t line);
  double Clean(std::uint64_t line);
  bool GoesEarly(std::uint64_t line) const;
  void Unlink(std::uint64_t line);
  void Link(std::uint64_t line);
};

// The addresses that a transfer of a log touches lie in one of its regions.
std::uint64_t GmOffset(const CopyStep &copy);
std::uint32_t GmRegion(const CopyStep &copy);

}  // namespace twin
