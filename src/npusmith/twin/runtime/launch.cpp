// Runs the blocks of a launch as fibres on one thread, in block order, to their end or a deadlock.
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>
#include <utility>

#include "core.h"
#include "vector/divide.h"
#include "fence/fence.h"
#include "log/record.h"
#include "stops.h"
#include "text.h"

namespace twin {

namespace {

constexpr std::size_t kStackBytes = 1 << 20;
constexpr std::uint16_t kPoison = 0x7FFF;  // NaN as half, and as float when doubled

// A stack with a page below it that faults, so that an overflow cannot reach other memory.
class Stack {
 public:
  Stack() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = mmap(nullptr, kStackBytes + page_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(base_, page_, PROT_NONE);
  }
  ~Stack() { munmap(base_, kStackBytes + page_); }
  Stack(const Stack &) = delete;
  Stack &operator=(const Stack &) = delete;
  void *bottom() const { return static_cast<char *>(base_) + page_; }
  void *top() const { return static_cast<char *>(bottom()) + kStackBytes; }

 private:
  std::size_t page_;
  void *base_;
};

struct Fibre {
  std::unique_ptr<Core> core = std::make_unique<Core>();
  Stack stack;
  ucontext_t context;
};

thread_local Core *running = nullptr;
thread_local ucontext_t scheduler;
thread_local Fibre *starting = nullptr;
thread_local std::map<Core *, Fibre *> *fibres = nullptr;

Core &IdleCore() {
  static thread_local Core core;
  if (core.block == 0) core.Clear({Kind::kVector, -1, 0, -1});
  return core;
}

void RunFibre() {
  Fibre *self = starting;
  const LaunchSpec *spec = ThisLaunch().spec;
  const auto entry = self->core->seat.kind == Kind::kCube ? spec->cube : spec->entry;
  StopAtBegin(*self->core, reinterpret_cast<const void *>(entry));
  twin_enter(entry, spec->args);
  OrderSettle();
  CheckEnd(*self->core);
  self->core->done = true;
  setcontext(&scheduler);
}

void Start(Fibre &fibre) {
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.bottom();
  fibre.context.uc_stack.ss_size = kStackBytes;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, RunFibre, 0);
  starting = &fibre;
}

std::uint64_t instructions = 0;  // of cores that ended

void Resume(Fibre &fibre) {
  running = fibre.core.get();
  RecordResume(*running);
  FenceRaise(fibre.stack.bottom(), fibre.stack.top());
  swapcontext(&scheduler, &fibre.context);
  FenceLower();
  if (running->done) {
    RecordCoreEnd(*running, !running->stopped);
    for (const std::uint32_t begun : running->clocks.now) instructions += begun;
  }
  running = nullptr;
}

// What a launch of this type puts on each block.
struct Crew {
  bool cube;
  int vectors;
};

Crew CrewOf(KernelType type) {
  switch (type) {
    case KernelType::kAivOnly:
    case KernelType::kMixAiv10: return {false, 1};
    case KernelType::kAicOnly:
    case KernelType::kMixAic10: return {true, 0};
    case KernelType::kMixAic11: return {true, 1};
    case KernelType::kMixAic12: return {true, 2};
  }
  return {false, 1};
}

std::vector<Seat> SeatsOf(const Crew &crew, int group) {
  std::vector<Seat> seats;
  if (crew.cube) seats.push_back({Kind::kCube, group, 0, group});
  for (int sub = 0; sub < crew.vectors; ++sub) {
    seats.push_back({Kind::kVector, group, sub, group * crew.vectors + sub});
  }
  return seats;
}

void ReportDeadlock(const std::vector<Fibre *> &waiting, std::size_t cores) {
  std::string who;
  for (const Fibre *fibre : waiting) {
    const Core &core = *fibre->core;
    if (who.size() > 600) {
      who += ", ...";
      break;
    }
    who += Text("%s%s in %s at %s", who.empty() ? "" : ", ", NameOf(core.seat).c_str(),
                core.waiting.api, PlaceOf(core.waiting.site).c_str());
    if (!core.waitingFor.empty()) who += " for " + core.waitingFor;
  }
  const bool full = std::any_of(waiting.begin(), waiting.end(), [](const Fibre *fibre) {
    return fibre->core->wait == Wait::kRoom;
  });
  for (Fibre *fibre : waiting) {
    running = fibre->core.get();
    running->stopped = true;
    if (running->wait == Wait::kRoom) {
      Report(running->waiting, "cross-count",
             Text("%s(%d) makes the counter of a core exceed 15, and nobody who could lower it "
                  "can go on", running->waiting.api, running->crossId), who, "0 .. 15 outstanding");
    }
    if (full) continue;  // the others wait for those
    Report(running->waiting, "deadlock",
           Text("%zu of %zu cores wait for ever, the others have ended", waiting.size(), cores),
           who);
  }
  running = nullptr;
}

// Cube cores that stay only for what is recorded of them have nothing to wait for any more when the
// vector cores of their block wait for ever.
void DismissServers(std::vector<Fibre *> &waiting) {
  for (Fibre *fibre : waiting) {
    if (fibre->core->wait == Wait::kServe) Resume(*fibre);
  }
  const auto gone = std::remove_if(waiting.begin(), waiting.end(),
                                   [](const Fibre *fibre) { return fibre->core->done; });
  waiting.erase(gone, waiting.end());
}

using Ring = std::vector<std::unique_ptr<Fibre>>;

// Runs every core that can run, again and again; returns those that wait for ever. `polling`: also
// those that look again whether another block has written.
std::vector<Fibre *> RunWaiting(std::vector<Fibre *> waiting, bool &finished, bool polling) {
  bool progress = true;
  while (progress && !waiting.empty()) {
    progress = false;
    std::vector<Fibre *> still;
    for (Fibre *fibre : waiting) {
      if (!Ready(*fibre->core) || (!polling && fibre->core->wait == Wait::kSpin)) {
        still.push_back(fibre);
        continue;
      }
      progress = true;
      fibre->core->wait = Wait::kNothing;
      Resume(*fibre);
      if (!fibre->core->done) still.push_back(fibre);
      finished = finished && !fibre->core->stopped;
    }
    waiting = std::move(still);
  }
  return waiting;
}

}  // namespace

