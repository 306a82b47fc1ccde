// Moves of a Matmul object: operands into panels, sums out to where C lies.
#include <algorithm>
#include <cmath>

#include "check.h"
#include "vector/loops.h"
#include "matmul/matmulstate.h"
#include "log/record.h"
#include "text.h"

namespace twin {

void MoveTo(Core &core, pipe_t unit) {
  core.unit = unit;
  OrderIssue(core, unit);
  if (core.log != nullptr) RecordBegin(core, unit);
}

// ---- where the matrices of a batch lie

namespace {

// A group of matrices with axes (b, s, n, g, d): the matrix is s x d.
struct Axes {
  std::int64_t b, s, n, g, d;
};

Axes AxesA(const TCubeTiling &t) {
  return {t.ALayoutInfoB, t.ALayoutInfoS, t.ALayoutInfoN, t.ALayoutInfoG, t.ALayoutInfoD};
}
Axes AxesB(const TCubeTiling &t) {
  return {t.BLayoutInfoB, t.BLayoutInfoS, t.BLayoutInfoN, t.BLayoutInfoG, t.BLayoutInfoD};
}
Axes AxesC(const TCubeTiling &t) {
  return {t.CLayoutInfoB, t.CLayoutInfoS1, t.CLayoutInfoN, t.CLayoutInfoG, t.CLayoutInfoS2};
}

std::int64_t PitchOf(LayoutMode mode, const Axes &axes, std::int64_t plain) {
  if (mode == LayoutMode::BSNGD) return axes.n * axes.g * axes.d;
  if (mode == LayoutMode::SBNGD) return axes.b * axes.n * axes.g * axes.d;
  return plain;
}

std::int64_t OffsetOf(LayoutMode mode, const Axes &axes, std::int64_t index, std::int64_t stride,
                      std::int64_t plain) {
  if (stride != 0) return index * stride;
  if (mode == LayoutMode::SBNGD) return index * axes.d;
  if (mode != LayoutMode::BSNGD) return index * plain;
  const std::int64_t heads = std::max<std::int64_t>(axes.n * axes.g, 1);
  return index / heads * axes.s * heads * axes.d + index % heads * axes.d;
}

}  // namespace

std::int64_t OffsetA(const MatmulState &s, const MatmulIndex &at) {
  return OffsetOf(s.traits.a.layout, AxesA(s.tiling), at.a, at.batch.strideA, s.orgM * s.orgKa);
}
std::int64_t OffsetB(const MatmulState &s, const MatmulIndex &at) {
  return OffsetOf(s.traits.b.layout, AxesB(s.tiling), at.b, at.batch.strideB, s.orgN * s.orgKb);
}
std::int64_t PitchC(const MatmulState &s) {
  const std::int64_t plain = s.orgKc > 0 ? s.orgKc : s.orgN;
  return PitchOf(s.traits.c.layout, AxesC(s.tiling), plain);
}
std::int64_t OffsetC(const MatmulState &s, const MatmulIndex &at) {
  const std::int64_t plain = s.orgM * (s.orgKc > 0 ? s.orgKc : s.orgN);
  return OffsetOf(s.traits.c.layout, AxesC(s.tiling), at.c, at.batch.strideC, plain);
}

// ---- reading

namespace {

// What the cube core does for a vector core follows that core's message, which leaves by MTE3
// behind the copies that MTE3 was given before (inferred: the page of PostMessage has that way of
// sending; the published client drains MTE3 first). It holds for these accesses alone, not for what
// the vector core itself reads and writes.
class BehindMessage {
 public:
  BehindMessage(Core &core, const MatmulState &s)
      : core_(core), served_(s.traits.client), kept_(core.clocks.seen) {
    if (!served_) return;
    const std::size_t copies = UnitOf(PIPE_MTE3);
    const std::uint32_t sent = s.pending ? s.begun.own[copies] : core.clocks.now[copies];
    for (const pipe_t unit : kServed) {
      std::uint32_t &seen = core.clocks.seen[UnitOf(unit)][copies];
      seen = std::max(seen, sent);
    }
  }
  ~BehindMessage() {
    if (!served_) return;
    const std::size_t copies = UnitOf(PIPE_MTE3);
    for (const pipe_t unit : kServed) {
      core_.clocks.seen[UnitOf(unit)][copies] = kept_[UnitOf(unit)][copies];
    }
  }
  BehindMessage(const BehindMessage &) = delete;
  BehindMessage &operator=(const BehindMessage &) = delete;

