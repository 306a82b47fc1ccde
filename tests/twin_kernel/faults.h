// What the pairs of the sanitizer share: bad_<code>_<what> must be caught, good_<...> must pass.
#pragma once

#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)
#define BOTH(name, ...)                   \
  template <bool bad>                     \
  void name(void **args);                 \
  ENTRY(bad_##name) { name<true>(args); } \
  ENTRY(good_##name) { name<false>(args); } \
  template <bool bad>                     \
  void name(void **args)

// args: 0 read-only input, 1 output, 2 workspace, 3 blank output; 4096 floats each;
// 4 read-only, its last 64 bytes are padding of its allocation
inline GlobalTensor<float> Gm(void **args, int which) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[which]), 4096);
  return gm;
}

// Three buffers of 1024 floats that nothing orders and nobody has filled.
struct Ub {
  TPipe pipe;
  TBuf<TPosition::VECCALC> bufs[3];
  LocalTensor<float> a, b, c;

  Ub() {
    for (auto &buf : bufs) pipe.InitBuffer(buf, 4096);
    a = bufs[0].Get<float>();
    b = bufs[1].Get<float>();
    c = bufs[2].Get<float>();
  }
};

template <HardEvent event>
inline void Sync() {
  SetFlag<event>(0);
  WaitFlag<event>(0);
}
