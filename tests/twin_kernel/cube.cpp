// Kernels of cube cores and of both kinds together; test_cube.py compares them with NumPy.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

#define ENTRY(name) extern "C" __attribute__((visibility("default"))) void name(void **args)
#define ON_CUBE(name)                                              \
  void name##_cube(void **args);                                   \
  ENTRY(name) {                                                    \
    if (g_coreType == AIC) name##_cube(args);                      \
  }                                                                \
  void name##_cube(void **args)

template <typename T>
GlobalTensor<T> Gm(void *base) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(static_cast<T *>(base));
  return gm;
}
inline int Up(int value, int unit) { return (value + unit - 1) / unit * unit; }

struct Sizes {
  int64_t m, n, k, mode, relu, nz, scale, extra;
};
inline Sizes SizesOf(void *from) {
  Sizes sizes;
  __builtin_memcpy(&sizes, from, sizeof sizes);
  return sizes;
}

// A cube core's memories as static tensors: A and B in L1 and L0, C in L0C.
template <typename T, typename C>
struct Core {
  static constexpr int kPacked = std::is_same_v<T, int4b_t> ? 2 : 1;
  static constexpr int kC0 = 32 / sizeof(T) * kPacked;
  LocalTensor<T> a1{TPosition::A1, 0, 65536 / sizeof(T)};
  LocalTensor<T> b1{TPosition::B1, 65536, 65536 / sizeof(T)};
  LocalTensor<T> a2{TPosition::A2, 0, 65536 / sizeof(T)};
  LocalTensor<T> b2{TPosition::B2, 0, 65536 / sizeof(T)};
  LocalTensor<C> c{TPosition::CO1, 0, 32768};

  void Done() { PipeBarrier<PIPE_ALL>(); }
  // rows x columns in global memory to NZ in L1.
  void ToL1(const LocalTensor<T> &to, const GlobalTensor<T> &from, int rows, int columns) {
    Nd2NzParams how;
    how.ndNum = 1;
    how.nValue = rows;
    how.dValue = columns / kPacked;
    how.srcDValue = columns / kPacked;
    how.dstNzC0Stride = Up(rows, 16);
    how.dstNzNStride = 1;
    DataCopy(to, from, how);
    Done();
  }
  // NZ in L1 to Zz in L0A.
  void LoadA(int m, int k) {
    LoadData2DParams how;
    how.repeatTimes = Up(k, kC0) / kC0;
    how.srcStride = Up(m, 16) / 16;
    for (int i = 0; i < Up(m, 16) / 16; ++i) {
      LoadData(a2[i * Up(k, kC0) * 16], a1[i * 16 * kC0], how);
    }
    Done();
  }
  // B given as n x k: its NZ is already the Zn of L0B.
  void LoadB(int n, int k) {
    LoadData2DParams how;
    how.repeatTimes = Up(n, 16) / 16 * (Up(k, kC0) / kC0);
    how.srcStride = 1;
    LoadData(b2, b1, how);
    Done();
  }
  void Multiply(int m, int n, int k, bool fresh = true) {
    MmadParams how;
    how.m = m;
    how.n = n;
    how.k = k;
    how.cmatrixInitVal = fresh;
    Mmad(c, a2, b2, how);
    Done();
  }
  FixpipeParamsV220 Out(int m, int n) {
    FixpipeParamsV220 how;
    how.nSize = n;
    how.mSize = m;
    how.srcStride = Up(m, 16);
    how.dstStride = n;
    return how;
  }
  // a: m x k, b: n x k.
  void Product(void **args, const Sizes &s) {
    ToL1(a1, Gm<T>(args[0]), s.m, s.k);
    ToL1(b1, Gm<T>(args[1]), s.n, s.k);
    LoadA(s.m, s.k);
    LoadB(s.n, s.k);
    Multiply(s.m, s.n, s.k);
  }
};

#define PRODUCT(name, T, C)                           \
  ON_CUBE(name) {                                     \
    const Sizes s = SizesOf(args[3]);                 \
    Core<T, C> core;                                  \
    core.Product(args, s);                            \
    Fixpipe(Gm<C>(args[2]), core.c, core.Out(s.m, s.n)); \
  }
