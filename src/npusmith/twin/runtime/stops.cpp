// Where a debugger stops.
#include "stops.h"

#include <algorithm>

#include "text.h"

// Not inlined and not merged, so that each has an address of its own to stop at.
extern "C" {
char twin_said[4096];     // the last finding in words
int twin_block;           // of the core that began last
const void *twin_kernel;  // what it runs
[[gnu::noinline]] void twin_found() { asm volatile("# found"); }
[[gnu::noinline]] void twin_begins() { asm volatile("# begins"); }
// The first byte of a memory of the running core, by the position of a tensor.
unsigned char *twin_memory(int position) {
  return twin::Me().Hold(twin::MemoryOf(static_cast<AscendC::TPosition>(position))).base;
}
}

namespace twin {

void StopAtFinding(const FindingRecord &finding) {
  const std::string text =
      Text("error[%s]: %s\n  %s", finding.code.c_str(), finding.message.c_str(),
           finding.seen.c_str());
  const std::size_t bytes = std::min(text.size(), sizeof twin_said - 1);
  std::memcpy(twin_said, text.data(), bytes);
  twin_said[bytes] = 0;
  twin_found();
}

void StopAtBegin(const Core &core, const void *entry) {
  twin_block = core.block;
  twin_kernel = entry;
  twin_begins();
}

}  // namespace twin
