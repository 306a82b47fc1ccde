// The architectures that host code tells apart (PlatformAscendC::GetCurNpuArch).
#pragma once

#include <cstdint>

// Names as documented for GetCurNpuArch; the numbers are those of the names (inferred).
enum class NpuArch : std::uint32_t {
  DAV_1001 = 1001,
  DAV_2002 = 2002,
  DAV_2201 = 2201,
  DAV_3002 = 3002,
  DAV_3102 = 3102,
  DAV_3510 = 3510,
  DAV_5102 = 5102,
  DAV_RESV = 0xFFFF
};
