// Events between pipes, sticky registers, and the end of a kernel; cross.cpp has what joins cores.
#include <algorithm>

#include "check.h"
#include "log/record.h"
#include "text.h"
#include "vector/walk.h"

namespace twin {

namespace {

using AscendC::HardEvent;

constexpr const char *kEventNames[] = {
    "MTE2_MTE1", "MTE1_MTE2", "MTE1_M",   "M_MTE1",    "MTE2_V",    "V_MTE2",   "MTE3_V",
    "V_MTE3",    "M_V",       "V_M",      "V_V",       "MTE3_MTE1", "MTE1_MTE3", "MTE1_V",
    "MTE2_M",    "M_MTE2",    "V_MTE1",   "M_FIX",     "FIX_M",     "MTE3_MTE2", "MTE2_MTE3",
    "S_V",       "V_S",       "S_MTE2",   "MTE2_S",    "S_MTE3",    "MTE3_S",   "MTE2_FIX",
    "FIX_MTE2",  "FIX_S",     "M_S",      "FIX_MTE3",  "MTE1_FIX",  "FIX_MTE1", "FIX_FIX",
    "FIX_V",     "V_FIX",     "S_FIX",    "S_M"};
static_assert(std::size(kEventNames) == kHardEvents);

const char *NameOf(HardEvent event) { return kEventNames[static_cast<int>(event)]; }

Core::Event *EventOf(Core &core, const Call &call, HardEvent event, std::int64_t id) {
  if (!InRange(call, "event id", id, 0, kEvents - 1)) return nullptr;
  return &core.events[static_cast<std::size_t>(event)][static_cast<std::size_t>(id)];
}

const char *PipeName(pipe_t pipe) {
  switch (pipe) {
    case PIPE_S: return "S";
    case PIPE_V: return "V";
    case PIPE_M: return "M";
    case PIPE_MTE1: return "MTE1";
    case PIPE_MTE2: return "MTE2";
    case PIPE_MTE3: return "MTE3";
    case PIPE_FIX: return "FIX";
    default: return "?";
  }
}

}  // namespace

void SetEvent(const Call &call, HardEvent event, std::int64_t id) {
  Core::Event *flag = EventOf(Enter(call, PIPE_S), call, event, id);
  RecordScalar("set_flag");
  if (flag == nullptr) return;
  if (flag->set) {
    Report(call, "event-pair",
           Text("SetFlag<HardEvent::%s>(%lld) twice without a WaitFlag", NameOf(event), Ll(id)),
           Text("first set at %s%s", PlaceOf(flag->site).c_str(),
                flag->fetched > 1 ? "; FetchEventID gave one id for both" : ""),
           "", flag->fetched > 1 ? "AllocEventID and ReleaseEventID: FetchEventID keeps no id" : "");
  }
  flag->set = true;
  flag->site = call.site;
  OrderSet(Me(), event, static_cast<int>(id));
}

void WaitEvent(const Call &call, HardEvent event, std::int64_t id) {
  Core::Event *flag = EventOf(Enter(call, PIPE_S), call, event, id);
  RecordScalar("wait_flag");
  if (flag == nullptr) return;
  if (!flag->set) {
    Report(call, "event-pair",
           Text("WaitFlag<HardEvent::%s>(%lld) without a SetFlag before it", NameOf(event),
                Ll(id)));
  } else {
    OrderWait(Me(), event, static_cast<int>(id));
  }
  flag->set = false;
  flag->fetched = 0;
}

// Both look at allocated ids alone (doc: two flags with fetched ids have the same id and may hang):
// what is set and not waited for is the caller's to know. Two SetFlags of one id without a wait
// between them are undefined (doc: SetFlag), whatever the kernel waits for later.
int FetchEvent(const Call &call, HardEvent event, bool reserve) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("fetch_event");
  auto &flags = core.events[static_cast<std::size_t>(event)];
  for (int id = 0; id < kEvents; ++id) {
    auto &flag = flags[static_cast<std::size_t>(id)];
    if (flag.reserved) continue;
    flag.reserved = reserve;
    flag.fetched += reserve ? 0 : 1;
    return id;
  }
  Report(call, "event-none", Text("no event id of HardEvent::%s is free", NameOf(event)),
         Text("%d are allocated", kEvents));
  StopCore();
}

void ReleaseEvent(const Call &call, HardEvent event, std::int64_t id) {
  Core::Event *flag = EventOf(Enter(call, PIPE_S), call, event, id);
  if (flag == nullptr) return;
  if (!flag->reserved) {
    Report(call, "event-pair",
           Text("ReleaseEventID<HardEvent::%s>(%lld) of an id that is not allocated",
                NameOf(event), Ll(id)));
  }
  flag->reserved = false;
}

