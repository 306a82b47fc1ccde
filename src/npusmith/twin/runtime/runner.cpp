// Runs one operator of a compiled project: tiling on the host side, then the kernel on every core.
// runner ORDERS REPORT: reads the orders (host/request.h), writes the report (host/report.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>

#include "host/cage.h"
#include "host/files.h"
#include "host/guard.h"
#include "fence/fence.h"
#include "host/hostside.h"
#include "host/memory.h"
#include "twin/chip.h"
#include "twin/direct.h"
#include "twin/launch.h"

namespace twin::host {

namespace {

constexpr std::uint64_t kShapeWords = 9;  // of an output's shape: its rank and eight sizes

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Memory {
  std::vector<Area> inputs, outputs, lists;
  std::vector<Area> rest;  // workspace, then tiling
  bool shut = false;       // for host code of a launcher: it is the chip's
};

struct Job {
  Request request;
  Report report;
  bool isOp = false;  // with ports; a direct launch has none
  std::vector<Port> inputs, outputs;
  Memory memory;
  std::size_t params = 0;
};

std::string Hex(const void *address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

// The memory that an address lies in or near; null for an address that is nobody's.
const Area *TensorOf(const Job &job, const void *address) {
  const Memory &memory = job.memory;
  for (const auto *areas : {&memory.inputs, &memory.outputs, &memory.lists, &memory.rest}) {
    for (const Area &area : *areas) {
      if (area.Near(address)) return &area;
    }
  }
  return nullptr;
}

std::string NearWhat(const Job &job, const void *address) {
  if (const Area *area = TensorOf(job, address)) {
    const auto offset = static_cast<const std::uint8_t *>(address) - area->Base();
    const bool inside = offset >= 0 && static_cast<std::uint64_t>(offset) < area->Bytes();
    if (inside && job.memory.shut) return area->Name() + ", which lies in the chip's memory";
    if (inside) return "a write to " + area->Name() + ", which is read-only";
    return "byte " + std::to_string(offset) + " of " + area->Name() + ", which has " +
           std::to_string(area->Bytes()) + " bytes";
  }
  if (reinterpret_cast<std::uintptr_t>(address) < 4096) return "a null pointer";
  return "address " + Hex(address) + ", which is nobody's";
}

std::string Describe(const Job &job, const Outcome &outcome) {
  if (outcome.stoppedByException) return "it threw: " + outcome.exception;
  if (outcome.stackOverflow) return "its stack overflowed: recursion, or large local arrays";
  if (outcome.address != nullptr || outcome.signal == SIGSEGV) {
    return "it touched " + NearWhat(job, outcome.address);
  }
  return strsignal(outcome.signal);
}

// What a step that did not return left behind, as a finding at the last API call.
void ReportOutcome(Job &job, const Outcome &outcome, const char *crash, const char *hang,
                   const std::string &who) {
  const Spot &spot = outcome.spot;
  std::string seen = *spot.api == '\0' ? "" : std::string("last call: ") + spot.api;
  Report &report = job.report;
  if (outcome.end == End::kTimedOut) {
    char limit[64];
    std::snprintf(limit, sizeof limit, " had not ended after %g s of processor time", job.request.seconds);
    report.Add(hang, "error", who + limit, seen);
  } else if (outcome.end == End::kOutOfMemory) {
    report.Add("kernel-memory", "error", who + " asked for more memory than the run may have", seen);
  } else {
    report.Add(crash, "error", who + " crashed: " + Describe(job, outcome), seen);
  }
  FindingRecord &finding = report.findings.back();
  finding.file = spot.file;
  finding.line = spot.line;
  finding.core = spot.core;
}

// ---- memory and arguments

std::string NameOf(const Job &job, bool output, const TensorOrder &order) {
  const std::string role = output ? "output " : "input ";
  if (!job.isOp) return role + std::to_string(order.port);
  return role + (output ? job.outputs : job.inputs).at(order.port).name;
}

bool StartsAtZero(const Job &job, const TensorOrder &order) {
  return job.isOp && job.outputs.at(order.port).startsAtZero;
}

// Whoever called filled this output: it adds to what is there.
bool HoldsData(const Job &job, std::size_t output) {
  const auto &filled = job.request.filled;
  return std::find(filled.begin(), filled.end(), output) != filled.end();
}

void Blank(const Job &job, const TensorOrder &order, Area &area) {
  if (job.request.dry) return;  // nothing is read, and the tensors may be larger than memory
  if (StartsAtZero(job, order)) std::memset(area.Base(), 0, area.Bytes());
  else area.Poison();
}

void MapTensors(Job &job) {
  const Request &request = job.request;
  std::vector<bool> shared(request.inputs.size(), false);
  for (const TensorOrder &order : request.outputs) {
    if (order.ref >= 0) shared.at(static_cast<std::size_t>(order.ref)) = true;
  }
  for (const std::size_t position : request.writes) shared.at(position) = true;
  for (std::size_t at = 0; at < request.inputs.size(); ++at) {
    const TensorOrder &order = request.inputs[at];
    job.memory.inputs.push_back(Area::OfFile(NameOf(job, false, order), order.file, order.bytes, shared[at]));
  }
  for (const TensorOrder &order : request.outputs) {
    if (order.ref >= 0) {
      job.memory.outputs.push_back(job.memory.inputs[static_cast<std::size_t>(order.ref)]);
      continue;
    }
    job.memory.outputs.push_back(Area::OfFile(NameOf(job, true, order), order.file, order.bytes, true));
    if (!HoldsData(job, job.memory.outputs.size() - 1)) Blank(job, order, job.memory.outputs.back());
  }
}

// A list of tensors reaches the kernel as one descriptor: the byte offset of the pointers, then for
// each tensor its rank (low half) and index (high half) and its dimensions, then the pointers.
Area ListOf(const std::string &name, const std::vector<TensorOrder> &orders,
            const std::vector<Area> &areas, std::size_t port) {
  std::vector<std::uint64_t> words(1, 0), pointers;
  for (std::size_t at = 0; at < orders.size(); ++at) {
    if (orders[at].port != port) continue;
    words.push_back(static_cast<std::uint64_t>(pointers.size()) << 32 | orders[at].dims.size());
    for (const std::int64_t dim : orders[at].dims) words.push_back(static_cast<std::uint64_t>(dim));
    pointers.push_back(reinterpret_cast<std::uint64_t>(areas[at].Base()));
  }
  words[0] = words.size() * 8;
  words.insert(words.end(), pointers.begin(), pointers.end());
  return Area::OfBytes(name + " (list)", words.data(), words.size() * 8);
}

void AddArgs(Job &job, const std::vector<Port> &ports,
             const std::vector<TensorOrder> &orders, const std::vector<Area> &areas,
             std::vector<void *> &args) {
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (ports[port].list) {
      job.memory.lists.push_back(ListOf(ports[port].name, orders, areas, port));
      args.push_back(job.memory.lists.back().Base());
      continue;
    }
    void *base = nullptr;  // an absent optional tensor
    for (std::size_t at = 0; at < orders.size(); ++at) {
      if (orders[at].port == port) base = areas[at].Base();
    }
    args.push_back(base);
  }
}

std::vector<void *> MakeArgs(Job &job) {
  std::vector<void *> args;
  AddArgs(job, job.inputs, job.request.inputs, job.memory.inputs, args);
  AddArgs(job, job.outputs, job.request.outputs, job.memory.outputs, args);
  const Report &report = job.report;
  // Kernels that find out the shape of an output write it behind the outputs: rank, then sizes.
  const auto &outputs = job.outputs;
  const auto dependent = std::count_if(outputs.begin(), outputs.end(),
                                       [](const auto &port) { return port.shapeFromKernel; });
  if (dependent > 0) {
    const std::uint64_t bytes = outputs.size() * kShapeWords * sizeof(std::uint64_t);
    job.memory.rest.push_back(Area::OfPoison("the outputs' shapes", bytes));
  }
  job.memory.rest.push_back(Area::OfPoison("workspace", report.workspaceBytes));
  job.memory.rest.push_back(Area::OfBytes("tiling", report.tiling.data(), report.tiling.size()));
  for (const Area &area : job.memory.rest) args.push_back(area.Base());
  return args;
}

std::vector<Region> MakeRegions(const Job &job) {
  std::vector<Region> regions;
  const auto add = [&](const Area &area, bool blank = false, bool scratch = false,
                       bool table = false) {
    regions.push_back(
        {area.Base(), area.Bytes(), area.Name(), area.Writable(), area.Padding(), blank,
         scratch, table});
  };
  for (const Area &area : job.memory.inputs) add(area);
  for (std::size_t at = 0; at < job.memory.outputs.size(); ++at) {
    const TensorOrder &order = job.request.outputs[at];
    const bool blank = !HoldsData(job, at) && !StartsAtZero(job, order);
    if (order.ref < 0) add(job.memory.outputs[at], blank);
  }
  for (const Area &area : job.memory.lists) add(area, false, false, true);
  for (const Area &area : job.memory.rest) {
    const bool workspace = area.Name() == "workspace";
    add(area, workspace, workspace, area.Name() == "tiling");
  }
  return regions;
}

// Whether a write past the end of the area has been reported with its place.
bool Explained(const Job &job, const Area &area) {
  const std::string where = " of " + area.Name() + ", which has ";
  return std::any_of(job.report.findings.begin(), job.report.findings.end(),
                     [&](const FindingRecord &finding) {
                       return finding.code == "gm-bounds" && finding.message.rfind("dst", 0) == 0 &&
                              finding.seen.find(where) != std::string::npos;
                     });
}

void CheckOverruns(Job &job) {
  const Memory &memory = job.memory;
  for (const auto *areas : {&memory.inputs, &memory.outputs, &memory.rest}) {
    for (const Area &area : *areas) {
      const std::uint64_t past = area.Overrun();
      if (past == 0 || Explained(job, area)) continue;
      job.report.Add("gm-overrun", "error", "the kernel wrote past the end of " + area.Name(),
                     "byte " + std::to_string(area.Bytes() + past - 1) + " of " +
                         std::to_string(area.Bytes()));
    }
  }
}

// ---- kernel side

// The kernel's library with `name` in it; null after a finding.
void *LoadKernel(Job &job, const std::string &path, const char *name) {
  void *library = nullptr;
  const Outcome outcome = Guarded("loading", [&] { library = Load(job.report, path); });
  if (outcome.end != End::kReturned) {
    ReportOutcome(job, outcome, "kernel-crash", "kernel-hang", "a static initialiser of the kernel");
    return nullptr;
  }
  if (library == nullptr) return nullptr;
  void *entry = dlsym(library, name);
  const auto *params = static_cast<const std::uint64_t *>(dlsym(library, "twin_params"));
  if (entry == nullptr || params == nullptr) {
    job.report.Add("load-failed", "error", "the compiled kernel lacks its entry", path);
    return nullptr;
  }
  job.params = *params;
  return entry;
}

bool CountFits(Job &job, std::size_t given, const char *what) {
  if (given == job.params) return true;
  job.report.Add("entry-arguments", "error",
                 "the kernel takes " + std::to_string(job.params) + " arguments, the operator has " +
                     std::to_string(given),
                 what);
  return false;
}

void TakeReached(Report &report) {
  report.prints = TakePrints();
  report.apis = TakeApis();
  report.instructions = TakeInstructions();
  report.ran[kVectorCode] = TakeBlocks(false);
  report.ran[kCubeCode] = TakeBlocks(true);
}

// Runs what launches the kernel, then takes stock.
// Whether tensors and workspace may be touched; values that a launcher is given are the host's.
void Open(Job &job, bool open) {
  for (Area &area : job.memory.inputs) area.Allow(open);
  for (Area &area : job.memory.outputs) area.Allow(open);
  for (Area &area : job.memory.rest) {
    if (area.Name() == "workspace") area.Allow(open);
  }
  job.memory.shut = !open;
}

bool Watch(Job &job, const std::function<bool()> &launch) {
  bool completed = false;
  const Outcome outcome = Guarded("kernel", [&] { completed = launch(); });
  for (FindingRecord &finding : TakeFindings()) job.report.findings.push_back(finding);
  for (const FindingRecord &finding : Directs().findings) job.report.findings.push_back(finding);
  TakeReached(job.report);
  if (outcome.end != End::kReturned) {
    const bool host = job.memory.shut;  // or the kernel
    const bool touched = host && TensorOf(job, outcome.address) != nullptr;
    ReportOutcome(job, outcome, touched ? "host-memory" : "kernel-crash", "kernel-hang",
                  host ? "host code of the launcher" : "the kernel");
    completed = false;
  }
  if (job.memory.shut) Open(job, true);
  CheckOverruns(job);
  return completed;
}

KernelType TypeOf(const Job &job) {
  const auto &own = job.request.keyTypes;
  const auto found = own.find(job.report.tilingKey);
  return static_cast<KernelType>(found == own.end() ? job.request.type : found->second);
}

bool RunKernel(Job &job) {
  const auto load = [&job](const std::string &path) {
    void *entry = path.empty() ? nullptr : LoadKernel(job, path, "twin_entry");
    return reinterpret_cast<void (*)(void **)>(entry);
  };
  const auto entry = load(job.request.kernel), cube = load(job.request.cube);
  const bool lacks = (entry == nullptr) != job.request.kernel.empty() ||
                     (cube == nullptr) != job.request.cube.empty();
  if (lacks) return false;
  std::vector<void *> args = MakeArgs(job);
  if (!CountFits(job, args.size(), "inputs, outputs, workspace, tiling")) return false;
  LaunchSpec spec{};
  spec.entry = entry;
  spec.cube = cube;
  spec.type = TypeOf(job);
  spec.args = args.data();
  spec.argCount = args.size();
  spec.blocks = job.report.blocks;
  spec.tilingKey = job.report.tilingKey;
  spec.saturate = job.request.saturate;
  spec.regions = MakeRegions(job);
  spec.autoSync = job.request.autoSync;
  spec.notes = job.request.notes;
  spec.shuffle = job.request.shuffle;
  spec.log = job.request.log;
  spec.mostSteps = job.request.mostSteps;
  spec.dry = job.request.dry;
  spec.ends = job.request.ends;
  spec.ready = [] { Close(Cage::kKernel); };
  return Watch(job, [&] { return Launch(spec); });
}

// What launches out of host code are checked for.
void FillDirects(Job &job) {
  DirectState &state = Directs();
  state.collect = true;
  state.autoSync = job.request.autoSync;
  state.notes = job.request.notes;
  state.shuffle = job.request.shuffle;
  state.log = job.request.log;
  state.mostSteps = job.request.mostSteps;
  state.dry = job.request.dry;
  if (job.request.cube.empty()) return;
  Guarded("loading", [&] { state.cube = Load(job.report, job.request.cube); });
  state.type = static_cast<KernelType>(job.request.type);
  for (const auto &[name, type] : job.request.entryTypes) {
    state.types.emplace_back(name, static_cast<KernelType>(type));
  }
}

// The host side's word is checked again: its code ran in the process that gave it.
void TakeDecisions(Job &job, Decisions decisions) {
  const Report &said = decisions.report;
  if (decisions.decided && said.workspaceBytes > job.request.cap) {
    decisions.report.Add("workspace-size", "error",
                         "tiling asks for " + std::to_string(said.workspaceBytes) + " bytes of workspace",
                         "this run may have " + std::to_string(job.request.cap));
    decisions.decided = false;
  }
  job.report = std::move(decisions.report);
  job.inputs = std::move(decisions.inputs);
  job.outputs = std::move(decisions.outputs);
  job.isOp = decisions.decided;
}

void RunOperator(Job &job) {
  const Clock::time_point start = Clock::now();
  TakeDecisions(job, DecideApart(job.request));
  if (!job.isOp) return;
  MapTensors(job);
  job.report.hostSeconds = Since(start);
  const Clock::time_point launched = Clock::now();
  job.report.completed = RunKernel(job);
  job.report.kernelSeconds = Since(launched);
}

// ---- direct launches

std::vector<void *> MakeDirectArgs(Job &job) {
  std::vector<void *> args;
  for (const Area &area : job.memory.inputs) args.push_back(area.Base());
  for (const Area &area : job.memory.outputs) args.push_back(area.Base());
  for (const TailOrder &order : job.request.tail) {
    const bool value = !order.value.empty();
    job.memory.rest.push_back(
        value ? Area::OfBytes("a value", order.value.data(), order.value.size())
              : Area::OfPoison("workspace", order.workspace));
    args.push_back(job.memory.rest.back().Base());
  }
  return args;
}

Job *launcher = nullptr;  // while its host code runs

void RunDirect(Job &job) {
  MapTensors(job);
  void *entry = LoadKernel(job, job.request.kernel, "twin_direct");
  if (entry == nullptr) return;
  std::vector<void *> args = MakeDirectArgs(job);
  if (!CountFits(job, args.size(), "behind blocks and stream: inputs, outputs, the rest")) return;
  Directs().regions = MakeRegions(job);
  FillDirects(job);
  const auto launch = reinterpret_cast<void (*)(std::uint32_t, void **)>(entry);
  const Clock::time_point launched = Clock::now();
  launcher = &job;
  Directs().device = [](bool open) { Open(*launcher, open); };
  job.report.completed = Watch(job, [&] {
    Open(job, false);
    launch(job.request.direct, args.data());
    Open(job, true);
    return Directs().completed;
  });
  Directs().device = nullptr;
  job.report.blocks = Directs().blocks;
  job.report.kernelSeconds = Since(launched);
}

// ---- programs with a main function, which launch kernels through acl.h

Job *program = nullptr;  // while it runs; its exit() comes back to OnExit
int reportFile = -1;

bool Succeeded(Job &job, int status) {
  job.report.blocks = Directs().blocks;
  if (status == 0) return Directs().completed;
  job.report.Add("program-failed", "error", "the program ended with status " + std::to_string(status));
  return false;
}

void OnExit(int status, void *) {
  if (program == nullptr) return;
  WatchFiles(false);
  for (FindingRecord &finding : Directs().findings) program->report.findings.push_back(finding);
  for (FindingRecord &finding : TakeFindings()) program->report.findings.push_back(finding);
  TakeReached(program->report);
  program->report.completed = Succeeded(*program, status);
  SendReport(program->report, reportFile);
  std::fflush(nullptr);
  _Exit(0);
}

void RunProgram(Job &job) {
  void *entry = LoadKernel(job, job.request.kernel, "twin_main");
  if (entry == nullptr) return;
  FillDirects(job);
  const Clock::time_point launched = Clock::now();
  program = &job;
  TakeFindings();  // what OnExit reads must be made before, to be destroyed after it
  TakeApis();
  TakePrints();
  on_exit(OnExit, nullptr);
  static char name[] = "program";
  std::vector<char *> arguments{name};
  for (std::string &given : job.request.arguments) arguments.push_back(given.data());
  arguments.push_back(nullptr);
  WatchFiles(true);
  const auto main = reinterpret_cast<int (*)(int, char **)>(entry);
  const int count = static_cast<int>(arguments.size()) - 1;
  job.report.completed = Watch(job, [&] { return Succeeded(job, main(count, arguments.data())); });
  WatchFiles(false);
  program = nullptr;
  job.report.kernelSeconds = Since(launched);
}

void Run(Job &job) {
  if (job.request.program || job.request.direct > 0) Close(Cage::kHost);
  if (job.request.program) RunProgram(job);
  else if (job.request.direct > 0) RunDirect(job);
  else RunOperator(job);
}

}  // namespace

// Opens a file and takes its name away: what runs later finds nothing to open.
int OpenOnly(const std::string &path, int how) {
  const int file = open(path.c_str(), how | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("cannot open " + path);
  return file;
}

void OpenTensors(Request &request) {
  for (TensorOrder &order : request.inputs) order.file = OpenOnly(order.path, O_RDWR);
  for (TensorOrder &order : request.outputs) {
    if (order.ref < 0) order.file = OpenOnly(order.path, O_RDWR);
  }
  for (const auto *orders : {&request.inputs, &request.outputs}) {
    for (const TensorOrder &order : *orders) unlink(order.path.c_str());
  }
}

int Main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: runner ORDERS REPORT\n");
    return 2;
  }
  const std::string path = argv[2];
  static Job job;  // outlives the jumps out of guarded steps
  try {
    reportFile = OpenOnly(path, O_WRONLY);
    unlink(path.c_str());
    job.request = ReadRequest(argv[1]);
    unlink(argv[1]);
    // The host side's process cannot look into this one; a debugger takes its stops out of that one.
    if (!job.request.traced) prctl(PR_SET_DUMPABLE, 0);
    OpenTensors(job.request);
    StartDeadline(job.request.seconds, path + ".note");
    Run(job);
  } catch (const std::exception &error) {
    job.report.Add("run-failed", "error", "the run could not be set up", error.what());
  }
  SendReport(job.report, reportFile);
  std::fflush(nullptr);
  _Exit(0);  // the project's destructors are not ours to run
}

}  // namespace twin::host

int main(int argc, char **argv) { return twin::host::Main(argc, argv); }
