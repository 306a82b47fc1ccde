// The constants of a log's steps, looked up once for each name.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bank.h"
#include "costs.h"
#include "read.h"

namespace twin {

// A transfer over one path, in cycles and bytes a cycle.
struct PathCosts {
  Cost start, rate, issue, row, nzRow, request, gap;
  bool fromL0c = false;  // FIX reads floats, whatever it writes
  Cost miss = kNoCost;   // of global memory: the rate of what L2 does not hold
};

struct VectorCosts {
  std::array<Cost, 2> repeat;    // cycles for 256 B: types of 16 bits and less, wider ones
  std::array<Cost, 2> conflict;  // for each further row that a bank group has to serve
  Cost head;                     // beyond vector.head; kNoCost: nothing
  DestinationUse use;
};

class Table {
 public:
  Table(Costs &costs, const Log &log);

  Cost Scalar(std::uint16_t what) const { return scalar_[what]; }
  Cost Join(std::uint16_t what) const { return join_[what]; }
  Cost Library(std::uint16_t what) const { return library_[what]; }
  const VectorCosts &Vector(std::uint16_t what) const { return vector_[what]; }
  const PathCosts &Path(std::uint16_t what) const { return path_[what]; }
  // Does a transfer over this path write to global memory?
  bool Writes(std::uint16_t what) const { return writes_[what]; }

  Costs &costs;
  Cost issue, depth, outstanding;                       // of the queues between S and the pipes
  Cost head, floor, partial, readWrite, libraryRepeat;  // of V
  Cost cubeHead, cubeGap, cubeTile, cubeFloat;          // of M
  Cost hold, missLatency, atomic, l2, sameLine;         // of global memory
  Cost hbm, hbmTransfer, hbmShare;
  Cost read, write, readUse;            // of S
  Cost stagger, prologue, prologueCube, warm, cold, epilogue;  // of a core

 private:
  std::vector<Cost> scalar_, join_, library_;
  std::vector<VectorCosts> vector_;
  std::vector<PathCosts> path_;
  std::vector<bool> writes_;
};

}  // namespace twin
