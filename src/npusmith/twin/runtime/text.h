// Formatting of messages; used only when something is reported.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace twin {

[[gnu::format(printf, 1, 2)]] inline std::string Text(const char *format, ...) {
  char buffer[2048];
  va_list args;
  va_start(args, format);
  std::vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  return buffer;
}

inline long long Ll(std::int64_t value) { return static_cast<long long>(value); }

}  // namespace twin
