// MatmulConfig, its presets and getters, and tiling that is constant in the kernel.
#pragma once

#include <cstdint>

#include "twin/dtype.h"
#include "twin/matmulsplit.h"
#include "twin/matmultiling.h"
#include "twin/types.h"

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR, ROW_MAJOR, COLUMN_MAJOR };
enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class BatchMode { NONE = 0, BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1, SINGLE_LARGE_THAN_L1 };
enum class BatchOutMode { SINGLE_BATCH, MULTI_BATCH, DYNAMIC };
enum class IterateOrder { ORDER_M = 0, ORDER_N, UNDEF };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };
enum class MatmulConfigMode { CONFIG_NORM, CONFIG_MDL, CONFIG_SPECIALMDL, CONFIG_IBSHARE };
enum IterateMode : std::uint8_t {
  ITERATE_MODE_NORMAL = 1,
  ITERATE_MODE_ALL = 2,
  ITERATE_MODE_BATCH = 4,
  ITERATE_MODE_N_BATCH = 8,
  ITERATE_MODE_DEFAULT = 255
};

// The twin reads intrinsicsCheck, the shapes, isNBatch, isBiasBatch, isPartialOutput, iterateOrder,
// isEnableChannelSplit and enableMixDualMaster, for the log also doMultiDataLoad and enUnitFlag; the
// others change time, not values.
struct MatmulConfig {
  bool doNorm = false;
  bool doBasicBlock = false;
  bool doMultiDataLoad = false;
  std::uint32_t basicM = 0;
  std::uint32_t basicN = 0;
  std::uint32_t basicK = 0;
  bool intrinsicsCheck = false;
  bool isNBatch = false;
  bool enVecND2NZ = false;
  bool doSpecialBasicBlock = false;
  std::uint32_t doMTE2Preload = 0;
  std::uint32_t singleCoreM = 0;
  std::uint32_t singleCoreN = 0;
  std::uint32_t singleCoreK = 0;
  std::uint32_t stepM = 0;
  std::uint32_t stepN = 0;
  std::uint32_t baseMN = 0;
  std::uint32_t singleCoreMN = 0;
  bool enUnitFlag = true;
  bool isPerTensor = false;
  bool hasAntiQuantOffset = false;
  bool doIBShareNorm = false;
  bool doSpecialMDL = false;
  bool enableInit = true;
  BatchMode batchMode = BatchMode::NONE;
  bool enableEnd = true;
  bool enableGetTensorC = true;
  bool enableSetOrgShape = true;
  bool enableSetBias = true;
  bool enableSetTail = true;
  bool enableQuantVector = true;
  bool enableSetDefineData = true;
  std::uint8_t iterateMode = ITERATE_MODE_DEFAULT;
  bool enableReuse = true;
  bool enableUBReuse = true;
  bool enableL1CacheUB = false;
  bool intraBlockPartSum = false;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableDoubleCache = false;
  bool isBiasBatch = true;
  bool enableStaticPadZeros = false;
  bool isPartialOutput = false;
  bool enableMixDualMaster = false;
  bool isA2B2Shared = false;
  bool isEnableChannelSplit = false;
  bool enableKdimReorderLoad = false;
  bool isCO1Shared = false;
  std::uint32_t sharedCO1BufferSize = 65536;
  BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
};

constexpr MatmulConfig GetNormalConfig(
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const bool isVecND2NZ = false, const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1,
    const bool isMsgReuse = true, const IterateOrder iterateOrder = IterateOrder::UNDEF,
    const ScheduleType scheduleType = ScheduleType::INNER_PRODUCT, const bool enUnitFlag = true,
    const bool enableMixDualMaster = false,
    const BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH) {
  MatmulConfig config;
  config.doNorm = true;
  config.intrinsicsCheck = intrinsicsLimit;
  config.isNBatch = batchLoop;
  config.enVecND2NZ = isVecND2NZ;
  config.batchMode = bmmMode;
  config.enableReuse = isMsgReuse;
  config.iterateOrder = iterateOrder;
  config.scheduleType = scheduleType;
  config.enUnitFlag = enUnitFlag;
  config.enableMixDualMaster = enableMixDualMaster;
  config.bmmOutMode = bmmOutMode;
  return config;
}

