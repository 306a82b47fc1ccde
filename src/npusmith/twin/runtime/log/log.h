// What a launch did, for the timing model: steps of each core in the order in which its scalar unit
// came to them. Written by the runtime (record.cpp), read by the timer (../timer). Little-endian.
//
// File: LogHead; for each core, as it ended, CoreHead, its steps, its deps and its joins; at
// LogHead::tables the names, the places and the regions. A second launch of one run goes into a
// file of its own, PATH.1, the next into PATH.2.
#pragma once

#include <cstdint>

namespace twin {

constexpr char kLogMagic[8] = {'N', 'P', 'U', 'L', 'O', 'G', '0', '1'};
constexpr std::uint32_t kLogUnits = 7;  // S, V, M, MTE1, MTE2, MTE3, FIX: as kUnits in order.h

enum class StepKind : std::uint8_t {
  kScalar = 0,  // work of the scalar unit alone; `what` names it: "call", "read", "enque", ...
  kVector =
      1,      // a vector instruction; `what`: "add", "cast", "reduce_sum", ... ; payload VectorStep
  kCopy = 2,  // a transfer; `what`: the path, "gm_ub", "ub_gm", "gm_l1", ... ; payload CopyStep
  kMmad = 3,  // `what` "mmad"; payload MmadStep
  kLibrary =
      4,      // a library function on the vector unit, known only by its size; payload VectorStep
  kJoin = 5,  // the scalar unit waits for other cores: `joins` entries; `what`: "sync_all",
              // "cross_wait", ...
};

enum StepFlags : std::uint8_t {
  kSetsMask = 1,  // the instruction writes the vector mask first (count forms, mask forms)
  kBarrier = 2,  // the scalar unit waits for every pipe (PipeBarrier<PIPE_ALL>), or one pipe drains
  kSetsFlag = 4,  // tells another core something (CrossCoreSetFlag, NotifyNextBlock, IBSet)
  kNd2Nz = 8,     // a copy that also turns ND into Nz (a row of it is `bytes` long)
  kAtomic = 16,   // a copy that accumulates in global memory
  kNoL2 = 32,     // a copy that leaves nothing in L2 (SetL2CacheHint, CACHE_MODE_DISABLE)
};

// One operand of a vector instruction, in blocks of 32 B. `there` false: no such operand.
struct VectorOperand {
  std::uint16_t addr = 0;    // first block, from the start of UB
  std::uint16_t repeat = 0;  // between repeats
  std::uint8_t block = 0;    // between the blocks of a repeat
  std::uint8_t there = 0;
};

struct VectorStep {
  std::uint32_t repeats = 0;   // of 256 B of the widest operand; a shorter last one counts
  std::uint32_t elements = 0;  // active ones
  VectorOperand dst, src0, src1;
  std::uint8_t srcType = 0;  // a twin::DType; Step::type is the destination's
  std::uint8_t pad[5] = {};
};

// `rows` rows of `bytes`; in global memory a row starts every `gmPitch` bytes.
struct CopyStep {
  std::uint32_t rows = 0, bytes = 0;
  std::uint64_t gm = 0;       // region number << 48 | bytes from the region's start; 0 region: none
  std::uint32_t gmPitch = 0;
  std::uint32_t local = 0;    // byte address in the on-chip memory
  std::uint64_t pad = 0;
};

struct MmadStep {
  std::uint32_t m = 0, n = 0, k = 0;
  std::uint8_t accumulates = 0, hf32 = 0, pad[18] = {};
};

struct Step {
  StepKind kind;
  std::uint8_t unit;   // on which it runs: an index of kLogUnits
  std::uint8_t type;   // a twin::DType of the data
  std::uint8_t flags;  // StepFlags
  std::uint16_t what;  // into names
  std::uint16_t deps;  // entries of the core's deps that belong to it
  std::uint32_t place; // into places
  std::uint32_t count; // ticks of its unit that it stands for: like scalar steps in a row are one
  union {
    VectorStep vector;
    CopyStep copy;
    MmadStep mmad;
    // kJoin: entries; kScalar: repetitions, and bytes of UB that buffers take after it
    struct { std::uint32_t joins, times, held, pad[5]; } other;
  };
};
static_assert(sizeof(VectorStep) == 32 && sizeof(CopyStep) == 32 && sizeof(MmadStep) == 32);
static_assert(sizeof(Step) == 48);

// The step may begin when this unit of the same core has finished its tick `tick` (1 is its first).
// A unit's ticks count its steps with their `count`.
struct StepDep {
  std::uint32_t unit, tick;
};

// A kJoin step waits until that core's units have finished these ticks (0: nothing).
struct StepJoin {
  std::uint32_t core;  // OrderNumber: 2 * block + is-cube
  std::uint32_t ticks[kLogUnits];
};

struct LogHead {
  char magic[8];
  std::uint64_t tables;  // offset of the tables; 0: the launch was cut off, the file is useless
  std::uint32_t names, places, regions;  // how many follow there
  std::uint32_t coreHeads;               // in this file
  std::uint32_t blocks;                  // of the launch
  std::uint32_t cubes, vectors;          // cores of each kind in the launch
  std::uint32_t kernelType;              // a twin::KernelType
  std::uint32_t finished;                // 0: a deadlock, or a core was stopped
  std::uint32_t pad;
};
// name: u16 length, bytes. place: u32 line, u16 length, file; u16 length, api.
// region: u64 bytes, u8 writable, u8 scratch, u16 length, name. Region numbers start with 1.

struct CoreHead {
  std::uint32_t number;  // OrderNumber
  std::uint8_t cube, ended;  // ended 0: it waits for ever, or was stopped
  std::uint16_t sub;
  std::uint32_t group;
  std::uint32_t pad;
  std::uint64_t steps, deps, joins;
  // What came after the log was full (LaunchSpec::mostSteps): counted, not recorded.
  std::uint64_t dropped;         // steps
  std::uint64_t droppedBytes;    // of copies from and to global memory
  std::uint64_t droppedRepeats;  // of vector instructions
  std::uint64_t droppedCube;     // 16x16x(32 B) tiles of Mmad
};

}  // namespace twin
