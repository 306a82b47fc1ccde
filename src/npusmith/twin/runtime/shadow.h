// What is known of each byte on a core: written, padding, or never written.
#pragma once

#include <cstdint>

#include "twin/runtime.h"

namespace twin {

// Starts again with each block.
struct Shadow {};

}  // namespace twin
