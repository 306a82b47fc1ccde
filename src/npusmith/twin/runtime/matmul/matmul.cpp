// The Matmul object: what has been set, which block comes next, what may be fetched.
#include <algorithm>

#include "check.h"
#include "cube/gemm.h"
#include "matmul/matmulsteps.h"
#include "log/record.h"
#include "text.h"

namespace twin {

MatmulState *OpenMatmul(const MatmulTraits &traits) {
  auto *state = new MatmulState();
  state->traits = traits;
  return state;
}
MatmulState *CopyMatmul(const MatmulState *from) { return new MatmulState(*from); }
void CloseMatmul(MatmulState *state) { delete state; }

namespace {

// What was begun is forgotten: the next Iterate starts with the first block.
void Restart(MatmulState &s) {
  s.step = 0;
  s.pending = false;
}

bool Ready(const Call &call, const MatmulState &s) {
  if (s.ready) return true;
  Report(call, "matmul-order", Text("%s of an object that was not initialised", call.api), "",
         "REGIST_MATMUL_OBJ with the object and its tiling, or Init");
  return false;
}

// A cube core's own object on a vector core: there is nobody to compute.
bool Computes(const Call &call, const MatmulState &s) {
  if (!s.traits.idle) return Ready(call, s);
  if (s.traits.client) return false;
  Report(call, "matmul-order",
         Text("%s on a vector core of an object that only a cube core can use", call.api), "",
         "AscendC::Matmul, or the call inside `if ASCEND_IS_AIC`");
  return false;
}

constexpr pipe_t kPipes[] = {PIPE_S,    PIPE_V,    PIPE_M,  PIPE_MTE1,
                             PIPE_MTE2, PIPE_MTE3, PIPE_FIX};

// A synchronous call returns when the cube core has answered: all of its work is done. What a cube
// core's own object leaves on the pipes nobody waits for: only the sanitizer takes it for done.
void Settle(Core &core, const MatmulState &s) {
  for (const pipe_t unit : kPipes) RecordKeep(core, unit);
  for (const pipe_t from : {PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX}) {
    const Stamp stamp = OrderStamp(core, from);
    for (const pipe_t to : kPipes) OrderTake(core, stamp, to);
  }
  for (const pipe_t unit : kPipes) {
    if (!s.traits.client) RecordForget(core, unit);
  }
}

std::int64_t Rounds(std::int64_t size, std::int64_t base) {
  return base > 0 ? (size + base - 1) / base : 0;
}

std::int64_t BlockCountOf(const MatmulState &s) {
  return Rounds(s.m, s.tiling.baseM) * Rounds(s.n, s.tiling.baseN);
}

// Steps of Iterate for one block: with isPartialOutput each baseK is a result by itself.
std::int64_t PartsOf(const MatmulState &s) {
  return s.traits.parts ? std::max<std::int64_t>(Rounds(s.k, s.tiling.baseK), 1) : 1;
}
std::int64_t StepCountOf(const MatmulState &s) { return BlockCountOf(s) * PartsOf(s); }

// A walk over `inner` x `outer` blocks, in panels of stepInner x stepOuter that stay in L1.
struct Cell {
  std::int64_t inner, outer;
};
Cell CellOf(std::int64_t step, std::int64_t inner, std::int64_t outer, std::int64_t stepInner,
            std::int64_t stepOuter) {
  for (std::int64_t top = 0; top < outer; top += stepOuter) {
    const std::int64_t high = std::min(stepOuter, outer - top);
    if (step >= high * inner) {
      step -= high * inner;
      continue;
    }
    const std::int64_t left = step / (high * stepInner) * stepInner;
    const std::int64_t wide = std::min(stepInner, inner - left);
    const std::int64_t rest = step - left * high;
    return {left + rest % wide, top + rest / wide};
  }
  return {0, 0};
}

}  // namespace

// doc: iterateOrder 0 goes along M first, 1 along N
MatmulBlock BlockAt(const TCubeTiling &t, std::int64_t m, std::int64_t n, std::int64_t step) {
  const std::int64_t mBlocks = Rounds(m, t.baseM), nBlocks = Rounds(n, t.baseN);
  const std::int64_t stepM = std::max(t.stepM, 1), stepN = std::max(t.stepN, 1);
  const bool alongM = t.iterateOrder == 0;
  const Cell spot = alongM ? CellOf(step, mBlocks, nBlocks, stepM, stepN)
                           : CellOf(step, nBlocks, mBlocks, stepN, stepM);
  const std::int64_t row = (alongM ? spot.inner : spot.outer) * t.baseM;
  const std::int64_t col = (alongM ? spot.outer : spot.inner) * t.baseN;
  return {row, col, std::min<std::int64_t>(t.baseM, m - row),
          std::min<std::int64_t>(t.baseN, n - col)};
}

namespace {

// doc: MatmulPolicy; blocks off the triangle are neither computed nor written
bool Wanted(const MatmulState &s, const MatmulBlock &block) {
  const std::int64_t row = block.row / std::max(s.tiling.baseM, 1);
  const std::int64_t col = block.col / std::max(s.tiling.baseN, 1);
  switch (s.traits.triangle) {
    case MatmulTriangle::kUpper: return row <= col;
    case MatmulTriangle::kLower: return row >= col;
    case MatmulTriangle::kNone: return true;
  }
  return true;
}

MatmulBlock BlockOf(const MatmulState &s, std::int64_t step) {
  return BlockAt(s.tiling, s.m, s.n, step / PartsOf(s));
}

// A range of K: all of it, or one part.
struct Depth {
  std::int64_t from, size;
};
Depth DepthOf(const MatmulState &s, std::int64_t step) {
  if (!s.traits.parts) return {0, s.k};
  const std::int64_t from = step % PartsOf(s) * s.tiling.baseK;
  return {from, std::min<std::int64_t>(s.tiling.baseK, s.k - from)};
}

// Adds the product of one block to what lies in `sum`, which starts with the bias or with zero; of
// several parts the first has the bias.  // guess: so that their sum is the product
template <typename Acc>
void Sum(const MatmulState &s, MatmulPanels<Acc> &panels, const MatmulBlock &block,
         const Depth &depth, bool keep) {
  const auto size = static_cast<std::size_t>(block.rows * block.cols);
  if (!keep || panels.sum.size() != size) {
    panels.sum.assign(size, Acc{});
    const bool biased = !panels.bias.empty() && depth.from == 0;
    for (std::int64_t r = 0; r < block.rows && biased; ++r) {
      std::copy_n(panels.bias.begin() + block.col, block.cols,
                  panels.sum.begin() + r * block.cols);
    }
  }
  Multiply(panels.a.data() + block.row * s.k + depth.from,
           panels.b.data() + depth.from * s.n + block.col, panels.sum.data(), block.rows,
           block.cols, depth.size, s.k, s.n, block.cols);
}

void Compute(MatmulState &s, const MatmulBlock &block, const Depth &depth, bool keep) {
  s.block = block;
  if (Dry()) return;
  if (s.integer()) return Sum(s, s.ints, block, depth, keep);
  Sum(s, s.floats, block, depth, keep);
}

Depth Whole(const MatmulState &s) { return {0, s.k}; }

MatmulSpan Write(const Call &call, MatmulState &s, const MatmulStore &to) {
  const void *sums = s.integer() ? static_cast<const void *>(s.ints.sum.data())
                                 : static_cast<const void *>(s.floats.sum.data());
  return StoreMatmul(call, s, to, s.block, sums, s.block.cols);
}

MatmulIndex Single() { return {0, 0, 0, {}}; }

bool NextBlock(const Call &call, MatmulState &s, bool partial) {
  if (s.step == 0 && (!CheckMatmulInputs(call, s) || !LoadMatmul(call, s, Single()))) return false;
  while (s.step < StepCountOf(s) && !Wanted(s, BlockOf(s, s.step))) s.step += 1;
  if (s.step >= StepCountOf(s)) return false;
  Compute(s, BlockOf(s, s.step), DepthOf(s, s.step), partial);
  s.step += 1;
  s.holds = true;
  return true;
}

// The bytes of C that wait in the object's workspace, one base block each.
Gm WorkspaceAt(const MatmulState &s, std::int64_t offset, std::int64_t elements) {
  const std::int64_t size = SizeOf(s.traits.c.type);
  return {s.workspace.base + offset * size, elements * size};
}

bool HasWorkspace(const Call &call, const MatmulState &s) {
  if (s.workspace.base != nullptr) return true;
  Report(call, "matmul-order", Text("%s needs the object's own workspace", call.api), "",
         "SetWorkspace before the asynchronous form");
  return false;
}

// The work of the last step, which a block's first part stands for as a whole.
std::int64_t Begun(const MatmulState &s) { return (s.step - 1) % PartsOf(s) == 0 ? 1 : 0; }

// GetTensorC: after Iterate<false> the block is computed now.
MatmulTask Fetched(const MatmulState &s, const MatmulSpan &where, const MatmulOut &out) {
  return {(s.step - 1) / PartsOf(s), s.pending ? Begun(s) : 0, false, where, out, s.block};
}

bool Fetchable(const Call &call, MatmulState &s) {
  if (s.pending) return HasWorkspace(call, s) && NextBlock(call, s, false);
  if (s.holds) return true;
  Report(call, "matmul-order", Text("%s without a block from Iterate", call.api), "",
         "one GetTensorC after each Iterate that returned true");
  return false;
}

}  // namespace

void RestartMatmul(MatmulState &s) { Restart(s); }

void InitMatmul(const Call &call, MatmulState &s, const TCubeTiling &tiling, bool given) {
  Enter(call, PIPE_S);
  s.tiling = tiling;
  s.given = given;
  s.orgM = tiling.M;
  s.orgN = tiling.N;
  s.orgKa = tiling.Ka;
  s.orgKb = tiling.Kb;
  s.m = tiling.singleCoreM;
  s.n = tiling.singleCoreN;
  s.k = tiling.singleCoreK;
  Restart(s);
  if (s.traits.idle) return;
  s.ready = CheckCubeTiling(call, s);
  if (!s.ready) StopCore();
}

void SetMatmulOrg(const Call &call, MatmulState &s, std::int64_t m, std::int64_t n,
                  std::int64_t ka, std::int64_t kb, std::int64_t kc) {
  Enter(call, PIPE_S);
  s.orgM = m;
  s.orgN = n;
  s.orgKa = ka;
  s.orgKb = kb;
  s.orgKc = kc;
}

void SetMatmulSingle(const Call &call, MatmulState &s, std::int64_t m, std::int64_t n,
                     std::int64_t k) {
  Enter(call, PIPE_S);
  if (m != -1) s.m = m;
  if (n != -1) s.n = n;
  if (k != -1) s.k = k;
  Restart(s);
}

void SetMatmulOperand(const Call &call, MatmulState &s, MatmulSlot slot, const MatmulPlace &place,
                      bool transposed) {
  Enter(call, PIPE_S);
  MatmulInput &input = slot == MatmulSlot::kA ? s.a : slot == MatmulSlot::kB ? s.b : s.bias;
  input = {true, transposed, false, 0, place};
  Restart(s);
}

void SetMatmulScalar(const Call &call, MatmulState &s, MatmulSlot slot, double value) {
  Enter(call, PIPE_S);
  (slot == MatmulSlot::kA ? s.a : s.b) = {true, false, true, value, {}};
  Restart(s);
}

void SetMatmulIndex(const Call &call, MatmulState &s, const Gm &index) {
  Enter(call, PIPE_S);
  s.index = index;
  Restart(s);
}

void ClearMatmulBias(const Call &call, MatmulState &s) {
  Enter(call, PIPE_S);
  s.bias = {};
  s.tiling.isBias = 0;
}

void SetMatmulWorkspace(const Call &call, MatmulState &s, const Gm &gm) {
  Enter(call, PIPE_S);
  s.workspace = gm;
}

void SetMatmulQuant(const Call &call, MatmulState &s, const Gm *vector, std::uint64_t scalar) {
  Enter(call, PIPE_S);
  s.quant = vector == nullptr ? 1 : 2;
  s.scale = scalar;
  if (vector != nullptr) s.scales = *vector;
}

void SetMatmulHf32(const Call &call, MatmulState &s, bool on, int mode) {
  Enter(call, PIPE_S);
  s.hf32 = on;
  s.hf32Mode = mode;
}

bool StepMatmul(const Call &call, MatmulState &s, bool sync, bool partial) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s)) return false;
  if (!sync) {
    const bool more = !s.pending || s.step < StepCountOf(s);
    if (!s.pending) s.begun = OrderStamp(core, PIPE_ALL);
    s.pending = more;
    if (!more) Restart(s);
    return more;
  }
  const bool got = NextBlock(call, s, partial);
  if (!got) Restart(s);
  if (!got) return false;
  RecordMatmul(core, call, s,
               {(s.step - 1) / PartsOf(s), Begun(s), partial, {}, {}, s.block}, true);
  Settle(core, s);
  return true;
}

