#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(SumListTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, tensors);
  TILING_DATA_FIELD_DEF(uint32_t, first);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(SumList, SumListTilingData)

static ge::graphStatus Tiling(gert::TilingContext *context) {
  SumListTilingData tiling;
  auto *info = context->GetIrInputInstanceInfo(0);
  tiling.set_tensors(info->GetInstanceNum());
  int64_t lengths = 0;
  for (size_t i = 0; i < info->GetInstanceNum(); i++) {
    lengths += context->GetDynamicInputShape(0, i)->GetStorageShape().GetShapeSize();
  }
  // The second input's values are read here, which needs its ValueDepend.
  const int32_t *values = context->GetInputTensor(info->GetInstanceNum())->GetData<int32_t>();
  tiling.set_first(values[0] + (lengths == 0 ? 1 : 0));
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(),
                      context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class SumList : public OpDef {
 public:
  explicit SumList(const char *name) : OpDef(name) {
    this->Input("xs").ParamType(DYNAMIC).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND});
    this->Input("start").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND})
        .ValueDepend(OPTIONAL);
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND})
        .InitValue(0);
    this->AICore().SetTiling(optiling::Tiling);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(SumList);
}  // namespace ops
