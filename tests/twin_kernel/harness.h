// One kernel shape for every row: load operands, run one operation, store everything.
#pragma once

#include "kernel_operator.h"

namespace harness {

using namespace AscendC;

constexpr std::uint32_t kBytes = 8192;  // of each buffer

// What the tests send beside the tensors.
struct Header {
  std::int64_t count;     // elements of the operation
  std::int64_t dstBytes;  // old destination, loaded first and stored last
  std::int64_t srcBytes;
  std::int64_t maskBytes;
};

template <typename T>
void Load(const LocalTensor<T> &to, void *from, std::int64_t bytes) {
  if (bytes == 0) return;
  GlobalTensor<T> gm;
  gm.SetGlobalBuffer(static_cast<T *>(from));
  DataCopyPad(to, gm, DataCopyExtParams(1, bytes, 0, 0, 0), DataCopyPadExtParams<T>());
  PipeBarrier<PIPE_ALL>();
}

template <typename D, typename S, typename K, typename F>
void Run(void **args, F operation) {
  Header header;
  __builtin_memcpy(&header, args[5], sizeof header);
  K scalar;
  __builtin_memcpy(&scalar, args[4], sizeof scalar);
  TPipe pipe;
  TBuf<TPosition::VECCALC> dst, src0, src1, mask, tmp;
  pipe.InitBuffer(dst, kBytes);
  pipe.InitBuffer(src0, kBytes);
  pipe.InitBuffer(src1, kBytes);
  pipe.InitBuffer(mask, kBytes);
  pipe.InitBuffer(tmp, kBytes);
  auto d = dst.Get<D>();
  auto a = src0.Get<S>();
  auto b = src1.Get<S>();
  auto m = mask.Get<std::uint8_t>();
  auto t = tmp.Get<S>();
  Load(d, args[0], header.dstBytes);
  Load(a, args[1], header.srcBytes);
  Load(b, args[2], header.srcBytes);
  Load(m, args[3], header.maskBytes);
  operation(d, a, b, m, mask.Get<std::int32_t>(), t, scalar, static_cast<std::int32_t>(header.count));
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<D> out;
  out.SetGlobalBuffer(static_cast<D *>(args[0]));
  DataCopyPad(out, d, DataCopyExtParams(1, header.dstBytes, 0, 0, 0));
}

}  // namespace harness

#define CASE(name, D, S, K, ...)                                                               \
  extern "C" void name(void **args) {                                                          \
    harness::Run<D, S, K>(args, [](auto d, auto a, auto b, auto m,                             \
                                   harness::LocalTensor<std::int32_t> i, auto t, auto k,       \
                                   int n) {                                                    \
      __VA_ARGS__;                                                                             \
    });                                                                                        \
  }