bool StepMatmulInto(const Call &call, MatmulState &s, const View &to, bool partial) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s)) return false;
  if (partial && (s.m != s.tiling.baseM || s.n != s.tiling.baseN)) {
    Report(call, "matmul-operand",
           Text("%s adds in L0C to %lld x %lld elements in blocks of %d x %d", call.api, Ll(s.m),
                Ll(s.n), s.tiling.baseM, s.tiling.baseN),
           "", "one block: singleCoreM = baseM and singleCoreN = baseN");
    return false;
  }
  if (partial) {  // the bias is there already
    const MatmulBlock next = BlockOf(s, s.step);
    const auto size = static_cast<std::size_t>(next.rows * next.cols);
    s.ints.sum.assign(s.integer() ? size : 0, 0);
    s.floats.sum.assign(s.integer() ? 0 : size, 0.0f);
  }
  const bool got = NextBlock(call, s, partial);
  s.holds = false;
  if (!got) Restart(s);
  if (!got) return false;
  MatmulOut out;
  out.atomic = partial ? 1 : 0;
  out.sequential = true;
  Write(call, s, {{true, {}, to}, out, Single()});
  RecordMatmul(core, call, s,
               {(s.step - 1) / PartsOf(s), Begun(s), partial, {}, {}, s.block}, true);
  Settle(core, s);
  return true;
}

