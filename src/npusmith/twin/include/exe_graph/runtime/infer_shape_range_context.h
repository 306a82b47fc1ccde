// What a shape range function reads and writes. The twin never calls one: shapes of a run are known.
#pragma once

#include "exe_graph/runtime/infer_shape_context.h"

namespace gert {

template <typename T>
class Range {
 public:
  Range() = default;
  Range(T *min, T *max) : min_(min), max_(max) {}
  const T *GetMin() const { return min_; }
  const T *GetMax() const { return max_; }
  T *GetMin() { return min_; }
  T *GetMax() { return max_; }
  void SetMin(T *min) { min_ = min; }
  void SetMax(T *max) { max_ = max; }

 private:
  T *min_ = nullptr;
  T *max_ = nullptr;
};

class InferShapeRangeContext : public KernelContext {
 public:
  using KernelContext::KernelContext;
  const Range<Shape> *GetInputShapeRange(std::size_t) const { return nullptr; }
  const Range<Shape> *GetOptionalInputShapeRange(std::size_t) const { return nullptr; }
  const Range<Tensor> *GetInputTensorRange(std::size_t) const { return nullptr; }
  Range<Shape> *GetOutputShapeRange(std::size_t) { return nullptr; }
};

}  // namespace gert
