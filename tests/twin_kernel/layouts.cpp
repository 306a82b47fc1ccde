// Kernels of test_transform.py.

// args: source, out, numbers (height, width, columns that count, left, right)
template <typename T>
void Padded(void **args) {
  Ub ub;
  void *n = args[2];
  const auto at = [&](int i) { return static_cast<std::uint32_t>(Number(n, i)); };
  PadTiling tiling{};
  tiling.srcHeight = at(0);
  tiling.srcWidth = at(1);
  tiling.srcOriWidth = at(2);
  PadParams how{static_cast<std::uint16_t>(at(3)), static_cast<std::uint16_t>(at(4)), -5};
  const std::uint32_t pitch = (at(1) * sizeof(T) + 31) / 32 * 32 / sizeof(T);
  auto src = ub.In<T>(args[0], at(0) * at(1));
  auto dst = ub.In<T>(args[1], at(0) * pitch);
  auto tmp = ub.New<std::uint8_t>(1024);
  Pad(dst, src, how, tmp, tiling);
  ub.Out(args[1], dst, at(0) * pitch);
}
ENTRY(pad_half) { Padded<half>(args); }
ENTRY(pad_int) { Padded<std::int32_t>(args); }

// args: source, out, numbers (height, width, right)
ENTRY(unpad_half) {
  Ub ub;
  const auto at = [&](int i) { return static_cast<std::uint32_t>(Number(args[2], i)); };
  UnPadTiling tiling{};
  tiling.srcHeight = at(0);
  tiling.srcWidth = at(1);
  UnPadParams how{0, static_cast<std::uint16_t>(at(2))};
  auto src = ub.In<half>(args[0], at(0) * at(1));
  auto dst = ub.New<half>(at(0) * at(1));
  UnPad(dst, src, how, tiling);
  ub.Out(args[1], dst, at(0) * (at(1) - at(2)));
}

// args: source, out, numbers (n, c, h, w, to NHWC)
template <typename T>
void Image(void **args) {
  Ub ub;
  const auto at = [&](int i) { return Number(args[2], i); };
  const std::int64_t count = at(0) * at(1) * at(2) * at(3);
  auto src = ub.In<T>(args[0], count);
  auto dst = ub.New<T>(count);
  auto tmp = ub.New<std::uint8_t>((2 * at(1) + 2) * 1024);
  const auto type = at(4) != 0 ? TransposeType::TRANSPOSE_NCHW2NHWC
                               : TransposeType::TRANSPOSE_NHWC2NCHW;
  Transpose(dst, src, tmp, TransposeParamsExt(at(0), at(1), at(2), at(3), type));
  ub.Out(args[1], dst, count);
}
ENTRY(image_float) { Image<float>(args); }
ENTRY(image_byte) { Image<std::uint8_t>(args); }

// args: source, out, numbers (scene, b, n, s, h, elements in, elements out)
template <typename T>
void Scene(void **args) {
  Ub ub;
  const auto at = [&](int i) { return static_cast<std::uint32_t>(Number(args[2], i)); };
  ConfusionTransposeTiling tiling{};
  if (at(0) == 7) {  // as kernels fill it themselves
    tiling.param0 = 32 / sizeof(T);
    tiling.param1 = at(1);
    tiling.param2 = at(2);
  } else {
    tiling.param12 = at(0);
    tiling.param13 = sizeof(T);
    tiling.param14 = at(1);
    tiling.param15 = at(2);
    tiling.param16 = at(3);
    tiling.param17 = at(4);
  }
  auto src = ub.In<T>(args[0], at(5));
  auto dst = ub.New<T>(at(6));
  ConfusionTranspose(dst, src, static_cast<TransposeType>(at(0)), tiling);
  ub.Out(args[1], dst, at(6));
}
ENTRY(scene_half) { Scene<half>(args); }
ENTRY(scene_float) { Scene<float>(args); }

