#include "kernel_operator.h"
using namespace AscendC;

constexpr int32_t BUFFERS = 2;

class KernelAdd {
 public:
  __aicore__ inline KernelAdd() {}
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t offset, uint32_t length,
                              uint32_t tile) {
    this->length = length;
    this->tile = tile;
    xGm.SetGlobalBuffer((__gm__ DTYPE_X *)x + offset, length);
    yGm.SetGlobalBuffer((__gm__ DTYPE_Y *)y + offset, length);
    zGm.SetGlobalBuffer((__gm__ DTYPE_Z *)z + offset, length);
    pipe.InitBuffer(inX, BUFFERS, tile * sizeof(DTYPE_X));
    pipe.InitBuffer(inY, BUFFERS, tile * sizeof(DTYPE_Y));
    pipe.InitBuffer(outZ, BUFFERS, tile * sizeof(DTYPE_Z));
  }
  __aicore__ inline void Process() {
    for (uint32_t at = 0; at < length; at += tile) {
      uint32_t n = length - at < tile ? length - at : tile;
      CopyIn(at, n);
      Compute(n);
      CopyOut(at, n);
    }
  }

 private:
  __aicore__ inline void CopyIn(uint32_t at, uint32_t n) {
    LocalTensor<DTYPE_X> x = inX.AllocTensor<DTYPE_X>();
    LocalTensor<DTYPE_Y> y = inY.AllocTensor<DTYPE_Y>();
    DataCopyExtParams params{1, static_cast<uint32_t>(n * sizeof(DTYPE_X)), 0, 0, 0};
    DataCopyPadExtParams<DTYPE_X> pad{false, 0, 0, 0};
    DataCopyPad(x, xGm[at], params, pad);
    DataCopyPad(y, yGm[at], params, pad);
    inX.EnQue(x);
    inY.EnQue(y);
  }
  __aicore__ inline void Compute(uint32_t n) {
    LocalTensor<DTYPE_X> x = inX.DeQue<DTYPE_X>();
    LocalTensor<DTYPE_Y> y = inY.DeQue<DTYPE_Y>();
    LocalTensor<DTYPE_Z> z = outZ.AllocTensor<DTYPE_Z>();
    Add(z, x, y, n);
    outZ.EnQue<DTYPE_Z>(z);
    inX.FreeTensor(x);
    inY.FreeTensor(y);
  }
  __aicore__ inline void CopyOut(uint32_t at, uint32_t n) {
    LocalTensor<DTYPE_Z> z = outZ.DeQue<DTYPE_Z>();
    DataCopyExtParams params{1, static_cast<uint32_t>(n * sizeof(DTYPE_Z)), 0, 0, 0};
    DataCopyPad(zGm[at], z, params);
    outZ.FreeTensor(z);
  }

  TPipe pipe;
  TQue<QuePosition::VECIN, BUFFERS> inX, inY;
  TQue<QuePosition::VECOUT, BUFFERS> outZ;
  GlobalTensor<DTYPE_X> xGm;
  GlobalTensor<DTYPE_Y> yGm;
  GlobalTensor<DTYPE_Z> zGm;
  uint32_t length;
  uint32_t tile;
};

extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z,
                                                 GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  KernelAdd op;
  uint32_t core = GetBlockIdx();
  op.Init(x, y, z, core * data.totalLength, data.coreLength[core], data.split.tileLength);
  op.Process();
}
