// Order between pipes and between cores.
#include "faults.h"

BOTH(hazard_load_then_compute) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (!bad) Sync<HardEvent::MTE2_V>();
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
}

BOTH(hazard_barrier_of_the_pipe_is_no_event) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (bad) PipeBarrier<PIPE_MTE2>();
  if (!bad) PipeBarrier<PIPE_ALL>();
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
}

BOTH(hazard_dump_waits_for_all_pipes) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (!bad) DumpTensor(ub.a, 1, 8);
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
}

BOTH(hazard_turns_wait_for_all_pipes) {
  Ub ub;
  GlobalTensor<int32_t> shared;
  shared.SetGlobalBuffer(static_cast<int32_t *>(args[2]), 4096);
  auto work = ub.c.ReinterpretCast<int32_t>();
  InitDetermineComputeWorkspace(shared, work);
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (!bad) WaitPreBlock(shared, work);
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
  NotifyNextBlock(shared, work);
  if (bad) WaitPreBlock(shared, work);
}

BOTH(hazard_event_of_other_pipes) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (bad) Sync<HardEvent::V_MTE3>();
  if (!bad) Sync<HardEvent::MTE2_V>();
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
}

BOTH(hazard_flag_set_before_the_load) {
  Ub ub;
  if (bad) SetFlag<HardEvent::MTE2_V>(0);
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (!bad) SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Adds(ub.b, ub.a, 1.0f, 1024);  // caught
}

BOTH(hazard_one_buffer_in_and_out_without_its_way_in) {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> both;
  pipe.InitBuffer(both, 1, 4096);
  LocalTensor<float> x = both.AllocTensor<float>();
  DataCopy(x, Gm(args, 0), 1024);
  if (bad) both.EnQue<TPosition::VECOUT, TPosition::GM, float>(x);
  if (!bad) both.EnQue<TPosition::GM, TPosition::VECIN, float>(x);
  if (bad) x = both.DeQue<TPosition::VECOUT, TPosition::GM, float>();
  if (!bad) x = both.DeQue<TPosition::GM, TPosition::VECIN, float>();
  Adds(x, x, 1.0f, 1024);  // caught
  both.EnQue<TPosition::VECOUT, TPosition::GM, float>(x);
  x = both.DeQue<TPosition::VECOUT, TPosition::GM, float>();
  DataCopy(Gm(args, 1), x, 1024);
  both.FreeTensor(x);
}

BOTH(hazard_compute_then_store) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 1024);
  if (!bad) Sync<HardEvent::V_MTE3>();
  DataCopy(Gm(args, 1), ub.a, 1024);  // caught
}

BOTH(hazard_buffer_reloaded_while_read) {
  Ub ub;
  for (int i = 0; i < 2; ++i) {
    DataCopy(ub.a, Gm(args, 0), 1024);  // caught
    Sync<HardEvent::MTE2_V>();
    Adds(ub.b, ub.a, 1.0f, 1024);
    if (!bad) Sync<HardEvent::V_MTE2>();
  }
}

BOTH(hazard_result_overwritten_while_stored) {
  Ub ub;
  for (int i = 0; i < 2; ++i) {
    Duplicate(ub.a, 1.0f, 1024);  // caught
    Sync<HardEvent::V_MTE3>();
    DataCopy(Gm(args, 1)[1024 * i], ub.a, 1024);
    if (!bad) Sync<HardEvent::MTE3_V>();
  }
}

BOTH(hazard_store_out_of_an_input_queue) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, 4096);
  pipe.InitBuffer(out, 2, 4096);
  for (int i = 0; i < 3; ++i) {
    auto x = in.AllocTensor<float>();
    DataCopy(x, Gm(args, 0), 1024);
    in.EnQue(x);
    x = in.DeQue<float>();
    auto y = out.AllocTensor<float>();
    Adds(y, x, 1.0f, 1024);
    if (!bad) out.EnQue(y);
    if (!bad) y = out.DeQue<float>();
    DataCopy(Gm(args, 1)[1024 * i], y, 1024);  // caught
    out.FreeTensor(y);
    in.FreeTensor(x);
  }
}

BOTH(hazard_gm_written_then_read) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 1024);
  Sync<HardEvent::V_MTE3>();
  DataCopy(Gm(args, 2), ub.a, 1024);
  if (!bad) Sync<HardEvent::MTE3_MTE2>();
  DataCopy(ub.b, Gm(args, 2), 1024);  // caught
}