PRODUCT(product_half, half, float)
PRODUCT(product_bf16, bfloat16_t, float)
PRODUCT(product_float, float, float)
PRODUCT(product_int8, int8_t, int32_t)
PRODUCT(product_int4, int4b_t, int32_t)
ON_CUBE(image_int4) {  // A by the 3D load
  const Sizes s = SizesOf(args[3]);
  Core<int4b_t, int32_t> core;
  core.ToL1(core.a1, Gm<int4b_t>(args[0]), s.m, s.k);
  core.ToL1(core.b1, Gm<int4b_t>(args[1]), s.n, s.k);
  LoadData3DParamsV2<int4b_t> how;
  how.l1H = 1;
  how.l1W = how.mExtension = Up(s.m, 16);
  how.channelSize = how.kExtension = Up(s.k, 64);
  LoadData(core.a2, core.a1, how);
  core.Done();
  core.LoadB(s.n, s.k);
  core.Multiply(s.m, s.n, s.k);
  Fixpipe(Gm<int32_t>(args[2]), core.c, core.Out(s.m, s.n));
}

ON_CUBE(product_hf32) {
  const Sizes s = SizesOf(args[3]);
  Core<float, float> core;
  SetHF32Mode(HF32Mode::ENABLE);
  SetHF32TransMode(HF32TransMode::NEAREST_EVEN);
  core.Product(args, s);
  SetHF32Mode(HF32Mode::DISABLE);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}

// ---- forms of loads

ON_CUBE(transposed_half) {  // b: k x n, each fractal transposed on its way
  const Sizes s = SizesOf(args[3]);
  Core<half, float> core;
  core.ToL1(core.a1, Gm<half>(args[0]), s.m, s.k);
  core.ToL1(core.b1, Gm<half>(args[1]), s.k, s.n);
  core.LoadA(s.m, s.k);
  LoadData2DParams how;
  how.repeatTimes = Up(s.n, 16) / 16;
  how.srcStride = Up(s.k, 16) / 16;
  how.ifTranspose = true;
  for (int i = 0; i < Up(s.k, 16) / 16; ++i) {
    LoadData(core.b2[i * Up(s.n, 16) * 16], core.b1[i * 256], how);
  }
  core.Done();
  core.Multiply(s.m, s.n, s.k);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}

// b comes as it lies in L1: 8-bit as NZ of k x n, 32-bit as Zz of k x n.
template <typename T, typename C>
void Squares(void **args) {
  const Sizes s = SizesOf(args[3]);
  Core<T, C> core;
  core.ToL1(core.a1, Gm<T>(args[0]), s.m, s.k);
  DataCopy(core.b1, Gm<T>(args[1]), s.k * s.n);
  core.Done();
  core.LoadA(s.m, s.k);
  LoadData2dTransposeParams how;
  const int side = sizeof(T) == 1 ? core.kC0 : 16;
  how.repeatTimes = s.n / side;
  if (sizeof(T) == 1) {
    how.srcStride = s.k / side;
    how.dstGap = side / 16 - 1;
  } else {
    how.srcStride = 1;
    how.dstFracGap = s.n / 16 - 1;
  }
  for (int i = 0; i < s.k / side; ++i) {
    LoadDataWithTranspose(core.b2[i * s.n * side], core.b1[i * (sizeof(T) == 1 ? side * side : s.n * 16)], how);
  }
  core.Done();
  core.Multiply(s.m, s.n, s.k);
  Fixpipe(Gm<C>(args[2]), core.c, core.Out(s.m, s.n));
}
ON_CUBE(squares_int8) { Squares<int8_t, int32_t>(args); }
ON_CUBE(squares_int4) { Squares<int4b_t, int32_t>(args); }
ON_CUBE(squares_float) { Squares<float, float>(args); }

// A convolution: image [c1][h][w][16], weights n x k; args[4]: h, w, c, filter, stride, dilation, pad
ON_CUBE(convolution) {
  const Sizes s = SizesOf(args[3]);
  const int64_t *p = static_cast<int64_t *>(args[4]);
  Core<half, float> core;
  DataCopy(core.a1, Gm<half>(args[0]), p[0] * p[1] * p[2]);
  core.Done();
  core.ToL1(core.b1, Gm<half>(args[1]), s.n, s.k);
  core.LoadB(s.n, s.k);
  LoadData3DParamsV2<half> how;
  for (auto &side : how.padList) side = p[6];
  how.l1H = p[0];
  how.l1W = p[1];
  how.channelSize = p[2];
  how.kExtension = s.k;
  how.mExtension = s.m;
  how.filterW = how.filterH = p[3];
  how.strideW = how.strideH = p[4];
  how.dilationFilterW = how.dilationFilterH = p[5];
  how.padValue = half(0.5f);
  LoadData(core.a2, core.a1, how);
  core.Done();
  core.Multiply(s.m, s.n, s.k);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}

