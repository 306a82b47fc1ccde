// Tiling and the shape functions of a project, called in a process of their own.
#include "hostside.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "cage.h"
#include "fence/fence.h"
#include "guard.h"
#include "prepare.h"
#include "twin/chip.h"

namespace twin::host {

namespace {

constexpr std::uint32_t kMostBlocks = 65535;  // doc: SetBlockDim takes 1..65535
constexpr std::size_t kMostText = 64u << 20;
constexpr std::uint64_t kMostData = 1 << 20;  // bytes of a tensor that tiling may read; guess
// Of floats: a list of numbers, as aclFloatArray has them. Longer ones are what the kernel is for.
constexpr std::uint64_t kMostFloats = 256;  // bytes
constexpr int kUp = 3, kDown = 4;             // the pipes in the host side's process
constexpr double kGrace = 2;  // seconds beyond the host code's own alarm

struct Job {
  const Request &request;
  Decisions out;
  const ops::OpDef *op = nullptr;
  Functions functions;
  Node node;
  std::vector<Area> inputs;

  Report &report() { return out.report; }
};

std::string Describe(const Outcome &outcome) {
  if (outcome.stoppedByException) return "it threw: " + outcome.exception;
  if (outcome.stackOverflow) return "its stack overflowed: recursion, or large local arrays";
  const auto at = reinterpret_cast<std::uintptr_t>(outcome.address);
  if (outcome.signal != SIGSEGV) return strsignal(outcome.signal);
  if (at < 4096) return "it touched a null pointer";
  char text[32];
  std::snprintf(text, sizeof text, "%p", outcome.address);
  return std::string("it touched address ") + text + ", which is nobody's";
}

void AddOutcome(Job &job, const Outcome &outcome, const std::string &who) {
  Report &report = job.report();
  if (outcome.end == End::kTimedOut) {
    char limit[64];
    std::snprintf(limit, sizeof limit, " had not ended after %g s of processor time", job.request.seconds);
    report.Add("host-hang", "error", who + limit);
  } else if (outcome.end == End::kOutOfMemory) {
    report.Add("kernel-memory", "error", who + " asked for more memory than the run may have");
  } else {
    report.Add("host-crash", "error", who + " crashed: " + Describe(outcome));
  }
}

bool Call(Job &job, const char *phase, const std::string &who, const std::function<void()> &step) {
  const Outcome outcome = Guarded(phase, step);
  if (outcome.end == End::kReturned) return true;
  AddOutcome(job, outcome, who);
  return false;
}

bool LoadHost(Job &job) {
  void *library = nullptr;
  const bool returned = Call(job, "loading", "a static initialiser of the host code",
                             [&] { library = Load(job.report(), job.request.host); });
  if (!returned || library == nullptr) return false;
  FenceCode(reinterpret_cast<void *>(static_cast<link_map *>(library)->l_ld), false);
  job.op = ChooseOp(job.report());
  if (job.op == nullptr) return false;
  job.report().op = job.op->Type();
  job.functions = ChooseFunctions(*job.op);
  return CheckOrders(*job.op, job.request, job.report());
}

bool WriteAll(int file, const void *from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t done = write(file, static_cast<const char *>(from) + at, bytes - at);
    if (done <= 0) return false;
    at += static_cast<std::size_t>(done);
  }
  return true;
}

bool ReadAll(int file, void *to, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t done = read(file, static_cast<char *>(to) + at, bytes - at);
    if (done <= 0) return false;
    at += static_cast<std::size_t>(done);
  }
  return true;
}

// The tensors that the declaration or the tiling function's registration wants to read are asked
// for; the others have no address here.
void TakeInputs(Job &job) {
  const auto &wanted = job.functions.dataInputs;
  std::vector<std::size_t> asked;
  for (std::size_t at = 0; at < job.request.inputs.size(); ++at) {
    const std::size_t port = job.request.inputs[at].port;
    const bool read = job.op->Inputs()[port].ReadOnHost() ||
                      std::find(wanted.begin(), wanted.end(), port) != wanted.end();
    if (read) asked.push_back(at);
  }
  std::string words = "want";
  for (const std::size_t at : asked) words += " " + std::to_string(at);
  words += "\n";
  if (!asked.empty() && !WriteAll(kUp, words.data(), words.size())) throw std::runtime_error("no way back");
  for (std::size_t at = 0; at < job.request.inputs.size(); ++at) {
    const TensorOrder &order = job.request.inputs[at];
    std::vector<std::uint8_t> bytes;
    if (std::find(asked.begin(), asked.end(), at) != asked.end() && order.bytes <= kMostData) {
      bytes.resize(order.bytes);
      if (!ReadAll(kDown, bytes.data(), bytes.size())) throw std::runtime_error("no input came");
    }
    job.inputs.push_back(Area::OfBytes("input", bytes.data(), bytes.size()));
  }
}

