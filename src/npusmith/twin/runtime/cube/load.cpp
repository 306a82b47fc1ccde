// The way into a cube core: global memory to L1, L1 to L0 and to the tables, fills.
#include <algorithm>

#include "check.h"
#include "log/record.h"
#include "text.h"
#include "twin/cube.h"

namespace twin {

namespace {

constexpr std::int64_t kFractal = 512;  // bytes: 16 rows of 32 (doc: fractals)

View Shift(const View &view, std::int64_t bytes) {
  View rest = view;
  rest.addr += bytes;
  rest.bytes -= bytes;
  return rest;
}

bool ToL0(const Call &call, const View &dst, Memory &memory) {
  using P = AscendC::TPosition;
  if (dst.position == P::A2 || dst.position == P::B2) {
    memory = MemoryOf(dst.position);
    return true;
  }
  Report(call, dst.position == P::MAX ? "tensor-empty" : "position",
         Text("dst of %s is at %s", call.api, NameOf(dst.position)), "", "A2 or B2");
  return false;
}

const char *ToL0Path(Memory memory) { return memory == Memory::kL0a ? "l1_l0a" : "l1_l0b"; }

const char *FromGmPath(Memory memory) {
  if (memory == Memory::kL1) return "gm_l1";
  return memory == Memory::kL0a ? "gm_l0a" : "gm_l0b";
}

// Where the iterations of a load begin in their source, in bytes.
struct Steps {
  std::int64_t first, step, low, bytes;
};

bool StepsOf(const Call &call, const Fractals &how, std::int64_t unit, Steps &steps) {
  const std::int64_t way = (how.repeats - 1) * how.source * unit;
  steps.first = how.start * unit;
  steps.step = (how.descend ? -1 : 1) * how.source * unit;
  steps.low = how.descend ? steps.first - way : steps.first;
  steps.bytes = way + unit;
  if (steps.low >= 0) return true;
  Report(call, "param-range", Text("%s counts down to %lld B before its source", call.api,
                                   Ll(-steps.low)));
  return false;
}

Spread Rows(std::int64_t run, std::int64_t pitch) {
  return pitch > run ? Spread{run, pitch} : Spread{};
}

void CopyFractal(std::uint8_t *to, const std::uint8_t *from, bool transpose) {
  if (!transpose) {
    std::memcpy(to, from, static_cast<std::size_t>(kFractal));
    return;
  }
  std::uint16_t in[256], out[256];
  std::memcpy(in, from, sizeof in);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) out[j * 16 + i] = in[i * 16 + j];
  }
  std::memcpy(to, out, sizeof out);
}

void CopyFractals(std::uint8_t *to, const std::uint8_t *from, const Steps &steps,
                  const Fractals &how) {
  for (std::int64_t i = 0; i < how.repeats; ++i) {
    CopyFractal(to + i * (how.gap + 1) * kFractal,
                from + (steps.first - steps.low) + i * steps.step, how.transpose);
  }
}

bool CheckTranspose(const Call &call, DType type, bool wanted) {
  if (!wanted || SizeOf(type) == 2) return true;
  Report(call, "param-range", Text("ifTranspose of %s on %s", call.api, NameOf(type)), "true",
         "16-bit types; LoadDataWithTranspose for others");
  return false;
}

}  // namespace

void LoadFractals(const Call &call, DType type, const View &dst, const View &src,
                  const Fractals &how) {
  Core &core = Enter(call, PIPE_MTE1);
  Memory memory;
  Steps steps;
  if (how.repeats == 0 || !CheckTranspose(call, type, how.transpose)) return;
  if (!ToL0(call, dst, memory) || !StepsOf(call, how, kFractal, steps)) return;
  const View part = Shift(src, steps.low);
  const std::uint8_t *from =
      UsableIn(core, call,
               {"src", &part, steps.bytes, kBlock, Use::kRead,
                Rows(kFractal, how.source * kFractal)},
               Memory::kL1);
  const std::int64_t pitch = (how.gap + 1) * kFractal;
  std::uint8_t *to = UsableIn(core, call,
                              {"dst", &dst, (how.repeats - 1) * pitch + kFractal, kFractal,
                               Use::kWrite, Rows(kFractal, pitch)},
                              memory);
  if (from == nullptr || to == nullptr) return;
  RecordCopy(ToL0Path(memory), type, how.repeats, kFractal, nullptr, 0, dst.addr);
  if (!Dry()) CopyFractals(to, from, steps, how);
}

