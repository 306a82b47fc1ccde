// Kernels whose results test_semantics.py compares with NumPy.
#include "kernel_operator.h"

using namespace AscendC;
using Calc = TBuf<TPosition::VECCALC>;

#define ENTRY(name) extern "C" void name(void **args)

template <typename T>
GlobalTensor<T> Gm(void *base) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(static_cast<T *>(base));
  return gm;
}

// Three buffers of 4 KB: x from args[0], y from args[1], z stored to args[2] by Finish.
template <typename T>
struct Work {
  TPipe pipe;
  Calc bufs[3];
  LocalTensor<T> x, y, z;
  void **args;
  static constexpr int kCount = 4096 / sizeof(T);

  explicit Work(void **given) : args(given) {
    for (auto &buf : bufs) pipe.InitBuffer(buf, 4096);
    x = bufs[0].Get<T>();
    y = bufs[1].Get<T>();
    z = bufs[2].Get<T>();
    DataCopy(x, Gm<T>(args[0]), kCount);
    DataCopy(y, Gm<T>(args[1]), kCount);
    Duplicate(z.template ReinterpretCast<int32_t>(), int32_t(0), 1024);
    PipeBarrier<PIPE_ALL>();
  }
  void Finish() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(Gm<T>(args[2]), z, kCount);
  }
};

// ---- masks, repeats, strides

ENTRY(masked_lanes) {
  Work<float> w(args);
  Add(w.z, w.x, w.y, uint64_t(10), 3, {1, 1, 1, 8, 8, 8});
  w.Finish();
}
ENTRY(masked_bits) {
  Work<half> w(args);
  uint64_t mask[2] = {0x5555555555555555ull, 0x8000000000000001ull};
  Mul(w.z, w.x, w.y, mask, 2, {1, 1, 1, 8, 8, 8});
  w.Finish();
}
ENTRY(strided) {
  Work<float> w(args);
  Sub(w.z, w.x, w.y, uint64_t(64), 4, {2, 1, 0, 16, 8, 0});
  w.Finish();
}
ENTRY(row_broadcast) {
  Work<float> w(args);
  Adds(w.z, w.x, 1.0f, uint64_t(64), 5, {1, 1, 8, 0});
  w.Finish();
}
ENTRY(accumulated) {
  Work<float> w(args);
  Add(w.z, w.x, w.z, uint64_t(64), 16, {1, 1, 1, 0, 8, 0});
  w.Finish();
}
ENTRY(by_register) {
  Work<float> w(args);
  SetVectorMask<float>(0, 0xF0);
  Add<float, false>(w.z, w.x, w.y, MASK_PLACEHOLDER, 2, {1, 1, 1, 8, 8, 8});
  ResetMask();
  w.Finish();
}
ENTRY(by_counter) {
  Work<float> w(args);
  SetMaskCount();
  SetVectorMask<float, MaskMode::COUNTER>(100);
  Add<float, false>(w.z, w.x, w.y, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8});
  SetMaskNorm();
  ResetMask();
  w.Finish();
}
ENTRY(count_form_resets_the_mask) {
  Work<float> w(args);
  SetVectorMask<float>(0, 0xF);
  Add(w.z, w.x, w.y, 8);
  Add<float, false>(w.z, w.x, w.y, MASK_PLACEHOLDER, 2, {1, 1, 1, 8, 8, 8});
  w.Finish();
}
ENTRY(repeat_of_256_wraps_to_0) {
  Work<float> w(args);
  volatile int repeats = 256;
  Add(w.z, w.x, w.y, uint64_t(64), int(repeats), {1, 1, 1, 0, 0, 0});
  w.Finish();
}
ENTRY(widening_repeats) {
  Work<float> w(args);
  auto narrow = w.x.ReinterpretCast<half>();
  Cast(w.z, narrow, RoundMode::CAST_NONE, uint64_t(64), 3, {1, 1, 8, 4});
  w.Finish();
}
ENTRY(mixed_axpy) {
  Work<float> w(args);
  Adds(w.z, w.y, 0.0f, 1024);
  Axpy(w.z, w.x.ReinterpretCast<half>(), half(0.5), 100);
  w.Finish();
}
ENTRY(copied_lanes) {
  Work<half> w(args);
  Copy(w.z, w.x, uint64_t(100), 3, {1, 1, 8, 16});
  w.Finish();
}
ENTRY(indexed_lanes) {
  Work<float> w(args);
  CreateVecIndex(w.z, 5.0f, uint64_t(64), 2, 1, 8);
  w.Finish();
}

