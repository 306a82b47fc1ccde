// The runtime's part of one Matmul object, and the files that work on it.
#pragma once

#include <memory>
#include <vector>

#include "core.h"
#include "twin/matmulrun.h"

namespace twin {

struct MatmulInput {
  bool set = false, transposed = false, scalar = false;
  double value = 0;
  MatmulPlace place;
};

// A matrix as it lies in memory: `rows` x `cols` are needed of it.
struct MatmulLayout {
  CubeFormat format;
  std::int64_t rows, cols;
  std::int64_t pitch;  // ND: elements from row to row
  std::int64_t tall;   // NZ: rows of a column of fractals
  std::int64_t c0;     // NZ: columns of a fractal

  bool nz() const { return format == CubeFormat::NZ; }
  std::int64_t At(std::int64_t row, std::int64_t col) const {
    return nz() ? col / c0 * tall * c0 + row * c0 + col % c0 : row * pitch + col;
  }
};

// Operands as row-major m x k, k x n and 1 x n, and what has been accumulated.
template <typename Acc>
struct MatmulPanels {
  std::vector<Acc> a, b, bias, sum;
};

struct MatmulBlock {
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

// A matrix as a product has found it.
struct MatmulSpan {
  const std::uint8_t *base = nullptr;  // its first element; null: there is none, or it is a scalar
  MatmulLayout layout{};
  DType type = DType::kF16;
  bool local = false, transposed = false;
  Memory memory = Memory::kUb;  // of a local one
  std::uint8_t flags = 0;       // StepFlags of its transfers
};

// How far a callback has brought a matrix: the block at (top, left) comes next.
struct MatmulBring {
  bool open = false, ready = false;
  std::int64_t top = 0, left = 0;
};

struct MatmulBuffers;
struct MatmulRequest;

struct MatmulState {
  MatmulTraits traits;
  TCubeTiling tiling{};
  bool ready = false, given = false;
  std::int64_t orgM = 0, orgN = 0, orgKa = 0, orgKb = 0, orgKc = 0;
  std::int64_t m = 0, n = 0, k = 0;  // single shape
  MatmulInput a, b, bias;
  MatmulBring bringA, bringB;
  Gm index;  // of a sparse B
  Gm workspace;
  int quant = 0;  // 0 none, 1 one scale, 2 a scale for each column
  std::uint64_t scale = 0;
  Gm scales;
  bool hf32 = false;
  int hf32Mode = 0;

  MatmulPanels<float> floats;
  MatmulPanels<std::int32_t> ints;
  std::int64_t step = 0;  // base blocks computed of this sequence
  bool holds = false;     // a block waits in L0C
  bool pending = false;   // Iterate<false> was called
  bool waitable = false;  // something asynchronous can be waited for
  MatmulBlock block;
  std::int64_t loops = 0, loop = 0;  // of IterateNBatch
  MatmulBatch batch;

  // for the log
  MatmulSpan fromA, fromB, fromBias;
  Stamp begun;                               // when Iterate<false> was called
  std::shared_ptr<MatmulBuffers> buffers;    // of the core that computes
  std::shared_ptr<MatmulRequest> request;    // the last one that nobody has waited for

  bool integer() const {
    return traits.a.type == DType::kI8 || traits.a.type == DType::kI4;
  }
};

// Which of several matrices is meant: their numbers in A, B and the rest.
struct MatmulIndex {
  std::int64_t a = 0, b = 0, c = 0;
  MatmulBatch batch;
};

constexpr std::int64_t Up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The base block of this number, in the order in which Iterate comes to them.
MatmulBlock BlockAt(const TCubeTiling &tiling, std::int64_t m, std::int64_t n, std::int64_t step);

// Checks of what the host computed (code cube-tiling): false after reporting.
bool CheckCubeTiling(const Call &call, const MatmulState &state);
// Checks that all operands are there; false after reporting (matmul-operand).
bool CheckMatmulInputs(const Call &call, const MatmulState &state);

// Reads A, B and bias into the panels; false after reporting.
bool LoadMatmul(const Call &call, MatmulState &state, const MatmulIndex &at);
// Writes a block of sums (rows of `stepSum`), from `first` on within the single shape.
// `place` may be anywhere; `index` shifts the matrix inside it.
struct MatmulStore {
  MatmulPlace place;
  MatmulOut out;
  MatmulIndex index;
};
// Gives where it went; no base after reporting.
MatmulSpan StoreMatmul(const Call &call, MatmulState &state, const MatmulStore &to,
                       const MatmulBlock &block, const void *sums, std::int64_t stepSum);

// The place of a matrix of the batch inside its tensor, in elements, and how its rows lie.
std::int64_t OffsetA(const MatmulState &state, const MatmulIndex &at);
std::int64_t OffsetB(const MatmulState &state, const MatmulIndex &at);
std::int64_t OffsetC(const MatmulState &state, const MatmulIndex &at);
std::int64_t PitchC(const MatmulState &state);

// The running instruction goes on on another pipe.
void MoveTo(Core &core, pipe_t unit);

}  // namespace twin
