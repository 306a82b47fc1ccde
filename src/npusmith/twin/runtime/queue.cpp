// TPipe, TQue and TBuf: who owns which piece of UB, and in which state each piece is.
#include <algorithm>
#include <string_view>

#include "check.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

constexpr int kMostBuffers = 64;        // of one TPipe (doc: TPipe)
constexpr int kMostPerPosition = 8;     // event ids of one pair of positions (doc: TQue)

std::int64_t PadBlock(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

View ViewOf(const Core &core, int index) {
  const Buffer &buffer = core.buffers[static_cast<std::size_t>(index)];
  return {buffer.addr, buffer.bytes, index, buffer.generation, buffer.position};
}

// What InitBuffer may give out: the top 256 B of UB are the system's.
std::int64_t UsableBytes(Memory memory) {
  return memory == Memory::kUb ? kUbUsable : BytesOf(memory);
}

// Takes memory from the pipe; past its end the piece has an address that no use of it will pass.
int TakePiece(Core &core, const Call &call, std::int64_t bytes, BufferState state, int queue,
              AscendC::TPosition position) {
  const std::int64_t padded = PadBlock(bytes);
  Space &space = core.spaces[static_cast<std::size_t>(MemoryOf(position))];
  // One buffer of all the memory is how tensors at fixed places begin (TPipe::Destroy comes next).
  const bool whole = space.top == 0 && padded == BytesOf(MemoryOf(position));
  if (space.top + padded > UsableBytes(MemoryOf(position)) && !whole && !space.overflow) {
    space.overflow = true;
    space.overflowSite = call.site;
  }
  core.buffers.push_back(
      {space.top, padded, state, 0, queue, position, call.site, call.site, {}});
  space.top += padded;
  return static_cast<int>(core.buffers.size()) - 1;
}

std::string PiecesOf(const Core &core, Memory memory) {
  std::string text;
  for (std::size_t i = 0; i < core.buffers.size(); ++i) {
    const Buffer &buffer = core.buffers[i];
    if (buffer.state == BufferState::kGone || MemoryOf(buffer.position) != memory) continue;
    std::size_t same = i;
    while (same + 1 < core.buffers.size() && core.buffers[same + 1].queue == buffer.queue &&
           buffer.queue >= 0 && core.buffers[same + 1].made.line == buffer.made.line) {
      ++same;
    }
    const auto copies = static_cast<std::int64_t>(same - i) + 1;
    text += Text("%s%s at %s: %lld x %lld B", text.empty() ? "" : ", ", NameOf(buffer.position),
                 PlaceOf(buffer.made).c_str(), Ll(copies), Ll(buffer.bytes));
    i = same;
  }
  return text;
}

void CheckPositionCount(Core &core, const Call &call, const QueueShape &shape) {
  std::int64_t buffers = 0, all = 0;
  for (const Queue &queue : core.queues) {
    if (!queue.open) continue;
    all += static_cast<std::int64_t>(queue.buffers.size());
    const bool same = queue.shape.source == shape.source && queue.shape.target == shape.target;
    if (same) buffers += static_cast<std::int64_t>(queue.buffers.size());
  }
  if (buffers > kMostPerPosition) {
    Report(call, "queue-buffers",
           Text("queues at %s have %lld buffers in all", NameOf(shape.source), Ll(buffers)),
           Text("%lld", Ll(buffers)), Text("at most %d", kMostPerPosition));
  }
  if (all > kMostBuffers) {
    Report(call, "queue-buffers", Text("the pipe has %lld buffers in all", Ll(all)),
           Text("%lld", Ll(all)), Text("at most %d", kMostBuffers));
  }
}

Queue &QueueOf(Core &core, const Call &call, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= core.queues.size() ||
      !core.queues[static_cast<std::size_t>(index)].open) {
    Report(call, "queue-state", Text("%s on a queue that InitBuffer has not set up", call.api));
    StopCore();
  }
  return core.queues[static_cast<std::size_t>(index)];
}

std::string StatesOf(const Core &core, const Queue &queue) {
  std::string text;
  for (int index : queue.buffers) {
    const Buffer &buffer = core.buffers[static_cast<std::size_t>(index)];
    text += Text("%sbuffer %d %s since %s", text.empty() ? "" : ", ", index, NameOf(buffer.state),
                 PlaceOf(buffer.moved).c_str());
  }
  return text;
}

