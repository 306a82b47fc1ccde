// The dimensions of a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gert {

class Shape {
 public:
  static constexpr std::size_t kMaxDimNum = 25;
  static constexpr std::int64_t kInvalidDimValue = INT64_MIN;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    for (std::int64_t dim : dims) AppendDim(dim);
  }

  std::size_t GetDimNum() const { return count_; }
  void SetDimNum(std::size_t count) { count_ = count < kMaxDimNum ? count : kMaxDimNum; }
  std::int64_t GetDim(std::size_t at) const { return at < count_ ? dims_[at] : kInvalidDimValue; }
  void SetDim(std::size_t at, std::int64_t dim) {
    if (at < kMaxDimNum) dims_[at] = dim;
  }
  Shape &AppendDim(std::int64_t dim) {
    if (count_ < kMaxDimNum) dims_[count_++] = dim;
    return *this;
  }
  const std::int64_t &operator[](std::size_t at) const { return dims_[at]; }
  std::int64_t &operator[](std::size_t at) { return dims_[at]; }
  bool operator==(const Shape &other) const {
    if (count_ != other.count_) return false;
    for (std::size_t at = 0; at < count_; ++at) {
      if (dims_[at] != other.dims_[at]) return false;
    }
    return true;
  }
  bool operator!=(const Shape &other) const { return !(*this == other); }

  bool IsScalar() const { return count_ == 0; }
  void SetScalar() { count_ = 0; }

  // Elements; a tensor without dimensions has one.
  std::int64_t GetShapeSize() const {
    std::int64_t size = 1;
    for (std::size_t at = 0; at < count_; ++at) size *= dims_[at];
    return size;
  }

 private:
  std::size_t count_ = 0;
  std::int64_t dims_[kMaxDimNum] = {};
};

}  // namespace gert
