// Synchronisation between cores: SyncAll, flags, block flags, turns. Whoever has waited for a core
// has seen what that core did before (order.h).
#include <algorithm>

#include "check.h"
#include "log/record.h"
#include "text.h"

namespace twin {

namespace {

constexpr int kFlags = 16;      // ids of 4 bits (doc: CrossCoreSetFlag)
constexpr int kUserFlags = 11;  // 11..14 are SyncAll's, 15 is not documented as usable
constexpr std::size_t kMostCount = 15;

constexpr std::size_t kEverybody = 2;  // of Session::meetings; the others are indexed by kind

int KindOf(const Core &core) { return static_cast<int>(core.seat.kind); }

// `before`: so many steps of the setter's scalar unit are not waited for, its own wait.
void Note(Core &core, const char *what, const Stamp &stamp, std::uint32_t before) {
  Ticks own = stamp.own;
  own[0] = stamp.issued - before;  // a flag is not set before the scalar unit has come to it
  RecordJoin(core, what, stamp.core, own);
}

void Join(Core &core, const char *what, const Stamp &stamp) {
  Note(core, what, stamp, 0);
  OrderJoin(core, stamp);
}

void JoinAll(Core &core, const char *what, const Stamps &stamps, std::uint32_t before = 0) {
  for (const Stamp &stamp : stamps.each) Note(core, what, stamp, before);
  OrderJoin(core, stamps.all);
}

// Everybody has come.
void Complete(Stamps &stamps) {
  for (const Stamp &stamp : stamps.each) OrderMerge(stamps.all, stamp);
  stamps.each.shrink_to_fit();
}

void Rest(Core &core, const Call &call, Wait what, std::string whatFor) {
  core.wait = what;
  core.waiting = call;
  core.waitingFor = std::move(whatFor);
  Suspend();
}

// Blocks that are not on the chip yet cannot arrive.
void CheckCapacity(const Call &call, const Session &session) {
  const std::uint32_t most = session.cube ? TWIN_CUBE_CORES : TWIN_VECTOR_CORES;
  const std::uint32_t blocks = session.spec->blocks;
  if (blocks <= most) return;
  Report(call, "sync-cores",
         Text("%s with %u blocks on %u %s cores: those not yet started are waited for", call.api,
              blocks, most, session.cube ? "cube" : "vector"),
         Text("%u blocks", blocks), Text("at most %u", most));
}

void Meet(const Call &call, Core &core, Meeting &meeting, std::uint32_t cores, const char *who,
          const char *what = "sync_all") {
  RecordScalar(what);
  if (meeting.stamps == nullptr) meeting.stamps = std::make_shared<Stamps>();
  const std::shared_ptr<Stamps> mine = meeting.stamps;
  mine->each.push_back(OrderStamp(core, PIPE_ALL));
  meeting.arrived += 1;
  if (meeting.arrived >= cores) {
    meeting = Meeting();
    Complete(*mine);
    JoinAll(core, what, *mine, 1);
    return;
  }
  core.meeting = mine;
  Rest(core, call, Wait::kSync, Text("%u %s", cores, who));
  core.meeting = nullptr;
  JoinAll(core, what, *mine, 1);
}

}  // namespace

void SyncCores(const Call &call, bool all) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  if (session.spec == nullptr) return;
  CheckCapacity(call, session);
  const std::uint32_t vectors = session.CoresOf(Kind::kVector);
  const std::uint32_t cubes = session.CoresOf(Kind::kCube);
  if (all && (vectors == 0 || cubes == 0)) {
    Report(call, "cross-mode", "SyncAll<false> in a launch with one kind of core never returns",
           "isAIVOnly = false", "isAIVOnly = true, or a kernel type with AIC and AIV");
    all = false;
  }
  if (all) return Meet(call, core, session.meetings[kEverybody], vectors + cubes, "cores");
  const bool cube = core.seat.kind == Kind::kCube;
  Meet(call, core, session.meetings[static_cast<std::size_t>(KindOf(core))],
       cube ? cubes : vectors, cube ? "cube cores" : "vector cores");
}

