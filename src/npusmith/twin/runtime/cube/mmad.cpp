// Matrix products: C in L0C (Nz) from A in L0A (Zz) and B in L0B (Zn). Each element of C is summed
// in the order of k, with one rounding for each product and each addition; the chip's order inside
// a step of K0 is not documented.
#include <algorithm>

#include "check.h"
#include "cube/panel.h"
#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/cube.h"

namespace twin {

namespace {

constexpr std::int64_t kFractal = 512, kSide = 16;
constexpr std::int64_t kMost = 4095;        // doc: MmadParams

std::int64_t Up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

// ---- operands as plain rows of float or int32

template <typename T>
struct Packed {
  std::vector<T> a, b;  // a[m][k]; b[panel][k][16]
};

template <typename T>
Packed<T> &Store() {
  static thread_local Packed<T> packed;
  return packed;
}

float Read(const std::uint8_t *at, DType type) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, type == DType::kF32 ? 4 : 2);
  if (type == DType::kF16) return HalfToFloat(static_cast<std::uint16_t>(word));
  return BitsFloat(type == DType::kBF16 ? word << 16 : word);
}

// float with a mantissa of 11 bits (inferred: the width is told for a later chip only).
float RoundHf32(float value, bool towardsZero) {
  constexpr std::uint32_t kDropped = 12;
  std::uint32_t bits = FloatBits(value);
  if ((bits & 0x7F800000u) == 0x7F800000u) return value;
  const std::uint32_t half = 1u << (kDropped - 1);
  const std::uint32_t odd = towardsZero ? 0 : bits >> kDropped & 1u;
  bits += half - 1 + odd;  // ties: to zero, or to even
  return BitsFloat(bits & ~((1u << kDropped) - 1));
}

// Element types of A and B, and how one of them is read.
struct Source {
  DType type;
  bool hf32, hf32Zero;

  std::int64_t c0() const { return ElementsOfBlock(type); }
  float Float(const std::uint8_t *row, std::int64_t i) const {
    const float value = Read(row + i * SizeOf(type), type);
    return hf32 ? RoundHf32(value, hf32Zero) : value;
  }
};

// Element i of a row.
template <typename T>
T Element(const Source &source, const std::uint8_t *row, std::int64_t i) {
  if constexpr (std::is_same_v<T, float>) return source.Float(row, i);
  else return source.type == DType::kI4 ? Int4At(row, i) : static_cast<std::int8_t>(row[i]);
}

struct Shape {
  std::int64_t m, n, k;
  std::int64_t wideA;  // fractals in a row of A
  bool row;            // m = 1: A is a plain row (doc: GEMV)
};

template <typename T>
void PackA(std::vector<T> &to, const std::uint8_t *from, const Source &source,
           const Shape &shape) {
  const std::int64_t c0 = source.c0();
  to.resize(static_cast<std::size_t>(shape.m * shape.k));
  for (std::int64_t row = 0; row < shape.m; ++row) {
    T *out = to.data() + row * shape.k;
    for (std::int64_t k = 0; k < shape.k; k += c0) {
      const std::int64_t count = std::min(c0, shape.k - k);
      const std::uint8_t *in =
          shape.row ? from + BytesOf(source.type, k)
                    : from + (row / kSide * shape.wideA + k / c0) * kFractal + row % kSide * kBlock;
      for (std::int64_t i = 0; i < count; ++i) out[k + i] = Element<T>(source, in, i);
    }
  }
}

template <typename T>
void PackB(std::vector<T> &to, const std::uint8_t *from, const Source &source,
           const Shape &shape) {
  const std::int64_t c0 = source.c0(), panels = Up(shape.n, kPanel);
  to.resize(static_cast<std::size_t>(panels * shape.k * kPanel));
  for (std::int64_t k = 0; k < shape.k; k += c0) {
    const std::int64_t deep = std::min(c0, shape.k - k);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::uint8_t *in = from + (k / c0 * panels + panel) * kFractal;
      const std::int64_t columns = std::min(kPanel, shape.n - panel * kPanel);
      T *out = to.data() + (panel * shape.k + k) * kPanel;
      for (std::int64_t column = 0; column < kPanel; ++column) {
        for (std::int64_t i = 0; i < deep; ++i) {
          out[i * kPanel + column] =
              column < columns ? Element<T>(source, in + column * kBlock, i) : T(0);
        }
      }
    }
  }
}

// ---- the product

