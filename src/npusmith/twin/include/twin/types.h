// Keywords, scalar types, positions and enumerations of the documented API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define TWIN_KERNEL  // in any unit that a kernel is compiled in
#include "twin/blocks.h"
#include "twin/chip.h"
#include "twin/half.h"
#include "twin/layouts.h"
#include "twin/site.h"

// Address spaces and function kinds mean nothing on a CPU.
#define __aicore__
#define __kfc_workspace__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __vector__
#define __cube__
#define __mix__(...)
#ifndef __inline__
#define __inline__ inline
#endif
#ifndef __forceinline__
#define __forceinline__ inline
#endif
#ifndef __force_inline__
#define __force_inline__ inline
#endif
#define GM_ADDR __gm__ std::uint8_t *
#define aicore [maybe_unused]

#define __NPU_ARCH__ TWIN_NPU_ARCH
#define __CCE_AICORE__ 220
// A kernel is compiled for each kind of core that it runs on.
#ifdef TWIN_CUBE
#define __DAV_C220_CUBE__ 1
#else
#define __DAV_C220_VEC__ 1
#endif

using float16_t = half;
using float32_t = float;

// Scalar pipes of one core, with the names that the C-style calls use.
enum pipe_t {
  PIPE_S = 0,
  PIPE_V,
  PIPE_M,
  PIPE_MTE1,
  PIPE_MTE2,
  PIPE_MTE3,
  PIPE_ALL,
  PIPE_MTE4,
  PIPE_MTE5,
  PIPE_V2,
  PIPE_FIX = 10
};

enum event_t {
  EVENT_ID0 = 0,
  EVENT_ID1,
  EVENT_ID2,
  EVENT_ID3,
  EVENT_ID4,
  EVENT_ID5,
  EVENT_ID6,
  EVENT_ID7
};


using TEventID = std::int8_t;

