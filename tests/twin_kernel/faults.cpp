// Pairs: bad_<code>_<what> must be caught on the line that says so, good_<...> must pass.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(name) extern "C" void name(void **args)
#define BOTH(name, ...)                                  \
  template <bool bad>                                    \
  void name(void **args);                                \
  ENTRY(bad_##name) { name<true>(args); }                \
  ENTRY(good_##name) { name<false>(args); }              \
  template <bool bad>                                    \
  void name(void **args)

using Calc = TBuf<TPosition::VECCALC>;

// args: 0 read-only input of 1024 floats, 1 output of 1024 floats, 2 read-only tiling of 16 bytes
GlobalTensor<float> Input(void **args) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 1024);
  return gm;
}
GlobalTensor<float> Output(void **args) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[1]), 1024);
  return gm;
}

struct Ub {
  TPipe pipe;
  Calc bufs[3];
  LocalTensor<float> a, b, c;

  Ub() {
    for (auto &buf : bufs) pipe.InitBuffer(buf, 4096);
    a = bufs[0].Get<float>();
    b = bufs[1].Get<float>();
    c = bufs[2].Get<float>();
    Duplicate(a, 1.0f, 1024);
    Duplicate(b, 2.0f, 1024);
    Duplicate(c, 3.0f, 1024);
    PipeBarrier<PIPE_ALL>();
  }
};

BOTH(tensor_empty) {
  Ub ub;
  LocalTensor<float> none;
  if (!bad) none = ub.c;
  Add(none, ub.a, ub.b, 64);  // caught
}

BOTH(position) {
  Ub ub;
  LocalTensor<float> odd(bad ? TPosition::A1 : TPosition::VECCALC, 0, 64);
  Add(ub.c, odd, ub.b, 64);  // caught
}

BOTH(ub_align) {
  Ub ub;
  Add(ub.c[bad ? 4 : 8], ub.a, ub.b, 64);  // caught
}

BOTH(ub_align_of_a_reduced_pair) {
  Ub ub;
  const int at = bad ? 1 : 2;
  WholeReduceMax(ub.c[at], ub.a, 64, 1, 1, 1, 8);  // caught
}

BOTH(ub_bounds) {
  Ub ub;
  Add(ub.c, ub.a, ub.b, bad ? 1025 : 1024);  // caught
}

BOTH(ub_size) {
  Ub ub;
  LocalTensor<float> part = ub.bufs[0].Get<float>(64);
  Adds(ub.c, part, 1.0f, bad ? 65 : 64);  // caught
}

BOTH(ub_size_of_a_placed_tensor) {  // nothing lies behind it
  LocalTensor<float> x(TPosition::VECCALC, 0, 64);
  Duplicate(x, 1.0f, bad ? 72 : 64);  // caught
}

BOTH(ub_bounds_of_a_placed_tensor) {
  LocalTensor<float> x(TPosition::VECCALC, 0, 64), y(TPosition::VECCALC, 256, 64);
  Duplicate(x, 1.0f, bad ? 72 : 64);  // caught
}

BOTH(ub_bounds_of_strides) {
  Ub ub;
  const int stride = bad ? 9 : 8;
  Add(ub.c, ub.a, ub.b, uint64_t(64), 16, {1, 1, 1, 8, 8, stride});  // caught
}

BOTH(ub_bounds_of_a_scalar) {
  Ub ub;
  volatile float kept = ub.a.GetValue(bad ? 1024 : 1023);  // caught
}

BOTH(ub_capacity) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> queue;
  Calc buf;
  pipe.InitBuffer(queue, 2, 64 * 1024);
  pipe.InitBuffer(buf, bad ? 65 * 1024 : 63 * 1024);  // caught
  auto x = queue.AllocTensor<float>();
  queue.FreeTensor(x);
}

