// The fence around a kernel: each load and store of its own code asks whether the memory is the
// kernel's, each return and call through a pointer whether it stays in the kernel's code.
//
// The compiler puts the questions (-fsanitize=kernel-address with all checks as calls,
// -mindirect-branch and -mfunction-return as thunks); the answers are here. The same calls say
// which blocks of code ran (-fsanitize-coverage=trace-pc). Code outside of a launch is not fenced.
#pragma once

#include <cstdint>
#include <vector>

namespace twin {

// Where the accesses of a core's code without an API come from: Site::file of their findings, with
// the offset in the library as the line. twin/places.py turns it into the user's place.
constexpr const char *kKernelCode = "@kernel", *kCubeCode = "@cube";

// The library that holds `address` is the kernel, as vector cores or as cube cores run it; it stays
// so until another one is named.
void FenceCode(const void *address, bool cube);
// Offsets of the blocks of code that ran in it.
std::vector<std::uint32_t> TakeBlocks(bool cube);

// From here on the core of this stack runs; without one, nothing is fenced.
void FenceRaise(const void *bottom, const void *top);
void FenceLower();

}  // namespace twin

// Calls `entry(args)`: the only place of the runtime to which a fenced kernel returns.
extern "C" void twin_enter(void (*entry)(void **), void **args);
