// Shapes as the tiling functions of the library take them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/types.h"

namespace AscendC {

using TensorShape = ge::Shape;
using TensorDataType = ge::DataType;

}  // namespace AscendC

namespace twin {

inline std::uint32_t SizeOfDim(const ge::Shape &shape, std::size_t at) {
  return at < shape.GetDimNum() ? static_cast<std::uint32_t>(shape.GetDim(at)) : 1;
}
inline std::uint32_t LastOf(const ge::Shape &shape) {
  return shape.GetDimNum() == 0 ? 1 : SizeOfDim(shape, shape.GetDimNum() - 1);
}
// All dimensions but the last, multiplied.
inline std::uint32_t RowsOf(const ge::Shape &shape) {
  std::uint32_t rows = 1;
  for (std::size_t at = 0; at + 1 < shape.GetDimNum(); ++at) rows *= SizeOfDim(shape, at);
  return rows;
}
inline std::uint32_t ElementsOf(const ge::Shape &shape) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(shape.GetShapeSize(), 0));
}
inline std::uint32_t Padded(std::uint32_t count, std::uint32_t unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace twin