namespace AscendC {

using ::TEventID;

enum class TPosition : std::uint8_t {
  GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC,
  SPM, SHM, TSCM, C2PIPE2GM, MAX
};
using QuePosition = TPosition;

enum class HardEvent : std::uint8_t {
  MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1,
  MTE1_MTE3, MTE1_V, MTE2_M, M_MTE2, V_MTE1, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2,
  MTE2_S, S_MTE3, MTE3_S, MTE2_FIX, FIX_MTE2, FIX_S, M_S, FIX_MTE3, MTE1_FIX, FIX_MTE1, FIX_FIX,
  FIX_V, V_FIX, S_FIX, S_M, MAX
};

enum class RoundMode : std::uint8_t {
  CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD
};
enum class CMPMODE : std::uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : std::uint8_t {
  VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE
};
enum class ReduceType : std::uint8_t { SUM, MAX, MIN };
enum class MaskMode : std::uint8_t { NORMAL, COUNTER };
enum class ReduceMode : std::uint8_t { REDUCE_MAX, REDUCE_MIN, REDUCE_SUM };
enum class ReduceOrder : std::uint8_t {
  ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX
};
enum class CacheMode : std::uint8_t {
  CACHE_MODE_DISABLE, CACHE_MODE_NORMAL, CACHE_MODE_LAST, CACHE_MODE_PERSISTENT
};
enum class CacheRwMode : std::uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : std::uint8_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : std::uint8_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum KernelMetaType : std::uint8_t {
  KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIC_1_0,
  KERNEL_TYPE_MIX_AIC_1_1, KERNEL_TYPE_MIX_AIC_1_2,
  KERNEL_TYPE_MIX_VECTOR_CORE  // of another chip: here as AIV_ONLY
};

constexpr std::int32_t AIC = 1;
constexpr std::int32_t AIV = 2;
constexpr std::int32_t MIX = 3;
#ifdef TWIN_CUBE
constexpr std::int32_t g_coreType = AIC;
#else
constexpr std::int32_t g_coreType = AIV;
#endif

constexpr std::int32_t ONE_REPEAT_BYTE_SIZE = TWIN_REPEAT_BYTES;
constexpr std::int32_t DEFAULT_BLK_NUM = ONE_REPEAT_BYTE_SIZE / ONE_BLK_SIZE;
constexpr std::int32_t ONE_BLK_HALF_NUM = ONE_BLK_SIZE / 2;
constexpr std::int32_t ONE_BLK_FLOAT_NUM = ONE_BLK_SIZE / 4;
// Bytes of a type, and its elements in a block and in a repeat, as kernels of libraries name them.
constexpr std::uint8_t B8_BYTE_SIZE = 1;
constexpr std::uint8_t B16_BYTE_SIZE = 2;
constexpr std::uint8_t B32_BYTE_SIZE = 4;
constexpr std::uint8_t B64_BYTE_SIZE = 8;
constexpr std::uint8_t B16_DATA_NUM_PER_BLOCK = ONE_BLK_SIZE / 2;
constexpr std::uint8_t B32_DATA_NUM_PER_BLOCK = ONE_BLK_SIZE / 4;
constexpr std::int32_t B16_DATA_NUM_PER_REPEAT = ONE_REPEAT_BYTE_SIZE / 2;
constexpr std::int32_t B32_DATA_NUM_PER_REPEAT = ONE_REPEAT_BYTE_SIZE / 4;
constexpr std::uint32_t B64_DATA_NUM_PER_REPEAT = ONE_REPEAT_BYTE_SIZE / 8;
constexpr std::int32_t ONE_REPEAT_HALF_SIZE = ONE_REPEAT_BYTE_SIZE / 2;
constexpr std::int32_t ONE_REPEAT_FLOAT_SIZE = ONE_REPEAT_BYTE_SIZE / 4;
constexpr std::uint32_t TWO = 2;
constexpr float PI = 3.14159265358979323846f;
constexpr std::int32_t BRCB_BROADCAST_NUMBER = 8;
constexpr std::int32_t MAX_REPEAT_TIMES = 255;
constexpr std::uint8_t DEFAULT_BLK_STRIDE = 1;
constexpr std::uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr std::uint8_t HALF_DEFAULT_REPEAT_STRIDE = 4;
constexpr std::uint16_t DEFAULT_DATA_COPY_NBURST = 1;
constexpr std::uint8_t DEFAULT_DATA_COPY_STRIDE = 0;
constexpr std::uint8_t ONE_FOURTH_DEFAULT_REPEAT_STRIDE = 2;
constexpr std::int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;
constexpr std::uint32_t RESERVED_WORKSPACE = 16 * 1024 * 1024;
constexpr std::uint32_t DROPOUT_MODE_BYTE_MISALIGN = 1;
constexpr std::uint32_t DROPOUT_MODE_BYTE_ALIGN = 2;
constexpr std::uint32_t DROPOUT_MODE_BIT_ALIGN = 3;
constexpr std::uint32_t DROPOUT_MODE_BIT_MISALIGN = 4;
// Flags between cores that operators of matrices name.
constexpr std::uint16_t SYNC_AIC_FLAG = 11;
constexpr std::uint16_t SYNC_AIV_FLAG = 12;
constexpr std::uint16_t SYNC_AIC_AIV_FLAG = 13;
constexpr std::uint16_t SYNC_AIV_ONLY_ALL = 14;
// Sizes of on-chip memory, as kernels of libraries name them.
constexpr std::uint32_t TOTAL_UB_SIZE = TWIN_UB_TOTAL_BYTES;
constexpr std::uint32_t TOTAL_L1_SIZE = TWIN_L1_BYTES;
constexpr std::uint32_t TOTAL_L0A_SIZE = TWIN_L0A_BYTES;
constexpr std::uint32_t TOTAL_L0B_SIZE = TWIN_L0B_BYTES;
constexpr std::uint32_t TOTAL_L0C_SIZE = TWIN_L0C_BYTES;
constexpr std::uint64_t FULL_MASK = 0xFFFFFFFFFFFFFFFFu;
constexpr std::uint64_t MASK_PLACEHOLDER = 0;
constexpr std::uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

// The C++ type behind a tensor's element type.
template <typename T>
using PrimT = T;

using TrueType = std::true_type;
using FalseType = std::false_type;

template <typename A, typename B>
struct IsSameType : std::is_same<A, B> {};

template <bool condition, typename A, typename B>
struct Conditional : std::conditional<condition, A, B> {};

}  // namespace AscendC