void LoadFractalsGm(const Call &call, DType type, const View &dst, const Gm &src,
                    const Fractals &how) {
  Core &core = Enter(call, PIPE_MTE2);
  Steps steps;
  if (how.repeats == 0) return;
  if (how.transpose) {
    Report(call, "param-range", "ifTranspose of LoadData from global memory", "true", "false");
    return;
  }
  if (dst.position == AscendC::TPosition::MAX) {
    Report(call, "tensor-empty", Text("dst of %s has no memory", call.api));
    return;
  }
  const Memory memory = MemoryOf(dst.position);
  if (memory == Memory::kUb || memory > Memory::kL0b) {
    Report(call, "position", Text("dst of %s is at %s", call.api, NameOf(dst.position)), "",
           "A1, B1, A2 or B2");
    return;
  }
  if (!StepsOf(call, how, kFractal, steps)) return;
  Gm part = src;
  part.base += steps.low;
  if (part.bytes >= 0) part.bytes -= steps.low;
  const std::int64_t pitch = (how.gap + 1) * kFractal;
  std::uint8_t *to = UsableIn(core, call,
                              {"dst", &dst, (how.repeats - 1) * pitch + kFractal,
                               memory == Memory::kL1 ? kBlock : kFractal, Use::kWrite,
                               Rows(kFractal, pitch)},
                              memory);
  if (to == nullptr) return;
  const std::uint8_t *from = UsableGm(call, "src", part, steps.bytes, false,
                                      Rows(kFractal, how.source * kFractal));
  if (from == nullptr) return;
  RecordCopy(FromGmPath(memory), type, how.repeats, kFractal, from, how.source * kFractal, dst.addr,
             CacheFlag(src, AscendC::CacheRwMode::READ));
  if (!Dry()) CopyFractals(to, from, steps, how);
}

namespace {

// Element (row, column) of a square made of `count` fractals that follow each other: those of 4 and
// 8 bits lie below each other, of 32 bits beside each other (doc: LoadDataWithTranspose).
struct Square {
  DType type;
  int side, count;

  // In units of elements, from the first fractal on.
  std::int64_t At(int row, int column) const {
    const auto wide = static_cast<int>(ElementsOfBlock(type));  // columns of a fractal
    const int fractal = SizeOf(type) == 4 ? column / wide : row / 16;
    return (fractal * 16 + row % 16) * wide + column % wide;
  }
};

Square SquareOf(DType type) {
  if (type == DType::kI4) return {type, 64, 4};
  if (SizeOf(type) == 1) return {type, 32, 2};
  return {type, 16, SizeOf(type) == 2 ? 1 : 2};
}

void CopyElement(DType type, std::uint8_t *to, std::int64_t at, const std::uint8_t *from,
                 std::int64_t index) {
  const auto size = static_cast<std::size_t>(SizeOf(type));
  if (type != DType::kI4) {
    std::memcpy(to + BytesOf(type, at), from + BytesOf(type, index), size);
    return;
  }
  const int shift = static_cast<int>(at % 2) * 4, bits = Int4At(from, index) & 15;
  to[at / 2] = static_cast<std::uint8_t>((to[at / 2] & ~(15 << shift)) | bits << shift);
}

void TransposeSquare(std::uint8_t *to, const std::uint8_t *from, const Square &square,
                     std::int64_t fractalPitch) {
  std::uint8_t whole[4 * kFractal];
  std::memcpy(whole, from, static_cast<std::size_t>(square.count * kFractal));
  const std::int64_t fractal = 16 * ElementsOfBlock(square.type);  // elements
  for (int row = 0; row < square.side; ++row) {
    for (int column = 0; column < square.side; ++column) {
      const std::int64_t at = square.At(row, column);
      CopyElement(square.type, to + at / fractal * fractalPitch, at % fractal, whole,
                  square.At(column, row));
    }
  }
}

}  // namespace

