// Pairs: bad_<code>_<what> must be caught on the line that says so, good_<...> must pass.
#include "kernel_operator.h"

using namespace AscendC;

#define BOTH(name, ...)                                              \
  template <bool bad>                                                \
  void name(void **args);                                            \
  extern "C" void bad_##name(void **args) { name<true>(args); }      \
  extern "C" void good_##name(void **args) { name<false>(args); }    \
  template <bool bad>                                                \
  void name(void **args)

using Calc = TBuf<TPosition::VECCALC>;

BOTH(stack_nested) {
  TPipe pipe;
  LocalTensor<float> first, second;
  PopStackBuffer<float, TPosition::LCM>(first);
  Duplicate(first, 1.0f, 64);
  if (bad) PopStackBuffer<float, TPosition::LCM>(second);
  Adds(first, first, 1.0f, 64);  // caught
}

BOTH(stack_nested_under_a_buffer) {
  TPipe pipe;
  Calc buf;
  LocalTensor<float> rest;
  if (!bad) pipe.InitBuffer(buf, 256);
  PopStackBuffer<float, TPosition::LCM>(rest);
  if (bad) pipe.InitBuffer(buf, 256);
  Duplicate(rest, 1.0f, 64);  // caught
}

BOTH(ub_capacity_of_a_pool) {
  TPipe pipe;
  TBufPool<TPosition::VECCALC> pool;
  Calc a, b;
  pipe.InitBufPool(pool, 1024);
  pool.InitBuffer(a, 512);
  pool.InitBuffer(b, bad ? 544 : 512);  // caught
}

BOTH(ub_capacity_of_a_shared_pool) {
  TPipe pipe;
  TBufPool<TPosition::VECCALC> pool, other;
  pipe.InitBufPool(pool, 1024);
  pipe.InitBufPool(other, bad ? 2048 : 1024, pool);  // caught
}

BOTH(ub_capacity_without_a_pipe) {
  LocalMemAllocator<> ub;
  auto x = ub.Alloc<float, 40000>();
  auto y = ub.Alloc<float>(bad ? 9200 : 8000);  // caught
}

class OwnPool {
 public:
  template <TPosition position>
  void InitBuffer(TBuf<position> &buffer, uint32_t len) {
    buffer.InitStartBufHandle(GetBufHandle(0), 1, len);
    buffer.InitBufHandle(this, 0, GetBufHandle(0), GetCurAddr(), len);
  }
  EXTERN_IMPL_BUFPOOL(OwnPool, TPosition::VECCALC, 1);
};

BOTH(queue_state_after_a_pool_was_reset) {
  TPipe pipe;
  OwnPool pool;
  Calc buf;
  pipe.InitBufPool(pool, 1024);
  pool.InitBuffer(buf, 512);
  auto x = buf.Get<float>();
  if (bad) pool.Reset();
  Duplicate(x, 1.0f, 64);  // caught
}

BOTH(param_range_of_a_dequantiser) {
  TPipe pipe;
  Calc bufs[2];
  for (auto &buf : bufs) pipe.InitBuffer(buf, 512);
  auto x = bufs[0].Get<int16_t>();
  Duplicate(x, int16_t(3), 128);
  PipeBarrier<PIPE_V>();
  SetDeqScale(1.0f, 0, !bad);
  CastDequant<int8_t, int16_t, false>(bufs[1].Get<int8_t>(), x, 128);  // caught
}

BOTH(param_range_of_a_table_of_scales) {
  TPipe pipe;
  Calc bufs[3];
  for (auto &buf : bufs) pipe.InitBuffer(buf, 512);
  auto x = bufs[0].Get<int16_t>();
  Duplicate(x, int16_t(3), 128);
  PipeBarrier<PIPE_V>();
  if (!bad) SetDeqScale(bufs[2].Get<uint64_t>(), VdeqInfo());
  CastDequant<uint8_t, int16_t>(bufs[1].Get<uint8_t>(), x, 128);  // caught
}

BOTH(cast_mode_of_int4) {
  TPipe pipe;
  Calc bufs[2];
  for (auto &buf : bufs) pipe.InitBuffer(buf, 512);
  auto x = bufs[0].Get<half>();
  Duplicate(x, half(3), 128);
  PipeBarrier<PIPE_V>();
  Cast(bufs[1].Get<int4b_t>(), x, bad ? RoundMode::CAST_ODD : RoundMode::CAST_RINT, 128);  // caught
}

BOTH(gather_offset_of_interpolation) {
  TPipe pipe;
  Calc bufs[5];
  for (auto &buf : bufs) pipe.InitBuffer(buf, 2048);
  auto data = bufs[0].Get<half>();
  auto at = bufs[1].Get<int32_t>();
  auto weights = bufs[2].Get<half>();
  Duplicate(data, half(1), 128);
  Duplicate(weights, half(1), 16);
  Duplicate(at, bad ? 16 : 32, 8);
  PipeBarrier<PIPE_V>();
  BilinearInterpolation(bufs[3].Get<half>(), data, at.ReinterpretCast<uint32_t>(), weights,  // caught
                        uint64_t(128), 1, false, 1, 128, 1, bufs[4].Get<uint8_t>());
}
