// Tensors and their descriptions as host code sees them.
#pragma once

#include <cstddef>

#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"

namespace gert {

enum TensorPlacement { kOnDeviceHbm, kOnHost, kFollowing, kTensorPlacementEnd };
struct TensorPlacementUtils {
  static bool IsOnHost(TensorPlacement place) { return place == kOnHost || place == kFollowing; }
  static bool IsOnDevice(TensorPlacement place) { return place == kOnDeviceHbm; }
};
using TensorAddress = void *;

class StorageFormat {
 public:
  StorageFormat() = default;
  StorageFormat(ge::Format origin, ge::Format storage) : origin_(origin), storage_(storage) {}
  ge::Format GetOriginFormat() const { return origin_; }
  ge::Format GetStorageFormat() const { return storage_; }

 private:
  ge::Format origin_ = ge::FORMAT_ND;
  ge::Format storage_ = ge::FORMAT_ND;
};

class CompileTimeTensorDesc {
 public:
  CompileTimeTensorDesc() = default;
  CompileTimeTensorDesc(ge::DataType type, StorageFormat format) : type_(type), format_(format) {}
  ge::DataType GetDataType() const { return type_; }
  ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
  ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
  const StorageFormat &GetFormat() const { return format_; }

 private:
  ge::DataType type_ = ge::DT_UNDEFINED;
  StorageFormat format_;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(const StorageShape &shape, const StorageFormat &format, ge::DataType type, void *data)
      : shape_(shape), format_(format), type_(type), data_(data) {}

  // Null unless the input is declared with ValueDepend: host code cannot read device memory.
  template <typename T>
  const T *GetData() const { return static_cast<const T *>(data_); }
  template <typename T>
  T *GetData() { return static_cast<T *>(data_); }
  const void *GetAddr() const { return data_; }
  void *GetAddr() { return data_; }

  const StorageShape &GetShape() const { return shape_; }
  StorageShape &GetShape() { return shape_; }
  const Shape &GetStorageShape() const { return shape_.GetStorageShape(); }
  const Shape &GetOriginShape() const { return shape_.GetOriginShape(); }
  std::int64_t GetShapeSize() const { return GetStorageShape().GetShapeSize(); }
  std::size_t GetSize() const {
    return static_cast<std::size_t>(GetShapeSize()) *
           static_cast<std::size_t>(ge::GetSizeByDataType(type_));
  }
  ge::DataType GetDataType() const { return type_; }
  const StorageFormat &GetFormat() const { return format_; }
  ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
  ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
  TensorPlacement GetPlacement() const { return data_ == nullptr ? kOnDeviceHbm : kOnHost; }

 private:
  StorageShape shape_;
  StorageFormat format_;
  ge::DataType type_ = ge::DT_UNDEFINED;
  void *data_ = nullptr;
};

}  // namespace gert
