#include "kernel_operator.h"

extern "C" __global__ __aicore__ void sum_list(GM_ADDR xs, GM_ADDR start, GM_ADDR y,
                                               GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  __gm__ uint64_t *list = (__gm__ uint64_t *)xs;
  __gm__ uint64_t *pointers = (__gm__ uint64_t *)(xs + list[0]);
  AscendC::GlobalTensor<int32_t> out, in;
  out.SetGlobalBuffer((__gm__ int32_t *)y, 2);
  int32_t total = data.first;
  for (uint32_t i = 0; i < data.tensors; i++) {
    in.SetGlobalBuffer((__gm__ int32_t *)pointers[i], 1);
    total += in.GetValue(0);
  }
  out.SetValue(0, total);
}
