// Writes to global memory under the core's atomic mode.
#pragma once

#include "core.h"

namespace twin {

void PutAtomic(const Core &core, std::uint8_t *to, const std::uint8_t *from, std::int64_t bytes);
// Reports atomic-type when the mode was set for another type than the copy moves.
void CheckAtomic(const Core &core, const Call &call, DType type);

}  // namespace twin