 private:
  static constexpr pipe_t kServed[] = {PIPE_MTE2, PIPE_FIX};
  Core &core_;
  const bool served_;
  const std::array<Ticks, kUnits> kept_;
};

// Checks a matrix and gives the address of its first element.
struct Access {
  const char *role;
  const MatmulPlace *place;
  MatmulLayout layout;
  DType type;
  std::int64_t offset;  // elements
  std::int64_t row = 0, col = 0;
  bool write = false;

  std::int64_t Bytes(std::int64_t elements) const { return BytesOf(type, elements); }
};

pipe_t PipeOf(const Access &access) {
  if (!access.place->local) return access.write ? PIPE_FIX : PIPE_MTE2;
  const Memory memory = MemoryOf(access.place->view.position);
  if (memory == Memory::kL0c) return PIPE_M;
  if (memory != Memory::kUb) return PIPE_MTE1;
  return access.write ? PIPE_MTE2 : PIPE_MTE3;  // results come to UB through global memory
}

// A vector core's operand goes to the cube core through the system's part of the workspace.
void RecordHandOver(const Access &access) {
  const MatmulLayout &how = access.layout;
  const std::int64_t rows = how.nz() ? Up(how.cols, how.c0) / how.c0 : how.rows;
  const std::int64_t run = access.Bytes(how.nz() ? how.rows * how.c0 : how.cols);
  RecordCopy("ub_gm", access.type, rows, run, ThisLaunch().workspace, run, access.place->view.addr);
}

std::uint8_t *Reach(Core &core, const Call &call, const Access &access) {
  const MatmulLayout &how = access.layout;
  const std::int64_t first = access.Bytes(access.offset + how.At(access.row, access.col));
  const std::int64_t columns = how.nz() ? Up(how.cols, how.c0) : how.cols;
  const std::int64_t last = how.At(how.rows - 1, columns - 1);
  const std::int64_t bytes = access.Bytes(last + 1);
  Spread rows{access.Bytes(how.cols), access.Bytes(how.pitch)};
  if (how.nz()) rows = {access.Bytes(how.rows * how.c0), access.Bytes(how.tall * how.c0)};
  if (rows.run == rows.pitch) rows = {};
  MoveTo(core, PipeOf(access));
  if (!access.place->local) {
    Gm gm = access.place->gm;
    gm.base += first;
    if (gm.bytes >= 0) gm.bytes -= first;
    return UsableGm(call, access.role, gm, bytes, access.write, rows);
  }
  View view = access.place->view;
  view.addr += first;
  view.bytes -= first;
  const Use use = access.write ? Use::kWrite : Use::kRead;
  const std::int64_t align = first == 0 ? kBlock : SizeOf(access.type);
  return UsableIn(core, call, {access.role, &view, bytes, align, use, rows},
                  MemoryOf(view.position));
}

template <typename Acc>
void Widen(Acc *to, const std::uint8_t *from, DType type, std::int64_t n) {
  if constexpr (std::is_same_v<Acc, std::int32_t>) {
    if (type == DType::kI32) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
      return;
    }
    if (type == DType::kI4) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Int4At(from, i);
      return;
    }
    const auto *bytes = reinterpret_cast<const std::int8_t *>(from);
    for (std::int64_t i = 0; i < n; ++i) to[i] = bytes[i];
  } else {
    if (type == DType::kF32) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
      return;
    }
    CastLoop(DType::kF32, type, AscendC::RoundMode::CAST_NONE)(to, from, nullptr, nullptr, n);
  }
}

