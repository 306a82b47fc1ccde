// The vector mask register, counter mode, and the atomic mode of copies to global memory.
#pragma once

#include "twin/runtime.h"

namespace AscendC {

template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(std::uint64_t high, std::uint64_t low, twin::Site site = twin::Here()) {
  twin::SetMask({"SetVectorMask", site}, high, low);
}
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(std::int32_t length, twin::Site site = twin::Here()) {
  const twin::Call call{"SetVectorMask", site};
  if constexpr (mode == MaskMode::COUNTER) {
    twin::SetMask(call, 0, static_cast<std::uint32_t>(length));
  } else {
    twin::SetMaskLength(call, length, twin::TagOf<T>());
  }
}
inline void SetMaskCount(twin::Site site = twin::Here()) {
  twin::SetCounter({"SetMaskCount", site}, true);
}
inline void SetMaskNorm(twin::Site site = twin::Here()) {
  twin::SetCounter({"SetMaskNorm", site}, false);
}
inline void ResetMask(twin::Site site = twin::Here()) {
  twin::ResetMaskRegister({"ResetMask", site});
}

template <typename T>
inline constexpr bool kCanAccumulate =
    twin::kOneOf<T, float, half, bfloat16_t, std::int8_t, std::int16_t, std::int32_t>;

template <typename T>
void SetAtomicAdd(twin::Site site = twin::Here()) {
  static_assert(kCanAccumulate<T>,
                "SetAtomicAdd takes float, half, bfloat16_t, int8_t, int16_t or int32_t");
  twin::SetAtomic({"SetAtomicAdd", site}, twin::Atomic::kAdd, twin::TagOf<T>());
}
template <typename T>
void SetAtomicMax(twin::Site site = twin::Here()) {
  static_assert(kCanAccumulate<T>,
                "SetAtomicMax takes float, half, bfloat16_t, int8_t, int16_t or int32_t");
  twin::SetAtomic({"SetAtomicMax", site}, twin::Atomic::kMax, twin::TagOf<T>());
}
template <typename T>
void SetAtomicMin(twin::Site site = twin::Here()) {
  static_assert(kCanAccumulate<T>,
                "SetAtomicMin takes float, half, bfloat16_t, int8_t, int16_t or int32_t");
  twin::SetAtomic({"SetAtomicMin", site}, twin::Atomic::kMin, twin::TagOf<T>());
}
inline void SetAtomicNone(twin::Site site = twin::Here()) {
  twin::SetAtomic({"SetAtomicNone", site}, twin::Atomic::kNone, twin::DType::kF32);
}
inline void DisableDmaAtomic(twin::Site site = twin::Here()) { SetAtomicNone(site); }

inline void InitSocState(twin::Site site = twin::Here()) {
  twin::ResetState({"InitSocState", site});
}

}  // namespace AscendC
