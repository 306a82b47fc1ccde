// What every context offers: names, attributes and how the node's inputs and outputs are counted.
#pragma once

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"

namespace twin::host {
struct Node;
}

namespace fe {
class PlatFormInfos;
}

namespace gert {

// The tensors that one declared input or output stands for: none, one, or several (DYNAMIC).
class AnchorInstanceInfo {
 public:
  AnchorInstanceInfo() = default;
  AnchorInstanceInfo(std::size_t start, std::size_t count) : start_(start), count_(count) {}
  std::size_t GetInstanceNum() const { return count_; }
  std::size_t GetInstanceStart() const { return start_; }

 private:
  std::size_t start_ = 0;
  std::size_t count_ = 0;
};

class ComputeNodeInfo {
 public:
  const char *GetNodeType() const;
  const char *GetNodeName() const;
  std::size_t GetIrInputsNum() const;
  std::size_t GetIrOutputsNum() const;
  std::size_t GetInputsNum() const;
  std::size_t GetOutputsNum() const;
  const AnchorInstanceInfo *GetInputInstanceInfo(std::size_t at) const;
  const AnchorInstanceInfo *GetOutputInstanceInfo(std::size_t at) const;
  const CompileTimeTensorDesc *GetInputTdInfo(std::size_t at) const;
  const CompileTimeTensorDesc *GetOutputTdInfo(std::size_t at) const;
  const RuntimeAttrs *GetAttrs() const;
};

class KernelContext {
 public:
  explicit KernelContext(twin::host::Node *node) : node_(node) {}
  const char *GetNodeName() const;
  const char *GetNodeType() const;
  const ComputeNodeInfo *GetComputeNodeInfo() const;
  std::size_t GetComputeNodeInputNum() const;
  std::size_t GetComputeNodeOutputNum() const;
  const RuntimeAttrs *GetAttrs() const;
  const AnchorInstanceInfo *GetIrInputInstanceInfo(std::size_t at) const;
  const AnchorInstanceInfo *GetIrOutputInstanceInfo(std::size_t at) const;
  const CompileTimeTensorDesc *GetInputDesc(std::size_t at) const;
  const CompileTimeTensorDesc *GetOutputDesc(std::size_t at) const;
  const CompileTimeTensorDesc *GetRequiredInputDesc(std::size_t at) const;
  const CompileTimeTensorDesc *GetOptionalInputDesc(std::size_t at) const;
  const CompileTimeTensorDesc *GetDynamicInputDesc(std::size_t at, std::size_t which) const;

 protected:
  const StorageShape *InputShape(std::size_t at) const;
  const StorageShape *OptionalShape(std::size_t at) const;
  const StorageShape *DynamicShape(std::size_t at, std::size_t which) const;
  const Tensor *Input(std::size_t at) const;
  const Tensor *OptionalInput(std::size_t at) const;
  const Tensor *DynamicInput(std::size_t at, std::size_t which) const;

  twin::host::Node *node_;
};
using ExtendedKernelContext = KernelContext;

}  // namespace gert
