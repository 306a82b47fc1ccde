// What the Matmul object asks of the runtime.
#pragma once

#include "twin/matmulconfig.h"
#include "twin/runtime.h"

namespace twin {

// One of the matrices A, B, C, bias, as MatmulType describes it.
struct MatmulSide {
  DType type;
  AscendC::TPosition position;
  CubeFormat format;
  bool trans;  // may be transposed
  LayoutMode layout;
  bool share;  // IBSHARE
};

struct MatmulTraits {
  MatmulSide a, b, c, bias;
  bool client;  // a vector core's object, which a cube core serves; else the core computes itself
  bool idle;    // this kind of core does nothing: the other kind computes
  bool longRows, biasBatch, channelSplit;  // of MatmulConfig
  bool bulk, unitFlag;                     // of it too, for the log: MDL, enUnitFlag
  bool parts;                              // of it too, isPartialOutput: each baseK by itself
  MatmulTriangle triangle;                 // of MatmulPolicy
};

// Where a matrix lies: global memory or a local tensor.
struct MatmulPlace {
  bool local = false;
  Gm gm;
  View view;
};

enum class MatmulSlot : std::uint8_t { kA, kB, kBias };

struct MatmulOut {
  std::uint8_t atomic = 0;  // 0 none, 1 add, 2 max, 3 min
  bool sequential = false;
  bool sync = true;
  bool wait = false;     // asynchronous, and waited for later
  bool skipped = false;  // both vector cores ask for the same product: only the first is served
};

// `a` and `b` matrices at once; strides in elements between them, 0 for the layout's own.
struct MatmulBatch {
  std::int64_t a = 1, b = 1;
  std::int64_t strideA = 0, strideB = 0, strideC = 0;
};

struct MatmulState;
MatmulState *OpenMatmul(const MatmulTraits &traits);
MatmulState *CopyMatmul(const MatmulState *from);
void CloseMatmul(MatmulState *state);

// Owns the runtime's part of one object.
class MatmulHandle {
 public:
  explicit MatmulHandle(const MatmulTraits &traits) : state_(OpenMatmul(traits)) {}
  MatmulHandle(const MatmulHandle &other) : state_(CopyMatmul(other.state_)) {}
  MatmulHandle &operator=(const MatmulHandle &other) {
    if (this == &other) return *this;
    CloseMatmul(state_);
    state_ = CopyMatmul(other.state_);
    return *this;
  }
  ~MatmulHandle() { CloseMatmul(state_); }
  MatmulState &operator*() const { return *state_; }

 private:
  MatmulState *state_;
};

// The end of a cube core that serves the objects of its block's vector cores: the runtime computes
// in their place.
[[noreturn]] void ServeMatmuls();
// A kernel of both kinds of cores: its messages need the system's part of the workspace.
void CheckMatmulWorkspace(const Call &call, const void *workspace);
// `given` is false when all tiling is constant.
void InitMatmul(const Call &call, MatmulState &state, const TCubeTiling &tiling, bool given);
void SetMatmulOrg(const Call &call, MatmulState &state, std::int64_t m, std::int64_t n,
                  std::int64_t ka, std::int64_t kb, std::int64_t kc);
void SetMatmulSingle(const Call &call, MatmulState &state, std::int64_t m, std::int64_t n,
                     std::int64_t k);
void SetMatmulOperand(const Call &call, MatmulState &state, MatmulSlot slot,
                      const MatmulPlace &place, bool transposed);
// Every element of the matrix is this value.
void SetMatmulScalar(const Call &call, MatmulState &state, MatmulSlot slot, double value);
void ClearMatmulBias(const Call &call, MatmulState &state);
void SetMatmulWorkspace(const Call &call, MatmulState &state, const Gm &gm);
void SetMatmulQuant(const Call &call, MatmulState &state, const Gm *vector, std::uint64_t scalar);
void SetMatmulHf32(const Call &call, MatmulState &state, bool on, int mode);
// One base block; false when all are done. With sync off it only starts them.
bool StepMatmul(const Call &call, MatmulState &state, bool sync, bool partial);
void FetchMatmul(const Call &call, MatmulState &state, const MatmulPlace &to, const MatmulOut &out);
// The block in the object's workspace.
Gm FetchMatmul(const Call &call, MatmulState &state, const MatmulOut &out);
void AllMatmul(const Call &call, MatmulState &state, const MatmulPlace &to, const MatmulOut &out);
void WaitMatmul(const Call &call, MatmulState &state);
void EndMatmul(const Call &call, MatmulState &state);
void BatchMatmul(const Call &call, MatmulState &state, const MatmulPlace &to,
                 const MatmulBatch &batch, const MatmulOut &out);
// `loops` batches one after another: with `sync` they are in the workspace when this returns, else
// they are fetched one by one.
void LoopMatmul(const Call &call, MatmulState &state, std::int64_t loops, const MatmulBatch &batch,
                bool sync, bool wait);
void FetchMatmulBatch(const Call &call, MatmulState &state, const MatmulPlace &to,
                      const MatmulOut &out);
Gm FetchMatmulBatch(const Call &call, MatmulState &state, const MatmulOut &out);

}  // namespace twin