constexpr MatmulConfig GetMDLConfig(
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const std::uint32_t doMTE2Preload = 0, const bool isVecND2NZ = false, bool isPerTensor = false,
    bool hasAntiQuantOffset = false, const bool enUnitFlag = false, const bool isMsgReuse = true,
    const bool enableUBReuse = true, const bool enableL1CacheUB = false,
    const bool enableMixDualMaster = false, const bool enableKdimReorderLoad = false) {
  MatmulConfig config;
  config.doMultiDataLoad = true;
  config.intrinsicsCheck = intrinsicsLimit;
  config.isNBatch = batchLoop;
  config.doMTE2Preload = doMTE2Preload;
  config.enVecND2NZ = isVecND2NZ;
  config.isPerTensor = isPerTensor;
  config.hasAntiQuantOffset = hasAntiQuantOffset;
  config.enUnitFlag = enUnitFlag;
  config.enableReuse = isMsgReuse;
  config.enableUBReuse = enableUBReuse;
  config.enableL1CacheUB = enableL1CacheUB;
  config.enableMixDualMaster = enableMixDualMaster;
  config.enableKdimReorderLoad = enableKdimReorderLoad;
  return config;
}

constexpr MatmulConfig GetSpecialMDLConfig(
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const std::uint32_t doMTE2Preload = 0, const bool isVecND2NZ = false, bool isPerTensor = false,
    bool hasAntiQuantOffset = false, const bool enableMixDualMaster = false) {
  MatmulConfig config = GetMDLConfig(intrinsicsLimit, batchLoop, doMTE2Preload, isVecND2NZ,
                                     isPerTensor, hasAntiQuantOffset);
  config.doSpecialMDL = true;
  config.enableMixDualMaster = enableMixDualMaster;
  return config;
}

constexpr MatmulConfig GetIBShareNormConfig(
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const bool isVecND2NZ = false, const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1,
    const bool isDoubleCache = false, const bool enUnitFlag = true) {
  MatmulConfig config;
  config.doIBShareNorm = true;
  config.intrinsicsCheck = intrinsicsLimit;
  config.isNBatch = batchLoop;
  config.enVecND2NZ = isVecND2NZ;
  config.batchMode = bmmMode;
  config.enableDoubleCache = isDoubleCache;
  config.enUnitFlag = enUnitFlag;
  return config;
}

constexpr MatmulConfig GetBasicConfig(
    const std::uint32_t basicM, const std::uint32_t basicN, const std::uint32_t basicK,
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
  MatmulConfig config;
  config.doBasicBlock = true;
  config.basicM = basicM;
  config.basicN = basicN;
  config.basicK = basicK;
  config.intrinsicsCheck = intrinsicsLimit;
  config.isNBatch = batchLoop;
  config.batchMode = bmmMode;
  return config;
}

constexpr MatmulConfig GetSpecialBasicConfig(
    const std::uint32_t basicM, const std::uint32_t basicN, const std::uint32_t basicK,
    const std::uint32_t singleCoreM, const std::uint32_t singleCoreN,
    const std::uint32_t singleCoreK, const std::uint32_t stepM, const std::uint32_t stepN,
    const bool intrinsicsLimit = false, const bool batchLoop = false,
    const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
  MatmulConfig config =
      GetBasicConfig(basicM, basicN, basicK, intrinsicsLimit, batchLoop, bmmMode);
  config.doBasicBlock = false;
  config.doSpecialBasicBlock = true;
  config.singleCoreM = singleCoreM;
  config.singleCoreN = singleCoreN;
  config.singleCoreK = singleCoreK;
  config.stepM = stepM;
  config.stepN = stepN;
  config.baseMN = basicM * basicN;
  config.singleCoreMN = singleCoreM * singleCoreN;
  return config;
}