// One row, of which only the first `n` columns are C's.
template <typename T>
void Row(T *c, std::int64_t n, const T *a, const T *b, std::int64_t depth) {
  if (n >= kPanel) return Panel1(c, a, b, depth);
  T whole[kPanel] = {};
  std::copy(c, c + n, whole);
  Panel1(whole, a, b, depth);
  std::copy(whole, whole + n, c);
}

template <typename T>
void Multiply(T *c, const Packed<T> &packed, const Shape &shape) {
  const std::int64_t tall = Up(shape.m, kSide);  // fractals in a column of C
  for (std::int64_t panel = 0; panel < Up(shape.n, kPanel); ++panel) {
    const T *b = packed.b.data() + panel * shape.k * kPanel;
    const std::int64_t columns = std::min(kPanel, shape.n - panel * kPanel);
    T *block = c + panel * tall * kSide * kSide;
    std::int64_t row = 0;
    for (; columns == kPanel && row + kTall <= shape.m; row += kTall) {
      Panel4(block + row * kPanel, kPanel, packed.a.data() + row * shape.k, shape.k, b, shape.k);
    }
    for (; row < shape.m; ++row) {
      Row(block + row * kPanel, columns, packed.a.data() + row * shape.k, b, shape.k);
    }
  }
}

// What C holds before the product is added; a row of 16 elements after the other.
template <typename T>
void Begin(T *c, const Shape &shape, const Product &how, const std::uint8_t *bias) {
  if (!how.zero && bias == nullptr) return;
  const std::int64_t tall = Up(shape.m, kSide);
  for (std::int64_t column = 0; column < shape.n; ++column) {
    T value = T(0);
    if (bias != nullptr) std::memcpy(&value, bias + column * 4, 4);
    T *at = c + column / kSide * tall * kSide * kSide + column % kSide;
    for (std::int64_t row = 0; row < shape.m; ++row) at[row * kSide] = value;
  }
}

template <typename T>
void Run(std::uint8_t *c, const std::uint8_t *a, const std::uint8_t *b, const std::uint8_t *bias,
         const Source &source, const Shape &shape, const Product &how) {
  Packed<T> &packed = Store<T>();
  PackA(packed.a, a, source, shape);
  PackB(packed.b, b, source, shape);
  T *out = reinterpret_cast<T *>(c);
  Begin(out, shape, how, bias);
  Multiply(out, packed, shape);
}

bool CheckShape(const Call &call, const Product &how) {
  const bool good = InRange(call, "m", how.m, 0, kMost) && InRange(call, "n", how.n, 0, kMost) &&
                    InRange(call, "k", how.k, 0, kMost);
  if (how.unitFlag == 1 || how.unitFlag < 0 || how.unitFlag > 3) {
    Report(call, "param-range", Text("unitFlag of %s is %d", call.api, how.unitFlag), "",
           "0, 2 or 3");
  }
  return good;
}

// The bias that C starts from: a tensor in the bias table, or the table's beginning.
struct BiasOf {
  View view;
  bool table = false;

  BiasOf(const View *bias, const Product &how) {
    if (bias != nullptr) view = *bias;
    table = bias != nullptr ? bias->position != AscendC::TPosition::CO1 : how.tableBias;
    if (bias != nullptr || !table) return;
    view.bytes = BytesOf(Memory::kBias);
    view.position = AscendC::TPosition::C2;
  }
};

// Products under a unit flag wait for Fixpipe by themselves, and it for them.
void TakeUnits(Core &core, const Product &how) {
  if (how.unitFlag != 0) OrderTake(core, core.cube.fix, PIPE_M);
}

void LeaveUnits(Core &core, const Product &how) {
  if (how.unitFlag != 0) core.cube.mmad = OrderStamp(core, PIPE_M);
}

}  // namespace

