// Element-wise vector instructions: one source, two sources, a scalar, compound, fill.
// Each has three forms: count, lanes of a repeat as a number, lanes of a repeat as a bitmap.
#pragma once

#include "twin/tensor.h"
#include "twin/elementwise.h"

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

// The element that a count of And and Or counts: other integers are taken for 16-bit ones (doc: 32
// bits, with twice the count; published operators for Atlas A2 give bytes as well).
template <typename T, Op op>
using CountedAs = std::conditional_t<(op == Op::kAnd || op == Op::kOr) && std::is_integral_v<T> &&
                                         (sizeof(T) == 1 || sizeof(T) == 4),
                                     std::int16_t, T>;

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

// name, its row in target/elementwise.py, the runtime's operation.
// The forms on a plain Tensor have the documented signature, for kernels that pass an operation as
// a function; less specialised than the others, they are never chosen by a call.
#define TWIN_BINARY(name, row, op)                                                                \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            const std::int32_t &count, twin::Site site = twin::Here()) {                          \
    using E = twin::CountedAs<T, twin::Op::k##op>;                                                \
    TWIN_TAKES(E, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<E>(), {dst.view()}, {src0.view()}, \
                   {src1.view()}, twin::Counted(count));                                          \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            std::uint64_t mask, twin::Byte repeatTime, const BinaryRepeatParams &how,             \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::DstOf(dst.view(), how), \
                   twin::Src0Of(src0.view(), how), twin::Src1Of(src1.view(), how),                \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,    \
            const std::uint64_t mask[], twin::Byte repeatTime, const BinaryRepeatParams &how,     \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::DstOf(dst.view(), how), \
                   twin::Src0Of(src0.view(), how), twin::Src1Of(src1.view(), how),                \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
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

#define TWIN_UNARY(name, row, op)                                                                 \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::int32_t &count,      \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), {dst.view()}, {src.view()},  \
                   twin::Counted(count));                                                         \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, std::uint64_t mask,             \
            twin::Byte repeatTime, const UnaryRepeatParams &how,                                  \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::DstOf(dst.view(), how), \
                   twin::SrcOf(src.view(), how),                                                  \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::uint64_t mask[],     \
            twin::Byte repeatTime, const UnaryRepeatParams &how,                                  \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::VectorOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::DstOf(dst.view(), how), \
                   twin::SrcOf(src.view(), how),                                                  \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename Tensor, twin::IfTensor<Tensor> = 0>                                          \
  void name(const Tensor &dst, const Tensor &src, const std::int32_t &count) {                    \
    name(dst, src, count, twin::LastSite());                                                      \
  }

// The scalar has exactly the tensor's element type, as on the chip.
#define TWIN_SCALAR(name, row, op)                                                                \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            const std::int32_t &count, twin::Site site = twin::Here()) {                          \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::ScalarOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::TagOf<T>(),            \
                   {dst.view()},                                                                  \
                   {src.view()}, &scalar, twin::Counted(count));                                  \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            std::uint64_t mask, twin::Byte repeatTime, const UnaryRepeatParams &how,              \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::ScalarOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::TagOf<T>(),            \
                   twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,           \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename T, bool isSetMask = true>                                                    \
  void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                \
            const std::uint64_t mask[], twin::Byte repeatTime, const UnaryRepeatParams &how,      \
            twin::Site site = twin::Here()) {                                                     \
    TWIN_TAKES(T, name, row);                                                                     \
    twin::ScalarOp({#name, site}, twin::Op::k##op, twin::TagOf<T>(), twin::TagOf<T>(),            \
                   twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,           \
                   twin::Masked(isSetMask, mask, repeatTime.value));                              \
  }                                                                                               \
  template <typename Tensor, typename U, twin::IfElement<Tensor, U> = 0>                          \
  void name(const Tensor &dst, const Tensor &src, const U &scalar, const std::int32_t &count) {   \
    name(dst, src, scalar, count, twin::LastSite());                                              \
  }

TWIN_BINARY_ROWS(TWIN_BINARY)
TWIN_UNARY_ROWS(TWIN_UNARY)
TWIN_SCALAR_ROWS(TWIN_SCALAR)
#undef TWIN_BINARY
#undef TWIN_UNARY
#undef TWIN_SCALAR

// ---- ShiftRight: may round

template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,
                std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_ShiftRight>,
                "ShiftRight on dav-2201 takes " TWIN_LEGAL_ShiftRight);
  twin::ScalarOp({"ShiftRight", site}, twin::Op::kShiftRight, twin::TagOf<T>(), twin::TagOf<T>(),
                 {dst.view()}, {src.view()}, &scalar, twin::Counted(count));
}
template <typename T, bool isSetMask = true, typename Mask = std::uint64_t>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, Mask mask,
                twin::Byte repeatTime, const UnaryRepeatParams &how, bool roundEn = false,
                twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_ShiftRight>,
                "ShiftRight on dav-2201 takes " TWIN_LEGAL_ShiftRight);
  const auto op = roundEn ? twin::Op::kShiftRightRound : twin::Op::kShiftRight;
  twin::ScalarOp({"ShiftRight", site}, op, twin::TagOf<T>(), twin::TagOf<T>(),
                 twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,
                 twin::Masked(isSetMask, mask, repeatTime.value));
}