void SoftSync(const Call &call, const Gm &gm, const View &ub, std::int64_t cores) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  if (session.spec == nullptr) return;
  const std::uint32_t all = session.CoresOf(Kind::kVector);
  if (cores > 0 && !InRange(call, "usedCores", cores, 1, all)) cores = all;
  const std::uint32_t count = cores > 0 ? static_cast<std::uint32_t>(cores) : all;
  const std::int64_t bytes = static_cast<std::int64_t>(count) * kBlock;
  if (LookGm(call, "gmWorkspace", gm, bytes) == nullptr) return;
  const Need space{"ubWorkspace", &ub, bytes, kBlock, Use::kLook};
  if (Usable(core, call, space) == nullptr) return;
  CheckCapacity(call, session);
  Meet(call, core, session.meetings[0], count, "vector cores", "soft_sync");
}

// ---- flags in global memory, from one vector core to another

namespace {

std::int32_t *BlockFlag(const Call &call, const Gm &gm, std::int64_t block, std::int64_t event) {
  const std::int64_t cores = ThisLaunch().CoresOf(Kind::kVector);
  const std::int64_t index = (cores * event + block) * kBlock;
  std::uint8_t *base = LookGm(call, "gmWorkspace", gm, index + kBlock);
  return base == nullptr ? nullptr : reinterpret_cast<std::int32_t *>(base + index);
}

}  // namespace

void BlockSet(const Call &call, const Gm &gm, std::int64_t block, std::int64_t event) {
  Core &core = Enter(call, PIPE_S);
  std::int32_t *flag = BlockFlag(call, gm, block, event);
  if (flag == nullptr) return;
  if (*flag != 0) {  // the former signal was not taken yet
    Report(call, "event-pair", "IBSet on a flag that is set already");
  }
  *flag = 1;
  RecordScalar("block_set", kSetsFlag);
  ThisLaunch().blockStamps[flag] = OrderStamp(core, PIPE_ALL);
}

void BlockWait(const Call &call, const Gm &gm, std::int64_t block, std::int64_t event) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("block_wait");
  std::int32_t *flag = BlockFlag(call, gm, block, event);
  if (flag == nullptr) return;
  if (*flag == 0) {
    core.waitFlag = flag;
    Rest(core, call, Wait::kBlockFlag, Text("IBSet of event %lld", Ll(event)));
  }
  *flag = 0;
  auto &stamps = ThisLaunch().blockStamps;
  if (const auto found = stamps.find(flag); found != stamps.end()) {
    Join(core, "block_wait", found->second);
  }
}

// ---- flags of the scheduler (doc: CrossCoreSetFlag)

namespace {

using Member = std::array<int, 4>;  // kind, block, sub, id

Member MemberOf(Kind kind, int group, int sub, int id) {
  return {static_cast<int>(kind), group, sub, id};
}

// All cores of a kind, of one block or of all (group < 0).
std::vector<Member> Members(const Session &session, Kind kind, int group, int id) {
  std::vector<Member> members;
  const int first = group < 0 ? 0 : group;
  const int last = group < 0 ? static_cast<int>(session.spec->blocks) - 1 : group;
  const int subs = kind == Kind::kCube ? (session.cube ? 1 : 0) : session.vectors;
  for (int block = first; block <= last; ++block) {
    for (int sub = 0; sub < subs; ++sub) members.push_back(MemberOf(kind, block, sub, id));
  }
  return members;
}

void Deliver(const Call &call, Session &session, const std::vector<Member> &receivers,
             const std::shared_ptr<const Stamps> &stamps) {
  for (const Member &receiver : receivers) {
    session.setters[receiver] = call.site;
    session.credits[receiver].push_back(stamps);
  }
}

// Those whose counters a core's set raises.
std::vector<Member> Receivers(const Session &session, const Core &core, int mode, int id) {
  const Kind kind = core.seat.kind;
  if (mode == 0) return Members(session, kind, -1, id);
  if (mode == 1) return Members(session, kind, core.seat.group, id);
  const Kind other = kind == Kind::kCube ? Kind::kVector : Kind::kCube;
  return Members(session, other, core.seat.group, id);
}

bool HasRoom(Session &session, const Core &core) {
  for (const Member &receiver : Receivers(session, core, core.crossMode, core.crossId)) {
    if (session.credits[receiver].size() >= kMostCount) return false;
  }
  return true;
}

// One core has set; when everybody of its group has, a round is complete.
void Gather(const Call &call, Session &session, Core &core, int mode, int id, pipe_t pipe,
            const std::vector<Member> &group, const std::vector<Member> &receivers) {
  const auto key = [mode](const Member &m) {
    return std::array<int, 5>{mode, m[0], m[1], m[2], m[3]};
  };
  const Member me = MemberOf(core.seat.kind, core.seat.group, core.seat.sub, id);
  session.pending[key(me)].push_back(OrderStamp(core, pipe));
  for (const Member &member : group) {
    if (session.pending[key(member)].empty()) return;
  }
  auto stamps = std::make_shared<Stamps>();
  for (const Member &member : group) {
    auto &mine = session.pending[key(member)];
    stamps->each.push_back(std::move(mine.front()));
    mine.pop_front();
  }
  Complete(*stamps);
  Deliver(call, session, receivers, stamps);
}

bool CheckFlag(const Call &call, std::int64_t &id) {
  if (id < 0 || id >= kFlags) {
    InRange(call, "flag id", id, 0, kUserFlags - 1);
    id &= kFlags - 1;  // what the hardware sees
    return true;
  }
  // 11..14 belong to SyncAll (doc)
  return InRange(call, "flag id", id, 0, kUserFlags - 1);
}

}  // namespace

