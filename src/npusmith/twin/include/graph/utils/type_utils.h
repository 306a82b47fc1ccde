// Names and sizes of element types and formats.
#pragma once

#include <string>

#include "graph/types.h"

namespace ge {

class TypeUtils {
 public:
  static std::string DataTypeToSerialString(DataType type);
  static std::string FormatToSerialString(Format format);
  static bool GetDataTypeLength(DataType type, std::uint32_t &length);
};

}  // namespace ge
