// The simulation: all cores of a log in one global time.
//
// A core is taken as far as it can go without knowing when a transfer from or to global memory
// ends; those are events of the chip, because they share its bandwidth and its L2. Whatever follows
// from such an end comes later than it, so events are handled in the order of time.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "cache.h"
#include "core.h"
#include "share.h"
#include "table.h"

namespace twin {

constexpr std::size_t kSizes = 6;  // classes of transfers by bytes

struct PathStats {
  std::uint64_t transfers = 0, bytes = 0, unaligned = 0;
  double missed = 0, busy = 0;
  std::uint64_t sizes[kSizes] = {};
};

struct Totals {
  std::uint64_t steps = 0, repeats = 0, elements = 0, tiles = 0;
  double conflicts = 0, heads = 0;
  bool sampled = false;
  double sampleError = 0;  // of a core's time, by which its pace still changed
};

// What a step takes on its unit: cycles of work, of start-up before it, and lost behind it.
struct Effort {
  double work = 0, head = 0, gap = 0;
};

// Takes every step as its times become known.
class Events {
 public:
  virtual ~Events() = default;
  virtual void Add(const CoreRun &core, const Step &step, double start, double end, int reason,
                   double wait, std::uint64_t bytes) = 0;
};

class Engine {
 public:
  Engine(const Log &log, Costs &costs, Events *events);
  void Run();

  const std::vector<CoreRun> &cores() const { return cores_; }
  const std::vector<PathStats> &paths() const { return paths_; }  // by number of the name
  const Totals &totals() const { return totals_; }

 private:
  struct Event {
    double time;
    std::uint64_t order;  // of two at one time, the one that was known first
    std::uint32_t core, unit;
    bool streams;  // the first byte comes; else the transfer begins
    bool operator<(const Event &other) const {
      return time > other.time || (time == other.time && order > other.order);
    }
  };

  const Log &log_;
  Costs &costs_;
  Events *events_;
  Table table_;
  Cache cache_;
  Share share_;
  Banks banks_;
  std::vector<CoreRun> cores_;
  std::vector<std::uint32_t> byNumber_;
  std::vector<std::uint32_t> joining_;  // cores whose scalar unit waits for another core
  std::vector<PathStats> paths_;
  Totals totals_;
  std::priority_queue<Event> heap_;
  std::uint64_t orders_ = 0;

  void Warm();
  void Push(double time, const CoreRun &core, std::size_t unit, bool streams);
  void Begin(CoreRun &core, std::size_t unit, double time);
  double Overhead(const Demand &demand) const;
  void Land(const Stream &ended, double time);
  void Advance(CoreRun &core);
  void Wake();
  void Finish(CoreRun &core);
  static void FindMiddles(CoreRun &core);
  void Extrapolate(CoreRun &core);

  // The scalar unit (scalar.cpp). False: it cannot go on yet.
  bool Issue(CoreRun &core);
  static void CheckDeps(const CoreRun &core, const Step &step);
  bool GiveStep(CoreRun &core, const Step &step);
  void Spend(CoreRun &core, Cost cost);
  bool DoScalar(CoreRun &core, const Step &step);
  When JoinTime(CoreRun &core, const Step &step);

  // The other units (pipes.cpp).
  bool Start(CoreRun &core, std::size_t unit);
  void DoVector(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                const When &ready);
  void Hold(CoreRun &core, double from, double to);
  void DoLibrary(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
                 const When &ready);
  void DoMove(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
              const When &ready);
  void DoMmad(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
              const When &ready);
  bool DoCopy(CoreRun &core, std::size_t unit, const Step &step, const Waiting &waiting,
              const When &ready);
  void Local(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting, const When &ready,
             double begin);
  void Resolve(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting,
               const When &ready, const Effort &effort);
  void Mark(CoreRun &core, Unit &unit, const Step &step, const Waiting &waiting, const When &ready);
  void Leave(CoreRun &core, Unit &unit, const Step &step, double begin, double end);
  void Wait(Unit &unit, const Waiting &waiting, const When &ready, double begin);
  double Alone(const Step &step, const Demand &demand);
  static Demand Inside(const Step &step);

  When DepTime(const CoreRun &core, const Step &step, std::uint64_t dep) const;
  double TickTime(const CoreRun &core, std::size_t unit, std::uint64_t tick) const;
  static bool Idle(const CoreRun &core);
  static double LastOf(const CoreRun &core);
  bool Writes(const Step &step) const;
  void Note(CoreRun &core, const Step &step, double begin, double end, int reason, double wait);
  void CountPath(const Step &step, const Demand &demand);
};

}  // namespace twin
