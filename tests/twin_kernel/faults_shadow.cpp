// What memory holds: data, padding, or nothing.
#include "faults.h"


BOTH(uninit_read_by_the_scalar_unit) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  volatile float kept = ub.a.GetValue(bad ? 64 : 63);  // caught
}

BOTH(uninit_read_copied_out) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.a, bad ? 72 : 64);  // caught
}

BOTH(uninit_read_by_an_addition) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 1024);
  Duplicate(ub.b, 1.0f, bad ? 1000 : 1024);
  Add(ub.c, ub.a, ub.b, 1024);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 1024);  // caught
}

BOTH(uninit_read_that_is_never_stored) {  // pass: nobody looks at the lanes behind
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Adds(ub.b, ub.a, 1.0f, 1024);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.b, bad ? 1024 : 64);  // caught
}

BOTH(uninit_read_in_place) {
  Ub ub;
  Duplicate(ub.a, 1.0f, bad ? 8 : 64);
  Adds(ub.a, ub.a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.a, 64);  // caught
}

BOTH(uninit_read_through_casts) {
  Ub ub;
  auto narrow = ub.b.ReinterpretCast<half>();
  Duplicate(ub.a, 1.0f, bad ? 120 : 128);
  Cast(narrow, ub.a, RoundMode::CAST_RINT, 128);
  Cast(ub.c, narrow, RoundMode::CAST_NONE, 128);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 128);  // caught
}

BOTH(uninit_read_by_a_mask) {
  Ub ub;
  uint64_t mask[2] = {bad ? 0x7Full : 0xFFull, 0};
  Duplicate(ub.a, 1.0f, mask, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.a, 8);  // caught
}

BOTH(uninit_read_by_a_sum) {
  Ub ub;
  Duplicate(ub.a, 1.0f, bad ? 127 : 128);
  WholeReduceSum(ub.b, ub.a, 64, 2, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(Gm(args, 1), ub.b, DataCopyExtParams(1, 8, 0, 0, 0));  // caught
}

BOTH(uninit_read_by_a_sum_of_rows_not_used) {  // the second row is not stored
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  WholeReduceSum(ub.b, ub.a, 64, 2, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(Gm(args, 1), ub.b, DataCopyExtParams(1, bad ? 8 : 4, 0, 0, 0));  // caught
}

BOTH(uninit_read_of_workspace) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 2), ub.a, bad ? 32 : 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(ub.b, Gm(args, 2), 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.b, 64);  // caught
}

BOTH(padding_read_by_a_sum) {
  Ub ub;
  DataCopyPadExtParams<float> pad(!bad, 0, bad ? 0 : 4, 0.0f);
  DataCopyPad(ub.a, Gm(args, 0), DataCopyExtParams(1, 400, 0, 0, 0), pad);
  PipeBarrier<PIPE_ALL>();
  ReduceSum(ub.b, ub.a, ub.c, 104);  // caught
}

BOTH(padding_read_copied_out) {
  Ub ub;
  DataCopyPad(ub.a, Gm(args, 0), DataCopyExtParams(1, 400, 0, 0, 0), DataCopyPadExtParams<float>());
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(Gm(args, 1), ub.a, DataCopyExtParams(1, bad ? 416 : 400, 0, 0, 0));  // caught
}

BOTH(atomic_uninit) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  if (!bad) DataCopy(Gm(args, 3), ub.a, 64);
  PipeBarrier<PIPE_ALL>();
  SetAtomicAdd<float>();
  DataCopy(Gm(args, 3), ub.a, 64);  // caught
  SetAtomicNone();
}

BOTH(gm_padding) {
  Ub ub;
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(static_cast<float *>(args[4]));
  DataCopy(ub.a, gm[4096 - 1024 - (bad ? 0 : 16)], 1024);  // caught
}

BOTH(uninit_read_by_a_select) {  // lanes 0..31 come from a, the others from b
  Ub ub;
  Duplicate(ub.a, 1.0f, 32);
  Duplicate(ub.b.template ReinterpretCast<int32_t>(), bad ? -1 : 0, 8);
  ub.b.template ReinterpretCast<int32_t>().SetValue(0, -1);
  auto other = ub.b[512];
  Duplicate(other, 2.0f, 64);
  PipeBarrier<PIPE_ALL>();
  auto bits = ub.b.template ReinterpretCast<uint8_t>();
  Select(ub.c, bits, ub.a, other, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}

BOTH(uninit_read_by_a_gather) {
  Ub ub;
  auto offsets = ub.b.template ReinterpretCast<uint32_t>();
  Duplicate(ub.a, 1.0f, 64);
  Duplicate(ub.b.template ReinterpretCast<int32_t>(), bad ? 256 : 252, 64);
  Gather(ub.c, ub.a, offsets, 0, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}

BOTH(uninit_read_of_the_offsets_of_a_gather) {
  Ub ub;
  auto offsets = ub.b.template ReinterpretCast<int32_t>();
  Duplicate(ub.a, 1.0f, 1024);
  Duplicate(offsets, 8, bad ? 63 : 64);
  offsets.SetValue(64, 0);
  PipeBarrier<PIPE_ALL>();
  Gather(ub.c, ub.a, ub.b.template ReinterpretCast<uint32_t>(), 0, 64);  // caught
}

BOTH(uninit_read_by_a_gather_of_columns) {
  Ub ub;
  Duplicate(ub.a, 1.0f, bad ? 126 : 128);
  uint64_t kept = 0;
  GatherMask(ub.c, ub.a, 2, false, 0, {1, 2, 8, 0}, kept);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}

BOTH(uninit_read_spread_over_blocks) {
  Ub ub;
  Duplicate(ub.a, 1.0f, bad ? 7 : 8);
  Brcb(ub.c, ub.a, 1, {1, 8});
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}

BOTH(uninit_read_accumulated_onto) {  // Axpy adds to what its destination holds
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Duplicate(ub.c, 1.0f, bad ? 56 : 64);
  Axpy(ub.c, ub.a, 2.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}

BOTH(uninit_read_multiplied_onto) {
  Ub ub;
  Duplicate(ub.a, 1.0f, 64);
  Duplicate(ub.c, 1.0f, bad ? 56 : 64);
  MulAddDst(ub.c, ub.a, ub.a, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(Gm(args, 1), ub.c, 64);  // caught
}
