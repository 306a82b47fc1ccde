// What a type inference function reads and writes.
#pragma once

#include "exe_graph/runtime/context.h"

namespace gert {

class InferDataTypeContext : public KernelContext {
 public:
  using KernelContext::KernelContext;
  ge::DataType GetInputDataType(std::size_t at) const;
  ge::DataType GetRequiredInputDataType(std::size_t at) const {
    return GetOptionalInputDataType(at);
  }
  ge::DataType GetOptionalInputDataType(std::size_t at) const;
  ge::DataType GetDynamicInputDataType(std::size_t at, std::size_t which) const;
  ge::DataType GetOutputDataType(std::size_t at) const;
  ge::graphStatus SetOutputDataType(std::size_t at, ge::DataType type);
};

}  // namespace gert
