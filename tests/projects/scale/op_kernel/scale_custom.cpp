#include "kernel_operator.h"
#include "scale_custom_tiling.h"
using namespace AscendC;

template <bool WITH_BIAS>
class KernelScale {
 public:
  __aicore__ inline KernelScale(TPipe *pipe) : pipe(pipe) {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR bias, GM_ADDR y, const ScaleCustomTiling &tiling) {
    uint64_t first = static_cast<uint64_t>(GetBlockIdx()) * tiling.perCore;
    count = first >= tiling.length ? 0 : tiling.length - first;
    count = count < tiling.perCore ? count : tiling.perCore;
    tile = tiling.tile;
    alpha = tiling.alpha;
    xGm.SetGlobalBuffer((__gm__ float *)x + first, count);
    yGm.SetGlobalBuffer((__gm__ float *)y + first, count);
    if (WITH_BIAS) {
      GlobalTensor<float> biasGm;
      biasGm.SetGlobalBuffer((__gm__ float *)bias, 1);
      shift = biasGm.GetValue(0);
    }
    pipe->InitBuffer(in, 2, tile * sizeof(float));
    pipe->InitBuffer(out, 2, tile * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint64_t at = 0; at < count; at += tile) {
      uint32_t n = count - at < tile ? count - at : tile;
      DataCopyExtParams params{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
      LocalTensor<float> x = in.AllocTensor<float>();
      DataCopyPad(x, xGm[at], params, {false, 0, 0, 0});
      in.EnQue(x);
      x = in.DeQue<float>();
      LocalTensor<float> y = out.AllocTensor<float>();
      Muls(y, x, alpha, n);
      if (WITH_BIAS) Adds(y, y, shift, n);
      in.FreeTensor(x);
      out.EnQue(y);
      y = out.DeQue<float>();
      DataCopyPad(yGm[at], y, params);
      out.FreeTensor(y);
    }
  }

 private:
  TPipe *pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  GlobalTensor<float> xGm, yGm;
  uint64_t count;
  uint32_t tile;
  float alpha;
  float shift = 0;
};

extern "C" __global__ __aicore__ void scale_custom(GM_ADDR x, GM_ADDR bias, GM_ADDR y,
                                                   GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(ScaleCustomTiling);
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  if (TILING_KEY_IS(0)) {
    KernelScale<false> op(&pipe);
    op.Init(x, bias, y, data);
    op.Process();
  } else if (TILING_KEY_IS(1)) {
    KernelScale<true> op(&pipe);
    op.Init(x, bias, y, data);
    op.Process();
  }
}
