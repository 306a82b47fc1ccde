// The steps of a Matmul object (doc: TCubeTiling, MatmulConfig): for each base block its panels
// come into L1 unless they lie there, for each baseK of them L0A and L0B are loaded and multiplied,
// and the sum leaves through FIX. A buffer is loaded again when its last reader is done; as many
// loads are under way as the tiling has buffers.
//
// Norm loads a base block at a time into depthA1 (depthB1) buffers; MDL loads step * stepK of them
// at once into one or two. Which buffer is given up is not documented: the oldest.  // guess
#include "matmul/matmulsteps.h"

#include <algorithm>

#include "log/record.h"

namespace twin {

namespace {

constexpr std::int64_t kFractal = 512;  // bytes

std::int64_t Rounds(std::int64_t size, std::int64_t unit) {
  return (size + unit - 1) / unit;
}

// How one operand is cut: base blocks of `rows` x `depth`, `wide` x `deep` of them in a transfer.
struct Cut {
  const MatmulSpan *span;
  std::int64_t rows, depth, wide, deep;
  std::int64_t size, k;  // of the whole operand
  bool down;             // stored with k as its rows
};

Cut CutOf(const MatmulWork &work, bool left) {
  const TCubeTiling &t = work.tiling;
  const bool bulk = work.traits.bulk;
  const std::int64_t wide = bulk ? std::max(left ? t.stepM : t.stepN, 1) : 1;
  const std::int64_t deep = bulk ? std::max(left ? t.stepKa : t.stepKb, 1) : 1;
  const MatmulSpan &span = left ? work.a : work.b;
  return {&span, left ? t.baseM : t.baseN, t.baseK, wide,
          deep,  left ? work.m : work.n,   work.k,  left == span.transposed};
}

// The object's buffers, made as its tiling asks for when it is used first.
void Prepare(MatmulBuffers &buffers, const MatmulWork &work, const Cut &a, const Cut &b) {
  const TCubeTiling &t = work.tiling;
  const auto count = [](std::int64_t depth, const Cut &cut) {
    return static_cast<std::size_t>(std::max<std::int64_t>(depth / (cut.wide * cut.deep), 1));
  };
  const auto once = [](int value) { return static_cast<std::size_t>(std::max(value, 1)); };
  buffers.a.slots.resize(count(t.depthA1, a));
  buffers.b.slots.resize(count(t.depthB1, b));
  buffers.readA.resize(once(t.dbL0A));
  buffers.readB.resize(once(t.dbL0B));
  // Under a unit flag FIX follows M by 512 B: the next block need not wait for all of this one.
  buffers.drained.resize(once(t.dbL0C) + work.traits.unitFlag);
}

void Forget(MatmulRing &ring) {
  for (MatmulTile &slot : ring.slots) slot.matrix = nullptr;
}

class Nest {
 public:
  Nest(Core &core, const MatmulWork &work, MatmulShared *shared)
      : core_(core),
        work_(work),
        own_(*work.buffers),
        a_(CutOf(work, true)),
        b_(CutOf(work, false)),
        ringA_(&own_.a),
        ringB_(&own_.b) {
    Prepare(own_, work, a_, b_);
    if (shared == nullptr) return;
    if (work.traits.a.share) ringA_ = Shared(shared->a, own_.a);
    if (work.traits.b.share) ringB_ = Shared(shared->b, own_.b);
  }

  void Run() {
    const MatmulTask &task = work_.task;
    if (task.first == 0 && task.blocks > 0) {  // new operands: what lies in L1 is of the last ones
      Forget(own_.a);
      Forget(own_.b);
      own_.kept = -1;
    }
    for (std::int64_t i = 0; i < task.blocks; ++i) {
      const MatmulBlock block = BlockAt(work_.tiling, work_.m, work_.n, task.first + i);
      Multiply(block);
      if (task.to.base != nullptr) Leave(block, i);
    }
    if (task.blocks == 0 && task.to.base != nullptr) Leave(task.origin, 0);
  }

 private:
  static MatmulRing *Shared(MatmulRing &shared, const MatmulRing &own) {
    if (shared.slots.size() < own.slots.size()) shared.slots.resize(own.slots.size());
    return &shared;
  }

  std::uint32_t Now(pipe_t unit) const { return core_.clocks.now[UnitOf(unit)]; }

  void Begin(pipe_t unit) { RecordExtra(core_, unit); }

  void Wait(pipe_t unit, std::uint32_t tick) { RecordWaitTick(core_, unit, tick); }

  void Scalar(const char *what, const char *constant) {
    Begin(PIPE_S);
    RecordScalar(work_.constant ? constant : what);
  }

