// The way out of L0C: to global memory or L1, converted, scaled, clipped at 0 and laid out.
#include <algorithm>
#include <cmath>

#include "check.h"
#include "vector/put.h"
#include "log/record.h"
#include "text.h"
#include "twin/cube.h"

namespace twin {

namespace {

constexpr std::int64_t kSide = 16;

bool PerColumn(int mode) {
  return mode == VDEQF16 || mode == VQF322B8_PRE || mode == VREQ8;
}

bool Scalar(int mode) { return mode == DEQF16 || mode == QF322B8_PRE || mode == REQ8; }

const char *NameOfMode(int mode) {
  constexpr const char *kNames[] = {"NoQuant", "F322F16",      "F322BF16", "DEQF16", "VDEQF16",
                                    "QF322B8_PRE", "VQF322B8_PRE", "REQ8",     "VREQ8"};
  return mode >= 0 && mode < 9 ? kNames[mode] : "?";
}

// Which types a mode converts (doc: Fixpipe, quantPre).
bool ModeFits(int mode, DType from, DType to) {
  const bool b8 = to == DType::kI8 || to == DType::kU8;
  switch (mode) {
    case NoQuant: return from == to;
    case F322F16: return from == DType::kF32 && to == DType::kF16;
    case F322BF16: return from == DType::kF32 && to == DType::kBF16;
    case DEQF16:
    case VDEQF16: return from == DType::kI32 && to == DType::kF16;
    case QF322B8_PRE:
    case VQF322B8_PRE: return from == DType::kF32 && b8;
    case REQ8:
    case VREQ8: return from == DType::kI32 && b8;
    default: return false;
  }
}

// A scale as the hardware takes it apart (doc: QUANT_PRE).
struct Quant {
  float scale;
  int shift;   // 0: none
  int offset;
  bool sign;

  explicit Quant(std::uint64_t bits)
      : scale(BitsFloat(static_cast<std::uint32_t>(bits) & ~0x1FFFu)),  // 10 bits of mantissa
        shift((bits >> 36 & 1) != 0 ? static_cast<int>(bits >> 32 & 15) + 1 : 0),
        offset(static_cast<int>(bits >> 37 & 511)),
        sign((bits >> 46 & 1) != 0) {
    if (offset > 255) offset -= 512;
  }
};

struct Convert {
  int mode;
  DType from, to;
  bool relu;

  float Load(const std::uint8_t *at, const Quant &quant) const {
    if (from == DType::kF32) {
      float value;
      std::memcpy(&value, at, 4);
      return value;
    }
    std::int32_t value;
    std::memcpy(&value, at, 4);
    if (quant.shift > 0) value = static_cast<std::int16_t>(value >> quant.shift);
    return static_cast<float>(value);
  }

  void Byte(std::uint8_t *to8, float value, const Quant &quant) const {
    const float scaled = std::isnan(value) ? 0.0f : std::nearbyint(value * quant.scale);
    const float shifted =
        std::clamp(scaled, -65536.0f, 65536.0f) + static_cast<float>(quant.offset);
    const float low = quant.sign ? -128.0f : 0.0f, high = quant.sign ? 127.0f : 255.0f;
    *to8 = static_cast<std::uint8_t>(static_cast<int>(std::clamp(shifted, low, high)));
  }