// Both operands through the 3D load: A given as k x m is transposed, B as k x n needs no flag.
template <typename T>
void Image(void **args) {
  const Sizes s = SizesOf(args[3]);
  Core<T, float> core;
  core.ToL1(core.a1, Gm<T>(args[0]), s.k, s.m);
  core.ToL1(core.b1, Gm<T>(args[1]), s.k, s.n);
  static constexpr IsResetLoad3dConfig kOwn = {false, false};
  const uint8_t pad[4] = {0, 0, 0, 0};
  SetFmatrix(1, Up(s.k, 16), pad, FmatrixMode::FMATRIX_LEFT);
  SetLoadDataPaddingValue(T(0.0f));
  SetLoadDataRepeat({0, 1, 0});
  SetLoadDataBoundary(0);
  LoadData3DParamsV2<T> how;
  how.channelSize = s.m;
  how.kExtension = s.m;
  how.mExtension = s.k;
  how.enTranspose = true;
  LoadData<T, kOwn>(core.a2, core.a1, how);
  how.channelSize = how.kExtension = s.n;
  LoadData<T, kOwn>(core.b2, core.b1, how);
  core.Done();
  MmadParams mm;
  mm.m = s.m;
  mm.n = s.n;
  mm.k = s.k;
  mm.kDirectionAlign = sizeof(T) == 4;
  Mmad(core.c, core.a2, core.b2, mm);
  core.Done();
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}
ON_CUBE(image_half) { Image<half>(args); }
ON_CUBE(image_float) { Image<float>(args); }

ON_CUBE(vector_times_matrix) {  // m = 1: A is a plain row
  const Sizes s = SizesOf(args[3]);
  Core<half, float> core;
  DataCopy(core.a1, Gm<half>(args[0]), s.k);
  core.ToL1(core.b1, Gm<half>(args[1]), s.n, s.k);
  LoadData2DParams how;
  how.repeatTimes = Up(s.k, 256) / 256;
  how.srcStride = 1;
  LoadData(core.a2, core.a1, how);
  core.LoadB(s.n, s.k);
  core.Multiply(1, s.n, s.k);
  auto out = core.Out(1, s.n);
  Fixpipe(Gm<float>(args[2]), core.c, out);
}

ON_CUBE(filled) {  // A of ones: column sums
  const Sizes s = SizesOf(args[3]);
  Core<half, float> core;
  Fill(core.a2, InitConstValueParams<half>(1, static_cast<uint16_t>(s.k / 16), 0, half(1.0f)));
  core.ToL1(core.b1, Gm<half>(args[1]), s.n, s.k);
  core.LoadB(s.n, s.k);
  core.Multiply(16, s.n, s.k);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(16, s.n));
}

ON_CUBE(biased) {  // twice the product and a bias of half, through the bias table
  const Sizes s = SizesOf(args[3]);
  Core<half, float> core;
  core.Product(args, s);
  LocalTensor<half> c1(TPosition::C1, 131072, Up(s.n, 32));
  LocalTensor<float> table(TPosition::C2, 0, Up(s.n, 32));
  DataCopy(c1, Gm<half>(args[4]), Up(s.n, 32));
  core.Done();
  DataCopy(table, c1, DataCopyParams(1, Up(s.n, 32) / 32, 0, 0));
  core.Done();
  MmadParams how;
  how.m = s.m;
  how.n = s.n;
  how.k = s.k;
  how.cmatrixInitVal = false;
  Mmad(core.c, core.a2, core.b2, table, how);
  core.Done();
  core.Multiply(s.m, s.n, s.k, false);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}

// ---- ways out

