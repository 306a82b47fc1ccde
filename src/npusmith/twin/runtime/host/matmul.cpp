// Host tiling of the Matmul object.
#include "tiling/matmul.h"

#include <algorithm>

#include "twin/matmulsplit.h"

namespace matmul_tiling {

namespace {

constexpr std::int64_t kL1 = TWIN_L1_BYTES, kL0c = TWIN_L0C_BYTES;

std::int64_t Ceil(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }
std::int64_t Up(std::int64_t value, std::int64_t unit) { return Ceil(value, unit) * unit; }

int BitsOf(DataType type) {
  switch (type) {
    case DataType::DT_FLOAT: case DataType::DT_INT32: case DataType::DT_UINT32: return 32;
    case DataType::DT_INT8: case DataType::DT_UINT8: return 8;
    case DataType::DT_INT4: return 4;
    default: return 16;
  }
}

std::int32_t Narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

bool Matters(std::int32_t value) { return value == -1 || value > 0; }

}  // namespace

std::int32_t MatmulApiTilingBase::SetAType(TPosition pos, CubeFormat type, DataType dataType,
                                           bool isTrans) {
  a_ = {true, pos, type, dataType, isTrans};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetBType(TPosition pos, CubeFormat type, DataType dataType,
                                           bool isTrans) {
  b_ = {true, pos, type, dataType, isTrans};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetCType(TPosition pos, CubeFormat type, DataType dataType) {
  c_ = {true, pos, type, dataType, false};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetBiasType(TPosition pos, CubeFormat type, DataType dataType) {
  bias_ = {true, pos, type, dataType, false};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetDequantType(DequantType) { return 0; }

std::int32_t MatmulApiTilingBase::SetShape(std::int32_t m, std::int32_t n, std::int32_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return -1;
  shape_ = {m, n, k};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetOrgShape(std::int32_t orgMIn, std::int32_t orgNIn,
                                              std::int32_t orgKIn) {
  return SetOrgShape(orgMIn, orgNIn, orgKIn, orgKIn);
}
std::int32_t MatmulApiTilingBase::SetOrgShape(std::int32_t orgMIn, std::int32_t orgNIn,
                                              std::int32_t orgKaIn, std::int32_t orgKbIn) {
  if (orgMIn <= 0 || orgNIn <= 0 || orgKaIn <= 0 || orgKbIn <= 0) return -1;
  orgM_ = orgMIn;
  orgN_ = orgNIn;
  orgKa_ = orgKaIn;
  orgKb_ = orgKbIn;
  return 0;
}

std::int32_t MatmulApiTilingBase::SetALayout(std::int32_t b, std::int32_t s, std::int32_t n,
                                             std::int32_t g, std::int32_t d) {
  made_.ALayoutInfoB = b;
  made_.ALayoutInfoS = s;
  made_.ALayoutInfoN = n;
  made_.ALayoutInfoG = g;
  made_.ALayoutInfoD = d;
  return 0;
}
std::int32_t MatmulApiTilingBase::SetBLayout(std::int32_t b, std::int32_t s, std::int32_t n,
                                             std::int32_t g, std::int32_t d) {
  made_.BLayoutInfoB = b;
  made_.BLayoutInfoS = s;
  made_.BLayoutInfoN = n;
  made_.BLayoutInfoG = g;
  made_.BLayoutInfoD = d;
  return 0;
}
std::int32_t MatmulApiTilingBase::SetCLayout(std::int32_t b, std::int32_t s, std::int32_t n,
                                             std::int32_t g, std::int32_t d) {
  made_.CLayoutInfoB = b;
  made_.CLayoutInfoS1 = s;
  made_.CLayoutInfoN = n;
  made_.CLayoutInfoG = g;
  made_.CLayoutInfoS2 = d;
  return 0;
}
std::int32_t MatmulApiTilingBase::SetBatchInfoForNormal(std::int32_t batchA, std::int32_t batchB,
                                                        std::int32_t m, std::int32_t n,
                                                        std::int32_t k) {
  SetALayout(batchA, m, 1, 1, k);
  SetBLayout(batchB, n, 1, 1, k);
  SetCLayout(std::max(batchA, batchB), m, 1, 1, n);
  return SetBatchNum(std::max(batchA, batchB));
}
std::int32_t MatmulApiTilingBase::SetBatchNum(std::int32_t batch) {
  if (batch <= 0) return -1;
  made_.BatchNum = batch;
  return 0;
}

std::int32_t MatmulApiTilingBase::EnableBias(bool isBiasIn) {
  isBias_ = isBiasIn;
  return 0;
}

std::int32_t MatmulApiTilingBase::SetFixSplit(std::int32_t baseMIn, std::int32_t baseNIn,
                                              std::int32_t baseKIn) {
  if (!Matters(baseMIn) || !Matters(baseNIn) || !Matters(baseKIn)) return -1;
  if (baseMIn > 0 && baseMIn % 16 != 0) return -1;
  if (baseNIn > 0 && baseNIn % 16 != 0) return -1;
  if (baseKIn > 0 && baseKIn % (256 / BitsOf(a_.type)) != 0) return -1;
  fixed_ = {baseMIn, baseNIn, baseKIn};
  return 0;
}

std::int32_t MatmulApiTilingBase::SetBufferSpace(std::int32_t l1Size, std::int32_t l0CSize,
                                                 std::int32_t ubSize, std::int32_t btSize) {
  if (l1Size < -1 || l0CSize < -1 || ubSize < -1 || btSize < -1) return -1;
  if (l1Size > kL1 || l0CSize > kL0c || btSize > TWIN_BIAS_TABLE_BYTES) return -1;
  if (ubSize > TWIN_UB_TOTAL_BYTES) return -1;
  l1_ = l1Size;
  l0c_ = l0CSize;
  return 0;
}

std::int32_t MatmulApiTilingBase::SetTraverse(MatrixTraverse traverse) {
  traverse_ = traverse;
  return 0;
}
std::int32_t MatmulApiTilingBase::SetMadType(MatrixMadType) { return 0; }

std::int32_t MatmulApiTilingBase::SetSplitRange(std::int32_t maxBaseM, std::int32_t maxBaseN,
                                                std::int32_t maxBaseK, std::int32_t minBaseM,
                                                std::int32_t minBaseN, std::int32_t minBaseK) {
  most_ = {maxBaseM, maxBaseN, maxBaseK};
  least_ = {minBaseM, minBaseN, minBaseK};
  return 0;
}
std::int32_t MatmulApiTilingBase::SetDoubleBuffer(bool, bool, bool, bool, bool, bool) { return 0; }
void MatmulApiTilingBase::SetMatmulConfigParams(std::int32_t, bool, ScheduleType,
                                                MatrixTraverse traverseIn, bool) {
  if (traverseIn != MatrixTraverse::NOSET) traverse_ = traverseIn;
}
void MatmulApiTilingBase::SetMatmulConfigParams(const MatmulConfigParams &configParams) {
  if (configParams.traverse != MatrixTraverse::NOSET) traverse_ = configParams.traverse;
}

bool MatmulApiTilingBase::SplitCores(const Shape &whole, Shape &single, std::int32_t &cores) {
  single = whole;
  cores = 1;
  return true;
}

bool MatmulApiTilingBase::FillBlocks(const Shape &single) {
  const auto given = [](std::int64_t value) { return std::max<std::int64_t>(value, 0); };
  twin::BlockRequest ask{};
  ask.m = single.m;
  ask.n = single.n;
  ask.k = single.k;
  ask.bitsA = BitsOf(a_.type);
  ask.bitsB = BitsOf(b_.type);
  ask.sizeBias = isBias_ ? 4 : 0;
  ask.l1 = l1_ < 0 ? kL1 : l1_;
  ask.l0c = l0c_ < 0 ? kL0c : l0c_;
  ask.baseM = given(fixed_.m);
  ask.baseN = given(fixed_.n);
  ask.baseK = given(fixed_.k);
  ask.mostM = given(most_.m);
  ask.mostN = given(most_.n);
  ask.mostK = given(most_.k);
  // doc: a fixed block may not be larger than the rounded part of one core
  if (ask.baseM > Up(single.m, 16) || ask.baseN > Up(single.n, std::max(16, 256 / ask.bitsB))) {
    return false;
  }
  const twin::BlockSplit split = twin::SplitBlock(ask);
  if (!split.fits || split.baseM < least_.m || split.baseN < least_.n || split.baseK < least_.k) {
    return false;
  }
  made_.baseM = Narrow(split.baseM);
  made_.baseN = Narrow(split.baseN);
  made_.baseK = Narrow(split.baseK);
  made_.stepM = made_.stepN = 1;
  made_.stepKa = Narrow(split.stepKa);
  made_.stepKb = Narrow(split.stepKb);
  made_.depthA1 = Narrow(split.depthA1);
  made_.depthB1 = Narrow(split.depthB1);
  made_.dbL0A = Narrow(split.dbL0A);
  made_.dbL0B = Narrow(split.dbL0B);
  made_.dbL0C = Narrow(split.dbL0C);
  made_.shareL1Size = Narrow(split.l1);
  made_.shareL0CSize = Narrow(split.l0c);
  return true;
}

bool MatmulApiTilingBase::Fill() {
  Shape whole = shape_;
  if (whole.m < 0) whole = {orgM_, orgN_, orgKa_};
  if (whole.m <= 0 || whole.n <= 0 || whole.k <= 0) return false;
  Shape single;
  std::int32_t cores = 1;
  if (!SplitCores(whole, single, cores) || !FillBlocks(single)) return false;
  const bool org = orgM_ > 0;
  made_.usedCoreNum = cores;
  made_.M = Narrow(org ? orgM_ : whole.m);
  made_.N = Narrow(org ? orgN_ : whole.n);
  made_.Ka = Narrow(org ? orgKa_ : whole.k);
  made_.Kb = Narrow(org ? orgKb_ : whole.k);
  made_.singleCoreM = Narrow(single.m);
  made_.singleCoreN = Narrow(single.n);
  made_.singleCoreK = Narrow(single.k);
  made_.isBias = isBias_ ? 1 : 0;
  made_.iterateOrder = traverse_ == MatrixTraverse::FIRSTN ? 1 : 0;
  made_.batchM = made_.batchN = made_.singleBatchM = made_.singleBatchN = 1;
  return true;
}

std::int64_t MatmulApiTilingBase::GetTiling(AscendC::tiling::TCubeTiling &tiling) {
  if (!Fill()) return -1;
  tiling = made_;
  return 0;
}

std::int64_t MatmulApiTilingBase::GetTiling(optiling::TCubeTiling &tiling) {
  if (!Fill()) return -1;
#define TWIN_CUBE_MEMBER(name) tiling.set_##name(made_.name);
  TWIN_CUBE_FIELDS(TWIN_CUBE_MEMBER)
#undef TWIN_CUBE_MEMBER
  return 0;
}

// ---- several cores

std::int32_t MultiCoreMatmulTiling::SetDim(std::int32_t dim) {
  if (dim <= 0) return -1;
  dim_ = dim;
  return 0;
}
std::int32_t MultiCoreMatmulTiling::SetShape(std::int32_t m, std::int32_t n, std::int32_t k) {
  return MatmulApiTilingBase::SetShape(m, n, k);
}
std::int32_t MultiCoreMatmulTiling::SetSingleRange(std::int32_t maxM, std::int32_t maxN,
                                                   std::int32_t maxK, std::int32_t minM,
                                                   std::int32_t minN, std::int32_t minK) {
  mostSingle_ = {maxM, maxN, maxK};
  leastSingle_ = {minM, minN, minK};
  return 0;
}
std::int32_t MultiCoreMatmulTiling::SetSingleShape(std::int32_t singleMIn, std::int32_t singleNIn,
                                                   std::int32_t singleKIn) {
  if (!Matters(singleMIn) || !Matters(singleNIn) || !Matters(singleKIn)) return -1;
  wanted_ = {singleMIn, singleNIn, singleKIn};
  return 0;
}
std::int32_t MultiCoreMatmulTiling::SetAlignSplit(std::int32_t alignM, std::int32_t alignN,
                                                  std::int32_t alignK) {
  if (!Matters(alignM) || !Matters(alignN) || !Matters(alignK)) return -1;
  align_ = {alignM, alignN, alignK};
  return 0;
}
std::int32_t MultiCoreMatmulTiling::EnableMultiCoreSplitK(bool flag) {
  splitK_ = flag;
  return 0;
}

namespace {

// Rows in global memory stay this long where they are (seen in the vendor's tiling).
constexpr std::int64_t kLongRow = 256;

// One core's part of an axis that `parts` cores share: whole fractals unless it is not cut.
std::int64_t PartOf(std::int64_t size, std::int64_t parts, std::int64_t align) {
  if (parts <= 1) return size;
  return std::min(Up(Ceil(size, parts), align > 0 ? align : 16), size);
}

bool Within(std::int64_t value, std::int64_t least, std::int64_t most) {
  return (least < 0 || value >= least) && (most < 0 || value <= most);
}

}  // namespace

MultiCoreMatmulTiling::Cut MultiCoreMatmulTiling::CutInto(const Shape &whole, std::int64_t m,
                                                          std::int64_t n, std::int64_t k) const {
  const std::int64_t alignK = std::max(16, 256 / BitsOf(a_.type));
  Cut cut;
  cut.single = {PartOf(whole.m, m, align_.m), PartOf(whole.n, n, align_.n),
                PartOf(whole.k, k, align_.k > 0 ? align_.k : alignK)};
  cut.m = Ceil(whole.m, cut.single.m);
  cut.n = Ceil(whole.n, cut.single.n);
  cut.k = Ceil(whole.k, cut.single.k);
  return cut;
}

bool MultiCoreMatmulTiling::Allowed(const Cut &cut) const {
  return cut.m * cut.n * cut.k <= dim_ && Within(cut.single.m, leastSingle_.m, mostSingle_.m) &&
         Within(cut.single.n, leastSingle_.n, mostSingle_.n) &&
         Within(cut.single.k, leastSingle_.k, mostSingle_.k);
}

// SetSingleShape says what one core computes: an axis that it leaves out is not cut, and all cores of
// SetDim count as used, whatever the shape of the whole is.
bool MultiCoreMatmulTiling::KeepSingle(const Shape &whole, Shape &single, std::int32_t &cores) {
  single = {wanted_.m > 0 ? wanted_.m : whole.m, wanted_.n > 0 ? wanted_.n : whole.n,
            wanted_.k > 0 ? wanted_.k : whole.k};
  best_ = {single, Ceil(whole.m, single.m), Ceil(whole.n, single.n), Ceil(whole.k, single.k)};
  cores = dim_;
  return true;
}

// doc: all of a matrix at TSCM lies in L1, so a core takes it as a whole
bool MultiCoreMatmulTiling::KeepsTscm(const Cut &cut) const {
  const bool a = a_.position != TPosition::TSCM || (cut.m == 1 && cut.k == 1);
  const bool b = b_.position != TPosition::TSCM || (cut.n == 1 && cut.k == 1);
  return a && b;
}

// Does an axis along which rows of A or B run keep long rows?
bool MultiCoreMatmulTiling::KeepsRows(const Shape &whole, const Cut &cut) const {
  const bool m = !a_.trans || cut.m == 1 || cut.single.m >= std::min(kLongRow, whole.m);
  const bool n = b_.trans || cut.n == 1 || cut.single.n >= std::min(kLongRow, whole.n);
  return m && n;
}

// The least work of the busiest core; of equals the one that reads least. An N whose rows are short
// anyway is cut into as many parts as can be.
bool MultiCoreMatmulTiling::SplitCores(const Shape &whole, Shape &single, std::int32_t &cores) {
  if (wanted_.m > 0 || wanted_.n > 0 || wanted_.k > 0) return KeepSingle(whole, single, cores);
  bool found = false;
  std::int64_t work = 0, reads = 0;
  for (std::int64_t k = 1; k <= (splitK_ ? dim_ : 1); ++k) {
    for (std::int64_t n = 1; n * k <= dim_; ++n) {
      for (std::int64_t m = 1; m * n * k <= dim_; ++m) {
        const Cut cut = CutInto(whole, m, n, k);
        const bool narrow = !splitK_ && !b_.trans && whole.n < kLongRow;
        if (!Allowed(cut) || !KeepsTscm(cut) || !(narrow || KeepsRows(whole, cut))) continue;
        const Shape &one = cut.single;
        const std::int64_t newReads = narrow ? one.n : (one.m + one.n) * one.k;
        const std::int64_t newWork = one.m * one.n * one.k;
        if (found && (newWork > work || (newWork == work && newReads >= reads))) continue;
        found = true;
        work = newWork;
        reads = newReads;
        best_ = cut;
      }
    }
  }
  single = best_.single;
  cores = Narrow(best_.m * best_.n * best_.k);
  return found;
}

std::int32_t MultiCoreMatmulTiling::GetSingleShape(std::int32_t &shapeM, std::int32_t &shapeN,
                                                   std::int32_t &shapeK) {
  shapeM = Narrow(best_.single.m);
  shapeN = Narrow(best_.single.n);
  shapeK = Narrow(best_.single.k);
  return 0;
}

std::int32_t MultiCoreMatmulTiling::GetCoreNum(std::int32_t &dim, std::int32_t &mDim,
                                               std::int32_t &nDim) {
  dim = Narrow(best_.m * best_.n * best_.k);
  mDim = Narrow(best_.m);
  nDim = Narrow(best_.n);
  return 0;
}

std::int32_t BatchMatmulTiling::GetCoreNum(std::int32_t &dim, std::int32_t &mDim,
                                           std::int32_t &nDim, std::int32_t &batchCoreM,
                                           std::int32_t &batchCoreN) {
  dim = mDim = nDim = batchCoreM = batchCoreN = 1;
  return 0;
}

}  // namespace matmul_tiling