  void Store(std::uint8_t *out, const std::uint8_t *in, const Quant &quant) const {
    if (mode == NoQuant && from == DType::kI32) {
      std::int32_t value;
      std::memcpy(&value, in, 4);
      if (relu) value = std::max(value, 0);
      std::memcpy(out, &value, 4);
      return;
    }
    float value = Load(in, quant);
    if (relu && value < 0) value = 0;
    if (to == DType::kF32) {
      std::memcpy(out, &value, 4);
    } else if (to == DType::kF16) {
      const std::uint16_t bits = FloatToHalf(mode == F322F16 ? value : value * quant.scale);
      std::memcpy(out, &bits, 2);
    } else if (to == DType::kBF16) {
      const std::uint16_t bits = FloatToBf16(value);
      std::memcpy(out, &bits, 2);
    } else {
      Byte(out, value, quant);
    }
  }
};

// How many columns of the source become one column of blocks in the target.
std::int64_t BlockColumns(const Outflow &how, DType to) {
  if (how.rowMajor) return how.n;
  if (SizeOf(to) == 1) return 2 * kSide;  // channels merge
  return how.split ? kSide / 2 : kSide;
}

bool CheckOutflow(const Call &call, DType dstType, DType srcType, const Outflow &how, bool toGm) {
  bool good = InRange(call, "nSize", how.n, 0, 4095) &&
              InRange(call, "mSize", how.m, 0, how.rowMajor ? 8192 : 65535) &&
              InRange(call, "dstStride", how.target, 1, 0xFFFFFFFFll) &&
              InRange(call, "srcNdStride", how.sourceMatrix, 0, 512);
  if (!ModeFits(how.mode, srcType, dstType) || (!toGm && how.mode == NoQuant)) {
    Report(call, "param-range",
           Text("quantPre %s of %s from %s to %s", NameOfMode(how.mode), call.api, NameOf(srcType),
                NameOf(dstType)),
           NameOfMode(how.mode), "a mode for these types");
    good = false;
  }
  const std::int64_t unit = how.split ? 8 : kSide;
  if (!how.rowMajor && how.n % unit != 0) {
    Report(call, "param-range", Text("nSize of %s to NZ is %lld", call.api, Ll(how.n)), "",
           Text("a multiple of %lld", Ll(unit)));
    good = false;
  }
  if (how.split && (how.rowMajor || !toGm || dstType != DType::kF32)) {
    Report(call, "param-range", Text("isChannelSplit of %s", call.api), "true",
           "float to global memory in NZ");
    good = false;
  }
  if (how.unitFlag == 1 || how.unitFlag > 3) {
    Report(call, "param-range", Text("unitFlag of %s is %d", call.api, how.unitFlag), "",
           "0, 2 or 3");
  }
  return good;
}

// The scales: one for all columns, or a table with one for each.
struct Scales {
  Quant one{0};
  std::vector<Quant> all;

