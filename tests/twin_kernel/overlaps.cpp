// Operands that overlap: what the chip would execute is computed all the same.

// args: 512 floats in and 512 floats out
struct Whole : Ub {
  LocalTensor<float> whole;

  explicit Whole(void **args) : whole(In<float>(args[0], 512)) {}
  LocalTensor<half> Halves() { return whole.ReinterpretCast<half>(); }
};

ENTRY(widens_upwards) {
  Whole ub(args);
  auto halves = ub.Halves();
  Cast(ub.whole, halves[512], RoundMode::CAST_NONE, 512);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(widens_downwards) {
  Whole ub(args);
  Cast(ub.whole, ub.Halves(), RoundMode::CAST_NONE, 512);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(shifts_by_a_block) {
  Whole ub(args);
  Adds(ub.whole[8], ub.whole, 1.0f, 128);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(broadcasts_a_row_onto_itself) {
  Whole ub(args);
  const uint32_t from[2] = {1, 64}, to[2] = {8, 64};
  auto tmp = ub.New<uint8_t>(4096);
  BroadCast<float, 2, 0>(ub.whole, ub.whole, to, from, tmp);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(broadcasts_a_column_onto_itself) {
  Whole ub(args);
  const uint32_t from[2] = {8, 1}, to[2] = {8, 64};
  auto tmp = ub.New<uint8_t>(4096);
  BroadCast<float, 2, 1>(ub.whole, ub.whole, to, from, tmp);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(sigmoid_of_a_shifted_source) {
  Whole ub(args);
  Sigmoid(ub.whole[128], ub.whole, 384);  // caught
  ub.Out(args[1], ub.whole, 512);
}

ENTRY(warns_before_it_breaks_the_rule) {
  Whole ub(args);
  for (int at : {512, 0}) {
    auto halves = ub.Halves();
    Cast(ub.whole, halves[at], RoundMode::CAST_NONE, 512);  // caught
    PipeBarrier<PIPE_V>();
  }
}

ENTRY(power_in_the_reserve) {
  Ub ub;
  TBuf<TPosition::VECCALC> most, end;
  ub.pipe.InitBuffer(most, TWIN_UB_BYTES + 1024);
  auto tmp = most.Get<uint8_t>();
  LocalTensor<float> out = ub.In<float>(args[0], 512);
  Power<float, false>(out, out[256], 2.0f, tmp, 256);  // caught
  ub.Out(args[1], out, 512);
}