void Core::Clear(const Seat &newSeat) {
  auto kept = std::move(spaces);
  *this = Core();
  spaces = std::move(kept);
  for (Space &space : spaces) {
    space.base = nullptr;
    space.top = 0;
    space.overflow = false;
  }
  seat = newSeat;
  block = newSeat.block;
  OrderBegin(*this);
}

Space &Core::Hold(Memory memory) {
  Space &space = spaces[static_cast<std::size_t>(memory)];
  if (space.base != nullptr) return space;
  constexpr std::size_t kGuard = 4096;  // nothing may rely on it
  const std::int64_t size = BytesOf(memory);
  if (space.bytes == nullptr) {
    space.bytes = std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(size) + kGuard);
  }
  auto start = reinterpret_cast<std::uintptr_t>(space.bytes.get());
  space.base = space.bytes.get() + ((64 - start % 64) % 64);
  auto *words = reinterpret_cast<std::uint16_t *>(space.base);
  std::fill(words, words + size / 2, kPoison);
  return space;
}

Memory MemoryOf(AscendC::TPosition position) {
  using P = AscendC::TPosition;
  switch (position) {
    case P::A1: case P::B1: case P::C1: case P::TSCM: case P::SHM: return Memory::kL1;
    case P::A2: return Memory::kL0a;
    case P::B2: return Memory::kL0b;
    case P::CO1: return Memory::kL0c;
    case P::C2: return Memory::kBias;
    case P::C2PIPE2GM: return Memory::kFixpipe;
    default: return Memory::kUb;
  }
}

std::int64_t BytesOf(Memory memory) {
  constexpr std::int64_t kBytes[] = {TWIN_UB_TOTAL_BYTES, TWIN_L1_BYTES,  TWIN_L0A_BYTES,
                                     TWIN_L0B_BYTES,      TWIN_L0C_BYTES, TWIN_BIAS_TABLE_BYTES,
                                     TWIN_FIXPIPE_BYTES};
  return kBytes[static_cast<std::size_t>(memory)];
}