// HF32 keeps 11 bits of the mantissa.  // guess: which 12 bits go, and ties, are not documented
void RoundHf32(std::vector<float> &values, int mode) {
  for (float &value : values) {
    std::uint32_t bits = FloatBits(value);
    if ((bits & 0x7F800000u) == 0x7F800000u) continue;
    if (mode == 0) bits += 0x7FFu + ((bits >> 12) & 1u);
    value = BitsFloat(bits & ~0xFFFu);
  }
}

template <typename Acc>
std::vector<Acc> Turned(const std::vector<Acc> &from, std::int64_t rows, std::int64_t cols) {
  std::vector<Acc> to(from.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      to[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * cols + c)];
    }
  }
  return to;
}

template <typename Acc>
std::vector<Acc> Read(const std::uint8_t *base, const MatmulLayout &how, DType type) {
  std::vector<Acc> out(static_cast<std::size_t>(how.rows * how.cols));
  const std::int64_t run = how.nz() ? how.c0 : how.cols;
  for (std::int64_t r = 0; r < how.rows; ++r) {
    for (std::int64_t c = 0; c < how.cols; c += run) {
      Widen(out.data() + r * how.cols + c, base + BytesOf(type, how.At(r, c)), type,
            std::min(run, how.cols - c));
    }
  }
  return out;
}

struct Sides {
  std::int64_t rows, cols, orgRows, orgCols;  // as stored
};

MatmulLayout LayoutOf(const MatmulSide &side, const MatmulPlace &place, const Sides &size,
                      const Axes &axes) {
  const std::int64_t c0 = ElementsOfBlock(side.type);
  std::int64_t pitch = PitchOf(side.layout, axes, place.local ? size.cols : size.orgCols);
  if (side.format == CubeFormat::ND_ALIGN) pitch = Up(pitch, c0);
  const std::int64_t tall = Up(place.local ? size.rows : size.orgRows, 16);
  return {side.format, size.rows, size.cols, pitch, tall, c0};
}

// A single shape that is longer than the rows that it is cut from reads the next row's elements.
bool FitsRow(const Call &call, const char *role, const MatmulLayout &how, const Sides &size) {
  const bool long_ = how.nz() ? how.rows > how.tall || how.cols > Up(size.orgCols, how.c0)
                              : how.rows > 1 && how.cols > how.pitch;
  if (!long_) return true;
  Report(call, "matmul-operand",
         Text("the single shape takes %lld elements of a row of %s, which has %lld", Ll(how.cols),
              role, Ll(how.nz() ? size.orgCols : how.pitch)),
         "", "single shape within the shape of SetOrgShape");
  return false;
}

// doc: a matrix in NZ has whole fractals
bool WholeFractals(const Call &call, const char *role, const MatmulLayout &how, const Sides &size,
                   bool local) {
  if (!how.nz() || local || (size.orgRows % 16 == 0 && size.orgCols % how.c0 == 0)) return true;
  Report(call, "matmul-operand",
         Text("%s in NZ has %lld x %lld elements", role, Ll(size.orgRows), Ll(size.orgCols)), "",
         Text("rows a multiple of 16, columns of %lld", Ll(how.c0)));
  return false;
}

// Rows of packed elements begin with whole bytes.
bool WholeBytes(const Call &call, const char *role, const MatmulLayout &how, DType type,
                std::int64_t offset) {
  const std::int64_t unit = PackedOf(type);
  const bool whole = how.cols % unit == 0 && offset % unit == 0;
  if (whole && (how.nz() || how.pitch % unit == 0)) return true;
  Report(call, "matmul-operand",
         Text("%s of %s has rows of %lld of %lld elements", role, NameOf(type), Ll(how.cols),
              Ll(how.pitch)),
         "", "even numbers of elements: two lie in a byte");
  return false;
}

