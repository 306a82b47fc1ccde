// Vector instructions and moves under their C-style names: pointers into UB, strides in blocks, the
// mask register as it stands.
#pragma once

#include "twin/compare.h"
#include "twin/compound.h"
#include "twin/copy.h"
#include "twin/debug.h"
#include "twin/reduce.h"
#include "twin/shuffle.h"
#include "twin/sync.h"

namespace twin {

inline Walk ByRegister(std::int64_t repeats) { return Masked(false, std::uint64_t{0}, repeats); }

template <typename T>
Lane RawLane(const T *pointer, std::int64_t block, std::int64_t repeat) {
  return {RawView(pointer), block, repeat};
}
template <typename T>
constexpr DType RawTag() {
  if constexpr (kElement<T>) return TagOf<T>();
  else return DType::kU8;
}
inline Gm RawGm(const void *pointer) {
  return {static_cast<std::uint8_t *>(const_cast<void *>(pointer)), -1};
}

}  // namespace twin

// ---- one, two and three operands: dst, sources, repeat, block strides, repeat strides

#define TWIN_RAW_BINARY(name, row, op)                                                            \
  template <typename T>                                                                           \
  void name(__ubuf__ T *dst, __ubuf__ T *src0, __ubuf__ T *src1, twin::Byte repeat,               \
            std::int64_t dstBlk, std::int64_t src0Blk, std::int64_t src1Blk, std::int64_t dstRep, \
            std::int64_t src0Rep, std::int64_t src1Rep, twin::Site site = twin::Here()) {         \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::RawLane(dst, dstBlk, dstRep), \
                   twin::RawLane(src0, src0Blk, src0Rep), twin::RawLane(src1, src1Blk, src1Rep),  \
                   twin::ByRegister(repeat.value));                                               \
  }
#define TWIN_RAW_UNARY(name, row, op)                                                             \
  template <typename T>                                                                           \
  void name(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstBlk,             \
            std::int64_t srcBlk, std::int64_t dstRep, std::int64_t srcRep,                        \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::RawLane(dst, dstBlk, dstRep), \
                   twin::RawLane(src, srcBlk, srcRep), twin::ByRegister(repeat.value));           \
  }
#define TWIN_RAW_SCALAR(name, row, op)                                                            \
  template <typename T, typename U>                                                               \
  void name(__ubuf__ T *dst, __ubuf__ T *src, U scalar, twin::Byte repeat, std::int64_t dstBlk,   \
            std::int64_t srcBlk, std::int64_t dstRep, std::int64_t srcRep,                        \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    const T value = static_cast<T>(scalar);                                                       \
    twin::ScalarOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::TagOf<T>(),            \
                   twin::RawLane(dst, dstBlk, dstRep), twin::RawLane(src, srcBlk, srcRep),        \
                   &value, twin::ByRegister(repeat.value));                                       \
  }

TWIN_RAW_BINARY_ROWS(TWIN_RAW_BINARY)
TWIN_RAW_UNARY_ROWS(TWIN_RAW_UNARY)
TWIN_RAW_SCALAR_ROWS(TWIN_RAW_SCALAR)
#undef TWIN_RAW_BINARY
#undef TWIN_RAW_UNARY
#undef TWIN_RAW_SCALAR

