// State of one core and of one launch.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "order/order.h"
#include "order/shadow.h"
#include "twin/launch.h"
#include "twin/runtime.h"

namespace twin {

constexpr std::int64_t kUbBytes = TWIN_UB_TOTAL_BYTES;
constexpr std::int64_t kUbUsable = TWIN_UB_TOTAL_BYTES - TWIN_UB_SYSTEM_BYTES;

// The on-chip memories: a vector core has UB, a cube core has the others.
enum class Memory : std::uint8_t { kUb, kL1, kL0a, kL0b, kL0c, kBias, kFixpipe };
constexpr std::size_t kMemories = 7;
Memory MemoryOf(AscendC::TPosition position);
std::int64_t BytesOf(Memory memory);
const char *NameOf(Memory memory);

// One of them, as a core holds it. `base` is null until something lives there.
struct Space {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::uint8_t *base = nullptr;
  std::int64_t top = 0;    // given out by InitBuffer so far
  bool overflow = false;   // to be reported at the next use, when all buffers are known
  Site overflowSite;
};
constexpr std::int64_t kBlock = TWIN_BLOCK_BYTES;
constexpr std::int64_t kRepeat = TWIN_REPEAT_BYTES;
constexpr int kEvents = 8;  // event ids of one HardEvent (doc: SetFlag)
constexpr int kHardEvents = static_cast<int>(AscendC::HardEvent::MAX);

enum class BufferState : std::uint8_t { kFree, kAllocated, kQueued, kDequeued, kStatic, kGone };

struct Buffer {
  std::int64_t addr;
  std::int64_t bytes;
  BufferState state;
  std::uint32_t generation;
  int queue;  // -1: a TBuf
  AscendC::TPosition position;
  Site made;   // InitBuffer
  Site moved;  // the last AllocTensor, EnQue, DeQue or FreeTensor
  Stamp left;  // by the last EnQue or FreeTensor: the work that has to be over
};

struct Queue {
  QueueShape shape;
  std::vector<int> buffers;
  std::deque<int> queued;
  std::size_t next = 0;  // AllocTensor looks for a free buffer from here on
  bool open = true;
  Site made;
};

enum class Wait : std::uint8_t { kNothing, kSync, kBlockFlag, kCross, kRoom, kTurn, kServe, kSpin };

// A vector core (AIV) or a cube core (AIC).
enum class Kind : std::uint8_t { kVector, kCube };

// Which core of the launch this is. `block` is what GetBlockIdx says: of a vector core in a mixed
// block, group * vectors of a block + sub.
struct Seat {
  Kind kind = Kind::kVector;
  int group = 0;  // the block of the launch
  int sub = 0;    // which of the block's vector cores
  int block = 0;
};

// What was done before a round of a synchronisation was complete: by each in it, and all together,
// so that who takes part does not put the others' knowledge together anew.
struct Stamps {
  std::vector<Stamp> each;
  Stamp all;  // once the round is complete
};

constexpr Site kEarlier{"an earlier TPipe", 0};

// In the order in which they were made. Numbers stay as they are; loops go over those that may
// still live: a kernel of many stages opens a pipe for each. Of those that are gone the last ones
// are kept, so that messages say what they were; a loop of launches has thousands before them.
template <typename T>
class Pieces {
 public:
  explicit Pieces(T gone) : old_(std::move(gone)) {}
  auto begin() { return all_.begin() + gone_; }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin() + gone_; }
  auto end() const { return all_.end(); }
  std::size_t size() const { return dropped_ + all_.size(); }
  bool Has(std::size_t number) const { return number >= dropped_ && number < size(); }
  T &operator[](std::size_t number) { return number < dropped_ ? old_ : all_[number - dropped_]; }
  const T &operator[](std::size_t number) const {
    return number < dropped_ ? old_ : all_[number - dropped_];
  }
  T &back() { return all_.back(); }
  void push_back(T item) { all_.push_back(std::move(item)); }
  // None of those that were made so far lives.
  void Forget() {
    if (begin() == end()) return;
    all_.erase(all_.begin(), begin());
    dropped_ += static_cast<std::size_t>(gone_);
    gone_ = static_cast<std::ptrdiff_t>(all_.size());
  }