constexpr MatmulConfig CFG_NORM = GetNormalConfig();
constexpr MatmulConfig CFG_MDL = GetMDLConfig();
constexpr MatmulConfig CFG_IBSHARE_NORM = GetIBShareNormConfig();
constexpr MatmulConfig MM_CFG_BB = GetBasicConfig(128, 128, 128);

// Groups of parameters for GetMMConfig.
struct MatmulShapeParams {
  std::uint32_t singleCoreM, singleCoreN, singleCoreK, basicM, basicN, basicK;
};
struct MatmulQuantParams {
  bool isPerTensor, hasAntiQuantOffset;
};
struct MatmulBatchParams {
  bool isNBatch;
  BatchMode batchMode;
  bool isBiasBatch = true;
  BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
};
struct MatmulFuncParams {
  bool intrinsicsCheck = false;
  bool enVecND2NZ = false;
  bool enableDoubleCache = false;
  bool enableL1CacheUB = false;
  std::uint32_t doMTE2Preload = 0;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableReuse = true;
  bool enableUBReuse = true;
  bool isPartialOutput = false;
  bool isA2B2Shared = false;
  bool isEnableChannelSplit = false;
  bool enableKdimReorderLoad = false;
};
struct MatmulBiasParams {
  bool enableSetBias = true;
};

namespace twin {

constexpr void Apply(MatmulConfig &config, const MatmulShapeParams &with) {
  config.singleCoreM = with.singleCoreM;
  config.singleCoreN = with.singleCoreN;
  config.singleCoreK = with.singleCoreK;
  config.basicM = with.basicM;
  config.basicN = with.basicN;
  config.basicK = with.basicK;
}
constexpr void Apply(MatmulConfig &config, const MatmulQuantParams &with) {
  config.isPerTensor = with.isPerTensor;
  config.hasAntiQuantOffset = with.hasAntiQuantOffset;
}
constexpr void Apply(MatmulConfig &config, const MatmulBatchParams &with) {
  config.isNBatch = with.isNBatch;
  config.batchMode = with.batchMode;
  config.isBiasBatch = with.isBiasBatch;
  config.bmmOutMode = with.bmmOutMode;
}
constexpr void Apply(MatmulConfig &config, const MatmulFuncParams &with) {
  config.intrinsicsCheck = with.intrinsicsCheck;
  config.enVecND2NZ = with.enVecND2NZ;
  config.enableDoubleCache = with.enableDoubleCache;
  config.enableL1CacheUB = with.enableL1CacheUB;
  config.doMTE2Preload = with.doMTE2Preload;
  config.iterateOrder = with.iterateOrder;
  config.scheduleType = with.scheduleType;
  config.enableReuse = with.enableReuse;
  config.enableUBReuse = with.enableUBReuse;
  config.isPartialOutput = with.isPartialOutput;
  config.isA2B2Shared = with.isA2B2Shared;
  config.isEnableChannelSplit = with.isEnableChannelSplit;
  config.enableKdimReorderLoad = with.enableKdimReorderLoad;
}
constexpr void Apply(MatmulConfig &config, const MatmulBiasParams &with) {
  config.enableSetBias = with.enableSetBias;
}

constexpr MatmulConfig ConfigOf(MatmulConfigMode mode) {
  switch (mode) {
    case MatmulConfigMode::CONFIG_MDL: return GetMDLConfig();
    case MatmulConfigMode::CONFIG_SPECIALMDL: return GetSpecialMDLConfig();
    case MatmulConfigMode::CONFIG_IBSHARE: return GetIBShareNormConfig();
    default: return GetNormalConfig();
  }
}

}  // namespace twin

template <MatmulConfigMode configMode, typename... ArgTypes>
constexpr MatmulConfig GetMMConfig(ArgTypes &&...args) {
  MatmulConfig config = ::twin::ConfigOf(configMode);
  (::twin::Apply(config, args), ...);
  return config;
}

