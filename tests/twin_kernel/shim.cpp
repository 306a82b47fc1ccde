// C functions through which the tests launch kernels and read findings.
#include <cstdio>
#include <string>

#include "twin/launch.h"

namespace {

std::string Quoted(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string Member(const char *name, const std::string &value) {
  return Quoted(name) + ":" + value + ",";
}

std::string Record(const twin::FindingRecord &record) {
  std::string text = "{";
  text += Member("code", Quoted(record.code)) + Member("level", Quoted(record.level));
  text += Member("message", Quoted(record.message)) + Member("file", Quoted(record.file));
  text += Member("line", std::to_string(record.line)) + Member("core", std::to_string(record.core));
  text += Member("step", std::to_string(record.step));
  text += Member("count", std::to_string(record.count)) + Member("seen", Quoted(record.seen));
  text += Member("legal", Quoted(record.legal)) + "\"hint\":" + Quoted(record.hint) + "}";
  return text;
}

}  // namespace

static bool saturates = false;
// How floats saturate in later launches until the kernel says so itself.
extern "C" void shim_saturate(int on) { saturates = on != 0; }

static twin::LaunchSpec options;
// How later launches differ from the defaults.
extern "C" void shim_options(int autoSync, int notes, std::uint32_t shuffle) {
  options.autoSync = autoSync != 0;
  options.notes = notes != 0;
  options.shuffle = shuffle;
}

// `writable`: bit 0 writable, bit 1 blank, bit 2 scratch; from bit 8 on: bytes of padding. `cube`: the entry as compiled for cube cores; `type`: a twin::KernelType.
extern "C" int shim_launch_cores(void (*entry)(void **), void (*cube)(void **), int type,
                                 void **args, const std::uint64_t *sizes,
                                 const char *const *names, const int *writable, int count,
                                 std::uint32_t blocks, std::uint64_t key) {
  twin::LaunchSpec spec = options;
  spec.entry = entry;
  spec.cube = cube;
  spec.type = static_cast<twin::KernelType>(type);
  spec.args = args;
  spec.blocks = blocks;
  spec.tilingKey = key;
  spec.saturate = saturates;
  for (int i = 0; i < count; ++i) {
    spec.regions.push_back(
        {static_cast<std::uint8_t *>(args[i]), sizes[i] - static_cast<unsigned>(writable[i] >> 8),
         names[i], (writable[i] & 1) != 0, static_cast<unsigned>(writable[i] >> 8),
         (writable[i] & 2) != 0, (writable[i] & 4) != 0});
  }
  return twin::Launch(spec) ? 1 : 0;
}

extern "C" int shim_launch(void (*entry)(void **), void **args, const std::uint64_t *sizes,
                           const char *const *names, const int *writable, int count,
                           std::uint32_t blocks, std::uint64_t key) {
  return shim_launch_cores(entry, nullptr, 0, args, sizes, names, writable, count, blocks, key);
}

extern "C" const char *shim_prints() {
  static std::string text;
  text.clear();
  for (const auto &print : twin::TakePrints()) {
    text += "[core " + std::to_string(print.core) + "] " + print.text;
  }
  return text.c_str();
}

extern "C" const char *shim_findings() {
  static std::string text;
  text = "[";
  for (const auto &record : twin::TakeFindings()) {
    if (text.size() > 1) text += ",";
    text += Record(record);
  }
  text += "]";
  return text.c_str();
}