void LoadSquares(const Call &call, DType type, const View &dst, const View &src,
                 const Fractals &how) {
  Core &core = Enter(call, PIPE_MTE1);
  const Square square = SquareOf(type);
  Memory memory;
  Steps steps;
  if (how.repeats == 0 || !ToL0(call, dst, memory)) return;
  if (type == DType::kI4 && memory != Memory::kL0b) {
    Report(call, "position", Text("dst of %s of int4b_t is at %s", call.api, NameOf(dst.position)),
           "", "B2");
    return;
  }
  if (!StepsOf(call, how, square.count * kFractal, steps)) return;
  const View part = Shift(src, steps.low);
  const std::uint8_t *from =
      UsableIn(core, call, {"src", &part, steps.bytes, kBlock, Use::kRead}, Memory::kL1);
  const std::int64_t pitch = (how.gap + 1) * kFractal;
  const std::int64_t inner = square.count > 1 ? (how.inner + 1) * kFractal : kFractal;
  const std::int64_t last = (how.repeats - 1) * pitch + (square.count - 1) * inner + kFractal;
  std::uint8_t *to =
      UsableIn(core, call, {"dst", &dst, last, kFractal, Use::kWrite}, memory);
  if (from == nullptr || to == nullptr) return;
  RecordCopy(ToL0Path(memory), type, how.repeats * square.count, kFractal, nullptr, 0, dst.addr);
  for (std::int64_t i = 0; !Dry() && i < how.repeats; ++i) {
    TransposeSquare(to + i * pitch, from + (steps.first - steps.low) + i * steps.step, square,
                    inner);
  }
}

void LoadSparse(const Call &call, const View &dst, const View &src, const View &index,
                const Fractals &how) {
  Core &core = Enter(call, PIPE_MTE1);
  constexpr std::int64_t kIndex = kFractal / 4;  // 2 bits for each byte
  if (how.repeats == 0) return;
  const View weights = Shift(src, how.start * kFractal), bits = Shift(index, how.start * kIndex);
  const std::int64_t bytes = how.repeats * kFractal;
  const std::uint8_t *from =
      UsableIn(core, call, {"src", &weights, bytes, kBlock, Use::kRead}, Memory::kL1);
  const std::uint8_t *kept =
      UsableIn(core, call, {"idx", &bits, bytes / 4, kBlock, Use::kRead}, Memory::kL1);
  std::uint8_t *to =
      UsableIn(core, call, {"dst", &dst, bytes, kFractal, Use::kWrite}, Memory::kL0b);
  if (from == nullptr || kept == nullptr || to == nullptr) return;
  RecordCopy("l1_l0b_sparse", DType::kI8, how.repeats, kFractal, nullptr, 0, dst.addr);
  if (Dry()) return;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  auto &store = core.cube.sparse;
  store.resize(static_cast<std::size_t>(BytesOf(Memory::kL0b) / 4));
  std::memcpy(store.data() + dst.addr / 4, kept, static_cast<std::size_t>(bytes / 4));
}

// ---- image to column

namespace {

// The matrix that a convolution multiplies: a row for each output pixel, a column for each pixel of
// the filter and channel, 32 bytes of channels innermost (doc: LoadData 3D).
struct Columns {
  const std::uint8_t *image;
  std::int64_t bytes;  // of L1 from the image on, behind which reading begins again
  int size;
  std::int64_t c0, channels;
  ImageLoad how;
  std::int64_t outWidth, outHeight;

