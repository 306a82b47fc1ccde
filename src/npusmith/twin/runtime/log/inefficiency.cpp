// What costs time without being wrong: counted by place, told when a launch is over.
#include "log/inefficiency.h"

#include <map>

#include "core.h"
#include "text.h"

namespace twin {

namespace {

// guess: fewer are not worth a note
constexpr std::int64_t kManyCopies = 64, kManyBarriers = 64, kManyScalars = 256;
constexpr std::int64_t kSmallCopy = 2048;  // bytes; the vendor's advice is 16 KB and more

struct Tally {
  std::int64_t count = 0, bytes = 0;
};

std::map<std::pair<Inefficiency, std::uint32_t>, Tally> &All() {
  static thread_local std::map<std::pair<Inefficiency, std::uint32_t>, Tally> tallies;
  return tallies;
}

void ReportInefficiency(Inefficiency kind, const Call &call, const Tally &tally) {
  const auto note = [&](const char *code, const std::string &message) {
    Report(call, code, message, "", "", "", Level::kNote);
  };
  if (kind == Inefficiency::kCopy && tally.count >= kManyCopies &&
      tally.bytes < tally.count * kSmallCopy) {
    note("slow-copy", Text("%s ran %lld times and moved %lld B each on average", call.api,
                           Ll(tally.count), Ll(tally.bytes / tally.count)));
  }
  if (kind == Inefficiency::kBarrier && tally.count >= kManyBarriers) {
    note("slow-barrier", Text("%s of all pipes ran %lld times", call.api, Ll(tally.count)));
  }
  if (kind == Inefficiency::kScalar && tally.count >= kManyScalars) {
    note("slow-scalar", Text("%s ran %lld times", call.api, Ll(tally.count)));
  }
}

}  // namespace

void CountInefficiency(const Core &core, Inefficiency kind, std::int64_t bytes) {
  const LaunchSpec *spec = ThisLaunch().spec;
  if (spec == nullptr || !spec->notes) return;
  Tally &tally = All()[{kind, PlaceNumber(core.spot)}];
  tally.count += 1;
  tally.bytes += bytes;
}

void ReportInefficiencies() {
  for (const auto &[key, tally] : All()) ReportInefficiency(key.first, PlaceAt(key.second), tally);
  All().clear();
}

void ForgetInefficiencies() { All().clear(); }

}  // namespace twin