template <typename T, typename U>
void vshr(__ubuf__ T *dst, __ubuf__ T *src, U amount, twin::Byte repeat, std::int64_t dstBlk,
          std::int64_t srcBlk, std::int64_t dstRep, std::int64_t srcRep, bool rounds = false,
          twin::Site site = twin::Here()) {
  const T value = static_cast<T>(amount);
  twin::ScalarOp({"vshr", site}, rounds ? twin::Op::kShiftRightRound : twin::Op::kShiftRight,
                 twin::TagOf<T>(), twin::TagOf<T>(), twin::RawLane(dst, dstBlk, dstRep),
                 twin::RawLane(src, srcBlk, srcRep), &value, twin::ByRegister(repeat.value));
}
// The source strides of vector_dup mean nothing.
template <typename T, typename U>
void vector_dup(__ubuf__ T *dst, U scalar, twin::Byte repeat, std::int64_t dstBlk, std::int64_t,
                std::int64_t dstRep, std::int64_t = 0, twin::Site site = twin::Here()) {
  static_assert(AscendC::kCanDuplicate<T>, "vector_dup on dav-2201 takes 16- and 32-bit types");
  const T value = static_cast<T>(scalar);
  // a repeat of one block may have a block stride of 0
  twin::FillOp({"vector_dup", site}, twin::TagOf<T>(), twin::RawLane(dst, dstBlk, dstRep), &value,
               twin::ByRegister(repeat.value));
}
template <typename T>
void vcopy(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstBlk,
           std::int64_t srcBlk, std::int64_t dstRep, std::int64_t srcRep,
           twin::Site site = twin::Here()) {
  twin::VectorOp({"vcopy", site}, twin::Op::kCopy, twin::TagOf<T>(),
                 twin::RawLane(dst, dstBlk, dstRep), twin::RawLane(src, srcBlk, srcRep),
                 twin::ByRegister(repeat.value));
}

// ---- vconv_<from>2<to><direction>

