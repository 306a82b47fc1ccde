// What the twin checks of a Matmul object before it computes: tiling, operands, workspace.
#include <algorithm>

#include "check.h"
#include "matmul/matmulstate.h"
#include "text.h"

namespace twin {

namespace {

using AscendC::TPosition;

// Collects what is wrong with a tiling: the first rule that is broken is told.
class Rules {
 public:
  void Need(bool holds, std::string seen, const char *legal) {
    if (holds || !seen_.empty()) return;
    seen_ = std::move(seen);
    legal_ = legal;
  }
  bool Told(const Call &call) const {
    if (seen_.empty()) return false;
    Report(call, "cube-tiling", Text("TCubeTiling is not legal: %s", seen_.c_str()), seen_, legal_);
    return true;
  }

 private:
  std::string seen_;
  const char *legal_ = "";
};

bool InL1(TPosition position) {
  return position == TPosition::TSCM || position == TPosition::A1 || position == TPosition::B1;
}

void NeedPositive(Rules &rules, const TCubeTiling &t) {
  const struct {
    const char *name;
    std::int32_t value;
  } rows[] = {{"M", t.M}, {"N", t.N}, {"Ka", t.Ka}, {"Kb", t.Kb},
              {"singleCoreM", t.singleCoreM}, {"singleCoreN", t.singleCoreN},
              {"singleCoreK", t.singleCoreK}, {"baseM", t.baseM}, {"baseN", t.baseN},
              {"baseK", t.baseK}, {"stepM", t.stepM}, {"stepN", t.stepN}, {"stepKa", t.stepKa},
              {"stepKb", t.stepKb}, {"depthA1", t.depthA1}, {"depthB1", t.depthB1}};
  for (const auto &row : rows) {
    rules.Need(row.value > 0, Text("%s = %d", row.name, row.value), "at least 1");
  }
}

void NeedDepth(Rules &rules, char side, int depth, int step, int stepK) {
  const std::int64_t unit = std::max<std::int64_t>(std::int64_t{step} * stepK, 1);
  rules.Need(depth == unit || depth == 2 * unit,
             Text("depth%c1 = %d with step%c * stepK%c = %lld", side, depth,
                  side == 'A' ? 'M' : 'N', side == 'A' ? 'a' : 'b', Ll(unit)),
             "step * stepK, or twice that");
}

void NeedRoom(Rules &rules, const MatmulState &s) {
  const TCubeTiling &t = s.tiling;
  const std::int64_t a = BytesOf(s.traits.a.type, std::int64_t{t.baseM} * t.baseK);
  const std::int64_t b = BytesOf(s.traits.b.type, std::int64_t{t.baseN} * t.baseK);
  const std::int64_t c = std::int64_t{t.baseM} * t.baseN * 4;
  rules.Need(a * t.dbL0A <= TWIN_L0A_BYTES,
             Text("baseM * baseK * dbL0A takes %lld B of L0A", Ll(a * t.dbL0A)),
             "baseM * baseK * size * dbL0A within 64 KB");
  rules.Need(b * t.dbL0B <= TWIN_L0B_BYTES,
             Text("baseN * baseK * dbL0B takes %lld B of L0B", Ll(b * t.dbL0B)),
             "baseN * baseK * size * dbL0B within 64 KB");
  rules.Need(c * t.dbL0C <= TWIN_L0C_BYTES,
             Text("baseM * baseN * dbL0C takes %lld B of L0C", Ll(c * t.dbL0C)),
             "baseM * baseN * 4 * dbL0C within 128 KB");
  const std::int64_t bias = t.isBias ? std::int64_t{t.baseN} * 4 : 0;
  rules.Need(bias <= TWIN_BIAS_TABLE_BYTES, Text("baseN = %d with bias", t.baseN),
             "baseN * 4 within the bias table of 1 KB");
  const std::int64_t l1 = (InL1(s.traits.a.position) ? 0 : a * t.depthA1) +
                          (InL1(s.traits.b.position) ? 0 : b * t.depthB1) + bias;
  rules.Need(l1 <= TWIN_L1_BYTES, Text("depthA1 and depthB1 take %lld B of L1", Ll(l1)),
             "A, B and bias within 512 KB");
}

}  // namespace

bool CheckCubeTiling(const Call &call, const MatmulState &s) {
  const TCubeTiling &t = s.tiling;
  Rules rules;
  NeedPositive(rules, t);
  rules.Need(t.usedCoreNum >= 1 && t.usedCoreNum <= TWIN_VECTOR_CORES,
             Text("usedCoreNum = %d", t.usedCoreNum), "1 to the number of cores");
  rules.Need(t.baseM % 16 == 0 && t.baseN % 16 == 0,
             Text("baseM = %d, baseN = %d", t.baseM, t.baseN), "multiples of 16");
  const int c0 = static_cast<int>(ElementsOfBlock(s.traits.a.type));
  rules.Need(t.baseK % c0 == 0, Text("baseK = %d", t.baseK), "a multiple of 32 B of elements");
  const auto once = [](int db) { return db == 1 || db == 2; };
  rules.Need(once(t.dbL0A) && once(t.dbL0B) && once(t.dbL0C),
             Text("dbL0A = %d, dbL0B = %d, dbL0C = %d", t.dbL0A, t.dbL0B, t.dbL0C), "1 or 2");
  rules.Need(t.iterateOrder == 0 || t.iterateOrder == 1,
             Text("iterateOrder = %d", t.iterateOrder), "0 or 1");
  NeedDepth(rules, 'A', t.depthA1, t.stepM, t.stepKa);
  NeedDepth(rules, 'B', t.depthB1, t.stepN, t.stepKb);
  NeedRoom(rules, s);
  return !rules.Told(call);
}

namespace {

bool Wrong(const Call &call, std::string message, const char *legal) {
  Report(call, "matmul-operand", std::move(message), "", legal);
  return false;
}

bool CheckInput(const Call &call, const char *name, const MatmulInput &input,
                const MatmulSide &side) {
  if (!input.set) {
    return Wrong(call, Text("%s without SetTensor%s", call.api, name),
                 "SetTensorA and SetTensorB before each computation");
  }
  if (input.scalar) return true;
  const bool local = side.position != TPosition::GM;
  if (local != input.place.local) {
    return Wrong(call, Text("%s is declared at %s and set to a tensor in %s", name,
                            NameOf(side.position), local ? "global memory" : "local memory"),
                 "a tensor at the position that MatmulType names");
  }
  if (!input.transposed || side.trans) return true;
  // the page asks for isTrans; the vendor's own 8192^3 example leaves it out for ND in global
  // memory
  const bool plain = side.format == CubeFormat::ND && !local;
  Report(call, "matmul-operand",
         Text("%s is set as transposed, its MatmulType has isTrans = false", name), "",
         "isTrans = true in MatmulType of a matrix that may be transposed", "",
         plain ? Level::kWarning : Level::kError);
  return plain;
}

// doc: rows of ND longer than 65535 elements need intrinsicsCheck
bool CheckRow(const Call &call, const MatmulState &s, const char *name, std::int64_t row) {
  if (row <= 65535 || s.traits.longRows) return true;
  Report(call, "cube-tiling",
         Text("a row of %s has %lld elements and intrinsicsCheck is off", name, Ll(row)), "",
         "at most 65535, or a MatmulConfig with intrinsicsCheck");
  return false;
}

bool CheckBias(const Call &call, const MatmulState &s) {
  if (s.given && s.tiling.isBias != 0 && !s.bias.set) {
    return Wrong(call, "tiling.isBias is set and no bias was given", "SetBias, or DisableBias");
  }
  if (s.given && s.tiling.isBias == 0 && s.bias.set) {
    return Wrong(call, "SetBias with tiling.isBias = 0: nothing was reserved for a bias",
                 "EnableBias(true) in the host's tiling");
  }
  return true;
}

bool CheckQuant(const Call &call, const MatmulState &s) {
  const DType c = s.traits.c.type;
  const bool narrow = c == DType::kI8 || c == DType::kU8 || (s.integer() && c == DType::kF16);
  if (!narrow || s.quant != 0) return true;
  return Wrong(call, Text("C of %s from %s needs a scale", NameOf(c), NameOf(s.traits.a.type)),
               "SetQuantScalar or SetQuantVector");
}

}  // namespace

bool CheckMatmulInputs(const Call &call, const MatmulState &s) {
  if (!CheckInput(call, "A", s.a, s.traits.a) || !CheckInput(call, "B", s.b, s.traits.b)) {
    return false;
  }
  if (!CheckBias(call, s) || !CheckQuant(call, s)) return false;
  if (s.m < 0 || s.n < 0 || s.k <= 0) {
    return Wrong(call, Text("single shape %lld x %lld x %lld", Ll(s.m), Ll(s.n), Ll(s.k)),
                 "positive sizes");
  }
  const int c0 = static_cast<int>(ElementsOfBlock(s.traits.a.type));
  const int unit = !s.a.transposed && s.b.transposed ? c0 : std::max(16, c0);
  if (s.tiling.baseK % unit != 0) {
    Report(call, "cube-tiling", Text("TCubeTiling is not legal: baseK = %d", s.tiling.baseK),
           Text("A %stransposed, B %stransposed", s.a.transposed ? "" : "not ",
                s.b.transposed ? "" : "not "),
           Text("a multiple of %d", unit));
    return false;
  }
  const bool nd = s.traits.a.format == CubeFormat::ND, ndB = s.traits.b.format == CubeFormat::ND;
  return (!nd || CheckRow(call, s, "A", s.a.transposed ? s.m : s.k)) &&
         (!ndB || CheckRow(call, s, "B", s.b.transposed ? s.k : s.n));
}

void CheckMatmulWorkspace(const Call &call, const void *workspace) {
  Enter(call, PIPE_S);
  const auto *base = static_cast<const std::uint8_t *>(workspace);
  const LaunchSpec *spec = ThisLaunch().spec;
  if (spec == nullptr) return;
  std::int64_t left = 0;
  for (const Region &region : spec->regions) {
    if (base == nullptr || base < region.base || base >= region.base + region.bytes) continue;
    left = static_cast<std::int64_t>(region.base + region.bytes - base);
  }
  if (left >= TWIN_SYSTEM_WORKSPACE_BYTES) return;
  Report(call, "mix-workspace",
         Text("%s has %lld B of workspace; messages between vector and cube cores need %d B",
              call.api, Ll(left), TWIN_SYSTEM_WORKSPACE_BYTES));
}

}  // namespace twin
