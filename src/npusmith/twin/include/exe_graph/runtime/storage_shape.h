// A shape as the user sees it and as it lies in memory; the same for plain formats.
#pragma once

#include "exe_graph/runtime/shape.h"

namespace gert {

class StorageShape {
 public:
  StorageShape() = default;
  StorageShape(std::initializer_list<std::int64_t> origin,
               std::initializer_list<std::int64_t> storage)
      : origin_(origin), storage_(storage) {}
  StorageShape(const Shape &origin, const Shape &storage) : origin_(origin), storage_(storage) {}

  const Shape &GetOriginShape() const { return origin_; }
  const Shape &GetStorageShape() const { return storage_; }
  Shape &MutableOriginShape() { return origin_; }
  Shape &MutableStorageShape() { return storage_; }
  bool operator==(const StorageShape &other) const {
    return origin_ == other.origin_ && storage_ == other.storage_;
  }

 private:
  Shape origin_;
  Shape storage_;
};

}  // namespace gert
