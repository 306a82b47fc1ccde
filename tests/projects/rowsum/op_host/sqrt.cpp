// Row sums, then a square root; the operator is called Sqrt so that its entry collides with libm.
#include "log/log.h"
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
struct SqrtInfo {
  uint32_t cores = 0;
  uint64_t ub = 0;
};

BEGIN_TILING_DATA_DEF(SqrtTilingData)
  TILING_DATA_FIELD_DEF(int64_t, rows);
  TILING_DATA_FIELD_DEF(int64_t, cols);
  TILING_DATA_FIELD_DEF(int32_t, rowsPerCore);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Sqrt, SqrtTilingData)

static ge::graphStatus Tiling(gert::TilingContext *context) {
  const auto *info = reinterpret_cast<const SqrtInfo *>(context->GetCompileInfo());
  OPS_CHECK_NULL_WITH_CONTEXT(context, info);
  const gert::Shape &shape = context->GetInputShape(0)->GetStorageShape();
  OP_TILING_CHECK(shape.GetDimNum() != 2,
                  OP_LOGE(context->GetNodeName(), "x must have 2 dimensions, not %zu",
                          shape.GetDimNum()),
                  return ge::GRAPH_FAILED);
  SqrtTilingData tiling;
  int64_t rows = shape.GetDim(0);
  int64_t cores = rows < info->cores ? (rows > 0 ? rows : 1) : info->cores;
  tiling.set_rows(rows);
  tiling.set_cols(shape[1]);
  // Whole lines of 64 bytes: results are written one by one.
  tiling.set_rowsPerCore(((rows + cores - 1) / cores + 15) / 16 * 16);
  context->SetBlockDim(cores);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  return ge::GRAPH_SUCCESS;
}

static ge::graphStatus Prepare(gert::TilingParseContext *context) {
  auto *info = context->GetCompiledInfo<SqrtInfo>();
  platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
  info->cores = platform.GetCoreNumAiv();
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, info->ub);
  return info->ub > 0 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

IMPL_OP_OPTILING(Sqrt).Tiling(Tiling).TilingParse<SqrtInfo>(Prepare);
}  // namespace optiling

namespace ops {
class Sqrt : public OpDef {
 public:
  explicit Sqrt(const char *name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Sqrt);
}  // namespace ops