  void Multiply(const MatmulBlock &block) {
    for (std::int64_t k = 0; k < work_.k; k += work_.tiling.baseK) {
      MatmulTile *left = Panel(a_, *ringA_, block.row, k);
      MatmulTile *right = Panel(b_, *ringB_, block.col, k);
      if (k == 0 && work_.bias.base != nullptr) LoadBias(block);
      MultiplyBase(block, k, left, right);
    }
    own_.product = Now(PIPE_M);
  }

  // The buffer in L1 with this base block, loaded unless it lies there; null: it is not from there.
  MatmulTile *Panel(const Cut &cut, MatmulRing &ring, std::int64_t row, std::int64_t k) {
    const MatmulSpan &span = *cut.span;
    const bool resident = span.local && span.memory == Memory::kL1;
    if (span.base == nullptr || resident) return nullptr;
    const std::int64_t high = cut.rows * cut.wide, deep = cut.depth * cut.deep;
    const std::int64_t top = row / high * high, first = k / deep * deep;
    for (MatmulTile &slot : ring.slots) {
      if (slot.matrix == span.base && slot.row == top && slot.depth == first) return &slot;
    }
    MatmulTile &slot = ring.slots[ring.next];
    ring.next = (ring.next + 1) % ring.slots.size();
    Scalar("mm_load", "mm_load_const");
    Begin(PIPE_MTE2);
    Wait(PIPE_MTE1, slot.read);
    Load(cut, top, std::min(high, cut.size - top), first, std::min(deep, cut.k - first));
    slot = {span.base, top, first, Now(PIPE_MTE2), slot.read};
    return &slot;
  }

  // A part of an operand comes into L1; an operand that was in UB comes through the workspace.
  void Load(const Cut &cut, std::int64_t row, std::int64_t rows, std::int64_t k,
            std::int64_t depth) {
    const MatmulSpan &span = *cut.span;
    const MatmulLayout &how = span.layout;
    if (cut.down) {
      std::swap(row, k);
      std::swap(rows, depth);
    }
    const std::uint8_t *base = span.local ? ThisLaunch().workspace : span.base;
    const std::uint8_t *gm = base == nullptr ? nullptr : base + BytesOf(span.type, how.At(row, k));
    if (how.nz()) {
      return RecordCopy("gm_l1", span.type, Rounds(depth, how.c0), Up(rows, 16) * kBlock, gm,
                        how.tall * kBlock, 0, span.flags);
    }
    RecordCopy("gm_l1", span.type, rows, BytesOf(span.type, depth), gm,
               BytesOf(span.type, how.pitch), 0, kNd2Nz | span.flags);
  }

  void LoadBias(const MatmulBlock &block) {
    const std::int64_t size = SizeOf(work_.bias.type);
    const bool local = work_.bias.local;
    Begin(PIPE_MTE2);
    Wait(PIPE_MTE1, own_.biasRead);
    RecordCopy("gm_l1", work_.bias.type, 1, block.cols * size,
               local ? ThisLaunch().workspace : work_.bias.base + block.col * size, 0, 0);
    const std::uint32_t loaded = Now(PIPE_MTE2);
    Begin(PIPE_MTE1);
    Wait(PIPE_MTE2, loaded);
    Wait(PIPE_M, own_.biasUsed);
    RecordCopy("l1_bt", work_.bias.type, 1, block.cols * size, nullptr, 0, 0);
    own_.biasRead = Now(PIPE_MTE1);
  }

  // One product of L0A and L0B. Both panels are awaited before the first load and given back after
  // the second: with one buffer in L1 the published times of MTE2 and MTE1 add up.  // derived
  void MultiplyBase(const MatmulBlock &block, std::int64_t k, MatmulTile *left, MatmulTile *right) {
    const std::int64_t depth = std::min<std::int64_t>(work_.tiling.baseK, work_.k - k);
    const std::uint32_t loaded = std::max(LoadedAt(left), LoadedAt(right));
    Scalar("mm_step", "mm_step_const");
    if (!StaysInL0(block)) {
      own_.nextA = (own_.nextA + 1) % own_.readA.size();
      LoadL0("l1_l0a", block.rows, depth, loaded, own_.readA[own_.nextA]);
    }
    own_.nextB = (own_.nextB + 1) % own_.readB.size();
    LoadL0("l1_l0b", block.cols, depth, loaded, own_.readB[own_.nextB]);
    for (MatmulTile *panel : {left, right}) {
      if (panel != nullptr) panel->read = Now(PIPE_MTE1);
    }
    Begin(PIPE_M);
    Wait(PIPE_MTE1, Now(PIPE_MTE1));
    if (k == 0 && !work_.task.partial) Wait(PIPE_FIX, NextL0c());
    const bool biased = work_.bias.base != nullptr;
    const std::int64_t met = work_.traits.sparse ? (depth + 1) / 2 : depth;
    RecordMmad(work_.traits.a.type, block.rows, block.cols, met,
               k > 0 || work_.task.partial || biased, work_.hf32);
    own_.readA[own_.nextA] = own_.readB[own_.nextB] = Now(PIPE_M);
    if (k == 0 && biased) own_.biasUsed = Now(PIPE_M);
  }

