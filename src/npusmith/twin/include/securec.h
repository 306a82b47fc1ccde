// The bounds-checked C library that CANN's toolkit brings (memcpy_s and its kin).
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

using errno_t = int;
#ifndef EOK
#define EOK 0
#endif
#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL

namespace twin::host {
constexpr errno_t kInvalid = 22;  // EINVAL: a null pointer
constexpr errno_t kRange = 34;    // ERANGE: more than the destination holds
inline errno_t Fits(const void *to, std::size_t room, const void *from, std::size_t count) {
  if (to == nullptr || from == nullptr) return kInvalid;
  return count > room ? kRange : EOK;
}
}  // namespace twin::host

inline errno_t memset_s(void *to, std::size_t room, int value, std::size_t count) {
  const errno_t wrong = twin::host::Fits(to, room, to, count);
  if (wrong == EOK) std::memset(to, value, count);
  return wrong;
}
inline errno_t memcpy_s(void *to, std::size_t room, const void *from, std::size_t count) {
  const errno_t wrong = twin::host::Fits(to, room, from, count);
  if (wrong == EOK) std::memcpy(to, from, count);
  return wrong;
}
inline errno_t memmove_s(void *to, std::size_t room, const void *from, std::size_t count) {
  const errno_t wrong = twin::host::Fits(to, room, from, count);
  if (wrong == EOK) std::memmove(to, from, count);
  return wrong;
}
inline errno_t strcpy_s(char *to, std::size_t room, const char *from) {
  const std::size_t count = from == nullptr ? 0 : std::strlen(from) + 1;
  const errno_t wrong = twin::host::Fits(to, room, from, count);
  if (wrong == EOK) std::memcpy(to, from, count);
  return wrong;
}
inline errno_t strncpy_s(char *to, std::size_t room, const char *from, std::size_t most) {
  const std::size_t count = from == nullptr ? 0 : strnlen(from, most);
  const errno_t wrong = twin::host::Fits(to, room, from, count + 1);
  if (wrong != EOK) return wrong;
  std::memcpy(to, from, count);
  to[count] = '\0';
  return EOK;
}
inline errno_t strcat_s(char *to, std::size_t room, const char *from) {
  const std::size_t used = to == nullptr ? 0 : strnlen(to, room);
  return strcpy_s(to == nullptr ? to : to + used, room - used, from);
}
// The printing functions give the number of characters, or -1 when they do not fit.
inline int vsnprintf_s(char *to, std::size_t room, std::size_t most, const char *format,
                       std::va_list values) {
  if (to == nullptr || format == nullptr || room == 0) return -1;
  const int count = std::vsnprintf(to, most < room ? most + 1 : room, format, values);
  return count < 0 || static_cast<std::size_t>(count) >= room ? -1 : count;
}
inline int snprintf_s(char *to, std::size_t room, std::size_t most, const char *format, ...) {
  std::va_list values;
  va_start(values, format);
  const int count = vsnprintf_s(to, room, most, format, values);
  va_end(values);
  return count;
}
inline int sprintf_s(char *to, std::size_t room, const char *format, ...) {
  std::va_list values;
  va_start(values, format);
  const int count = vsnprintf_s(to, room, room, format, values);
  va_end(values);
  return count;
}
