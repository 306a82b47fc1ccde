// Host tiling of the Matmul object: how a product is cut into cores, blocks and L1 panels.
#pragma once

#include <cstdint>

#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "twin/matmulfields.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(TCubeTiling)
#define TWIN_CUBE_MEMBER(name) TILING_DATA_FIELD_DEF(int32_t, name);
TWIN_CUBE_FIELDS(TWIN_CUBE_MEMBER)
#undef TWIN_CUBE_MEMBER
END_TILING_DATA_DEF;

}  // namespace optiling

namespace matmul_tiling {

enum class TPosition : std::int32_t {
  GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, SHM = SPM, TSCM, MAX
};
enum class CubeFormat : std::int32_t { ND, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class DataType : std::int32_t {  // numbered as ge::DataType
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_BF16 = 27,
  DT_BFLOAT16 = 27,
  DT_UNDEFINED = 28,
  DT_INT4 = 29
};
enum class MatrixTraverse : std::int32_t { NOSET, FIRSTM, FIRSTN };
enum class MatrixMadType : std::int32_t { NORMAL, HF32 };
enum class DequantType : std::int32_t { SCALAR, TENSOR };
enum class ScheduleType { INNER_PRODUCT, OUTER_PRODUCT, N_BUFFER_33 };

// What the kernel's MatmulConfig says; it does not change the twin's split.
struct MatmulConfigParams {
  std::int32_t mmConfigType;
  bool enableL1CacheUB;
  ScheduleType scheduleType;
  MatrixTraverse traverse;
  bool enVecND2NZ;
  MatmulConfigParams(std::int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                     ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                     MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false)
      : mmConfigType(mmConfigTypeIn),
        enableL1CacheUB(enableL1CacheUBIn),
        scheduleType(scheduleTypeIn),
        traverse(traverseIn),
        enVecND2NZ(enVecND2NZIn) {}
};

// A chip as host code describes it; the split is that of the chip of the run.
struct PlatformInfo {
  platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::ASCEND910B;
  std::uint64_t l1Size = 0;
  std::uint64_t l0CSize = 0;
  std::uint64_t ubSize = 0;
  std::uint64_t l0ASize = 0;
  std::uint64_t l0BSize = 0;
};

struct MatrixInfo {
  bool set = false;
  TPosition position = TPosition::GM;
  CubeFormat format = CubeFormat::ND;
  DataType type = DataType::DT_FLOAT16;
  bool trans = false;
};

// Every setter gives 0, or -1 when it refuses; so do the getters of tiling.
class MatmulApiTilingBase {
 public:
  MatmulApiTilingBase() = default;
  explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC &) {}
  explicit MatmulApiTilingBase(const PlatformInfo &) {}
  virtual ~MatmulApiTilingBase() = default;