// ---- Axpy and MulAddDst: half sources may accumulate into float

template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar,
          std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_Axpy> && twin::kOneOf<U, half, T>,
                "Axpy on dav-2201 takes half or float, or half sources with a float dst");
  twin::ScalarOp({"Axpy", site}, twin::Op::kAxpy, twin::TagOf<T>(), twin::TagOf<U>(),
                 {dst.view()}, {src.view()}, &scalar, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar, Mask mask,
          twin::Byte repeatTime, const UnaryRepeatParams &how, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_Axpy> && twin::kOneOf<U, half, T>,
                "Axpy on dav-2201 takes half or float, or half sources with a float dst");
  twin::ScalarOp({"Axpy", site}, twin::Op::kAxpy, twin::TagOf<T>(), twin::TagOf<U>(),
                 twin::DstOf(dst.view(), how), twin::SrcOf(src.view(), how), &scalar,
                 twin::Masked(isSetMask, mask, repeatTime.value));
}

template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               std::int64_t count, twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_MulAddDst> && twin::kOneOf<U, half, T>,
                "MulAddDst on dav-2201 takes half or float, or half sources with a float dst");
  twin::MixedOp({"MulAddDst", site}, twin::Op::kMulAddDst, twin::TagOf<T>(), twin::TagOf<U>(),
                {dst.view()}, {src0.view()}, {src1.view()}, twin::Counted(count));
}
template <typename T, typename U, bool isSetMask = true, typename Mask = std::uint64_t>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               Mask mask, twin::Byte repeatTime, const BinaryRepeatParams &how,
               twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_MulAddDst> && twin::kOneOf<U, half, T>,
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
  static_assert(twin::kOneOf<T, TWIN_TYPES_CreateVecIndex>,
                "CreateVecIndex on dav-2201 takes " TWIN_LEGAL_CreateVecIndex);
  twin::IndexOp({"CreateVecIndex", site}, twin::TagOf<T>(), {dst.view()}, &first,
                twin::Counted(count));
}
template <typename T, typename Mask = std::uint64_t>
void CreateVecIndex(const LocalTensor<T> &dst, const T &first, Mask mask, twin::Byte repeatTime,
                    twin::Word dstBlkStride, twin::Byte dstRepStride,
                    twin::Site site = twin::Here()) {
  static_assert(twin::kOneOf<T, TWIN_TYPES_CreateVecIndex>,
                "CreateVecIndex on dav-2201 takes " TWIN_LEGAL_CreateVecIndex);
  twin::IndexOp({"CreateVecIndex", site}, twin::TagOf<T>(),
                {dst.view(), Cut(dstBlkStride, "dstBlkStride", site),
                 Cut(dstRepStride, "dstRepStride", site)},
                &first, twin::Masked(true, mask, repeatTime.value));
}

// ---- dst = a + b on whole tensors

#define TWIN_SYMBOL(symbol, row)                                                                  \
  template <typename T>                                                                           \
  twin::WholeTensor<T> operator symbol(const LocalTensor<T> &a, const LocalTensor<T> &b) {        \
    static_assert(twin::kOneOf<T, TWIN_TYPES_##row>,                                              \
                  #symbol " on dav-2201 takes " TWIN_LEGAL_##row);                                \
    return {twin::Op::k##row, a.view(), b.view(), #symbol};                                       \
  }
TWIN_SYMBOL(+, Add)
TWIN_SYMBOL(-, Sub)
TWIN_SYMBOL(*, Mul)
TWIN_SYMBOL(/, Div)
TWIN_SYMBOL(&, And)
TWIN_SYMBOL(|, Or)
#undef TWIN_SYMBOL

}  // namespace AscendC
