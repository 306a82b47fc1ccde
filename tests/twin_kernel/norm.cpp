// Normalisations on one matrix; test_norm.py compares what they leave with NumPy.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)

// args: 0 shape, 1..6 inputs, 7..9 outputs; every one a buffer of 4 KB
struct Shape {
  std::int64_t rows, h, real, extra, epsilon;  // epsilon in millionths
};
constexpr uint32_t kBytes = 4096;

template <typename T>
struct Work {
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[10];
  Shape shape;
  void **args;
  float eps;

  explicit Work(void **given) : args(given) {
    __builtin_memcpy(&shape, args[0], sizeof shape);
    eps = shape.epsilon * 1e-6f;
    for (int i = 0; i < 10; ++i) {
      pipe.InitBuffer(bufs[i], kBytes);
      Gm(i == 0 ? 1 : i, true, bufs[i].Get<float>());
    }
    PipeBarrier<PIPE_ALL>();
  }
  ~Work() {
    PipeBarrier<PIPE_ALL>();
    for (int i = 7; i < 10; ++i) Gm(i, false, bufs[i].Get<float>());
  }
  void Gm(int at, bool load, const LocalTensor<float> &ub) {
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer(static_cast<float *>(args[at]));
    if (load) DataCopy(ub, gm, kBytes / 4);
    else DataCopy(gm, ub, kBytes / 4);
  }
  template <typename E = T>
  LocalTensor<E> In(int at) { return bufs[at].template Get<E>(); }
  template <typename E = T>
  LocalTensor<E> Out(int at) { return bufs[6 + at].template Get<E>(); }
  LocalTensor<uint8_t> Tmp() { return bufs[0].template Get<uint8_t>(); }
  template <typename Tiling>
  Tiling Split() {
    Tiling made;
    made.bLength = 1, made.sLength = shape.rows;
    made.hLength = shape.h, made.originalHLength = shape.real;
    return made;
  }
};

#define EACH(name, T, ...) \
  ENTRY(name) {            \
    Work<T> w(args);       \
    __VA_ARGS__;           \
  }
