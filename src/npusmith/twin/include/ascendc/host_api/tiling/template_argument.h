// Template arguments of a kernel, chosen by host code: declared once, encoded as a tiling key.
// Our own encoding: each argument's value in its declared width, the first in the lowest bits.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

// Kinds of arguments, widths, and how values of an unsigned argument are listed.
#define ASCENDC_TPL_DTYPE 0
#define ASCENDC_TPL_FORMAT 1
#define ASCENDC_TPL_UINT 2
#define ASCENDC_TPL_BOOL 3
#define ASCENDC_TPL_SHARED_KERNEL_TYPE 4
#define ASCENDC_TPL_TILING_STRUCT 5
#define ASCENDC_TPL_1_BW 1
#define ASCENDC_TPL_2_BW 2
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_8_BW 8
#define ASCENDC_TPL_UI_RANGE 0
#define ASCENDC_TPL_UI_LIST 1
#define ASCENDC_TPL_UI_MIX 2
#define ASCENDC_TPL_AIV_ONLY 0
#define ASCENDC_TPL_AIC_ONLY 1
#define ASCENDC_TPL_MIX_AIV_1_0 2
#define ASCENDC_TPL_MIX_AIC_1_0 3
#define ASCENDC_TPL_MIX_AIC_1_1 4
#define ASCENDC_TPL_MIX_AIC_1_2 5
#define ASCENDC_TPL_INPUT(at) static_cast<std::uint64_t>(at)
#define ASCENDC_TPL_OUTPUT(at) static_cast<std::uint64_t>(at)

#ifndef C_DT_FLOAT
#define C_DT_FLOAT 0
#define C_DT_FLOAT16 1
#define C_DT_INT8 2
#define C_DT_INT32 3
#define C_DT_UINT8 4
#define C_DT_INT16 6
#define C_DT_UINT16 7
#define C_DT_UINT32 8
#define C_DT_INT64 9
#define C_DT_UINT64 10
#define C_DT_DOUBLE 11
#define C_DT_BOOL 12
#define C_DT_BF16 27
#define C_FORMAT_NCHW 0
#define C_FORMAT_NHWC 1
#define C_FORMAT_ND 2
#define C_FORMAT_FRACTAL_NZ 29
#endif

namespace AscendC {

// Constants: a kernel's file has them too, and nothing may run there before the launch.
struct ParamStruct {
  const char *name;
  std::uint32_t paramType;
  std::uint8_t bitWidth;
};

template <std::size_t count, typename Values>
std::uint64_t EncodeTilingKey(const ParamStruct (&declared)[count], const Values &values) {
  std::uint64_t key = 0;
  unsigned shift = 0;
  std::size_t at = 0;
  for (const ParamStruct &param : declared) {
    if (param.paramType == ASCENDC_TPL_SHARED_KERNEL_TYPE || at >= values.size()) continue;
    const std::uint64_t mask = param.bitWidth >= 64 ? ~0ULL : (1ULL << param.bitWidth) - 1;
    if (shift < 64) key |= (values.begin()[at] & mask) << shift;
    shift += param.bitWidth;
    ++at;
  }
  return key;
}

}  // namespace AscendC

#define TWIN_TPL(name, kind, width, ...) \
  ::AscendC::ParamStruct { #name, kind, width }
#define ASCENDC_TPL_DTYPE_DECL(x, ...) TWIN_TPL(x, ASCENDC_TPL_DTYPE, 8, __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_DECL(x, ...) TWIN_TPL(x, ASCENDC_TPL_DTYPE, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(x, ...) TWIN_TPL(x, ASCENDC_TPL_FORMAT, 8, __VA_ARGS__)
#define ASCENDC_TPL_UINT_DECL(x, width, ...) \
  TWIN_TPL(x, ASCENDC_TPL_UINT, width, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_DECL(x, ...) TWIN_TPL(x, ASCENDC_TPL_BOOL, 1, __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_DECL(x, ...) \
  TWIN_TPL(x, ASCENDC_TPL_SHARED_KERNEL_TYPE, 8, __VA_ARGS__)
// Which combinations exist is read from the text (twin/template.py).
#define ASCENDC_TPL_DTYPE_SEL(x, ...) 0
#define ASCENDC_TPL_DATATYPE_SEL(x, ...) 0
#define ASCENDC_TPL_FORMAT_SEL(x, ...) 0
#define ASCENDC_TPL_UINT_SEL(x, ...) 0
#define ASCENDC_TPL_BOOL_SEL(x, ...) 0
#define ASCENDC_TPL_KERNEL_TYPE_SEL(x) 0
#define ASCENDC_TPL_TILING_STRUCT_SEL(x) 0
#define ASCENDC_TPL_ARGS_SEL(...) 0
#define ASCENDC_TPL_ARGS_DECL(op, ...) \
  static constexpr ::AscendC::ParamStruct g_tilingDeclareParams[] = {__VA_ARGS__}
#define ASCENDC_TPL_SEL(...) static_assert(true, "")

#define GET_TPL_TILING_KEY(...) \
  ::AscendC::EncodeTilingKey(g_tilingDeclareParams, ::AscendC::TwinValues(__VA_ARGS__))
#define ASCENDC_TPL_SEL_PARAM(context, ...)                        \
  do {                                                             \
    (context)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__));      \
  } while (0)

namespace AscendC {

// Values as numbers, whatever integer or enumeration they come as; a braced list works as well.
template <typename... Ts>
std::array<std::uint64_t, sizeof...(Ts)> TwinValues(Ts... values) {
  return {static_cast<std::uint64_t>(values)...};
}
// A copy: the list itself lives no longer than the call. A key has 64 bits, and so 64 values at most.
struct TwinListed {
  std::uint64_t values[64];
  std::size_t count;
  std::size_t size() const { return count; }
  const std::uint64_t *begin() const { return values; }
};
inline TwinListed TwinValues(std::initializer_list<std::uint64_t> values) {
  TwinListed listed{};
  for (std::uint64_t value : values) {
    if (listed.count < 64) listed.values[listed.count++] = value;
  }
  return listed;
}

}  // namespace AscendC
