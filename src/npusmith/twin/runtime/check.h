// Checks that every operation makes of its operands before it touches memory.
#pragma once

#include "core.h"

namespace twin {

// What an operation does with an operand. kByRole: a role that begins with "dst" is written, any
// other is read. kLook: checked only, no access (the caller tells the sanitizer itself).
enum class Use : std::uint8_t { kByRole, kRead, kWrite, kUpdate, kLook };

// A strided footprint: `run` bytes at every `pitch`; run 0 means every byte.
struct Spread {
  std::int64_t run = 0, pitch = 0;
};

// One operand as an operation will touch it.
struct Need {
  const char *role;  // "dst", "src0", ...
  const View *view;
  std::int64_t bytes;  // from the view's start to the last byte touched
  std::int64_t align = kBlock;
  Use use = Use::kByRole;
  Spread rows = {};
};

// The host address of the operand, or null after reporting what is wrong with it.
std::uint8_t *Usable(Core &core, const Call &call, const Need &need);

// The same for an operand that must lie in a certain memory.
std::uint8_t *UsableIn(Core &core, const Call &call, const Need &need, Memory memory);

// The host address of `bytes` at gm, or null after reporting.
// `rows`: a strided footprint.
std::uint8_t *UsableGm(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                       bool write, Spread rows = {});

// The same for memory through which cores signal each other: what they do there is no data.
std::uint8_t *LookGm(const Call &call, const char *role, const Gm &gm, std::int64_t bytes,
                     bool write = true);

// Reports param-range unless least <= value <= most.
bool InRange(const Call &call, const char *what, std::int64_t value, std::int64_t least,
             std::int64_t most);

// Reports overlap unless the two ranges are disjoint.
bool Disjoint(const Call &call, const char *first, const View &a, std::int64_t aBytes,
              const char *second, const View &b, std::int64_t bBytes,
              Level level = Level::kError);

// Reports ub-capacity unless the bytes lie in a pool of InitBufPool.
void CheckPool(const Call &call, int pool, std::int64_t addr, std::int64_t bytes);

// The scalar unit reads this address: a loop that polls it lets the other cores run. Gives what was
// there before another core's write if nothing says that the write is over: a loop looks again.
const std::uint8_t *Poll(const Call &call, const Gm &gm, int size);
// Reports what was read so and not looked at again (gm-race).
void CheckStale(Core &core);
// The present call writes these bytes.
void NotePolled(Core &core, const std::uint8_t *at, std::int64_t bytes);

// Which on-chip memory of the running core a pointer points into; at no position for none.
View LocalView(const void *pointer);

// Reports ub-reserved when buffers lie in the area that this API uses as scratch, and spoils so
// much of it from its start, by default all.
void UseReserve(Core &core, const Call &call, std::int64_t bytes = kUbUsable);

// Reports scratch-size when fewer than `bytes` of UB are left for the API's own scratch.
bool HasScratch(Core &core, const Call &call, const View *scratch, std::int64_t bytes);

}  // namespace twin
