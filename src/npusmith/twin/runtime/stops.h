// Where a debugger stops (../debug_stops.py): it knows these names and reads what they left.
#pragma once

#include "core.h"

namespace twin {

// A finding of level error, told to whoever looks on.
void StopAtFinding(const FindingRecord &finding);
// The core begins; `entry` is its kernel.
void StopAtBegin(const Core &core, const void *entry);

}  // namespace twin
