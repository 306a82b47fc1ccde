// Integer arguments whose hardware field is narrower than the value that was passed.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "twin/site.h"

namespace twin {

#if defined(__OPTIMIZE__) && defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 14)
// Called only where the compiler proves that a constant does not fit its field.
__attribute__((error("this constant does not fit the hardware field it is passed to")))
void ConstantDoesNotFit();
#else
inline void ConstantDoesNotFit() {}
#endif

// Takes any integer, remembers it whole; what the hardware would see is `value` cut to Field.
template <typename Field>
struct Narrow {
  std::int64_t value;

  template <typename I, std::enable_if_t<std::is_arithmetic_v<I> || std::is_enum_v<I>, int> = 0>
  __attribute__((always_inline)) constexpr Narrow(I given)
      : value(static_cast<std::int64_t>(given)) {
    if (__builtin_constant_p(given) && !Fits(static_cast<std::int64_t>(given))) {
      ConstantDoesNotFit();
    }
  }
  static constexpr bool Fits(std::int64_t number) {
    return number >= static_cast<std::int64_t>(std::numeric_limits<Field>::min()) &&
           number <= static_cast<std::int64_t>(std::numeric_limits<Field>::max());
  }
};

using Byte = Narrow<std::uint8_t>;
using Word = Narrow<std::uint16_t>;

// Reports param-range when `value` does not fit; returns what the hardware field would hold.
std::int64_t Fit(const Call &call, const char *what, std::int64_t value, std::int64_t most);

inline std::uint8_t Cut(Byte number, const char *what, Site site) {
  return static_cast<std::uint8_t>(Fit({"repeat parameters", site}, what, number.value, 255));
}
inline std::uint16_t Cut(Word number, const char *what, Site site) {
  return static_cast<std::uint16_t>(Fit({"repeat parameters", site}, what, number.value, 65535));
}

}  // namespace twin
