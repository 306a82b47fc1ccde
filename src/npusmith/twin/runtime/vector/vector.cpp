// Vector instructions: plan, check, run.
#include <algorithm>
#include <vector>

#include "vector/loops.h"
#include "log/record.h"
#include "text.h"
#include "twin/elementwise.h"

namespace twin {

namespace {

// As the log spells an operation: the API's name in lower case.
const char *NameOf(Op op) {
  constexpr const char *kNames[] = {
      "add",     "sub",       "mul",         "div",         "max",        "min",        "and",
      "or",      "xor",       "add_relu",    "sub_relu",    "power",      "fmod",
      "mul_add_dst", "fused_mul_add", "fused_mul_add_relu",
      "abs",     "exp",       "ln",          "reciprocal",  "relu",       "rsqrt",      "sqrt",
      "not",     "copy",
      "tanh",    "sigmoid",   "erf",         "erfc",        "sin",        "cos",        "tan",
      "asin",    "acos",      "atan",        "sinh",        "cosh",       "asinh",      "acosh",
      "atanh",   "log2",      "log10",       "floor",       "ceil",       "round",      "trunc",
      "sign",    "frac",      "lgamma",      "digamma",
      "adds",    "muls",      "maxs",        "mins",        "leaky_relu", "shift_left",
      "shift_right", "shift_right", "axpy", "duplicate", "powers", "power"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Op::kPowerOf) + 1);
  return kNames[static_cast<std::size_t>(op)];
}

#define TWIN_CASE(function, row, op) case Op::k##op:

bool Accumulates(Op op) {
  // doc: dst may be the same as a source with repeat stride 0 for these
  switch (op) {
    TWIN_FOLDS_ROWS(TWIN_CASE) return true;
    default: return false;
  }
}

// Does the result depend on what dst held?
bool Updates(Op op) {
  switch (op) {
    TWIN_READS_DST_ROWS(TWIN_CASE) return true;
    default: return false;
  }
}

// A function of the library takes its sources into scratch before it writes; inferred for scratch
// that holds the whole tensor. `kept` then holds the sources that overlap dst.
void KeepSources(const Plan &plan, Operand *operands, int count, std::vector<std::uint8_t> *kept) {
  const std::uint8_t *low = operands[0].base;
  const std::uint8_t *high = low + Footprint(plan, operands[0].lane, SizeOf(operands[0].type));
  for (int i = 1; i < count; ++i) {
    const std::uint8_t *from = operands[i].base;
    const std::uint8_t *end = from + Footprint(plan, operands[i].lane, SizeOf(operands[i].type));
    if (from == low || end <= low || high <= from) continue;
    kept[i].assign(from, end);
    operands[i].base = kept[i].data();
  }
}

// `what`: the instruction's name for the log. `computes`: the result is arithmetic, which the
// saturating mode caps; moves keep their bits. `library`: many instructions by way of scratch.
void Run(Core &core, const Call &call, const char *what, Operand *operands, int count,
         const Walk &walk, Loop loop, const void *scalar, bool accumulates, bool computes = true,
         bool library = false) {
  int widest = 1;
  for (int i = 0; i < count; ++i) widest = std::max(widest, SizeOf(operands[i].type));
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / widest, plan)) return;
  if (!CheckOperands(core, call, plan, operands, count) || plan.empty()) return;
  for (int i = 1; i < count; ++i) CheckOverlap(call, plan, operands[0], operands[i], accumulates);
  if (library) RecordLibrary(what, operands[0].type, walk.count);
  else RecordVector(what, plan, operands, count, SetsMask(walk));
  if (Dry()) return;
  std::vector<std::uint8_t> kept[3];
  if (library) KeepSources(plan, operands, count, kept);
  Execute(plan, operands, count, loop, scalar);
  const Loop cap = computes && SaturatesFloat(core) ? CapLoop(operands[0].type) : nullptr;
  if (cap == nullptr) return;
  operands[0].updates = true;
  Execute(plan, operands, 1, cap, nullptr);
}

// The loop for the core's present mode.
Loop InMode(const Core &core, Op op, DType type, Loop usual) {
  const Loop capped = SaturatesFloat(core) ? CappedLoop(op, type) : nullptr;
  return capped != nullptr ? capped : usual;
}

}  // namespace

void VectorOp(const Call &call, Op op, DType type, const Lane &dst, const Lane &a, const Lane &b,
              const Walk &walk) {
  Core &core = Enter(call);
  Operand operands[] = {{"dst", dst, type}, {"src0", a, type}, {"src1", b, type}};
  operands[0].updates = Updates(op);
  const Loop loop = InMode(core, op, type, ArithmeticLoop(op, type));
  Run(core, call, NameOf(op), operands, 3, walk, loop, nullptr, Accumulates(op));
}

void VectorOp(const Call &call, Op op, DType type, const Lane &dst, const Lane &a,
              const Walk &walk) {
  Core &core = Enter(call);
  Operand operands[] = {{"dst", dst, type}, {"src", a, type}};
  Run(core, call, NameOf(op), operands, 2, walk, ArithmeticLoop(op, type), nullptr, false,
      op != Op::kCopy);
}

