// The attribute values of one node, in the order in which OpDef declares them.
#pragma once

#include "exe_graph/runtime/continuous_vector.h"

namespace gert {

class RuntimeAttrs {
 public:
  // Null past the last attribute. Int is int64_t, Float is float, Bool is bool, String is char.
  template <typename T>
  const T *GetAttrPointer(std::size_t at) const { return static_cast<const T *>(Raw(at)); }
  template <typename T>
  const T *GetAttrPointer(std::size_t at, std::size_t) const { return GetAttrPointer<T>(at); }
  const std::int64_t *GetInt(std::size_t at) const { return GetAttrPointer<std::int64_t>(at); }
  const float *GetFloat(std::size_t at) const { return GetAttrPointer<float>(at); }
  const bool *GetBool(std::size_t at) const { return GetAttrPointer<bool>(at); }
  const char *GetStr(std::size_t at) const { return GetAttrPointer<char>(at); }
  const TypedContinuousVector<std::int64_t> *GetListInt(std::size_t at) const {
    return GetAttrPointer<TypedContinuousVector<std::int64_t>>(at);
  }
  const TypedContinuousVector<float> *GetListFloat(std::size_t at) const {
    return GetAttrPointer<TypedContinuousVector<float>>(at);
  }
  const TypedContinuousVector<bool> *GetListBool(std::size_t at) const {
    return GetAttrPointer<TypedContinuousVector<bool>>(at);
  }
  std::size_t GetAttrNum() const;

 private:
  const void *Raw(std::size_t at) const;
};

}  // namespace gert
