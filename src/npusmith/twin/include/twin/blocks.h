// Sizes of blocks that kernels and host tiling name alike.
#pragma once

#include <cstdint>

#include "twin/chip.h"

#ifdef TWIN_KERNEL
#define TWIN_BLOCK_NUMBER std::int32_t
#else  // host tiling divides and aligns unsigned sizes by them
#define TWIN_BLOCK_NUMBER std::uint32_t
#endif

namespace AscendC {

constexpr TWIN_BLOCK_NUMBER ONE_BLK_SIZE = TWIN_BLOCK_BYTES;
constexpr TWIN_BLOCK_NUMBER BLOCK_CUBE = 16;

}  // namespace AscendC