  const Quant &Of(std::int64_t column) const {
    return all.empty() ? one : all[static_cast<std::size_t>(column)];
  }
};

bool ReadScales(Core &core, const Call &call, const View *given, const Outflow &how,
                Scales &scales) {
  if (Scalar(how.mode)) scales.one = Quant(how.scale);
  if (!PerColumn(how.mode)) return true;
  const View &view = given != nullptr ? *given : core.cube.fixTable;
  const Memory memory = given != nullptr ? Memory::kL1 : Memory::kFixpipe;
  const std::uint8_t *from = UsableIn(
      core, call, {"scales", &view, how.n * 8, given != nullptr ? kBlock : 64, Use::kRead}, memory);
  if (from == nullptr) return false;
  for (std::int64_t i = 0; i < how.n; ++i) {
    std::uint64_t bits;
    std::memcpy(&bits, from + i * 8, 8);
    scales.all.emplace_back(bits);
  }
  return true;
}

const std::uint8_t *ReadSource(Core &core, const Call &call, const View &src, const Outflow &how) {
  const std::int64_t columns = (how.n + kSide - 1) / kSide;
  const std::int64_t bytes = (how.matrices - 1) * how.sourceMatrix * 1024 +
                             ((columns - 1) * how.source + how.m) * 64;
  const bool one = how.matrices == 1 && how.source > how.m;
  const Spread rows = one ? Spread{how.m * 64, how.source * 64} : Spread{};
  return UsableIn(core, call, {"src", &src, bytes, 64, Use::kRead, rows}, Memory::kL0c);
}

// One row of a block: `count` columns from `column` on.
void ConvertRow(std::uint8_t *out, const std::uint8_t *matrix, const Outflow &how,
                const Convert &convert, const Scales &scales, std::int64_t row,
                std::int64_t column, std::int64_t count) {
  const std::int64_t size = SizeOf(convert.to);
  for (std::int64_t i = column; i < column + count; ++i) {
    const std::uint8_t *in = matrix + (i / kSide * how.source + row) * 64 + i % kSide * 4;
    convert.Store(out + (i - column) * size, in, scales.Of(i));
  }
}

// Bytes from the first to the last that are written, and where each row of a block goes.
struct Target {
  std::int64_t columns, block, row, matrix, bytes;
};

Target TargetOf(const Outflow &how, DType to) {
  const std::int64_t size = SizeOf(to);
  Target target{BlockColumns(how, to), 0, 0, how.targetMatrix * size, 0};
  if (how.rowMajor) {
    target.row = how.target * size;
    target.bytes = (how.matrices - 1) * target.matrix + (how.m - 1) * target.row + how.n * size;
    return target;
  }
  target.block = how.target * kBlock;
  target.row = std::min(target.columns, how.n) * size;
  const std::int64_t blocks = (how.n + target.columns - 1) / target.columns;
  const std::int64_t last = (how.n - (blocks - 1) * target.columns) * size;
  target.bytes = (blocks - 1) * target.block + how.m * last;
  return target;
}

template <typename F>
void EachRow(const Outflow &how, const Target &target, DType to, const std::uint8_t *from,
             std::uint8_t *base, F &&write) {
  const std::int64_t size = SizeOf(to);
  for (std::int64_t matrix = 0; matrix < (how.rowMajor ? how.matrices : 1); ++matrix) {
    const std::uint8_t *in = from + matrix * how.sourceMatrix * 1024;
    for (std::int64_t column = 0; column < how.n; column += target.columns) {
      const std::int64_t count = std::min(target.columns, how.n - column);
      std::uint8_t *out =
          base + matrix * target.matrix + column / target.columns * target.block;
      const std::int64_t pitch = how.rowMajor ? target.row : count * size;
      for (std::int64_t row = 0; row < how.m; ++row) {
        write(out + row * pitch, in, row, column, count);
      }
    }
  }
}

// Rows of a row-major result, whole columns of blocks of one in NZ.
void RecordOutflow(const char *path, DType to, const Outflow &how, const Target &target,
                   const std::uint8_t *gm, std::int64_t local, std::uint8_t flags) {
  const std::int64_t size = SizeOf(to);
  if (how.rowMajor) {
    RecordCopy(path, to, how.matrices * how.m, how.n * size, gm, target.row, local, flags);
    return;
  }
  const std::int64_t blocks = (how.n + target.columns - 1) / target.columns;
  RecordCopy(path, to, blocks, how.m * std::min(target.columns, how.n) * size, gm, target.block,
             local, flags);
}

void WriteGm(Core &core, const Outflow &how, const Target &target, const Convert &convert,
             const Scales &scales, const std::uint8_t *from, std::uint8_t *base) {
  const std::int64_t size = SizeOf(convert.to);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(how.n * size));
  EachRow(how, target, convert.to, from, base,
          [&](std::uint8_t *out, const std::uint8_t *in, std::int64_t row, std::int64_t column,
              std::int64_t count) {
            ConvertRow(line.data(), in, how, convert, scales, row, column, count);
            PutAtomic(core, out, line.data(), count * size);
          });
}

bool Nothing(const Outflow &how) { return how.n == 0 || how.m == 0 || how.matrices == 0; }

}  // namespace