BOTH(hazard_strided_rows) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), DataCopyParams(4, 1, 0, 1));  // every second block of eight floats
  uint64_t mask[2] = {0xFF, 0};
  Duplicate(ub.a[bad ? 0 : 8], 1.0f, mask, 4, 1, 2);  // caught
}

BOTH(hazard_barrier_overlapping_loads) {
  Ub ub;
  DataCopy(ub.a, Gm(args, 0), 1024);
  if (!bad) PipeBarrier<PIPE_MTE2>();
  DataCopy(ub.a[512], Gm(args, 0), 512);  // caught
}

// ---- as the compiler's auto-sync leaves it

BOTH(hazard_auto_sync_scalar_reads_a_result) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  if (!bad) Sync<HardEvent::V_S>();
  volatile float kept = ub.a.GetValue(0);  // caught
}

BOTH(hazard_auto_sync_dependent_vectors) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  if (!bad) PipeBarrier<PIPE_V>();
  Adds(ub.b, ub.a, 1.0f, 64);  // caught
}

// ---- without it: manual_

BOTH(manual_hazard_scalar_reads_a_result) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  if (!bad) Sync<HardEvent::V_S>();
  volatile float kept = ub.a.GetValue(0);  // caught
}

BOTH(manual_hazard_vector_reads_a_scalar) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Sync<HardEvent::V_S>();
  ub.a.SetValue(0, 2.0f);
  if (!bad) Sync<HardEvent::S_V>();
  Adds(ub.b, ub.a, 1.0f, 64);  // caught
}

BOTH(manual_hazard_of_one_element) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(Gm(args, 1), ub.a, DataCopyExtParams(1, 12, 0, 0, 0));
  ub.a.SetValue(bad ? 2 : 3, 4.0f);  // caught
}

BOTH(manual_hazard_barrier_dependent_vectors) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  if (!bad) PipeBarrier<PIPE_V>();
  Adds(ub.b, ub.a, 1.0f, 64);  // caught
}

BOTH(manual_hazard_barrier_in_place) {  // reads what it writes itself, and another wrote before
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  if (!bad) PipeBarrier<PIPE_V>();
  Adds(ub.a, ub.a, 1.0f, 64);  // caught
}

BOTH(manual_hazard_barrier_of_an_accumulator) {  // Axpy reads its destination
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  PipeBarrier<PIPE_V>();
  Duplicate(ub.c, 1.0f, 64);
  if (!bad) PipeBarrier<PIPE_V>();
  Axpy(ub.c, ub.a, 1.0f, 64);  // caught
}

// ---- between cores: two blocks

BOTH(gm_race_two_writers) {
  Ub ub;
  Duplicate(ub.a, static_cast<float>(GetBlockIdx()), 64);
  Sync<HardEvent::V_MTE3>();
  DataCopy(Gm(args, 1)[GetBlockIdx() * (bad ? 56 : 64)], ub.a, 64);  // caught
}

BOTH(gm_race_reader_before_the_barrier) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Sync<HardEvent::V_MTE3>();
  if (GetBlockIdx() == 0) DataCopy(Gm(args, 1), ub.a, 64);
  if (!bad) SyncAll();
  if (GetBlockIdx() == 1) DataCopy(ub.b, Gm(args, 1), 64);  // caught
  if (bad) SyncAll();
}

BOTH(gm_race_sum_without_atomics) {
  Ub ub;
  Duplicate(ub.a, static_cast<float>(1 + GetBlockIdx()), 64);
  Sync<HardEvent::V_MTE3>();
  if (!bad) SetAtomicAdd<float>();
  DataCopy(Gm(args, 1), ub.a, 64);  // caught
  if (!bad) SetAtomicNone();
}

BOTH(gm_race_clear_before_atomics) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Sync<HardEvent::V_MTE3>();
  if (GetBlockIdx() == 0) DataCopy(Gm(args, 1), ub.a, 64);
  PipeBarrier<PIPE_MTE3>();
  if (!bad) SyncAll();
  SetAtomicAdd<float>();
  DataCopy(Gm(args, 1), ub.a, 64);  // caught
  SetAtomicNone();
}