#define TWIN_RAW_CAST(name, To, From, mode)                                                       \
  inline void name(__ubuf__ To *dst, __ubuf__ From *src, twin::Byte repeat, std::int64_t dstBlk,  \
                   std::int64_t srcBlk, std::int64_t dstRep, std::int64_t srcRep,                 \
                   twin::Site site = twin::Here()) {                                              \
    twin::CastAny<To, From>({#name, site}, AscendC::RoundMode::mode,                              \
                            twin::RawLane(dst, dstBlk, dstRep),                                   \
                            twin::RawLane(src, srcBlk, srcRep), twin::ByRegister(repeat.value));  \
  }
#define TWIN_RAW_FIVE(name, To, From)                                                             \
  TWIN_RAW_CAST(name##r, To, From, CAST_RINT)                                                     \
  TWIN_RAW_CAST(name##f, To, From, CAST_FLOOR)                                                    \
  TWIN_RAW_CAST(name##c, To, From, CAST_CEIL)                                                     \
  TWIN_RAW_CAST(name##a, To, From, CAST_ROUND)                                                    \
  TWIN_RAW_CAST(name##z, To, From, CAST_TRUNC)

TWIN_RAW_CAST(vconv_f162f32, float, half, CAST_NONE)
TWIN_RAW_CAST(vconv_bf162f32, float, bfloat16_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s82f16, half, std::int8_t, CAST_NONE)
TWIN_RAW_CAST(vconv_u82f16, half, std::uint8_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s42f16, half, AscendC::int4b_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s162f32, float, std::int16_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s162f16, half, std::int16_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s322f32, float, std::int32_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s322s16, std::int16_t, std::int32_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s322s64, std::int64_t, std::int32_t, CAST_NONE)
TWIN_RAW_CAST(vconv_s642s32, std::int32_t, std::int64_t, CAST_NONE)
TWIN_RAW_CAST(vconv_deq, half, std::int32_t, CAST_NONE)
TWIN_RAW_CAST(vconv_f322f16, half, float, CAST_NONE)
TWIN_RAW_CAST(vconv_f322f16o, half, float, CAST_ODD)
TWIN_RAW_CAST(vconv_f162s8, std::int8_t, half, CAST_NONE)
TWIN_RAW_CAST(vconv_f162u8, std::uint8_t, half, CAST_NONE)
TWIN_RAW_CAST(vconv_f162s4, AscendC::int4b_t, half, CAST_NONE)
TWIN_RAW_FIVE(vconv_f322f16, half, float)
TWIN_RAW_FIVE(vconv_f322bf16, bfloat16_t, float)
TWIN_RAW_FIVE(vconv_f322f32, float, float)
TWIN_RAW_FIVE(vconv_f322s16, std::int16_t, float)
TWIN_RAW_FIVE(vconv_f322s32, std::int32_t, float)
TWIN_RAW_FIVE(vconv_f322s64, std::int64_t, float)
TWIN_RAW_FIVE(vconv_f162s16, std::int16_t, half)
TWIN_RAW_FIVE(vconv_f162s32, std::int32_t, half)
TWIN_RAW_FIVE(vconv_f162s8, std::int8_t, half)
TWIN_RAW_FIVE(vconv_f162u8, std::uint8_t, half)
TWIN_RAW_FIVE(vconv_f162s4, AscendC::int4b_t, half)
TWIN_RAW_FIVE(vconv_bf162s32, std::int32_t, bfloat16_t)
TWIN_RAW_FIVE(vconv_s162f16, half, std::int16_t)
TWIN_RAW_FIVE(vconv_s322f32, float, std::int32_t)
TWIN_RAW_FIVE(vconv_s642f32, float, std::int64_t)
#undef TWIN_RAW_FIVE
#undef TWIN_RAW_CAST

// ---- comparisons to bits, and the choice by them

#define TWIN_RAW_COMPARE(name, mode)                                                              \
  template <typename T>                                                                           \
  void vcmpv_##name(__ubuf__ std::uint8_t *dst, __ubuf__ T *src0, __ubuf__ T *src1,               \
                    twin::Byte repeat, std::int64_t, std::int64_t src0Blk, std::int64_t src1Blk,  \
                    std::int64_t, std::int64_t src0Rep, std::int64_t src1Rep,                     \
                    twin::Site site = twin::Here()) {                                             \
    const twin::Lane b = twin::RawLane(src1, src1Blk, src1Rep);                                   \
    twin::CompareOp({"vcmpv_" #name, site}, twin::TagOf<T>(), AscendC::CMPMODE::mode,             \
                    twin::RawView(dst), twin::RawLane(src0, src0Blk, src0Rep), &b, nullptr,       \
                    twin::ByRegister(repeat.value));                                              \
  }                                                                                               \
  template <typename T, typename U>                                                               \
  void vcmpvs_##name(__ubuf__ std::uint8_t *dst, __ubuf__ T *src, U scalar, twin::Byte repeat,    \
                     std::int64_t, std::int64_t srcBlk, std::int64_t, std::int64_t srcRep,        \
                     twin::Site site = twin::Here()) {                                            \
    const T value = static_cast<T>(scalar);                                                       \
    twin::CompareOp({"vcmpvs_" #name, site}, twin::TagOf<T>(), AscendC::CMPMODE::mode,            \
                    twin::RawView(dst), twin::RawLane(src, srcBlk, srcRep), nullptr, &value,      \
                    twin::ByRegister(repeat.value));                                              \
  }                                                                                               \
  template <typename T>                                                                           \
  void vcmp_##name(__ubuf__ T *src0, __ubuf__ T *src1, twin::Byte, std::int64_t,                  \
                   std::int64_t src0Blk, std::int64_t src1Blk, std::int64_t,                      \
                   std::int64_t src0Rep, std::int64_t src1Rep,                                    \
                   twin::Site site = twin::Here()) {                                              \
    twin::CompareToRegister({"vcmp_" #name, site}, twin::TagOf<T>(), AscendC::CMPMODE::mode,      \
                            twin::RawLane(src0, src0Blk, src0Rep),                                \
                            twin::RawLane(src1, src1Blk, src1Rep), twin::ByRegister(1));          \
  }
TWIN_RAW_COMPARE(eq, EQ)
TWIN_RAW_COMPARE(ne, NE)
TWIN_RAW_COMPARE(lt, LT)
TWIN_RAW_COMPARE(gt, GT)
TWIN_RAW_COMPARE(le, LE)
TWIN_RAW_COMPARE(ge, GE)
#undef TWIN_RAW_COMPARE

// By the CMPMASK register.
template <typename T>
void vsel(__ubuf__ T *dst, __ubuf__ T *src0, __ubuf__ T *src1, twin::Byte repeat,
          std::int64_t dstBlk, std::int64_t src0Blk, std::int64_t src1Blk, std::int64_t dstRep,
          std::int64_t src0Rep, std::int64_t src1Rep, twin::Site site = twin::Here()) {
  const twin::Lane b = twin::RawLane(src1, src1Blk, src1Rep);
  twin::SelectOp({"vsel", site}, twin::TagOf<T>(), AscendC::SELMODE::VSEL_CMPMASK_SPR,
                 twin::RawLane(dst, dstBlk, dstRep), nullptr,
                 twin::RawLane(src0, src0Blk, src0Rep), &b, nullptr,
                 twin::ByRegister(repeat.value));
}
inline void set_cmpmask(__ubuf__ void *src, twin::Site site = twin::Here()) {
  twin::MoveCompareMask({"set_cmpmask", site}, twin::RawView(src), false);
}
inline void get_cmpmask(__ubuf__ void *dst, twin::Site site = twin::Here()) {
  twin::MoveCompareMask({"get_cmpmask", site}, twin::RawView(dst), true);
}

// ---- reductions: of repeats, of blocks, of pairs

#define TWIN_RAW_FOLD(name, fold)                                                                 \
  template <typename T>                                                                           \
  void vc##name(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstRep,         \
                std::int64_t srcBlk, std::int64_t srcRep, int order = 0,                          \
                twin::Site site = twin::Here()) {                                                 \
    twin::FoldRepeat({"vc" #name, site}, fold, twin::TagOf<T>(), twin::RawView(dst),              \
                     twin::RawView(src), twin::ByRegister(repeat.value),                          \
                     {dstRep, srcBlk, srcRep}, static_cast<AscendC::ReduceOrder>(order));         \
  }
TWIN_RAW_FOLD(max, twin::Fold::kMax)
TWIN_RAW_FOLD(min, twin::Fold::kMin)
#undef TWIN_RAW_FOLD
#define TWIN_RAW_GROUP(name, fold)                                                                \
  template <typename T>                                                                           \
  void vcg##name(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstRep,        \
                 std::int64_t srcBlk, std::int64_t srcRep, twin::Site site = twin::Here()) {      \
    twin::FoldBlock({"vcg" #name, site}, fold, twin::TagOf<T>(), twin::RawView(dst),              \
                    twin::RawView(src), twin::ByRegister(repeat.value),                           \
                    {dstRep, srcBlk, srcRep});                                                    \
  }
TWIN_RAW_GROUP(add, twin::Fold::kSum)
TWIN_RAW_GROUP(max, twin::Fold::kMax)
TWIN_RAW_GROUP(min, twin::Fold::kMin)
#undef TWIN_RAW_GROUP
template <typename T>
void vcpadd(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstRep,
            std::int64_t srcBlk, std::int64_t srcRep, twin::Site site = twin::Here()) {
  twin::FoldPair({"vcpadd", site}, twin::TagOf<T>(), twin::RawView(dst), twin::RawView(src),
                 twin::ByRegister(repeat.value), {dstRep, srcBlk, srcRep});
}

// ---- moves inside UB

inline void vtranspose(__ubuf__ std::uint16_t *dst, __ubuf__ std::uint16_t *src,
                       twin::Site site = twin::Here()) {
  twin::TransposeOp({"vtranspose", site}, twin::RawView(dst), twin::RawView(src));
}
template <typename T>
void vbrcb(__ubuf__ T *dst, __ubuf__ T *src, std::int64_t dstBlk, std::int64_t dstRep,
           twin::Byte repeat, twin::Site site = twin::Here()) {
  twin::BrcbOp({"vbrcb", site}, twin::TagOf<T>(), twin::RawView(dst), twin::RawView(src),
               repeat.value, dstBlk, dstRep);
}

// Addresses of 8 rows each; a transposition takes two neighbours for its 16 rows.
enum ub_addr8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };
inline void set_va_reg_sb(ub_addr8_t index, const std::uint64_t *rows,
                          twin::Site site = twin::Here()) {
  twin::SetAddresses({"set_va_reg_sb", site}, index, rows);
}
inline void scatter_vnchwconv_b16(ub_addr8_t dst, ub_addr8_t src, twin::Byte repeat,
                                  std::int64_t dstRep, std::int64_t srcRep,
                                  twin::Site site = twin::Here()) {
  twin::Scatter5HD({"scatter_vnchwconv_b16", site}, twin::DType::kU16, dst, src, false, false,
                   repeat.value, dstRep, srcRep);
}
inline void scatter_vnchwconv_b32(ub_addr8_t dst, ub_addr8_t src, twin::Byte repeat,
                                  std::int64_t dstRep, std::int64_t srcRep,
                                  twin::Site site = twin::Here()) {
  twin::Scatter5HD({"scatter_vnchwconv_b32", site}, twin::DType::kU32, dst, src, false, false,
                   repeat.value, dstRep, srcRep);
}
inline void scatter_vnchwconv_b8(ub_addr8_t dst, ub_addr8_t src, twin::Byte repeat,
                                 std::int64_t dstRep, std::int64_t srcRep, bool dstHigh,
                                 bool srcHigh, twin::Site site = twin::Here()) {
  twin::Scatter5HD({"scatter_vnchwconv_b8", site}, twin::DType::kU8, dst, src, dstHigh, srcHigh,
                   repeat.value, dstRep, srcRep);
}

// ---- copies: sid, bursts, their length and the gaps between them in blocks

template <typename T, typename U>
void copy_ubuf_to_ubuf(__ubuf__ T *dst, __ubuf__ U *src, std::uint8_t, twin::Word bursts,
                       twin::Word length, twin::Word srcGap, twin::Word dstGap,
                       twin::Site site = twin::Here()) {
  twin::CopyOverBlocks({"copy_ubuf_to_ubuf", site}, twin::DType::kU8, twin::RawView(dst),
                       twin::RawView(src),
                       {bursts.value, length.value, srcGap.value, dstGap.value});
}
template <typename T, typename U>
void copy_gm_to_ubuf(__ubuf__ T *dst, __gm__ U *src, std::uint8_t, twin::Word bursts,
                     twin::Word length, twin::Word srcGap, twin::Word dstGap,
                     twin::Site site = twin::Here()) {
  twin::CopyInBlocks({"copy_gm_to_ubuf", site}, twin::DType::kU8, twin::RawView(dst),
                     twin::RawGm(src), {bursts.value, length.value, srcGap.value, dstGap.value});
}
// The element type matters to the atomic mode only, which is told it by set_atomic_f32 and kin.
template <typename T, typename U>
void copy_ubuf_to_gm(__gm__ T *dst, __ubuf__ U *src, std::uint8_t, twin::Word bursts,
                     twin::Word length, twin::Word srcGap, twin::Word dstGap,
                     twin::Site site = twin::Here()) {
  twin::CopyOutBlocks({"copy_ubuf_to_gm", site}, twin::RawTag<T>(), twin::RawGm(dst),
                      twin::RawView(src),
                      {bursts.value, length.value, srcGap.value, dstGap.value});
}

// The same with lengths and the gap in global memory in bytes, padding in elements.
#define TWIN_RAW_ALIGNED(bits, tag)                                                               \
  template <typename T, typename U>                                                               \
  void copy_gm_to_ubuf_align_b##bits(__ubuf__ T *dst, __gm__ U *src, std::uint8_t,                \
                                     twin::Word bursts, std::uint32_t bytes, std::uint8_t left,   \
                                     std::uint8_t right, std::uint32_t srcGap,                    \
                                     std::uint32_t dstGap, twin::Site site = twin::Here()) {      \
    twin::CopyInPadded({"copy_gm_to_ubuf_align_b" #bits, site}, tag, twin::RawView(dst),          \
                       twin::RawGm(src), {bursts.value, bytes, srcGap, dstGap,                    \
                                          left + right > 0, left, right, 0});                     \
  }                                                                                               \
  template <typename T, typename U>                                                               \
  void copy_ubuf_to_gm_align_b##bits(__gm__ T *dst, __ubuf__ U *src, std::uint8_t,                \
                                     twin::Word bursts, std::uint32_t bytes, std::uint8_t,        \
                                     std::uint8_t, std::uint32_t srcGap, std::uint32_t dstGap,    \
                                     twin::Site site = twin::Here()) {                            \
    twin::CopyOutPadded({"copy_ubuf_to_gm_align_b" #bits, site}, twin::RawTag<T>(),               \
                        twin::RawGm(dst), twin::RawView(src),                                     \
                        {bursts.value, bytes, srcGap, dstGap, false, 0, 0, 0});                   \
  }
TWIN_RAW_ALIGNED(8, twin::DType::kU8)
TWIN_RAW_ALIGNED(16, twin::DType::kU16)
TWIN_RAW_ALIGNED(32, twin::DType::kU32)
#undef TWIN_RAW_ALIGNED

// ---- registers

inline std::int64_t get_ctrl(twin::Site site = twin::Here()) {
  return twin::GetCtrl({"get_ctrl", site}, 0, 63);
}
inline void set_ctrl(std::int64_t value, twin::Site site = twin::Here()) {
  twin::SetCtrl({"set_ctrl", site}, 0, 63, value);
}
constexpr std::int64_t sbitset1(std::int64_t value, int bit) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) | 1ull << bit);
}
constexpr std::int64_t sbitset0(std::int64_t value, int bit) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) & ~(1ull << bit));
}
inline void set_deqscale(half scale, twin::Site site = twin::Here()) {
  twin::SetDeq({"set_deqscale", site}, static_cast<float>(scale));
}
inline void set_deqscale(std::uint64_t word, twin::Site site = twin::Here()) {
  twin::SetDeqWord({"set_deqscale", site}, word);
}
#define TWIN_RAW_ATOMIC(name, tag)                                                                \
  inline void set_atomic_##name(twin::Site site = twin::Here()) {                                 \
    twin::SetAtomicElement({"set_atomic_" #name, site}, tag);                                     \
  }
TWIN_RAW_ATOMIC(f32, twin::DType::kF32)
TWIN_RAW_ATOMIC(f16, twin::DType::kF16)
TWIN_RAW_ATOMIC(bf16, twin::DType::kBF16)
TWIN_RAW_ATOMIC(s32, twin::DType::kI32)
TWIN_RAW_ATOMIC(s16, twin::DType::kI16)
TWIN_RAW_ATOMIC(s8, twin::DType::kI8)
#undef TWIN_RAW_ATOMIC
inline void set_atomic_add(twin::Site site = twin::Here()) {
  twin::SetAtomicOperation({"set_atomic_add", site}, twin::Atomic::kAdd);
}
inline void set_atomic_max(twin::Site site = twin::Here()) {
  twin::SetAtomicOperation({"set_atomic_max", site}, twin::Atomic::kMax);
}
inline void set_atomic_min(twin::Site site = twin::Here()) {
  twin::SetAtomicOperation({"set_atomic_min", site}, twin::Atomic::kMin);
}
inline std::int64_t get_max_min_cnt(twin::Site site = twin::Here()) {
  std::int64_t value = 0, index = 0;
  twin::ReadFold({"get_max_min_cnt", site}, false, 4, &value, &index);
  return index << 32 | value;
}
inline std::int64_t get_system_cycle() { return twin::Cycles(); }
inline std::int64_t get_sys_cnt() { return twin::Cycles(); }
inline void trap(twin::Site site = twin::Here()) { AscendC::Trap(site); }

enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
inline void dsb(mem_dsb_t, twin::Site site = twin::Here()) { twin::Barrier({"dsb", site}, PIPE_ALL); }
constexpr AscendC::CacheLine SINGLE_CACHE_LINE = AscendC::CacheLine::SINGLE_CACHE_LINE;
constexpr AscendC::CacheLine ENTIRE_DATA_CACHE = AscendC::CacheLine::ENTIRE_DATA_CACHE;
constexpr AscendC::DcciDst CACHELINE_OUT = AscendC::DcciDst::CACHELINE_OUT;
constexpr AscendC::DcciDst CACHELINE_ALL = AscendC::DcciDst::CACHELINE_ALL;
constexpr AscendC::DcciDst CACHELINE_UB = AscendC::DcciDst::CACHELINE_UB;
constexpr AscendC::DcciDst CACHELINE_ATOMIC = AscendC::DcciDst::CACHELINE_ATOMIC;

// ---- bits of a scalar

constexpr std::int64_t bcnt1(std::uint64_t value) { return __builtin_popcountll(value); }
constexpr std::int64_t bcnt0(std::uint64_t value) { return 64 - __builtin_popcountll(value); }
constexpr std::int64_t clz(std::uint64_t value) { return value == 0 ? 64 : __builtin_clzll(value); }
constexpr std::int64_t sff1(std::uint64_t value) { return value == 0 ? -1 : __builtin_ctzll(value); }
constexpr std::int64_t sff0(std::uint64_t value) { return sff1(~value); }
constexpr std::int64_t sflbits(std::int64_t value) {
  return clz(static_cast<std::uint64_t>(value < 0 ? ~value : value)) - 1;
}

// ---- names of the vendor's own layer that published kernels call, on pointers into UB

namespace AscendC {

template <typename T, typename U>
void DuplicateImpl(__ubuf__ T *dst, U scalar, std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(kCanDuplicate<T>, "Duplicate on dav-2201 takes 16- and 32-bit types");
  const T value = static_cast<T>(scalar);
  twin::FillOp({"DuplicateImpl", site}, twin::TagOf<T>(), {twin::RawView(dst)}, &value,
               twin::Counted(count));
}
template <typename T>
void DataCopyUB2GMImpl(__gm__ T *dst, __ubuf__ T *src, const DataCopyParams &how,
                       twin::Site site = twin::Here()) {
  twin::CopyOutBlocks({"DataCopyUB2GMImpl", site}, twin::TagOf<T>(), twin::RawGm(dst),
                      twin::RawView(src), twin::BlocksOf(how));
}
template <typename T>
void DataCopyGM2UBImpl(__ubuf__ T *dst, __gm__ T *src, const DataCopyParams &how,
                       twin::Site site = twin::Here()) {
  twin::CopyInBlocks({"DataCopyGM2UBImpl", site}, twin::TagOf<T>(), twin::RawView(dst),
                     twin::RawGm(src), twin::BlocksOf(how));
}
template <typename T>
void DataCopyUB2UBImpl(__ubuf__ T *dst, __ubuf__ T *src, const DataCopyParams &how,
                       twin::Site site = twin::Here()) {
  twin::CopyOverBlocks({"DataCopyUB2UBImpl", site}, twin::TagOf<T>(), twin::RawView(dst),
                       twin::RawView(src), twin::BlocksOf(how));
}
template <typename To, typename From>
void CastImpl(__ubuf__ To *dst, __ubuf__ From *src, const RoundMode &mode, std::uint32_t count,
              twin::Site site = twin::Here()) {
  twin::CastAny<To, From>({"CastImpl", site}, mode, {twin::RawView(dst)}, {twin::RawView(src)},
                          twin::Counted(count));
}
#define TWIN_IMPL_BINARY(name, op)                                                                \
  template <typename T>                                                                           \
  void name(__ubuf__ T *dst, __ubuf__ T *src0, __ubuf__ T *src1, std::int32_t count,              \
            twin::Site site = twin::Here()) {                                                     \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), {twin::RawView(dst)},                     \
                   {twin::RawView(src0)}, {twin::RawView(src1)}, twin::Counted(count));           \
  }
TWIN_IMPL_BINARY(AddImpl, twin::Op::kAdd)
TWIN_IMPL_BINARY(SubImpl, twin::Op::kSub)
TWIN_IMPL_BINARY(MulImpl, twin::Op::kMul)
TWIN_IMPL_BINARY(DivImpl, twin::Op::kDiv)
TWIN_IMPL_BINARY(MaxImpl, twin::Op::kMax)
TWIN_IMPL_BINARY(MinImpl, twin::Op::kMin)
#undef TWIN_IMPL_BINARY

}  // namespace AscendC

using AscendC::DataCopyGM2UBImpl;
using AscendC::DataCopyUB2GMImpl;
using AscendC::DuplicateImpl;
