// Who makes the steps of a Matmul object. A vector core's object asks the cube core of its block,
// which serves the vector cores one request after the other; for the log it stays until they have
// ended, and then does what they have asked for. Any other object works on its own core.
#include <deque>

#include "matmul/matmulsteps.h"
#include "log/record.h"

namespace twin {

// What a vector core asks of the cube core of its block.
struct MatmulRequest {
  MatmulWork work;
  int client;                        // OrderNumber
  Stamp begun;                       // when it was asked for
  std::vector<std::uint32_t> waits;  // of the client, for the answer
};

struct MatmulServer {
  std::vector<std::deque<std::shared_ptr<MatmulRequest>>> asked;  // by vector core of the block
  std::vector<std::uint32_t> served;
  MatmulShared shared;
};

namespace {

MatmulServer *ServerOf(const Core &core) {
  if (core.seat.kind == Kind::kCube) return nullptr;
  const auto &servers = ThisLaunch().servers;
  const auto found = servers.find(core.seat.group);
  return found == servers.end() ? nullptr : found->second.get();
}

MatmulWork WorkOf(const Call &call, MatmulState &s, const MatmulTask &task) {
  if (s.buffers == nullptr) s.buffers = std::make_shared<MatmulBuffers>();
  const std::uint8_t *scales = s.quant == 2 ? s.scales.base : nullptr;
  return {task,    s.traits,   s.tiling, s.m,      s.n,    s.k,  s.fromA,
          s.fromB, s.fromBias, scales,   !s.given, s.hf32, call, s.buffers};
}

// How many requests of a core another one knows of lies where cores keep what they know of cores.
int KnownAt(int client) {
  const Session &session = ThisLaunch();
  const std::uint32_t cores = session.CoresOf(Kind::kVector) + session.CoresOf(Kind::kCube);
  return static_cast<int>(2 * cores) + client;
}

std::uint32_t KnownOf(const Stamp &stamp, int client) {
  const auto at = static_cast<std::size_t>(KnownAt(client));
  return stamp.others == nullptr || stamp.others->size() <= at ? 0 : (*stamp.others)[at][0];
}

std::shared_ptr<MatmulRequest> Ask(Core &core, MatmulServer &server, const MatmulWork &work,
                                   const Stamp &begun) {
  const auto sub = static_cast<std::size_t>(core.seat.sub);
  auto &queue = server.asked[sub];
  const auto request = std::make_shared<MatmulRequest>();
  request->work = work;
  request->client = OrderNumber(core);
  request->begun = begun;
  queue.push_back(request);
  const auto count = static_cast<std::uint32_t>(queue.size());
  OrderLearn(core, KnownAt(request->client), {count});
  return request;
}

// The scalar unit waits for the answer; a result for UB then comes from the workspace.
void Await(Core &core, MatmulRequest &request) {
  RecordExtra(core, PIPE_S);
  const std::uint32_t wait = RecordJoin(core, "matmul_wait", 2 * core.seat.group + 1, {});
  if (wait != kNoJoin) request.waits.push_back(wait);
  const MatmulSpan &to = request.work.task.to;
  if (to.base == nullptr || !to.local || to.memory != Memory::kUb) return;
  const std::int64_t size = SizeOf(to.type), rows = to.layout.rows;
  RecordExtra(core, PIPE_MTE2);
  RecordCopy("gm_ub", to.type, rows, to.layout.cols * size, ThisLaunch().workspace,
             to.layout.cols * size, to.base - core.Ub());
}

// The cores take turns, unless one of them knew of what another had asked before it asked itself:
// to wait for it in the other order could last for ever.
std::size_t NextOf(const MatmulServer &server) {
  const std::size_t none = server.asked.size();
  std::size_t best = none;
  for (std::size_t sub = 0; sub < none; ++sub) {
    if (server.asked[sub].empty()) continue;
    bool later = false;
    for (std::size_t other = 0; other < none; ++other) {
      if (other == sub || server.asked[other].empty()) continue;
      const int client = server.asked[other].front()->client;
      later = later || KnownOf(server.asked[sub].front()->begun, client) > server.served[other];
    }
    if (later) continue;
    if (best == none || server.served[sub] < server.served[best]) best = sub;
  }
  return best;
}

// The scalar unit asks; an operand that is in UB must have been handed over, too.
Ticks NeededOf(const MatmulRequest &request) {
  const MatmulWork &work = request.work;
  const auto inUb = [](const MatmulSpan &span) {
    return span.base != nullptr && span.local && span.memory == Memory::kUb;
  };
  Ticks ticks{};
  ticks[UnitOf(PIPE_S)] = request.begun.issued;
  const bool handed = inUb(work.a) || inUb(work.b) || inUb(work.bias);
  if (handed) ticks[UnitOf(PIPE_MTE3)] = request.begun.own[UnitOf(PIPE_MTE3)];
  return ticks;
}

void Serve(Core &core, MatmulServer &server) {
  for (std::size_t sub = NextOf(server); sub < server.asked.size(); sub = NextOf(server)) {
    const auto request = server.asked[sub].front();
    server.asked[sub].pop_front();
    server.served[sub] += 1;
    core.spot = request->work.call;
    RecordExtra(core, PIPE_S);
    RecordJoin(core, "matmul_request", request->client, NeededOf(*request));
    RecordSteps(core, request->work, &server.shared);
    for (const std::uint32_t wait : request->waits) {
      RecordJoinLate(request->client, wait, core.clocks.now);
    }
  }
}

}  // namespace

void RecordMatmul(Core &core, const Call &call, MatmulState &s, const MatmulTask &task,
                  bool waits) {
  if (core.log == nullptr) return;
  const MatmulWork work = WorkOf(call, s, task);
  MatmulServer *server = s.traits.client ? ServerOf(core) : nullptr;
  if (server == nullptr) return RecordSteps(core, work, nullptr);
  s.request = Ask(core, *server, work, s.pending ? s.begun : OrderStamp(core, PIPE_ALL));
  if (waits) RecordWaited(core, s);
}

void RecordWaited(Core &core, MatmulState &s) {
  if (core.log != nullptr && s.request != nullptr) Await(core, *s.request);
  s.request = nullptr;
}

void ServeMatmuls() {
  Core &core = Me();
  if (core.log == nullptr) StopQuietly();
  const auto server = std::make_shared<MatmulServer>();
  server->asked.resize(static_cast<std::size_t>(ThisLaunch().vectors));
  server->served.resize(server->asked.size());
  ThisLaunch().servers[core.seat.group] = server;
  core.wait = Wait::kServe;
  Suspend();
  ThisLaunch().servers.erase(core.seat.group);
  Serve(core, *server);
  StopQuietly();
}

}  // namespace twin