const char *NameOf(Memory memory) {
  constexpr const char *kNames[] = {"UB",  "L1",         "L0A",           "L0B",
                                    "L0C", "bias table", "fixpipe buffer"};
  return kNames[static_cast<std::size_t>(memory)];
}

Core &Me() { return running != nullptr ? *running : IdleCore(); }

Session &ThisLaunch() {
  static thread_local Session session;
  return session;
}

namespace {

long &Runs(Core &core, const Site &site);

void Grow(Core &core) {
  auto old = std::move(core.lines.slots);
  core.lines.slots = std::vector<Core::Lines::Slot>(old.size() * 2);
  core.lines.used = 0;
  for (const auto &slot : old) {
    if (slot.file != nullptr) Runs(core, {slot.file, slot.line}) = slot.runs;
  }
}

long &Runs(Core &core, const Site &site) {
  auto &lines = core.lines;
  const std::size_t wrap = lines.slots.size() - 1;
  std::size_t at = (reinterpret_cast<std::uintptr_t>(site.file) * 31 +
                    static_cast<std::size_t>(site.line) * 2654435761u) & wrap;
  while (true) {
    auto &slot = lines.slots[at];
    if (slot.file == site.file && slot.line == site.line) return slot.runs;
    if (slot.file == nullptr) break;
    at = (at + 1) & wrap;
  }
  if (lines.used * 2 >= lines.slots.size()) {
    Grow(core);
    return Runs(core, site);
  }
  lines.used += 1;
  lines.slots[at] = {site.file, site.line, 0};
  return lines.slots[at].runs;
}

}  // namespace

Core &Enter(const Call &call, pipe_t unit) {
  Core &core = Me();
  core.spot = call;
  core.calls += 1;
  core.unit = unit;
  core.outside = false;
  if (unit != PIPE_S) core.polls = 0;
  NoteApi(call.api);
  Runs(core, call.site) += 1;
  OrderIssue(core, unit);
  if (core.log != nullptr) RecordBegin(core, unit);
  return core;
}

void Suspend() {
  Core &core = Me();
  if (fibres == nullptr) return;  // no launch on this thread
  Fibre *self = fibres->at(&core);
  swapcontext(&self->context, &scheduler);
}

void StopCore() {
  if (running == nullptr) std::abort();  // outside a launch there is nothing to stop
  Core &core = Me();
  core.stopped = true;
  core.done = true;
  setcontext(&scheduler);
  __builtin_unreachable();
}

namespace {

// The fibres of a launch: idle ones are used again by later blocks, each for its kind of core.
struct Roster {
  Ring ring;
  std::array<std::vector<Fibre *>, 2> idle;
  std::map<Core *, Fibre *> table;

  Fibre *Take(const Seat &seat) {
    auto &spare = idle[static_cast<std::size_t>(seat.kind)];
    if (spare.empty()) {
      ring.push_back(std::make_unique<Fibre>());
      spare.push_back(ring.back().get());
      table[spare.back()->core.get()] = spare.back();
    }
    Fibre *fibre = spare.back();
    spare.pop_back();
    fibre->core->Clear(seat);
    RecordCoreBegin(*fibre->core);
    return fibre;
  }
  void GiveBack(Fibre *fibre) {
    idle[static_cast<std::size_t>(fibre->core->seat.kind)].push_back(fibre);
  }
};

// Runs the cores of one block until each has ended or waits for another block.
std::vector<Fibre *> RunBlock(Roster &pool, const std::vector<Seat> &seats, bool &finished) {
  std::vector<Fibre *> all, waiting;
  for (const Seat &seat : seats) {
    all.push_back(pool.Take(seat));
    Start(*all.back());
    Resume(*all.back());
    finished = finished && !all.back()->core->stopped;
    if (!all.back()->core->done) waiting.push_back(all.back());
  }
  waiting = RunWaiting(std::move(waiting), finished, false);
  for (Fibre *fibre : all) {
    if (fibre->core->done) pool.GiveBack(fibre);
  }
  return waiting;
}

}  // namespace

