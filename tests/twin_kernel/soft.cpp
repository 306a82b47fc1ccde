// The SoftMax family on one matrix; test_softmax.py compares what they leave with NumPy.
#include "kernel_operator.h"

using namespace AscendC;
using Calc = TBuf<TPosition::VECCALC>;

#define ENTRY(name) extern "C" void name(void **args)

// args: 0 shape, 1 src, 2 grad or inMean, 3 inSum, 4 inMax, 5 dst, 6 sum, 7 max, 8 expMax, 9 mean
struct Shape {
  std::int64_t m, k, realM, realK, loops;
};

template <typename T>
GlobalTensor<T> Gm(void *base) {
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(static_cast<T *>(base));
  return gm;
}

template <typename T, typename S>
struct Work {
  TPipe pipe;
  Calc bufs[10];
  Shape shape;
  void **args;
  LocalTensor<T> x, y, dst, expMax;
  LocalTensor<S> inSum, inMax, sum, max, mean;
  LocalTensor<uint8_t> tmp;
  SoftMaxShapeInfo info;
  SoftMaxTiling tiling;
  std::uint32_t count;

  template <typename E>
  LocalTensor<E> Take(int at, std::uint32_t bytes) {
    pipe.InitBuffer(bufs[at], bytes);
    return bufs[at].template Get<E>();
  }
  explicit Work(void **given) : args(given) {
    __builtin_memcpy(&shape, args[0], sizeof shape);
    count = shape.m * shape.k;
    const std::uint32_t bytes = count * sizeof(T), stats = shape.m * 32;
    x = Take<T>(0, bytes);
    y = Take<T>(1, bytes);
    inSum = Take<S>(2, stats);
    inMax = Take<S>(3, stats);
    dst = Take<T>(4, bytes);
    sum = Take<S>(5, stats);
    max = Take<S>(6, stats);
    expMax = Take<T>(7, stats);
    mean = Take<S>(8, stats);
    tmp = Take<uint8_t>(9, twin::SoftRowBytes(twin::Soft::kGrad, shape.k, 2, true) + 256);
    DataCopy(x, Gm<T>(args[1]), count);
    DataCopy(inSum, Gm<S>(args[3]), stats / sizeof(S));
    DataCopy(inMax, Gm<S>(args[4]), stats / sizeof(S));
    Duplicate(expMax.template ReinterpretCast<int32_t>(), int32_t(0), stats / 4);
    Duplicate(mean.template ReinterpretCast<int32_t>(), int32_t(0), stats / 4);
    Duplicate(sum.template ReinterpretCast<int32_t>(), int32_t(0), stats / 4);
    Duplicate(max.template ReinterpretCast<int32_t>(), int32_t(0), stats / 4);
    PipeBarrier<PIPE_ALL>();
    info = SoftMaxShapeInfo(shape.m, shape.k, shape.realM, shape.realK);
    tiling = twin::SplitSoft(twin::Soft::kPlain, shape.m, shape.k, sizeof(T), sizeof(S), 1 << 16,
                             false);
  }
  void LoadSecond() {
    DataCopy(y, Gm<T>(args[2]), count);
    PipeBarrier<PIPE_ALL>();
  }
  void Finish() {
    const std::uint32_t stats = shape.m * 32 / sizeof(S);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Gm<T>(args[5]), dst, count);
    DataCopy(Gm<S>(args[6]), sum, stats);
    DataCopy(Gm<S>(args[7]), max, stats);
    DataCopy(Gm<T>(args[8]), expMax, shape.m * 32 / sizeof(T));
    DataCopy(Gm<S>(args[9]), mean, stats);
  }
};

#define EACH(name, T, S, ...)     \
  ENTRY(name) {                   \
    Work<T, S> w(args);           \
    __VA_ARGS__;                  \
    w.Finish();                   \
  }
