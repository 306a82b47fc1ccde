#include "../op_kernel/scale_custom_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

static ge::graphStatus TilingFunc(gert::TilingContext *context) {
  auto *tiling = context->GetTilingData<ScaleCustomTiling>();
  const gert::RuntimeAttrs *attrs = context->GetAttrs();
  const float *alpha = attrs->GetAttrPointer<float>(0);
  const int64_t *cores = attrs->GetInt(1);
  const bool *twice = attrs->GetBool(2);
  const auto *factors = attrs->GetListFloat(3);
  const char *mode = attrs->GetStr(4);
  tiling->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  uint64_t wanted = static_cast<uint64_t>(*cores);
  tiling->perCore = (tiling->length + wanted - 1) / wanted;
  tiling->perCore = (tiling->perCore + 7) / 8 * 8;
  tiling->tile = 2048;
  tiling->alpha = *alpha * (*twice ? 2.0f : 1.0f);
  for (size_t i = 0; i < factors->GetSize(); i++) tiling->alpha *= factors->GetData()[i];
  if (mode[0] == 'n') tiling->alpha = -tiling->alpha;
  tiling->hasBias = context->GetOptionalInputShape(1) != nullptr ? 1 : 0;
  context->SetTilingKey(tiling->hasBias);
  context->SetBlockDim(*cores);
  return ge::GRAPH_SUCCESS;
}

namespace ops {
class ScaleCustom : public OpDef {
 public:
  explicit ScaleCustom(const char *name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("alpha").AttrType(REQUIRED).Float();
    this->Attr("cores").AttrType(OPTIONAL).Int(4);
    this->Attr("twice").AttrType(OPTIONAL).Bool(false);
    this->Attr("factors").AttrType(OPTIONAL).ListFloat({});
    this->Attr("mode").AttrType(OPTIONAL).String("plain");
    OpAICoreConfig config;
    config.DynamicCompileStaticFlag(true).DynamicShapeSupportFlag(true);
    this->AICore().SetTiling(TilingFunc);
    this->AICore().AddConfig("ascend910b", config);
  }
};
OP_ADD(ScaleCustom);
}  // namespace ops
