// Activation functions on one vector; test_activation.py compares them with NumPy.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)

// args: 0 count, 1 and 2 sources, 3 result
template <typename T>
struct Work {
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[4];
  LocalTensor<T> x, y, d;
  LocalTensor<uint8_t> tmp;
  GlobalTensor<T> out;
  uint32_t n;

  explicit Work(void **args) {
    int64_t count;
    __builtin_memcpy(&count, args[0], sizeof count);
    n = count;
    for (auto &buf : bufs) pipe.InitBuffer(buf, 2048);
    x = bufs[0].Get<T>(), y = bufs[1].Get<T>(), d = bufs[2].Get<T>();
    tmp = bufs[3].Get<uint8_t>();
    GlobalTensor<T> gm;
    for (int i = 1; i < 3; ++i) {
      gm.SetGlobalBuffer(static_cast<T *>(args[i]));
      DataCopyPad(i == 1 ? x : y, gm, DataCopyExtParams(1, n * sizeof(T), 0, 0, 0),
                  DataCopyPadExtParams<T>());
    }
    out.SetGlobalBuffer(static_cast<T *>(args[3]));
    PipeBarrier<PIPE_ALL>();
  }
  ~Work() {
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(out, d, DataCopyExtParams(1, n * sizeof(T), 0, 0, 0));
  }
};

#define EACH(name, T, ...) \
  ENTRY(name) {            \
    Work<T> w(args);       \
    __VA_ARGS__;           \
  }
#define GELU(name, Function)                                          \
  EACH(name##_f32, float, Function(w.d, w.x, w.tmp, w.n))             \
  EACH(name##_f16, half, Function(w.d, w.x, w.n))                     \
  EACH(name##_precise, half, Function<half, true>(w.d, w.x, w.tmp, w.n))

GELU(gelu, Gelu)
GELU(faster_gelu, FasterGelu)
GELU(faster_gelu_v2, FasterGeluV2)

EACH(silu_f32, float, Silu(w.d, w.x, w.n))
EACH(silu_f16, half, Silu(w.d, w.x, w.n))
EACH(silu_precise, half, Silu<half, false>(w.d, w.x, w.n))
EACH(swish_f32, float, Swish(w.d, w.x, w.n, 1.5f))
EACH(swish_f16, half, Swish(w.d, w.x, w.n, half(1.5f)))
EACH(swish_precise, half, Swish<half, false>(w.d, w.x, w.n, half(1.5f)))
EACH(swiglu_f32, float, SwiGLU(w.d, w.x, w.y, 0.5f, w.tmp, w.n))
EACH(swiglu_f16, half, SwiGLU<half>(w.d, w.x, w.y, 0.5f, w.n))
EACH(geglu_f32, float, GeGLU(w.d, w.x, w.y, w.n))
EACH(geglu_f16, half, GeGLU<half, false>(w.d, w.x, w.y, w.tmp, w.n))
EACH(reglu_f32, float, ReGlu(w.d, w.x, w.y, w.n))
EACH(reglu_f16, half, ReGlu(w.d, w.x, w.y, w.tmp, w.n))
EACH(reglu_bf16, bfloat16_t, ReGlu(w.d, w.x, w.y, w.tmp, w.n))