BOTH(ub_reserved) {
  TPipe pipe;
  Calc most, bufs[2];
  pipe.InitBuffer(most, bad ? 187 * 1024 : 180 * 1024);
  for (auto &buf : bufs) pipe.InitBuffer(buf, 1024);
  auto mask = bufs[0].Get<uint8_t>();
  auto x = bufs[1].Get<float>();
  Duplicate(mask.ReinterpretCast<uint16_t>(), uint16_t(1), 16);
  Duplicate(x, 1.0f, 64);
  Select(x, mask, x, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);  // caught
}

BOTH(scratch_size) {
  Ub ub;
  LocalTensor<float> tmp = ub.b;
  tmp.SetSize(bad ? 8 : 32);
  ReduceMax(ub.c, ub.a, tmp, 1024);  // caught
}

BOTH(scratch_size_of_an_index) {
  Ub ub;
  LocalTensor<float> tmp = ub.b;
  tmp.SetSize(bad ? 32 : 40);  // 16 repeats leave 32 elements, these one pair in a block of 8
  ReduceMax(ub.c, ub.a, tmp, 1024, true);  // caught
}

BOTH(scratch_size_left_over) {
  TPipe pipe;
  Calc most, buf;
  pipe.InitBuffer(most, bad ? 191 * 1024 + 512 : 180 * 1024);
  pipe.InitBuffer(buf, 256);
  auto x = buf.Get<float>();
  Duplicate(x, 0.5f, 64);
  Tanh(x, x, 64);  // caught
}

BOTH(overlap) {
  Ub ub;
  Add(ub.c[bad ? 8 : 0], ub.c, ub.b, 64);  // caught
}

BOTH(overlap_of_repeats) {
  Ub ub;
  // accumulating in place with repeat stride 0 is the documented exception
  if (bad) {
    Add(ub.c[64], ub.c, ub.b, uint64_t(64), 4, {1, 1, 1, 8, 8, 8});  // caught
  } else {
    Add(ub.c, ub.a, ub.c, uint64_t(64), 4, {1, 1, 1, 0, 8, 0});
  }
}

BOTH(overlap_of_a_widening_cast) {
  Ub ub;
  auto narrow = (bad ? ub.c : ub.a).ReinterpretCast<half>();
  Cast(ub.c, narrow, RoundMode::CAST_NONE, 128);  // caught
}

BOTH(overlap_of_scratch) {
  Ub ub;
  ReduceMax(ub.c, ub.a, bad ? ub.a : ub.b, 1024);  // caught
}

BOTH(param_range) {
  Ub ub;
  const int repeats = bad ? *static_cast<int *>(args[2]) : 16;  // 256
  Add(ub.c, ub.a, ub.b, uint64_t(64), repeats, {1, 1, 1, 0, 8, 8});  // caught
}

BOTH(param_range_of_a_stride) {
  Ub ub;
  const int stride = bad ? *static_cast<int *>(args[2]) : 8;
  BinaryRepeatParams how(1, 1, 1, stride, 8, 8);  // caught
  Add(ub.c, ub.a, ub.b, uint64_t(64), 1, how);
}

BOTH(param_range_of_a_copy) {
  Ub ub;
  DataCopyParams how(bad ? 4096 : 4, 1, 0, 0);
  DataCopy(ub.a, Input(args), how);  // caught
}

BOTH(param_range_of_bytes_to_gather) {
  Ub ub;
  auto offsets = ub.b.ReinterpretCast<uint32_t>();
  Duplicate(offsets, 0u, 64);
  PipeBarrier<PIPE_ALL>();
  using T = std::conditional_t<bad, int8_t, int16_t>;
  Gather(ub.c.ReinterpretCast<T>(), ub.a.ReinterpretCast<T>(), offsets, 0, 64);  // caught
}

BOTH(param_range_of_an_event) {
  SetFlag<HardEvent::V_MTE3>(bad ? 8 : 3);  // caught
  if (!bad) WaitFlag<HardEvent::V_MTE3>(3);
}