// The pipe that empties a buffer at a position (doc: TQue).
pipe_t Consumer(const QueueShape &shape) {
  using P = AscendC::TPosition;
  switch (shape.target == P::GM ? shape.source : shape.target) {
    case P::VECOUT: case P::CO2: return PIPE_MTE3;
    case P::A1: case P::B1: case P::C1: case P::TSCM: case P::SHM: return PIPE_MTE1;
    case P::A2: case P::B2: case P::C2: return PIPE_M;
    case P::CO1: case P::C2PIPE2GM: return PIPE_FIX;
    default: return PIPE_V;
  }
}

bool Holds(const Queue &queue, int buffer) {
  return std::find(queue.buffers.begin(), queue.buffers.end(), buffer) != queue.buffers.end();
}

// The buffer behind a tensor that is handed back to a queue; null after reporting.
Buffer *Returned(Core &core, const Call &call, const Queue &queue, const View &view) {
  if (view.buffer == kNoBuffer) {
    Report(call, "queue-state", Text("%s of a tensor that no queue made", call.api));
    return nullptr;
  }
  Buffer &buffer = core.buffers[static_cast<std::size_t>(view.buffer)];
  const bool held =
      buffer.state == BufferState::kAllocated || buffer.state == BufferState::kDequeued;
  const bool own = held && buffer.generation == view.generation;
  if (!Holds(queue, view.buffer)) {
    Report(call, "queue-state", Text("%s of a tensor that another queue made", call.api),
           Text("buffer of %s made at %s, queue made at %s", NameOf(view.position),
                PlaceOf(buffer.made).c_str(), PlaceOf(queue.made).c_str()));
    // inferred: a tensor knows its buffer, so that the chip moves on the right one all the same
    return own ? &buffer : nullptr;
  }
  if (own) return &buffer;
  Report(call, "queue-state",
         Text("%s of a tensor that is %s", call.api,
              buffer.generation != view.generation ? "freed already" : NameOf(buffer.state)),
         Text("since %s", PlaceOf(buffer.moved).c_str()));
  return nullptr;
}

// guess: a pipe gives its buffers up only when all work on them is over
void CloseQueues(Core &core, bool keepStatic = false) {
  OrderBarrier(core, PIPE_ALL);
  for (Queue &queue : core.queues) queue.open = false;
  for (Buffer &buffer : core.buffers) {
    if (keepStatic && buffer.state == BufferState::kStatic) continue;
    buffer.state = BufferState::kGone;
    buffer.generation += 1;
  }
  core.queues.Forget();
  if (!keepStatic) core.buffers.Forget();
  for (Space &space : core.spaces) space.top = 0;
}

}  // namespace

pipe_t ProducerOf(const QueueShape &shape) {
  using P = AscendC::TPosition;
  switch (shape.source == P::GM ? shape.target : shape.source) {
    case P::VECIN: case P::A1: case P::B1: case P::C1: case P::TSCM: case P::SHM: return PIPE_MTE2;
    case P::A2: case P::B2: case P::C2: return PIPE_MTE1;
    case P::CO1: return PIPE_M;
    case P::CO2: return PIPE_FIX;
    default: return PIPE_V;
  }
}

void CheckOverflow(Core &core) {
  for (std::size_t at = 0; at < kMemories; ++at) {
    Space &space = core.spaces[at];
    if (!space.overflow) continue;
    space.overflow = false;
    const auto memory = static_cast<Memory>(at);
    // MultiKernelBench's own answers do this: what the platform says, in equal parts, rounded up.
    const bool top = memory == Memory::kUb && space.top <= kUbBytes;
    Report({"InitBuffer", space.overflowSite}, top ? "ub-top" : "ub-capacity",
           Text("buffers of %lld B do not fit %s", Ll(space.top), NameOf(memory)),
           PiecesOf(core, memory), Text("at most %lld B in all", Ll(UsableBytes(memory))), "",
           top ? Level::kWarning : Level::kError);
  }
}

void OpenPipe(const Call &call, void *pipe) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("init");
  if (core.pipeOpen) {
    Report(call, "pipe-twice", "a second TPipe while the first one lives",
           "its buffers start at UB byte 0 again");
  } else {
    core.buffers.Forget();  // what a destroyed pipe left of TBufs: this one's layout counts now
  }
  core.pipe = pipe;
  core.pipeOpen = true;
  for (Space &space : core.spaces) space.top = 0;
  RecordHeld(core);
}