  std::int64_t Wide() const { return how.filterH * how.filterW * channels; }
  void Read(std::int64_t row, std::int64_t column, std::uint8_t *element) const {
    const std::int64_t taps = how.filterH * how.filterW;
    const std::int64_t whole = channels / c0 * c0 * taps;  // columns of complete channel blocks
    const std::int64_t deep = column < whole ? c0 : channels % c0;  // channels in this block
    const std::int64_t base = column < whole ? column / (c0 * taps) * c0 * taps : whole;
    const std::int64_t tap = (column - base) / deep, channel = (column - base) % deep;
    const std::int64_t y = row / outWidth * how.strideH - how.pad[2] +
                           tap / how.filterW * how.dilationH;
    const std::int64_t x = row % outWidth * how.strideW - how.pad[0] +
                           tap % how.filterW * how.dilationW;
    const auto length = static_cast<std::size_t>(size);
    if (y < 0 || y >= how.height || x < 0 || x >= how.width) {
      std::memcpy(element, &how.padBits, length);
      return;
    }
    const std::int64_t plane = base / taps * how.height * how.width;
    const std::int64_t at = (plane + (y * how.width + x) * deep + channel) * size;
    std::memcpy(element, image + (bytes > 0 ? at % bytes : at), length);
  }
};

bool CheckImage(const Call &call, DType type, Memory memory, const ImageLoad &how) {
  const bool b8 = SizeOf(type) == 1;
  if (b8 && (memory == Memory::kL0b || how.transpose)) {
    Report(call, "param-range", Text("%s of 8-bit data %s", call.api,
                                     memory == Memory::kL0b ? "into L0B" : "with enTranspose"),
           NameOf(type), "16- and 32-bit types");
    return false;
  }
  const std::int64_t c0 = kBlock / SizeOf(type);
  if (how.channels % c0 != 0 && how.channels % c0 % 4 != 0) {
    InRange(call, "channelSize % C0", how.channels % c0, 0, 0);
    return false;
  }
  return InRange(call, "l1H", how.height, 0, 32767) && InRange(call, "l1W", how.width, 0, 32767) &&
         InRange(call, "strideW", how.strideW, 1, 63) &&
         InRange(call, "strideH", how.strideH, 1, 63) &&
         InRange(call, "kStartPt % C0", how.kStart % c0, 0, 0);
}

// Two of int4b_t lie in a byte: the same moves as of half as many channels of a byte.
bool HalveColumns(const Call &call, ImageLoad &how) {
  if (!InRange(call, "channelSize % 2", how.channels % 2, 0, 0) ||
      !InRange(call, "kExtension % 2", how.kExtension % 2, 0, 0) ||
      !InRange(call, "kStartPt % 64", how.kStart % 64, 0, 0)) {
    return false;
  }
  how.channels /= 2;
  how.kExtension /= 2;
  how.kStart /= 2;
  return true;
}

std::int64_t OutSize(std::int64_t size, std::int64_t padding, std::int64_t filter,
                     std::int64_t dilation, std::int64_t stride) {
  return (size + padding - ((filter - 1) * dilation + 1)) / stride + 1;
}

// Where element (row, column) of the part lies in L0.
struct Part {
  Memory memory;
  bool transpose;
  std::int64_t rows, columns, c0;

  static std::int64_t Up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit;
  }
  // L0A: fractals of 16 rows, a row of fractals after the other. 32-bit transposed data comes in
  // squares of 16.
  std::int64_t Wide() const {
    if (!transpose) return Up(columns, c0);
    return c0 == 8 ? Up(rows, 16) * 2 : Up(rows, c0);
  }
  std::int64_t At(std::int64_t row, std::int64_t column) const {
    if (memory == Memory::kL0b) {  // fractals of c0 rows and 16 columns, columns inside
      const std::int64_t fractal = row / c0 * Up(columns, 16) + column / 16;
      return fractal * 16 * c0 + column % 16 * c0 + row % c0;
    }
    if (transpose) std::swap(row, column);
    return (row / 16 * Wide() + column / c0) * 16 * c0 + row % 16 * c0 + column % c0;
  }
  std::int64_t Elements() const {
    if (memory == Memory::kL0b) return Up(rows, c0) * Up(columns, 16) * 16 * c0;
    return Up(transpose ? columns : rows, 16) * Wide() * 16 * c0;
  }
};

}  // namespace

