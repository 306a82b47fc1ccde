// Device memory for direct-launch programs, and launches out of host code.
#include "acl/acl.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>

#include "order/shadow.h"
#include "memory.h"
#include "twin/chip.h"
#include "fence/fence.h"
#include "twin/direct.h"
#include "twin/half.h"
#include "twin/launch.h"

namespace {

using twin::host::Area;

struct Allocation {
  Area area;
  std::uint64_t number;  // of all allocations: where they lie differs from run to run
  bool blank = true;     // host code has not filled all of it in one go
};

std::map<void *, Allocation> &Allocations() {
  static std::map<void *, Allocation> table;
  return table;
}

std::vector<const Allocation *> InOrder() {
  std::vector<const Allocation *> all;
  for (const auto &[base, allocation] : Allocations()) all.push_back(&allocation);
  std::sort(all.begin(), all.end(), [](const Allocation *a, const Allocation *b) {
    return a->number < b->number;
  });
  return all;
}

// The allocation that holds an address; null for host memory.
Allocation *Holding(const void *address) {
  for (auto &[base, allocation] : Allocations()) {
    const auto *at = static_cast<const std::uint8_t *>(address);
    const Area &area = allocation.area;
    if (at >= area.Base() && at < area.Base() + area.Bytes()) return &allocation;
  }
  return nullptr;
}

void Print(const twin::FindingRecord &finding) {
  std::fprintf(stderr, "%s[%s]: %s\n  %s:%d, core %d: %s\n", finding.level.c_str(),
               finding.code.c_str(), finding.message.c_str(), finding.file.c_str(), finding.line,
               finding.core, finding.seen.c_str());
}

}  // namespace

namespace twin {

std::string NearAllocation(const void *address) {
  for (const auto &[base, allocation] : Allocations()) {
    const Area &area = allocation.area;
    if (!area.Near(address)) continue;
    const auto offset = static_cast<const std::uint8_t *>(address) - area.Base();
    return "byte " + std::to_string(offset) + " of " + area.Name() + ", which has " +
           std::to_string(area.Bytes()) + " bytes";
  }
  return "an address that is no device memory";
}

DirectState &Directs() {
  static DirectState state;
  return state;
}

namespace {

// doc: aclrtMalloc rounds the size up to 32 bytes and takes 32 more
std::uint64_t PaddingOf(const Area &area) {
  return (area.Bytes() + 31) / 32 * 32 + 32 - area.Bytes();
}

void Tell(const FindingRecord &finding) {
  DirectState &state = Directs();
  if (state.collect) state.findings.push_back(finding);
  else Print(finding);
}

// While it lives, the memory of a launcher's tensors may be touched: by a kernel, or by a copy.
class Touch {
 public:
  Touch() { Set(true); }
  ~Touch() { Set(false); }
  Touch(const Touch &) = delete;
  Touch &operator=(const Touch &) = delete;