#define TYPES(name, ...)                        \
  EACH(name##_f32, float, float, __VA_ARGS__)   \
  EACH(name##_f16, half, half, __VA_ARGS__)     \
  EACH(name##_mixed, half, float, __VA_ARGS__)

constexpr SoftmaxConfig kOnce = {true, 8, 64, SoftmaxMode::SOFTMAX_NORMAL};
constexpr SoftmaxConfig kNarrow = {true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC};
template <typename T, typename S>
void Soft(Work<T, S> &w) {
  SoftMax<T>(w.dst, w.sum, w.max, w.x, w.tmp, w.tiling, w.info);
}
template <typename W>
void Simple(W &w) {
  using T = typename decltype(w.x)::PrimType;
  SimpleSoftMax<T>(w.dst, w.inSum, w.inMax, w.x, w.tiling, w.info);
}

TYPES(soft, Soft(w))
TYPES(simple, Simple(w))
EACH(soft_own_f32, float, float, SoftMax<float>(w.dst, w.sum, w.max, w.x, w.tiling, w.info))
EACH(soft_own_mixed, half, float, SoftMax<half>(w.dst, w.sum, w.max, w.x, w.tiling, w.info))
EACH(soft_bare_f32, float, float, {
  SoftMax<float>(w.x, w.x, w.tiling, w.info);
  Adds(w.dst, w.x, 0.0f, w.count);
})
EACH(soft_bare_f16, half, half, SoftMax<half>(w.dst, w.x, w.tmp, w.tiling, w.info))
EACH(soft_basic_f32, float, float,
     SoftMax<float, false, true>(w.dst, w.sum, w.max, w.x, w.tmp, w.tiling))
EACH(soft_fixed_f32, float, float,
     SoftMax<float, false, false, false, kOnce>(w.dst, w.sum, w.max, w.x, w.tmp, w.tiling))
EACH(soft_nz_f32, float, float,
     SoftMax<float, false, false, true>(w.dst, w.sum, w.max, w.x, w.tmp, w.tiling, w.info))
EACH(soft_nz_f16, half, half,
     SoftMax<half, false, false, true>(w.dst, w.sum, w.max, w.x, w.tmp, w.tiling, w.info))
EACH(soft_shaped_f32, float, float, {
  const uint32_t whole[] = {uint32_t(w.shape.m), uint32_t(w.shape.k)};
  const uint32_t real[] = {uint32_t(w.shape.realM), uint32_t(w.shape.realK)};
  w.x.SetShapeInfo(ShapeInfo(2, const_cast<uint32_t *>(whole), 2, const_cast<uint32_t *>(real),
                             DataFormat::ND));
  SoftMax<float>(w.dst, w.sum, w.max, w.x, w.tmp, SoftMaxTiling());
})

template <bool update, typename W>
void Flash(W &w) {
  using T = typename decltype(w.x)::PrimType;
  SoftmaxFlash<T>(w.dst, w.sum, w.max, w.x, w.expMax, w.inSum, w.inMax, w.tmp, w.tiling, update,
                  w.info);
}
template <bool update, typename W>
void Flash2(W &w) {
  using T = typename decltype(w.x)::PrimType;
  SoftmaxFlashV2<T, update>(w.dst, w.sum, w.max, w.x, w.expMax, w.inSum, w.inMax, w.tiling,
                            w.info);
}
TYPES(flash_first, Flash<false>(w))
TYPES(flash_next, Flash<true>(w))
TYPES(flash2_first, Flash2<false>(w))
TYPES(flash2_next, Flash2<true>(w))
// as FlashAttention uses it: everything in place, tiling made by the kernel
EACH(flash2_inplace_f32, float, float, {
  constexpr uint32_t dims = 2;
  uint32_t whole[] = {uint32_t(w.shape.m), uint32_t(w.shape.k)};
  w.x.SetShapeInfo(ShapeInfo(dims, whole, DataFormat::ND));
  const auto made = SoftMaxFlashV2TilingFuncImpl(w.shape.m, w.shape.k, 4, 4, w.tmp.GetSize() / 4,
                                                 true, false);
  static constexpr SoftmaxConfig kUnchecked = {false};
  SoftmaxFlashV2<float, true, true, false, false, kUnchecked>(
      w.x, w.inSum, w.inMax, w.x, w.expMax, w.inSum, w.inMax, w.tmp, made);
  Adds(w.dst, w.x, 0.0f, w.count);
  Adds(w.sum, w.inSum, 0.0f, w.shape.m * 8);
  Adds(w.max, w.inMax, 0.0f, w.shape.m * 8);
})
// one value a row: inMean (args 2 is unused here) stays zero, outReduceMax goes to mean
EACH(flash2_narrow_f32, float, float,
     SoftmaxFlashV2<float, true, false, false, false, kNarrow>(
         w.dst, w.mean, w.sum, w.max, w.x, w.expMax, w.inSum, w.inMax, w.tmp, w.tiling, w.info))

template <bool update>
void Pasa(Work<half, float> &w) {
  const SoftMaxParams how{uint32_t(w.shape.m), uint32_t(w.shape.k), uint32_t(w.shape.m),
                          uint32_t(w.shape.k), uint32_t(w.shape.loops), 8, 0.9375f};
  LocalTensor<float> old = w.y.ReinterpretCast<float>();
  DataCopy(old, Gm<float>(w.args[2]), w.shape.m * 8);
  PipeBarrier<PIPE_ALL>();
  SoftmaxFlashV3<half, float, update>(w.dst, w.mean, w.sum, w.max, w.x, w.expMax, old, w.inSum,
                                      w.inMax, w.tmp, w.tiling, how);
}
EACH(pasa_first, half, float, Pasa<false>(w))
EACH(pasa_next, half, float, Pasa<true>(w))

template <typename W>
void Log(W &w) {
  LogSoftMaxTiling tiling;
  LogSoftMax(w.dst, w.sum, w.max, w.x, w.tmp, tiling, w.info);
}
EACH(log_f32, float, float, Log(w))
EACH(log_f16, half, half, Log(w))

EACH(grad_f32, float, float, {
  w.LoadSecond();
  SoftmaxGrad<float, false>(w.dst, w.y, w.x, w.tiling, false, w.info);
})
EACH(grad_f16, half, half, {
  w.LoadSecond();
  SoftmaxGrad<half, false>(w.dst, w.y, w.x, w.tmp, w.tiling, false, w.info);
})
EACH(front_f32, float, float, {
  w.LoadSecond();
  SoftmaxGradFront<float>(w.sum, w.y, w.x, w.tiling, w.info);
  Duplicate(w.dst, 0.0f, w.count);
})
EACH(front_f16, half, half, {
  w.LoadSecond();
  SoftmaxGrad<half>(w.sum, w.y, w.x, w.tmp, w.tiling, true, w.info);
  Duplicate(w.dst, half(0), w.count);
})
EACH(adjust_f32, float, float, {
  Adds(w.dst, w.x, 0.0f, w.count);
  const bool found = AdjustSoftMaxRes<float, float>(w.dst, w.inMax, 0xFF7FFFFF, 0.0f, w.info);
  w.sum.SetValue(0, found ? 1.0f : 0.0f);
})
