// Sizes of the chip that kernels of operator libraries ask for.
#pragma once

#include <cstdint>

namespace Ops {
namespace Base {
constexpr std::uint32_t GetUbBlockSize() { return 32; }
constexpr std::uint32_t GetVRegSize() { return 256; }  // one repeat of a vector instruction
}  // namespace Base
}  // namespace Ops
