// Pools, tensors at fixed places, the stack buffer.
#include <algorithm>

#include "check.h"
#include "text.h"
#include "twin/resource.h"

namespace twin {

namespace {

std::int64_t PadBlock(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

Pool *PoolOf(Core &core, const Call &call, int index) {
  auto &pools = core.control.pools;
  if (index >= 0 && static_cast<std::size_t>(index) < pools.size()) {
    return &pools[static_cast<std::size_t>(index)];
  }
  Report(call, "queue-state", Text("%s on a pool that InitBufPool has not set up", call.api));
  StopCore();
}

Space &SpaceOf(Core &core, AscendC::TPosition position) {
  return core.spaces[static_cast<std::size_t>(MemoryOf(position))];
}

bool Inside(const Pool &pool, const Buffer &buffer) {
  return buffer.addr >= pool.addr && buffer.addr + buffer.bytes <= pool.addr + pool.bytes &&
         MemoryOf(buffer.position) == MemoryOf(pool.position);
}

}  // namespace

int OpenPool(const Call &call, int parent, AscendC::TPosition position, std::int64_t bytes,
             int shared) {
  Core &core = Enter(call, PIPE_S);
  Pool pool{position, 0, PadBlock(bytes), 0, 0};
  if (!InRange(call, "len", bytes, 1, 0xFFFFFFFFll)) StopCore();
  if (shared >= 0) {
    const Pool &other = *PoolOf(core, call, shared);
    pool.addr = other.addr;
    if (pool.bytes > other.bytes) {
      Report(call, "ub-capacity", Text("a pool of %lld B shares one of %lld B", Ll(pool.bytes),
                                       Ll(other.bytes)),
             "", Text("at most %lld B", Ll(other.bytes)));
      pool.bytes = other.bytes;
    }
  } else if (parent >= 0) {
    Pool &outer = *PoolOf(core, call, parent);
    pool.addr = outer.addr + outer.used;
    outer.used += pool.bytes;
    if (outer.used > outer.bytes) {
      Report(call, "ub-capacity", Text("pools of %lld B in one of %lld B", Ll(outer.used),
                                       Ll(outer.bytes)),
             "", Text("at most %lld B in all", Ll(outer.bytes)));
    }
  } else {
    Space &space = SpaceOf(core, position);
    pool.addr = space.top;
    space.top += pool.bytes;
    const Memory memory = MemoryOf(position);
    const std::int64_t most = memory == Memory::kUb ? kUbUsable : BytesOf(memory);
    if (space.top > most && !space.overflow) {
      space.overflow = true;
      space.overflowSite = call.site;
    }
  }
  core.control.pools.push_back(pool);
  return static_cast<int>(core.control.pools.size()) - 1;
}

void EnterPool(const Call &call, int index) {
  Core &core = Me();
  Pool &pool = *PoolOf(core, call, index);
  Space &space = SpaceOf(core, pool.position);
  pool.outside = space.top;
  space.top = pool.addr + pool.used;
}

void LeavePool(const Call &call, int index) {
  Core &core = Me();
  Pool &pool = *PoolOf(core, call, index);
  Space &space = SpaceOf(core, pool.position);
  pool.used = space.top - pool.addr;
  space.top = pool.outside;
  if (pool.used <= pool.bytes) return;
  Report(call, "ub-capacity", Text("buffers of %lld B in a pool of %lld B", Ll(pool.used),
                                   Ll(pool.bytes)),
         "", Text("at most %lld B in all", Ll(pool.bytes)));
}

// doc: TBufPool::Reset ends the pool's events, and its buffers may be used again as they are; a
// kernel that calls InitBuffer once more gets the same memory (guess). A pool of the kernel's own is
// over (doc: EXTERN_IMPL_BUFPOOL).
void ResetPool(const Call &call, int index, bool gone) {
  Core &core = Enter(call, PIPE_S);
  Pool &pool = *PoolOf(core, call, index);
  for (Buffer &buffer : core.buffers) {
    if (buffer.state == BufferState::kGone || !Inside(pool, buffer)) continue;
    if (buffer.queue >= 0) {
      Queue &queue = core.queues[static_cast<std::size_t>(buffer.queue)];
      OrderTake(core, buffer.left, ProducerOf(queue.shape));
      queue.queued.clear();
      queue.open = !gone;
      buffer.state = BufferState::kFree;
    }
    if (gone) buffer.state = BufferState::kGone;
    if (buffer.state != BufferState::kStatic) buffer.generation += 1;
    buffer.moved = call.site;
  }
  pool.used = 0;
}

std::int64_t PoolAddress(const Call &call, int index) { return PoolOf(Me(), call, index)->addr; }

void CheckHandle(const Call &call, int index, int count) {
  Enter(call, PIPE_S);
  InRange(call, "offset", index, 0, count - 1);
}

void CheckPool(const Call &call, int index, std::int64_t addr, std::int64_t bytes) {
  const Pool &pool = *PoolOf(Me(), call, index);
  if (bytes > 0 && addr >= pool.addr && addr + bytes <= pool.addr + pool.bytes) return;
  Report(call, "ub-capacity",
         Text("%lld B at address %lld of a pool of %lld B at %lld", Ll(bytes), Ll(addr),
              Ll(pool.bytes), Ll(pool.addr)),
         "", "inside the pool");
}

View PlaceTensor(const Call &call, AscendC::TPosition position, std::int64_t addr,
                 std::int64_t bytes) {
  Enter(call, PIPE_S);
  const Memory memory = MemoryOf(position);
  const std::int64_t most = memory == Memory::kUb ? kUbUsable : BytesOf(memory);
  if (addr + bytes > most) {
    Report(call, "ub-capacity", Text("tensors of %lld B do not fit %s", Ll(addr + bytes),
                                     NameOf(memory)),
           "", Text("at most %lld B in all", Ll(most)));
  }
  NotePlaced(position, addr, bytes);
  View view;
  view.addr = addr;
  view.bytes = bytes;
  view.position = position;
  return view;
}

void NotePlaced(AscendC::TPosition position, std::int64_t addr, std::int64_t bytes) {
  constexpr std::size_t kMost = 512;  // ours: a kernel has a handful
  auto &placed = Me().placed;
  const Core::Placed made{MemoryOf(position), addr, bytes};
  if (std::find(placed.rbegin(), placed.rend(), made) != placed.rend()) return;
  if (placed.size() < kMost) placed.push_back(made);
}

View PopStack(const Call &call, AscendC::TPosition position) {
  View view = RestOfUb(call, position);
  Core &core = Me();
  auto &stack = core.control.stack;
  if (stack >= 0 && core.buffers.Has(static_cast<std::size_t>(stack))) {
    Buffer &old = core.buffers[static_cast<std::size_t>(stack)];
    old.state = BufferState::kGone;
    old.generation += 1;
    old.moved = call.site;
  }
  stack = static_cast<int>(core.buffers.size());
  core.buffers.push_back({view.addr, view.bytes, BufferState::kStatic, 0, kStackQueue, position,
                          call.site, call.site});
  view.buffer = stack;
  view.generation = 0;
  return view;
}

}  // namespace twin
