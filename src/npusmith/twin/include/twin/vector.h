// Element-wise vector instructions: one source, two sources, a scalar, compound, fill.
// Each has three forms: count, lanes of a repeat as a number, lanes of a repeat as a bitmap.
#pragma once

#include "twin/tensor.h"

namespace twin {

inline Lane DstOf(const View &view, const AscendC::UnaryRepeatParams &how) {
  return {view, how.dstBlkStride, how.dstRepStride};
}
inline Lane SrcOf(const View &view, const AscendC::UnaryRepeatParams &how) {
  return {view, how.srcBlkStride, how.srcRepStride};
}
inline Lane DstOf(const View &view, const AscendC::BinaryRepeatParams &how) {
  return {view, how.dstBlkStride, how.dstRepStride};
}
inline Lane Src0Of(const View &view, const AscendC::BinaryRepeatParams &how) {
  return {view, how.src0BlkStride, how.src0RepStride};
}
inline Lane Src1Of(const View &view, const AscendC::BinaryRepeatParams &how) {
  return {view, how.src1BlkStride, how.src1RepStride};
}

template <typename T>
inline constexpr bool kIsTensor = false;
template <typename T>
inline constexpr bool kIsTensor<AscendC::LocalTensor<T>> = true;
template <typename Tensor>
using IfTensor = std::enable_if_t<kIsTensor<Tensor>, int>;
template <typename Byte>
using IfByte = std::enable_if_t<std::is_same_v<Byte, std::uint8_t>, int>;
template <typename Tensor, typename U>
using IfElement = std::enable_if_t<std::is_same_v<U, typename Tensor::PrimType>, int>;

}  // namespace twin

namespace AscendC {

// name, the runtime's operation, text of the legal types, the legal types.
// The forms on a plain Tensor have the documented signature, for kernels that pass an operation as
// a function; less specialised than the others, they are never chosen by a call.
#define TWIN_BINARY(name, op, legal, ...)                                                         \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            const std::int32_t &count, twin::Site site = twin::Here()) {                          \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), {dst.view()}, {src0.view()},              \
                   {src1.view()}, twin::Counted(count));                                          \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            std::uint64_t mask, twin::Byte repeatTime, const BinaryRepeatParams &how,             \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), twin::DstOf(dst.view(), how),             \
                   twin::Src0Of(src0.view(), how), twin::Src1Of(src1.view(), how),                \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            const std::uint64_t mask[], twin::Byte repeatTime, const BinaryRepeatParams &how,     \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), twin::DstOf(dst.view(), how),             \
                   twin::Src0Of(src0.view(), how), twin::Src1Of(src1.view(), how),                \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  } \
  template <typename Tensor, twin::IfTensor<Tensor> = 0>                                          \
  void name(const Tensor &dst, const Tensor &src0, const Tensor &src1,                            \
            const std::int32_t &count) {                                                          \
    name(dst, src0, src1, count, twin::LastSite());                                               \
  }                                                                                               \
  template <typename T, bool isSetMask = true, typename Byte, twin::IfByte<Byte> = 0>             \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            std::uint64_t mask, Byte repeatTime, const BinaryRepeatParams &how,                   \
            twin::Site site = twin::Here()) {                                                     \
    name<T, isSetMask>(dst, src0, src1, mask, twin::Byte(repeatTime), how, site);                 \
  }                                                                                               \
  template <typename Tensor, typename Byte, twin::IfTensor<Tensor> = 0, twin::IfByte<Byte> = 0>   \
  void name(const Tensor &dst, const Tensor &src0, const Tensor &src1, std::uint64_t mask,        \
            Byte repeatTime, const BinaryRepeatParams &how) {                                     \
    name(dst, src0, src1, mask, twin::Byte(repeatTime), how, twin::LastSite());                   \
  }

