// Assertions, printing, dumps, traces.
#pragma once

#include <cstdio>

#include "twin/tensor.h"

namespace twin {

// What an assertion leaves behind: nothing. `x + Nothing` is x, `+Nothing` is a statement.
struct Nothing {};
inline void operator+(Nothing) {}
template <typename T>
T &&operator+(T &&value, Nothing) {
  return static_cast<T &&>(value);
}

template <typename... Args>
Nothing Asserted(bool holds, const char *text, Site site, const char *format = "",
                 Args... args) {
  if (holds) return {};
  char message[512];
  if constexpr (sizeof...(Args) > 0) std::snprintf(message, sizeof message, format, args...);
  else std::snprintf(message, sizeof message, "%s", format);
  AssertFailed({"ASSERT", site}, text, message);
}
template <typename... Args>
Nothing Asserted(bool holds, const char *text, Site site, bool) {
  return Asserted(holds, text, site);
}

}  // namespace twin

// In a release build of the toolchain ASSERT is nothing at all, and published kernels rely on it:
// they leave out the semicolon after it, or the one before it. So it may begin a statement or go
// on with an expression (a unary or a binary plus), and it ends itself.
// Documented functions are expressions.
#define TWIN_ASSERT(condition, ...) \
  +::twin::Asserted(static_cast<bool>(condition), #condition, ::twin::Here(), ##__VA_ARGS__)
#define ASSERT(condition, ...) TWIN_ASSERT(condition, ##__VA_ARGS__);
#define ascendc_assert(condition, ...) TWIN_ASSERT(condition, ##__VA_ARGS__)
#define ASSERT_MSG(condition, ...) static_cast<void>(TWIN_ASSERT(condition, ##__VA_ARGS__))
#define ASCENDC_ASSERT(condition, ...) TWIN_ASSERT(condition, "");
#ifndef assert
#define assert(condition, ...) TWIN_ASSERT(condition, ##__VA_ARGS__)
#endif

namespace twin {

// The elements of a dump, as many to a line as fit.
void DumpUb(const Call &call, DType type, const View &view, std::uint32_t note, std::int64_t count,
            const std::uint32_t *shape, int dims);
void DumpGm(const Call &call, DType type, const Gm &gm, std::uint32_t note, std::int64_t count,
            const std::uint32_t *shape, int dims);
// Of whatever memory the pointer points into.
void DumpPointer(const Call &call, DType type, const void *pointer, std::uint32_t note,
                 std::int64_t count);

// A half is printed with %f, as the toolchain does.
template <typename T>
auto Printed(T value) {
  if constexpr (kOneOf<T, half, bfloat16_t>) return static_cast<double>(static_cast<float>(value));
  else return value;
}

}  // namespace twin

namespace AscendC {

template <typename... Args>
void printf(const char *format, Args... args) {
  twin::PrintLine({"printf", twin::LastSite()}, format, twin::Printed(args)...);
}
template <typename... Args>
void PRINTF(const char *format, Args... args) {
  twin::PrintLine({"PRINTF", twin::LastSite()}, format, twin::Printed(args)...);
}
inline void Trap(twin::Site site = twin::Here()) {
  twin::AssertFailed({"Trap", site}, "Trap", "the kernel gave up");
}

struct ShapeInfo;

// Prints `dumpSize` elements; `desc` is the user's own number for the place.
template <typename T>
void DumpTensor(const LocalTensor<T> &tensor, std::uint32_t desc, std::uint32_t dumpSize,
                twin::Site site = twin::Here()) {
  twin::DumpUb({"DumpTensor", site}, twin::TagOf<T>(), tensor.view(), desc, dumpSize, nullptr, 0);
}
template <typename T>
void DumpTensor(const GlobalTensor<T> &tensor, std::uint32_t desc, std::uint32_t dumpSize,
                twin::Site site = twin::Here()) {
  twin::DumpGm({"DumpTensor", site}, twin::TagOf<T>(), tensor.gm(), desc, dumpSize, nullptr, 0);
}
template <typename T>
void DumpTensor(const LocalTensor<T> &tensor, std::uint32_t desc, std::uint32_t dumpSize,
                const ShapeInfo &shape, twin::Site site = twin::Here()) {
  twin::DumpUb({"DumpTensor", site}, twin::TagOf<T>(), tensor.view(), desc, dumpSize, shape.shape,
               shape.shapeDim);
}
template <typename T>
void DumpTensor(const GlobalTensor<T> &tensor, std::uint32_t desc, std::uint32_t dumpSize,
                const ShapeInfo &shape, twin::Site site = twin::Here()) {
  twin::DumpGm({"DumpTensor", site}, twin::TagOf<T>(), tensor.gm(), desc, dumpSize, shape.shape,
               shape.shapeDim);
}
// `countOff` elements are left out at the start.
template <typename T>
void DumpAccChkPoint(const LocalTensor<T> &tensor, std::uint32_t index, std::uint32_t countOff,
                     std::uint32_t dumpSize, twin::Site site = twin::Here()) {
  twin::DumpUb({"DumpAccChkPoint", site}, twin::TagOf<T>(), tensor[countOff].view(), index,
               dumpSize, nullptr, 0);
}
template <typename T>
void DumpAccChkPoint(const GlobalTensor<T> &tensor, std::uint32_t index, std::uint32_t countOff,
                     std::uint32_t dumpSize, twin::Site site = twin::Here()) {
  twin::DumpGm({"DumpAccChkPoint", site}, twin::TagOf<T>(), tensor[countOff].gm(), index, dumpSize,
               nullptr, 0);
}
inline void PrintTimeStamp(std::uint32_t) {}

}  // namespace AscendC

// The same by a pointer: of one memory each, or of the one that it points into.
#define TWIN_DUMP(name)                                                                       \
  template <typename T>                                                                       \
  void name(T *input, std::uint32_t desc, std::uint32_t dump_size,                            \
            twin::Site site = twin::Here()) {                                                 \
    twin::DumpPointer({#name, site}, twin::TagOf<std::remove_cv_t<T>>(), input, desc, dump_size); \
  }
TWIN_DUMP(asc_dump)
TWIN_DUMP(asc_dump_gm)
TWIN_DUMP(asc_dump_ubuf)
TWIN_DUMP(asc_dump_l1buf)
TWIN_DUMP(asc_dump_cbuf)
#undef TWIN_DUMP

// Marks for the profiler of a simulator: they change nothing.
#define TRACE_START(id) static_cast<void>(id)
#define TRACE_STOP(id) static_cast<void>(id)
#define asc_prof_start() static_cast<void>(0)
#define asc_prof_stop() static_cast<void>(0)
inline void MetricsProfStart() {}
inline void MetricsProfStop() {}
