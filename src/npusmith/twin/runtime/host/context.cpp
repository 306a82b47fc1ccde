// Contexts read and write the node they were made for.
#include "node.h"

namespace ge {

int GetSizeByDataType(DataType type) {
  switch (type) {
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL: return 1;
    case DT_FLOAT16:
    case DT_BF16:
    case DT_INT16:
    case DT_UINT16: return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
    case DT_COMPLEX32: return 4;
    case DT_INT64:
    case DT_UINT64:
    case DT_DOUBLE:
    case DT_COMPLEX64: return 8;
    case DT_COMPLEX128: return 16;
    default: return -1;
  }
}

}  // namespace ge

namespace gert {

using twin::host::Attrs;
using twin::host::Node;

namespace {

template <typename T>
const T *At(const std::vector<T> &list, std::size_t at) {
  return at < list.size() ? &list[at] : nullptr;
}

template <typename T>
const T *Instance(const std::vector<AnchorInstanceInfo> &anchors, const std::vector<T> &list,
                  std::size_t at, std::size_t which) {
  const AnchorInstanceInfo *anchor = At(anchors, at);
  if (anchor == nullptr || which >= anchor->GetInstanceNum()) return nullptr;
  return At(list, anchor->GetInstanceStart() + which);
}

const StorageShape *ShapeOf(const Tensor *tensor) {
  return tensor == nullptr ? nullptr : &tensor->GetShape();
}

const Node *NodeOf(const ComputeNodeInfo *info) { return static_cast<const Node *>(info); }

}  // namespace

const void *RuntimeAttrs::Raw(std::size_t at) const {
  const auto &values = static_cast<const Attrs *>(this)->values;
  return at < values.size() && !values[at].empty() ? values[at].data() : nullptr;
}

std::size_t RuntimeAttrs::GetAttrNum() const {
  return static_cast<const Attrs *>(this)->values.size();
}

const char *ComputeNodeInfo::GetNodeType() const { return NodeOf(this)->type.c_str(); }
const char *ComputeNodeInfo::GetNodeName() const { return NodeOf(this)->name.c_str(); }
std::size_t ComputeNodeInfo::GetIrInputsNum() const { return NodeOf(this)->inputAnchors.size(); }
std::size_t ComputeNodeInfo::GetIrOutputsNum() const { return NodeOf(this)->outputAnchors.size(); }
std::size_t ComputeNodeInfo::GetInputsNum() const { return NodeOf(this)->inputs.size(); }
std::size_t ComputeNodeInfo::GetOutputsNum() const { return NodeOf(this)->outputs.size(); }
const AnchorInstanceInfo *ComputeNodeInfo::GetInputInstanceInfo(std::size_t at) const {
  return At(NodeOf(this)->inputAnchors, at);
}
const AnchorInstanceInfo *ComputeNodeInfo::GetOutputInstanceInfo(std::size_t at) const {
  return At(NodeOf(this)->outputAnchors, at);
}
const CompileTimeTensorDesc *ComputeNodeInfo::GetInputTdInfo(std::size_t at) const {
  return At(NodeOf(this)->inputDescs, at);
}
const CompileTimeTensorDesc *ComputeNodeInfo::GetOutputTdInfo(std::size_t at) const {
  return At(NodeOf(this)->outputDescs, at);
}
const RuntimeAttrs *ComputeNodeInfo::GetAttrs() const { return &NodeOf(this)->attrs; }

const char *KernelContext::GetNodeName() const { return node_->name.c_str(); }
const char *KernelContext::GetNodeType() const { return node_->type.c_str(); }
const ComputeNodeInfo *KernelContext::GetComputeNodeInfo() const { return node_; }
std::size_t KernelContext::GetComputeNodeInputNum() const { return node_->inputs.size(); }
std::size_t KernelContext::GetComputeNodeOutputNum() const { return node_->outputs.size(); }
const RuntimeAttrs *KernelContext::GetAttrs() const { return &node_->attrs; }
const AnchorInstanceInfo *KernelContext::GetIrInputInstanceInfo(std::size_t at) const {
  return At(node_->inputAnchors, at);
}
const AnchorInstanceInfo *KernelContext::GetIrOutputInstanceInfo(std::size_t at) const {
  return At(node_->outputAnchors, at);
}
const CompileTimeTensorDesc *KernelContext::GetInputDesc(std::size_t at) const {
  return At(node_->inputDescs, at);
}
const CompileTimeTensorDesc *KernelContext::GetOutputDesc(std::size_t at) const {
  return At(node_->outputDescs, at);
}
const CompileTimeTensorDesc *KernelContext::GetRequiredInputDesc(std::size_t at) const {
  return GetDynamicInputDesc(at, 0);
}
const CompileTimeTensorDesc *KernelContext::GetOptionalInputDesc(std::size_t at) const {
  return GetDynamicInputDesc(at, 0);
}
const CompileTimeTensorDesc *KernelContext::GetDynamicInputDesc(std::size_t at,
                                                                std::size_t which) const {
  return Instance(node_->inputAnchors, node_->inputDescs, at, which);
}
const Tensor *KernelContext::Input(std::size_t at) const { return At(node_->inputs, at); }
const Tensor *KernelContext::OptionalInput(std::size_t at) const { return DynamicInput(at, 0); }
const Tensor *KernelContext::DynamicInput(std::size_t at, std::size_t which) const {
  return Instance(node_->inputAnchors, node_->inputs, at, which);
}
const StorageShape *KernelContext::InputShape(std::size_t at) const { return ShapeOf(Input(at)); }
const StorageShape *KernelContext::OptionalShape(std::size_t at) const {
  return ShapeOf(OptionalInput(at));
}
const StorageShape *KernelContext::DynamicShape(std::size_t at, std::size_t which) const {
  return ShapeOf(DynamicInput(at, which));
}

const StorageShape *TilingContext::GetOutputShape(std::size_t at) const {
  return ShapeOf(At(node_->outputs, at));
}
const void *TilingContext::GetCompileInfo() const { return node_->compileInfo; }
std::int32_t TilingContext::GetDeterministic() const { return 0; }
ge::graphStatus TilingContext::SetBlockDim(std::uint32_t blocks) {
  node_->blocks = blocks;
  node_->blocksSet = true;
  return ge::GRAPH_SUCCESS;
}
std::uint32_t TilingContext::GetBlockDim() const { return node_->blocks; }
ge::graphStatus TilingContext::SetTilingKey(std::uint64_t key) {
  node_->tilingKey = key;
  return ge::GRAPH_SUCCESS;
}
std::uint64_t TilingContext::GetTilingKey() const { return node_->tilingKey; }
ge::graphStatus TilingContext::SetNeedAtomic(bool atomic) {
  node_->needAtomic = atomic;
  return ge::GRAPH_SUCCESS;
}
bool TilingContext::NeedAtomic() const { return node_->needAtomic; }
ge::graphStatus TilingContext::SetScheduleMode(std::uint32_t mode) {
  node_->scheduleMode = mode;
  return ge::GRAPH_SUCCESS;
}
std::uint32_t TilingContext::GetScheduleMode() const { return node_->scheduleMode; }
ge::graphStatus TilingContext::SetTilingCond(std::int32_t condition) {
  node_->tilingCondition = condition;
  return ge::GRAPH_SUCCESS;
}
std::int32_t TilingContext::GetTilingCond() const { return node_->tilingCondition; }
// Dynamic UB of SIMT kernels, which this chip does not have.
ge::graphStatus TilingContext::SetLocalMemorySize(std::uint32_t bytes) {
  return bytes == 0 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}
std::size_t *TilingContext::GetWorkspaceSizes(std::size_t count) {
  if (node_->workspaces.size() < count) node_->workspaces.resize(count);
  return node_->workspaces.data();
}
std::size_t TilingContext::GetWorkspaceNum() const { return node_->workspaces.size(); }
TilingData *TilingContext::GetRawTilingData() { return &node_->tiling; }

void *TilingParseContext::CompiledInfo() const { return node_->compileInfo; }

namespace {
const Shape *StorageOf(const StorageShape *shape) {
  return shape == nullptr ? nullptr : &shape->GetStorageShape();
}
}  // namespace

const Shape *InferShapeContext::GetInputShape(std::size_t at) const {
  return StorageOf(InputShape(at));
}
const Shape *InferShapeContext::GetOptionalInputShape(std::size_t at) const {
  return StorageOf(OptionalShape(at));
}
const Shape *InferShapeContext::GetDynamicInputShape(std::size_t at, std::size_t which) const {
  return StorageOf(DynamicShape(at, which));
}
Shape *InferShapeContext::GetOutputShape(std::size_t at) {
  return at < node_->inferredShapes.size() ? &node_->inferredShapes[at] : nullptr;
}

namespace {
ge::DataType TypeOf(const CompileTimeTensorDesc *desc) {
  return desc == nullptr ? ge::DT_UNDEFINED : desc->GetDataType();
}
}  // namespace

ge::DataType InferDataTypeContext::GetInputDataType(std::size_t at) const {
  return TypeOf(GetInputDesc(at));
}
ge::DataType InferDataTypeContext::GetOptionalInputDataType(std::size_t at) const {
  return TypeOf(GetOptionalInputDesc(at));
}
ge::DataType InferDataTypeContext::GetDynamicInputDataType(std::size_t at,
                                                           std::size_t which) const {
  return TypeOf(GetDynamicInputDesc(at, which));
}
ge::DataType InferDataTypeContext::GetOutputDataType(std::size_t at) const {
  return at < node_->inferredTypes.size() ? node_->inferredTypes[at] : ge::DT_UNDEFINED;
}
ge::graphStatus InferDataTypeContext::SetOutputDataType(std::size_t at, ge::DataType type) {
  if (at >= node_->inferredTypes.size()) return ge::GRAPH_FAILED;
  node_->inferredTypes[at] = type;
  return ge::GRAPH_SUCCESS;
}

}  // namespace gert