// mode, relu, nz and scale of the sizes; args[4]: scales of the columns
template <typename T, typename C, typename D>
void WayOut(void **args) {
  const Sizes s = SizesOf(args[3]);
  Core<T, C> core;
  core.Product(args, s);
  auto how = core.Out(s.m, s.n);
  how.quantPre = static_cast<QuantMode_t>(s.mode);
  how.reluEn = s.relu != 0;
  how.deqScalar = static_cast<uint64_t>(s.scale);
  how.isChannelSplit = s.nz == 2;
  if (s.nz != 0) how.dstStride = s.extra;
  const bool table = s.mode == VDEQF16 || s.mode == VQF322B8_PRE || s.mode == VREQ8;
  LocalTensor<uint64_t> scales(TPosition::C1, 131072, 256);
  if (table) {
    DataCopy(scales, Gm<uint64_t>(args[4]), Up(s.n, 4));
    core.Done();
    if (s.nz != 0) Fixpipe<D, C, CFG_NZ>(Gm<D>(args[2]), core.c, scales, how);
    else Fixpipe<D, C, CFG_ROW_MAJOR>(Gm<D>(args[2]), core.c, scales, how);
    return;
  }
  if (s.nz != 0) Fixpipe<D, C, CFG_NZ>(Gm<D>(args[2]), core.c, how);
  else Fixpipe<D, C, CFG_ROW_MAJOR>(Gm<D>(args[2]), core.c, how);
}
ON_CUBE(out_half) { WayOut<half, float, half>(args); }
ON_CUBE(out_bf16) { WayOut<half, float, bfloat16_t>(args); }
ON_CUBE(out_float) { WayOut<half, float, float>(args); }
ON_CUBE(out_byte) { WayOut<half, float, int8_t>(args); }
ON_CUBE(out_int_half) { WayOut<int8_t, int32_t, half>(args); }
ON_CUBE(out_int_byte) { WayOut<int8_t, int32_t, uint8_t>(args); }

ON_CUBE(out_by_registers) {  // DataCopy out of L0C, its parameters in registers
  const Sizes s = SizesOf(args[3]);
  Core<int8_t, int32_t> core;
  core.Product(args, s);
  LocalTensor<uint64_t> scales(TPosition::C1, 131072, 64), table(TPosition::C2PIPE2GM, 0, 64);
  DataCopy(scales, Gm<uint64_t>(args[4]), 64);
  core.Done();
  DataCopy(table, scales, DataCopyParams(1, 64 * 8 / 128, 0, 0));
  core.Done();
  SetFixPipeConfig(table);
  SetFixpipeNz2ndFlag(1, 0, 0);
  DataCopyCO12DstParams how(s.n, s.m, s.n, Up(s.m, 16), VDEQF16, 0, false, true);
  DataCopy(Gm<half>(args[2]), core.c, how);
}

ON_CUBE(out_through_l1) {  // C as half in L1 is A of a second product
  const Sizes s = SizesOf(args[3]);
  Core<half, float> core;
  core.Product(args, s);
  auto how = core.Out(s.m, s.n);
  how.quantPre = F322F16;
  how.dstStride = Up(s.m, 16);
  Fixpipe<half, float, CFG_NZ>(core.a1, core.c, how);
  core.Done();
  core.ToL1(core.b1, Gm<half>(args[4]), s.n, s.n);
  core.LoadA(s.m, s.n);
  core.LoadB(s.n, s.n);
  core.Multiply(s.m, s.n, s.n);
  Fixpipe(Gm<float>(args[2]), core.c, core.Out(s.m, s.n));
}

// ---- sparse weights: b is [n][k / 2] as it lies in L0B, args[4] its index

ON_CUBE(sparse) {
  const Sizes s = SizesOf(args[3]);
  Core<int8_t, int32_t> core;
  core.ToL1(core.a1, Gm<int8_t>(args[0]), s.m, s.k);
  core.LoadA(s.m, s.k);
  LocalTensor<uint8_t> index(TPosition::B1, 131072, 16384);
  DataCopy(core.b1, Gm<int8_t>(args[1]), s.n * s.k / 2);
  DataCopy(index, Gm<uint8_t>(args[4]), s.n * s.k / 8);
  core.Done();
  LoadData2DParams how;
  how.repeatTimes = s.n / 16 * (s.k / 64);
  LoadDataWithSparse(core.b2, core.b1, index, how);
  core.Done();
  MmadParams mm;
  mm.m = s.m;
  mm.n = s.n;
  mm.k = s.k;
  MmadWithSparse(core.c, core.a2, core.b2, mm);
  core.Done();
  Fixpipe(Gm<int32_t>(args[2]), core.c, core.Out(s.m, s.n));
}

// ---- queues of a cube core

