// Launching a kernel from host code of the same file: what `kernel<<<blocks, ub, stream>>>(...)` is
// rewritten to.
#pragma once

#include <cstdint>
#include <utility>

namespace twin {

// Runs `entry(args)` on every block at once; allocations of acl.h are the memory it may touch.
// Findings are collected and, at the end of a program of its own, printed.
void LaunchDirect(std::uint32_t blocks, void (*entry)(void **), void **args);

template <typename Kernel, typename... A>
void Direct(std::uint32_t blocks, Kernel kernel, A &&...args) {
  auto call = [&] { kernel(args...); };
  void *closure = &call;
  LaunchDirect(blocks, [](void **at) { (*static_cast<decltype(call) *>(*at))(); }, &closure);
}

}  // namespace twin
