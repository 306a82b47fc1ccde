#include "kernel_operator.h"

extern "C" __global__ __aicore__ void sqrt(GM_ADDR x, GM_ADDR y, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
  AscendC::TBuf<AscendC::TPosition::VECCALC> work;
  AscendC::GlobalTensor<float> xGm, yGm;
  xGm.SetGlobalBuffer((__gm__ float *)x, data.rows * data.cols);
  yGm.SetGlobalBuffer((__gm__ float *)y, data.rows);
  uint32_t bytes = (data.cols * sizeof(float) + 31) / 32 * 32;
  if (data.rows == 0 || data.cols == 0) return;
  pipe.InitBuffer(in, 1, bytes);
  pipe.InitBuffer(work, bytes + 64);
  int64_t first = AscendC::GetBlockIdx() * static_cast<int64_t>(data.rowsPerCore);
  for (int64_t row = first; row < first + data.rowsPerCore && row < data.rows; row++) {
    AscendC::LocalTensor<float> local = in.AllocTensor<float>();
    AscendC::DataCopyExtParams params{1, static_cast<uint32_t>(data.cols * sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0};
    AscendC::DataCopyPad(local, xGm[row * data.cols], params, pad);
    in.EnQue(local);
    local = in.DeQue<float>();
    AscendC::LocalTensor<float> all = work.Get<float>();
    AscendC::LocalTensor<float> sum = all[0];
    AscendC::LocalTensor<float> scratch = all[8];
    AscendC::ReduceSum(sum, local, scratch, static_cast<int32_t>(data.cols));
    AscendC::SetFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
    yGm.SetValue(row, sqrt(sum.GetValue(0)));
    in.FreeTensor(local);
  }
}