  std::int32_t SetAType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false);
  std::int32_t SetBType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false);
  std::int32_t SetCType(TPosition pos, CubeFormat type, DataType dataType);
  std::int32_t SetBiasType(TPosition pos, CubeFormat type, DataType dataType);
  std::int32_t SetDequantType(DequantType dequantType);
  virtual std::int32_t SetShape(std::int32_t m, std::int32_t n, std::int32_t k);
  std::int32_t SetOrgShape(std::int32_t orgMIn, std::int32_t orgNIn, std::int32_t orgKIn);
  std::int32_t SetOrgShape(std::int32_t orgMIn, std::int32_t orgNIn, std::int32_t orgKaIn,
                           std::int32_t orgKbIn);
  std::int32_t SetALayout(std::int32_t b, std::int32_t s, std::int32_t n, std::int32_t g,
                          std::int32_t d);
  std::int32_t SetBLayout(std::int32_t b, std::int32_t s, std::int32_t n, std::int32_t g,
                          std::int32_t d);
  std::int32_t SetCLayout(std::int32_t b, std::int32_t s, std::int32_t n, std::int32_t g,
                          std::int32_t d);
  std::int32_t SetBatchInfoForNormal(std::int32_t batchA, std::int32_t batchB, std::int32_t m,
                                     std::int32_t n, std::int32_t k);
  std::int32_t SetBatchNum(std::int32_t batch);
  std::int32_t EnableBias(bool isBiasIn = false);
  std::int32_t SetBias(bool isBiasIn = false) { return EnableBias(isBiasIn); }
  std::int32_t SetFixSplit(std::int32_t baseMIn = -1, std::int32_t baseNIn = -1,
                           std::int32_t baseKIn = -1);
  std::int32_t SetBufferSpace(std::int32_t l1Size = -1, std::int32_t l0CSize = -1,
                              std::int32_t ubSize = -1, std::int32_t btSize = -1);
  std::int32_t SetSparse(bool) { return 0; }  // the split is that of a whole B
  std::int32_t SetTraverse(MatrixTraverse traverse);
  std::int32_t SetMadType(MatrixMadType madType);
  std::int32_t SetSplitRange(std::int32_t maxBaseM = -1, std::int32_t maxBaseN = -1,
                             std::int32_t maxBaseK = -1, std::int32_t minBaseM = -1,
                             std::int32_t minBaseN = -1, std::int32_t minBaseK = -1);
  std::int32_t SetDoubleBuffer(bool a, bool b, bool c, bool bias, bool transND2NZ = true,
                               bool transNZ2ND = true);
  void SetMatmulConfigParams(std::int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                             ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                             MatrixTraverse traverseIn = MatrixTraverse::NOSET,
                             bool enVecND2NZIn = false);
  void SetMatmulConfigParams(const MatmulConfigParams &configParams);

  std::int32_t GetBaseM() const { return made_.baseM; }
  std::int32_t GetBaseN() const { return made_.baseN; }
  std::int32_t GetBaseK() const { return made_.baseK; }
  virtual std::int64_t GetTiling(optiling::TCubeTiling &tiling);
  virtual std::int64_t GetTiling(AscendC::tiling::TCubeTiling &tiling);

 protected:
  struct Shape {
    std::int64_t m = -1, n = -1, k = -1;
  };
  // The part of one core; false when the shape cannot be cut as asked.
  virtual bool SplitCores(const Shape &whole, Shape &single, std::int32_t &cores);

  Shape shape_, least_, most_;
  MatrixInfo a_, b_, c_, bias_;

 private:
  bool Fill();
  bool FillBlocks(const Shape &single);

  std::int64_t orgM_ = -1, orgN_ = -1, orgKa_ = -1, orgKb_ = -1;
  bool isBias_ = false;
  Shape fixed_;
  std::int64_t l1_ = -1, l0c_ = -1;
  MatrixTraverse traverse_ = MatrixTraverse::NOSET;
  AscendC::tiling::TCubeTiling made_{};
};

// The tiling of one core's product.
class MatmulApiTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
};

// A product over several cores.
class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;

  std::int32_t SetDim(std::int32_t dim);
  std::int32_t SetShape(std::int32_t m, std::int32_t n, std::int32_t k) override;
  std::int32_t SetSingleRange(std::int32_t maxM = -1, std::int32_t maxN = -1,
                              std::int32_t maxK = -1, std::int32_t minM = -1,
                              std::int32_t minN = -1, std::int32_t minK = -1);
  std::int32_t SetSingleShape(std::int32_t singleMIn = -1, std::int32_t singleNIn = -1,
                              std::int32_t singleKIn = -1);
  std::int32_t SetAlignSplit(std::int32_t alignM, std::int32_t alignN, std::int32_t alignK);
  std::int32_t EnableMultiCoreSplitK(bool flag);
  void SetSplitK(bool flag) { EnableMultiCoreSplitK(flag); }
  std::int32_t GetSingleShape(std::int32_t &shapeM, std::int32_t &shapeN, std::int32_t &shapeK);
  std::int32_t GetCoreNum(std::int32_t &dim, std::int32_t &mDim, std::int32_t &nDim);

 protected:
  bool SplitCores(const Shape &whole, Shape &single, std::int32_t &cores) override;

 private:
  struct Cut {
    Shape single;
    std::int64_t m = 1, n = 1, k = 1;  // cores along each axis
  };
  Cut CutInto(const Shape &whole, std::int64_t m, std::int64_t n, std::int64_t k) const;
  bool Allowed(const Cut &cut) const;
  bool KeepsTscm(const Cut &cut) const;
  bool KeepsRows(const Shape &whole, const Cut &cut) const;
  bool KeepSingle(const Shape &whole, Shape &single, std::int32_t &cores);

  std::int32_t dim_ = 1;
  bool splitK_ = false;
  Shape wanted_, align_, mostSingle_, leastSingle_;
  Cut best_;
};

// Several products of one shape.
class BatchMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
  std::int32_t GetCoreNum(std::int32_t &dim, std::int32_t &mDim, std::int32_t &nDim,
                          std::int32_t &batchCoreM, std::int32_t &batchCoreN);
};

}  // namespace matmul_tiling
