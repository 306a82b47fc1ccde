// Special registers: CTRL, saturation, the atomic mode in parts.
#pragma once

#include "twin/mask.h"

namespace twin {

void SetCtrl(const Call &call, int first, int last, std::int64_t value);
std::int64_t GetCtrl(const Call &call, int first, int last);
void SetSaturation(const Call &call, bool cast, bool on);
bool GetSaturation(const Call &call, bool cast);
void SetAtomicConfig(const Call &call, int type, int op);
void GetAtomicConfig(const Call &call, int *type, int *op);
void SetAtomicElement(const Call &call, DType type);
void SetAtomicOperation(const Call &call, Atomic mode);
void SetDeqWord(const Call &call, std::uint64_t word);
void SetDeqTable(const Call &call, const View &table, const std::uint64_t *words);
void SetAddresses(const Call &call, int index, const std::uint64_t *rows);
void Scatter5HD(const Call &call, DType type, int dst, int src, bool dstHigh, bool srcHigh,
                std::int64_t repeats, std::int64_t dstStride, std::int64_t srcStride);

}  // namespace twin

namespace AscendC {

// Bits first .. last of CTRL. Documented for dav-2201 is bit 48 alone; the others are kept as set.
template <std::int8_t first, std::int8_t last>
void SetCtrlSpr(std::int64_t value, twin::Site site = twin::Here()) {
  static_assert(0 <= first && first <= last && last <= 63, "CTRL has bits 0 to 63");
  twin::SetCtrl({"SetCtrlSpr", site}, first, last, value);
}
template <std::int8_t first, std::int8_t last>
std::int64_t GetCtrlSpr(twin::Site site = twin::Here()) {
  static_assert(0 <= first && first <= last && last <= 63, "CTRL has bits 0 to 63");
  return twin::GetCtrl({"GetCtrlSpr", site}, first, last);
}
template <std::int8_t first, std::int8_t last>
void ResetCtrlSpr(twin::Site site = twin::Here()) {
  static_assert(0 <= first && first <= last && last <= 63, "CTRL has bits 0 to 63");
  twin::SetCtrl({"ResetCtrlSpr", site}, first, last, 0);
}

enum class SaturationMode : std::uint8_t { FLOAT, CAST };

template <SaturationMode mode>
void SetSaturationFlag(bool on, twin::Site site = twin::Here()) {
  twin::SetSaturation({"SetSaturationFlag", site}, mode == SaturationMode::CAST, on);
}
template <SaturationMode mode>
bool GetSaturationFlag(twin::Site site = twin::Here()) {
  return twin::GetSaturation({"GetSaturationFlag", site}, mode == SaturationMode::CAST);
}

enum class AtomicDtype : std::uint8_t {
  ATOMIC_NONE, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16
};
enum class AtomicOp : std::uint8_t { ATOMIC_SUM, ATOMIC_MAX, ATOMIC_MIN };

template <AtomicDtype type, AtomicOp op>
void SetStoreAtomicConfig(twin::Site site = twin::Here()) {
  twin::SetAtomicConfig({"SetStoreAtomicConfig", site}, static_cast<int>(type),
                        static_cast<int>(op));
}
inline void GetStoreAtomicConfig(std::uint16_t &atomicType, std::uint16_t &atomicOp,
                                 twin::Site site = twin::Here()) {
  int type = 0, op = 0;
  twin::GetAtomicConfig({"GetStoreAtomicConfig", site}, &type, &op);
  atomicType = static_cast<std::uint16_t>(type);
  atomicOp = static_cast<std::uint16_t>(op);
}
// Another element type for the atomic mode that is on.
template <typename T>
void SetAtomicType(twin::Site site = twin::Here()) {
  static_assert(kCanAccumulate<T>,
                "SetAtomicType takes float, half, bfloat16_t, int8_t, int16_t or int32_t");
  twin::SetAtomicElement({"SetAtomicType", site}, twin::TagOf<T>());
}

}  // namespace AscendC
