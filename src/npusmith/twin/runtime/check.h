// Checks that every operation makes of its operands before it touches memory.
#pragma once

#include "core.h"

namespace twin {

// One operand as an operation will touch it.
struct Need {
  const char *role;  // "dst", "src0", ...
  const View *view;
  std::int64_t bytes;  // from the view's start to the last byte touched
  std::int64_t align = kBlock;
};

// The host address of the operand, or null after reporting what is wrong with it.
std::uint8_t *Usable(Core &core, const Call &call, const Need &need);

// The host address of `bytes` at gm, or null after reporting.
std::uint8_t *UsableGm(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                       bool write);

// Reports param-range unless least <= value <= most.
bool InRange(const Call &call, const char *what, std::int64_t value, std::int64_t least,
             std::int64_t most);

// Reports overlap unless the two ranges are disjoint.
bool Disjoint(const Call &call, const char *first, const View &a, std::int64_t aBytes,
              const char *second, const View &b, std::int64_t bBytes);

// Reports ub-reserved when buffers lie in the area that this API uses as scratch, and spoils it.
void UseReserve(Core &core, const Call &call);

// Reports scratch-size when fewer than `bytes` of UB are left for the API's own scratch.
bool HasScratch(Core &core, const Call &call, const View *scratch, std::int64_t bytes);

}  // namespace twin