#define TWIN_UNARY(name, op, legal, ...)                                                          \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::int32_t &count,      \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), {dst.view()}, {src.view()},               \
                   twin::Counted(count));                                                         \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::uint64_t mask,             \
            twin::Byte repeatTime, const UnaryRepeatParams &how,                                  \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), twin::DstOf(dst.view(), how),             \
                   twin::SrcOf(src.view(), how),                                                  \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::uint64_t mask[],     \
            twin::Byte repeatTime, const UnaryRepeatParams &how,                                  \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::VectorOp({#name, site}, op, twin::TagOf<T>(), twin::DstOf(dst.view(), how),             \
                   twin::SrcOf(src.view(), how),                                                  \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  } \
  template <typename Tensor, twin::IfTensor<Tensor> = 0>                                          \
  void name(const Tensor &dst, const Tensor &src, const std::int32_t &count) {                    \
    name(dst, src, count, twin::LastSite());                                                      \
  }

// The scalar has exactly the tensor's element type, as on the chip.
#define TWIN_SCALAR(name, op, legal, ...)                                                         \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            const std::int32_t &count, twin::Site site = twin::Here()) {                          \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::ScalarOp({#name, site}, op, twin::TagOf<T>(), twin::TagOf<T>(), {dst.view()},           \
                   {src.view()}, &scalar, twin::Counted(count));                                  \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            std::uint64_t mask, twin::Byte repeatTime, const UnaryRepeatParams &how,              \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::ScalarOp({#name, site}, op, twin::TagOf<T>(), twin::TagOf<T>(),                         \
                   twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,           \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            const std::uint64_t mask[], twin::Byte repeatTime, const UnaryRepeatParams &how,      \
            twin::Site site = twin::Here()) {                                                     \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #name " on dav-2201 takes " legal);               \
    twin::ScalarOp({#name, site}, op, twin::TagOf<T>(), twin::TagOf<T>(),                         \
                   twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,           \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  } \
  template <typename Tensor, typename U, twin::IfElement<Tensor, U> = 0>                          \
  void name(const Tensor &dst, const Tensor &src, const U &scalar, const std::int32_t &count) {   \
    name(dst, src, scalar, count, twin::LastSite());                                              \
  }

#define TWIN_ARITH half, float, std::int16_t, std::int32_t
#define TWIN_ARITH_TEXT "half, float, int16_t or int32_t"
#define TWIN_FLOATS half, float
#define TWIN_FLOATS_TEXT "half or float"
#define TWIN_BITS std::int16_t, std::uint16_t
#define TWIN_BITS_TEXT "int16_t or uint16_t"

TWIN_BINARY(Add, twin::Op::kAdd, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_BINARY(Sub, twin::Op::kSub, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_BINARY(Mul, twin::Op::kMul, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_BINARY(Max, twin::Op::kMax, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_BINARY(Min, twin::Op::kMin, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_BINARY(Div, twin::Op::kDiv, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_BINARY(And, twin::Op::kAnd, TWIN_BITS_TEXT, TWIN_BITS)
TWIN_BINARY(Or, twin::Op::kOr, TWIN_BITS_TEXT, TWIN_BITS)
TWIN_BINARY(AddRelu, twin::Op::kAddRelu, "half, float or int16_t", half, float, std::int16_t)
TWIN_BINARY(SubRelu, twin::Op::kSubRelu, "half, float or int16_t", half, float, std::int16_t)
TWIN_BINARY(FusedMulAdd, twin::Op::kFusedMulAdd, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_BINARY(FusedMulAddRelu, twin::Op::kFusedMulAddRelu, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_BINARY(MulAddRelu, twin::Op::kFusedMulAddRelu, TWIN_FLOATS_TEXT, TWIN_FLOATS)

TWIN_UNARY(Abs, twin::Op::kAbs, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Exp, twin::Op::kExp, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Ln, twin::Op::kLn, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Reciprocal, twin::Op::kReciprocal, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Rsqrt, twin::Op::kRsqrt, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Sqrt, twin::Op::kSqrt, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_UNARY(Relu, twin::Op::kRelu, "half, float or int32_t", half, float, std::int32_t)
TWIN_UNARY(Not, twin::Op::kNot, TWIN_BITS_TEXT, TWIN_BITS)

TWIN_SCALAR(Adds, twin::Op::kAdds, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SCALAR(Muls, twin::Op::kMuls, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SCALAR(Maxs, twin::Op::kMaxs, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SCALAR(Mins, twin::Op::kMins, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SCALAR(LeakyRelu, twin::Op::kLeakyRelu, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_SCALAR(ShiftLeft, twin::Op::kShiftLeft, "16- and 32-bit integers", std::int16_t,
            std::uint16_t, std::int32_t, std::uint32_t)

#undef TWIN_BINARY
#undef TWIN_UNARY
#undef TWIN_SCALAR

// ---- ShiftRight: may round

template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,
                std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>,
                "ShiftRight on dav-2201 takes 16- and 32-bit integers");
  twin::ScalarOp({"ShiftRight", site}, twin::Op::kShiftRight, twin::TagOf<T>(), twin::TagOf<T>(),
                 {dst.view()}, {src.view()}, &scalar, twin::Counted(count));
}
template <typename T, bool isSetMask = true, typename Mask = std::uint64_t>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, Mask mask,
                twin::Byte repeatTime, const UnaryRepeatParams &how, bool roundEn = false,
                twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>,
                "ShiftRight on dav-2201 takes 16- and 32-bit integers");
  const auto op = roundEn ? twin::Op::kShiftRightRound : twin::Op::kShiftRight;
  twin::ScalarOp({"ShiftRight", site}, op, twin::TagOf<T>(), twin::TagOf<T>(),
                 twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,
                 twin::Masked(isSetMask, mask, repeatTime.value));
}

// ---- Axpy and MulAddDst: half sources may accumulate into float

template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar,
          std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float> && twin::kOneOf<U, half, T>,
                "Axpy on dav-2201 takes half or float, or half sources with a float dst");
  twin::ScalarOp({"Axpy", site}, twin::Op::kAxpy, twin::TagOf<T>(), twin::TagOf<U>(),
                 {dst.view()}, {src.view()}, &scalar, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar, Mask mask,
          twin::Byte repeatTime, const UnaryRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float> && twin::kOneOf<U, half, T>,
                "Axpy on dav-2201 takes half or float, or half sources with a float dst");
  twin::ScalarOp({"Axpy", site}, twin::Op::kAxpy, twin::TagOf<T>(), twin::TagOf<U>(),
                 twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,
                 twin::Masked(isSetMask, mask, repeatTime.value));
}

template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float> && twin::kOneOf<U, half, T>,
                "MulAddDst on dav-2201 takes half or float, or half sources with a float dst");
  twin::MixedOp({"MulAddDst", site}, twin::Op::kMulAddDst, twin::TagOf<T>(), twin::TagOf<U>(),
                {dst.view()}, {src0.view()}, {src1.view()}, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               Mask mask, twin::Byte repeatTime, const BinaryRepeatParams &how,
               twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, half, float> && twin::kOneOf<U, half, T>,
                "MulAddDst on dav-2201 takes half or float, or half sources with a float dst");
  twin::MixedOp({"MulAddDst", site}, twin::Op::kMulAddDst, twin::TagOf<T>(), twin::TagOf<U>(),
                twin::DstOf(dst.view(), how), twin::Src0Of(src0.view(), how),
                twin::Src1Of(src1.view(), how), twin::Masked(isSetMask, mask, repeatTime.value));
}

// ---- Duplicate and CreateVecIndex

template <typename T>
inline constexpr bool kCanDuplicate =
    twin::kOneOf<T, half, bfloat16_t, float, std::int16_t, std::uint16_t, std::int32_t,
                 std::uint32_t>;

template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T> &dst, const T &scalar, std::int64_t count,
               twin::Site site = twin::Here()) {
  static_assert(kCanDuplicate<T>, "Duplicate on dav-2201 takes 16- and 32-bit types");
  twin::FillOp({"Duplicate", site}, twin::TagOf<T>(), {dst.view()}, &scalar,
               twin::Counted(count));
}
template <typename T, bool isSetMask = true, typename Mask = std::uint64_t>
void Duplicate(const LocalTensor<T> &dst, const T &scalar, Mask mask, twin::Byte repeatTime,
               twin::Word dstBlockStride, twin::Byte dstRepeatStride,
               twin::Site site = twin::Here()) {
  static_assert(kCanDuplicate<T>, "Duplicate on dav-2201 takes 16- and 32-bit types");
  twin::FillOp({"Duplicate", site}, twin::TagOf<T>(),
               {dst.view(), Cut(dstBlockStride, "dstBlockStride", site),
                Cut(dstRepeatStride, "dstRepeatStride", site)},
               &scalar, twin::Masked(isSetMask, mask, repeatTime.value));
}

template <typename T>
void CreateVecIndex(const LocalTensor<T> &dst, const T &first, std::int64_t count,
                    twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_ARITH>, "CreateVecIndex on dav-2201 takes " TWIN_ARITH_TEXT);
  twin::IndexOp({"CreateVecIndex", site}, twin::TagOf<T>(), {dst.view()}, &first,
                twin::Counted(count));
}
template <typename T, typename Mask = std::uint64_t>
void CreateVecIndex(const LocalTensor<T> &dst, const T &first, Mask mask, twin::Byte repeatTime,
                    twin::Word dstBlkStride, twin::Byte dstRepStride,
                    twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_ARITH>, "CreateVecIndex on dav-2201 takes " TWIN_ARITH_TEXT);
  twin::IndexOp({"CreateVecIndex", site}, twin::TagOf<T>(),
                {dst.view(), Cut(dstBlkStride, "dstBlkStride", site),
                 Cut(dstRepStride, "dstRepStride", site)},
                &first, twin::Masked(true, mask, repeatTime.value));
}

// ---- dst = a + b on whole tensors

#define TWIN_SYMBOL(symbol, op, legal, ...)                                                       \
  template <typename T>                                                                           \
  twin::WholeTensor<T> operator symbol(const LocalTensor<T> &a, const LocalTensor<T> &b) {        \
    static_assert(twin::kOneOf<T, __VA_ARGS__>, #symbol " on dav-2201 takes " legal);             \
    return {op, a.view(), b.view(), #symbol};                                                     \
  }
TWIN_SYMBOL(+, twin::Op::kAdd, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SYMBOL(-, twin::Op::kSub, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SYMBOL(*, twin::Op::kMul, TWIN_ARITH_TEXT, TWIN_ARITH)
TWIN_SYMBOL(/, twin::Op::kDiv, TWIN_FLOATS_TEXT, TWIN_FLOATS)
TWIN_SYMBOL(&, twin::Op::kAnd, TWIN_BITS_TEXT, TWIN_BITS)
TWIN_SYMBOL(|, twin::Op::kOr, TWIN_BITS_TEXT, TWIN_BITS)
#undef TWIN_SYMBOL

}  // namespace AscendC
