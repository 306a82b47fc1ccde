// What the log tells of a Matmul object: the steps that the core that computes would make of a
// call.
#pragma once

#include "matmul/matmulstate.h"

namespace twin {

// What one call asks for: base blocks from `first` on, then what is written of them.
struct MatmulTask {
  std::int64_t first = 0, blocks = 0;
  bool partial = false;  // adds to what lies in L0C
  MatmulSpan to;         // no base: nothing is written
  MatmulOut out;
  MatmulBlock origin;  // the block at to.base
};

// A task with all that its steps follow from, for a core that comes to it later.
struct MatmulWork {
  MatmulTask task;
  MatmulTraits traits;
  TCubeTiling tiling;
  std::int64_t m, n, k;
  MatmulSpan a, b, bias;
  const std::uint8_t *scales;  // one for each column, or null
  bool constant;               // tiling known to the compiler: less scalar work
  bool hf32;
  Call call;
  std::shared_ptr<MatmulBuffers> buffers;
};

// One buffer in L1: what lies in it, when it was loaded (a tick of MTE2) and last read (of MTE1).
struct MatmulTile {
  const std::uint8_t *matrix = nullptr;
  std::int64_t row = -1, depth = -1;
  std::uint32_t loaded = 0, read = 0;
};

// The buffers of one operand in L1, filled in turn.
struct MatmulRing {
  std::vector<MatmulTile> slots;
  std::size_t next = 0;
};

// The on-chip buffers of an object, by who has used them last.
struct MatmulBuffers {
  MatmulRing a, b;
  std::vector<std::uint32_t> readA, readB;  // of L0A and L0B: ticks of M
  std::vector<std::uint32_t> drained;       // of L0C: ticks of FIX
  std::size_t nextA = 0, nextB = 0, nextC = 0;
  std::uint32_t biasRead = 0, biasUsed = 0;  // ticks of MTE1 and M
  std::uint32_t product = 0;                 // tick of M: the block that waits in L0C
  std::int64_t kept = -1;                    // row of the only block of A that stays in L0A
};

// Operands that the vector cores of a block share in L1 (doc: IBSHARE); null: none.
struct MatmulShared {
  MatmulRing a, b;
};

// Adds the steps of `work` to the log of `core`.
void RecordSteps(Core &core, const MatmulWork &work, MatmulShared *shared);

// Puts a call of the running core into the log, of the cube core that serves it or of its own;
// `waits`: until all is done.
void RecordMatmul(Core &core, const Call &call, MatmulState &state, const MatmulTask &task,
                  bool waits);
// The core waits for what it has asked for last.
void RecordWaited(Core &core, MatmulState &state);

}  // namespace twin
