// An operator that changes its input in place: the output has the input's name.
#include "register/op_def_registry.h"

static ge::graphStatus Tiling(gert::TilingContext *context) {
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}

namespace ops {
class Bump : public OpDef {
 public:
  explicit Bump(const char *name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_BF16}).Format(
        {ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_BF16}).Format(
        {ge::FORMAT_ND, ge::FORMAT_ND});
    this->AICore().SetTiling(Tiling).AddConfig("ascend910b");
  }
};
OP_ADD(Bump);
}  // namespace ops
