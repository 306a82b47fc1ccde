// The runtime inside of a process that is not the runner: a Python extension with direct launches.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guard.h"
#include "report.h"
#include "twin/direct.h"

namespace twin::host {

namespace {

struct Embedded {
  Report report;
  std::string path;
};
Embedded embedded;

void Write() {
  for (const FindingRecord &finding : TakeFindings()) embedded.report.findings.push_back(finding);
  for (const FindingRecord &finding : Directs().findings) {
    embedded.report.findings.push_back(finding);
  }
  Directs().findings.clear();
  for (PrintRecord &print : TakePrints()) embedded.report.prints.push_back(std::move(print));
  embedded.report.apis = TakeApis();
  embedded.report.completed = Directs().completed;
  embedded.report.blocks = Directs().blocks;
  WriteReport(embedded.report, embedded.path);
}

std::string Describe(const Outcome &outcome) {
  if (outcome.stoppedByException) return "it threw: " + outcome.exception;
  if (outcome.stackOverflow) return "its stack overflowed: recursion, or large local arrays";
  if (outcome.address != nullptr) return "it touched " + NearAllocation(outcome.address);
  return strsignal(outcome.signal);
}

// After a crash the process is good for the report and nothing else.
[[noreturn]] void GiveUp(const Outcome &outcome) {
  const char *code = "kernel-crash";
  std::string message = "the kernel crashed: " + Describe(outcome);
  if (outcome.end == End::kTimedOut) {
    code = "kernel-hang";
    message = "the kernel had not ended in time";
  } else if (outcome.end == End::kOutOfMemory) {
    code = "kernel-memory";
    message = "the kernel asked for more memory than the run may have";
  }
  Directs().completed = false;
  const Spot &spot = outcome.spot;
  embedded.report.Add(code, "error", message,
                      *spot.api == '\0' ? "" : std::string("last call: ") + spot.api);
  FindingRecord &finding = embedded.report.findings.back();
  finding.file = spot.file;
  finding.line = spot.line;
  finding.core = spot.core;
  Write();
  std::fflush(nullptr);
  _exit(4);
}

bool RunGuarded(bool (*launch)(void *), void *at) {
  bool done = false;
  const Outcome outcome = Guarded("kernel", [&] { done = launch(at); });
  if (outcome.end != End::kReturned) GiveUp(outcome);
  return done;
}

}  // namespace

}  // namespace twin::host

// Findings go to `path` instead of stderr; `seconds` limit all launches together. NPUSMITH_LOGS
// names a folder for the logs of the launches: direct, direct.1, ...
extern "C" void twin_embed(const char *path, double seconds) {
  using namespace twin::host;
  embedded.path = path;
  StartDeadline(seconds, embedded.path + ".note");
  twin::Directs().collect = true;
  twin::Directs().guard = RunGuarded;
  if (const char *logs = std::getenv("NPUSMITH_LOGS")) {
    twin::Directs().log = std::string(logs) + "/direct";
    twin::Directs().mostSteps = twin::LaunchSpec{}.mostSteps;
  }
}

extern "C" void twin_embed_report() { twin::host::Write(); }