void LoadImage(const Call &call, DType type, const View &dst, const View &src,
               const ImageLoad &given) {
  Core &core = Enter(call, PIPE_MTE1);
  CubeState &state = core.cube;
  ImageLoad how = given;
  if (!how.ownMatrix) {
    how.height = state.height;
    how.width = state.width;
    std::copy(std::begin(state.pad), std::end(state.pad), std::begin(how.pad));
  }
  if (!how.ownPad) how.padBits = state.padBits;
  if (type == DType::kI4 && !HalveColumns(call, how)) return;
  Memory memory;
  if (!ToL0(call, dst, memory) || !CheckImage(call, type, memory, how)) return;
  const bool nothing = how.height == 0 || how.width == 0 || how.channels == 0 ||
                       how.kExtension == 0 || how.mExtension == 0 || how.filterH == 0 ||
                       how.filterW == 0 || state.repeatTimes == 0;
  if (nothing) return;
  const int size = SizeOf(type);
  const std::int64_t c0 = kBlock / size;
  Columns all{nullptr, state.boundary, size, c0, how.channels, how, 0, 0};
  all.outWidth =
      OutSize(how.width, how.pad[0] + how.pad[1], how.filterW, how.dilationW, how.strideW);
  all.outHeight =
      OutSize(how.height, how.pad[2] + how.pad[3], how.filterH, how.dilationH, how.strideH);
  if (all.outWidth <= 0 || all.outHeight <= 0) {
    Report(call, "param-range", Text("the filter of %s is larger than its image", call.api));
    return;
  }
  const bool down = state.repeatMode == 0;
  const std::int64_t times = state.repeatTimes;
  const Part part{memory, how.transpose && memory == Memory::kL0a,
                  how.mExtension * (down ? times : 1), how.kExtension * (down ? 1 : times), c0};
  const std::int64_t pixels = Part::Up(how.channels, c0) * how.height * how.width;
  const std::int64_t bytes =
      state.boundary > 0 ? std::min(state.boundary, pixels * kBlock) : pixels * kBlock;
  const bool tail = how.channels % c0 != 0;  // the last block of channels is narrower
  const std::int64_t exact = tail ? how.channels * how.height * how.width * size : bytes;
  all.image = UsableIn(core, call, {"src", &src, std::min(bytes, exact), kBlock, Use::kRead},
                       Memory::kL1);
  std::uint8_t *to = UsableIn(
      core, call, {"dst", &dst, part.Elements() * size, kFractal, Use::kWrite}, memory);
  if (all.image == nullptr || to == nullptr) return;
  RecordCopy(ToL0Path(memory), type, part.Elements() * size / kFractal, kFractal, nullptr, 0,
             dst.addr);
  if (Dry()) return;
  std::memset(to, 0, static_cast<std::size_t>(part.Elements() * size));
  const std::int64_t lastRow = all.outWidth * all.outHeight, lastColumn = all.Wide();
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const std::int64_t jump = down ? row / how.mExtension * state.repeatStride * 16 : 0;
    const std::int64_t from = how.mStart + jump + row % how.mExtension;
    for (std::int64_t column = 0; column < part.columns; ++column) {
      const std::int64_t skip = down ? 0 : column / how.kExtension * state.repeatStride * c0;
      const std::int64_t of = how.kStart + skip + column % how.kExtension;
      if (from < lastRow && of < lastColumn) all.Read(from, of, to + part.At(row, column) * size);
    }
  }
}

void SetImage(const Call &call, std::int64_t height, std::int64_t width, const std::uint8_t *pad) {
  CubeState &state = Enter(call, PIPE_S).cube;
  if (!InRange(call, "l1H", height, 1, 32767) || !InRange(call, "l1W", width, 1, 32767)) return;
  state.height = height;
  state.width = width;
  std::copy(pad, pad + 4, state.pad);
}

void SetImagePad(const Call &call, std::uint64_t bits) {
  Enter(call, PIPE_S).cube.padBits = bits;
}

void SetImageRepeat(const Call &call, std::int64_t stride, std::int64_t times, std::int64_t mode) {
  CubeState &state = Enter(call, PIPE_S).cube;
  if (!InRange(call, "repeatMode", mode, 0, 1)) return;
  state.repeatStride = stride;
  state.repeatTimes = times;
  state.repeatMode = mode;
}

void SetImageBoundary(const Call &call, std::int64_t bytes) {
  CubeState &state = Enter(call, PIPE_S).cube;
  if (InRange(call, "boundaryValue", bytes, 0, BytesOf(Memory::kL1))) state.boundary = bytes;
}

// ---- fills, ND to NZ, tables