 private:
  std::vector<T> all_;
  std::ptrdiff_t gone_ = 0;   // of `all_`
  std::size_t dropped_ = 0;   // before `all_`
  T old_;                     // what stands for each of them
};

// Registers of a cube core.
struct CubeState {
  bool hf32 = false, hf32Zero = false;
  std::int64_t height = 0, width = 0, pad[4] = {0, 0, 0, 0};  // SetFmatrix
  std::uint64_t padBits = 0;
  std::int64_t repeatStride = 0, repeatTimes = 1, repeatMode = 0;
  std::int64_t boundary = 0;  // 0: all of L1
  std::uint64_t fixScale = 0;
  View fixTable;
  std::int64_t fixCount = 1, fixSource = 0, fixTarget = 0;
  Stamp mmad, fix;              // what the other side of a unit flag has done
  std::vector<std::uint8_t> sparse;  // index of LoadDataWithSparse, beside L0B
};

struct CoreLog;

struct Core {
  int block = 0;  // the same as seat.block
  Seat seat;
  std::array<Space, kMemories> spaces;
  bool outside = false;  // the present call has left a tensor: what follows from that is no news
  pipe_t unit = PIPE_V;  // the pipe on which the present call's instruction runs
  Clocks clocks;         // what this core's pipes have seen of each other
  Shadow shadow;         // what is known of each byte that lives on the core
  std::shared_ptr<CoreLog> log;  // null unless the launch is recorded

  CubeState cube;

  Call spot{"", {}};
  std::int64_t calls = 0;  // API calls so far
  std::int64_t raw = 0;    // accesses to tensors and on-chip memory without an API
  // open-addressed table of (file, line) -> how often it ran
  struct Lines {
    struct Slot {
      const char *file = nullptr;
      int line = 0;
      long runs = 0;
    };
    std::vector<Slot> slots = std::vector<Slot>(64);
    std::size_t used = 0;
  } lines;

  void *pipe = nullptr;
  bool pipeOpen = false;
  Pieces<Buffer> buffers{{0, 0, BufferState::kGone, ~0u, -1, AscendC::TPosition::VECCALC,
                          kEarlier, kEarlier, {}}};
  Pieces<Queue> queues{{{}, {}, {}, 0, false, kEarlier}};
  struct Placed {
    Memory memory;
    std::int64_t addr, bytes;
    bool operator==(const Placed &o) const {
      return memory == o.memory && addr == o.addr && bytes == o.bytes;
    }
  };
  std::vector<Placed> placed;  // tensors that the kernel has put at addresses of its own

  std::uint64_t mask[2] = {~0ull, ~0ull};  // low, high
  bool counter = false;
  bool maskTouched = false;  // by the user, and not reset since
  bool maskUsed = false;     // by an instruction, since it was set
  Site maskSite;
  std::uint64_t compareMask[2] = {0, 0};
  Atomic atomic = Atomic::kNone;
  DType atomicType = DType::kF32;
  Site atomicSite;
  float deqScale = 1.0f;
  Control control;
  bool padSet = false;
  std::uint64_t padBits = 0;
  std::uint64_t foldSum = 0, foldValue = 0, foldIndex = 0;
  std::array<std::uint16_t, 4> merged{};  // items of each list that the last merge took

  struct Event {
    bool set = false;
    bool reserved = false;
    int fetched = 0;  // by FetchEventID, since a flag of it was last waited for
    Site site;
  };
  std::array<std::array<Event, kEvents>, kHardEvents> events{};

  Wait wait = Wait::kNothing;
  Call waiting{"", {}};
  std::string waitingFor;                 // for the report of a deadlock
  std::shared_ptr<const Stamps> meeting;  // kSync: filled when everybody has arrived
  const std::int32_t *waitFlag = nullptr;
  int crossId = 0, crossMode = 0;
  long turn = 0;  // WaitPreBlock calls so far
  // A loop that polls global memory until another core writes there: the last addresses that the
  // scalar unit read, and how often it read one of them again since the last instruction.
  std::array<const std::uint8_t *, 16> recentReads{};
  std::size_t nextRead = 0;
  int polls = 0;
  Site pollSite;  // where it polled last
  // What it read of global memory as it was before another core's write that nothing orders.
  struct Stale {
    Call call;
    Gm gm;
    int size;
    Ticks begun;  // by its pipes when it read
  };
  std::map<const std::uint8_t *, Stale> stale;
  bool done = false;
  bool stopped = false;  // by a fatal finding

