// Pairs of SoftMax, normalisation and activation calls: bad_<code>_of_<what> must be caught on the
// line that says so, good_<...> must pass.
#include "kernel_operator.h"

using namespace AscendC;

#define BOTH(name, ...)                                          \
  template <bool bad>                                            \
  void name(void **args);                                        \
  extern "C" void bad_##name(void **args) { name<true>(args); }  \
  extern "C" void good_##name(void **args) { name<false>(args); } \
  template <bool bad>                                            \
  void name(void **args)

// Six buffers of 2 KB of ones: 8 rows of 64 floats each.
struct Ub {
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[6];
  LocalTensor<float> a, b, c, d, e, f;
  LocalTensor<uint8_t> tmp;
  SoftMaxTiling tiling = twin::SplitSoft(twin::Soft::kPlain, 8, 64, 4, 4, 2048, false);
  SoftMaxShapeInfo info{8, 64, 8, 64};

  Ub() {
    LocalTensor<float> *all[] = {&a, &b, &c, &d, &e, &f};
    for (int i = 0; i < 6; ++i) {
      pipe.InitBuffer(bufs[i], 2048);
      *all[i] = bufs[i].Get<float>();
      Duplicate(*all[i], 1.0f, 512);
    }
    tmp = f.ReinterpretCast<uint8_t>();
  }
  LayerNormTiling layer(uint32_t rows, uint32_t h) {
    LayerNormTiling made;
    made.bLength = 1, made.sLength = rows, made.hLength = h, made.originalHLength = h;
    return made;
  }
};

BOTH(scratch_size_of_softmax) {
  Ub ub;
  if (bad) ub.tmp.SetSize(64);
  SoftMax(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, ub.info);  // caught
}
BOTH(scratch_size_by_full_ub) {
  Ub ub;
  TBuf<TPosition::VECCALC> rest;
  const uint32_t left = TWIN_UB_TOTAL_BYTES - TWIN_UB_SYSTEM_BYTES - 6 * 2048;
  ub.pipe.InitBuffer(rest, left - (bad ? 0 : 4096));
  SoftMax(ub.a, ub.b, ub.c, ub.d, ub.tiling, ub.info);  // caught
}
BOTH(uninit_read_of_softmax_grad) {
  Ub ub;
  TBuf<TPosition::VECCALC> part;
  ub.pipe.InitBuffer(part, 2048);
  LocalTensor<float> grad = part.Get<float>();
  Duplicate(grad, 1.0f, bad ? 504 : 512);  // the last columns of the last row stay as they were
  SoftmaxGrad<float, false>(ub.b, grad, ub.a, ub.tmp, ub.tiling, false, ub.info);
  PipeBarrier<PIPE_ALL>();
  static volatile float seen;
  seen = ub.b.GetValue(448);  // caught
}
BOTH(overlap_of_scratch) {
  Ub ub;
  if (bad) ub.tmp = ub.d.ReinterpretCast<uint8_t>();
  SoftMax(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, ub.info);  // caught
}
BOTH(overlap_of_sum_and_max) {
  Ub ub;
  SoftMax(ub.a, ub.b, bad ? ub.b[32] : ub.b[64], ub.d, ub.tmp, ub.tiling, ub.info);  // caught
}
BOTH(overlap_of_shifted_source) {
  Ub ub;
  const SoftMaxShapeInfo half(4, 64, 4, 64);
  SoftMax(bad ? ub.a[8] : ub.a, ub.b, ub.c, ub.a, ub.tmp, ub.tiling, half);  // caught
}
BOTH(ub_size_of_sum) {
  Ub ub;
  if (bad) ub.b.SetSize(32);
  SoftMax(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, ub.info);  // caught
}
BOTH(ub_align_of_source) {
  Ub ub;
  const SoftMaxShapeInfo half(4, 64, 4, 64);
  SoftMax(ub.a, ub.b, ub.c, ub.d[bad ? 4 : 8], ub.tmp, ub.tiling, half);  // caught
}
BOTH(param_range_of_row_length) {
  Ub ub;
  const SoftMaxShapeInfo info(8, bad ? 61 : 64, 8, 60);
  SoftMax(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, info);  // caught
}
BOTH(param_range_of_basic_block) {
  Ub ub;
  const SoftMaxShapeInfo info(bad ? 7 : 8, 64, 4, 64);
  SoftMax<float, false, true>(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, info);  // caught
}
constexpr SoftmaxConfig kUnchecked = {false};
BOTH(param_range_of_unchecked_tiling) {
  Ub ub;
  if (bad) ub.tiling.srcM = 4;
  const auto soft = [](auto &...all) {
    SoftMax<float, false, false, false, kUnchecked>(all...);  // caught
  };
  soft(ub.a, ub.b, ub.c, ub.d, ub.tmp, ub.tiling, ub.info);
}
BOTH(overlap_of_log_source) {
  Ub ub;
  LogSoftMax(bad ? ub.d : ub.a, ub.b, ub.c, ub.d, ub.tmp, LogSoftMaxTiling(), ub.info);  // caught
}
BOTH(scratch_size_of_layer_norm) {
  Ub ub;
  auto tiling = ub.layer(4, 64);
  if (bad) ub.tmp.SetSize(512);
  LayerNorm(ub.a, ub.b, ub.c, ub.d, ub.e, ub.e, ub.tmp, 1e-5f, tiling);  // caught
}
BOTH(overlap_of_rms_gamma) {
  Ub ub;
  RmsNormTiling tiling;
  tiling.bLength = 1, tiling.sLength = 8, tiling.hLength = tiling.originalHLength = 64;
  RmsNorm(bad ? ub.e : ub.a, ub.d, ub.e, ub.tmp, 1e-5f, tiling);  // caught
}
BOTH(overlap_of_layer_norm_rstd) {
  Ub ub;
  const LayerNormPara para{4, 64, 64};
  const LayerNormSeparateTiling tiling;
  const LocalTensor<float> out = bad ? ub.d : ub.a;
  const LocalTensor<uint8_t> tmp = ub.tmp;
  const float eps = 1e-5f;
  LayerNorm<float, float>(out, ub.b, ub.c, ub.d, ub.e, ub.e, eps, tmp, para, tiling);  // caught
}
BOTH(ub_reserved_of_layer_norm) {
  Ub ub;
  auto tiling = ub.layer(4, 64);
  TBuf<TPosition::VECCALC> rest;
  ub.pipe.InitBuffer(rest, TWIN_UB_BYTES - 6 * 2048 + (bad ? 1024 : 0));
  Duplicate(rest.Get<float>(), 1.0f, rest.Get<float>().GetSize());
  LayerNorm(ub.a, ub.b, ub.c, ub.d, ub.e, ub.e, ub.tmp, 1e-5f, tiling);  // caught
}
BOTH(param_range_of_welford) {
  Ub ub;
  WelfordFinalizePara para{2, 64, 2, 32, 1, bad ? 16u : 32u, 1.0f / 64, 1.0f / 96, 0};
  WelfordFinalize(ub.a, ub.b, ub.c, ub.d, ub.tmp, para);  // caught
}
BOTH(overlap_of_swiglu) {
  Ub ub;
  LocalTensor<float> dst = bad ? ub.b : ub.a;
  SwiGLU(dst, ub.b, ub.c, 1.0f, ub.tmp, 64);  // caught
}
BOTH(scratch_size_of_gelu) {
  Ub ub;
  if (bad) ub.tmp.SetSize(128);
  Gelu(ub.a, ub.a, ub.tmp, 64);  // caught
}