// Constant tiling: a field that is -1 comes from the run-time tiling instead.
struct MatmulApiStaticTiling {
#define TWIN_CUBE_MEMBER(name) std::int32_t name = -1;
  TWIN_CUBE_FIELDS(TWIN_CUBE_MEMBER)
#undef TWIN_CUBE_MEMBER
  MatmulConfig cfg = CFG_NORM;
};

namespace twin {

constexpr const MatmulConfig &ToMatmulConfig(const MatmulConfig &config) { return config; }
constexpr const MatmulConfig &ToMatmulConfig(const MatmulApiStaticTiling &tiling) {
  return tiling.cfg;
}

// The run-time tiling under what the template argument fixes.
inline TCubeTiling Merged(const MatmulConfig &config, TCubeTiling tiling) {
  if (config.doBasicBlock || config.doSpecialBasicBlock) {
    tiling.baseM = static_cast<std::int32_t>(config.basicM);
    tiling.baseN = static_cast<std::int32_t>(config.basicN);
    tiling.baseK = static_cast<std::int32_t>(config.basicK);
  }
  return tiling;
}
inline TCubeTiling Merged(const MatmulApiStaticTiling &fixed, TCubeTiling tiling) {
#define TWIN_CUBE_MEMBER(name) \
  if (fixed.name >= 0) tiling.name = fixed.name;
  TWIN_CUBE_FIELDS(TWIN_CUBE_MEMBER)
#undef TWIN_CUBE_MEMBER
  return tiling;
}

constexpr std::int32_t Int(std::int64_t value) { return static_cast<std::int32_t>(value); }

}  // namespace twin

namespace twin {

// A matrix C of which only the base blocks on one side of its diagonal, and on it, are wanted.
enum class MatmulTriangle : std::uint8_t { kNone, kUpper, kLower };

}  // namespace twin

namespace AscendC {

using ::MatmulApiStaticTiling;

// UB that a kernel may hand to SetLocalWorkspace: all but 8 KB.
constexpr std::int32_t TOTAL_VEC_LOCAL_SIZE = 184 * 1024;

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig &mmCFG,
                                                   std::int32_t l1Size = TWIN_L1_BYTES) {
  MatmulApiStaticTiling tiling;
  tiling.cfg = mmCFG;
  if (mmCFG.basicM == 0 || mmCFG.basicN == 0 || mmCFG.basicK == 0) return tiling;
  const bool whole = mmCFG.singleCoreM > 0 && mmCFG.singleCoreN > 0 && mmCFG.singleCoreK > 0;
  const twin::BlockSplit split = twin::SplitBlock(
      {mmCFG.singleCoreM, mmCFG.singleCoreN, whole ? mmCFG.singleCoreK : mmCFG.basicK,
       twin::BitsOf<typename A_TYPE::T>(), twin::BitsOf<typename B_TYPE::T>(),
       mmCFG.enableSetBias ? static_cast<int>(sizeof(typename BIAS_TYPE::T)) : 0, l1Size,
       TWIN_L0C_BYTES, mmCFG.basicM, mmCFG.basicN, mmCFG.basicK, 0, 0, 0});
  tiling.baseM = twin::Int(split.baseM);
  tiling.baseN = twin::Int(split.baseN);
  tiling.baseK = twin::Int(split.baseK);
  tiling.dbL0A = twin::Int(split.dbL0A);
  tiling.dbL0B = twin::Int(split.dbL0B);
  if (!whole) return tiling;
  tiling.usedCoreNum = 1;
  tiling.M = tiling.singleCoreM = twin::Int(mmCFG.singleCoreM);
  tiling.N = tiling.singleCoreN = twin::Int(mmCFG.singleCoreN);
  tiling.Ka = tiling.Kb = tiling.singleCoreK = twin::Int(mmCFG.singleCoreK);
  tiling.dbL0C = twin::Int(split.dbL0C);
  tiling.stepM = tiling.stepN = 1;
  tiling.stepKa = twin::Int(split.stepKa);
  tiling.stepKb = twin::Int(split.stepKb);
  tiling.depthA1 = twin::Int(split.depthA1);
  tiling.depthB1 = twin::Int(split.depthB1);
  tiling.iterateOrder = mmCFG.iterateOrder == IterateOrder::ORDER_N ? 1 : 0;
  tiling.transLength = tiling.shareMode = 0;
  tiling.shareL1Size = twin::Int(split.l1);
  tiling.shareL0CSize = twin::Int(split.l0c);
  tiling.shareUbSize = 0;
  return tiling;
}