  void Clear(const Seat &newSeat);
  // The memory, filled with poison at its first use.
  Space &Hold(Memory memory);
  std::uint8_t *Ub() { return Hold(Memory::kUb).base; }
};

// The core that runs on this thread; never null while a kernel runs.
Core &Me();
// Marks the start of an API call: where we are, how often that line has run, and the pipe on which
// the instruction runs (doc: "API to pipe"); PIPE_S for what the scalar unit does itself.
Core &Enter(const Call &call, pipe_t unit = PIPE_V);

// Remembers that the launch calls this API; the name is a literal of the kernel's code.
void NoteApi(const char *name);

// Suspends this core until the scheduler finds what it waits for.
void Suspend();

// A synchronisation of many cores that is being gathered.
struct Meeting {
  std::uint32_t arrived = 0;
  std::shared_ptr<Stamps> stamps;
};

// The flag counters of one core (doc: CrossCoreSetFlag): a round of stamps for each count.
using Credits = std::deque<std::shared_ptr<const Stamps>>;

struct MatmulServer;

// A write to global memory that may be a flag: by whom (of atomic ones all), and what was there.
struct SmallWrite {
  std::vector<std::pair<Stamp, std::size_t>> by;  // with the pipe
  std::array<std::uint8_t, 64> old;
  std::int64_t bytes;
};

struct Session {
  const LaunchSpec *spec = nullptr;
  bool cube = false;  // a block has a cube core
  int vectors = 1;    // and so many vector cores
  std::array<Meeting, 3> meetings;  // of all vector cores, all cube cores, all cores
  // Flags, by (kind, block, sub, id): what a core may still take, and what it has set alone so far.
  std::map<std::array<int, 4>, Credits> credits;
  std::map<std::array<int, 5>, std::deque<Stamp>> pending;  // (mode, kind, block, sub, id)
  std::map<std::array<int, 4>, Site> setters;               // the last one who gave a credit
  std::map<const void *, Stamp> blockStamps;                // of IBSet, by flag
  std::map<int, std::deque<Stamp>> turnStamps;              // of NotifyNextBlock, by block
  std::map<const std::uint8_t *, SmallWrite> flags;  // the last small write at each address
  std::uint8_t *workspace = nullptr;
  std::map<int, std::shared_ptr<MatmulServer>> servers;     // cube cores that serve, by block

  std::uint32_t CoresOf(Kind kind) const;
};
Session &ThisLaunch();

// What is wrong when a core's kernel has returned.
void CheckEnd(Core &core);
void CheckQueues(Core &core);
// The pipe that fills a buffer of a queue (doc: TQue).
pipe_t ProducerOf(const QueueShape &shape);
// Flags between cores that nobody waited for, when all have ended.
void CheckCredits();
// Can a core that waits go on?
bool Ready(const Core &core);
// Have all other cores of its block ended?
bool AloneInBlock(const Core &core);
void CheckOverflow(Core &core);

enum class Level : std::uint8_t { kError, kWarning, kNote };

// Did an error make operations leave out what they should have written?
bool Skipped();
// Was this code reported for that line already? Then it is counted once more.
bool Again(const Call &call, const char *code);

// One violation, at the place of `call`, on the running core. Notes are kept only when asked for.
void Report(const Call &call, const char *code, std::string message, std::string seen = "",
            std::string legal = "", std::string hint = "", Level level = Level::kError);

const char *NameOf(AscendC::TPosition position);
// "core 3", or "AIC 3" and "AIV 3" where a launch has both.
std::string NameOf(const Seat &seat);
const char *NameOf(DType type);
const char *NameOf(BufferState state);
std::string PlaceOf(const Site &site);

}  // namespace twin