struct Source {
  const char *role;
  const MatmulSide *side;
  const MatmulInput *input;
  Sides size;
  Axes axes;
  std::int64_t offset;
  MatmulSpan *found;
};

MatmulSpan SpanOf(const Access &access, const std::uint8_t *base, DType type, bool transposed) {
  const MatmulPlace &place = *access.place;
  const auto kind = access.write ? AscendC::CacheRwMode::WRITE : AscendC::CacheRwMode::READ;
  return {base, access.layout, type, place.local, transposed,
          place.local ? MemoryOf(place.view.position) : Memory::kUb,
          place.local ? std::uint8_t{0} : CacheFlag(place.gm, kind)};
}

// Row-major rows x cols of the product's own orientation.
template <typename Acc>
bool Load(Core &core, const Call &call, const Source &from, std::vector<Acc> &out) {
  const Sides &size = from.size;
  *from.found = {};
  if (from.input->scalar) {
    if (Dry()) return true;
    out.assign(static_cast<std::size_t>(size.rows * size.cols),
               static_cast<Acc>(from.input->value));
    return true;
  }
  const MatmulLayout how = LayoutOf(*from.side, from.input->place, size, from.axes);
  if (!FitsRow(call, from.role, how, size)) return false;
  if (!WholeFractals(call, from.role, how, size, from.input->place.local)) return false;
  if (!WholeBytes(call, from.role, how, from.side->type, from.offset)) return false;
  const Access access{from.role, &from.input->place, how, from.side->type, from.offset};
  const std::uint8_t *base = Reach(core, call, access);
  if (base == nullptr) return false;
  if (PipeOf(access) == PIPE_MTE3) RecordHandOver(access);
  *from.found = SpanOf(access, base, from.side->type, from.input->transposed);
  if (Dry()) return true;
  out = Read<Acc>(base, how, from.side->type);
  if (from.input->transposed) out = Turned(out, size.rows, size.cols);
  return true;
}

struct Sources {
  Source a, b;
};

Sources SourcesOf(MatmulState &s, const MatmulIndex &at) {
  const bool ta = s.a.transposed, tb = s.b.transposed;
  const Sides sizeA = ta ? Sides{s.k, s.m, s.orgKa, s.orgM} : Sides{s.m, s.k, s.orgM, s.orgKa};
  const std::int64_t half = s.traits.sparse ? 2 : 1, k = s.k / half, orgK = s.orgKb / half;
  const Sides sizeB = tb ? Sides{s.n, k, s.orgN, orgK} : Sides{k, s.n, orgK, s.orgN};
  return {{"A", &s.traits.a, &s.a, sizeA, AxesA(s.tiling), OffsetA(s, at), &s.fromA},
          {"B", &s.traits.b, &s.b, sizeB, AxesB(s.tiling), OffsetB(s, at), &s.fromB}};
}

// What a callback has brought is in the panel already.
template <typename Acc>
bool LoadSide(Core &core, const Call &call, const Source &from, MatmulBring &brought,
              std::vector<Acc> &out) {
  if (!brought.ready) return Load(core, call, from, out);
  brought = {};
  *from.found = {};
  return true;
}