 private:
  static void Set(bool open) {
    if (Directs().device != nullptr) Directs().device(open);
  }
};

// The tensor of a launcher's arguments that holds an address; null for other memory.
const Region *TensorAt(const void *address) {
  const auto *at = static_cast<const std::uint8_t *>(address);
  for (const Region &region : Directs().regions) {
    if (at >= region.base && at < region.base + region.bytes && !region.scratch) return &region;
  }
  return nullptr;
}

// What a launcher copies between tensors of a task and the host's memory: the results are to be the
// kernel's, and on a device such a copy waits for everything before it.
void CheckCopy(const void *target, const void *source) {
  if (Directs().device == nullptr) return;
  const Region *to = TensorAt(target), *from = TensorAt(source);
  const bool host = (to == nullptr) != (from == nullptr) && Holding(target) == nullptr &&
                    Holding(source) == nullptr;
  if (!host) return;
  FindingRecord finding;
  finding.code = to != nullptr ? "host-memory" : "host-reads";
  finding.level = to != nullptr ? "error" : "warning";
  finding.message = to != nullptr ? "host code of the launcher writes " + to->name
                                  : "host code of the launcher copies " + from->name + " to the host";
  finding.seen = "aclrtMemcpy";
  Tell(finding);
}

// Host code writes `bytes` at `target`.
void Fill(const void *target, std::size_t bytes) {
  Allocation *to = Holding(target);
  if (to != nullptr && target == to->area.Base() && bytes == to->area.Bytes()) to->blank = false;
}

// Host code reads device memory: the first long run that nobody has written is told, once.
void CheckWritten(const void *source, std::size_t bytes) {
  constexpr std::size_t kRun = 32;  // shorter ones may be numbers that look like it
  const Allocation *from = Holding(source);
  static bool told = false;
  if (from == nullptr || told || !from->blank) return;
  const auto *at = static_cast<const std::uint8_t *>(source);
  for (std::size_t start = 0; start + kRun <= bytes; start += kRun) {
    if (!StillPoison(at + start, kRun)) continue;
    told = true;
    FindingRecord finding;
    finding.code = "acl-uninit";
    finding.level = "warning";
    finding.message = "the host reads bytes of " + from->area.Name() + " that nobody has written";
    finding.seen = "from byte " + std::to_string(at + start - from->area.Base()) + " of " +
                   std::to_string(from->area.Bytes());
    return Tell(finding);
  }
}

}  // namespace

namespace {

constexpr std::uint32_t kMostBlocks = 65535;  // doc: a launch takes 1..65535

bool CheckBlocks(DirectState &state, std::uint32_t blocks) {
  if (blocks >= 1 && blocks <= kMostBlocks) return true;
  FindingRecord finding;
  finding.code = "block-dim";
  finding.level = "error";
  finding.message = "a kernel was launched on " + std::to_string(blocks) + " blocks";
  Tell(finding);
  state.completed = false;
  return false;
}

}  // namespace

Twins TwinsOf(void *kernel) {
  const DirectState &state = Directs();
  Dl_info info{};
  if (state.cube == nullptr || dladdr(kernel, &info) == 0 || info.dli_sname == nullptr) return {};
  Twins twins{dlsym(state.cube, info.dli_sname), state.type};
  for (const auto &[name, type] : state.types) {  // plain, or inside a mangled name
    const std::string mangled = std::to_string(name.size()) + name;
    const bool same = name == info.dli_sname || std::strstr(info.dli_sname, mangled.c_str());
    if (same) twins.type = type;
  }
  if (twins.cube != nullptr) FenceCode(twins.cube, true);
  const bool vector = twins.type == KernelType::kAivOnly || twins.type == KernelType::kMixAiv10;
  return twins.cube == nullptr || vector ? Twins{} : twins;
}

void LaunchDirect(std::uint32_t blocks, void (*entry)(void **), void **args,
                  void (*cube)(void **), KernelType type) {
  DirectState &state = Directs();
  if (!CheckBlocks(state, blocks)) return;
  LaunchSpec spec{};
  spec.entry = entry;
  spec.cube = cube;
  spec.type = type;
  spec.args = args;
  spec.argCount = 3;  // of Direct's closure
  spec.blocks = blocks;
  spec.regions = state.regions;
  spec.autoSync = state.autoSync;
  spec.notes = state.notes;
  spec.shuffle = state.shuffle;
  spec.dry = state.dry;
  if (!state.log.empty()) {
    spec.log = state.launches == 0 ? state.log : state.log + "." + std::to_string(state.launches);
    spec.mostSteps = state.mostSteps;
  }
  state.launches += 1;
  for (const Allocation *allocation : InOrder()) {
    const Area &area = allocation->area;
    spec.regions.push_back(
        {area.Base(), area.Bytes(), area.Name(), true, PaddingOf(area), allocation->blank});
    spec.regions.back().unnamed = true;
  }
  state.blocks = blocks;
  const auto launch = [](void *at) { return Launch(*static_cast<LaunchSpec *>(at)); };
  const auto launched = [&] {
    const Touch touch;
    return state.guard != nullptr ? state.guard(launch, &spec) : launch(&spec);
  };
  const bool done = launched();
  state.completed = done && state.completed;
  if (state.collect) return;
  for (const PrintRecord &print : TakePrints()) {
    std::fprintf(stderr, "[core %d] %s", print.core, print.text.c_str());
  }
  for (const FindingRecord &finding : TakeFindings()) Print(finding);
}

}  // namespace twin