ON_CUBE(queues) {
  const Sizes s = SizesOf(args[3]);
  TPipe pipe;
  TQue<TPosition::A1, 1> a1;
  TQue<TPosition::A2, 1> a2;
  TQue<TPosition::B1, 1> b1;
  TQue<TPosition::B2, 1> b2;
  TQue<TPosition::CO1, 1> co1;
  pipe.InitBuffer(a1, 1, 16 * s.k * 2);
  pipe.InitBuffer(a2, 1, 16 * s.k * 2);
  pipe.InitBuffer(b1, 1, 16 * s.k * 2);
  pipe.InitBuffer(b2, 1, 16 * s.k * 2);
  pipe.InitBuffer(co1, 1, 1024);
  const auto in = [&](auto &queue, void *from) {
    auto x = queue.template AllocTensor<half>();
    Nd2NzParams how(1, 16, s.k, 0, s.k, 16, 1, 0);
    DataCopy(x, Gm<half>(from), how);
    queue.EnQue(x);
  };
  const auto load = [&](auto &from, auto &to) {
    auto x = from.template DeQue<half>();
    auto y = to.template AllocTensor<half>();
    LoadData(y, x, LoadData2DParams(0, s.k / 16, 1, 0, 0, false, 0));
    to.EnQue(y);
    from.FreeTensor(x);
  };
  in(a1, args[0]);
  in(b1, args[1]);
  load(a1, a2);
  load(b1, b2);
  auto a = a2.DeQue<half>();
  auto b = b2.DeQue<half>();
  auto c = co1.AllocTensor<float>();
  Mmad(c, a, b, MmadParams(16, 16, s.k, false));
  co1.EnQue(c);
  a2.FreeTensor(a);
  b2.FreeTensor(b);
  c = co1.DeQue<float>();
  Fixpipe(Gm<float>(args[2]), c, FixpipeParamsV220(16, 16, 16, 16, false));
  co1.FreeTensor(c);
}

// ---- both kinds of core

ENTRY(who) {  // block, sub, blocks, subs, ratio, raw block of each core, by a place of its own
  const int64_t slot = g_coreType == AIC ? GetBlockIdx() : 64 + GetBlockIdx();
  int64_t *out = static_cast<int64_t *>(args[0]) + slot * 8;
  auto gm = Gm<int64_t>(out);
  gm.SetValue(0, GetBlockIdx());
  gm.SetValue(1, GetSubBlockIdx());
  gm.SetValue(2, GetBlockNum());
  gm.SetValue(3, GetSubBlockNum());
  gm.SetValue(4, GetTaskRatio());
  gm.SetValue(5, block_idx);
  gm.SetValue(6, get_subblockid());
}

// AIV: a + 1 to the workspace, half of the rows each; AIC: product with b; AIV: twice the product.
ENTRY(mixed) {
  constexpr int kSide = 32;
  auto work = Gm<half>(args[4]);
  if ASCEND_IS_AIV {
    const int rows = kSide / GetSubBlockNum(), first = rows * GetSubBlockIdx();
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 32 * 32 * 4);
    auto x = buf.Get<half>();
    DataCopy(x, Gm<half>(args[0])[first * kSide], rows * kSide);
    PipeBarrier<PIPE_ALL>();
    Adds(x, x, half(1.0f), rows * kSide);
    PipeBarrier<PIPE_ALL>();
    DataCopy(work[first * kSide], x, rows * kSide);
    CrossCoreSetFlag<2, PIPE_MTE3>(3);
    CrossCoreWaitFlag(4);
    auto y = buf.Get<float>();
    auto out = Gm<float>(args[2])[first * kSide];
    DataCopy(y, out, rows * kSide);
    PipeBarrier<PIPE_ALL>();
    Muls(y, y, 2.0f, rows * kSide);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, y, rows * kSide);
  } else {
    Core<half, float> core;
    CrossCoreWaitFlag(3);
    void *given[4] = {args[4], args[1], args[2], args[3]};
    core.Product(given, {kSide, kSide, kSide});
    Fixpipe(Gm<float>(args[2]), core.c, core.Out(kSide, kSide));
    CrossCoreSetFlag<2, PIPE_FIX>(4);
  }
}

// Each core writes its number, all meet, each reads everybody's sum.
ENTRY(all_meet) {
  const int64_t cubes = GetBlockNum();
  const int64_t slot = g_coreType == AIC ? GetBlockIdx() : cubes + GetBlockIdx();
  auto numbers = Gm<int64_t>(args[0]);
  numbers.SetValue(slot * 8, slot + 1);
  SyncAll<false>();
  int64_t sum = 0;
  for (int i = 0; i < 3 * cubes; ++i) sum += numbers.GetValue(i * 8);
  Gm<int64_t>(args[1]).SetValue(slot * 8, sum);
}