// Puts the elements of a sparse B where its index says, zeros elsewhere: of each four along K the
// first lies at 0 to 2, the second at 1 to 3 (doc: MmadWithSparse).
template <typename Acc>
bool Expand(Core &core, const Call &call, const MatmulState &s, std::vector<Acc> &b) {
  if (s.k % 8 != 0 || s.index.base == nullptr) {
    Report(call, "matmul-operand", Text("a sparse B of %lld rows %s", Ll(s.k),
                                        s.index.base == nullptr ? "without SetSparseIndex" : ""),
           "", "K a multiple of 8, and SetSparseIndex");
    return false;
  }
  constexpr std::int64_t kWide = 8;  // bytes of a row of the index's fractals
  const std::int64_t tall = Up(s.orgN, 16), blocks = Up(s.k / 8, kWide) / kWide;
  MoveTo(core, PIPE_MTE2);
  const std::uint8_t *index =
      UsableGm(call, "index", s.index, ((blocks - 1) * tall + s.n) * kWide, false);
  if (index == nullptr || Dry()) return index != nullptr;
  std::vector<Acc> whole(static_cast<std::size_t>(s.k * s.n), Acc{});
  for (std::int64_t j = 0; j < s.k / 2; ++j) {
    for (std::int64_t n = 0; n < s.n; ++n) {
      const std::int64_t byte = j / 4;
      const int bits = index[(byte / kWide * tall + n) * kWide + byte % kWide] >> (j % 4 * 2) & 3;
      const std::int64_t row = j / 2 * 4 + j % 2 + bits;
      if (row < s.k) whole[static_cast<std::size_t>(row * s.n + n)] +=
          b[static_cast<std::size_t>(j * s.n + n)];
    }
  }
  b = std::move(whole);
  return true;
}

template <typename Acc>
bool LoadAll(const Call &call, MatmulState &s, const MatmulIndex &at, MatmulPanels<Acc> &panels) {
  Core &core = Me();
  const Sources from = SourcesOf(s, at);
  if (!LoadSide(core, call, from.a, s.bringA, panels.a)) return false;
  if (!LoadSide(core, call, from.b, s.bringB, panels.b)) return false;
  if (s.traits.sparse && !Expand(core, call, s, panels.b)) return false;
  panels.bias.clear();
  s.fromBias = {};
  if (!s.bias.set) return true;
  const std::int64_t offset = s.traits.biasBatch ? at.c * s.n : 0;
  MatmulSide side = s.traits.bias;
  side.layout = LayoutMode::NONE;
  side.format = CubeFormat::ND;
  return Load(core, call, {"bias", &side, &s.bias, {1, s.n, 1, s.n}, {}, offset, &s.fromBias},
              panels.bias);
}

}  // namespace

bool LoadMatmul(const Call &call, MatmulState &s, const MatmulIndex &at) {
  if (s.m == 0 || s.n == 0) return false;  // nothing to compute
  const BehindMessage behind(Me(), s);
  if (s.integer()) return LoadAll(call, s, at, s.ints);
  if (!LoadAll(call, s, at, s.floats)) return false;
  if (s.hf32 && s.traits.a.type == DType::kF32) {
    RoundHf32(s.floats.a, s.hf32Mode);
    RoundHf32(s.floats.b, s.hf32Mode);
  }
  return true;
}

// ---- callbacks: the kernel copies base blocks to L1, one by one, and the object reads them there

namespace {

struct Bringing {
  Source from;
  std::int64_t high, wide;  // of a block as it is stored
  std::int64_t end;         // of its place in L1

