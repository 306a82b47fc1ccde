// What operator libraries ask about the chip, by a context of tiling.
#pragma once

#include <cstdint>

#include "platform/soc_spec.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

template <typename Context>
std::uint32_t GetUbBlockSize(const Context *) { return 32; }

template <typename Context>
std::uint32_t GetVRegSize(const Context *) { return 256; }  // one repeat of a vector instruction

template <typename Context>
std::uint32_t GetCacheLineSize(const Context *) { return 512; }  // guess: of L2, as msprof counts

template <typename Context>
std::uint32_t GetAivCoreNum(const Context *) {
  return platform_ascendc::PlatformAscendC(nullptr).GetCoreNumAiv();
}

template <typename Context>
std::uint64_t GetUbSize(const Context *) {
  std::uint64_t bytes = 0;
  platform_ascendc::PlatformAscendC(nullptr).GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
  return bytes;
}

// Chips whose vector instructions work on registers: not this one.
template <typename Context>
bool IsRegbaseSocVersion(const Context *) { return false; }

}  // namespace Base
}  // namespace Ops
