// Kernels of test_fold.py.

// args: source, out, numbers (rows, columns); the source's rows are padded to blocks
template <typename T, typename F>
void Along(void **args, F fold) {
  Ub ub;
  const auto rows = static_cast<std::uint32_t>(Number(args[2], 0));
  const auto columns = static_cast<std::uint32_t>(Number(args[2], 1));
  const std::uint32_t pitch = (columns * sizeof(T) + 31) / 32 * 32 / sizeof(T);
  auto src = ub.In<T>(args[0], rows * pitch);
  auto dst = ub.New<T>(rows + pitch);
  auto tmp = ub.New<std::uint8_t>(16384);
  const std::uint32_t shape[] = {rows, columns};
  fold(dst, src, tmp, shape, Number(args[2], 2) != 0);
  ub.Out(args[1], dst, Number(args[2], 2) != 0 ? columns : rows);
}
#define ALONG(entry, name, T)                                                              \
  ENTRY(entry) {                                                                           \
    Along<T>(args, [](auto dst, auto src, auto tmp, const std::uint32_t *shape, bool ra) { \
      if (ra) name<T, Pattern::Reduce::RA, true>(dst, src, tmp, shape, true);              \
      else name<T, Pattern::Reduce::AR>(dst, src, shape, true);                            \
    });                                                                                    \
  }
ALONG(axis_sum, ReduceSum, float)
ALONG(axis_mean, ReduceMean, float)
ALONG(axis_prod, ReduceProd, float)
ALONG(axis_max, ReduceMax, float)
ALONG(axis_min_half, ReduceMin, half)
ALONG(axis_any, ReduceAny, std::uint8_t)
ALONG(axis_all, ReduceAll, float)

ENTRY(xor_sum) {
  Ub ub;
  auto a = ub.In<std::int16_t>(args[0], 256);
  auto b = ub.In<std::int16_t>(args[1], 256);
  auto tmp = ub.New<std::uint8_t>(1024);
  auto dst = ub.New<std::int16_t>(16);
  ReduceXorSum(dst, a, b, tmp, static_cast<std::uint32_t>(Number(args[3], 0)));
  ub.Out(args[2], dst, 1);
}

constexpr CumSumConfig kFirst{false, false, true};
constexpr CumSumConfig kLast{true, false, true};
// args: source, out, last row out, numbers (outter, inner)
template <typename T, const CumSumConfig &config>
void Running(void **args) {
  Ub ub;
  const CumSumInfo info{static_cast<std::uint32_t>(Number(args[3], 0)),
                        static_cast<std::uint32_t>(Number(args[3], 1))};
  auto src = ub.In<T>(args[0], info.outter * info.inner);
  auto dst = ub.New<T>(info.outter * info.inner);
  auto row = ub.New<T>(info.inner);
  CumSum<T, config>(dst, row, src, info);
  ub.Out(args[1], dst, info.outter * info.inner);
  ub.Out(args[2], row, info.inner);
}
ENTRY(running_rows) { Running<float, kLast>(args); }
ENTRY(running_columns) { Running<float, kFirst>(args); }
ENTRY(running_half) { Running<half, kLast>(args); }

// args: source, out, numbers (outter, inner, n)
template <typename T, typename Acc>
void Means(void **args) {
  Ub ub;
  const MeanParams how{static_cast<std::uint32_t>(Number(args[2], 0)),
                       static_cast<std::uint32_t>(Number(args[2], 1)),
                       static_cast<std::uint32_t>(Number(args[2], 2))};
  auto src = ub.In<T>(args[0], how.outter * how.inner);
  auto dst = ub.New<T>(how.outter);
  auto tmp = ub.New<std::uint8_t>(64);
  Mean<T, Acc>(dst, src, tmp, how);
  ub.Out(args[1], dst, how.outter);
}
ENTRY(mean_half) { Means<half, half>(args); }
ENTRY(mean_half_in_float) { Means<half, float>(args); }
