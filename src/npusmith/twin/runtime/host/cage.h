// What the runner's own process may still ask of the system once foreign code is in it. Comes on top
// of the sandbox's filter and is never taken off.
#pragma once

namespace twin::host {

enum class Cage {
  kHost,    // host code: no programs, no processes, no signals to others; threads and files as before
  kKernel,  // a kernel: memory, and writing to what is open already
};

// Returns false where this system has no such filter.
bool Close(Cage cage);

}  // namespace twin::host
