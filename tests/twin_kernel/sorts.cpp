// Kernels of test_sort.py.

// args: items, out, counts taken, numbers (4 lengths, lists, repeats, suspend)
template <typename T>
void Merge(void **args) {
  Ub ub;
  void *n = args[3];
  const std::uint16_t lengths[4] = {
      static_cast<std::uint16_t>(Number(n, 0)), static_cast<std::uint16_t>(Number(n, 1)),
      static_cast<std::uint16_t>(Number(n, 2)), static_cast<std::uint16_t>(Number(n, 3))};
  const std::int64_t repeats = Number(n, 5), each = GetSortLen<T>(1);
  const std::int64_t total = lengths[0] + lengths[1] + lengths[2] + lengths[3];
  auto items = ub.In<T>(args[0], total * repeats * each);
  auto out = ub.In<T>(args[1], total * repeats * each);
  MrgSortSrcList<T> lists(items, items[lengths[0] * each],
                          items[(lengths[0] + lengths[1]) * each],
                          items[(lengths[0] + lengths[1] + lengths[2]) * each]);
  MrgSort4Info how(lengths, Number(n, 6) != 0, (1 << Number(n, 4)) - 1, repeats);
  MrgSort(out, lists, how);
  std::uint16_t taken[4];
  GetMrgSortResult(taken[0], taken[1], taken[2], taken[3]);
  ub.Out(args[1], out, total * repeats * each);
  GlobalTensor<std::int64_t> gm;
  gm.SetGlobalBuffer(static_cast<std::int64_t *>(args[2]));
  for (int i = 0; i < 4; ++i) gm.SetValue(i, taken[i]);
}
ENTRY(merge_float) { Merge<float>(args); }
ENTRY(merge_half) { Merge<half>(args); }

// args: scores, indices, values out, indices out, numbers (count, full)
template <typename T, bool full>
void Sorted(void **args) {
  Ub ub;
  const auto count = static_cast<std::uint32_t>(Number(args[4], 0));
  auto scores = ub.In<T>(args[0], count);
  auto index = ub.In<std::uint32_t>(args[1], count);
  auto sorted = ub.New<T>(GetSortLen<T>(count));
  auto tmp = ub.New<T>(GetSortLen<T>(count));
  auto values = ub.New<T>(count);
  auto names = ub.New<std::uint32_t>(count);
  LocalTensor<T> concat;
  Concat(concat, scores, tmp, count / 16);
  Sort<T, full>(sorted, concat, index, tmp, count / 32);
  Extract(values, names, sorted, count / 32);
  ub.Out(args[2], values, count);
  ub.Out(args[3], names, count);
}
ENTRY(sort_float) { Sorted<float, true>(args); }
ENTRY(sort_half) { Sorted<half, true>(args); }
ENTRY(sort_groups) { Sorted<float, false>(args); }

// As the documented example: groups by Sort, put together by the library's MrgSort.
ENTRY(sort_then_merge) {
  Ub ub;
  auto scores = ub.In<half>(args[0], 128);
  auto index = ub.In<std::uint32_t>(args[1], 128);
  auto sorted = ub.New<half>(GetSortLen<half>(128));
  auto tmp = ub.New<half>(GetSortLen<half>(128));
  auto values = ub.New<half>(128);
  auto names = ub.New<std::uint32_t>(128);
  LocalTensor<half> concat;
  Concat(concat, scores, tmp, 8);
  Sort<half, false>(sorted, concat, index, tmp, 4);
  const std::uint32_t step = GetSortOffset<half>(32);
  MrgSortSrcList list =
      MrgSortSrcList(sorted[0], sorted[step], sorted[2 * step], sorted[3 * step]);
  const std::uint16_t counts[4] = {32, 32, 32, 32};
  std::uint32_t taken[4];
  MrgSort<half, false>(tmp, list, counts, taken, 0b1111, 1);
  Extract(values, names, tmp, 4);
  ub.Out(args[2], values, 128);
  ub.Out(args[3], names, 128);
}

// args: scores, indices, finished, values out, indices out, numbers (k, outter, inner, n, largest)
template <typename T, bool own, bool finish, TopKMode mode>
void Top(void **args) {
  Ub ub;
  void *n = args[5];
  const auto k = static_cast<std::int32_t>(Number(n, 0));
  TopKInfo info;
  info.outter = static_cast<std::int32_t>(Number(n, 1));
  info.inner = static_cast<std::int32_t>(Number(n, 2));
  info.n = static_cast<std::int32_t>(Number(n, 3));
  TopkTiling tiling{};
  tiling.allDataSize = info.outter * info.inner;
  tiling.innerDataSize = info.inner;
  constexpr bool kSmall = mode == TopKMode::TOPK_NSMALL;
  const std::int64_t perBlock = 32 / sizeof(T);
  const std::int64_t valueRow = kSmall ? k : (k + perBlock - 1) / perBlock * perBlock;
  const std::int64_t indexRow = kSmall ? k : (k + 7) / 8 * 8;
  auto scores = ub.In<T>(args[0], info.outter * info.inner);
  auto index = ub.In<std::int32_t>(args[1], (kSmall ? info.outter : 1) * info.inner);
  auto finished = ub.In<bool>(args[2], info.outter);
  auto values = ub.In<T>(args[3], info.outter * valueRow);
  auto names = ub.In<std::int32_t>(args[4], info.outter * indexRow);
  TopK<T, own, finish, false, mode>(values, names, scores, index, finished, k, tiling, info,
                                    Number(n, 4) != 0);
  ub.Out(args[3], values, info.outter * valueRow);
  ub.Out(args[4], names, info.outter * indexRow);
}
ENTRY(top_float) { Top<float, false, false, TopKMode::TOPK_NORMAL>(args); }
ENTRY(top_half_finish) { Top<half, true, true, TopKMode::TOPK_NORMAL>(args); }
ENTRY(top_small) { Top<float, true, false, TopKMode::TOPK_NSMALL>(args); }
ENTRY(top_small_finish) { Top<float, true, true, TopKMode::TOPK_NSMALL>(args); }

// args: 32 scores, 32 labels, scores out, labels out
ENTRY(proposals) {
  Ub ub;
  auto scores = ub.In<half>(args[0], 32);
  auto labels = ub.In<half>(args[1], 32);
  auto items = ub.New<half>(256);
  auto merged = ub.New<half>(256);
  for (int field = 0; field < 4; ++field) ProposalConcat(items, labels, 2, field);
  ProposalConcat(items, scores, 2, 4);
  ProposalConcat(items, labels, 2, 5);
  Muls(items, items, half(1), 256);
  RpSort16(items, items, 2);
  MrgSortSrcList<half> lists(items, items[128], items[128], items[128]);
  const std::uint16_t lengths[4] = {16, 16, 0, 0};
  MrgSort4(merged, lists, MrgSort4Info(lengths, false, 3, 1));
  ProposalExtract(scores, merged, 2, 4);
  ProposalExtract(labels, merged, 2, 5);
  ub.Out(args[2], scores, 32);
  ub.Out(args[3], labels, 32);
}