extern "C" {

aclError aclInit(const char *) { return ACL_SUCCESS; }
aclError aclFinalize() { return ACL_SUCCESS; }
aclError aclrtSetDevice(std::int32_t device) {
  return device == 0 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;  // there is one
}
aclError aclrtGetDevice(std::int32_t *device) {
  *device = 0;
  return ACL_SUCCESS;
}
aclError aclrtResetDevice(std::int32_t device) { return aclrtSetDevice(device); }
aclError aclrtCreateContext(aclrtContext *context, std::int32_t device) {
  *context = nullptr;
  return aclrtSetDevice(device);
}
aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
// Launches run at once, on the caller's thread: a stream has nothing to keep.
aclError aclrtCreateStream(aclrtStream *stream) {
  *stream = nullptr;
  return ACL_SUCCESS;
}
aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, std::int32_t) { return ACL_SUCCESS; }
aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
aclError aclrtGetDeviceCount(std::uint32_t *count) {
  *count = 1;
  return ACL_SUCCESS;
}
const char *aclrtGetSocName() { return "Ascend910B"; }
const char *aclGetRecentErrMsg() { return ""; }
void aclAppLog(aclLogLevel level, const char *function, const char *, std::uint32_t line,
               const char *format, ...) {
  if (level < ACL_ERROR) return;
  std::fprintf(stderr, "[error] %s:%u: ", function, line);
  std::va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
}
// What a kernel does wrong is a finding, not an error of a later call.
aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
aclError aclrtGetMemInfo(aclrtMemAttr, std::size_t *free, std::size_t *total) {
  *free = *total = TWIN_HBM_BYTES;
  return ACL_SUCCESS;
}
aclError aclrtCreateEvent(aclrtEvent *event) {
  *event = nullptr;
  return ACL_SUCCESS;
}
aclError aclrtDestroyEvent(aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtRecordEvent(aclrtEvent, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent, aclrtEvent) {
  *milliseconds = 0;
  return ACL_SUCCESS;
}

aclError aclrtMalloc(void **pointer, std::size_t bytes, aclrtMemMallocPolicy) {
  if (pointer == nullptr || bytes == 0) return ACL_ERROR_INVALID_PARAM;
  try {
    const std::string name = "device memory " + std::to_string(Allocations().size());
    Area area = Area::OfPoison(name, bytes);
    *pointer = area.Base();
    static std::uint64_t made = 0;
    Allocations().emplace(area.Base(), Allocation{area, ++made});
  } catch (const std::exception &) {
    return ACL_ERROR_BAD_ALLOC;
  }
  return ACL_SUCCESS;
}

aclError aclrtFree(void *pointer) {
  const auto at = Allocations().find(pointer);
  if (at == Allocations().end()) return ACL_ERROR_INVALID_PARAM;
  at->second.area.Release();
  Allocations().erase(at);
  return ACL_SUCCESS;
}

aclError aclrtMallocHost(void **pointer, std::size_t bytes) {
  *pointer = std::malloc(bytes);
  return *pointer == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}
aclError aclrtFreeHost(void *pointer) {
  std::free(pointer);
  return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *target, std::size_t most, const void *source, std::size_t bytes,
                     aclrtMemcpyKind) {
  if (bytes > most) return ACL_ERROR_INVALID_PARAM;
  twin::CheckCopy(target, source);
  const twin::Touch touch;
  twin::CheckWritten(source, bytes);
  std::memcpy(target, source, bytes);
  twin::Fill(target, bytes);
  return ACL_SUCCESS;
}
aclError aclrtMemcpyAsync(void *target, std::size_t most, const void *source, std::size_t bytes,
                          aclrtMemcpyKind kind, aclrtStream) {
  return aclrtMemcpy(target, most, source, bytes, kind);
}
aclError aclrtMemset(void *target, std::size_t most, std::int32_t value, std::size_t bytes) {
  if (bytes > most) return ACL_ERROR_INVALID_PARAM;
  const twin::Touch touch;
  std::memset(target, value, bytes);
  twin::Fill(target, bytes);
  return ACL_SUCCESS;
}
aclError aclrtMemsetAsync(void *target, std::size_t most, std::int32_t value, std::size_t bytes,
                          aclrtStream) {
  return aclrtMemset(target, most, value, bytes);
}

float aclFloat16ToFloat(aclFloat16 value) {
  half number;
  std::memcpy(&number, &value, sizeof value);
  return static_cast<float>(number);
}
aclFloat16 aclFloatToFloat16(float value) {
  const half number(value);
  aclFloat16 bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
}