void CrossSet(const Call &call, int mode, pipe_t pipe, std::int64_t id) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  if (session.spec == nullptr || !CheckFlag(call, id)) return;
  const bool mixed = session.cube && session.vectors > 0;
  if (mode > 2 || (mode != 0 && !mixed)) {
    Report(call, "cross-mode",
           Text("%s of mode %d in a launch with one kind of core", call.api, mode),
           Text("mode %d", mode), "mode 0, or a kernel type with AIC and AIV");
    return;
  }
  if (mode == 1 && core.seat.kind == Kind::kCube) {
    Report(call, "cross-mode", Text("%s of mode 1 on a cube core", call.api), "mode 1 on AIC",
           "mode 1 joins the vector cores of a block");
    return;
  }
  if (mode == 0) CheckCapacity(call, session);
  const int group = mode == 0 ? -1 : core.seat.group;
  core.crossMode = mode;
  core.crossId = static_cast<int>(id);
  // The others run, too: a full counter is wrong only when nobody will ever lower it.
  if (!HasRoom(session, core)) Rest(core, call, Wait::kRoom, Text("room in flag %lld", Ll(id)));
  RecordScalar("cross_set", kSetsFlag);
  Gather(call, session, core, mode, core.crossId, pipe,
         Members(session, core.seat.kind, group, core.crossId),
         Receivers(session, core, mode, core.crossId));
}

void CrossWait(const Call &call, std::int64_t id) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  if (session.spec == nullptr || !CheckFlag(call, id)) return;
  RecordScalar("cross_wait");
  core.crossId = static_cast<int>(id);
  if (!session.cube || session.vectors == 0) CheckCapacity(call, session);
  const Member me =
      MemberOf(core.seat.kind, core.seat.group, core.seat.sub, core.crossId);
  if (session.credits[me].empty()) Rest(core, call, Wait::kCross, Text("flag %lld", Ll(id)));
  Credits &credits = session.credits[me];
  const auto stamps = credits.front();
  credits.pop_front();
  JoinAll(core, "cross_wait", *stamps);
}

void CheckCredits() {
  for (const auto &[member, credits] : ThisLaunch().credits) {
    if (credits.empty()) continue;
    const Kind kind = static_cast<Kind>(member[0]);
    Report({"CrossCoreSetFlag", ThisLaunch().setters[member]}, "cross-pair",
           Text("flag %d of %s of block %d is set and never waited for", member[3],
                kind == Kind::kCube ? "the cube core" : "a vector core", member[1]),
           Text("%zu left when the kernel ends", credits.size()),
           "one CrossCoreWaitFlag for each complete CrossCoreSetFlag", "", Level::kWarning);
  }
}