constexpr TransDataConfig kToFractal{DataFormat::NCDHW, DataFormat::FRACTAL_Z_3D};
constexpr TransDataConfig kFromFractal{DataFormat::FRACTAL_Z_3D, DataFormat::NCDHW};
constexpr TransDataConfig kToSplit{DataFormat::NCDHW, DataFormat::NDC1HWC0};
constexpr TransDataConfig kFromSplit{DataFormat::NDC1HWC0, DataFormat::NCDHW};
// args: source, out, numbers (n, c, d, h, w, elements in, elements out)
template <const TransDataConfig &config, bool back>
void Volume(void **args) {
  Ub ub;
  const auto at = [&](int i) { return Number(args[2], i); };
  auto src = ub.In<half>(args[0], at(5));
  auto dst = ub.In<half>(args[1], at(6));
  constexpr auto table = MakeLayout(MakeShape(3, 4, 5), MakeStride(20, 5, 1));
  static_assert(table(MakeCoord(1, 2, 3)) == 33 && Crd2Idx(MakeCoord(0, 1, 0), table) == 5);
  static_assert(Get<1>(MakeCoord(7, 8)) == 8);
  auto flat = MakeLayout(MakeShape(at(0), at(1), at(2), at(3), at(4)), MakeStride());
  auto split = MakeLayout(MakeShape(at(2), 1, at(3), at(4), 1, 16, 16), MakeStride());
  if constexpr (back) {
    TransDataParams<decltype(split), decltype(flat)> how = {split, flat};
    TransData<config>(dst, src, how);
  } else {
    TransDataParams<decltype(flat), decltype(split)> how = {flat, split};
    TransData<config>(dst, src, how);
  }
  ub.Out(args[1], dst, at(6));
}
ENTRY(to_fractal) { Volume<kToFractal, false>(args); }
ENTRY(from_fractal) { Volume<kFromFractal, true>(args); }
ENTRY(to_split) { Volume<kToSplit, false>(args); }
ENTRY(from_split) { Volume<kFromSplit, true>(args); }

// args: source, out, numbers (rows, columns)
template <typename T>
void Grow(void **args) {
  Ub ub;
  const auto rows = static_cast<std::uint32_t>(Number(args[2], 0));
  const auto columns = static_cast<std::uint32_t>(Number(args[2], 1));
  auto src = ub.In<T>(args[0], rows);
  auto dst = ub.New<T>(rows * columns);
  const std::uint32_t to[2] = {rows, columns}, from[2] = {rows, 1};
  Broadcast<T, 2, 1>(dst, src, to, from);
  ub.Out(args[1], dst, rows * columns);
}
ENTRY(grow_float) { Grow<float>(args); }
ENTRY(grow_byte) { Grow<std::int8_t>(args); }

// args: source, mask, out, numbers (rows, columns, mask columns, tensor first)
template <typename T, typename U>
void Choose(void **args) {
  Ub ub;
  SelectWithBytesMaskShapeInfo how;
  how.firstAxis = static_cast<std::uint32_t>(Number(args[3], 0));
  how.srcLastAxis = static_cast<std::uint32_t>(Number(args[3], 1));
  how.maskLastAxis = static_cast<std::uint32_t>(Number(args[3], 2));
  auto src = ub.In<T>(args[0], how.firstAxis * how.srcLastAxis);
  auto mask = ub.In<U>(args[1], how.firstAxis * how.maskLastAxis);
  auto tmp = ub.New<std::uint8_t>(4096);
  if (Number(args[3], 3) != 0) Select(src, src, T(-1), mask, tmp, how);
  else SelectWithBytesMask(src, T(-1), src, mask, tmp, how);
  ub.Out(args[2], src, how.firstAxis * how.srcLastAxis);
}
ENTRY(choose_float) { Choose<float, std::uint8_t>(args); }
ENTRY(choose_half) { Choose<half, std::int32_t>(args); }

// args: source, mask, out, numbers (rows, columns, mask columns)
template <std::uint32_t mode>
void Drop(void **args) {
  Ub ub;
  DropOutShapeInfo how;
  how.firstAxis = static_cast<std::uint32_t>(Number(args[3], 0));
  how.srcLastAxis = static_cast<std::uint32_t>(Number(args[3], 1));
  how.maskLastAxis = static_cast<std::uint32_t>(Number(args[3], 2));
  auto src = ub.In<float>(args[0], how.firstAxis * how.srcLastAxis);
  auto mask = ub.In<std::uint8_t>(args[1], how.firstAxis * how.maskLastAxis);
  auto dst = ub.New<float>(how.firstAxis * how.srcLastAxis);
  DropOut<float, false, mode>(dst, src, mask, 0.25f, how);
  ub.Out(args[2], dst, how.firstAxis * how.srcLastAxis);
}
ENTRY(drop_by_shape) { Drop<0>(args); }
ENTRY(drop_bytes) { Drop<1>(args); }
ENTRY(drop_bits) { Drop<4>(args); }

ENTRY(steps) {
  Ub ub;
  auto whole = ub.New<std::int32_t>(200);
  Arange(whole, 5, 3, 200);
  ub.Out(args[0], whole, 200);
}