  std::int64_t Rows(const MatmulBring &at) const {
    return std::min(high, from.size.rows - at.top);
  }
  std::int64_t Cols(const MatmulBring &at) const {
    return std::min(wide, from.size.cols - at.left);
  }
  MatmulLayout Layout(const MatmulBring &at) const {
    return {CubeFormat::NZ, Rows(at), Cols(at), 0, Up(Rows(at), 16),
            ElementsOfBlock(from.side->type)};
  }
};

// doc: base blocks; with MDL as many together as tiling keeps in L1 (from published kernels, which
// bring a whole matrix so and leave it there for the next product). The top of L1 stands for the
// object's own buffers, A's above B's.
Bringing BringingOf(MatmulState &s, MatmulSlot slot) {
  const Sources from = SourcesOf(s, {0, 0, 0, {}});
  const TCubeTiling &t = s.tiling;
  const auto steps = [&](std::int64_t base, std::int64_t step) {
    return base * (s.traits.bulk ? step : 1);
  };
  const std::int64_t highA = steps(t.baseM, t.stepM), wideA = steps(t.baseK, t.stepKa);
  const std::int64_t unit = ElementsOfBlock(s.traits.a.type);
  const std::int64_t below =
      TWIN_L1_BYTES - BytesOf(s.traits.a.type, Up(highA, unit) * Up(wideA, unit));
  Bringing one{from.a, highA, wideA, TWIN_L1_BYTES};
  if (slot == MatmulSlot::kB) {
    one = {from.b, steps(t.baseK, t.stepKb), steps(t.baseN, t.stepN), below};
  }
  if (one.from.input->transposed) std::swap(one.high, one.wide);
  return one;
}

MatmulPlace TileOf(const Bringing &one, const MatmulLayout &how) {
  MatmulPlace place{true, {}, {}};
  place.view.position = AscendC::TPosition::A1;
  place.view.bytes = BytesOf(one.from.side->type, how.tall * Up(how.cols, how.c0));
  place.view.addr = std::max<std::int64_t>(one.end - place.view.bytes, 0);
  return place;
}

// Takes the block that the kernel has just copied.
template <typename Acc>
bool TakeTile(Core &core, const Call &call, const Bringing &one, const MatmulBring &at,
              std::vector<Acc> &out) {
  const MatmulLayout how = one.Layout(at);
  const MatmulPlace place = TileOf(one, how);
  const DType type = one.from.side->type;
  OrderTake(core, OrderStamp(core, PIPE_MTE2), PIPE_MTE1);
  const std::uint8_t *tile = Reach(core, call, {one.from.role, &place, how, type, 0});
  OrderTake(core, OrderStamp(core, PIPE_MTE1), PIPE_MTE2);
  if (tile == nullptr || Dry()) return tile != nullptr;
  const std::vector<Acc> values = Read<Acc>(tile, how, type);
  for (std::int64_t r = 0; r < how.rows; ++r) {
    std::copy_n(values.begin() + r * how.cols, how.cols,
                out.begin() + (at.top + r) * one.from.size.cols + at.left);
  }
  return true;
}

template <typename Acc>
bool NextTile(Core &core, const Call &call, const Bringing &one, MatmulBring &at,
              std::vector<Acc> &out) {
  const Sides &size = one.from.size;
  if (!at.open) {
    out.assign(static_cast<std::size_t>(Dry() ? 0 : size.rows * size.cols), Acc{});
    at = {true, false, 0, 0};
    return true;
  }
  if (!TakeTile(core, call, one, at, out)) StopCore();
  at.left += one.wide;
  if (at.left >= size.cols) at = {true, false, at.top + one.high, 0};
  if (at.top < size.rows) return true;
  if (one.from.input->transposed && !Dry()) out = Turned(out, size.rows, size.cols);
  at = {false, true, 0, 0};
  return false;
}

}  // namespace

bool NextMatmulCopy(const Call &call, MatmulState &s, MatmulSlot slot, MatmulCopyBlock &block) {
  Core &core = Enter(call, PIPE_S);
  const bool a = slot == MatmulSlot::kA;
  MatmulBring &at = a ? s.bringA : s.bringB;
  const MatmulInput &input = a ? s.a : s.b;
  const bool plain = input.set && !input.scalar && !input.place.local;
  if (!s.ready || !plain || s.step != 0 || s.m <= 0 || s.n <= 0 || s.k <= 0) return false;
  const Bringing one = BringingOf(s, slot);
  const bool more =
      s.integer() ? NextTile(core, call, one, at, a ? s.ints.a : s.ints.b)
                  : NextTile(core, call, one, at, a ? s.floats.a : s.floats.b);
  if (!more) return false;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  block = {TileOf(one, one.Layout(at)).view, input.place.gm.base, narrow(at.top / one.high),
           narrow(at.left / one.wide), narrow(one.Rows(at)), narrow(one.Cols(at))};
  if (!input.transposed) return true;
  std::swap(block.row, block.col);
  std::swap(block.high, block.wide);
  return true;
}

// ---- writing

