#include "kernel_operator.h"

extern "C" __global__ __aicore__ void bump(GM_ADDR x, GM_ADDR xRef, GM_ADDR workspace,
                                           GM_ADDR tiling) {
  static_assert(sizeof(DTYPE_X_REF) == sizeof(DTYPE_X), "one tensor");
  AscendC::GlobalTensor<DTYPE_X> in, out;
  in.SetGlobalBuffer((__gm__ DTYPE_X *)x, 1);
  out.SetGlobalBuffer((__gm__ DTYPE_X *)xRef, 1);
#if ORIG_DTYPE_X == DT_BF16
  out.SetValue(0, AscendC::ToBfloat16(AscendC::ToFloat(in.GetValue(0)) + 1.0f));
#else
  out.SetValue(0, in.GetValue(0) + 1.0f);
#endif
}
