#ifndef ADD_CUSTOM_TILING_H
#define ADD_CUSTOM_TILING_H
#include "register/tilingdata_base.h"

namespace optiling {
constexpr int32_t MAX_CORES = 48;

BEGIN_TILING_DATA_DEF(AddSplit)
  TILING_DATA_FIELD_DEF(uint32_t, tileLength);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AddSplitOp, AddSplit)

BEGIN_TILING_DATA_DEF(AddCustomTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, totalLength);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, MAX_CORES, coreLength);
  TILING_DATA_FIELD_DEF(int64_t, unused);
  TILING_DATA_FIELD_DEF_STRUCT(AddSplit, split);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(AddCustom, AddCustomTilingData)
}  // namespace optiling
#endif