namespace {

// A scale as the fixpipe takes it: a float without its low 13 bits of mantissa (doc), then an
// offset of nine bits at bit 37.
struct Scale {
  float factor;
  int offset;
};

Scale ScaleOf(std::uint64_t bits) {
  const int field = static_cast<int>((bits >> 37) & 0x1FF);
  const auto word = static_cast<std::uint32_t>(bits) & ~0x1FFFu;
  return {BitsFloat(word), field >= 256 ? field - 512 : field};
}

template <typename Acc>
void Narrow(const MatmulState &s, const std::uint64_t *scales, std::int64_t first, const Acc *from,
            std::int64_t n, std::uint8_t *to) {
  const DType type = s.traits.c.type;
  for (std::int64_t i = 0; i < n; ++i) {
    const Scale scale = ScaleOf(scales == nullptr ? s.scale : scales[first + i]);
    const float value = static_cast<float>(from[i]) * scale.factor;
    if (type == DType::kF16) {
      const std::uint16_t bits = FloatToHalf(value);
      std::memcpy(to + 2 * i, &bits, 2);
      continue;
    }
    const float least = type == DType::kU8 ? 0.0f : -128.0f, most = least + 255.0f;
    const float whole = std::nearbyint(value) + static_cast<float>(scale.offset);
    const float kept = whole != whole ? 0.0f : std::min(std::max(whole, least), most);
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(kept));
  }
}

template <typename Acc>
void Convert(const MatmulState &s, const std::uint64_t *scales, std::int64_t first,
             const Acc *from, std::int64_t n, std::uint8_t *to) {
  const DType type = s.traits.c.type;
  if (type == DType::kI32 || type == DType::kF32) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
  } else if (s.integer() || SizeOf(type) == 1) {
    Narrow(s, scales, first, from, n, to);
  } else {
    CastLoop(type, DType::kF32, AscendC::RoundMode::CAST_RINT)(to, from, nullptr, nullptr, n);
  }
}

template <typename T>
T Best(T a, T b, int mode) {
  return mode == 1 ? static_cast<T>(a + b) : mode == 2 ? std::max(a, b) : std::min(a, b);
}

void Combine(DType type, int mode, std::uint8_t *to, const std::uint8_t *from, std::int64_t n) {
  if (mode == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(n * SizeOf(type)));
  } else if (type == DType::kI8 || type == DType::kU8) {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = type == DType::kU8 ? Best<std::uint8_t>(to[i], from[i], mode)
                                 : static_cast<std::uint8_t>(Best<std::int8_t>(
                                       static_cast<std::int8_t>(to[i]),
                                       static_cast<std::int8_t>(from[i]), mode));
    }
  } else if (type == DType::kBF16) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::uint16_t x, y;
      std::memcpy(&x, to + 2 * i, 2);
      std::memcpy(&y, from + 2 * i, 2);
      x = FloatToBf16(Best(Bf16ToFloat(x), Bf16ToFloat(y), mode));
      std::memcpy(to + 2 * i, &x, 2);
    }
  } else {
    const Op op = mode == 1 ? Op::kAdd : mode == 2 ? Op::kMax : Op::kMin;
    ArithmeticLoop(op, type)(to, to, from, nullptr, n);
  }
}

std::int64_t FractalColumns(const MatmulState &s) {
  const DType type = s.traits.c.type;
  if (SizeOf(type) == 1) return 32;
  return type == DType::kF32 && s.traits.channelSplit ? 8 : 16;
}

// How the block lies at its target.
MatmulLayout TargetLayout(const MatmulState &s, const MatmulStore &to, const MatmulBlock &block) {
  const CubeFormat format = s.traits.c.format;
  const bool local = to.place.local, alone = to.out.sequential;
  std::int64_t pitch = alone ? block.cols : local ? s.n : PitchC(s);
  if (format == CubeFormat::ND_ALIGN) pitch = Up(pitch, kBlock / SizeOf(s.traits.c.type));
  const std::int64_t tall = Up(alone ? block.rows : local ? s.m : s.orgM, 16);
  return {format, block.rows, block.cols, pitch, tall, FractalColumns(s)};
}