HardEvent EventBetween(const Call &call, pipe_t first, pipe_t second) {
  const std::string name = Text("%s_%s", PipeName(first), PipeName(second));
  for (int i = 0; i < kHardEvents; ++i) {
    if (name == kEventNames[i]) return static_cast<HardEvent>(i);
  }
  Enter(call, PIPE_S);
  Report(call, "param-range", Text("%s between pipes %s and %s", call.api, PipeName(first),
                                   PipeName(second)));
  StopCore();
}

void Barrier(const Call &call, pipe_t pipe) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("barrier", pipe == PIPE_ALL ? kBarrier : 0);
  if (pipe != PIPE_S) return OrderBarrier(core, pipe);
  Report(call, "param-range", "PipeBarrier<PIPE_S>", "PIPE_S", "any other pipe");
}

void SetAtomic(const Call &call, Atomic mode, DType type) {
  Core &core = Enter(call, PIPE_S);
  core.atomic = mode;
  core.atomicType = type;
  core.atomicSite = call.site;
}

namespace {

void PutMask(Core &core, const Call &call, std::uint64_t high, std::uint64_t low) {
  RecordScalar("set_mask");
  core.mask[0] = low;
  core.mask[1] = high;
  core.maskTouched = core.counter || (low & high) != ~0ull;
  core.maskUsed = false;
  core.maskSite = call.site;
}

}  // namespace

void SetMask(const Call &call, std::uint64_t high, std::uint64_t low) {
  PutMask(Enter(call, PIPE_S), call, high, low);
}

void SetMaskLength(const Call &call, std::int64_t length, DType type) {
  const std::int64_t lanes = kRepeat / SizeOf(type);
  Core &core = Enter(call, PIPE_S);
  if (core.counter) return PutMask(core, call, 0, static_cast<std::uint64_t>(length));
  if (!InRange(call, "len", length, 0, lanes)) length = std::clamp<std::int64_t>(length, 0, lanes);
  const std::uint64_t low = length >= 64 ? ~0ull : (1ull << length) - 1;
  const std::uint64_t high = length >= 128 ? ~0ull : length > 64 ? (1ull << (length - 64)) - 1 : 0;
  PutMask(core, call, high, low);
}

void SetCounter(const Call &call, bool on) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("set_mask");
  core.counter = on;
  core.maskSite = call.site;
}

void ResetMaskRegister(const Call &call) {
  Core &core = Enter(call, PIPE_S);
  RecordScalar("set_mask");
  core.mask[0] = core.mask[1] = ~0ull;
  core.maskTouched = false;
}

void SetDeq(const Call &call, float scale) { Enter(call, PIPE_S).deqScale = scale; }

void SetPad(const Call &call, std::uint64_t bits) {
  Core &core = Enter(call, PIPE_S);
  core.padSet = true;
  core.padBits = bits;
}

void ResetState(const Call &call) {
  Core &core = Enter(call, PIPE_S);
  core.atomic = Atomic::kNone;
  core.counter = false;
  core.mask[0] = core.mask[1] = ~0ull;
  core.maskTouched = false;
  core.padSet = false;
}

namespace {

void CheckSticky(const Core &core) {
  const auto warn = [](const Site &site, const char *api, const char *what, const char *hint) {
    Report({api, site}, "sticky-state", what, "", "", hint, Level::kWarning);
  };
  if (core.atomic != Atomic::kNone) {
    warn(core.atomicSite, "SetAtomic", "the atomic mode is still on when the kernel ends",
         "SetAtomicNone() after the copies that need it");
  }
  if (core.counter) {
    warn(core.maskSite, "SetMaskCount", "counter mode is still on when the kernel ends",
         "SetMaskNorm() and ResetMask()");
  } else if (core.maskTouched) {
    warn(core.maskSite, "SetVectorMask", "the vector mask is not full when the kernel ends",
         "ResetMask()");
  }
}

void CheckFlags(const Core &core) {
  for (int event = 0; event < kHardEvents; ++event) {
    for (int id = 0; id < kEvents; ++id) {
      const auto &flag = core.events[static_cast<std::size_t>(event)][static_cast<std::size_t>(id)];
      if (!flag.set) continue;
      Report({"SetFlag", flag.site}, "event-pair",
             Text("SetFlag<HardEvent::%s>(%d) is never waited for", kEventNames[event], id));
    }
  }
}

}  // namespace

void CheckEnd(Core &core) {
  CheckOverflow(core);
  CheckQueues(core);
  CheckFlags(core);
  CheckSticky(core);
  CheckStale(core);
}

}  // namespace twin