// What a matrix of a Matmul object is: where it lies, how, of what type.
template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false,
          TPosition SRCPOS = TPosition::GM>
struct MatmulType {
  constexpr static TPosition pos = POSITION;
  constexpr static CubeFormat format = FORMAT;
  using T = TYPE;
  constexpr static bool isTrans = ISTRANS;
  constexpr static LayoutMode layout = LAYOUT;
  constexpr static bool ibShare = IBSHARE;
  constexpr static TPosition srcPos = SRCPOS;
  constexpr static bool sparse = false;
};

// B without two of each four elements along K; an index says which (SetSparseIndex).
template <TPosition POSITION, TPosition INDEX_POSITION, CubeFormat FORMAT, typename TYPE,
          bool ISTRANS = false, LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct SparseMatmulType : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE> {
  constexpr static TPosition indexPosition = INDEX_POSITION;
  constexpr static bool sparse = true;
};

// Functions of the kernel in place of the object's own copies of base blocks to L1.
template <auto DataCopyOut = nullptr, auto CopyA1 = nullptr, auto CopyB1 = nullptr>
struct MatmulCallBackFunc {
  constexpr static bool copiesOut = !std::is_null_pointer_v<decltype(DataCopyOut)>;
  constexpr static bool copiesA = !std::is_null_pointer_v<decltype(CopyA1)>;
  constexpr static bool copiesB = !std::is_null_pointer_v<decltype(CopyB1)>;
  constexpr static auto copyA = CopyA1, copyB = CopyB1;
};

// Which base blocks of C are computed and written; how they are kept in L1 changes no value.
template <const auto &MM_CFG, typename IMPL, typename A_TYPE, typename B_TYPE, typename C_TYPE,
          typename BIAS_TYPE>
struct MatmulPolicy {
  static constexpr twin::MatmulTriangle kTriangle = twin::MatmulTriangle::kNone;
};
template <const auto &MM_CFG, typename IMPL, typename A_TYPE, typename B_TYPE, typename C_TYPE,
          typename BIAS_TYPE>
struct NBuffer33MatmulPolicy
    : MatmulPolicy<MM_CFG, IMPL, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE> {};

// Names that published kernels take from inside of the vendor's library.
constexpr std::int32_t DEFAULT_C0_SIZE = 32;  // bytes
template <typename T>
struct GetMmDstType {  // of L0C, by the type of A
  using Type = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, int4b_t>, std::int32_t,
                                  float>;
};
namespace Impl {
constexpr std::int32_t QUEUE_DEPTH = 1;
namespace Detail {
template <const auto &MM_CFG, typename IMPL, typename A_TYPE, typename B_TYPE, typename C_TYPE,
          typename BIAS_TYPE>
struct TrianUpperMatmulPolicy {
  static constexpr twin::MatmulTriangle kTriangle = twin::MatmulTriangle::kUpper;
};
template <const auto &MM_CFG, typename IMPL, typename A_TYPE, typename B_TYPE, typename C_TYPE,
          typename BIAS_TYPE>
struct TrianLowerMatmulPolicy {
  static constexpr twin::MatmulTriangle kTriangle = twin::MatmulTriangle::kLower;
};
using AscendC::MatmulPolicy;
using AscendC::NBuffer33MatmulPolicy;
}  // namespace Detail
}  // namespace Impl

}  // namespace AscendC