// Only the standard streams and the two pipes stay open: no tensor, no report.
void KeepPipes(int up, int down) {
  const int high = fcntl(up, F_DUPFD, 64);  // out of the way of the numbers that they get
  const int low = fcntl(down, F_DUPFD, 64);
  dup2(high, kUp);
  dup2(low, kDown);
#if defined(SYS_close_range)
  if (syscall(SYS_close_range, static_cast<unsigned>(kDown + 1), ~0u, 0u) == 0) return;
#endif
  for (int file = kDown + 1; file < 4096; ++file) close(file);
}

bool RunParse(Job &job) {
  if (job.functions.parse == nullptr) return true;
  ge::graphStatus status = ge::GRAPH_SUCCESS;
  const bool returned = Call(job, "tiling", "TilingParse", [&] {
    job.node.compileInfo = job.functions.makeInfo();
    gert::TilingParseContext context(&job.node);
    status = reinterpret_cast<gert::OpImplRegisterV2::ParseFunc>(job.functions.parse)(&context);
  });
  if (!returned) return false;
  if (status == ge::GRAPH_SUCCESS) return true;
  job.report().Add("tiling-failed", "error", "TilingParse of " + job.op->Type() + " failed",
                   "status " + std::to_string(status));
  return false;
}

bool RunTiling(Job &job) {
  if (job.functions.tiling == nullptr) {
    const bool cube = !job.request.cube.empty();
    job.node.blocks = cube ? TWIN_CUBE_CORES : TWIN_VECTOR_CORES;
    job.report().Add("tiling-missing", "warning", job.op->Type() + " registers no tiling function",
                     "it runs on all " + std::to_string(job.node.blocks) + " cores");
    return true;
  }
  if (!RunParse(job)) return false;
  ge::graphStatus status = ge::GRAPH_SUCCESS;
  const bool returned = Call(job, "tiling", "the tiling function", [&] {
    gert::TilingContext context(&job.node);
    status = job.functions.tiling(&context);
  });
  if (!returned) return false;
  if (status == ge::GRAPH_SUCCESS) return true;
  job.report().Add("tiling-failed", "error", "the tiling function of " + job.op->Type() + " failed",
                   "status " + std::to_string(status));
  return false;
}

bool TakeTiling(Job &job) {
  Report &report = job.report();
  report.blocks = job.node.blocks;
  report.tilingKey = job.node.tilingKey;
  for (const std::size_t bytes : job.node.workspaces) report.workspaceBytes += bytes;
  const auto *data = static_cast<const std::uint8_t *>(job.node.tiling.GetData());
  const std::size_t size = job.node.tiling.GetDataSize();
  if (size > job.node.tiling.GetCapacity()) {
    report.Add("tiling-overflow", "error", "tiling data of " + std::to_string(size) + " bytes",
               "the buffer has " + std::to_string(job.node.tiling.GetCapacity()));
    return false;
  }
  report.tiling.assign(data, data + size);
  return true;
}

bool CheckBlocks(Job &job) {
  Report &report = job.report();
  if (report.blocks > 0 && report.blocks <= kMostBlocks) return true;
  const bool set = job.node.blocksSet || job.functions.tiling == nullptr;
  report.Add("block-dim", "error", "the kernel was to run on " + std::to_string(report.blocks) + " blocks",
             set ? "" : "tiling never calls SetBlockDim");
  return false;
}

void AddPorts(const std::vector<ops::OpParamDef> &declared, std::vector<Port> &ports) {
  for (const ops::OpParamDef &port : declared) {
    ports.push_back({port.Name(), port.Kind() == ops::DYNAMIC, port.HasInitValue(),
                     port.ShapeFromKernel()});
  }
}

bool Decide(Job &job) {
  if (!LoadHost(job)) return false;
  AddPorts(job.op->Inputs(), job.out.inputs);
  AddPorts(job.op->Outputs(), job.out.outputs);
  TakeInputs(job);
  FillNode(*job.op, job.functions, job.request, job.inputs, job.node);
  if (!RunTiling(job) || !TakeTiling(job) || !CheckBlocks(job)) return false;
  return Call(job, "tiling", "InferShape or InferDataType", [&] {
    CheckInference(*job.op, job.functions, job.request, job.node, job.report());
  });
}

