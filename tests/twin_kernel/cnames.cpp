// Kernels of test_cnames.py: each C-style name beside the class-style name that it stands for; even
// rows of 64 hold what the first gave, odd rows what the second gave. args: 0 output, 1.. inputs.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)
template <typename T>
__ubuf__ T *At(const AscendC::LocalTensor<T> &tensor) {
  return (__ubuf__ T *)tensor.GetPhyAddr();
}
#define P(tensor) At(tensor)

template <typename T>
struct Ub {
  static constexpr int kRow = 256 / sizeof(T);
  TPipe pipe;
  TBuf<TPosition::VECCALC> outs, ins;
  LocalTensor<T> out, a, b;
  int rows = 0;

  explicit Ub(void **args) {
    pipe.InitBuffer(outs, 64 * 256);
    pipe.InitBuffer(ins, 2 * 256);
    out = outs.Get<T>();
    a = ins.Get<T>();
    b = a[kRow];
    Read(a, args[1]);
    Read(b, args[2]);
    PipeBarrier<PIPE_ALL>();
  }
  void Read(const LocalTensor<T> &to, void *from) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(from), kRow);
    DataCopy(to, gm, kRow);
  }
  // The next row; instructions that add to their destination find b in it.
  LocalTensor<T> Row() {
    PipeBarrier<PIPE_ALL>();
    LocalTensor<T> row = out[kRow * rows++];
    DataCopy(row, b, kRow);
    PipeBarrier<PIPE_ALL>();
    SetMaskNorm();
    SetVectorMask<uint8_t>(~0ull, ~0ull);
    return row;
  }
  void Write(void **args) {
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(args[0]), kRow * rows);
    DataCopy(gm, out, kRow * rows);
    ResetMask();
  }
};

#define BINARY(low, High)                                            \
  low(P(ub.Row()), P(ub.a), P(ub.b), 1, 1, 1, 1, 8, 8, 8);           \
  High(ub.Row(), ub.a, ub.b, ub.kRow);
#define UNARY(low, High)                                             \
  low(P(ub.Row()), P(ub.a), 1, 1, 1, 8, 8);                          \
  High(ub.Row(), ub.a, ub.kRow);
#define SCALAR(low, High, value)                                     \
  low(P(ub.Row()), P(ub.a), value, 1, 1, 1, 8, 8);                   \
  High(ub.Row(), ub.a, value, ub.kRow);