void ClosePipe(const Call &call, void *pipe) {
  Core &core = Enter(call, PIPE_S);
  if (core.pipe != pipe || !core.pipeOpen) return;
  CheckOverflow(core);
  CheckQueues(core);
  RecordScalar("barrier", kBarrier);
  // A written Destroy: tensors of TBufs stay where they are, as tensors without a pipe.
  const bool keep = call.site.line > 0 && std::string_view(call.api) == "TPipe::Destroy";
  CloseQueues(core, keep);
  core.pipeOpen = false;
  core.pipe = nullptr;
}

void ResetPipe(const Call &call) {
  Core &core = Enter(call, PIPE_S);
  CheckOverflow(core);
  RecordScalar("barrier", kBarrier);
  CloseQueues(core);
}

void *CurrentPipe(const Call &call) {
  Core &core = Enter(call, PIPE_S);
  if (core.pipe != nullptr) return core.pipe;
  Report(call, "pipe-missing", "GetTPipePtr() before a TPipe was made");
  StopCore();
}

int OpenQueue(const Call &call, const QueueShape &shape, std::int64_t buffers, std::int64_t bytes) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("init");
  if (!InRange(call, "num", buffers, 1, kMostBuffers)) StopCore();
  const bool later = bytes == -1;
  // where it is zero, every use will be out of bounds
  if (later || !InRange(call, "len", bytes, 1, 0xFFFFFFFFll)) bytes = 0;
  const int index = static_cast<int>(core.queues.size());
  core.queues.push_back({});
  Queue &queue = core.queues.back();
  queue.shape = shape;
  queue.made = call.site;
  // TSCM<TPosition::GM>: filled from there, its memory is the target's
  const bool scm = shape.source == AscendC::TPosition::GM;
  for (std::int64_t i = 0; i < buffers; ++i) {
    queue.buffers.push_back(TakePiece(core, call, bytes, BufferState::kFree, index,
                                      scm ? shape.target : shape.source));
  }
  CheckPositionCount(core, call, shape);
  RecordHeld(core);
  return index;
}

View OpenBuffer(const Call &call, AscendC::TPosition position, std::int64_t bytes) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("init");
  if (!InRange(call, "len", bytes, 1, 0xFFFFFFFFll)) bytes = 0;
  const int piece = TakePiece(core, call, bytes, BufferState::kStatic, -1, position);
  RecordHeld(core);
  return ViewOf(core, piece);
}

void PlaceBuffer(const Call &call, int pool, int index, int number, std::int64_t addr,
                 std::int64_t bytes) {
  Core &core = Enter(call, PIPE_S);
  Queue &queue = QueueOf(core, call, index);
  const auto count = static_cast<std::int64_t>(queue.buffers.size());
  if (!InRange(call, "index", number, 0, count - 1)) return;
  CheckPool(call, pool, addr, bytes);
  const int piece = queue.buffers[static_cast<std::size_t>(number)];
  core.buffers[static_cast<std::size_t>(piece)].addr = addr;
  core.buffers[static_cast<std::size_t>(piece)].bytes = PadBlock(bytes);
  RecordHeld(core);
}

View PlaceBuffer(const Call &call, int pool, AscendC::TPosition position, std::int64_t addr,
                 std::int64_t bytes) {
  Core &core = Enter(call, PIPE_S);
  CheckPool(call, pool, addr, bytes);
  core.buffers.push_back({addr, PadBlock(bytes), BufferState::kStatic, 0, -1, position, call.site,
                          call.site, {}});
  RecordHeld(core);
  return ViewOf(core, static_cast<int>(core.buffers.size()) - 1);
}