void FetchMatmul(const Call &call, MatmulState &s, const MatmulPlace &to, const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s) || !Fetchable(call, s)) return;
  const MatmulSpan where = Write(call, s, {to, out, Single()});
  const bool waits = out.sync || to.local;
  RecordMatmul(core, call, s, Fetched(s, where, out), waits);
  if (waits) Settle(core, s);
}

Gm FetchMatmul(const Call &call, MatmulState &s, const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  const std::int64_t block = std::int64_t{s.tiling.baseM} * s.tiling.baseN;
  if (!Computes(call, s) || !HasWorkspace(call, s) || !Fetchable(call, s)) return {};
  const Gm gm = WorkspaceAt(s, (s.step - 1) * block, block);
  MatmulOut alone = out;
  alone.sequential = true;
  const MatmulSpan where = Write(call, s, {{false, gm, {}}, alone, Single()});
  RecordMatmul(core, call, s, Fetched(s, where, alone), true);
  Settle(core, s);
  return gm;
}

void AllMatmul(const Call &call, MatmulState &s, const MatmulPlace &to, const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s)) return;
  s.waitable = !out.sync && out.wait;
  if (out.skipped) return RecordMatmul(core, call, s, {}, out.sync);
  if (!CheckMatmulInputs(call, s) || !LoadMatmul(call, s, Single())) return;
  MatmulSpan where;
  const bool whole = !out.sequential && s.traits.triangle == MatmulTriangle::kNone;
  if (whole) {
    Compute(s, {0, 0, s.m, s.n}, Whole(s), false);
    where = Write(call, s, {to, out, Single()});
  }
  const std::int64_t block = std::int64_t{s.tiling.baseM} * s.tiling.baseN *
                             SizeOf(s.traits.c.type);
  MatmulPlace at = to;
  for (std::int64_t step = 0; !whole && step < BlockCountOf(s); ++step) {
    const MatmulBlock next = BlockAt(s.tiling, s.m, s.n, step);
    if (!Wanted(s, next)) continue;
    Compute(s, next, Whole(s), false);
    const MatmulSpan one = Write(call, s, {at, out, Single()});
    if (where.base == nullptr) where = one;
    if (!out.sequential) continue;
    at.gm.base += block;
    at.gm.bytes -= at.gm.bytes >= 0 ? block : 0;
  }
  s.holds = false;
  RecordMatmul(core, call, s, {0, BlockCountOf(s), false, where, out, {}}, out.sync || to.local);
  if (out.sync) Settle(core, s);
}

