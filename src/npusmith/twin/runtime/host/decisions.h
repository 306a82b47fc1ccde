// What the host side of a run says: it runs in a process of its own, which ends before the kernel's
// code is loaded, and this is all that crosses from there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report.h"

namespace twin::host {

// What the run must know of an input or output of the operator's declaration.
struct Port {
  std::string name;
  bool list = false;             // DYNAMIC
  bool startsAtZero = false;     // an output with an InitValue
  bool shapeFromKernel = false;  // OutputShapeDependOnCompute
};

struct Decisions {
  bool decided = false;  // the kernel can be launched
  Report report;         // op, blocks, key, workspace, tiling, findings, blocks of code that ran
  std::vector<Port> inputs, outputs;
};

// Lines of words, strings in hexadecimal, as in the orders (request.h).
std::string Write(const Decisions &decisions);
// Throws std::runtime_error for anything that Write did not write.
Decisions ReadDecisions(const std::string &text);

}  // namespace twin::host
