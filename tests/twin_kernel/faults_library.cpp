// Pairs of the library: bad_<code>_<what> must be caught on the line that says so, good_... passes.

#define BOTH(name)                                       \
  template <bool bad>                                    \
  void name(void **args);                                \
  ENTRY(bad_##name) { name<true>(args); }                \
  ENTRY(good_##name) { name<false>(args); }              \
  template <bool bad>                                    \
  void name(void **args)

// args: 256 descending floats with their indices, 128 zeros
struct Sorts : Ub {
  LocalTensor<float> items, out;

  explicit Sorts(void **args) : items(In<float>(args[0], 512)), out(New<float>(512)) {}
  MrgSortSrcList<float> Lists() const { return {items, items[64], items[128], items[192]}; }
};

BOTH(sort_unsorted) {
  Sorts ub(args);
  Duplicate(ub.items[bad ? 16 : 504], 1000.0f, 1);
  const std::uint16_t lengths[4] = {32, 32, 0, 0};
  MrgSort(ub.out, ub.Lists(), MrgSort4Info(lengths, false, 3, 1));  // caught
}

BOTH(sort_unsorted_length) {
  Sorts ub(args);
  auto lists = ub.Lists();
  lists.src1 = ub.items[bad ? 128 : 0];  // its order ends after 64 items
  lists.src2 = ub.items[256];
  const std::uint16_t lengths[4] = {128, 32, 0, 0};
  Duplicate(ub.items[bad ? 256 : 320], 1000.0f, 1);
  MrgSort(ub.out, lists, MrgSort4Info(lengths, false, 3, 1));  // caught
}

BOTH(param_range_valid_bit) {
  Sorts ub(args);
  const std::uint16_t lengths[4] = {32, 32, 32, 0};
  MrgSort(ub.out, ub.Lists(), MrgSort4Info(lengths, false, bad ? 5 : 7, 1));  // caught
}

BOTH(param_range_list_length) {
  Sorts ub(args);
  const std::uint16_t lengths[4] = {32, static_cast<std::uint16_t>(bad ? 4096 : 32), 0, 0};
  MrgSort(ub.out, ub.Lists(), MrgSort4Info(lengths, false, 3, 1));  // caught
}

BOTH(param_range_merge_repeats) {
  Sorts ub(args);
  const std::uint16_t lengths[4] = {32, 32, 32, static_cast<std::uint16_t>(bad ? 16 : 32)};
  MrgSort(ub.out, ub.Lists(), MrgSort4Info(lengths, false, 15, 2));  // caught
}

BOTH(overlap_merge) {
  Sorts ub(args);
  const std::uint16_t lengths[4] = {32, 32, 0, 0};
  auto dst = bad ? ub.items[64] : ub.out;
  MrgSort(dst, ub.Lists(), MrgSort4Info(lengths, false, 3, 1));  // caught
}

BOTH(scratch_size_sort) {
  Sorts ub(args);
  auto tmp = ub.New<float>(bad ? 64 : 128);
  auto index = ub.New<std::uint32_t>(64);
  Duplicate(index, 0u, 64);
  Sort<float, true>(ub.out, ub.items, index, tmp, 2);  // caught
}

BOTH(tiling_shape_topk) {
  Sorts ub(args);
  TopkTiling tiling{};
  if (!bad) tiling.allDataSize = tiling.innerDataSize = 32;
  auto index = ub.New<std::int32_t>(32);
  TopK<float>(ub.out, index, ub.items, index, LocalTensor<bool>(), 4, tiling, {1, 32, 32});  // caught
}

BOTH(tiling_shape_transpose) {
  Sorts ub(args);
  ConfusionTransposeTiling tiling{};
  tiling.param0 = bad ? 16 : 8;
  tiling.param1 = tiling.param2 = 16;
  ConfusionTranspose(ub.out, ub.items, TransposeType::TRANSPOSE_ND2ND_ONLY, tiling);  // caught
}

BOTH(param_range_topk) {
  Sorts ub(args);
  TopkTiling tiling{};
  tiling.allDataSize = tiling.innerDataSize = 32;
  auto index = ub.New<std::int32_t>(32);
  const std::int32_t k = bad ? 33 : 32;
  TopK<float>(ub.out, index, ub.items, index, LocalTensor<bool>(), k, tiling, {1, 32, 32});  // caught
}

BOTH(chip_lacks) {
  Sorts ub(args);
  if (bad) RpSort16(ub.out, ub.items, 1);  // caught
  if (!bad) Adds(ub.out, ub.items, 0.0f, 128);
}

BOTH(param_range_axis) {
  Sorts ub(args);
  const std::uint32_t shape[] = {4, 16};
  ReduceSum<float, Pattern::Reduce::AR>(ub.out, ub.items, shape, !bad);  // caught
}

BOTH(param_range_keep) {
  Sorts ub(args);
  auto mask = ub.New<std::uint8_t>(64);
  Duplicate(mask.ReinterpretCast<std::int16_t>(), std::int16_t(0x0101), 32);
  DropOutShapeInfo how;
  how.firstAxis = 1;
  how.srcLastAxis = how.maskLastAxis = 64;
  DropOut(ub.out, ub.items, mask, bad ? 0.0f : 0.5f, how);  // caught
}

BOTH(param_range_pad) {
  Sorts ub(args);
  PadTiling tiling{};
  tiling.srcHeight = 4;
  tiling.srcWidth = tiling.srcOriWidth = 6;
  PadParams how{1, static_cast<std::uint16_t>(bad ? 2 : 1), 0};
  Pad(ub.out, ub.items, how, tiling);  // caught
}
