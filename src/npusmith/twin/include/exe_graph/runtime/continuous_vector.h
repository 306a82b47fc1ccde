// A list attribute: its elements follow the header in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gert {

class ContinuousVector {
 public:
  explicit ContinuousVector(std::size_t size) : capacity_(size), size_(size) {}
  std::size_t GetSize() const { return size_; }
  std::size_t GetCapacity() const { return capacity_; }
  const void *GetData() const { return this + 1; }
  void *MutableData() { return this + 1; }

 private:
  std::size_t capacity_;
  std::size_t size_;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
 public:
  using ContinuousVector::ContinuousVector;
  const T *GetData() const { return static_cast<const T *>(ContinuousVector::GetData()); }
};

}  // namespace gert
