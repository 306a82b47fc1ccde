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
  bool sparse;  // of B: two of each four elements along K are left out
};

// Where a matrix lies: global memory or a local tensor.
struct MatmulPlace {
  bool local = false;
  Gm gm;
  View view;
};

enum class MatmulSlot : std::uint8_t { kA, kB, kBias };

// A base block for a callback: where it goes in L1, the matrix, its place and its size in elements.
struct MatmulCopyBlock {
  View to;
  const void *gm = nullptr;
  int row = 0, col = 0, high = 0, wide = 0;
};

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

void RestartMatmul(MatmulState &state);  // the next call begins with the first block
// The base block that a callback of the kernel has to bring next, before the product begins; takes
// the one before. False: all are there.
bool NextMatmulCopy(const Call &call, MatmulState &state, MatmulSlot slot, MatmulCopyBlock &block);
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
// Which elements of B are there: two bits each, in NZ of 16 x 8 bytes.
void SetMatmulIndex(const Call &call, MatmulState &state, const Gm &index);
void ClearMatmulBias(const Call &call, MatmulState &state);
void SetMatmulWorkspace(const Call &call, MatmulState &state, const Gm &gm);
void SetMatmulQuant(const Call &call, MatmulState &state, const Gm *vector, std::uint64_t scalar);
void SetMatmulHf32(const Call &call, MatmulState &state, bool on, int mode);
// One base block; false when all are done. With sync off it only starts them.
bool StepMatmul(const Call &call, MatmulState &state, bool sync, bool partial);
// One base block, into L0C at `to`; `partial`: added to what lies there.
bool StepMatmulInto(const Call &call, MatmulState &state, const View &to, bool partial);
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
