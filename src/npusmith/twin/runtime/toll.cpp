// What costs time without being wrong: counted by place, told when a launch is over.
#include "toll.h"

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

std::map<std::pair<Toll, std::uint32_t>, Tally> &All() {
  static thread_local std::map<std::pair<Toll, std::uint32_t>, Tally> tallies;
  return tallies;
}

void ReportToll(Toll toll, const Call &call, const Tally &tally) {
  const auto note = [&](const char *code, const std::string &message) {
    Report(call, code, message, "", "", "", Level::kNote);
  };
  if (toll == Toll::kCopy && tally.count >= kManyCopies && tally.bytes < tally.count * kSmallCopy) {
    note("slow-copy", Text("%s ran %lld times and moved %lld B each on average", call.api,
                           Ll(tally.count), Ll(tally.bytes / tally.count)));
  }
  if (toll == Toll::kBarrier && tally.count >= kManyBarriers) {
    note("slow-barrier", Text("%s of all pipes ran %lld times", call.api, Ll(tally.count)));
  }
  if (toll == Toll::kScalar && tally.count >= kManyScalars) {
    note("slow-scalar", Text("%s ran %lld times", call.api, Ll(tally.count)));
  }
}

}  // namespace

void CountToll(const Core &core, Toll toll, std::int64_t bytes) {
  const LaunchSpec *spec = ThisLaunch().spec;
  if (spec == nullptr || !spec->notes) return;
  Tally &tally = All()[{toll, PlaceNumber(core.spot)}];
  tally.count += 1;
  tally.bytes += bytes;
}

void ReportTolls() {
  for (const auto &[key, tally] : All()) ReportToll(key.first, PlaceAt(key.second), tally);
  All().clear();
}

void ForgetTolls() { All().clear(); }

}  // namespace twin