BOTH(param_range_of_a_transpose) {
  Ub ub;
  LocalTensor<half> to[16], from[16];
  for (int i = 0; i < 16; ++i) {
    to[i] = ub.a.ReinterpretCast<half>()[16 * i];
    from[i] = ub.b.ReinterpretCast<half>()[16 * i];
  }
  TransDataTo5HD(to, from, TransDataTo5HDParams(false, false, 1, 0, bad ? 1 : 0));  // caught
}

BOTH(gm_bounds) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]));
  DataCopy(ub.a, gm[bad ? 1024 : 1016], 8);  // caught
}

BOTH(gm_bounds_of_the_last_tile) {
  Ub ub;
  DataCopyExtParams how(1, bad ? 100 : 96, 0, 0, 0);
  DataCopyPad(ub.a, Input(args)[1000], how, DataCopyPadExtParams<float>());  // caught
}

ENTRY(rounded_store) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[3]));
  Duplicate(ub.a, 1.0f, 16);
  PipeBarrier<PIPE_ALL>();
  DataCopy(gm[1024], ub.a, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(gm[1024], ub.a, 16);
}

BOTH(gm_padding) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[3]));
  DataCopy(ub.a, gm[bad ? 1008 : 992], 32);  // caught
}

BOTH(gm_size) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[0]), 64);
  DataCopy(ub.a, gm, bad ? 72 : 64);  // caught
}

BOTH(gm_readonly) {
  Ub ub;
  DataCopy(bad ? Input(args) : Output(args), ub.a, 64);  // caught
}

BOTH(gm_readonly_scalar) {
  (bad ? Input(args) : Output(args)).SetValue(3, 1.0f);  // caught
}

BOTH(gm_align) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(reinterpret_cast<float *>(static_cast<char *>(args[0]) + (bad ? 2 : 4)));
  DataCopy(ub.a, gm, 8);  // caught
}

BOTH(copy_length) {
  Ub ub;
  DataCopy(ub.a, Input(args), bad ? 100 : 96);  // caught
}

BOTH(copy_pad) {
  Ub ub;
  DataCopyPadExtParams<float> pad(true, bad ? 9 : 8, 0, 0.0f);
  DataCopyPad(ub.a, Input(args), DataCopyExtParams(1, 32, 0, 0, 0), pad);  // caught
}

BOTH(copy_pad_without_is_pad) {
  Ub ub;
  DataCopyPadExtParams<float> pad(!bad, 0, 3, 0.0f);
  DataCopyPad(ub.a, Input(args), DataCopyExtParams(1, 20, 0, 0, 0), pad);  // caught
}

BOTH(copy_pad_with_a_value_that_was_set) {
  Ub ub;
  if (!bad) SetPadValue(1.0f);
  DataCopyPadExtParams<float> pad(false, 0, 3, 0.0f);
  DataCopyPad(ub.a, Input(args), DataCopyExtParams(1, 20, 0, 0, 0), pad);  // caught
}

BOTH(copy_pad_of_64_bits) {
  Ub ub;
  GlobalTensor<int64_t> gm;
  gm.SetGlobalBuffer(static_cast<int64_t *>(args[0]));
  DataCopyPadExtParams<int64_t> pad(true, 0, 1, bad ? 7 : 0);
  auto wide = ub.a.ReinterpretCast<int64_t>();
  DataCopyPad(wide, gm, DataCopyExtParams(1, 24, 0, 0, 0), pad);  // caught
}

BOTH(copy_pad_of_half_an_element) {
  Ub ub;
  DataCopyPad(Output(args), ub.a, DataCopyExtParams(1, bad ? 6 : 4, 0, 0, 0));  // caught
}

BOTH(atomic_type) {
  Ub ub;
  if (bad) SetAtomicAdd<half>();
  else SetAtomicAdd<float>();
  DataCopy(Output(args), ub.a, 64);  // caught
  SetAtomicNone();
}

BOTH(compare_length) {
  Ub ub;
  Compare(ub.c.ReinterpretCast<uint8_t>(), ub.a, ub.b, CMPMODE::LT, bad ? 100 : 128);  // caught
}

