// How a kernel that takes pointers is called with an array of them.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace twin {

template <typename... P>
struct Entry {
  static_assert((std::is_pointer_v<P> && ...), "a kernel entry takes pointers only");
  static constexpr std::size_t kParams = sizeof...(P);
  void (*kernel)(P...);

  void Call(void **args) const { Call(args, std::index_sequence_for<P...>()); }

 private:
  template <std::size_t... I>
  void Call(void **args, std::index_sequence<I...>) const {
    kernel(reinterpret_cast<P>(args[I])...);
  }
};

template <typename... P>
constexpr Entry<P...> EntryOf(void (*kernel)(P...)) {
  return Entry<P...>{kernel};
}

template <typename... P>
constexpr std::size_t CountParams(void (*)(P...)) {
  return sizeof...(P);
}

}  // namespace twin