namespace {

const char *FillPath(Memory memory) {
  if (memory == Memory::kL1) return "fill_l1";
  return memory == Memory::kL0a ? "fill_l0a" : "fill_l0b";
}

}  // namespace

void FillBlocks(const Call &call, DType type, const View &dst, const void *value,
                std::int64_t repeats, std::int64_t blocks, std::int64_t gap) {
  const bool l0 = dst.position == AscendC::TPosition::A2 || dst.position == AscendC::TPosition::B2;
  Core &core = Enter(call, l0 ? PIPE_MTE1 : PIPE_MTE2);
  const bool good = InRange(call, "repeatTimes", repeats, 0, 32767) &&
                    InRange(call, "blockNum", blocks, 0, 32767) &&
                    InRange(call, "dstGap", gap, 0, 32767);
  if (!good || repeats == 0 || blocks == 0) return;
  const std::int64_t unit = l0 ? kFractal : kBlock;
  const std::int64_t run = blocks * unit, pitch = run + gap * unit;
  std::uint8_t *to = UsableIn(
      core, call,
      {"dst", &dst, (repeats - 1) * pitch + run, unit, Use::kWrite, Rows(run, pitch)},
      l0 ? MemoryOf(dst.position) : Memory::kL1);
  if (to == nullptr) return;
  RecordCopy(FillPath(l0 ? MemoryOf(dst.position) : Memory::kL1), type, repeats, run, nullptr, 0,
             dst.addr);
  const auto size = static_cast<std::size_t>(SizeOf(type));
  for (std::int64_t i = 0; !Dry() && i < repeats; ++i) {
    for (std::int64_t at = 0; at < run; at += static_cast<std::int64_t>(size)) {
      std::memcpy(to + i * pitch + at, value, size);
    }
  }
}

void CopyNdToNz(const Call &call, DType type, const View &dst, const Gm &src, const NdToNz &how) {
  Core &core = Enter(call, PIPE_MTE2);
  const std::int64_t size = SizeOf(type), c0 = kBlock / size;
  const std::int64_t blocks = (how.columns + c0 - 1) / c0;
  bool good = InRange(call, "ndNum", how.count, 0, 4095) &&
              InRange(call, "nValue", how.rows, 0, 16384) &&
              InRange(call, "dValue", how.columns, 0, 65535);
  if (!good || how.count == 0 || how.rows == 0 || how.columns == 0) return;
  if (how.rows > 1) {
    good = InRange(call, "srcDValue", how.sourceRow, 1, 65535) &&
           InRange(call, "dstNzNStride", how.targetRow, 1, 16384);
  }
  if (blocks > 1) good = good && InRange(call, "dstNzC0Stride", how.targetC0, 1, 16384);
  if (how.count > 1) {
    good = good && InRange(call, "srcNdMatrixStride", how.sourceMatrix, 0, 65535) &&
           InRange(call, "dstNzMatrixStride", how.targetMatrix, 0, 65535);
  }
  if (!good) return;
  const std::int64_t run = how.columns * size, row = how.sourceRow * size;
  const std::int64_t fromBytes =
      (how.count - 1) * how.sourceMatrix * size + (how.rows - 1) * row + run;
  const std::int64_t column = how.targetC0 * kBlock, line = how.targetRow * kBlock;
  const std::int64_t toBytes = (how.count - 1) * how.targetMatrix * size + (blocks - 1) * column +
                               (how.rows - 1) * line + kBlock;
  // Whole columns of C0 are written; what lies between them is not.
  const bool plain = how.count == 1 && line == kBlock;
  const Spread wrote = plain ? Rows(how.rows * kBlock, column) : Spread{};
  std::uint8_t *to =
      UsableIn(core, call, {"dst", &dst, toBytes, kBlock, Use::kWrite, wrote}, Memory::kL1);
  if (to == nullptr) return;
  const std::uint8_t *from = UsableGm(call, "src", src, fromBytes, false,
                                      how.count == 1 ? Rows(run, row) : Spread{});
  if (from == nullptr) return;
  RecordCopy("gm_l1", type, how.count * how.rows, run, from, row, dst.addr,
             kNd2Nz | CacheFlag(src, AscendC::CacheRwMode::READ));
  for (std::int64_t matrix = 0; !Dry() && matrix < how.count; ++matrix) {
    for (std::int64_t i = 0; i < how.rows; ++i) {
      const std::uint8_t *in = from + matrix * how.sourceMatrix * size + i * row;
      std::uint8_t *out = to + matrix * how.targetMatrix * size + i * line;
      for (std::int64_t at = 0; at < run; at += kBlock, out += column) {
        const std::int64_t part = std::min(kBlock, run - at);
        std::memcpy(out, in + at, static_cast<std::size_t>(part));
        std::memset(out + part, 0, static_cast<std::size_t>(kBlock - part));
      }
    }
  }
}