namespace {

bool CheckShift(const Call &call, Op op, DType type, const void *scalar) {
  if (op != Op::kShiftLeft && op != Op::kShiftRight && op != Op::kShiftRightRound) return true;
  std::int64_t amount = 0;
  std::memcpy(&amount, scalar, static_cast<std::size_t>(SizeOf(type)));
  if (type == DType::kI16) amount = static_cast<std::int16_t>(amount);
  if (type == DType::kI32) amount = static_cast<std::int32_t>(amount);
  return InRange(call, "scalarValue", amount, 0, SizeOf(type) * 8);
}

}  // namespace

void ScalarOp(const Call &call, Op op, DType dstType, DType srcType, const Lane &dst, const Lane &a,
              const void *scalar, const Walk &walk) {
  Core &core = Enter(call);
  if (!CheckShift(call, op, dstType, scalar)) return;
  Operand operands[] = {{"dst", dst, dstType}, {"src", a, srcType}};
  operands[0].updates = Updates(op);
  Loop loop = ScalarLoop(op, dstType, srcType);
  if (dstType == srcType) loop = InMode(core, op, dstType, loop);
  Run(core, call, NameOf(op), operands, 2, walk, loop, scalar, false);
}

void MixedOp(const Call &call, Op op, DType dstType, DType srcType, const Lane &dst, const Lane &a,
             const Lane &b, const Walk &walk) {
  Core &core = Enter(call);
  Operand operands[] = {{"dst", dst, dstType}, {"src0", a, srcType}, {"src1", b, srcType}};
  operands[0].updates = Updates(op);
  const Loop loop = dstType == srcType ? InMode(core, op, dstType, ArithmeticLoop(op, dstType))
                                       : MixedLoop(op);
  Run(core, call, NameOf(op), operands, 3, walk, loop, nullptr, false);
}

void FillOp(const Call &call, DType type, const Lane &dst, const void *scalar, const Walk &walk) {
  Core &core = Enter(call);
  Operand operands[] = {{"dst", dst, type}};
  Run(core, call, "duplicate", operands, 1, walk, FillLoop(SizeOf(type)), scalar, false, false);
}

namespace {

// first + i, with i counted over the active elements from the start of the instruction.
void PutIndex(DType type, std::uint8_t *to, const void *first, std::int64_t i) {
  if (type == DType::kF32) {
    *reinterpret_cast<float *>(to) = *static_cast<const float *>(first) + static_cast<float>(i);
  } else if (type == DType::kF16) {
    // the index is rounded to half before the addition
    *reinterpret_cast<half *>(to) = *static_cast<const half *>(first) + half(static_cast<float>(i));
  } else if (type == DType::kI32) {
    const auto start = static_cast<std::uint32_t>(*static_cast<const std::int32_t *>(first));
    *reinterpret_cast<std::int32_t *>(to) =
        static_cast<std::int32_t>(start + static_cast<std::uint32_t>(i));
  } else {
    *reinterpret_cast<std::int16_t *>(to) =
        static_cast<std::int16_t>(*static_cast<const std::int16_t *>(first) + i);
  }
}

}  // namespace

void IndexOp(const Call &call, DType type, const Lane &dst, const void *first, const Walk &walk) {
  Core &core = Enter(call);
  const int size = SizeOf(type);
  Operand operand{"dst", dst, type};
  Plan plan;
  if (!MakePlan(core, call, walk, kRepeat / size, plan)) return;
  if (!CheckOperands(core, call, plan, &operand, 1) || plan.empty()) return;
  RecordVector("create_vec_index", plan, &operand, 1, SetsMask(walk));
  if (Dry()) return;
  const std::int64_t repeats = plan.repeats + (plan.tail > 0);
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t lanes = r < plan.repeats ? plan.last + 1 : plan.tail;
    for (std::int64_t i = 0; i < lanes; ++i) {
      if (r < plan.repeats && !Active(plan.mask, i)) continue;
      const std::int64_t perBlock = kBlock / size;
      const std::int64_t at =
          (r * dst.repeat + i / perBlock * dst.block) * kBlock + i % perBlock * size;
      PutIndex(type, operand.base + at, first, r * plan.lanes + i);
    }
  }
}

void LibraryOp(const Call &call, Op op, DType type, const View &dst, const View &a, const View *b,
               const View *scratch, const void *scalar, std::int64_t count) {
  Core &core = Enter(call);
  // guess: at least one repeat of scratch; the true minimum is GetXxxMaxMinTmpSize's
  if (!HasScratch(core, call, scratch, kRepeat)) return;
  const bool reserve = op == Op::kPower || op == Op::kPowers || op == Op::kPowerOf ||
                       op == Op::kSign || op == Op::kLgamma || op == Op::kDigamma;
  // inferred: these select by a mask whose address goes into the first repeat of the reserve
  if (reserve) UseReserve(core, call, kRepeat);
  const Loop loop = scalar != nullptr ? ScalarLoop(op, type, type) : ArithmeticLoop(op, type);
  Operand operands[] = {{"dst", {dst}, type}, {"src", {a}, type}, {"src1", {b ? *b : a}, type}};
  const std::int64_t bytes = count * SizeOf(type);
  if (scratch != nullptr) {
    Disjoint(call, "sharedTmpBuffer", *scratch, kRepeat, "src", a, bytes);
    Disjoint(call, "sharedTmpBuffer", *scratch, kRepeat, "dst", dst, bytes);
  }
  Run(core, call, NameOf(op), operands, b != nullptr ? 3 : 2, Counted(count), loop, scalar, false,
      true, true);
}

}  // namespace twin