// ---- turns: vector cores one after the other

namespace {

int BlockBefore(const Core &core) {
  const int cores = static_cast<int>(ThisLaunch().CoresOf(Kind::kVector));
  return core.block == 0 ? cores - 1 : core.block - 1;
}

// How often the core before must have passed its turn on: the first starts by itself.
long NeededTurns(const Core &core) { return core.block == 0 ? core.turn - 1 : core.turn; }

bool TurnHasCome(const Core &core) {
  const auto &passed = ThisLaunch().turnStamps[BlockBefore(core)];
  return static_cast<long>(passed.size()) >= NeededTurns(core);
}

bool CheckTurns(Core &core, const Call &call, const Gm &gm, const View &ub) {
  const std::int64_t cores = ThisLaunch().CoresOf(Kind::kVector);
  if (LookGm(call, "gmWorkspace", gm, cores * kBlock) == nullptr) return false;
  const Need space{"ubWorkspace", &ub, (cores + 1) * kBlock, kBlock, Use::kLook};
  return Usable(core, call, space) != nullptr;
}

}  // namespace

void InitTurns(const Call &call, const Gm &gm, const View &ub) {
  CheckTurns(Enter(call, PIPE_S), call, gm, ub);
}

// Both have barriers of all pipes inside, at their beginning and at their end.
void WaitTurn(const Call &call, const Gm &gm, const View &ub) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  OrderBarrier(core, PIPE_ALL);
  if (session.spec == nullptr || !CheckTurns(core, call, gm, ub)) return;
  CheckCapacity(call, session);
  core.turn += 1;
  RecordScalar("turn_wait");
  if (!TurnHasCome(core)) Rest(core, call, Wait::kTurn, Text("turn %ld", core.turn));
  const auto needed = static_cast<std::size_t>(NeededTurns(core));
  if (needed > 0) Join(core, "turn_wait", session.turnStamps[BlockBefore(core)][needed - 1]);
  OrderBarrier(core, PIPE_ALL);
}

void PassTurn(const Call &call, const Gm &gm, const View &ub) {
  Core &core = Enter(call, PIPE_S);
  Session &session = ThisLaunch();
  OrderBarrier(core, PIPE_ALL);
  if (session.spec == nullptr || !CheckTurns(core, call, gm, ub)) return;
  RecordScalar("turn_set", kSetsFlag);
  session.turnStamps[core.block].push_back(OrderStamp(core, PIPE_ALL));
}

// ---- loops that poll global memory

namespace {

const SmallWrite *WriteAt(const std::uint8_t *at) {
  const auto &flags = ThisLaunch().flags;
  const auto found = flags.find(at);
  return found == flags.end() ? nullptr : &found->second;
}

// Whoever sees a value that was not there before has seen all that its writer had waited for.
void JoinWrite(Core &core, const SmallWrite &write) {
  for (const auto &[stamp, unit] : write.by) Join(core, "block_wait", stamp);
}

// What the core itself has written is no news from another one.
bool Sees(const Core &core, const SmallWrite &write) {
  const auto own = [&](const auto &one) { return one.first.core == OrderNumber(core); };
  if (std::any_of(write.by.begin(), write.by.end(), own)) return true;
  return std::all_of(write.by.begin(), write.by.end(), [&](const auto &one) {
    const auto &[stamp, unit] = one;
    const std::size_t by = unit == UnitOf(PIPE_S) ? kBegun : unit;
    return OrderKnows(core, UnitOf(PIPE_S), stamp.core, by, stamp.own[unit]);
  });
}

// Nothing but scalar work since then.
bool StillLooking(const Core &core, const Core::Stale &stale) {
  for (std::size_t unit = 1; unit < kUnits; ++unit) {
    if (core.clocks.now[unit] != stale.begun[unit]) return false;
  }
  return true;
}

bool SamePlace(const Site &a, const Site &b) { return a.line == b.line && a.file == b.file; }

void TellStale(Core &core, const Core::Stale &stale) {
  core.unit = PIPE_S;
  UsableGm(stale.call, "tensor", stale.gm, stale.size, false);
}

const std::uint8_t *StaleValue(Core &core, const Call &call, const Gm &gm, int size) {
  const SmallWrite *write = WriteAt(gm.base);
  if (write == nullptr || size > write->bytes || Dry() || Sees(core, *write)) return nullptr;
  const auto found = core.stale.find(gm.base);
  const bool again = found != core.stale.end();
  const bool loops = again && StillLooking(core, found->second);
  if (again && !loops) TellStale(core, found->second);
  if (again && (!loops || SamePlace(found->second.call.site, call.site))) {
    core.stale.erase(found);
    JoinWrite(core, *write);
    return nullptr;
  }
  core.stale[gm.base] = {call, gm, size, core.clocks.now};
  return write->old.data();
}

}  // namespace

