// Values of inputs that host code may read (ValueDepend), as numbers and as shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "exe_graph/runtime/shape.h"
#include "exe_graph/runtime/tensor.h"

namespace Ops {
namespace Base {

// False where the input has no values here, or is not of int32 or int64.
inline bool ConstInts(const gert::Tensor *tensor, std::vector<std::int64_t> &values) {
  if (tensor == nullptr || tensor->GetData<void>() == nullptr) return false;
  const auto count = static_cast<std::size_t>(tensor->GetShapeSize());
  if (tensor->GetDataType() == ge::DT_INT32) {
    const auto *data = tensor->GetData<std::int32_t>();
    values.assign(data, data + count);
    return true;
  }
  if (tensor->GetDataType() != ge::DT_INT64) return false;
  const auto *data = tensor->GetData<std::int64_t>();
  values.assign(data, data + count);
  return true;
}

template <typename Context, typename T>
bool GetConstInt(Context *context, std::int64_t input, T &value) {
  std::vector<std::int64_t> values;
  const gert::Tensor *tensor = context->GetInputTensor(static_cast<std::size_t>(input));
  if (!ConstInts(tensor, values) || values.empty()) return false;
  value = static_cast<T>(values[0]);
  return true;
}

template <typename T>
void GetValueToShape(const gert::Tensor *tensor, gert::Shape &shape) {
  shape.SetDimNum(0);
  const T *data = tensor->GetData<T>();
  for (std::int64_t at = 0; at < tensor->GetShapeSize(); ++at) {
    shape.AppendDim(static_cast<std::int64_t>(data[at]));
  }
}

template <typename Context>
bool GetConstIntToShape(Context *context, std::int64_t input, gert::Shape &shape) {
  std::vector<std::int64_t> values;
  if (!ConstInts(context->GetInputTensor(static_cast<std::size_t>(input)), values)) return false;
  shape.SetDimNum(0);
  for (const std::int64_t value : values) shape.AppendDim(value);
  return true;
}

}  // namespace Base
}  // namespace Ops