void MmadOp(const Call &call, DType type, const View &dst, const View &a, const View &b,
            const View *bias, const Product &given) {
  Core &core = Enter(call, PIPE_M);
  Product how = given;
  if (!CheckShape(call, how) || how.m == 0 || how.n == 0 || how.k == 0) return;
  TakeUnits(core, how);
  const Source source{type, core.cube.hf32 && type == DType::kF32, core.cube.hf32Zero};
  const std::int64_t deep = Up(how.k, source.c0()), tall = Up(how.m, kSide);
  const std::int64_t wide = Up(how.n, kSide);
  const bool align = how.alignK16 && type == DType::kF32;
  const Shape shape{how.m, how.n, how.k, align ? Up(how.k, kSide) * 2 : deep, how.m == 1};
  const BiasOf from(bias, how);
  if (bias != nullptr) how.zero = false;
  const std::int64_t aBytes = shape.row ? deep * kBlock - BytesOf(type, deep * source.c0() - how.k)
                                        : ((tall - 1) * shape.wideA + deep) * kFractal;
  const bool keeps = !how.zero && !from.table;
  const std::uint8_t *left =
      UsableIn(core, call, {"fm", &a, aBytes, kFractal, Use::kRead}, Memory::kL0a);
  const std::uint8_t *right = UsableIn(
      core, call, {"filter", &b, deep * wide * kFractal, kFractal, Use::kRead}, Memory::kL0b);
  const std::uint8_t *row =
      from.table ? UsableIn(core, call, {"bias", &from.view, how.n * 4, 64, Use::kRead},
                            Memory::kBias)
                 : nullptr;
  std::uint8_t *c = UsableIn(core, call,
                             {"dst", &dst, tall * wide * 1024, 1024,
                              keeps ? Use::kUpdate : Use::kWrite},
                             Memory::kL0c);
  if (left == nullptr || right == nullptr || c == nullptr) return;
  if (from.table && row == nullptr) return;
  RecordMmad(type, how.m, how.n, how.k, keeps, source.hf32);
  if (Dry()) return LeaveUnits(core, how);
  const bool integer = type == DType::kI8 || type == DType::kI4;
  if (integer) Run<std::int32_t>(c, left, right, row, source, shape, how);
  else Run<float>(c, left, right, row, source, shape, how);
  LeaveUnits(core, how);
}

// ---- 4:2 sparse weights: B has K/2 rows, an index says which two of each four of A they meet

void MmadSparseOp(const Call &call, const View &dst, const View &a, const View &b,
                  const Product &how) {
  Core &core = Enter(call, PIPE_M);
  if (!CheckShape(call, how) || how.m == 0 || how.n == 0 || how.k == 0) return;
  const std::int64_t deep = Up(how.k, 32), dense = Up(how.k, 64);
  const std::int64_t tall = Up(how.m, kSide), wide = Up(how.n, kSide);
  const std::uint8_t *left = UsableIn(
      core, call, {"fm", &a, tall * deep * kFractal, kFractal, Use::kRead}, Memory::kL0a);
  const std::uint8_t *right = UsableIn(
      core, call, {"filter", &b, dense * wide * kFractal, kFractal, Use::kRead}, Memory::kL0b);
  std::uint8_t *c = UsableIn(
      core, call,
      {"dst", &dst, tall * wide * 1024, 1024, how.zero ? Use::kWrite : Use::kUpdate}, Memory::kL0c);
  if (left == nullptr || right == nullptr || c == nullptr) return;
  RecordMmad(DType::kI8, how.m, how.n, (how.k + 1) / 2, !how.zero,
             false);  // half of k is multiplied
  if (Dry()) return;
  auto &index = core.cube.sparse;
  index.resize(static_cast<std::size_t>(BytesOf(Memory::kL0b) / 4));
  auto *out = reinterpret_cast<std::int32_t *>(c);
  for (std::int64_t column = 0; column < how.n; ++column) {
    for (std::int64_t row = 0; row < how.m; ++row) {
      std::int32_t &sum = out[(column / 16 * tall + row / 16) * 256 + row % 16 * 16 + column % 16];
      std::int32_t total = how.zero ? 0 : sum;
      for (std::int64_t k = 0; k < (how.k + 1) / 2; ++k) {
        const std::int64_t at =
            (k / 32 * wide + column / 16) * kFractal + column % 16 * 32 + k % 32;
        const int bits = index[static_cast<std::size_t>((b.addr + at) / 4)] >> (at % 4 * 2) & 3;
        const std::int64_t from = k / 2 * 4 + (k % 2) + bits;  // the second counts from one on
        if (from >= how.k) continue;
        const auto factor = static_cast<std::int8_t>(
            left[(row / 16 * deep + from / 32) * kFractal + row % 16 * 32 + from % 32]);
        total += factor * static_cast<std::int8_t>(right[at]);
      }
      sum = total;
    }
  }
}

void SetHf32(const Call &call, bool on) { Enter(call, PIPE_S).cube.hf32 = on; }
void SetHf32Round(const Call &call, bool towardsZero) {
  Enter(call, PIPE_S).cube.hf32Zero = towardsZero;
}

}  // namespace twin
