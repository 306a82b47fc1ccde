// Findings: collected in order of first occurrence, one per code, file and line.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core.h"
#include "stops.h"
#include "text.h"

namespace twin {

namespace {

struct Store {
  std::vector<FindingRecord> records;
  std::size_t notes = 0, others = 0;  // of the records
  std::uint64_t dropped = 0;
};

Store &Findings() {
  static Store store;
  return store;
}

const char *LevelName(Level level) {
  constexpr const char *kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<int>(level)];
}

long StepOf(const Core &core, const Site &site) {
  for (const auto &slot : core.lines.slots) {
    if (slot.file == site.file && slot.line == site.line) return slot.runs - 1;
  }
  return -1;
}

FindingRecord *Recorded(const char *code, const Site &site) {
  for (auto &record : Findings().records) {
    if (record.line == site.line && record.code == code && record.file == site.file) return &record;
  }
  return nullptr;
}

}  // namespace

bool Skipped() {
  constexpr const char *kSeenOnly[] = {"hazard", "gm-race", "uninit-read", "atomic-uninit"};
  for (const auto &record : Findings().records) {
    const bool only = std::any_of(std::begin(kSeenOnly), std::end(kSeenOnly),
                                  [&](const char *code) { return record.code == code; });
    if (record.level == LevelName(Level::kError) && !only) return true;
  }
  return false;
}

bool Again(const Call &call, const char *code) {
  FindingRecord *known = Recorded(code, call.site);
  if (known != nullptr) known->count += 1;
  return known != nullptr;
}

void Report(const Call &call, const char *code, std::string message, std::string seen,
            std::string legal, std::string hint, Level level) {
  const LaunchSpec *spec = ThisLaunch().spec;
  if (level == Level::kNote && (spec == nullptr || !spec->notes)) return;
  if (Again(call, code)) {
    // a line that only warned before may break the rule now
    if (level == Level::kError) Recorded(code, call.site)->level = LevelName(level);
    return;
  }
  const Core &core = Me();
  Store &store = Findings();
  // notes may not crowd out what is wrong
  std::size_t &listed = level == Level::kNote ? store.notes : store.others;
  if (spec != nullptr && listed >= spec->maxFindings) {
    store.dropped += 1;
    return;
  }
  FindingRecord record;
  record.code = code;
  record.level = LevelName(level);
  record.message = std::move(message);
  record.file = call.site.file;
  record.line = call.site.line;
  record.core = core.block;
  record.step = StepOf(core, call.site);
  record.seen = std::move(seen);
  record.legal = std::move(legal);
  record.hint = std::move(hint);
  listed += 1;
  store.records.push_back(std::move(record));
  if (level == Level::kError) StopAtFinding(store.records.back());
}

std::vector<FindingRecord> TakeFindings() {
  Store &store = Findings();
  if (store.dropped > 0 && !store.records.empty()) {
    store.records.back().hint +=
        Text(" (%lld further findings are not listed)", static_cast<long long>(store.dropped));
  }
  store.dropped = 0;
  store.notes = store.others = 0;
  return std::exchange(store.records, {});
}

const char *NameOf(AscendC::TPosition position) {
  constexpr const char *kNames[] = {"GM",  "A1",     "A2",      "B1",  "B2",  "C1",
                                    "C2",  "CO1",    "CO2",     "VECIN", "VECOUT", "VECCALC",
                                    "SPM", "SHM",    "TSCM",    "C2PIPE2GM", "no position"};
  return kNames[static_cast<int>(position)];
}

const char *NameOf(DType type) {
  constexpr const char *kNames[] = {"float",   "half",     "bfloat16_t", "int8_t",
                                    "uint8_t", "int16_t",  "uint16_t",   "int32_t",
                                    "uint32_t", "int64_t",  "uint64_t",   "double",
                                    "int4b_t"};
  return kNames[static_cast<int>(type)];
}

const char *NameOf(BufferState state) {
  constexpr const char *kNames[] = {"free",     "allocated",   "in the queue",
                                    "dequeued", "a TBuf",      "given up by TPipe::Reset"};
  return kNames[static_cast<int>(state)];
}

std::string PlaceOf(const Site &site) {
  const std::string file = site.file;
  if (site.line == 0 && !file.empty()) return file;  // no place in a file
  const auto slash = file.rfind('/');
  return Text("%s:%d", file.substr(slash == std::string::npos ? 0 : slash + 1).c_str(), site.line);
}

}  // namespace twin