void FixpipeToGm(const Call &call, DType dstType, DType srcType, const Gm &dst, const View &src,
                 const View *given, const Outflow &how) {
  Core &core = Enter(call, PIPE_FIX);
  if (Nothing(how) || !CheckOutflow(call, dstType, srcType, how, true)) return;
  if (how.unitFlag != 0) OrderTake(core, core.cube.mmad, PIPE_FIX);
  Scales scales;
  const std::uint8_t *from = ReadSource(core, call, src, how);
  if (from == nullptr || !ReadScales(core, call, given, how, scales)) return;
  const Target target = TargetOf(how, dstType);
  const bool rows = how.rowMajor && how.matrices == 1 && how.target > how.n;
  const std::int64_t size = SizeOf(dstType);
  std::uint8_t *base = UsableGm(call, "dst", dst, target.bytes, true,
                                rows ? Spread{how.n * size, target.row} : Spread{});
  if (base == nullptr) return;
  CheckAtomic(core, call, dstType);
  const int atomic = core.atomic == Atomic::kNone ? 0 : kAtomic;
  RecordOutflow("l0c_gm", dstType, how, target, base, src.addr,
                static_cast<std::uint8_t>(atomic | CacheFlag(dst, AscendC::CacheRwMode::WRITE)));
  if (!Dry()) {
    WriteGm(core, how, target, {how.mode, srcType, dstType, how.relu}, scales, from, base);
  }
  if (how.unitFlag != 0) core.cube.fix = OrderStamp(core, PIPE_FIX);
}

void FixpipeToL1(const Call &call, DType dstType, DType srcType, const View &dst, const View &src,
                 const View *given, const Outflow &how) {
  Core &core = Enter(call, PIPE_FIX);
  if (Nothing(how) || !CheckOutflow(call, dstType, srcType, how, false)) return;
  if (how.unitFlag != 0) OrderTake(core, core.cube.mmad, PIPE_FIX);
  Scales scales;
  const std::uint8_t *from = ReadSource(core, call, src, how);
  if (from == nullptr || !ReadScales(core, call, given, how, scales)) return;
  const Target target = TargetOf(how, dstType);
  const std::int64_t run = how.m * target.columns * SizeOf(dstType);
  const Spread rows = target.block > run ? Spread{run, target.block} : Spread{};
  std::uint8_t *base = UsableIn(
      core, call, {"dst", &dst, target.bytes, kBlock, Use::kWrite, rows}, Memory::kL1);
  if (base == nullptr) return;
  RecordOutflow("l0c_l1", dstType, how, target, nullptr, dst.addr, 0);
  const Convert convert{how.mode, srcType, dstType, how.relu};
  const auto write = [&](std::uint8_t *out, const std::uint8_t *in, std::int64_t row,
                         std::int64_t column, std::int64_t count) {
    ConvertRow(out, in, how, convert, scales, row, column, count);
  };
  if (!Dry()) EachRow(how, target, dstType, from, base, write);
  if (how.unitFlag != 0) core.cube.fix = OrderStamp(core, PIPE_FIX);
}

void SetFixScale(const Call &call, std::uint64_t scale) {
  Enter(call, PIPE_S).cube.fixScale = scale;
}

void SetFixTable(const Call &call, const View &table, bool) {
  Core &core = Enter(call, PIPE_S);
  if (table.position == AscendC::TPosition::CO1) return;  // only the unit flags are cleared
  const Need need{"scales", &table, 0, 64, Use::kLook};
  if (UsableIn(core, call, need, Memory::kFixpipe) != nullptr) core.cube.fixTable = table;
}

void SetFixMatrices(const Call &call, std::int64_t count, std::int64_t source,
                    std::int64_t target) {
  CubeState &state = Enter(call, PIPE_S).cube;
  if (!InRange(call, "ndNum", count, 1, 65535)) return;
  state.fixCount = count;
  state.fixSource = source;
  state.fixTarget = target;
}

std::uint64_t FixScale() { return Me().cube.fixScale; }

void FixMatrices(Outflow &how) {
  const CubeState &state = Me().cube;
  how.matrices = state.fixCount;
  how.sourceMatrix = state.fixSource;
  how.targetMatrix = state.fixTarget;
}

}  // namespace twin