void WaitMatmul(const Call &call, MatmulState &s) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s)) return;
  RecordWaited(core, s);
  Settle(core, s);
  if (!s.waitable) {
    Report(call, "matmul-order", Text("%s, and nothing asynchronous was begun", call.api), "",
           "one wait for each asynchronous call");
  }
  s.waitable = false;
}

void EndMatmul(const Call &call, MatmulState &s) {
  Enter(call, PIPE_S);
  Restart(s);
  s.holds = false;
}

namespace {

// The matrices of A and B that the i-th product takes: the shorter side is repeated.
MatmulIndex IndexOf(const MatmulBatch &batch, std::int64_t i, std::int64_t round) {
  const std::int64_t most = std::max(batch.a, batch.b);
  const auto one = [&](std::int64_t count) {
    return round * count + (count == most ? i : i / (most / std::max<std::int64_t>(count, 1)));
  };
  return {one(batch.a), one(batch.b), round * most + i, batch};
}

bool CheckBatch(const Call &call, const MatmulBatch &batch) {
  const std::int64_t most = std::max(batch.a, batch.b), least = std::min(batch.a, batch.b);
  if (least >= 1 && most % least == 0) return true;
  Report(call, "matmul-operand",
         Text("%s with %lld matrices A and %lld matrices B", call.api, Ll(batch.a), Ll(batch.b)),
         "", "equal numbers, or one a multiple of the other");
  return false;
}

// One batch; `into` numbers its matrices in C from zero instead of from the batch's own place.
void OneBatch(const Call &call, MatmulState &s, const MatmulStore &to, const MatmulBatch &batch,
              std::int64_t round, bool fromZero, bool waits) {
  const std::int64_t count = std::max(batch.a, batch.b);
  for (std::int64_t i = 0; i < count; ++i) {
    MatmulIndex at = IndexOf(batch, i, round);
    if (!LoadMatmul(call, s, at)) return;
    Compute(s, {0, 0, s.m, s.n}, Whole(s), false);
    if (fromZero) at.c = i;
    const MatmulSpan where = Write(call, s, {to.place, to.out, at});
    RecordMatmul(Me(), call, s, {0, BlockCountOf(s), false, where, to.out, {}},
                 waits && i + 1 == count);
  }
}

}  // namespace

