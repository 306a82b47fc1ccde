// Descriptions of tensors as graphs have them.
#pragma once

#include "graph/types.h"

namespace ge {

class TensorDesc {
 public:
  TensorDesc() = default;
  TensorDesc(const Shape &shape, Format format = FORMAT_ND, DataType type = DT_FLOAT)
      : shape_(shape), format_(format), type_(type) {}
  Shape GetShape() const { return shape_; }
  Shape GetOriginShape() const { return shape_; }
  DataType GetDataType() const { return type_; }
  Format GetFormat() const { return format_; }
  Format GetOriginFormat() const { return format_; }
  void SetShape(const Shape &shape) { shape_ = shape; }
  void SetDataType(DataType type) { type_ = type; }
  void SetFormat(Format format) { format_ = format; }

 private:
  Shape shape_;
  Format format_ = FORMAT_ND;
  DataType type_ = DT_UNDEFINED;
};

}  // namespace ge