[[noreturn]] void BeHost(const Request &request, int up, int down) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  KeepPipes(up, down);
  Close(Cage::kHost);
  static Job *job = new Job{request, {}, nullptr, {}, {}, {}};  // outlives the jumps out of steps
  try {
    StartDeadline(request.seconds, "");
    job->out.decided = Decide(*job);
  } catch (const std::exception &error) {
    job->report().Add("run-failed", "error", "the run could not be set up", error.what());
  }
  job->report().ran[kHostCode] = TakeBlocks(false);
  const std::string text = Write(job->out);
  WriteAll(kUp, text.data(), text.size());
  std::fflush(nullptr);
  _Exit(0);
}

bool IsFloat(int dtype) {
  return dtype == ge::DT_FLOAT || dtype == ge::DT_FLOAT16 || dtype == ge::DT_BF16 ||
         dtype == ge::DT_DOUBLE;
}

// Hands down the tensors that a line "want N ..." asks for, and notes those of many floats.
void Serve(const Request &request, const std::string &line, int down,
           std::vector<std::size_t> &floats) {
  std::istringstream words(line.substr(4));
  for (std::size_t at; words >> at;) {
    if (at >= request.inputs.size() || request.inputs[at].bytes > kMostData) continue;
    const TensorOrder &order = request.inputs[at];
    if (IsFloat(order.dtype) && order.bytes > kMostFloats) floats.push_back(at);
    std::vector<char> bytes(request.inputs[at].bytes);
    const ssize_t got = pread(request.inputs[at].file, bytes.data(), bytes.size(), 0);
    if (got < 0 || !WriteAll(down, bytes.data(), static_cast<std::size_t>(got))) return;
  }
}

// What comes through the pipe until it is closed, or time is up.
std::string Drain(const Request &request, int from, int down, std::vector<std::size_t> &floats) {
  const double seconds = request.seconds * kPatience + kGrace;
  bool served = false;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::string text;
  while (text.size() < kMostText) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0) break;
    pollfd ready{from, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    char chunk[1 << 16];
    const ssize_t got = read(from, chunk, sizeof chunk);
    if (got == 0) break;
    if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
    const std::size_t line = text.find('\n');
    if (served || line == std::string::npos) continue;
    served = true;
    if (text.rfind("want", 0) != 0) continue;
    Serve(request, text.substr(0, line), down, floats);
    text.erase(0, line + 1);
  }
  return text;
}

// The process ended by itself, without a word: exit() in a tiling function, or a signal.
Decisions Silent(int status) {
  Decisions decisions;
  const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                              : "exit status " + std::to_string(WEXITSTATUS(status));
  decisions.report.Add("host-crash", "error", "the host code ended its process: " + how);
  return decisions;
}

}  // namespace

void *Load(Report &report, const std::string &path) {
  // Lazy: what sources for other chips define is missing until it is called.
  void *library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    report.Add("load-failed", "error", "a compiled project does not load", dlerror());
  }
  return library;
}

Decisions DecideApart(const Request &request) {
  int up[2], down[2];
  if (pipe(up) != 0 || pipe(down) != 0) throw std::runtime_error("no pipe for the host side");
  signal(SIGPIPE, SIG_IGN);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process for the host side");
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    BeHost(request, up[1], down[0]);
  }
  close(up[1]);
  close(down[0]);
  std::vector<std::size_t> floats;
  const std::string text = Drain(request, up[0], down[1], floats);
  close(up[0]);
  close(down[1]);
  kill(child, SIGKILL);  // what it left running must not see what follows
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (text.empty()) return Silent(status);
  try {
    Decisions decisions = ReadDecisions(text);
    for (const std::size_t at : floats) {
      const std::size_t port = request.inputs[at].port;
      const bool named = port < decisions.inputs.size();
      const std::string name = named ? decisions.inputs[port].name : std::to_string(at);
      decisions.report.Add("host-values", "error",
                           "host code reads the elements of " + name + ", " +
                               std::to_string(request.inputs[at].bytes) + " bytes of floats");
    }
    return decisions;
  } catch (const std::exception &) {
    return Silent(status);
  }
}

}  // namespace twin::host
