// Element types, formats and status codes of host code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ge {

using graphStatus = std::uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFFU;
constexpr graphStatus GRAPH_NOT_CHANGED = 1343242304U;
constexpr graphStatus GRAPH_PARAM_INVALID = 50331649U;
constexpr graphStatus GRAPH_PARAM_OUT_OF_RANGE = 50331644U;
constexpr graphStatus GRAPH_MEM_OPERATE_FAILED = 50331539U;
constexpr graphStatus GRAPH_NULL_PTR = 50331538U;
constexpr graphStatus GRAPH_MEMCPY_FAILED = 50331537U;
constexpr graphStatus GRAPH_MEMSET_FAILED = 50331536U;
using Status = std::uint32_t;
constexpr Status SUCCESS = 0;
constexpr Status FAILED = 0xFFFFFFFFU;

using char_t = char;
using float32_t = float;
using float64_t = double;

constexpr std::int64_t UNKNOWN_DIM = -1;      // a dimension that only a run will know
constexpr std::int64_t UNKNOWN_DIM_NUM = -2;  // the same of the number of dimensions

// The numbers are public: a kernel is compiled with ORIG_DTYPE_<PARAM> set to them.
enum DataType {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_STRING = 13,
  DT_DUAL_SUB_INT8 = 14,
  DT_DUAL_SUB_UINT8 = 15,
  DT_COMPLEX64 = 16,
  DT_COMPLEX128 = 17,
  DT_QINT8 = 18,
  DT_QINT16 = 19,
  DT_QINT32 = 20,
  DT_QUINT8 = 21,
  DT_QUINT16 = 22,
  DT_RESOURCE = 23,
  DT_STRING_REF = 24,
  DT_DUAL = 25,
  DT_VARIANT = 26,
  DT_BF16 = 27,
  DT_UNDEFINED = 28,
  DT_INT4 = 29,
  DT_UINT1 = 30,
  DT_INT2 = 31,
  DT_UINT2 = 32,
  DT_COMPLEX32 = 33,
  DT_HIFLOAT8 = 34,
  DT_FLOAT8_E5M2 = 35,
  DT_FLOAT8_E4M3FN = 36,
  DT_FLOAT8_E8M0 = 37,
  DT_FLOAT6_E3M2 = 38,
  DT_FLOAT6_E2M3 = 39,
  DT_FLOAT4_E2M1 = 40,
  DT_FLOAT4_E1M2 = 41,
  DT_MAX
};

enum Format {
  FORMAT_NCHW = 0,
  FORMAT_NHWC = 1,
  FORMAT_ND = 2,
  FORMAT_NC1HWC0 = 3,
  FORMAT_FRACTAL_Z = 4,
  FORMAT_NC1HWC0_C04 = 12,
  FORMAT_FRACTAL_Z_C04 = 13,
  FORMAT_CHWN = 14,
  FORMAT_HWCN = 16,
  FORMAT_C1HWNCoC0 = 25,
  FORMAT_MD = 26,
  FORMAT_NDHWC = 27,
  FORMAT_FRACTAL_NZ = 29,
  FORMAT_NCDHW = 30,
  FORMAT_DHWCN = 31,
  FORMAT_NDC1HWC0 = 32,
  FORMAT_FRACTAL_Z_3D = 33,
  FORMAT_CN = 34,
  FORMAT_NC = 35,
  FORMAT_DHWNC = 36,
  FORMAT_ALL = 41,
  FORMAT_NULL = 42,
  FORMAT_NCL = 47,
  FORMAT_FRACTAL_NZ_C0_16 = 50,
  FORMAT_FRACTAL_NZ_C0_32 = 51,
  FORMAT_FRACTAL_NZ_C0_2 = 52,
  FORMAT_FRACTAL_NZ_C0_4 = 53,
  FORMAT_FRACTAL_NZ_C0_8 = 54,
  FORMAT_END = 55,
  FORMAT_RESERVED = 63,
  FORMAT_MAX = 0xff
};

// Bytes of one element; -1 for types that have no fixed size.
int GetSizeByDataType(DataType type);
inline Format GetPrimaryFormat(std::int32_t format) { return static_cast<Format>(format & 0xff); }

// A shape as graphs have it.
class Shape {
 public:
  Shape() = default;
  explicit Shape(const std::vector<std::int64_t> &dims) : dims_(dims) {}
  std::size_t GetDimNum() const { return dims_.size(); }
  std::int64_t GetDim(std::size_t at) const { return at < dims_.size() ? dims_[at] : 0; }
  void SetDim(std::size_t at, std::int64_t dim) {
    if (at < dims_.size()) dims_[at] = dim;
  }
  std::vector<std::int64_t> GetDims() const { return dims_; }
  std::int64_t GetShapeSize() const {
    std::int64_t size = 1;
    for (const std::int64_t dim : dims_) size *= dim;
    return size;
  }

 private:
  std::vector<std::int64_t> dims_;
};

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char *text) : text_(text == nullptr ? "" : text) {}
  const char *GetString() const { return text_.c_str(); }
  std::size_t GetLength() const { return text_.size(); }
  bool operator==(const AscendString &other) const { return text_ == other.text_; }
  bool operator!=(const AscendString &other) const { return text_ != other.text_; }
  bool operator<(const AscendString &other) const { return text_ < other.text_; }

 private:
  std::string text_;
};

}  // namespace ge
