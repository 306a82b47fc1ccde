// Element types as values: the tag by which headers choose a loop of the runtime.
#pragma once

#include <cstdint>
#include <type_traits>

#include "twin/half.h"

namespace AscendC {

// Four bits, two to a byte: a type of tensors, never of variables.
struct int4b_t {
  std::uint8_t pair;
};

}  // namespace AscendC

using AscendC::int4b_t;

namespace twin {

enum class DType : std::uint8_t {
  kF32, kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF64, kI4
};

template <typename T, typename... List>
inline constexpr bool kOneOf = (std::is_same_v<T, List> || ...);

template <typename T>
inline constexpr bool kElement =
    kOneOf<T, float, half, bfloat16_t, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
           std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, bool, double, int4b_t>;

// The tag of T; bool is stored as a byte; double can be moved, not computed with.
template <typename T>
constexpr DType TagOf() {
  static_assert(kElement<T>, "this type cannot be the element type of a tensor on dav-2201");
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  else if constexpr (std::is_same_v<T, half>) return DType::kF16;
  else if constexpr (std::is_same_v<T, bfloat16_t>) return DType::kBF16;
  else if constexpr (std::is_same_v<T, std::int8_t>) return DType::kI8;
  else if constexpr (kOneOf<T, std::uint8_t, bool>) return DType::kU8;
  else if constexpr (std::is_same_v<T, std::int16_t>) return DType::kI16;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return DType::kU16;
  else if constexpr (std::is_same_v<T, std::int32_t>) return DType::kI32;
  else if constexpr (std::is_same_v<T, std::uint32_t>) return DType::kU32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return DType::kI64;
  else if constexpr (std::is_same_v<T, double>) return DType::kF64;
  else if constexpr (std::is_same_v<T, int4b_t>) return DType::kI4;
  else return DType::kU64;
}

// Elements that share the sizeof of their type.
template <typename T>
inline constexpr std::int64_t kPacked = std::is_same_v<T, int4b_t> ? 2 : 1;
template <typename T>
constexpr std::int64_t BytesFor(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(T)) / kPacked<T>;
}

template <typename T>
constexpr int BitsOf() {
  return static_cast<int>(8 * sizeof(T) / kPacked<T>);
}

constexpr int SizeOf(DType type) {
  constexpr int kSizes[] = {4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};  // kI4: of a pair
  return kSizes[static_cast<int>(type)];
}
// Elements of type `type` that SizeOf counts together.
constexpr std::int64_t PackedOf(DType type) { return type == DType::kI4 ? 2 : 1; }
// The bytes of so many elements; of int4b_t an even number.
constexpr std::int64_t BytesOf(DType type, std::int64_t count) {
  return count * SizeOf(type) / PackedOf(type);
}
// Elements in 32 bytes: C0 of a fractal.
constexpr std::int64_t ElementsOfBlock(DType type) { return 32 / SizeOf(type) * PackedOf(type); }
// Element `index` of packed ones, the first in the low half (doc: LoadDataWithTranspose).
constexpr std::int8_t Int4At(const std::uint8_t *bytes, std::int64_t index) {
  const int bits = bytes[index / 2] >> (index % 2 * 4) & 15;
  return static_cast<std::int8_t>(bits >= 8 ? bits - 16 : bits);
}

}  // namespace twin