View AllocBuffer(const Call &call, int index) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("alloc");
  CheckOverflow(core);
  Queue &queue = QueueOf(core, call, index);
  for (std::size_t i = 0; i < queue.buffers.size(); ++i) {
    const std::size_t at = (queue.next + i) % queue.buffers.size();
    Buffer &buffer = core.buffers[static_cast<std::size_t>(queue.buffers[at])];
    if (buffer.state != BufferState::kFree) continue;
    queue.next = (at + 1) % queue.buffers.size();
    buffer.state = BufferState::kAllocated;
    buffer.moved = call.site;
    OrderTake(core, buffer.left, ProducerOf(queue.shape));
    RecordHeld(core);
    return ViewOf(core, queue.buffers[at]);
  }
  Report(call, "queue-deadlock",
         Text("AllocTensor waits for ever: all %zu buffers of the queue at %s are taken",
              queue.buffers.size(), NameOf(queue.shape.source)),
         StatesOf(core, queue));
  StopCore();
}

bool EnqueBuffer(const Call &call, int index, const View &view, const QueueShape *way) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("enque");
  Queue &queue = QueueOf(core, call, index);
  Buffer *buffer = Returned(core, call, queue, view);
  if (buffer == nullptr) return false;
  const int depth = std::max(queue.shape.depth, 1);
  if (static_cast<int>(queue.queued.size()) >= depth) {
    Report(call, "queue-depth",
           Text("EnQue number %zu without a DeQue on a queue of depth %d", queue.queued.size() + 1,
                queue.shape.depth),
           StatesOf(core, queue), Text("at most %d", depth));
  }
  buffer->state = BufferState::kQueued;
  buffer->moved = call.site;
  buffer->left = OrderStamp(core, ProducerOf(way == nullptr ? queue.shape : *way));
  queue.queued.push_back(view.buffer);
  return true;
}

View DequeBuffer(const Call &call, int index, const QueueShape *way) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("deque");
  Queue &queue = QueueOf(core, call, index);
  if (queue.queued.empty()) {
    Report(call, "queue-state", "DeQue on a queue that holds nothing", StatesOf(core, queue));
    StopCore();
  }
  const int taken = queue.queued.front();
  queue.queued.pop_front();
  Buffer &buffer = core.buffers[static_cast<std::size_t>(taken)];
  buffer.state = BufferState::kDequeued;
  buffer.moved = call.site;
  OrderTake(core, buffer.left, Consumer(way == nullptr ? queue.shape : *way));
  View view = ViewOf(core, taken);
  view.position = queue.shape.target;
  return view;
}

void FreeBuffer(const Call &call, int index, const View &view) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("free");
  Queue &queue = QueueOf(core, call, index);
  Buffer *buffer = Returned(core, call, queue, view);
  if (buffer == nullptr) return;
  buffer->state = BufferState::kFree;
  buffer->generation += 1;
  buffer->moved = call.site;
  buffer->left = OrderStamp(core, Consumer(queue.shape));
  RecordHeld(core);
}

int CountQueued(const Call &call, int index) {
  Core &core = Enter(call, PIPE_S);
  return static_cast<int>(QueueOf(core, call, index).queued.size());
}

int CountIdle(const Call &call, int index) {
  Core &core = Enter(call, PIPE_S);
  const Queue &queue = QueueOf(core, call, index);
  return static_cast<int>(std::count_if(queue.buffers.begin(), queue.buffers.end(), [&](int at) {
    return core.buffers[static_cast<std::size_t>(at)].state == BufferState::kFree;
  }));
}

View RestOfUb(const Call &call, AscendC::TPosition position) {
  Core &core = Enter(call, PIPE_S);
  CheckOverflow(core);
  View view;
  view.addr = PadBlock(core.spaces[static_cast<std::size_t>(Memory::kUb)].top);
  view.bytes = std::max<std::int64_t>(TWIN_UB_BYTES - view.addr, 0);
  view.position = position;
  return view;
}

void CheckQueues(Core &core) {
  for (const Queue &queue : core.queues) {
    if (!queue.open) continue;
    for (int index : queue.buffers) {
      const Buffer &buffer = core.buffers[static_cast<std::size_t>(index)];
      if (buffer.state == BufferState::kFree) continue;
      // inferred: a tensor that was not handed on has no event that waits; published operators take one
      // in advance for a turn of their loop that does not come
      const bool idle = buffer.state == BufferState::kAllocated;
      Report({"kernel end", buffer.moved}, "queue-leak",
             Text("a tensor of the queue at %s is never freed", NameOf(queue.shape.source)),
             Text("%s since %s", NameOf(buffer.state), PlaceOf(buffer.moved).c_str()), "", "",
             idle ? Level::kWarning : Level::kError);
    }
  }
}

}  // namespace twin
