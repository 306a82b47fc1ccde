// Matrices in UB that library functions work on row by row, in float, and what they all check.
#pragma once

#include <algorithm>
#include <vector>

#include "vector/loops.h"
#include "text.h"

namespace twin {

// A matrix of half or float; fractal: pieces of 16 columns, each with all its rows (NZ).
struct UbMatrix {
  std::uint8_t *base = nullptr;
  DType type = DType::kF32;
  std::int64_t rows = 0, columns = 0;
  bool fractal = false;

  std::int64_t bytes() const { return rows * columns * SizeOf(type); }
  void Load(std::int64_t row, float *to) const { Move<true>(row, to); }
  void Store(std::int64_t row, const float *from) const {
    Move<false>(row, const_cast<float *>(from));
  }

 private:
  template <bool load>
  void Move(std::int64_t row, float *values) const {
    const std::int64_t piece = fractal ? 16 : columns;
    for (std::int64_t at = 0; at < columns; at += piece) {
      std::uint8_t *place =
          base + (fractal ? at * rows + row * piece : row * columns) * SizeOf(type);
      if (load) LoadFloats(type, place, values + at, piece);
      else StoreFloats(type, values + at, place, piece);
    }
  }

 public:
  static void LoadFloats(DType type, const void *from, float *to, std::int64_t n) {
    const Loop loop = type == DType::kF32
                          ? MoveLoop(4)
                          : CastLoop(DType::kF32, type, AscendC::RoundMode::CAST_NONE);
    loop(to, from, nullptr, nullptr, n);
  }
  // half: to nearest even
  static void StoreFloats(DType type, const float *from, void *to, std::int64_t n) {
    const Loop loop = type == DType::kF32
                          ? MoveLoop(4)
                          : CastLoop(type, DType::kF32, AscendC::RoundMode::CAST_RINT);
    loop(to, from, nullptr, nullptr, n);
  }
};

// One number a row. Spread: it fills a datablock of equal values; else they lie side by side.
struct Column {
  std::uint8_t *base = nullptr;
  DType type = DType::kF32;
  bool spread = false;

  std::int64_t bytes(std::int64_t rows) const { return rows * (spread ? kBlock : SizeOf(type)); }
  float Get(std::int64_t row) const {
    float value;
    UbMatrix::LoadFloats(type, base + row * (spread ? kBlock : SizeOf(type)), &value, 1);
    return value;
  }
  void Put(std::int64_t row, float value) const {
    const std::int64_t count = spread ? kBlock / SizeOf(type) : 1;
    float values[16];
    std::fill(values, values + count, value);
    UbMatrix::StoreFloats(type, values, base + row * count * SizeOf(type), count);
  }
};

// Sum of n floats: 64 lanes over the repeats, then a tree of adjacent pairs (order inferred).
inline float SumFloats(const float *from, std::int64_t n) {
  float lanes[64] = {};
  for (std::int64_t at = 0; at < n; at += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, n - at);
    for (std::int64_t i = 0; i < count; ++i) lanes[i] += from[at + i];
  }
  for (int width = 32; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  }
  return lanes[0];
}

// The largest of n floats; NaN wins.
inline float MaxFloats(const float *from, std::int64_t n) {
  float best = from[0];
  bool nan = false;
  for (std::int64_t i = 0; i < n; ++i) {
    best = from[i] > best ? from[i] : best;
    nan = nan || from[i] != from[i];
  }
  return nan ? BitsFloat(0x7FC00000u) : best;
}

inline float OneFloat(Op op, float value) {
  MathLoop(op, DType::kF32)(&value, &value, nullptr, nullptr, 1);
  return value;
}

// Checks of operands, all before the first is touched: scratch, ranges, overlaps.
class Operands {
 public:
  Operands(Core &core, const Call &call) : core_(core), call_(call) {}

  // Sources first, then destinations; a null view is no operand.
  void Add(const char *role, const View *view, std::int64_t bytes, Use use, std::uint8_t **base,
           Spread rows = {}, std::int64_t align = kBlock) {
    if (view != nullptr) items_.push_back({{role, view, bytes, align, use, rows}, base});
  }
  // Reports scratch-size when a given tensor, or else what is left of UB, is below `bytes`.
  void Scratch(const View *view, std::int64_t bytes) {
    scratch_ = view;
    scratchBytes_ = bytes;
  }
  // Pairs named here may be the same memory; no other two may touch, unless both are only read.
  void MayShare(const View *one, const View *other) { shared_.push_back({one, other}); }

  bool Good() {
    bool good = CheckScratch();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (scratch_ != nullptr) {
        good = Disjoint(call_, "sharedTmpBuffer", *scratch_, scratchBytes_, items_[i].need.role,
                        *items_[i].need.view, items_[i].need.bytes) && good;
      }
      for (std::size_t j = 0; j < i; ++j) good = CheckPair(items_[j].need, items_[i].need) && good;
    }
    for (Item &item : items_) {
      *item.base = Usable(core_, call_, item.need);
      good = good && *item.base != nullptr;
    }
    return good;
  }

 private:
  struct Item {
    Need need;
    std::uint8_t **base;
  };

  bool CheckScratch() {
    if (scratch_ == nullptr) return HasScratch(core_, call_, nullptr, scratchBytes_);
    if (scratch_->position != AscendC::TPosition::MAX && scratch_->bytes < scratchBytes_) {
      Report(call_, "scratch-size", Text("sharedTmpBuffer of %s is too small", call_.api),
             Text("%lld B", Ll(scratch_->bytes)), Text("at least %lld B", Ll(scratchBytes_)));
      return false;
    }
    const Need need{"sharedTmpBuffer", scratch_, scratchBytes_, kBlock, Use::kWrite};
    return Usable(core_, call_, need) != nullptr;
  }
  bool CheckPair(const Need &a, const Need &b) {
    if (a.use == Use::kRead && b.use == Use::kRead) return true;
    const bool same = a.view->addr == b.view->addr;
    for (const auto &pair : shared_) {
      const bool named = (pair.one == a.view && pair.other == b.view) ||
                         (pair.one == b.view && pair.other == a.view);
      if (named && same) return true;
    }
    return Disjoint(call_, a.role, *a.view, a.bytes, b.role, *b.view, b.bytes);
  }

  struct Pair {
    const View *one, *other;
  };
  Core &core_;
  const Call &call_;
  std::vector<Item> items_;
  std::vector<Pair> shared_;
  const View *scratch_ = nullptr;
  std::int64_t scratchBytes_ = 0;
};

}  // namespace twin
