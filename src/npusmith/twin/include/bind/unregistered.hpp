// For bindings that register under a name of their own: their registrations must compile, and
// nothing is registered, because two bindings of one operator may be loaded. Python reaches their
// functions through PYBIND11_MODULE.
#pragma once

namespace npusmith {
struct Library {
  template <typename... Ts>
  Library &impl(Ts &&...) { return *this; }
  template <typename... Ts>
  Library &def(Ts &&...) { return *this; }
};
}  // namespace npusmith

#undef TORCH_LIBRARY
#undef TORCH_LIBRARY_FRAGMENT
#undef TORCH_LIBRARY_IMPL
#define NPUSMITH_JOIN_(a, b) a##b
#define NPUSMITH_JOIN(a, b) NPUSMITH_JOIN_(a, b)
#define NPUSMITH_LIBRARY(m) \
  [[maybe_unused]] static void NPUSMITH_JOIN(npusmith_library_, __COUNTER__)(::npusmith::Library & m)
#define TORCH_LIBRARY(space, m) NPUSMITH_LIBRARY(m)
#define TORCH_LIBRARY_FRAGMENT(space, m) NPUSMITH_LIBRARY(m)
#define TORCH_LIBRARY_IMPL(space, key, m) NPUSMITH_LIBRARY(m)