void BatchMatmul(const Call &call, MatmulState &s, const MatmulPlace &to, const MatmulBatch &batch,
                 const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s) || !CheckBatch(call, batch) || !CheckMatmulInputs(call, s)) return;
  MatmulOut placed = out;
  placed.sequential = false;  // doc: reserved
  OneBatch(call, s, {to, placed, {}}, batch, 0, true, out.sync || to.local);
  s.waitable = !out.sync && out.wait;
  if (out.sync) Settle(core, s);
}

namespace {

// One batch of IterateNBatch in the object's workspace.
Gm BatchAt(const MatmulState &s, std::int64_t loop) {
  const std::int64_t one = std::max(s.batch.a, s.batch.b) * s.m * s.n;
  return WorkspaceAt(s, loop * one, one);
}

}  // namespace

void LoopMatmul(const Call &call, MatmulState &s, std::int64_t loops, const MatmulBatch &batch,
                bool sync, bool wait) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s) || !HasWorkspace(call, s) || !CheckBatch(call, batch)) return;
  if (!CheckMatmulInputs(call, s)) return;
  s.loops = loops;
  s.loop = 0;
  s.batch = batch;
  s.waitable = wait;
  if (!sync && !wait) return;
  for (std::int64_t loop = 0; loop < loops; ++loop) {
    OneBatch(call, s, {{false, BatchAt(s, loop), {}}, {0, false, sync}, {}}, batch, loop, true,
             sync && loop + 1 == loops);
  }
  if (sync) Settle(core, s);
}

namespace {

bool NextBatch(const Call &call, const MatmulState &s) {
  if (s.loop < s.loops) return true;
  Report(call, "matmul-order", Text("%s without a batch from IterateNBatch", call.api), "",
         "as many as IterateNBatch computes");
  return false;
}

}  // namespace

void FetchMatmulBatch(const Call &call, MatmulState &s, const MatmulPlace &to,
                      const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s) || !NextBatch(call, s)) return;
  OneBatch(call, s, {to, {0, false, out.sync}, {}}, s.batch, s.loop, true, true);
  s.loop += 1;
  Settle(core, s);
}

Gm FetchMatmulBatch(const Call &call, MatmulState &s, const MatmulOut &out) {
  Core &core = Enter(call, PIPE_S);
  if (!Computes(call, s) || !NextBatch(call, s)) return {};
  const Gm gm = BatchAt(s, s.loop);
  OneBatch(call, s, {{false, gm, {}}, {0, false, out.sync}, {}}, s.batch, s.loop, true, true);
  s.loop += 1;
  Settle(core, s);
  return gm;
}

}  // namespace twin
