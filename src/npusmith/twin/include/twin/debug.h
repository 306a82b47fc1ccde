// Assertions and printing.
#pragma once

#include "twin/runtime.h"

// A block of its own: published kernels leave out the semicolon, as the toolchain lets them.
#define TWIN_ASSERT(condition, message)                                                      \
  {                                                                                          \
    if (!(condition)) ::twin::AssertFailed({"ASSERT", ::twin::Here()}, #condition, message); \
  }
#define ASSERT(condition) TWIN_ASSERT(condition, "")
#define ascendc_assert(condition, ...) TWIN_ASSERT(condition, "")
#define ASCENDC_ASSERT(condition, ...) TWIN_ASSERT(condition, "")
#ifndef assert
#define assert(condition, ...) TWIN_ASSERT(condition, "")
#endif

namespace AscendC {

template <typename... Args>
void printf(const char *format, Args... args) {
  twin::PrintLine({"printf", twin::LastSite()}, format, args...);
}
template <typename... Args>
void PRINTF(const char *format, Args... args) {
  twin::PrintLine({"PRINTF", twin::LastSite()}, format, args...);
}
inline void Trap(twin::Site site = twin::Here()) {
  twin::AssertFailed({"Trap", site}, "Trap", "the kernel gave up");
}

}  // namespace AscendC