ENTRY(floats) {
  Ub<float> ub(args);
  BINARY(vsub, Sub)
  BINARY(vmul, Mul)
  BINARY(vdiv, Div)
  BINARY(vmax, Max)
  BINARY(vmin, Min)
  BINARY(vaddrelu, AddRelu)
  BINARY(vsubrelu, SubRelu)
  BINARY(vmla, MulAddDst)
  BINARY(vmadd, FusedMulAdd)
  BINARY(vmaddrelu, FusedMulAddRelu)
  UNARY(vexp, Exp)
  UNARY(vln, Ln)
  UNARY(vrec, Reciprocal)
  UNARY(vrelu, Relu)
  UNARY(vrsqrt, Rsqrt)
  UNARY(vsqrt, Sqrt)
  SCALAR(vadds, Adds, 2.5f)
  SCALAR(vmaxs, Maxs, 1.5f)
  SCALAR(vmins, Mins, 1.5f)
  SCALAR(vlrelu, LeakyRelu, 0.5f)
  SCALAR(vaxpy, Axpy, 3.0f)
  ub.Write(args);
}
ENTRY(shorts) {
  Ub<int16_t> ub(args);
  BINARY(vand, And)
  BINARY(vor, Or)
  UNARY(vnot, Not)
  SCALAR(vshl, ShiftLeft, int16_t(2))
  SCALAR(vshr, ShiftRight, int16_t(3))
  ub.Write(args);
}
ENTRY(folds) {
  Ub<float> ub(args);
  vcopy(P(ub.Row()), P(ub.a), 1, 1, 1, 8, 8);
  Copy(ub.Row(), ub.a, uint64_t(64), 1, {1, 1, 8, 8});
  vcmin(P(ub.Row()), P(ub.a), 1, 1, 1, 8);
  WholeReduceMin(ub.Row(), ub.a, int32_t(64), 1, 1, 1, 8);
  vcgadd(P(ub.Row()), P(ub.a), 1, 1, 1, 8);
  BlockReduceSum(ub.Row(), ub.a, 1, int32_t(64), 1, 1, 8);
  vcgmin(P(ub.Row()), P(ub.a), 1, 1, 1, 8);
  BlockReduceMin(ub.Row(), ub.a, 1, int32_t(64), 1, 1, 8);
  vcpadd(P(ub.Row()), P(ub.a), 1, 1, 1, 8);
  PairReduceSum(ub.Row(), ub.a, 1, int32_t(64), 1, 1, 8);
  vbrcb(P(ub.Row()), P(ub.a), 1, 8, 1);
  Brcb(ub.Row(), ub.a, 1, {1, 8});
  ub.Write(args);
}
// Comparisons: bits chosen by, into a row, and through the register.
ENTRY(compares) {
  Ub<float> ub(args);
  TBuf<TPosition::VECCALC> bits;
  ub.pipe.InitBuffer(bits, 256);
  LocalTensor<uint8_t> mask = bits.Get<uint8_t>();
  vcmpvs_lt(P(mask), P(ub.a), 1.0f, 1, 1, 1, 8, 8);
  Select(ub.Row(), mask, ub.a, ub.b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);
  CompareScalar(mask, ub.a, 1.0f, CMPMODE::LT, 64);
  Select(ub.Row(), mask, ub.a, ub.b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);
  LocalTensor<float> first = ub.Row();
  vcmp_lt(P(ub.a), P(ub.b), 1, 1, 1, 1, 8, 8, 8);
  PipeBarrier<PIPE_ALL>();
  vsel(P(first), P(ub.a), P(ub.b), 1, 1, 1, 1, 8, 8, 8);
  Min(ub.Row(), ub.a, ub.b, 64);
  // the register as it was read, and back again
  vcmp_lt(P(ub.a), P(ub.b), 1, 1, 1, 1, 8, 8, 8);
  PipeBarrier<PIPE_ALL>();
  get_cmpmask(P(mask));
  PipeBarrier<PIPE_ALL>();
  vcmp_lt(P(ub.b), P(ub.b), 1, 1, 1, 1, 8, 8, 8);
  LocalTensor<float> third = ub.Row();
  set_cmpmask(P(mask));
  PipeBarrier<PIPE_ALL>();
  vsel(P(third), P(ub.a), P(ub.b), 1, 1, 1, 1, 8, 8, 8);
  Min(ub.Row(), ub.a, ub.b, 64);
  ub.Write(args);
}
ENTRY(casts) {
  Ub<float> ub(args);
  TBuf<TPosition::VECCALC> narrow;
  ub.pipe.InitBuffer(narrow, 512);
  LocalTensor<half> h = narrow.Get<half>();
  LocalTensor<int32_t> whole = narrow.Get<int32_t>();
  LocalTensor<float> row = ub.Row();
  vconv_f322f16(P(h), P(ub.a), 1, 1, 1, 4, 8);
  PipeBarrier<PIPE_ALL>();
  vconv_f162f32(P(row), P(h), 1, 1, 1, 8, 4);
  Cast(h, ub.a, RoundMode::CAST_NONE, 64);
  Cast(ub.Row(), h, RoundMode::CAST_NONE, 64);
  Cast(whole, ub.a, RoundMode::CAST_RINT, 64);
  SetDeqScale(static_cast<half>(0.5));
  row = ub.Row();
  vconv_deq(P(narrow.Get<half>()), P(whole), 1, 1, 1, 4, 8);
  PipeBarrier<PIPE_ALL>();
  Cast(row, h, RoundMode::CAST_NONE, 64);
  Cast(whole, ub.a, RoundMode::CAST_RINT, 64);
  PipeBarrier<PIPE_ALL>();
  Cast(h, whole, RoundMode::CAST_NONE, 64);
  Cast(ub.Row(), h, RoundMode::CAST_NONE, 64);
  ub.Write(args);
}
// 16 rows of 32 bytes turned by addresses in registers; the second time by the class-style name.
template <typename T, typename F>
void Turn(Ub<T> &ub, F scatter) {
  TBuf<TPosition::VECCALC> from, to;
  ub.pipe.InitBuffer(from, 1024);
  ub.pipe.InitBuffer(to, 1024);
  LocalTensor<T> x = from.template Get<T>(), y = to.template Get<T>();
  for (int i = 0; i < int(1024 / sizeof(T)); ++i) x.SetValue(i, static_cast<T>(i));
  for (int i = 0; i < int(1024 / sizeof(T)); ++i) y.SetValue(i, static_cast<T>(0));
  PipeBarrier<PIPE_ALL>();
  uint64_t rows[16], cols[16];
  const int width = 32 / sizeof(T);
  for (int i = 0; i < 16; ++i) {
    rows[i] = reinterpret_cast<uint64_t>(P(x[i * width]));
    cols[i] = reinterpret_cast<uint64_t>(P(y[i * width]));
  }
  set_va_reg_sb(VA0, cols);
  set_va_reg_sb(VA1, cols + 8);
  set_va_reg_sb(VA2, rows);
  set_va_reg_sb(VA3, rows + 8);
  scatter();
  PipeBarrier<PIPE_ALL>();
  DataCopy(ub.Row(), y, ub.kRow);
  LocalTensor<T> ins[16], outs[16];
  for (int i = 0; i < 16; ++i) {
    ins[i] = x[i * width];
    outs[i] = y[i * width];
  }
  TransDataTo5HDParams how(false, false, 1, 0, 0);
  TransDataTo5HD<T>(outs, ins, how);
  DataCopy(ub.Row(), y, ub.kRow);
}
ENTRY(turns) {
  Ub<int32_t> ub(args);
  Turn(ub, [] { scatter_vnchwconv_b32(VA0, VA2, 1, 0, 0); });
  ub.Write(args);
}
ENTRY(bytes) {
  Ub<int8_t> ub(args);
  Turn(ub, [] { scatter_vnchwconv_b8(VA0, VA2, 1, 0, 0, false, false); });
  ub.Write(args);
}
ENTRY(byte_copies) {
  Ub<int8_t> ub(args);
  LocalTensor<int8_t> row = ub.Row();
  copy_gm_to_ubuf_align_b8(P(row), static_cast<int8_t *>(args[1]), 0, 1, 5, 0, 0, 0, 0);
  PipeBarrier<PIPE_ALL>();
  copy_ubuf_to_gm_align_b8(static_cast<int8_t *>(args[0]), P(row), 0, 1, 3, 0, 0, 0, 0);
}