namespace {

// The order in which blocks begin: their own, or a permutation drawn from a seed (xorshift32).
std::vector<std::uint32_t> TurnsOf(const LaunchSpec &spec) {
  std::vector<std::uint32_t> turns(spec.blocks);
  for (std::uint32_t i = 0; i < spec.blocks; ++i) turns[i] = i;
  std::uint32_t state = spec.shuffle;
  for (std::uint32_t left = spec.blocks; state != 0 && left > 1; --left) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    std::swap(turns[left - 1], turns[state % left]);
  }
  return turns;
}

// Whether a block is left out of a launch that samples its ends.
bool LeftOut(const LaunchSpec &spec, std::uint32_t block) {
  return spec.ends != 0 && block >= spec.ends && block + spec.ends < spec.blocks;
}

}  // namespace

bool AloneInBlock(const Core &core) {
  for (const auto &[other, fibre] : *fibres) {
    if (other != &core && other->seat.group == core.seat.group && !other->done) return false;
  }
  return true;
}

void StopQuietly() {
  if (running == nullptr) std::abort();
  Me().done = true;
  setcontext(&scheduler);
  __builtin_unreachable();
}

void EndCore() {
  if (running == nullptr) std::abort();
  Me().done = true;
  setcontext(&scheduler);
  __builtin_unreachable();
}

std::uint64_t TakeInstructions() { return std::exchange(instructions, 0); }

bool Launch(const LaunchSpec &spec) {
  Session &session = ThisLaunch();
  session = Session();
  session.spec = &spec;
  const Crew crew = CrewOf(spec.type);
  session.cube = crew.cube;
  session.vectors = crew.vectors;
  OrderLaunch();
  RecordLaunch();
  if (spec.ready != nullptr) spec.ready();
  if (spec.entry != nullptr) FenceCode(reinterpret_cast<void *>(spec.entry), false);
  if (spec.cube != nullptr) FenceCode(reinterpret_cast<void *>(spec.cube), true);
  const DivideWatch divisions;
  Roster pool;
  fibres = &pool.table;
  std::vector<Fibre *> waiting;
  bool finished = true;
  for (const std::uint32_t block : TurnsOf(spec)) {
    if (LeftOut(spec, block)) continue;
    const auto left = RunBlock(pool, SeatsOf(crew, static_cast<int>(block)), finished);
    waiting.insert(waiting.end(), left.begin(), left.end());
  }
  waiting = RunWaiting(std::move(waiting), finished, true);
  DismissServers(waiting);
  // after a fatal finding the others wait in vain, which explains nothing
  const std::size_t cores = session.CoresOf(Kind::kVector) + session.CoresOf(Kind::kCube);
  if (!waiting.empty() && finished) ReportDeadlock(waiting, cores);
  const bool completed = finished && waiting.empty();
  if (completed) CheckCredits();
  if (completed) OrderFinish();
  RecordFinish(completed);
  fibres = nullptr;
  session.spec = nullptr;
  return completed;
}

Spot CurrentSpot() {
  if (running == nullptr) return {"", 0, -1, ""};
  return {running->spot.site.file, running->spot.site.line, running->block, running->spot.api};
}

std::int64_t BlockIndex() { return Me().block; }
std::int64_t GroupIndex() { return Me().seat.group; }
std::int64_t SubIndex() { return Me().seat.sub; }

// How many cores of the caller's kind a block has.
std::int64_t SubCount() { return Me().seat.kind == Kind::kCube ? 1 : ThisLaunch().vectors; }

bool OnCube() { return Me().seat.kind == Kind::kCube; }

std::uint32_t Session::CoresOf(Kind kind) const {
  const std::uint32_t blocks = spec == nullptr ? 1 : spec->blocks;
  if (kind == Kind::kCube) return cube ? blocks : 0;
  return blocks * static_cast<std::uint32_t>(vectors);
}

std::string NameOf(const Seat &seat) {
  if (!ThisLaunch().cube) return Text("core %d", seat.block);
  return Text("%s %d", seat.kind == Kind::kCube ? "AIC" : "AIV", seat.block);
}

std::int64_t BlockCount() {
  const LaunchSpec *spec = ThisLaunch().spec;
  return spec == nullptr ? 1 : spec->blocks;
}

std::uint64_t TilingKey() {
  const LaunchSpec *spec = ThisLaunch().spec;
  return spec == nullptr ? 0 : spec->tilingKey;
}

}  // namespace twin