bool FitsTarget(const Call &call, const MatmulState &s, const MatmulStore &to,
                const MatmulLayout &how) {
  if (how.nz()) return true;
  const std::int64_t size = SizeOf(s.traits.c.type);
  if (to.place.local && how.rows > 1 && how.pitch * size % kBlock != 0) {
    Report(call, "matmul-operand",
           Text("rows of C in local memory have %lld B", Ll(how.pitch * size)), "",
           "a multiple of 32 B, or CubeFormat::ND_ALIGN");
    return false;
  }
  if (how.rows <= 1 || s.n <= how.pitch || to.out.sequential) return true;
  Report(call, "matmul-operand",
         Text("the single shape has %lld columns, a row of C %lld", Ll(s.n), Ll(how.pitch)), "",
         "single shape within the shape of SetOrgShape");
  return false;
}

const std::uint64_t *Scales(Core &core, const Call &call, const MatmulState &s, bool &good) {
  if (s.quant != 2) return nullptr;
  MoveTo(core, PIPE_MTE2);
  const std::uint8_t *base = UsableGm(call, "quantTensor", s.scales, s.n * 8, false);
  good = base != nullptr;
  return reinterpret_cast<const std::uint64_t *>(base);
}

template <typename Acc>
MatmulSpan Store(const Call &call, MatmulState &s, const MatmulStore &to, const MatmulBlock &block,
                 const Acc *sums, std::int64_t stepSum) {
  Core &core = Me();
  const MatmulLayout how = TargetLayout(s, to, block);
  if (!FitsTarget(call, s, to, how)) return {};
  bool good = true;
  const std::uint64_t *scales = Scales(core, call, s, good);
  if (!good) return {};
  const int size = SizeOf(s.traits.c.type);
  Access access{"C", &to.place, how, s.traits.c.type, OffsetC(s, to.index)};
  access.write = true;
  if (to.place.local) access.offset = to.index.c * (how.nz() ? how.tall * Up(s.n, how.c0)
                                                             : s.m * how.pitch);
  if (!to.out.sequential) {
    access.row = block.row;
    access.col = block.col;
  }
  const bool plain = to.place.local && MemoryOf(to.place.view.position) != Memory::kL0c;
  const int mode = plain ? 0 : to.out.atomic;
  const Atomic former = core.atomic;
  core.atomic = static_cast<Atomic>(mode);  // so that whoever is told of the access knows
  std::uint8_t *base = Reach(core, call, access);
  core.atomic = former;
  if (base == nullptr) return {};
  const MatmulSpan span = SpanOf(access, base, s.traits.c.type, false);
  if (Dry()) return span;
  const std::int64_t run = how.nz() ? how.c0 : how.cols;
  std::vector<std::uint8_t> line(static_cast<std::size_t>(Up(how.cols, run) * size));
  for (std::int64_t r = 0; r < how.rows; ++r) {
    std::fill(line.begin(), line.end(), std::uint8_t{0});
    Convert(s, scales, block.col, sums + r * stepSum, how.cols, line.data());
    for (std::int64_t c = 0; c < how.cols; c += run) {
      Combine(s.traits.c.type, mode, base + how.At(r, c) * size, line.data() + c * size, run);
    }
  }
  return span;
}

}  // namespace

MatmulSpan StoreMatmul(const Call &call, MatmulState &s, const MatmulStore &to,
                       const MatmulBlock &block, const void *sums, std::int64_t stepSum) {
  const BehindMessage behind(Me(), s);
  if (s.integer()) {
    return Store(call, s, to, block, static_cast<const std::int32_t *>(sums), stepSum);
  }
  return Store(call, s, to, block, static_cast<const float *>(sums), stepSum);
}

}  // namespace twin