namespace {

struct TableRows {
  std::int64_t count, bytes, fromPitch, toPitch;  // bytes of source
};

bool MakeTableRows(const Call &call, const Blocks *how, std::int64_t bytes, bool bias,
                   std::int64_t widen, TableRows &rows) {
  if (how == nullptr) {
    if (bytes % kBlock != 0) {
      Report(call, "copy-length", Text("%s of %lld B is not a multiple of %lld B", call.api,
                                       Ll(bytes), Ll(kBlock)));
      bytes -= bytes % kBlock;
    }
    rows = {bytes > 0 ? 1 : 0, bytes, bytes, bytes};
    return true;
  }
  const std::int64_t unit = bias ? 64 : 128;  // doc: L1 to BiasTable, L1 to Fixpipe Buffer
  if (!InRange(call, "blockCount", how->count, 0, 4095)) return false;
  rows.count = how->length == 0 ? 0 : how->count;
  rows.bytes = how->length * unit;
  // The gaps of the bias table run from end to start, those of the fixpipe buffer from start.
  rows.fromPitch = how->source * kBlock + (bias ? rows.bytes : 0);
  rows.toPitch = how->target * unit + (bias ? rows.bytes * widen : 0);
  return true;
}

void WidenHalf(std::uint8_t *to, const std::uint8_t *from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    half value;
    std::memcpy(&value, from + 2 * i, 2);
    const float wide = value;
    std::memcpy(to + 4 * i, &wide, 4);
  }
}

}  // namespace

void CopyToTable(const Call &call, DType dstType, DType srcType, const View &dst, const View &src,
                 const Blocks *how, std::int64_t count) {
  const bool bias = dst.position == AscendC::TPosition::C2;
  if (!bias && dst.position != AscendC::TPosition::C2PIPE2GM) {
    Enter(call, PIPE_MTE1);
    Report(call, dst.position == AscendC::TPosition::MAX ? "tensor-empty" : "position",
           Text("dst of %s from L1 is at %s", call.api, NameOf(dst.position)), "",
           "C2 or C2PIPE2GM");
    return;
  }
  Core &core = Enter(call, bias ? PIPE_MTE1 : PIPE_FIX);
  const std::int64_t widen = SizeOf(dstType) / SizeOf(srcType);
  TableRows rows;
  if (!MakeTableRows(call, how, count * SizeOf(srcType), bias, widen, rows)) return;
  if (rows.count == 0) return;
  const std::int64_t fromBytes = (rows.count - 1) * rows.fromPitch + rows.bytes;
  const std::int64_t toBytes = (rows.count - 1) * rows.toPitch + rows.bytes * widen;
  const std::uint8_t *from =
      UsableIn(core, call, {"src", &src, fromBytes, kBlock, Use::kRead}, Memory::kL1);
  std::uint8_t *to = UsableIn(core, call, {"dst", &dst, toBytes, 64, Use::kWrite},
                              bias ? Memory::kBias : Memory::kFixpipe);
  if (from == nullptr || to == nullptr) return;
  RecordCopy(bias ? "l1_bt" : "l1_fb", srcType, rows.count, rows.bytes, nullptr, 0, dst.addr);
  for (std::int64_t i = 0; !Dry() && i < rows.count; ++i) {
    const std::uint8_t *in = from + i * rows.fromPitch;
    std::uint8_t *out = to + i * rows.toPitch;
    if (widen == 2) WidenHalf(out, in, rows.bytes / 2);
    else std::memcpy(out, in, static_cast<std::size_t>(rows.bytes));
  }
}

}  // namespace twin
