// Launching a kernel from host code of the same file: what `kernel<<<blocks, ub, stream>>>(...)` is
// rewritten to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iostream>  // host code of published programs uses std::cout without it
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "twin/launch.h"

namespace twin {

// What launches out of host code may touch and what became of them. A program of its own has only
// acl.h's allocations, and its findings are printed after each launch; the runner adds its regions
// and collects.
struct DirectState {
  std::vector<Region> regions;
  bool collect = false;
  bool completed = true;
  bool autoSync = true, notes = false;  // as in LaunchSpec
  std::uint32_t shuffle = 0;
  std::uint32_t blocks = 0;             // of the last launch
  std::string log;                      // of the first launch; the next write LOG.1, LOG.2, ...
  std::uint32_t launches = 0;
  std::uint64_t mostSteps = 0;          // as in LaunchSpec
  bool dry = false;
  void *cube = nullptr;                 // the same file as compiled for cube cores
  KernelType type = KernelType::kAivOnly;
  std::vector<std::pair<std::string, KernelType>> types;  // of kernels that declare their own
  std::vector<FindingRecord> findings;  // about launches themselves
  bool (*guard)(bool (*launch)(void *), void *at) = nullptr;  // runs each launch, see embed.cpp
  void (*device)(bool open) = nullptr;  // whether the memory of `regions` may be touched
};
DirectState &Directs();
// What device memory an address lies in or near, for a message.
std::string NearAllocation(const void *address);

// A kernel as cube cores run it, and on which cores a launch of it runs.
struct Twins {
  void *cube = nullptr;
  KernelType type = KernelType::kAivOnly;
};
Twins TwinsOf(void *kernel);

// Runs `entry(args)` on every block at once; `cube(args)` on cube cores.
void LaunchDirect(std::uint32_t blocks, void (*entry)(void **), void **args,
                  void (*cube)(void **) = nullptr, KernelType type = KernelType::kAivOnly);

template <typename Kernel, typename... A>
void Direct(std::uint32_t blocks, Kernel kernel, A &&...args) {
  // What it reads lies on the host's stack.
  auto call = [&](Kernel function) __attribute__((no_sanitize_address)) { function(args...); };
  using Call = decltype(call);
  Twins twins;
  if constexpr (std::is_pointer_v<Kernel>) twins = TwinsOf(reinterpret_cast<void *>(kernel));
  void *closure[] = {&call, &kernel, &twins.cube};
  const auto vector = [](void **at) __attribute__((no_sanitize_address)) {
    (*static_cast<Call *>(at[0]))(*static_cast<Kernel *>(at[1]));
  };
  const auto cube = [](void **at) __attribute__((no_sanitize_address)) {
    if constexpr (std::is_pointer_v<Kernel>) {
      (*static_cast<Call *>(at[0]))(reinterpret_cast<Kernel>(*static_cast<void **>(at[2])));
    }
  };
  LaunchDirect(blocks, vector, closure, cube, twins.type);
}

// As `ACLRT_LAUNCH_KERNEL(k)(blocks, stream, ...)` calls a kernel: pointers of any type are addresses.
template <typename P, typename A>
P AsParameter(A argument) {
  if constexpr (std::is_pointer_v<P> && std::is_pointer_v<A>) {
    return (P)(argument);  // const goes, too
  } else {
    return static_cast<P>(argument);
  }
}
template <typename... P, typename... A>
std::uint32_t LaunchAcl(void (*kernel)(P...), std::uint32_t blocks, void *, A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "a launch gives the kernel each of its arguments");
  Direct(blocks, kernel, AsParameter<P>(arguments)...);
  return 0;
}

// A host function `f(blocks, stream, pointers and values ...)`, called with an array of addresses:
// a pointer parameter gets the address itself, a value is read from there.
template <typename... P>
struct Launcher {
  static constexpr std::size_t kParams = sizeof...(P);
  void (*function)(std::uint32_t, void *, P...);

  void Call(std::uint32_t blocks, void **args) const {
    Call(blocks, args, std::index_sequence_for<P...>());
  }

 private:
  template <typename T>
  static std::remove_reference_t<T> Take(void *at) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(at);
    else return *static_cast<std::remove_reference_t<T> *>(at);
  }
  template <std::size_t... I>
  void Call(std::uint32_t blocks, void **args, std::index_sequence<I...>) const {
    function(blocks, nullptr, Take<P>(args[I])...);
  }
};

// The main function of a program, in either form.
inline int CallMain(int (*function)(), int, char **) { return function(); }
inline int CallMain(int (*function)(int, char **), int count, char **arguments) {
  return function(count, arguments);
}
inline int CallMain(int (*function)(int, const char **), int count, char **arguments) {
  return function(count, const_cast<const char **>(arguments));
}

template <typename... P>
constexpr Launcher<P...> LauncherOf(void (*function)(std::uint32_t, void *, P...)) {
  return Launcher<P...>{function};
}

}  // namespace twin
