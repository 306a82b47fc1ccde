// What the kernels of the library tests share: buffers of whole blocks, tensors in and out.
#pragma once

#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)

struct Ub {
  TPipe pipe;

  template <typename T>
  LocalTensor<T> New(std::int64_t count) {
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, static_cast<std::uint32_t>((count * sizeof(T) + 31) / 32 * 32));
    return buf.Get<T>();
  }
  template <typename T>
  LocalTensor<T> In(void *from, std::int64_t count) {
    auto tensor = New<T>(count);
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(from));
    const auto bytes = static_cast<std::uint32_t>(count * sizeof(T));
    DataCopyPad(tensor, gm, DataCopyExtParams(1, bytes, 0, 0, 0), DataCopyPadExtParams<T>());
    PipeBarrier<PIPE_ALL>();
    return tensor;
  }
  template <typename T>
  void Out(void *to, const LocalTensor<T> &tensor, std::int64_t count) {
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(static_cast<T *>(to));
    const auto bytes = static_cast<std::uint32_t>(count * sizeof(T));
    DataCopyPad(gm, tensor, DataCopyExtParams(1, bytes, 0, 0, 0));
  }
};

// The numbers of a case: the last argument.
inline std::int64_t Number(void *from, int at) { return static_cast<std::int64_t *>(from)[at]; }
