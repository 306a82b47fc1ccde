// What the headers ask of the runtime library: plain functions, chosen by tags, never templates.
#pragma once

#include "twin/dtype.h"
#include "twin/view.h"

namespace twin {

// ---- findings that the headers raise themselves

// Ends this core's run; what it saw is already reported.
[[noreturn]] void StopCore();
// Ends this core's kernel here, as if it had returned: what a core that has no part in it does.
[[noreturn]] void EndCore();
// Ends this core's run with nothing wrong: a cube core that only serves the block's vector cores.
[[noreturn]] void StopQuietly();
// A failed ASSERT of the kernel: reported, then the core stops.
[[noreturn]] void AssertFailed(const Call &call, const char *text, const char *message);

// The place of the last API call: for the few operations that cannot be told their own.
Site LastSite();

// ---- scalar access

void ReadElement(const Call &call, const View &view, std::int64_t index, int size, void *out);
void WriteElement(const Call &call, const View &view, std::int64_t index, int size, const void *in);
void ReadGm(const Call &call, const Gm &gm, std::int64_t index, int size, void *out);
void WriteGm(const Call &call, const Gm &gm, std::int64_t index, int size, const void *in);
// The host address of an on-chip byte; what is done through it is not checked.
void *UbPointer(std::int64_t addr);
void *LocalPointer(AscendC::TPosition position, std::int64_t addr);
// The UB address of such a pointer; -1 when it points elsewhere.
std::int64_t UbAddress(const void *pointer);
// A view from raw pointer to the end of UB, for C-style calls.
View RawView(const void *pointer);
// A tensor was put at an address of the kernel's own.
void NotePlaced(AscendC::TPosition position, std::int64_t addr, std::int64_t bytes);

// ---- pipe and queues

struct QueueShape {
  AscendC::TPosition source;
  AscendC::TPosition target;
  int depth;
};

void OpenPipe(const Call &call, void *pipe);
void ClosePipe(const Call &call, void *pipe);
void ResetPipe(const Call &call);
void *CurrentPipe(const Call &call);
// With `bytes` of -1 PlaceBuffer says later where its buffers are.
int OpenQueue(const Call &call, const QueueShape &shape, std::int64_t buffers, std::int64_t bytes);
View OpenBuffer(const Call &call, AscendC::TPosition position, std::int64_t bytes);
// Memory of a pool at an address: of a queue's buffer, or of a TBuf at a position.
void PlaceBuffer(const Call &call, int pool, int queue, int index, std::int64_t addr,
                 std::int64_t bytes);
View PlaceBuffer(const Call &call, int pool, AscendC::TPosition position, std::int64_t addr,
                 std::int64_t bytes);
View AllocBuffer(const Call &call, int queue);
// `way`: the positions of one transfer, where the call names them; else the queue's own.
View DequeBuffer(const Call &call, int queue, const QueueShape *way = nullptr);
bool EnqueBuffer(const Call &call, int queue, const View &view, const QueueShape *way = nullptr);
void FreeBuffer(const Call &call, int queue, const View &view);
int CountQueued(const Call &call, int queue);
int CountIdle(const Call &call, int queue);
// All UB that no InitBuffer has taken yet.
View RestOfUb(const Call &call, AscendC::TPosition position);

// ---- events, barriers, cores

void SetEvent(const Call &call, AscendC::HardEvent event, std::int64_t id);
void WaitEvent(const Call &call, AscendC::HardEvent event, std::int64_t id);
int FetchEvent(const Call &call, AscendC::HardEvent event, bool reserve);
void ReleaseEvent(const Call &call, AscendC::HardEvent event, std::int64_t id);
AscendC::HardEvent EventBetween(const Call &call, pipe_t first, pipe_t second);
void Barrier(const Call &call, pipe_t pipe);
void SyncCores(const Call &call, bool all);
void SoftSync(const Call &call, const Gm &gm, const View &ub, std::int64_t cores);
void BlockSet(const Call &call, const Gm &gm, std::int64_t block, std::int64_t event);
void BlockWait(const Call &call, const Gm &gm, std::int64_t block, std::int64_t event);
void CrossSet(const Call &call, int mode, pipe_t pipe, std::int64_t id);
void CrossWait(const Call &call, std::int64_t id);
// Blocks one after the other: InitDetermineComputeWorkspace, WaitPreBlock, NotifyNextBlock.
void InitTurns(const Call &call, const Gm &gm, const View &ub);
void WaitTurn(const Call &call, const Gm &gm, const View &ub);
void PassTurn(const Call &call, const Gm &gm, const View &ub);
std::int64_t BlockIndex();
std::int64_t BlockCount();
std::int64_t GroupIndex();  // the block of the launch, on either kind of core
std::int64_t SubIndex();    // which of its block's cores of one kind
std::int64_t SubCount();    // how many of the caller's kind a block has
bool OnCube();
std::int64_t Cycles();

// ---- sticky state

enum class Atomic : std::uint8_t { kNone, kAdd, kMax, kMin };
void SetAtomic(const Call &call, Atomic mode, DType type);
void SetMask(const Call &call, std::uint64_t high, std::uint64_t low);
void SetMaskLength(const Call &call, std::int64_t length, DType type);
void SetCounter(const Call &call, bool on);
void ResetMaskRegister(const Call &call);
void SetDeq(const Call &call, float scale);
void SetPad(const Call &call, std::uint64_t bits);
void ResetState(const Call &call);

// ---- copies

struct Blocks {
  std::int64_t count, length, source, target;  // length and gaps in 32-byte blocks
};
struct PadBlocks {
  std::int64_t count, length, source, target;  // bytes; the stride on the UB side in blocks
  bool pad;
  std::int64_t left, right;  // elements
  std::uint64_t value;       // bits of one element
};

void CopyIn(const Call &call, DType type, const View &dst, const Gm &src, std::int64_t count);
void CopyOut(const Call &call, DType type, const Gm &dst, const View &src, std::int64_t count);
void CopyOver(const Call &call, DType type, const View &dst, const View &src, std::int64_t count);
void CopyInBlocks(const Call &call, DType type, const View &dst, const Gm &src, const Blocks &how);
void CopyOutBlocks(const Call &call, DType type, const Gm &dst, const View &src, const Blocks &how);
void CopyOverBlocks(const Call &call, DType type, const View &dst, const View &src,
                    const Blocks &how);
void CopyInPadded(const Call &call, DType type, const View &dst, const Gm &src,
                  const PadBlocks &how);
void CopyOutPadded(const Call &call, DType type, const Gm &dst, const View &src,
                   const PadBlocks &how);
// Slices: five numbers a dimension (start, end, stride, burst, shape), innermost first.
void CopyInSlices(const Call &call, DType type, const View &dst, const Gm &src,
                  const std::uint32_t *dstSlices, const std::uint32_t *srcSlices, int dims);
void CopyOutSlices(const Call &call, DType type, const Gm &dst, const View &src,
                   const std::uint32_t *dstSlices, const std::uint32_t *srcSlices, int dims);
void FillGm(const Call &call, DType type, const Gm &dst, std::int64_t count, const void *value);
// Writes back and empties the data cache: the line at gm, or all of it.
void CleanCache(const Call &call, const Gm &gm, std::int64_t bytes, bool whole);
void CheckGm(const Call &call, const Gm &gm, std::int64_t bytes);

// ---- vector instructions

enum class Op : std::uint8_t {
  // two sources
  kAdd, kSub, kMul, kDiv, kMax, kMin, kAnd, kOr, kXor, kAddRelu, kSubRelu, kPower, kFmod,
  // two sources and the old destination
  kMulAddDst, kFusedMulAdd, kFusedMulAddRelu,
  // one source
  kAbs, kExp, kLn, kReciprocal, kRelu, kRsqrt, kSqrt, kNot, kCopy,
  kTanh, kSigmoid, kErf, kErfc, kSin, kCos, kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh,
  kAcosh, kAtanh, kLog2, kLog10, kFloor, kCeil, kRound, kTrunc, kSign, kFrac,
  kLgamma, kDigamma,
  // a scalar
  kAdds, kMuls, kMaxs, kMins, kLeakyRelu, kShiftLeft, kShiftRight, kShiftRightRound, kAxpy,
  kDuplicate, kPowers, kPowerOf
};

void VectorOp(const Call &call, Op op, DType type, const Lane &dst, const Lane &a, const Lane &b,
              const Walk &walk);
void VectorOp(const Call &call, Op op, DType type, const Lane &dst, const Lane &a,
              const Walk &walk);
void ScalarOp(const Call &call, Op op, DType dstType, DType srcType, const Lane &dst, const Lane &a,
              const void *scalar, const Walk &walk);
void MixedOp(const Call &call, Op op, DType dstType, DType srcType, const Lane &dst, const Lane &a,
             const Lane &b, const Walk &walk);
void FillOp(const Call &call, DType type, const Lane &dst, const void *scalar, const Walk &walk);
void IndexOp(const Call &call, DType type, const Lane &dst, const void *first, const Walk &walk);
void CastOp(const Call &call, DType dstType, DType srcType, AscendC::RoundMode mode,
            const Lane &dst, const Lane &src, const Walk &walk);
// A function of the high-level library: count form, scratch given or taken from the rest of UB.
void LibraryOp(const Call &call, Op op, DType type, const View &dst, const View &a, const View *b,
               const View *scratch, const void *scalar, std::int64_t count);

// ---- compare and select

void CompareOp(const Call &call, DType type, AscendC::CMPMODE mode, const View &dst, const Lane &a,
               const Lane *b, const void *scalar, const Walk &walk);
void CompareToRegister(const Call &call, DType type, AscendC::CMPMODE mode, const Lane &a,
                       const Lane &b, const Walk &walk);
void SelectOp(const Call &call, DType type, AscendC::SELMODE mode, const Lane &dst,
              const View *mask, const Lane &a, const Lane *b, const void *scalar,
              const Walk &walk);
void MoveCompareMask(const Call &call, const View &view, bool store);

// ---- reductions

enum class Fold : std::uint8_t { kSum, kMax, kMin };
struct FoldStrides {
  std::int64_t dst;  // between repeats, in units of one result
  std::int64_t block, repeat;
};
void FoldAll(const Call &call, Fold fold, DType type, const View &dst, const View &src,
             const View &scratch, std::int64_t count, bool index);
void FoldRepeats(const Call &call, Fold fold, DType type, const View &dst, const View &src,
                 const View &scratch, const Walk &walk, std::int64_t repeatStride, bool index);
void FoldRepeat(const Call &call, Fold fold, DType type, const View &dst, const View &src,
                const Walk &walk, const FoldStrides &strides, AscendC::ReduceOrder order);
void FoldBlock(const Call &call, Fold fold, DType type, const View &dst, const View &src,
               const Walk &walk, const FoldStrides &strides);
void FoldPair(const Call &call, DType type, const View &dst, const View &src, const Walk &walk,
              const FoldStrides &strides);
// The sum of all repeats goes to the accumulator register only.
void FoldToRegister(const Call &call, DType type, const View &src, const Walk &walk,
                    const FoldStrides &strides);
void ReadFold(const Call &call, bool sum, int size, void *value, void *index);
void SumRows(const Call &call, DType type, const View &dst, const View &src, const View *scratch,
             std::int64_t rows, std::int64_t inner, std::int64_t n);
// `wide`: half is added in float.
void MeanRows(const Call &call, DType type, bool wide, const View &dst, const View &src,
              const View *scratch, std::int64_t rows, std::int64_t inner, std::int64_t n);

// ---- moves inside UB

void BrcbOp(const Call &call, DType type, const View &dst, const View &src, std::int64_t repeats,
            std::int64_t block, std::int64_t repeat);
void GatherOp(const Call &call, DType type, const Lane &dst, const View &src, const View &offsets,
              std::int64_t base, const Walk &walk);
void GatherBlocks(const Call &call, DType type, const View &dst, const View &src,
                  const View &offsets, std::int64_t repeats, std::int64_t block,
                  std::int64_t repeat);
struct MaskGather {
  bool counted;           // `lanes` elements a repeat instead of whole repeats
  std::int64_t lanes;
  std::int64_t block, repeats, repeat, patternRepeat;
};
std::uint64_t GatherMaskOp(const Call &call, DType type, const View &dst, const View &src,
                           const View *pattern, int builtin, const MaskGather &how);
void TransposeOp(const Call &call, const View &dst, const View &src);
void Trans5HD(const Call &call, DType type, const View *dst, const View *src, bool dstHigh,
              bool srcHigh, std::int64_t repeats, std::int64_t dstRepeat, std::int64_t srcRepeat);
void Sort32Op(const Call &call, DType type, const View &dst, const View &src, const View &index,
              std::int64_t repeats);
void BroadcastOp(const Call &call, DType type, const View &dst, const View &src,
                 const View *scratch, const std::uint32_t *dstShape, const std::uint32_t *srcShape,
                 int dims);

// ---- launch

void CopyTiling(const Call &call, void *target, const void *source, std::int64_t bytes);
std::uint64_t TilingKey();
void SetWorkspace(void *workspace);
void *Workspace();
void PrintLine(const Call &call, const char *format, ...);

}  // namespace twin
