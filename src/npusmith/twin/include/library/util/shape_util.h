// Shapes that only a run will know, and shapes, types and formats as text.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"
#include "graph/utils/type_utils.h"

namespace Ops {
namespace Base {

inline bool IsUnknownRank(const gert::Shape &shape) {
  return shape.GetDimNum() == 1 && shape.GetDim(0) == ge::UNKNOWN_DIM_NUM;
}

inline bool IsUnknownShape(const gert::Shape &shape) {
  for (std::size_t at = 0; at < shape.GetDimNum(); ++at) {
    if (shape.GetDim(at) == ge::UNKNOWN_DIM || shape.GetDim(at) == ge::UNKNOWN_DIM_NUM) return true;
  }
  return false;
}

inline ge::graphStatus SetUnknownRank(gert::Shape &shape) {
  shape.SetDimNum(0);
  shape.AppendDim(ge::UNKNOWN_DIM_NUM);
  return ge::GRAPH_SUCCESS;
}
inline ge::graphStatus SetUnknownRank(gert::Shape *shape) { return SetUnknownRank(*shape); }

inline ge::graphStatus SetUnknownShape(std::int64_t rank, gert::Shape &shape) {
  shape.SetDimNum(static_cast<std::size_t>(rank));
  for (std::size_t at = 0; at < shape.GetDimNum(); ++at) shape.SetDim(at, ge::UNKNOWN_DIM);
  return ge::GRAPH_SUCCESS;
}
inline ge::graphStatus SetUnknownShape(std::int64_t rank, gert::Shape *shape) {
  return SetUnknownShape(rank, *shape);
}

// A tensor without dimensions counts as one with one element.
inline const gert::Shape &EnsureNotScalar(const gert::Shape &shape) {
  static const gert::Shape one = {1};
  return shape.IsScalar() ? one : shape;
}

inline std::string ToString(const gert::Shape &shape) {
  std::string text = "[";
  for (std::size_t at = 0; at < shape.GetDimNum(); ++at) {
    text += (at == 0 ? "" : ", ") + std::to_string(shape.GetDim(at));
  }
  return text + "]";
}
inline std::string ToString(const gert::StorageShape &shape) {
  return "origin " + ToString(shape.GetOriginShape()) + ", storage " +
         ToString(shape.GetStorageShape());
}
inline std::string ToString(ge::DataType type) {
  return ge::TypeUtils::DataTypeToSerialString(type);
}
inline std::string ToString(ge::Format format) {
  return ge::TypeUtils::FormatToSerialString(format);
}
inline std::string ToString(const std::string &text) { return text; }
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
std::string ToString(T value) {
  return std::to_string(value);
}
template <typename T>
std::string ToString(const T *values, std::size_t count) {
  std::string text = "[";
  for (std::size_t at = 0; at < count; ++at) text += (at == 0 ? "" : ", ") + ToString(values[at]);
  return text + "]";
}
template <typename T>
std::string ToString(const std::vector<T> &values) {
  std::string text = "[";
  for (const T &value : values) text += (text.size() == 1 ? "" : ", ") + ToString(value);
  return text + "]";
}

}  // namespace Base
}  // namespace Ops
