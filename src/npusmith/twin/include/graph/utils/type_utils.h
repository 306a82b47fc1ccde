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
  static AscendString DataTypeToAscendString(DataType type) {
    return AscendString(DataTypeToSerialString(type).c_str());
  }
  static AscendString FormatToAscendString(Format format) {
    return AscendString(FormatToSerialString(format).c_str());
  }
};
inline std::string GetFormatName(Format format) { return TypeUtils::FormatToSerialString(format); }

}  // namespace ge