const std::uint8_t *Poll(const Call &call, const Gm &gm, int size) {
  constexpr int kPatience = 256;  // reads before the other cores get their turn
  const std::uint8_t *at = gm.base;
  Core &core = Me();
  Session &session = ThisLaunch();
  auto &recent = core.recentReads;
  const bool known = std::find(recent.begin(), recent.end(), at) != recent.end();
  if (!known) {
    recent[core.nextRead] = at;
    core.nextRead = (core.nextRead + 1) % recent.size();
  }
  core.polls += known;
  // blocks that are not on the chip yet write nothing
  const bool alone = session.spec == nullptr || session.spec->blocks > TWIN_VECTOR_CORES;
  if (!alone && known && core.polls % kPatience == 0) {
    core.pollSite = call.site;
    Rest(core, call, Wait::kSpin, "another core's write");
  }
  if (core.pollSite.line != 0 && SamePlace(call.site, core.pollSite)) {
    const SmallWrite *write = WriteAt(at);
    if (write != nullptr) JoinWrite(core, *write);
    core.stale.erase(at);
  }
  return StaleValue(core, call, gm, size);
}

void CheckStale(Core &core) {
  for (const auto &[at, stale] : core.stale) TellStale(core, stale);
  core.stale.clear();
}

void NotePolled(Core &core, const std::uint8_t *at, std::int64_t bytes) {
  constexpr std::size_t kMostFlags = 1 << 16;
  Session &session = ThisLaunch();
  const LaunchSpec *spec = session.spec;
  const bool apart = spec != nullptr && session.CoresOf(Kind::kVector) +
                                                session.CoresOf(Kind::kCube) > 1 &&
                     spec->blocks <= TWIN_VECTOR_CORES;
  if (!apart || bytes > static_cast<std::int64_t>(sizeof SmallWrite::old)) return;
  if (session.flags.size() >= kMostFlags && session.flags.count(at) == 0) return;
  SmallWrite &write = session.flags[at];
  const bool adds = core.atomic != Atomic::kNone && core.unit != PIPE_S && write.bytes == bytes;
  if (!adds) {
    write.by.clear();
    write.bytes = bytes;
    std::memcpy(write.old.data(), at, static_cast<std::size_t>(bytes));
  }
  constexpr std::size_t kMostWriters = 128;
  if (write.by.size() < kMostWriters) {
    write.by.emplace_back(OrderStamp(core, core.unit), UnitOf(core.unit));
  }
}

// ---- what the scheduler asks

bool Ready(const Core &core) {
  Session &session = ThisLaunch();
  switch (core.wait) {
    case Wait::kNothing: return true;
    case Wait::kSync: {
      for (const Meeting &meeting : session.meetings) {
        if (meeting.stamps == core.meeting) return false;  // still being gathered
      }
      return true;
    }
    case Wait::kBlockFlag: return *core.waitFlag != 0;
    case Wait::kCross: {
      const auto &seat = core.seat;
      return !session.credits[MemberOf(seat.kind, seat.group, seat.sub, core.crossId)].empty();
    }
    case Wait::kRoom: return HasRoom(session, core);
    case Wait::kTurn: return TurnHasCome(core);
    case Wait::kServe: return AloneInBlock(core);
    case Wait::kSpin: return true;  // it looks again
  }
  return true;
}

}  // namespace twin
