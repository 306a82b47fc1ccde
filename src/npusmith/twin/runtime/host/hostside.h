// The host side of a run: the project's tiling and shape functions, in a process of their own.
#pragma once

#include "decisions.h"
#include "request.h"

namespace twin::host {

// Starts that process, waits for its end and says what it decided. It holds none of this process's
// files but the inputs that tiling may read. Throws std::runtime_error when it cannot be started.
Decisions DecideApart(const Request &request);

// Loads a compiled library; null after a finding.
void *Load(Report &report, const std::string &path);

}  // namespace twin::host