namespace twin {
// A number, or the place of one in a tensor, which names its type.
template <typename A, typename = void>
struct Numeric {
  static constexpr bool kIs = std::is_arithmetic_v<A>;
  using Type = A;
};
template <typename A>
struct Numeric<A, std::void_t<typename A::TwinNumber>> {
  static constexpr bool kIs = std::is_arithmetic_v<typename A::TwinNumber>;
  using Type = typename A::TwinNumber;
};
template <typename A>
inline constexpr bool kNumber = Numeric<A>::kIs;
// The value that these bits are in another type, as `*(T *)(&bits)` reads it on the device.
template <typename T, typename U>
constexpr T Bits(const U &bits) {
  static_assert(sizeof(T) == sizeof(U), "as many bytes as the constant has");
  return __builtin_bit_cast(T, bits);
}
template <typename A>
using NumericType = typename Numeric<A>::Type;
}  // namespace twin

namespace AscendC {

template <typename A, typename B>
__aicore__ constexpr auto DivCeil(A a, B b) {
  return b == 0 ? a : (a + b - 1) / b;
}
template <typename A, typename B>
__aicore__ constexpr auto CeilDivision(A a, B b) {
  return b == 0 ? a : (a + b - 1) / b;
}
template <typename A, typename B>
__aicore__ constexpr auto AlignUp(A a, B b) {
  return b == 0 ? a : (a + b - 1) / b * b;
}

// Bits of a float.
constexpr std::uint32_t F32_INF = 0x7f800000;
constexpr std::uint32_t F32_NEG_INF = 0xff800000;
constexpr std::uint32_t F32_NAN = 0x7fc00000;
constexpr std::uint32_t CACHE_LINE_SIZE = 64;  // of the scalar unit's data cache
constexpr std::uint32_t ONE_BYTE_BIT_SIZE = 8;

// Functions that kernels also have of their own; the empty pack lets those win.
#define TWIN_ROUNDING(name, way)                                                              \
  template <typename A, typename B, typename... None,                                         \
            std::enable_if_t<twin::kNumber<A> && twin::kNumber<B> && sizeof...(None) == 0,    \
                             int> = 0>                                                        \
  __aicore__ constexpr auto name(A a, B b, None...) {                                         \
    return way(a, b);                                                                         \
  }
TWIN_ROUNDING(Ceil, CeilDivision)
TWIN_ROUNDING(CeilDiv, CeilDivision)
TWIN_ROUNDING(CeilAlign, AlignUp)
TWIN_ROUNDING(Align, AlignUp)
#undef TWIN_ROUNDING

}  // namespace AscendC


using AscendC::AIC;
using AscendC::AIV;
using AscendC::g_coreType;

// Built in with the device compiler, so that kernels call them without any namespace. The empty
// pack lets any min or max of the kernel's own, or of std, win.
template <typename A, typename B, typename... None,
          std::enable_if_t<twin::kNumber<A> && twin::kNumber<B> && sizeof...(None) == 0, int> = 0>
constexpr std::common_type_t<twin::NumericType<A>, twin::NumericType<B>> min(A a, B b, None...) {
  return a < b ? a : b;
}
template <typename A, typename B, typename... None,
          std::enable_if_t<twin::kNumber<A> && twin::kNumber<B> && sizeof...(None) == 0, int> = 0>
constexpr std::common_type_t<twin::NumericType<A>, twin::NumericType<B>> max(A a, B b, None...) {
  return a < b ? b : a;
}

// Branches of a kernel that runs on both kinds of core.
#define ASCEND_IS_AIC (::AscendC::g_coreType == ::AscendC::AIC)
#define ASCEND_IS_AIV (::AscendC::g_coreType == ::AscendC::AIV)
#define ASCEND_IS_NOT_AIC (!ASCEND_IS_AIC)
#define ASCEND_IS_NOT_AIV (!ASCEND_IS_AIV)

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