// ---- copies

ENTRY(blocks_in) {
  Work<float> w(args);
  DataCopy(w.z, Gm<float>(args[0]), DataCopyParams(4, 2, 1, 3));
  w.Finish();
}
ENTRY(blocks_out) {
  Work<float> w(args);
  DataCopy(Gm<float>(args[2]), w.x, DataCopyParams(4, 2, 1, 3));
}
ENTRY(blocks_over) {
  Work<float> w(args);
  DataCopy(w.z, w.x, DataCopyParams(4, 2, 1, 3));
  w.Finish();
}
ENTRY(padded_in) {
  Work<float> w(args);
  DataCopyPadExtParams<float> pad(true, 2, 1, -7.0f);
  DataCopyPad(w.z, Gm<float>(args[0]), DataCopyExtParams(3, 20, 12, 1, 0), pad);
  w.Finish();
}
ENTRY(padded_in_by_default) {
  Work<float> w(args);
  DataCopyPad(w.z, Gm<float>(args[0]), DataCopyExtParams(2, 12, 0, 0, 0),
              DataCopyPadExtParams<float>());
  w.Finish();
}
ENTRY(padded_in_by_flag_alone) {
  Work<float> w(args);
  DataCopyPad(w.z, Gm<float>(args[0]), DataCopyExtParams(2, 12, 0, 0, 0),
              DataCopyPadExtParams<float>(true, 0, 0, -7));
  w.Finish();
}
ENTRY(padded_in_16_bit) {
  Work<half> w(args);
  DataCopyPad(w.z, Gm<half>(args[0]), DataCopyParams(2, 6, 10, 0),
              DataCopyPadParams(true, 0, 3, 0));
  w.Finish();
}
ENTRY(padded_out) {
  Work<float> w(args);
  DataCopyPad(Gm<float>(args[2]), w.x, DataCopyExtParams(3, 20, 1, 12, 0));
}
ENTRY(sliced_in) {
  Work<float> w(args);
  SliceInfo from[] = {{16, 55, 8, 1, 64}, {1, 2, 0, 1, 4}};
  SliceInfo to[] = {{0, 23, 0, 1, 24}, {0, 1, 0, 1, 2}};
  DataCopy(w.z, Gm<float>(args[0]), to, from, 2);
  w.Finish();
}
ENTRY(short_copy_is_cut) {
  Work<float> w(args);
  DataCopy(w.z, w.x, 13);
  w.Finish();
}
ENTRY(atomic_add) {
  Work<float> w(args);
  SetAtomicAdd<float>();
  DataCopy(Gm<float>(args[2]), w.x, 64);
  DataCopyPad(Gm<float>(args[2]), w.x, DataCopyExtParams(1, 12, 0, 0, 0));
  SetAtomicNone();
}
ENTRY(atomic_max_16) {
  Work<half> w(args);
  SetAtomicMax<half>();
  DataCopy(Gm<half>(args[2]), w.x, 64);
  SetAtomicNone();
}
ENTRY(filled) {
  Work<float> w(args);
  InitOutput(Gm<float>(args[2]), 100, 3.0f);
}

// ---- reductions