  static std::uint32_t LoadedAt(const MatmulTile *panel) {
    return panel == nullptr ? 0 : panel->loaded;
  }

  // doc: with constant tiling a block of A that is all of its rows and of k is loaded once
  bool StaysInL0(const MatmulBlock &block) {
    const TCubeTiling &t = work_.tiling;
    if (!work_.constant || work_.m > t.baseM || work_.k > t.baseK) return false;
    const bool stays = own_.kept == block.row;
    own_.kept = block.row;
    return stays;
  }

  void LoadL0(const char *path, std::int64_t rows, std::int64_t depth, std::uint32_t loaded,
              std::uint32_t reader) {
    const DType type = work_.traits.a.type;
    Begin(PIPE_MTE1);
    Wait(PIPE_MTE2, loaded);
    Wait(PIPE_M, reader);
    RecordCopy(path, type, Rounds(rows, 16) * Rounds(depth, ElementsOfBlock(type)), kFractal,
               nullptr, 0, 0);
  }

  // The next buffer of L0C: the tick of FIX at which it was empty.
  std::uint32_t NextL0c() {
    own_.nextC = (own_.nextC + 1) % own_.drained.size();
    return own_.drained[own_.nextC];
  }

  void Leave(const MatmulBlock &block, std::int64_t number) {
    std::uint32_t scales = 0;
    if (work_.scales != nullptr) scales = LoadScales(block);
    Begin(PIPE_FIX);
    Wait(PIPE_MTE2, scales);
    if (scales != 0) {
      RecordCopy("l1_fb", DType::kI64, 1, block.cols * 8, nullptr, 0, 0);
      Begin(PIPE_FIX);
    }
    Wait(PIPE_M, own_.product);
    Store(block, number);
    own_.drained[own_.nextC] = Now(PIPE_FIX);
  }

  std::uint32_t LoadScales(const MatmulBlock &block) {
    Begin(PIPE_MTE2);
    Wait(PIPE_FIX, Now(PIPE_FIX));  // the last ones were taken by FIX
    RecordCopy("gm_l1", DType::kI64, 1, block.cols * 8, work_.scales + block.col * 8, 0, 0);
    return Now(PIPE_MTE2);
  }

  void Store(const MatmulBlock &block, std::int64_t number) {
    const MatmulTask &task = work_.task;
    const MatmulLayout &how = task.to.layout;
    const std::int64_t size = SizeOf(task.to.type);
    const bool alone = task.out.sequential;
    std::int64_t offset = how.At(block.row - task.origin.row, block.col - task.origin.col);
    if (alone) offset = number * work_.tiling.baseM * work_.tiling.baseN;
    const std::uint8_t *base = task.to.local ? ThisLaunch().workspace : task.to.base;
    const std::uint8_t *gm = base == nullptr ? nullptr : base + offset * size;
    const bool inside = task.to.local && task.to.memory == Memory::kL1;
    const char *path = inside ? "l0c_l1" : "l0c_gm";
    if (inside) gm = nullptr;
    const bool atomic = task.out.atomic != 0 && !task.to.local;
    const auto flags = static_cast<std::uint8_t>(task.to.flags | (atomic ? kAtomic : 0));
    if (how.nz()) {
      const std::int64_t tall = alone ? Up(block.rows, 16) : how.tall;
      return RecordCopy(path, task.to.type, Rounds(block.cols, how.c0),
                        Up(block.rows, 16) * how.c0 * size, gm, tall * how.c0 * size, 0, flags);
    }
    const std::int64_t pitch = alone ? block.cols : how.pitch;
    RecordCopy(path, task.to.type, block.rows, block.cols * size, gm, pitch * size, 0, flags);
  }

  Core &core_;
  const MatmulWork &work_;
  MatmulBuffers &own_;
  const Cut a_, b_;
  MatmulRing *ringA_, *ringB_;
};

}  // namespace

void RecordSteps(Core &core, const MatmulWork &work, MatmulShared *shared) {
  const Call before = core.spot;
  core.spot = work.call;
  Nest(core, work, shared).Run();
  core.spot = before;
}

}  // namespace twin
