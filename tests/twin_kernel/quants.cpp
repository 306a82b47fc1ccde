// Kernels of test_quant.py.

// args: source, scale, offset, out, numbers (count, channels)
template <typename T>
void Quantised(void **args) {
  Ub ub;
  const auto count = static_cast<std::uint32_t>(Number(args[4], 0));
  const auto channels = static_cast<std::uint32_t>(Number(args[4], 1));
  auto src = ub.In<T>(args[0], count);
  auto scale = ub.In<T>(args[1], 64);
  auto offset = ub.In<T>(args[2], 64);
  auto dst = ub.New<std::int8_t>(count);
  auto tmp = ub.New<std::uint8_t>(1024);
  if (channels == 0) {
    AscendQuant(dst, src, tmp, static_cast<float>(scale.GetValue(0)),
                static_cast<float>(offset.GetValue(0)), count);
  } else {
    AscendQuant(dst, src, tmp, scale, offset, channels, channels, count);
  }
  ub.Out(args[3], dst, count);
}
ENTRY(quant_float) { Quantised<float>(args); }
ENTRY(quant_half) { Quantised<half>(args); }

// args: source, scale, out, numbers (m, n, calCount, scalar)
template <typename D, typename S, DeQuantMode mode>
void Dequantised(void **args) {
  Ub ub;
  DequantParams how{static_cast<std::uint32_t>(Number(args[3], 0)),
                    static_cast<std::uint32_t>(Number(args[3], 1)),
                    static_cast<std::uint32_t>(Number(args[3], 2))};
  const std::uint32_t pitch = (how.n * sizeof(D) + 31) / 32 * 32 / sizeof(D);
  auto src = ub.In<std::int32_t>(args[0], how.m * how.n);
  auto scale = ub.In<S>(args[1], 64);
  auto dst = ub.In<D>(args[2], how.m * pitch);
  AscendDequant<D, S, mode>(dst, src, scale, how);
  ub.Out(args[2], dst, how.m * pitch);
}
constexpr auto kSingle = DeQuantMode::DEQUANT_WITH_SINGLE_ROW;
constexpr auto kMulti = DeQuantMode::DEQUANT_WITH_MULTI_ROW;
ENTRY(dequant_half) { Dequantised<half, std::uint64_t, kSingle>(args); }
ENTRY(dequant_float) { Dequantised<float, float, kSingle>(args); }
ENTRY(dequant_float_rows) { Dequantised<float, float, kMulti>(args); }

// args: source, scale, offset, out, numbers (elements, k, height, width)
template <typename I, typename T, bool transposed, bool shaped = true>
void Restored(void **args) {
  Ub ub;
  const auto at = [&](int i) { return static_cast<std::uint32_t>(Number(args[4], i)); };
  auto src = ub.In<std::int8_t>(args[0], std::is_same_v<I, int4b_t> ? at(0) / 2 : at(0));
  auto scale = ub.In<T>(args[1], at(2) * at(3));
  auto offset = ub.In<T>(args[2], at(2) * at(3));
  auto dst = ub.New<T>(at(0));
  auto tmp = ub.New<std::uint8_t>(1024);
  AntiQuantShapeInfo shape{at(2), at(3), at(2), at(3)};
  const std::uint32_t sizes[] = {at(2), at(3)};
  if (!shaped) {
    shape = {};
    offset.SetShapeInfo(ShapeInfo(2, sizes));
  }
  AscendAntiQuant<I, T, transposed>(dst, src.template ReinterpretCast<I>(), offset, scale, tmp,
                                    at(1), shape);
  ub.Out(args[3], dst, at(0));
}
ENTRY(anti_half) { Restored<std::int8_t, half, false>(args); }
ENTRY(anti_by_offset) { Restored<std::int8_t, half, false, false>(args); }
ENTRY(anti_turned) { Restored<std::int8_t, half, true>(args); }
ENTRY(anti_packed) { Restored<int4b_t, half, false>(args); }

// args: source, second source, out, numbers (which, count)
ENTRY(math_forms) {
  Ub ub;
  const auto n = static_cast<std::uint32_t>(Number(args[3], 1));
  auto a = ub.In<float>(args[0], n);
  auto b = ub.In<float>(args[1], n);
  auto dst = ub.In<float>(args[2], n);
  auto tmp = ub.New<std::uint8_t>(4096);
  switch (Number(args[3], 0)) {
    case 0: Exp<float, 15>(dst, a, tmp, n); break;
    case 1: Exp<float, 2, true>(dst, a, n); break;
    case 2: Exp<float, 0>(dst, a, n); break;
    case 3: Axpy(dst, a, 2.5f, tmp, n); break;
    case 4: Power(dst, a, b, tmp); break;
    case 5: Power(dst, a, 2.0f); break;
    case 6: Power<float>(dst, 2.0f, a, tmp); break;
    case 7: Fmod(dst, a, b, tmp, n); break;
    case 8: Fmod(dst, a, b); break;
    case 9: ClampMax(dst, a, tmp, 1.0f, n); break;
    case 10: ClampMin(dst, a, tmp, 1.0f, n); break;
    case 11: Xor(dst.ReinterpretCast<std::int16_t>(), a.ReinterpretCast<std::int16_t>(),
                 b.ReinterpretCast<std::int16_t>(), tmp);
  }
  ub.Out(args[2], dst, n);
}
ENTRY(exp_of_halves) {
  Ub ub;
  auto a = ub.In<half>(args[0], 64);
  auto dst = ub.New<half>(64);
  Exp<half, 15, false>(dst, a, 64);
  ub.Out(args[1], dst, 64);
}