ENTRY(whole_sum) {
  Work<half> w(args);
  WholeReduceSum(w.z, w.x, 100, 5, 1, 1, 8);
  w.Finish();
}
ENTRY(whole_max) {
  Work<float> w(args);
  WholeReduceMax(w.z, w.x, 64, 5, 1, 1, 8);
  WholeReduceMin(w.z[64], w.x, 64, 5, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  WholeReduceMax(w.z[128], w.x, 64, 5, 1, 1, 8, ReduceOrder::ORDER_ONLY_INDEX);
  w.Finish();
}
ENTRY(block_sum) {
  Work<float> w(args);
  BlockReduceSum(w.z, w.x, 4, 64, 1, 1, 8);
  BlockReduceMax(w.z[64], w.x, 4, 64, 1, 1, 8);
  BlockReduceMin(w.z[128], w.x, 4, 60, 1, 1, 8);
  w.Finish();
}
ENTRY(pair_sum) {
  Work<float> w(args);
  PairReduceSum(w.z, w.x, 4, 64, 1, 1, 8);
  w.Finish();
}
ENTRY(repeat_sum) {
  Work<float> w(args);
  RepeatReduceSum(w.z, w.x, 4, 64, 0, 1, 1, 8);
  w.Finish();
}
ENTRY(max_with_index) {
  Work<float> w(args);
  ReduceMax(w.z, w.x, w.y, 200, true);
  ReduceMin(w.z[64], w.x, w.y, uint64_t(64), 3, 8, true);
  w.Finish();
}
ENTRY(sum_of_repeats) {
  Work<float> w(args);
  ReduceSum(w.z, w.x, w.y, uint64_t(64), 7, 8);
  w.Finish();
}
ENTRY(sum_rows) {
  Work<float> w(args);
  Sum(w.z, w.x, SumParams{3, 80, 75});
  Mean(w.z[64], w.x, MeanParams{3, 80, 75});
  w.Finish();
}
ENTRY(accumulator) {
  Work<float> w(args);
  WholeReduceSum(w.z, w.x, 64, 1, 1, 1, 8);
  w.z.SetValue(8, GetAccVal<float>());
  WholeReduceMax(w.z[16], w.x, 64, 1, 1, 1, 8);
  float value, index;
  GetReduceMaxMinCount<float>(value, index);
  w.z.SetValue(24, value);
  w.z.SetValue(25, index);
  w.Finish();
}

// ---- moves inside UB

ENTRY(brcb) {
  Work<float> w(args);
  Brcb(w.z, w.x, 3, {1, 8});
  w.Finish();
}
ENTRY(gathered) {
  Work<float> w(args);
  Gather(w.z, w.x, w.y.ReinterpretCast<uint32_t>(), 8, 100);
  w.Finish();
}
ENTRY(gathered_mask) {
  Work<float> w(args);
  uint64_t kept = 0;
  GatherMask(w.z, w.x, 3, false, 0, {1, 2, 8, 0}, kept);
  w.z.SetValue(1000, static_cast<float>(kept));
  GatherMask(w.z[64], w.x, w.y.ReinterpretCast<uint32_t>(), true, 70, {1, 2, 16, 0}, kept);
  w.z.SetValue(1001, static_cast<float>(kept));
  w.Finish();
}
ENTRY(transposed) {
  Work<half> w(args);
  Transpose(w.z, w.x);
  LocalTensor<half> to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = w.z[256 + 16 * i];
    from[i] = w.x[16 * i];
  }
  TransDataTo5HD(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
  w.Finish();
}
ENTRY(sorted) {
  Work<float> w(args);
  CreateVecIndex(w.y.ReinterpretCast<int32_t>(), int32_t(0), 64);
  Sort32(w.z, w.x, w.y.ReinterpretCast<uint32_t>(), 2);
  w.Finish();
}
ENTRY(broadcast) {
  Work<float> w(args);
  const uint32_t to[] = {5, 16}, column[] = {5, 1}, row[] = {1, 16};
  BroadCast<float, 2, 1>(w.z, w.x, to, column);
  BroadCast<float, 2, 0>(w.z[128], w.x, to, row);
  w.Finish();
}
ENTRY(select_by_register) {
  Work<float> w(args);
  Compare(w.x, w.y, CMPMODE::LT, uint64_t(64), BinaryRepeatParams());
  Select<float, SELMODE::VSEL_CMPMASK_SPR>(w.z, w.x, w.y, 2, {1, 1, 1, 8, 8, 8});
  w.Finish();
}
ENTRY(dequantised) {
  Work<int32_t> w(args);
  SetDeqScale(half(0.25));
  Cast(w.z.ReinterpretCast<half>(), w.x, RoundMode::CAST_NONE, 100);
  w.Finish();
}

// ---- scalars and state

ENTRY(scalar_access) {
  Work<float> w(args);
  w.z.SetValue(0, w.x.GetValue(1) + w.y(2));
  w.z(1) = w.x(3);
  Gm<float>(args[1]).SetValue(5, 42.0f);
  w.z.SetValue(2, Gm<float>(args[1]).GetValue(5));
  w.z.SetValue(3, static_cast<float>(GetBlockNum() * 10 + GetSubBlockIdx()));
  w.Finish();
}
ENTRY(uninitialised) {
  TPipe pipe;
  Calc buf;
  pipe.InitBuffer(buf, 4096);
  DataCopy(Gm<float>(args[2]), buf.Get<float>(), 1024);
}
ENTRY(tiling_key) {
  Work<float> w(args);
  if (TILING_KEY_IS(7)) {
    w.z.SetValue(0, 7.0f);
  } else if (TILING_KEY_IS(8)) {
    w.z.SetValue(0, 8.0f);
  }
  w.Finish();
}

// ---- operations as functions, and as symbols

using OneSource = void(const LocalTensor<float> &, const LocalTensor<float> &, const int32_t &);
using TwoSources = void(const LocalTensor<float> &, const LocalTensor<float> &,
                        const LocalTensor<float> &, const int32_t &);
using OneScalar = void(const LocalTensor<float> &, const LocalTensor<float> &, const float &,
                       const int32_t &);
using FromLibrary = void(const LocalTensor<float> &, const LocalTensor<float> &, const uint32_t);

template <OneSource *op, TwoSources *two, OneScalar *scalar, FromLibrary *library>
void Chain(Work<float> &w) {
  op(w.z, w.x, 1024);
  two(w.z, w.z, w.y, 1024);
  scalar(w.z, w.z, 2.0f, 1024);
  library(w.z, w.z, 1024);
}
ENTRY(operations_as_functions) {
  Work<float> w(args);
  Chain<Abs, Add, Muls, Floor<float, false>>(w);
  w.Finish();
}
ENTRY(symbols) {
  Work<float> w(args);
  w.z = w.x * w.y;
  w.z = w.z - w.y;
  w.Finish();
}
// Bits of the comparisons: whole tensors; And and Or of bytes count 16-bit elements.
ENTRY(symbols_of_comparison) {
  Work<float> w(args);
  auto low = w.z.ReinterpretCast<uint8_t>(), high = w.z[512].ReinterpretCast<uint8_t>();
  auto same = w.z[256].ReinterpretCast<uint8_t>(), either = w.z[768].ReinterpretCast<uint8_t>();
  low = w.x < w.y;
  high = w.x >= w.y;
  same = w.x == w.x;
  And(either, low, same, 1024 / 8 / 2);
  Or(either.ReinterpretCast<int32_t>(), either.ReinterpretCast<int32_t>(),
     high.ReinterpretCast<int32_t>(), 1024 / 8 / 2);
  w.Finish();
}
ENTRY(accumulator_register) {
  Work<float> w(args);
  AscendCUtils::SetMask<float>(64);
  vcadd(nullptr, (__ubuf__ float *)w.x.GetPhyAddr(), 3, 1, 1, 8, true);
  uint64_t bits = GetAccVal();
  w.z.SetValue(0, *reinterpret_cast<float *>(&bits));
  AscendCUtils::ResetMask();
  w.Finish();
}

// ---- cores

// Each core writes its number, and after the barrier reads its neighbour's.
ENTRY(neighbours) {
  TPipe pipe;
  Calc buf;
  pipe.InitBuffer(buf, 64);
  auto x = buf.Get<float>();
  const int64_t me = GetBlockIdx(), next = (me + 1) % GetBlockNum();
  for (int round = 0; round < 3; ++round) {
    Duplicate(x, static_cast<float>(me + 100 * round), 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Gm<float>(args[0])[8 * me], x, 8);
    SyncAll();
    DataCopy(x, Gm<float>(args[0])[8 * next], 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Gm<float>(args[2])[8 * (round * GetBlockNum() + me)], x, 8);
    SyncAll();
  }
}
// Core i waits for core i + 1: a chain. Each core writes a cache line of its own.
ENTRY(chain) {
  Work<float> w(args);
  auto flags = Gm<int32_t>(args[1]);
  const int64_t me = GetBlockIdx();
  LocalTensor<int32_t> ub = w.z.ReinterpretCast<int32_t>();
  if (me + 1 < GetBlockNum()) IBWait(flags, ub, me + 1, 0);
  auto out = Gm<float>(args[2]);
  out.SetValue(16 * me, 1.0f + (me + 1 < GetBlockNum() ? out.GetValue(16 * me + 16) : 0.0f));
  DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(out[16 * me]);
  IBSet(flags, ub, me, 0);
}
// Rows of any length, three passes, one queue a direction: what a generated softmax looks like.
ENTRY(softmax) {
  const int64_t rows = static_cast<int64_t *>(args[1])[0];
  const int64_t cols = static_cast<int64_t *>(args[1])[1];
  constexpr int32_t kTile = 256;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  Calc scratch, part;
  pipe.InitBuffer(in, 2, kTile * 4);
  pipe.InitBuffer(out, 2, kTile * 4);
  pipe.InitBuffer(scratch, kTile * 4);
  pipe.InitBuffer(part, 32);
  auto tmp = scratch.Get<float>();
  auto one = part.Get<float>();
  const auto tiles = (cols + kTile - 1) / kTile;
  const auto load = [&](int64_t row, int64_t t, int32_t n) {
    auto x = in.AllocTensor<float>();
    DataCopyExtParams how(1, n * 4, 0, 0, 0);
    DataCopyPad(x, Gm<float>(args[0])[row * cols + t * kTile], how, DataCopyPadExtParams<float>());
    in.EnQue(x);
    return in.DeQue<float>();
  };
  for (int64_t row = GetBlockIdx(); row < rows; row += GetBlockNum()) {
    float top = -INFINITY, total = 0.0f;
    for (int64_t t = 0; t < tiles; ++t) {
      const int32_t n = cols - t * kTile < kTile ? cols - t * kTile : kTile;
      auto x = load(row, t, n);
      ReduceMax(one, x, tmp, n);
      top = one.GetValue(0) > top ? one.GetValue(0) : top;
      in.FreeTensor(x);
    }
    for (int64_t t = 0; t < tiles; ++t) {
      const int32_t n = cols - t * kTile < kTile ? cols - t * kTile : kTile;
      auto x = load(row, t, n);
      Adds(x, x, -top, n);
      Exp(x, x, n);
      ReduceSum(one, x, tmp, n);
      total += one.GetValue(0);
      in.FreeTensor(x);
    }
    for (int64_t t = 0; t < tiles; ++t) {
      const int32_t n = cols - t * kTile < kTile ? cols - t * kTile : kTile;
      auto x = load(row, t, n);
      auto y = out.AllocTensor<float>();
      Adds(y, x, -top, n);
      Exp(y, y, n);
      Muls(y, y, 1.0f / total, n);
      in.FreeTensor(x);
      out.EnQue(y);
      y = out.DeQue<float>();
      auto to = Gm<float>(args[2])[row * cols + t * kTile];
      DataCopyPad(to, y, DataCopyExtParams(1, n * 4, 0, 0, 0));
      out.FreeTensor(y);
    }
  }
}