BOTH(cast_mode) {
  Ub ub;
  const auto mode = bad ? RoundMode::CAST_NONE : RoundMode::CAST_RINT;
  Cast(ub.c.ReinterpretCast<int32_t>(), ub.a, mode, 64);  // caught
}

BOTH(gather_offset) {
  Ub ub;
  auto offsets = ub.b.ReinterpretCast<uint32_t>();
  Duplicate(offsets, uint32_t(bad ? 4096 : 4092), 64);
  Gather(ub.c, ub.a, offsets, 0, 64);  // caught
}

BOTH(gather_offset_of_half_an_element) {
  Ub ub;
  auto offsets = ub.b.ReinterpretCast<uint32_t>();
  Duplicate(offsets, uint32_t(bad ? 6 : 8), 64);
  Gather(ub.c, ub.a, offsets, 0, 64);  // caught
}

BOTH(overlap_of_gather) {
  Ub ub;
  auto offsets = ub.b.ReinterpretCast<uint32_t>();
  Duplicate(offsets, uint32_t(bad ? 1792 : 1788), 64);  // bytes 1792 to 2047 are written
  Gather(ub.a[448], ub.a, offsets, 0, 64);  // caught
}

BOTH(overlap_of_gatherb) {
  Ub ub;
  auto offsets = ub.b.ReinterpretCast<uint32_t>();
  Duplicate(offsets, uint32_t(bad ? 1792 : 1760), 8);
  auto words = ub.a.ReinterpretCast<uint32_t>();
  Gatherb(words[448], words, offsets, 1, {1, 8});  // caught
}

struct Que {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;

  Que() {
    pipe.InitBuffer(in, 2, 256);
    pipe.InitBuffer(out, 2, 256);
  }
};

BOTH(queue_state_after_free) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  if (bad) q.in.FreeTensor(x);
  Duplicate(x, 0.0f, 64);  // caught
  if (!bad) q.in.FreeTensor(x);
}

BOTH(queue_state_after_enque) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  q.in.EnQue(x);
  if (!bad) x = q.in.DeQue<float>();
  Duplicate(x, 0.0f, 64);  // caught
  if (bad) x = q.in.DeQue<float>();
  q.in.FreeTensor(x);
}

BOTH(queue_state_wrong_queue) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  if (bad) q.out.FreeTensor(x);  // caught
  q.in.FreeTensor(x);
}

BOTH(queue_state_freed_twice) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  q.in.FreeTensor(x);
  if (bad) q.in.FreeTensor(x);  // caught
}

BOTH(queue_state_nothing_queued) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  if (!bad) q.in.EnQue(x);
  x = q.in.DeQue<float>();  // caught
  q.in.FreeTensor(x);
}

BOTH(queue_state_never_set_up) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  if (!bad) pipe.InitBuffer(queue, 1, 32);
  auto x = queue.AllocTensor<float>();  // caught
  queue.FreeTensor(x);
}

BOTH(queue_depth) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  auto y = q.in.AllocTensor<float>();
  q.in.EnQue(x);
  if (!bad) x = q.in.DeQue<float>();
  q.in.EnQue(y);  // caught
  if (bad) x = q.in.DeQue<float>();
  y = q.in.DeQue<float>();
  q.in.FreeTensor(x);
  q.in.FreeTensor(y);
}

BOTH(queue_leak) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  q.in.EnQue(x);
  x = q.in.DeQue<float>();  // caught
  if (!bad) q.in.FreeTensor(x);
}

BOTH(queue_leak_of_what_is_queued) {
  Que q;
  auto x = q.in.AllocTensor<float>();
  q.in.EnQue(x);  // caught
  if (bad) return;
  x = q.in.DeQue<float>();
  q.in.FreeTensor(x);
}

BOTH(queue_deadlock) {
  Que q;
  for (int i = 0; i < 3; ++i) {
    auto x = q.in.AllocTensor<float>();  // caught
    if (!bad) q.in.FreeTensor(x);
  }
}