#define TYPES(name, function)             \
  EACH(name##_f32, float, function(w))    \
  EACH(name##_f16, half, function(w))

template <typename T>
void Layer(Work<T> &w) {
  auto tiling = w.template Split<LayerNormTiling>();
  LayerNorm<T, false>(w.Out(1), w.Out(2), w.Out(3), w.In(1), w.In(2), w.In(3), w.Tmp(), T(w.eps),
                      tiling);
}
template <typename T>
void LayerInPlace(Work<T> &w) {
  auto tiling = w.template Split<LayerNormTiling>();
  LayerNorm(w.In(1), w.Out(2), w.Out(3), w.In(1), w.In(2), w.In(3), T(w.eps), tiling);
  Adds(w.Out(1), w.In(1), T(0), kBytes / sizeof(T));
}
template <typename T>
void LayerRstd(Work<T> &w) {
  const LayerNormPara para{uint32_t(w.shape.rows), uint32_t(w.shape.real), uint32_t(w.shape.h)};
  LayerNorm<float, T>(w.Out(1), w.template Out<float>(2), w.template Out<float>(3), w.In(1),
                      w.template In<float>(2), w.template In<float>(3), w.eps, w.Tmp(), para,
                      LayerNormSeparateTiling());
}
constexpr LayerNormConfig kPlain = {true, true, false, true};
template <typename T>
void LayerPlain(Work<T> &w) {
  const LayerNormPara para{uint32_t(w.shape.rows), uint32_t(w.shape.real), uint32_t(w.shape.h)};
  LayerNorm<T, T, false, kPlain>(w.Out(1), w.template Out<float>(2), w.template Out<float>(3),
                                 w.In(1), w.In(2), w.In(3), w.eps, para,
                                 LayerNormSeparateTiling());
}
template <typename T>
void Normal(Work<T> &w) {
  const NormalizePara para{uint32_t(w.shape.rows), uint32_t(w.shape.real), uint32_t(w.shape.h)};
  Normalize<float, T>(w.Out(1), w.template Out<float>(2), w.template In<float>(4),
                      w.template In<float>(5), w.In(1), w.template In<float>(2),
                      w.template In<float>(3), w.Tmp(), w.eps, para);
}
template <typename T>
void Deep(Work<T> &w) {
  auto tiling = w.template Split<DeepNormTiling>();
  DeepNorm(w.Out(1), w.Out(2), w.Out(3), w.In(1), w.In(4), w.In(3), w.In(2), w.Tmp(), T(0.5f),
           T(w.eps), tiling);
}
template <typename T>
void Rms(Work<T> &w) {
  RmsNorm(w.Out(1), w.In(1), w.In(2), T(w.eps), w.template Split<RmsNormTiling>());
}
template <typename T>
void Batch(Work<T> &w) {
  BatchNormTiling tiling;
  tiling.originalBLength = w.shape.rows, tiling.meanVarSize = w.shape.h;
  BatchNorm(w.Out(1), w.Out(2), w.Out(3), w.In(1), w.In(2), w.In(3), w.Tmp(), T(w.eps), tiling);
}
// extra: groups; rows = N, real = channels, h = channels * area
template <typename T>
void Group(Work<T> &w) {
  GroupNormTiling tiling;
  tiling.n = w.shape.rows, tiling.c = w.shape.real, tiling.g = w.shape.extra;
  tiling.hw = w.shape.h / w.shape.real;
  GroupNorm(w.Out(1), w.Out(2), w.Out(3), w.In(1), w.In(2), w.In(3), T(w.eps), tiling);
}
template <typename T>
void Grad(Work<T> &w) {
  auto tiling = w.template Split<LayerNormGradTiling>();
  auto tmp = w.Tmp();
  LayerNormGrad(w.Out(1), w.Out(2), w.In(1), w.In(4), w.In(5), w.In(6), w.In(2), tmp, T(w.eps),
                tiling, {DataFormat::ND});
}
template <typename T>
void Beta(Work<T> &w) {
  auto tiling = w.template Split<LayerNormGradBetaTiling>();
  LayerNormGradBeta(w.Out(1), w.Out(2), w.In(1), w.In(4), tiling);
}
TYPES(layer, Layer)
TYPES(layer_inplace, LayerInPlace)
TYPES(layer_rstd, LayerRstd)
TYPES(layer_plain, LayerPlain)
TYPES(normalize, Normal)
TYPES(deep, Deep)
TYPES(rms, Rms)
TYPES(batch, Batch)
TYPES(group, Group)
TYPES(grad, Grad)
TYPES(beta, Beta)

// Update over `rows` pieces of h elements, the last of `real` elements, then Finalize.
template <typename T>
void Welford(Work<T> &w) {
  const auto h = uint32_t(w.shape.h), rows = uint32_t(w.shape.rows), tail = uint32_t(w.shape.real);
  auto m = w.template In<float>(5), v = w.template In<float>(6);
  auto nextM = w.template In<float>(3), nextV = w.template In<float>(4);
  Duplicate(m, 0.0f, h);
  Duplicate(v, 0.0f, h);
  static constexpr WelfordUpdateConfig kKeep = {true};
  for (uint32_t i = 0; i < rows; ++i) {
    const WelfordUpdateParam para{1, h, i + 1 == rows ? tail : h, 1.0f / (i + 1)};
    WelfordUpdate<T, float, false, kKeep>(nextM, nextV, m, v, w.In(1)[i * h], w.Tmp(), para);
    Adds(m, nextM, 0.0f, h);
    Adds(v, nextV, 0.0f, h);
  }
  const float all = (rows - 1) * h + tail;
  const bool even = tail == h;
  const uint32_t head = even ? h : tail;
  const WelfordFinalizePara para{rows, h, rows, head, even ? 0 : rows - 1, h - head, 1.0f / h,
                                 1.0f / all, 0.0f};
  WelfordFinalize(w.template Out<float>(1), w.template Out<float>(2), m, v, w.Tmp(), para);
}
TYPES(welford, Welford)
EACH(finalize_counts, float, {
  WelfordFinalizePara para{4, 32, 0, 0, 1, 0, 1.0f / 32, 1.0f / 4096, 0.0f};
  WelfordFinalize(w.Out(1), w.Out(2), w.In(1), w.In(2), w.In<int32_t>(3), w.Tmp(), para);
})
