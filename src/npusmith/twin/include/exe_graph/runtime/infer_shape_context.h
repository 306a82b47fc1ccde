// What a shape inference function reads and writes.
#pragma once

#include "exe_graph/runtime/context.h"

namespace gert {

class InferShapeContext : public KernelContext {
 public:
  using KernelContext::KernelContext;
  const Shape *GetInputShape(std::size_t at) const;
  const Shape *GetRequiredInputShape(std::size_t at) const { return GetOptionalInputShape(at); }
  const Shape *GetOptionalInputShape(std::size_t at) const;
  const Shape *GetDynamicInputShape(std::size_t at, std::size_t which) const;
  const Tensor *GetInputTensor(std::size_t at) const { return Input(at); }
  const Tensor *GetRequiredInputTensor(std::size_t at) const { return OptionalInput(at); }
  const Tensor *GetOptionalInputTensor(std::size_t at) const { return OptionalInput(at); }
  const Tensor *GetDynamicInputTensor(std::size_t at, std::size_t which) const {
    return DynamicInput(at, which);
  }
  Shape *GetOutputShape(std::size_t at);
};

}  // namespace gert
