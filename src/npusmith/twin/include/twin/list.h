// Tensor lists: the descriptor that a dynamic input's pointer leads to.
#pragma once

#include "twin/tensor.h"

namespace AscendC {

// Shape and data of one tensor of a list.
template <typename T>
class TensorDesc {
 public:
  void SetShapeAddr(std::uint64_t *shape) { shape_ = shape; }
  std::uint64_t GetDim() const { return dim_; }
  std::uint64_t GetIndex() const { return index_; }
  std::uint64_t GetShape(std::uint32_t axis) const { return shape_ == nullptr ? 0 : shape_[axis]; }
  T *GetDataPtr() const { return data_; }
  void Fill(std::uint64_t dim, std::uint64_t index, T *data) {
    dim_ = dim;
    index_ = index;
    data_ = data;
  }

 private:
  std::uint64_t *shape_ = nullptr;
  std::uint64_t dim_ = 0, index_ = 0;
  T *data_ = nullptr;
};

// Memory: byte offset of the pointers, then for each tensor (dimensions, index) packed in one
// word and its shape, then one 64-bit address a tensor.
// guess: the place of the shape words; only the offset and the addresses are established.
class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  explicit ListTensorDesc(__gm__ void *data, std::uint64_t = 0xFFFFFFFF,
                          std::uint32_t = 0xFFFFFFFF) {
    Init(data);
  }
  void Init(__gm__ void *data, std::uint64_t = 0xFFFFFFFF, std::uint32_t = 0xFFFFFFFF) {
    base_ = static_cast<std::uint64_t *>(data);
  }
  template <typename T>
  __gm__ T *GetDataPtr(std::uint32_t index) const {
    return reinterpret_cast<T *>(Pointers()[index]);
  }
  template <typename T>
  void GetDesc(TensorDesc<T> &desc, std::uint32_t index) const {
    const std::uint64_t *at = base_ + 1;
    for (std::uint32_t i = 0; i < index; ++i) at += 1 + (*at & 0xFFFFFFFFu);
    desc.Fill(*at & 0xFFFFFFFFu, *at >> 32, GetDataPtr<T>(index));
    for (std::uint64_t axis = 0; axis < desc.GetDim(); ++axis) shape_[axis] = at[1 + axis];
    desc.SetShapeAddr(shape_);
  }
  std::uint32_t GetSize() const {
    std::uint32_t count = 0;
    const std::uint64_t *end = Pointers();
    for (const std::uint64_t *at = base_ + 1; at < end; at += 1 + (*at & 0xFFFFFFFFu)) ++count;
    return count;
  }

 private:
  const std::uint64_t *Pointers() const {
    return reinterpret_cast<const std::uint64_t *>(reinterpret_cast<const char *>(base_) + *base_);
  }
  std::uint64_t *base_ = nullptr;
  mutable std::uint64_t shape_[8] = {};
};

}  // namespace AscendC