BOTH(gm_race_write_of_what_is_read) {
  Ub ub;
  Duplicate(ub.a, bad ? static_cast<float>(GetBlockIdx()) : 1.0f, 64);
  Sync<HardEvent::V_MTE3>();
  if (GetBlockIdx() == 0 && !bad) SyncAll();
  if (GetBlockIdx() == 0) DataCopy(ub.b, Gm(args, 1), 64);
  if (GetBlockIdx() == 1) DataCopy(Gm(args, 1), ub.a, 64);  // caught
  if (GetBlockIdx() == 1 && !bad) SyncAll();
}

BOTH(gm_race_flag_before_the_data) {
  Ub ub;
  auto flag = Gm(args, 1)[1024];
  if (GetBlockIdx() == 1) {
    Duplicate(ub.a, 1.0f, 64);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Gm(args, 1), ub.a, 64);
    if (!bad) Sync<HardEvent::MTE3_S>();
    flag.SetValue(0, 1.0f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(flag);
    return;
  }
  while (flag.GetValue(0) != 1.0f) {  // the other block writes it
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(flag);
  }
  Sync<HardEvent::S_MTE2>();
  DataCopy(ub.b, Gm(args, 1), 64);  // caught
}

// The first block has ended before the other one begins to look.
BOTH(gm_race_flag_set_before_anybody_polls) {
  Ub ub;
  auto *flag = static_cast<int32_t *>(args[1]) + 1024;
  if (GetBlockIdx() == 0) {
    Duplicate(ub.a, 1.0f, 64);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Gm(args, 1), ub.a, 64);
    if (!bad) Sync<HardEvent::MTE3_S>();
    WriteGmByPassDCache(flag, 1);
    return;
  }
  while (ReadGmByPassDCache(flag) != 1) {
  }
  Sync<HardEvent::S_MTE2>();
  DataCopy(ub.b, Gm(args, 1), 64);  // caught
}

BOTH(gm_race_flag_that_is_read_once) {
  Ub ub;
  GlobalTensor<float> flag = Gm(args, 1)[1024];
  if (GetBlockIdx() == 0) {
    Duplicate(ub.a, 1.0f, 8);
    Sync<HardEvent::V_MTE3>();
    DataCopy(flag, ub.a, 8);
    return;
  }
  float seen = 0;
  do {
    seen = flag.GetValue(0);  // caught
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(flag);
  } while (!bad && seen != 1.0f);
}

BOTH(gm_line) {
  Gm(args, 1).SetValue(GetBlockIdx() * (bad ? 1 : 16), 1.0f);  // caught
}

BOTH(gm_line_past_the_cache) {
  if (bad) Gm(args, 1).SetValue(GetBlockIdx(), 1.0f);  // caught
  else WriteGmByPassDCache(static_cast<int32_t *>(args[1]) + GetBlockIdx(), 1);
}

BOTH(gm_cache_left_dirty) {
  Ub ub;
  auto gm = Gm(args, 1)[64 * GetBlockIdx()];
  gm.SetValue(0, 1.0f);
  if (!bad) DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(gm);
  Sync<HardEvent::S_MTE2>();
  DataCopy(ub.a, gm, 64);  // caught
}

BOTH(gm_cache_stale) {
  Ub ub;
  auto gm = Gm(args, 1)[64 * GetBlockIdx()];
  volatile float kept = gm.GetValue(0);
  Duplicate(ub.a, 1.0f, 64);
  Sync<HardEvent::V_MTE3>();
  DataCopy(gm, ub.a, 64);
  Sync<HardEvent::MTE3_S>();
  if (!bad) DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(gm);
  kept = gm.GetValue(0);  // caught
}

// ---- state and time

BOTH(mask_lost) {
  Ub ub;
  SetVectorMask<float>(0, 0xF);
  if (!bad) Duplicate<float, false>(ub.b, 1.0f, MASK_PLACEHOLDER, 1, 1, 8);
  Duplicate(ub.a, 1.0f, 64);  // caught
}

BOTH(slow_copy) {
  Ub ub;
  const int length = bad ? 8 : 1024;
  for (int at = 0; at < 64 * 8; at += length) {
    DataCopy(ub.a[at], Gm(args, 0)[at], length);  // caught
  }
}

BOTH(slow_barrier) {
  for (int i = 0; i < 64; ++i) {
    if (!bad) Sync<HardEvent::MTE2_V>();
    else PipeBarrier<PIPE_ALL>();  // caught
  }
}

BOTH(slow_scalar) {
  Ub ub;
  for (int i = 0; i < (bad ? 256 : 8); ++i) ub.a.SetValue(i, 1.0f);  // caught
}