BOTH(queue_buffers) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queues[3];
  pipe.InitBuffer(queues[0], 4, 32);
  pipe.InitBuffer(queues[1], 4, 32);
  if (bad) pipe.InitBuffer(queues[2], 1, 32);  // caught
}

// a destroyed pipe's queues do not count
BOTH(queue_buffers_again) {
  for (int turn = 0; turn < 2; ++turn) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> rest;
    TQue<TPosition::VECIN, 1> queues[3];
    pipe.InitBuffer(queues[0], 4, 32);
    pipe.InitBuffer(queues[1], 4, 32);
    if (bad && turn == 1) pipe.InitBuffer(queues[2], 1, 32);  // caught
    pipe.InitBuffer(rest, 190 * 1024);
    pipe.Destroy();
  }
}

// of buffers of earlier pipes the last ones are kept alone
BOTH(queue_state_of_an_old_pipe) {
  LocalTensor<float> kept;
  for (int turn = 0; turn < 4; ++turn) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 256);
    LocalTensor<float> x = queue.AllocTensor<float>();
    if (turn == 0) kept = x;
    Duplicate(bad && turn == 3 ? kept : x, 1.0f, 64);  // caught
    queue.FreeTensor(x);
    pipe.Destroy();
  }
}

BOTH(pipe_twice) {
  TPipe first;
  if (!bad) first.Destroy();
  TPipe second;  // caught
}

BOTH(pipe_missing) {
  if (bad) GetTPipePtr()->Reset();  // caught
  TPipe pipe;
  GetTPipePtr()->Reset();
}

BOTH(event_pair_wait_alone) {
  if (!bad) SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);  // caught
}

BOTH(event_pair_set_alone) {
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);  // caught
  if (!bad) wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
}

BOTH(event_pair_set_twice) {
  SetFlag<HardEvent::MTE2_V>(0);
  if (!bad) WaitFlag<HardEvent::MTE2_V>(0);
  SetFlag<HardEvent::MTE2_V>(0);  // caught
  WaitFlag<HardEvent::MTE2_V>(0);
}

BOTH(event_pair_fetched_twice) {
  TPipe pipe;
  const auto first = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3));
  SetFlag<HardEvent::V_MTE3>(first);
  if (!bad) WaitFlag<HardEvent::V_MTE3>(static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3)));
  const auto second = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3));
  SetFlag<HardEvent::V_MTE3>(second);  // caught
  WaitFlag<HardEvent::V_MTE3>(second);
}

BOTH(event_none) {
  TPipe pipe;
  for (int i = 0; i < 9; ++i) {
    const auto id = pipe.AllocEventID<HardEvent::V_S>();  // caught
    if (!bad) pipe.ReleaseEventID<HardEvent::V_S>(id);
  }
}

BOTH(deadlock) {
  if (bad && GetBlockIdx() == 1) return;
  SyncAll();  // caught
}

BOTH(sync_cores) { SyncAll(); }  // caught

BOTH(cross_mode) {
  if (bad) CrossCoreSetFlag<2, PIPE_MTE3>(1);  // caught
  CrossCoreSetFlag<0, PIPE_MTE3>(1);
  CrossCoreWaitFlag(1);
}

struct Small {
  int64_t a, b;
};
struct Large {
  int64_t a, b, c;
};

BOTH(tiling_size) {
  if (bad) {
    GET_TILING_DATA_WITH_STRUCT(Large, large, args[2]);  // caught
  }
  GET_TILING_DATA_WITH_STRUCT(Small, small, args[2]);
}

BOTH(kernel_assert) {
  ASSERT(GetBlockNum() < (bad ? 1 : 100));  // caught
}

BOTH(sticky_state_atomic) {
  SetAtomicMax<float>();  // caught
  if (!bad) SetAtomicNone();
}

BOTH(sticky_state_counter) {
  SetMaskCount();  // caught
  if (!bad) SetMaskNorm();
}

BOTH(sticky_state_mask) {
  SetVectorMask<float>(0, 0xFF);  // caught
  if (!bad) ResetMask();
}
