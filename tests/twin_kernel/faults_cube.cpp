// Pairs for cube cores and for cores together: bad_<code>_<what> is caught on the line that says so.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" __attribute__((visibility("default"))) void name(void **args)
#define BOTH(name, ...)                     \
  template <bool bad>                       \
  void name(void **args);                   \
  ENTRY(bad_##name) { name<true>(args); }   \
  ENTRY(good_##name) { name<false>(args); } \
  template <bool bad>                       \
  void name(void **args)
#define AIC_ONLY_HERE \
  if (g_coreType != AIC) return

struct L0 {
  LocalTensor<half> a{TPosition::A2, 0, 32768};
  LocalTensor<half> b{TPosition::B2, 0, 32768};
  LocalTensor<float> c{TPosition::CO1, 0, 32768};
  MmadParams how{16, 16, 16, false};

  L0() {
    Fill(a, InitConstValueParams<half>(1, 64, 0, half(1.0f)));
    Fill(b, InitConstValueParams<half>(1, 64, 0, half(1.0f)));
    PipeBarrier<PIPE_ALL>();
  }
};

inline GlobalTensor<float> Output(void **args) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[1]), 1024);
  return gm;
}

BOTH(wrong_core_of_a_vector_instruction) {
  LocalTensor<float> x(TPosition::VECCALC, 0, 64);
  if (bad ? g_coreType == AIC : g_coreType == AIV) Duplicate(x, 1.0f, 64);  // caught
}

BOTH(wrong_core_of_a_cube_instruction) {
  LocalTensor<half> x(TPosition::A1, 0, 64);
  if (g_coreType == (bad ? AIV : AIC)) Fill(x, InitConstValueParams<half>(1, 2, 0, half(0.0f)));  // caught
}

BOTH(cross_count) {
  if ASCEND_IS_AIC {
    for (int i = 0; i < (bad ? 16 : 15); ++i) CrossCoreSetFlag<2, PIPE_FIX>(1);  // caught
    CrossCoreSetFlag<2, PIPE_FIX>(2);
  } else {
    CrossCoreWaitFlag(2);
    for (int i = 0; i < (bad ? 16 : 15); ++i) CrossCoreWaitFlag(1);
  }
}

BOTH(cross_pair) {
  if ASCEND_IS_AIC CrossCoreSetFlag<2, PIPE_FIX>(1);  // caught
  if ASCEND_IS_AIV {
    if (!bad) CrossCoreWaitFlag(1);
  }
}

BOTH(cross_mode_of_one_block_on_a_cube_core) {
  if ASCEND_IS_AIC {
    if (bad) CrossCoreSetFlag<1, PIPE_FIX>(1);  // caught
  } else {
    CrossCoreSetFlag<1, PIPE_MTE3>(1);
    CrossCoreWaitFlag(1);
  }
}

BOTH(param_range_of_a_flag) {
  CrossCoreSetFlag<0, PIPE_MTE3>(bad ? 11 : 10);  // caught
  if (!bad) CrossCoreWaitFlag(10);
}

BOTH(divide_zero) {
  AIC_ONLY_HERE;
  volatile int zero = bad ? 0 : 1;
  SetMMRowMajor();
  SetHF32Mode(false);  // caught
  volatile int kept = 7 / zero;
}

BOTH(ub_align_of_l0) {
  AIC_ONLY_HERE;
  L0 l0;
  Mmad(l0.c, l0.a[bad ? 128 : 256], l0.b, l0.how);  // caught
}

BOTH(ub_align_of_l0c) {
  AIC_ONLY_HERE;
  L0 l0;
  Mmad(l0.c[bad ? 128 : 256], l0.a, l0.b, l0.how);  // caught
}

BOTH(ub_bounds_of_l0c) {
  AIC_ONLY_HERE;
  L0 l0;
  LocalTensor<float> behind(TPosition::CO1, bad ? 768 : 1024, 64);
  l0.c.SetSize(bad ? 192 : 256);
  Mmad(l0.c, l0.a, l0.b, l0.how);  // caught
}

BOTH(ub_size_of_l0c) {  // nothing lies behind it
  AIC_ONLY_HERE;
  L0 l0;
  l0.c.SetSize(bad ? 255 : 256);
  Mmad(l0.c, l0.a, l0.b, l0.how);  // caught
}

BOTH(ub_capacity_of_l0a) {
  AIC_ONLY_HERE;
  TPipe pipe;
  TBuf<TPosition::A2> first, second;
  pipe.InitBuffer(first, 32 * 1024);
  pipe.InitBuffer(second, bad ? 33 * 1024 : 32 * 1024);  // caught
  auto x = first.Get<half>();
  Fill(x, InitConstValueParams<half>(1, 1, 0, half(0.0f)));
}

BOTH(position_of_a) {
  AIC_ONLY_HERE;
  L0 l0;
  Mmad(l0.c, bad ? l0.b : l0.a, l0.b, l0.how);  // caught
}

BOTH(position_of_a_load) {
  AIC_ONLY_HERE;
  LocalTensor<half> from(TPosition::A1, 0, 256), to(bad ? TPosition::CO1 : TPosition::A2, 0, 256);
  Fill(from, InitConstValueParams<half>(1, 16, 0, half(0.0f)));
  PipeBarrier<PIPE_ALL>();
  LoadData(to, from, LoadData2DParams(0, 1, 1, 0, 0, false, 0));  // caught
}

BOTH(param_range_of_a_product) {
  AIC_ONLY_HERE;
  L0 l0;
  l0.how.m = bad ? 4096 : 16;
  Mmad(l0.c, l0.a, l0.b, l0.how);  // caught
}

BOTH(param_range_of_a_conversion) {
  AIC_ONLY_HERE;
  L0 l0;
  Mmad(l0.c, l0.a, l0.b, l0.how);
  PipeBarrier<PIPE_ALL>();
  FixpipeParamsV220 how(16, 16, 16, 16, false);
  how.quantPre = bad ? F322F16 : NoQuant;
  Fixpipe(Output(args), l0.c, how);  // caught
}

BOTH(param_range_of_columns_in_nz) {
  AIC_ONLY_HERE;
  L0 l0;
  Mmad(l0.c, l0.a, l0.b, l0.how);
  PipeBarrier<PIPE_ALL>();
  FixpipeParamsV220 how(bad ? 12 : 16, 16, 16, 32, false);
  Fixpipe<float, float, CFG_NZ>(Output(args), l0.c, how);  // caught
}

BOTH(param_range_of_a_transposed_load) {
  AIC_ONLY_HERE;
  LocalTensor<float> from(TPosition::B1, 0, 256), to(TPosition::B2, 0, 256);
  Fill(from, InitConstValueParams<float>(1, 32, 0, 0.0f));
  PipeBarrier<PIPE_ALL>();
  LoadData(to, from, LoadData2DParams(0, 1, 1, 0, 0, bad, 0));  // caught
}

BOTH(sync_cores) {
  SyncAll<false>();  // caught
}