// The vector cores of a block count together (mode 1), then those of all blocks (mode 0).
ENTRY(vectors_meet) {
  if ASCEND_IS_AIC return;
  auto numbers = Gm<int64_t>(args[0]);
  auto sums = Gm<int64_t>(args[1]);
  const int64_t me = GetBlockIdx(), first = me - GetSubBlockIdx();
  numbers.SetValue(me * 8, me + 1);
  CrossCoreSetFlag<1, PIPE_MTE3>(5);
  CrossCoreWaitFlag(5);
  sums.SetValue(me * 8, numbers.GetValue(first * 8) + numbers.GetValue(first * 8 + 8));
  ffts_cross_core_sync(PIPE_MTE3, 1 | 0 << 4 | 6 << 8);
  wait_flag_dev(6);
  int64_t sum = 0;
  for (int i = 0; i < GetBlockNum() * GetSubBlockNum(); ++i) sum += sums.GetValue(i * 8);
  numbers.SetValue(me * 8, sum);
}

// Vector cores append to a list strictly one after the other, twice.
ENTRY(in_turn) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, 1024);
  auto ub = buf.Get<int32_t>();
  auto work = Gm<int32_t>(args[1]);
  auto list = Gm<int64_t>(args[0]);
  InitDetermineComputeWorkspace(work, ub);
  for (int round = 0; round < 2; ++round) {
    WaitPreBlock(work, ub);
    const int64_t count = list.GetValue(0);
    list.SetValue(1 + count, GetBlockIdx());
    list.SetValue(0, count + 1);
    NotifyNextBlock(work, ub);
  }
}

ENTRY(many_flags) {
  for (int i = 0; i < 40; ++i) {
    if ASCEND_IS_AIC CrossCoreSetFlag<2, PIPE_FIX>(1);
    if ASCEND_IS_AIV CrossCoreWaitFlag(1);
  }
}

ENTRY(stuck) {  // the vector cores of block 1 never set the flag
  if ASCEND_IS_AIV {
    if (GetBlockIdx() >= GetSubBlockNum()) return;
    CrossCoreSetFlag<2, PIPE_MTE3>(2);
  } else {
    CrossCoreWaitFlag(2);
  }
}

// A queue of L1 that is filled from global memory; out: where its tensor lies.
ON_CUBE(scm) {
  TPipe pipe;
  TSCM<TPosition::GM, 1> queue;
  pipe.InitBuffer(queue, 1, 512);
  auto tile = queue.AllocTensor<half>();
  DataCopy(tile, Gm<half>(args[0]), 256);
  queue.EnQue(tile);
  tile = queue.DeQue<half>();
  Gm<int32_t>(args[2]).SetValue(0, tile.GetPosition());
  queue.FreeTensor(tile);
}

// ---- a cube core's own Matmul object

inline TCubeTiling TilingOf(const Sizes &s, int base, int baseK) {
  TCubeTiling t{};
  t.usedCoreNum = t.stepM = t.stepN = t.stepKa = t.stepKb = t.depthA1 = t.depthB1 = 1;
  t.dbL0A = t.dbL0B = t.dbL0C = 1;
  t.M = t.singleCoreM = s.m;
  t.N = t.singleCoreN = s.n;
  t.Ka = t.Kb = t.singleCoreK = s.k;
  t.baseM = t.baseN = base;
  t.baseK = baseK;
  return t;
}

// Blocks of B whose rows stand `data` elements further on in global memory.
inline void CopyLater(const LocalTensor<int8_t> &to, const __gm__ void *gm, int row, int col,
                      int useK, int useN, const uint64_t wide, const uint64_t data) {
  Nd2NzParams how;
  how.ndNum = how.dstNzNStride = 1;
  how.nValue = useK;
  how.dValue = useN;
  how.srcDValue = wide;
  how.dstNzC0Stride = Up(useK, 16);
  const uint64_t first = row * 32 * wide + col * 32 + data;
  DataCopy(to.ReinterpretCast<half>(), Gm<half>(const_cast<void *>(gm))[first], how);
}

template <TPosition out, CubeFormat format, class Copies>
using Own = MatmulImpl<MatmulType<TPosition::GM, CubeFormat::ND, half>,
                       MatmulType<TPosition::GM, CubeFormat::ND, half>,
                       MatmulType<out, format, float>,
                       MatmulType<TPosition::GM, CubeFormat::ND, float>, CFG_NORM, Copies>;

ON_CUBE(callback) {
  const Sizes s = SizesOf(args[3]);
  const TCubeTiling tiling = TilingOf(s, 32, 32);
  TPipe pipe;
  Own<TPosition::GM, CubeFormat::ND, MatmulCallBackFunc<nullptr, nullptr, CopyLater>> mm;
  mm.Init(&tiling, &pipe);
  mm.SetUserDefInfo(s.n);
  mm.SetSelfDefineData(s.extra);
  mm.SetTensorA(Gm<half>(args[0]));
  mm.SetTensorB(Gm<half>(args[1]));
  mm.IterateAll(Gm<float>(args[2]));
  mm.End();
}

int brought = 0;
inline void CopyOnce(const LocalTensor<int8_t> &to, const __gm__ void *gm, int row, int col,
                     int useK, int useN, const uint64_t wide, const uint64_t data) {
  if (brought++ == 0) CopyLater(to, gm, row, col, useK, useN, wide, data);
}
ON_CUBE(callback_once) {  // all of B in L1 for two products
  const Sizes s = SizesOf(args[3]);
  TCubeTiling tiling = TilingOf(s, 32, 32);
  tiling.stepKb = tiling.stepN = 2;
  tiling.depthB1 = 4;
  TPipe pipe;
  using In = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Out = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  MatmulImpl<In, In, Out, Out, CFG_MDL, MatmulCallBackFunc<nullptr, nullptr, CopyOnce>> mm;
  mm.Init(&tiling, &pipe);
  mm.SetUserDefInfo(s.n);
  brought = 0;
  for (int i = 0; i < 2; ++i) {
    mm.SetTensorA(Gm<half>(args[0])[i * s.m * s.k]);
    mm.SetTensorB(Gm<half>(args[1]));
    mm.IterateAll(Gm<float>(args[2])[i * s.m * s.n]);
  }
  mm.End();
}

ON_CUBE(sparse_b) {  // the index lies at args[4]
  const Sizes s = SizesOf(args[3]);
  const TCubeTiling tiling = TilingOf(s, 32, 32);
  TPipe pipe;
  MatmulImpl<MatmulType<TPosition::GM, CubeFormat::ND, int8_t>,
             SparseMatmulType<TPosition::GM, TPosition::GM, CubeFormat::ND, int8_t, true>,
             MatmulType<TPosition::GM, CubeFormat::ND, int32_t>,
             MatmulType<TPosition::GM, CubeFormat::ND, int32_t>, CFG_MDL> mm;
  mm.Init(&tiling, &pipe);
  mm.SetTensorA(Gm<int8_t>(args[0]));
  mm.SetTensorB(Gm<int8_t>(args[1]), true);
  mm.SetSparseIndex(Gm<uint8_t>(args[4]));
  mm.IterateAll(Gm<int32_t>(args[2]));
  mm.End();
}

ON_CUBE(own_l0c) {  // a row of blocks waits in L0C; a second product is added where it is one
  const Sizes s = SizesOf(args[3]);
  const TCubeTiling tiling = TilingOf(s, 32, 32);
  TPipe pipe;
  Own<TPosition::CO1, CubeFormat::NZ, MatmulCallBackFunc<>> mm;
  mm.Init(&tiling, &pipe);
  TQue<TPosition::CO1, 1> queue;
  pipe.InitBuffer(queue, 1, s.m * s.n * 4);
  auto sums = queue.AllocTensor<float>();
  mm.SetTensorA(Gm<half>(args[0]));
  mm.SetTensorB(Gm<half>(args[1]));
  for (int i = 0; i < s.n / 32; ++i) mm.Iterate(false, sums[i * 32 * 32]);
  mm.SetTensorA(Gm<half>(args[0]));
  if (s.extra) mm.Iterate(true, sums);
  queue.EnQue(sums);
  sums = queue.DeQue<float>();
  FixpipeParamsV220 how;
  how.nSize = s.n;
  how.mSize = how.srcStride = s.m;
  how.dstStride = s.n;
  Fixpipe(Gm<float>(args[2]), sums, how);
  queue.FreeTensor(sums);
  mm.End();
}
